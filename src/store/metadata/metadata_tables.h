// MetadataTables: what a MetadataState holds. These are the inodes, and what is derived from them so that nobody has to
// look for it: the names in each directory, the files in each zone, and sums.
//
// Only MetadataChange changes them, one record at a time, and keeps what is derived in step. Between records all
// invariants hold that metadata.h lists, and CheckInvariants finds that
//  * `directories` has a table for every directory, and in these are just the links of the inodes,
//  * `in_blocks` of every inode is what its extents take,
//  * `zone_index` knows the extents of every file, `region_index` the regions of every log, and `in_extents` is the sum
//    of the lengths of the extents,
//  * `encoded_size` is the sum of what the codec says of every inode, the zone groups, the heats, the number of
//    the mount and the footer.
//
// Thread safety: as a standard container.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"
#include "store/metadata/directory_table.h"
#include "store/metadata/inode_snapshot.h"
#include "store/metadata/metadata.h"
#include "store/metadata/metadata_rules.h"
#include "store/metadata/region_index.h"
#include "store/metadata/zone_index.h"

namespace isozone {

struct MetadataTables {
  // Makes tables that have a root directory and nothing else.
  explicit MetadataTables(const DeviceGeometry& device_geometry);
  // Fills the tables with what MetadataState::Restore was given, and checks it.
  Status Restore(std::vector<Inode> from, InodeId first_free, DeviceRecords records);

  const Inode* Find(InodeId id) const;                      // null: none
  const DirectoryTable& Children(InodeId directory) const;  // an empty one where there is no such directory
  // Returns the extents that a file has in `zone`, in file order.
  std::vector<FileExtent> ExtentsIn(ZoneId zone, const Inode& inode) const;
  // Does so for one window, and adds them to `extents`.
  void AddExtents(ZoneId zone, const ZoneIndex::Entry& entry, const Inode& inode,
                  std::vector<FileExtent>& extents) const;

  // Checks that files may have `bytes` more in extents: that the zones can hold so much.
  Status CheckCapacity(InodeId inode, uint64_t bytes) const;
  // Checks that every zone of `heats` has data of some file.
  Status CheckZoneHeats(const ZoneHeats& heats) const;
  Status CheckInvariants() const;

  DeviceGeometry geometry;
  MetadataRules rules;
  std::map<InodeId, Inode> inodes;
  std::unordered_map<InodeId, DirectoryTable> directories;
  InodeId next_id{2};
  DeviceRecords device;  // no heat of it is kNewDataHeat
  ZoneIndex zone_index;
  RegionIndex region_index;
  uint64_t in_extents = 0;    // bytes of all files, without holes
  uint64_t encoded_size = 0;  // bytes of all records of a checkpoint
  std::optional<InodeSnapshot> snapshot;

 private:
  Status CheckRoot() const;
  // Checks all that holds of an inode whatever others there are.
  Status CheckInode(const Inode& inode) const;
  Status CheckZones() const;
  // Checks that every directory is reached from the root, so that none lies in itself, and that each entry belongs to
  // one of the `links`.
  Status CheckReached(size_t links) const;
};

}  // namespace isozone
