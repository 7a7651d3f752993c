// The sink of logs: frames (log_frame.h), of which the journal learns where a region of them begins and where it ends.
#pragma once

#include <memory>

#include "store/file/mount_context.h"
#include "store/file/open_file.h"
#include "store/file/write_sink.h"

namespace isozone {

// Makes the sink of a log, to which it adds. The log must have what the metadata state says. `context` and `file` must
// outlive the sink.
std::unique_ptr<WriteSink> MakeLogSink(MountContext& context, const OpenFile& file, Lifetime lifetime,
                                       const SinkOptions& options);

}  // namespace isozone
