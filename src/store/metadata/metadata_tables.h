// MetadataTables: what a MetadataState holds, which is the inodes, and what is derived from them so that nobody has to
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
  // A root directory and nothing else.
  explicit MetadataTables(const DeviceGeometry& device_geometry);
  // They become what MetadataState::Restore says.
  Status Restore(std::vector<Inode> from, InodeId first_free, DeviceRecords records);

  const Inode* Find(InodeId id) const;                      // null: none
  const DirectoryTable& Children(InodeId directory) const;  // an empty one where there is no such directory
  // What a file has in `zone`, in file order.
  std::vector<FileExtent> ExtentsIn(ZoneId zone, const Inode& inode) const;
  // The same of one window; added to `extents`.
  void AddExtents(ZoneId zone, const ZoneIndex::Entry& entry, const Inode& inode,
                  std::vector<FileExtent>& extents) const;

  // Files may have `bytes` more in extents: the zones hold so much.
  Status CheckCapacity(InodeId inode, uint64_t bytes) const;
  // Every zone of `heats` has data of some file.
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
  // All that holds of an inode whatever others there are.
  Status CheckInode(const Inode& inode) const;
  Status CheckZones() const;
  // Every directory is reached from the root, so none lies in itself; and there is no entry without one of the `links`.
  Status CheckReached(size_t links) const;
};

}  // namespace isozone
