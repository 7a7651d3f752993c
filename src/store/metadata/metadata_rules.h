// MetadataRules: what has to hold of one inode, and of what an inode consists of, whatever other inodes there are. All
// that it needs to know is the geometry of the device. What holds between inodes is in metadata_tables.h, what a change
// may do in metadata_change.h.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "device/zoned_device.h"
#include "store/metadata/metadata.h"

namespace isozone {

// kCorruption that says what is wrong with an inode.
Status Broken(InodeId inode, std::string_view what);

bool IsValidName(std::string_view name);

// As many links as an inode of its kind has between records.
Status CheckLinkCount(const Inode& inode);

// Bytes; what a file with holes may have. So sums of a few sizes do not overflow.
inline constexpr uint64_t kFileSizeMax = uint64_t{1} << 60;

// No device lives long enough for more numbers. So there is always a next one.
inline constexpr uint64_t kInodeIdMax = uint64_t{1} << 62;

class MetadataRules {
 public:
  explicit MetadataRules(const DeviceGeometry& geometry) : geometry_(geometry) {}

  // Bytes that files together may have in extents.
  uint64_t capacity() const { return geometry_.zone_count * geometry_.zone_capacity; }

  // Each extent of `run` lies inside the capacity of one zone.
  Status CheckPlace(InodeId inode, const ExtentRun& run) const;
  // They begin at `offset` of the file and lie where extents may.
  Status CheckExtents(InodeId inode, uint64_t offset, const ExtentList& extents) const;
  Status CheckRegion(InodeId inode, const LogRegion& region) const;
  // The bytes of file in `regions`.
  Result<uint64_t> CheckRegions(InodeId inode, std::span<const LogRegion> regions) const;
  // They are those of files, so that they can be encoded.
  static Status CheckClass(InodeId inode, Lifetime lifetime, int8_t level);
  // All that can be said about what an inode holds: everything but its links.
  Status CheckContent(const Inode& inode) const;
  // Limits of InodeDetails; a symbolic link has no data.
  static Status CheckDetails(const Inode& inode, const InodeDetails& details);
  // They are of the zones of the device.
  Status CheckZoneGroups(const ZoneGroups& groups) const;

 private:
  bool LiesInZones(const ExtentRun& run) const;

  DeviceGeometry geometry_;
};

}  // namespace isozone
