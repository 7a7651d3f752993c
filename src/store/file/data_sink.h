// The sink of tables and small files: payload lies in zones as it is, each piece from a block boundary on. Pieces that
// the journal does not know yet go into one record, at Sync or Seal, or when the collector asks for them
// (pending_extents.h).
#pragma once

#include <memory>

#include "store/file/catalog.h"
#include "store/file/data_path.h"
#include "store/file/write_sink.h"

namespace isozone {

// Makes the sink of a file, to which it adds. The file must have what the metadata state says. The first two arguments
// outlive the sink.
std::unique_ptr<WriteSink> MakeDataSink(DataPath& data_path, Catalog& catalog, InodeId id, DataClass data,
                                        const SinkOptions& options);

}  // namespace isozone
