// Lists of extents: where the bytes of a file are, in file order, without gaps. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/zoned_device.h"
#include "fs/file_system.h"

namespace isozone {

// A run of bytes that was copied to another place on the device.
struct ExtentMove {
  DeviceOffset from;
  DeviceOffset to;
  uint64_t length = 0;  // bytes, > 0
  bool operator==(const ExtentMove&) const = default;
};

// The extent that holds `offset` of the file, found by binary search. Null where it lies behind the last one.
const FileExtent* FindExtent(std::span<const FileExtent> extents, uint64_t offset);

// Adds `extent` to the end of a file's extents; joins it with the last one where both are neighbours in one zone of the
// device as well.
void AppendExtent(std::vector<FileExtent>& extents, const FileExtent& extent, uint64_t zone_size);

// The first `size` bytes of `extents`.
std::vector<FileExtent> CutExtents(std::span<const FileExtent> extents, uint64_t size);

// The extents of a file after [offset, offset + length) of it moved to `replacement`, which lies behind one another and
// covers just that range; may reach beyond the old end.
std::vector<FileExtent> SpliceExtents(std::span<const FileExtent> extents, std::span<const FileExtent> replacement);

// `extents` with what `moves` name at its new place. Empty where a run does not lie in one extent, or two runs overlap.
std::optional<std::vector<FileExtent>> MoveRuns(std::span<const FileExtent> extents, std::span<const ExtentMove> moves,
                                                uint64_t zone_size);

}  // namespace isozone
