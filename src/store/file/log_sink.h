// The sink of logs: frames (log_frame.h), of which the journal learns where a region of them begins and where it ends.
#pragma once

#include <memory>

#include "store/file/mount_context.h"
#include "store/file/open_file.h"
#include "store/file/write_sink.h"

namespace isozone {

// The file has what the metadata state says; the sink adds to it. `context` and `file` must live longer than the sink.
std::unique_ptr<WriteSink> MakeLogSink(MountContext& context, const OpenFile& file, Lifetime lifetime,
                                       const SinkOptions& options);

}  // namespace isozone
