// Lists of extents: where the bytes of a file are, in file order, without gaps. Pure.
#pragma once

#include <cstdint>
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

// The same for extents that are sorted by where they are on the device.
void SortByPlace(std::vector<FileExtent>& extents);
const FileExtent* FindByPlace(std::span<const FileExtent> by_place, DeviceOffset offset);

// Adds `extent` to the end of a file's extents; joins it with the last one where both are neighbours in one zone of the
// device as well.
void AppendExtent(std::vector<FileExtent>& extents, const FileExtent& extent, uint64_t zone_size);

// The first `size` bytes of `extents`.
std::vector<FileExtent> CutExtents(std::span<const FileExtent> extents, uint64_t size);

// What CutExtents leaves out.
std::vector<FileExtent> ExtentsFrom(std::span<const FileExtent> extents, uint64_t size);

// The extents of a file after [offset, offset + length) of it moved to `replacement`, which lies behind one another and
// covers just that range; may reach beyond the old end.
std::vector<FileExtent> SpliceExtents(std::span<const FileExtent> extents, std::span<const FileExtent> replacement);

// A part of a list of extents that is replaced: the `count` extents from `index` on, in the list as it was, become `now`.
struct ExtentEdit {
  size_t index = 0;
  size_t count = 0;
  std::vector<FileExtent> now;
};

// What makes of `extents` those of a file that has each range of `placed` at a new place. `placed` is in file order, its
// ranges apart and within the file. Edits are in file order. Costs placed.size() x log(extents.size()).
//
// Where two extents become neighbours on the device, in one zone, and one of them was placed or cut, they are joined;
// others stay as they are. (A replay of the journal has to come to the same list.)
std::vector<ExtentEdit> PlanEdits(std::span<const FileExtent> extents, std::span<const FileExtent> placed,
                                  uint64_t zone_size);

// Applies `edits`; returns those that take them back. Touches what is edited and, where an edit changes the number of
// extents, moves what lies behind the first such in memory.
std::vector<ExtentEdit> ApplyEdits(std::vector<FileExtent>& extents, std::vector<ExtentEdit> edits);

}  // namespace isozone
