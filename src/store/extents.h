// Lists of extents: where the bytes of a file are, in file order, without gaps; what was never written is a hole
// (FileExtent::kHole). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/zoned_device.h"

namespace isozone {

// A piece of a file, and where it lies.
struct FileExtent {
  // The place of a hole, which no device has. A hole reads as zeros and takes no space.
  static constexpr DeviceOffset kHole{uint64_t{1} << 63};

  uint64_t file_offset = 0;
  DeviceOffset device_offset;  // need not be block-aligned
  uint64_t length = 0;         // bytes, > 0

  bool is_hole() const { return device_offset == kHole; }
  // Returns where byte `skip` of the piece lies.
  DeviceOffset PlaceOf(uint64_t skip) const { return is_hole() ? kHole : DeviceOffset(device_offset.value() + skip); }
  bool operator==(const FileExtent&) const = default;
};

// A run of bytes that was copied to another place on the device.
struct ExtentMove {
  DeviceOffset from;
  DeviceOffset to;
  uint64_t length = 0;  // bytes, > 0
  bool operator==(const ExtentMove&) const = default;
};

// Returns the extent that holds `offset` of the file, found by binary search. Null if `offset` lies behind the last
// one.
const FileExtent* FindExtent(std::span<const FileExtent> extents, uint64_t offset);

// Sort extents by their place on the device, and find the extent that holds `offset` of the device in such a list.
void SortByPlace(std::vector<FileExtent>& extents);
const FileExtent* FindByPlace(std::span<const FileExtent> by_place, DeviceOffset offset);

// Adds `extent` to the end of a file's extents. Joins it with the last one if both are also neighbours in one zone of
// the device.
void AppendExtent(std::vector<FileExtent>& extents, const FileExtent& extent, uint64_t zone_size);

// Returns the first `size` bytes of `extents`.
std::vector<FileExtent> CutExtents(std::span<const FileExtent> extents, uint64_t size);

// Returns the extents behind the first `size` bytes, which CutExtents leaves out.
std::vector<FileExtent> ExtentsFrom(std::span<const FileExtent> extents, uint64_t size);

// A replacement of a part of a list of extents: the `count` extents from `index` on, in the old list, become `now`.
struct ExtentEdit {
  size_t index = 0;
  size_t count = 0;
  std::vector<FileExtent> now;
};

// Returns the edits that give a file with `extents` a new place for each range of `placed`, in file order. `placed`
// must be in file order; its ranges must not overlap and must lie within the file. Costs placed.size() x
// log(extents.size()).
//
// Two extents that become neighbours on the device, in one zone, are joined if one of them was placed or cut. Others
// stay as they are, because a replay of the journal must produce the same list.
std::vector<ExtentEdit> PlanEdits(std::span<const FileExtent> extents, std::span<const FileExtent> placed,
                                  uint64_t zone_size);

}  // namespace isozone
