// The sink of tables and small files: payload lies in zones as it is, each piece from a block boundary on. Pieces that
// the journal does not know yet go into one record, at Sync or Seal, or when the collector asks for them
// (pending_extents.h).
#pragma once

#include <memory>

#include "store/file/mount_context.h"
#include "store/file/write_sink.h"

namespace isozone {

// Makes the sink of a file, to which it adds. The file must have what the metadata state says. `context` must outlive
// the sink.
std::unique_ptr<WriteSink> MakeDataSink(MountContext& context, InodeId id, DataClass data, const SinkOptions& options);

}  // namespace isozone
