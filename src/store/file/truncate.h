// How files are cut, and how a range of one is replaced.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "store/file/catalog.h"
#include "store/file/data_path.h"

namespace isozone {

// Cuts `file` to `size`, which is less than it has, in the state, in the journal (not synced) and for its handles.
// Nothing of it may be in a writer's memory. The space goes once no read uses it.
Status TruncateFile(Catalog& catalog, OpenFile& file, uint64_t size);

// Fails with kInvalidArgument if bytes at `offset` of a file of `size` would leave a hole.
Status CheckNoHole(uint64_t size, uint64_t offset);

// Writes `data` at `offset` <= size to new space, then changes the extents. It is durable when this returns. `id` must
// be a kData or kSmall file. kBusy while a writer has it open, kInvalidArgument if it was cut below `offset` meanwhile.
// After an error the file is what it was.
Status OverwriteFile(DataPath& data_path, Catalog& catalog, InodeId id, uint64_t offset,
                     std::span<const std::byte> data);

}  // namespace isozone
