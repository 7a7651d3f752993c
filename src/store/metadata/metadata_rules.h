// MetadataRules: what has to hold of one inode and of its parts, whatever other inodes there are. These rules need to
// know only the geometry of the device. What holds between inodes is in metadata_tables.h, what a change may do in
// metadata_change.h.
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

// Returns kCorruption that says what is wrong with an inode.
Status Broken(InodeId inode, std::string_view what);

bool IsValidName(std::string_view name);

// Checks that the inode has as many links as one of its kind has between records.
Status CheckLinkCount(const Inode& inode);

// Bytes that a file, with its holes, may have at most. So sums of a few sizes do not overflow.
inline constexpr uint64_t kFileSizeMax = uint64_t{1} << 60;

// The highest number of an inode. No device lives long enough for more, so there is always a next one.
inline constexpr uint64_t kInodeIdMax = uint64_t{1} << 62;

class MetadataRules {
 public:
  explicit MetadataRules(const DeviceGeometry& geometry) : geometry_(geometry) {}

  // Returns how many bytes files together may have in extents.
  uint64_t capacity() const { return geometry_.zone_count * geometry_.zone_capacity; }

  // Checks that each extent of `run` lies inside the capacity of one zone.
  Status CheckPlace(InodeId inode, const ExtentRun& run) const;
  // Checks that the extents begin at `offset` of the file, and lie where extents may.
  Status CheckExtents(InodeId inode, uint64_t offset, const ExtentList& extents) const;
  Status CheckRegion(InodeId inode, const LogRegion& region) const;
  // Checks the regions of a log, and returns the bytes of the file in them.
  Result<uint64_t> CheckRegions(InodeId inode, std::span<const LogRegion> regions) const;
  // Checks that lifetime and level are those that a file may have, so that they can be encoded.
  static Status CheckClass(InodeId inode, Lifetime lifetime, int8_t level);
  // Checks all that an inode holds, except its links.
  Status CheckContent(const Inode& inode) const;
  // Checks the limits of InodeDetails, and that a symbolic link has no data.
  static Status CheckDetails(const Inode& inode, const InodeDetails& details);
  // Checks that the groups are of the zones of the device.
  Status CheckZoneGroups(const ZoneGroups& groups) const;

 private:
  bool LiesInZones(const ExtentRun& run) const;

  DeviceGeometry geometry_;
};

}  // namespace isozone
