#include "store/metadata/metadata_tables.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "store/metadata/metadata_codec.h"

namespace isozone {

MetadataTables::MetadataTables(const DeviceGeometry& device_geometry)
    : geometry(device_geometry), rules(device_geometry), zone_index(device_geometry) {
  Inode root;
  root.id = kRootInode;
  root.is_directory = true;
  encoded_size = kEncodedFooter + EncodedSize(root);
  inodes.emplace(kRootInode, std::move(root));
  directories.emplace(kRootInode, DirectoryTable());
}

Status MetadataTables::Restore(std::vector<Inode> from, InodeId first_free, DeviceRecords records) {
  inodes.clear();
  for (Inode& inode : from) {
    const InodeId id = inode.id;
    if (inode.is_directory) directories.emplace(id, DirectoryTable());
    next_id = std::max(next_id, InodeId(id.value() + 1));
    const size_t before = inodes.size();
    inodes.emplace_hint(inodes.end(), id, std::move(inode));
    if (inodes.size() == before) return Broken(id, "appears twice");
  }
  std::vector<Inode>().swap(from);  // what follows needs the memory
  next_id = std::max(next_id, first_free);
  if (next_id > InodeId(kInodeIdMax + 1)) return Broken(next_id, "is no inode number that can be given out");
  device = std::move(records);
  std::erase_if(device.heats, [](const auto& known) { return known.second == kNewDataHeat; });
  encoded_size = kEncodedFooter + EncodedSize(device);
  ISOZONE_RETURN_IF_ERROR(CheckRoot());
  size_t links = 0;
  for (auto& [id, inode] : inodes) {
    ISOZONE_RETURN_IF_ERROR(CheckInode(inode));
    const uint64_t stored = inode.extents.StoredBytes();
    ISOZONE_RETURN_IF_ERROR(CheckCapacity(id, stored));
    encoded_size += EncodedSize(inode);
    in_extents += stored;
    inode.in_blocks = zone_index.Add(id, inode.extents);
    region_index.Add(id, inode.regions);
    links += inode.links.size();
    for (const InodeLink& link : inode.links) {
      const auto parent = directories.find(link.parent);
      if (parent == directories.end() || !parent->second.Insert(link.name, id)) {
        return Broken(id, fmt::format("cannot be '{}' of {}", link.name, link.parent.value()));
      }
    }
  }
  ISOZONE_RETURN_IF_ERROR(CheckZones());
  return CheckReached(links);
}

const Inode* MetadataTables::Find(InodeId id) const {
  const auto it = inodes.find(id);
  return it == inodes.end() ? nullptr : &it->second;
}

const DirectoryTable& MetadataTables::Children(InodeId directory) const {
  static const DirectoryTable kEmpty;
  const auto it = directories.find(directory);
  return it == directories.end() ? kEmpty : it->second;
}

std::vector<FileExtent> MetadataTables::ExtentsIn(ZoneId zone, const Inode& inode) const {
  std::vector<FileExtent> extents;
  for (const ZoneIndex::Entry& entry : zone_index.In(zone, inode.id)) AddExtents(zone, entry, inode, extents);
  return extents;
}

void MetadataTables::AddExtents(ZoneId zone, const ZoneIndex::Entry& entry, const Inode& inode,
                                std::vector<FileExtent>& extents) const {
  const auto old = static_cast<ptrdiff_t>(extents.size());
  zone_index.VisitRuns(zone, entry, inode.extents, [&](const ExtentRun& run) {
    for (uint64_t i = 0; i < run.count; ++i) extents.push_back(run.extent(i));
  });
  std::sort(extents.begin() + old, extents.end(),
            [](const FileExtent& a, const FileExtent& b) { return a.file_offset < b.file_offset; });
}

Status MetadataTables::CheckCapacity(InodeId inode, uint64_t bytes) const {
  if (bytes <= rules.capacity() - in_extents) return {};
  return Broken(inode, "the files have more bytes than the zones have capacity");
}

Status MetadataTables::CheckZoneHeats(const ZoneHeats& heats) const {
  for (const auto& [zone, heat] : heats) {
    if (const int number = static_cast<int>(heat); number >= kZoneHeatCount) {
      return Status::Corruption(fmt::format("zone {} has heat {}, which is none", zone.value(), number));
    }
    if (zone_index.contains(zone)) continue;
    return Status::Corruption(
        fmt::format("zone {} is said to be {}, but no file has data there", zone.value(), ZoneHeatName(heat)));
  }
  return {};
}

Status MetadataTables::CheckRoot() const {
  const Inode* root = Find(kRootInode);
  return root != nullptr && root->is_directory ? Status::Ok() : Broken(kRootInode, "the root directory is missing");
}

Status MetadataTables::CheckInode(const Inode& inode) const {
  ISOZONE_RETURN_IF_ERROR(rules.CheckContent(inode));
  for (const InodeLink& link : inode.links) {
    if (!IsValidName(link.name)) return Broken(inode.id, fmt::format("bad name '{}'", link.name));
  }
  return CheckLinkCount(inode);
}

Status MetadataTables::CheckZones() const {
  if (device.groups) ISOZONE_RETURN_IF_ERROR(rules.CheckZoneGroups(*device.groups));
  return CheckZoneHeats(device.heats);
}

Status MetadataTables::CheckReached(size_t links) const {
  size_t entries = 0;
  std::vector<InodeId> reached = {kRootInode};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const auto& [name, id] : Children(reached[i])) {
      ++entries;
      if (directories.contains(id)) reached.push_back(id);
    }
  }
  if (reached.size() != directories.size()) return Broken(kRootInode, "some directory lies in itself");
  if (entries != links) return Broken(kRootInode, "a directory entry has no link");
  return {};
}

Status MetadataTables::CheckInvariants() const {
  ISOZONE_RETURN_IF_ERROR(CheckZones());
  ISOZONE_RETURN_IF_ERROR(CheckRoot());
  uint64_t encoded = kEncodedFooter + EncodedSize(device);
  uint64_t bytes = 0;
  size_t links = 0;
  ZoneIndex index(geometry);
  RegionIndex regions;
  for (const auto& [id, inode] : inodes) {
    ISOZONE_RETURN_IF_ERROR(CheckInode(inode));
    encoded += EncodedSize(inode);
    bytes += inode.extents.StoredBytes();
    if (index.Add(id, inode.extents) != inode.in_blocks) return Broken(id, "what it takes of the device is not known");
    regions.Add(id, inode.regions);
    for (const InodeLink& link : inode.links) {
      if (Children(link.parent).Find(link.name) != id) {
        return Broken(id, fmt::format("'{}' leads elsewhere", link.name));
      }
    }
    links += inode.links.size();
  }
  if (encoded != encoded_size) return Broken(kRootInode, "the size of a checkpoint is not known");
  if (bytes != in_extents) return Broken(kRootInode, "the size of all files is not known");
  const bool places_known = index == zone_index && regions == region_index;
  if (!places_known) return Broken(kRootInode, "the files of some zone are not known");
  return CheckReached(links);
}

}  // namespace isozone
