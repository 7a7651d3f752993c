// The sink of logs: frames (log_frame.h), of which the journal learns where a region of them begins and where it ends.
#pragma once

#include <memory>

#include "store/file/catalog.h"
#include "store/file/data_path.h"
#include "store/file/open_file.h"
#include "store/file/write_sink.h"

namespace isozone {

// Makes the sink of a log, to which it adds. The log must have what the metadata state says. The first three arguments
// outlive the sink.
std::unique_ptr<WriteSink> MakeLogSink(DataPath& data_path, Catalog& catalog, const OpenFile& file, Lifetime lifetime,
                                       const SinkOptions& options);

}  // namespace isozone
