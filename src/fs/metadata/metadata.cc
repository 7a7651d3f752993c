// How Apply stays atomic: each operation checks what it is about to do, does it, and pushes its inverse; the first one
// refused (or a link count that is wrong at the end of the record) runs the inverses backwards. So an operation costs
// what it changes: adding an extent to a file of 100,000 does not touch the others.

#include "fs/metadata/metadata.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/varint.h"
#include "fs/metadata/metadata_codec.h"
#include "fs/metadata/zone_index.h"

namespace isozone {
namespace {

Status Broken(InodeId inode, std::string_view what) {
  return Status::Corruption(fmt::format("inode {}: {}", inode.value(), what));
}

bool IsValidName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

uint64_t CapacityOf(const DeviceGeometry& geometry) { return geometry.zone_count * geometry.zone_capacity; }

// Each extent of `run` lies inside the capacity of one zone.
bool LiesInZones(const DeviceGeometry& geometry, const ExtentRun& run) {
  const uint64_t begin = run.device_offset.value();
  const uint64_t in_zone = geometry.OffsetInZone(run.device_offset);
  if (begin / geometry.zone_size >= geometry.zone_count || run.length == 0) return false;
  if (in_zone > geometry.zone_capacity || run.length > geometry.zone_capacity - in_zone) return false;
  if (run.count == 1 || run.count <= (geometry.zone_capacity - in_zone) / run.length) return true;
  // It goes on in the zones behind, so no extent may reach across the end of one.
  const uint64_t to_the_end = geometry.zone_size * geometry.zone_count - begin;
  if (geometry.zone_capacity != geometry.zone_size || run.count > to_the_end / run.length) return false;
  if ((geometry.zone_size - in_zone) % run.length != 0) return false;
  const bool one_more = run.count * run.length - (geometry.zone_size - in_zone) <= geometry.zone_size;
  return one_more || geometry.zone_size % run.length == 0;
}

Status CheckPlace(const DeviceGeometry& geometry, InodeId inode, const ExtentRun& run) {
  if (LiesInZones(geometry, run)) return {};
  return Broken(inode, fmt::format("an extent of {} bytes at device offset {} is not inside a zone's capacity",
                                   run.length, run.device_offset.value()));
}

// They begin at `offset` of the file and lie where extents may.
Status CheckExtents(const DeviceGeometry& geometry, InodeId inode, uint64_t offset, const ExtentList& extents) {
  if (!extents.empty() && extents.begin_offset() != offset) {
    return Broken(inode, fmt::format("an extent begins at {}, not at {}", extents.begin_offset(), offset));
  }
  Status status;
  extents.VisitRuns([&](const ExtentRun& run) {
    if (status.ok()) status = CheckPlace(geometry, inode, run);
  });
  if (!status.ok()) return status;
  if (extents.end_offset() - extents.begin_offset() <= CapacityOf(geometry)) return {};
  return Broken(inode, "its extents are more than the device holds");
}

Status CheckRegion(const DeviceGeometry& geometry, InodeId inode, const LogRegion& region) {
  const uint64_t end = region.open() ? geometry.zone_capacity : region.end;
  if (region.zone.value() >= geometry.zone_count || region.begin > end || end > geometry.zone_capacity ||
      !IsAligned(region.begin, geometry.block_size)) {
    return Broken(inode, fmt::format("log region {}..{} of zone {} is not inside a zone's capacity", region.begin, end,
                                     region.zone.value()));
  }
  if (region.payload > (region.open() ? 0 : end - region.begin)) {
    return Broken(inode, fmt::format("log region of zone {} at {} claims a payload of {} bytes", region.zone.value(),
                                     region.begin, region.payload));
  }
  return {};
}

// The bytes of file in `regions`.
Result<uint64_t> CheckRegions(const DeviceGeometry& geometry, InodeId inode, std::span<const LogRegion> regions) {
  uint64_t size = 0;
  for (const LogRegion& region : regions) {
    ISOZONE_RETURN_IF_ERROR(CheckRegion(geometry, inode, region));
    size += region.payload;
  }
  return size;
}

// All that can be said about an inode without looking at others.
Status CheckContent(const DeviceGeometry& geometry, const Inode& inode) {
  if (inode.id == InodeId(0)) return Broken(inode.id, "is not an inode number");
  if (!inode.extents.empty() && (inode.is_directory || inode.kind == FileKind::kLog)) {
    return Broken(inode.id, "a directory or log has extents");
  }
  if (!inode.regions.empty() && (inode.is_directory || inode.kind != FileKind::kLog)) {
    return Broken(inode.id, "has log regions, but is not a log");
  }
  ISOZONE_RETURN_IF_ERROR(CheckExtents(geometry, inode.id, 0, inode.extents));
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t in_regions, CheckRegions(geometry, inode.id, inode.regions));
  const uint64_t holds = inode.extents.end_offset() + in_regions;
  if (inode.size != holds) return Broken(inode.id, fmt::format("is {} bytes long but holds {}", inode.size, holds));
  return {};
}

Status CheckLinkCount(const Inode& inode) {
  const size_t links = inode.links.size();
  const bool right = inode.id == kRootInode ? links == 0 : inode.is_directory ? links == 1 : links > 0;
  return right ? Status::Ok() : Broken(inode.id, fmt::format("has {} links", links));
}

Status CheckZoneGroups(const DeviceGeometry& geometry, const ZoneGroups& groups) {
  if (groups.group_of_zone.size() != geometry.zone_count || groups.confidence_percent.size() != geometry.zone_count) {
    return Status::Corruption(fmt::format("the zone groups are of {} zones, the device has {}",
                                          groups.group_of_zone.size(), geometry.zone_count));
  }
  if (groups.group_count() > ZoneGroups::kMostGroups) {
    return Status::Corruption(fmt::format("{} zone groups", groups.group_count()));
  }
  for (const uint16_t group : groups.group_of_zone) {
    if (group != ZoneGroups::kUnknown && group >= groups.group_count()) {
      return Status::Corruption(fmt::format("zone group {} of {}", group, groups.group_count()));
    }
  }
  return {};
}

// Some bytes of the device are in two of `by_place`.
bool Overlap(std::span<const FileExtent> by_place) {
  const auto found = std::adjacent_find(by_place.begin(), by_place.end(), [](const auto& a, const auto& b) {
    return a.device_offset.value() + a.length > b.device_offset.value();
  });
  return found != by_place.end();
}

// What NextOfSnapshot has still to give: the inodes above `given` that are not in `changed`, and those set aside.
struct Snapshot {
  InodeId given{0};
  std::unordered_set<InodeId> changed;  // changed, created or removed since BeginSnapshot
  std::vector<Inode> aside;             // as they were at BeginSnapshot
};

}  // namespace

struct MetadataState::Impl {
  explicit Impl(const DeviceGeometry& device_geometry) : geometry(device_geometry), zone_index(device_geometry) {}

  // --- Look-up ---
  const Inode* Find(InodeId id) const;
  const DirectoryTable& Children(InodeId directory) const;

  // --- Changes; each pushes its inverse on `undo` ---
  Status Do(const PutInode& op);
  Status Do(const AddLink& op);
  Status Do(const RemoveLink& op);
  Status Do(const RemoveInode& op);
  Status Do(const AppendExtents& op);
  Status Do(const SetExtents& op);
  Status Do(const SetLogRegion& op);
  Status Do(const SetLogRegions& op);
  Status Do(const SetAttributes& op);
  Status Do(const SetZoneGroups& op);
  Status Do(const MoveExtents& op);
  Status Do(const SetZoneHeats& op);

  // What a file has in `zone`, in file order.
  std::vector<FileExtent> ExtentsIn(ZoneId zone, const Inode& inode) const;
  // Where the moved runs of a file are from now on, in file order.
  Result<std::vector<FileExtent>> Place(const Inode& inode, std::span<const ExtentMove> moves) const;
  // The `count` extents from `index` on become `now`.
  void ReplaceExtents(Inode& inode, uint64_t index, uint64_t count, std::span<const FileExtent> now);
  void Become(Inode& inode, ExtentList now, uint64_t from, uint64_t to);
  // What a file has in `zone` of one window, in file order, is added to `extents`.
  void AddExtents(ZoneId zone, const ZoneIndex::Entry& entry, const Inode& inode,
                  std::vector<FileExtent>& extents) const;
  // All of its extents become `now`.
  void ReplaceExtents(Inode& inode, ExtentList now);
  // No zone knows of what the inode has, which is about to go.
  void ForgetExtents(const Inode& inode);
  // Files have `bytes` more in extents. Refused where the zones do not hold so much.
  Status CheckCapacity(InodeId inode, uint64_t bytes) const;
  // Every zone of `heats` has data of some file.
  Status CheckZoneHeats(const ZoneHeats& heats) const;
  ZoneHeat HeatOf(ZoneId zone) const;
  void SetHeat(ZoneId zone, ZoneHeat heat);
  // Of the zones that the record has left without data.
  void ForgetHeats();
  Status CheckLinkCounts() const;
  Status CheckRoot() const;
  // All that holds of an inode whatever others there are.
  Status CheckInode(const Inode& inode) const;
  Status CheckZones() const;
  // Every directory is reached from the root, so none lies in itself; and there is no entry without one of the `links`.
  Status CheckReached(size_t links) const;
  Status CheckNewLink(const Inode& inode, const InodeLink& link) const;
  void Rollback();
  // The inode, about to change; null: none.
  Inode* Change(InodeId id);
  Result<Inode*> ChangeFile(InodeId id, bool log);
  void SetAside(InodeId id, const Inode* before);

  DeviceGeometry geometry;
  uint64_t encoded_size = 0;  // bytes of all records of a checkpoint
  uint64_t in_extents = 0;    // bytes of all files
  std::map<InodeId, Inode> inodes;
  ZoneIndex zone_index;
  std::unordered_map<InodeId, DirectoryTable> directories;
  InodeId next_id{2};
  std::shared_ptr<const ZoneGroups> zone_groups;
  ZoneHeats zone_heats;
  std::optional<Snapshot> snapshot;

  // Of the record that is being applied.
  std::vector<std::function<void()>> undo;
  std::vector<InodeId> relinked;  // inodes whose links changed
  std::vector<ZoneId> emptied;    // zones that were without data at some time
};

const Inode* MetadataState::Impl::Find(InodeId id) const {
  const auto it = inodes.find(id);
  return it == inodes.end() ? nullptr : &it->second;
}

const DirectoryTable& MetadataState::Impl::Children(InodeId directory) const {
  static const DirectoryTable kEmpty;
  const auto it = directories.find(directory);
  return it == directories.end() ? kEmpty : it->second;
}

void MetadataState::Impl::SetAside(InodeId id, const Inode* before) {
  if (!snapshot || id <= snapshot->given || !snapshot->changed.insert(id).second) return;
  if (before != nullptr) snapshot->aside.push_back(*before);
}

Inode* MetadataState::Impl::Change(InodeId id) {
  const auto it = inodes.find(id);
  if (it == inodes.end()) return nullptr;
  SetAside(id, &it->second);
  return &it->second;
}

Result<Inode*> MetadataState::Impl::ChangeFile(InodeId id, bool log) {
  Inode* inode = Change(id);
  if (inode == nullptr) return Broken(id, "does not exist");
  if (inode->is_directory) return Broken(id, "is a directory");
  if ((inode->kind == FileKind::kLog) != log) return Broken(id, log ? "is not a log" : "is a log");
  return inode;
}

Status MetadataState::Impl::CheckNewLink(const Inode& inode, const InodeLink& link) const {
  if (!IsValidName(link.name)) return Broken(inode.id, fmt::format("bad name '{}'", link.name));
  const Inode* parent = Find(link.parent);
  if (parent == nullptr || !parent->is_directory) {
    return Broken(inode.id, fmt::format("the parent {} of '{}' is not a directory", link.parent.value(), link.name));
  }
  if (Children(link.parent).Find(link.name)) {
    return Broken(inode.id, fmt::format("directory {} has a '{}' already", link.parent.value(), link.name));
  }
  if (!inode.is_directory) return {};
  if (inode.id == kRootInode || !inode.links.empty()) return Broken(inode.id, "a second link to a directory");
  // Every directory has at most one link here, so this ends: at the root, or at one that is being moved.
  for (const Inode* above = parent;; above = Find(above->links.front().parent)) {
    if (above->id == inode.id) return Broken(inode.id, "would lie in itself");
    if (above->links.empty()) return {};
  }
}

Status MetadataState::Impl::Do(const AddLink& op) {
  Inode* inode = Change(op.inode);
  if (inode == nullptr) return Broken(op.inode, "does not exist");
  ISOZONE_RETURN_IF_ERROR(CheckNewLink(*inode, op.link));
  inode->links.push_back(op.link);
  directories[op.link.parent].Insert(op.link.name, op.inode);
  encoded_size += EncodedSize(op.link) + VarintSize(inode->links.size()) - VarintSize(inode->links.size() - 1);
  relinked.push_back(op.inode);
  undo.emplace_back([this, inode] {
    const InodeLink& link = inode->links.back();
    directories[link.parent].Erase(link.name);
    inode->links.pop_back();
  });
  return {};
}

Status MetadataState::Impl::Do(const RemoveLink& op) {
  Inode* inode = Change(op.inode);
  if (inode == nullptr) return Broken(op.inode, "does not exist");
  const auto link = std::find(inode->links.begin(), inode->links.end(), op.link);
  if (link == inode->links.end()) {
    return Broken(op.inode, fmt::format("is not '{}' of directory {}", op.link.name, op.link.parent.value()));
  }
  const auto index = link - inode->links.begin();
  inode->links.erase(link);
  directories[op.link.parent].Erase(op.link.name);
  encoded_size -= EncodedSize(op.link) + VarintSize(inode->links.size() + 1) - VarintSize(inode->links.size());
  relinked.push_back(op.inode);
  undo.emplace_back([this, inode, index, removed = op.link] {
    inode->links.insert(inode->links.begin() + index, removed);
    directories[removed.parent].Insert(removed.name, inode->id);
  });
  return {};
}

Status MetadataState::Impl::Do(const PutInode& op) {
  const InodeId id = op.inode.id;
  if (inodes.contains(id)) return Broken(id, "exists already");
  ISOZONE_RETURN_IF_ERROR(CheckContent(geometry, op.inode));
  ISOZONE_RETURN_IF_ERROR(CheckCapacity(id, op.inode.extents.end_offset()));
  SetAside(id, nullptr);
  Inode& put = inodes.emplace(id, op.inode).first->second;
  put.links.clear();
  encoded_size += EncodedSize(put);
  zone_index.Add(id, put.extents);
  in_extents += put.extents.end_offset();
  if (op.inode.is_directory) directories.emplace(id, DirectoryTable());
  relinked.push_back(id);
  undo.emplace_back([this, id, old_next = next_id] {
    ForgetExtents(inodes.at(id));
    inodes.erase(id);
    directories.erase(id);
    next_id = old_next;
  });
  next_id = std::max(next_id, InodeId(id.value() + 1));
  for (const InodeLink& link : op.inode.links) ISOZONE_RETURN_IF_ERROR(Do(AddLink{id, link}));
  return {};
}

Status MetadataState::Impl::Do(const RemoveInode& op) {
  Inode* inode = Change(op.inode);
  if (inode == nullptr) return Broken(op.inode, "does not exist");
  if (op.inode == kRootInode) return Broken(op.inode, "the root cannot be removed");
  if (!inode->links.empty()) return Broken(op.inode, "is removed, but has links");
  if (!Children(op.inode).empty()) return Broken(op.inode, "is removed, but is not empty");
  encoded_size -= EncodedSize(*inode);
  ForgetExtents(*inode);
  auto node = std::make_shared<std::map<InodeId, Inode>::node_type>(inodes.extract(op.inode));
  directories.erase(op.inode);
  undo.emplace_back([this, node] {
    const Inode& back = inodes.insert(std::move(*node)).position->second;
    if (back.is_directory) directories.emplace(back.id, DirectoryTable());
    zone_index.Add(back.id, back.extents);
    in_extents += back.extents.end_offset();
  });
  return {};
}

Status MetadataState::Impl::Do(const AppendExtents& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/false));
  const uint64_t count = inode->extents.size();
  const uint64_t size = inode->size;
  if (op.first_index != count) {
    return Broken(op.inode, fmt::format("extents are added behind {} but there are {}", op.first_index, count));
  }
  ISOZONE_RETURN_IF_ERROR(CheckExtents(geometry, op.inode, size, op.extents));
  const uint64_t bytes = op.extents.end_offset() - op.extents.begin_offset();
  ISOZONE_RETURN_IF_ERROR(CheckCapacity(op.inode, bytes));
  undo.emplace_back([this, inode, count, old_modified = inode->modified_s] {
    ReplaceExtents(*inode, count, inode->extents.size() - count, {});
    inode->modified_s = old_modified;
  });
  encoded_size -= EncodedSize(inode->extents);
  inode->extents.Append(op.extents);
  encoded_size += EncodedSize(inode->extents);
  zone_index.Add(op.inode, inode->extents, size);
  in_extents += bytes;
  inode->size = size + bytes;
  inode->modified_s = op.modified_s;
  return {};
}

Status MetadataState::Impl::Do(const SetExtents& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/false));
  ISOZONE_RETURN_IF_ERROR(CheckExtents(geometry, op.inode, 0, op.extents));
  if (op.extents.end_offset() > inode->size) {
    ISOZONE_RETURN_IF_ERROR(CheckCapacity(op.inode, op.extents.end_offset() - inode->size));
  }
  undo.emplace_back([this, inode, old_extents = inode->extents, old_modified = inode->modified_s] {
    ReplaceExtents(*inode, old_extents);
    inode->modified_s = old_modified;
  });
  ReplaceExtents(*inode, op.extents);
  inode->modified_s = op.modified_s;
  return {};
}

Status MetadataState::Impl::Do(const MoveExtents& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/false));
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<FileExtent> placed, Place(*inode, op.moves));
  if (placed.empty()) return {};
  // The extents that are edited, and their neighbours, which may be joined with.
  const uint64_t first = inode->extents.IndexAt(placed.front().file_offset);
  const uint64_t last = inode->extents.IndexAt(placed.back().file_offset + placed.back().length - 1);
  const uint64_t begin = first - std::min<uint64_t>(first, 1);
  const uint64_t end = std::min(last + 2, inode->extents.size());
  std::vector<FileExtent> old = inode->extents.Expand(begin, end - begin);
  std::vector<FileExtent> now = old;
  ApplyEdits(now, PlanEdits(old, placed, geometry.zone_size));
  undo.emplace_back(
      [this, inode, begin, count = now.size(), old = std::move(old)] { ReplaceExtents(*inode, begin, count, old); });
  ReplaceExtents(*inode, begin, end - begin, now);
  return {};
}

Result<std::vector<FileExtent>> MetadataState::Impl::Place(const Inode& inode,
                                                           std::span<const ExtentMove> moves) const {
  std::map<ZoneId, std::vector<FileExtent>> known;  // by where on the device they are
  std::vector<FileExtent> placed;
  for (const ExtentMove& move : moves) {
    const ZoneId zone = geometry.ZoneOf(move.from);
    const auto [in_zone, first_look] = known.try_emplace(zone);
    if (first_look) {
      in_zone->second = ExtentsIn(zone, inode);
      SortByPlace(in_zone->second);
      if (Overlap(in_zone->second)) return Broken(inode.id, "its extents overlap");
    }
    const FileExtent* extent = FindByPlace(in_zone->second, move.from);
    const uint64_t skip = extent == nullptr ? 0 : move.from.value() - extent->device_offset.value();
    if (extent == nullptr || move.length > extent->length - skip) {
      return Broken(inode.id, "what is moved does not belong to it");
    }
    placed.push_back({extent->file_offset + skip, move.to, move.length});
    ISOZONE_RETURN_IF_ERROR(CheckPlace(geometry, inode.id, {0, move.to, move.length, 1, 0}));
  }
  std::sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.file_offset < b.file_offset; });
  const auto overlap = std::adjacent_find(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
    return a.file_offset + a.length > b.file_offset;
  });
  if (overlap != placed.end()) return Broken(inode.id, "what is moved overlaps");
  return placed;
}

void MetadataState::Impl::ReplaceExtents(Inode& inode, uint64_t index, uint64_t count,
                                         std::span<const FileExtent> now) {
  ExtentList extents = inode.extents;
  extents.Replace(index, count, now);
  const uint64_t from = count == 0 ? inode.size : inode.extents[index].file_offset;
  uint64_t to = std::max(inode.size, extents.end_offset());
  if (index + count < inode.extents.size()) to = inode.extents[index + count].file_offset;
  Become(inode, std::move(extents), from, to);
}

void MetadataState::Impl::ReplaceExtents(Inode& inode, ExtentList now) {
  const uint64_t to = std::max(inode.size, now.end_offset());
  Become(inode, std::move(now), 0, to);
}

void MetadataState::Impl::Become(Inode& inode, ExtentList now, uint64_t from, uint64_t to) {
  zone_index.Change(inode.id, inode.extents, now, from, to, emptied);
  encoded_size -= EncodedSize(inode.extents);
  in_extents -= inode.extents.end_offset();
  inode.extents = std::move(now);
  inode.size = inode.extents.end_offset();
  encoded_size += EncodedSize(inode.extents);
  in_extents += inode.size;
}

void MetadataState::Impl::ForgetExtents(const Inode& inode) {
  zone_index.Change(inode.id, inode.extents, {}, 0, inode.extents.end_offset(), emptied);
  in_extents -= inode.extents.end_offset();
}

Status MetadataState::Impl::CheckCapacity(InodeId inode, uint64_t bytes) const {
  if (bytes <= CapacityOf(geometry) - in_extents) return {};
  return Broken(inode, "the files have more bytes than the zones have capacity");
}

std::vector<FileExtent> MetadataState::Impl::ExtentsIn(ZoneId zone, const Inode& inode) const {
  std::vector<FileExtent> extents;
  for (const ZoneIndex::Entry& entry : zone_index.In(zone, inode.id)) AddExtents(zone, entry, inode, extents);
  return extents;
}

void MetadataState::Impl::AddExtents(ZoneId zone, const ZoneIndex::Entry& entry, const Inode& inode,
                                     std::vector<FileExtent>& extents) const {
  const auto old = static_cast<ptrdiff_t>(extents.size());
  zone_index.VisitRuns(zone, entry, inode.extents, [&](const ExtentRun& run) {
    for (uint64_t i = 0; i < run.count; ++i) extents.push_back(run.extent(i));
  });
  std::sort(extents.begin() + old, extents.end(),
            [](const FileExtent& a, const FileExtent& b) { return a.file_offset < b.file_offset; });
}

Status MetadataState::Impl::Do(const SetLogRegion& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/true));
  std::vector<LogRegion>& regions = inode->regions;
  const bool adds = op.index == regions.size();
  if (op.index > regions.size()) {
    return Broken(op.inode, fmt::format("log region {} is set but there are {}", op.index, regions.size()));
  }
  ISOZONE_RETURN_IF_ERROR(CheckRegion(geometry, op.inode, op.region));
  const LogRegion old = adds ? LogRegion() : regions[op.index];
  undo.emplace_back([inode, adds, index = op.index, old, old_size = inode->size, old_modified = inode->modified_s] {
    if (adds) {
      inode->regions.pop_back();
    } else {
      inode->regions[index] = old;
    }
    inode->size = old_size;
    inode->modified_s = old_modified;
  });
  if (adds) {
    encoded_size += EncodedRegions(regions.size() + 1) - EncodedRegions(regions.size());
    regions.push_back(op.region);
  } else {
    regions[op.index] = op.region;
  }
  inode->size += op.region.payload - old.payload;
  inode->modified_s = op.modified_s;
  return {};
}

Status MetadataState::Impl::Do(const SetLogRegions& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/true));
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t size, CheckRegions(geometry, op.inode, op.regions));
  encoded_size += EncodedRegions(op.regions.size()) - EncodedRegions(inode->regions.size());
  undo.emplace_back([inode, old_regions = std::exchange(inode->regions, op.regions),
                     old_size = std::exchange(inode->size, size),
                     old_modified = std::exchange(inode->modified_s, op.modified_s)] {
    inode->regions = old_regions;
    inode->size = old_size;
    inode->modified_s = old_modified;
  });
  return {};
}

Status MetadataState::Impl::Do(const SetAttributes& op) {
  Inode* inode = Change(op.inode);
  if (inode == nullptr) return Broken(op.inode, "does not exist");
  undo.emplace_back([inode, old_lifetime = std::exchange(inode->lifetime, op.lifetime),
                     old_level = std::exchange(inode->level, op.level),
                     old_modified = std::exchange(inode->modified_s, op.modified_s)] {
    inode->lifetime = old_lifetime;
    inode->level = old_level;
    inode->modified_s = old_modified;
  });
  return {};
}

Status MetadataState::Impl::Do(const SetZoneGroups& op) {
  ISOZONE_RETURN_IF_ERROR(CheckZoneGroups(geometry, *op.groups));
  encoded_size += EncodedSize(op.groups.get()) - EncodedSize(zone_groups.get());
  undo.emplace_back([this, old_groups = std::exchange(zone_groups, op.groups)] { zone_groups = old_groups; });
  return {};
}

Status MetadataState::Impl::Do(const SetZoneHeats& op) {
  ISOZONE_RETURN_IF_ERROR(CheckZoneHeats(op.heats));
  for (const auto& [zone, heat] : op.heats) SetHeat(zone, heat);
  return {};
}

Status MetadataState::Impl::CheckZoneHeats(const ZoneHeats& heats) const {
  for (const auto& [zone, heat] : heats) {
    if (zone_index.contains(zone)) continue;
    return Status::Corruption(
        fmt::format("zone {} is said to be {}, but no file has data there", zone.value(), ZoneHeatName(heat)));
  }
  return {};
}

ZoneHeat MetadataState::Impl::HeatOf(ZoneId zone) const {
  const auto known = zone_heats.find(zone);
  return known == zone_heats.end() ? kNewDataHeat : known->second;
}

void MetadataState::Impl::SetHeat(ZoneId zone, ZoneHeat heat) {
  const ZoneHeat old = HeatOf(zone);
  if (old == heat) return;
  const auto set = [this, zone](ZoneHeat to) {
    if (to == kNewDataHeat) {
      zone_heats.erase(zone);
    } else {
      zone_heats[zone] = to;
    }
  };
  encoded_size -= EncodedSize(zone_heats);
  set(heat);
  encoded_size += EncodedSize(zone_heats);
  undo.emplace_back([set, old] { set(old); });
}

void MetadataState::Impl::ForgetHeats() {
  for (const ZoneId zone : emptied) {
    if (!zone_index.contains(zone)) SetHeat(zone, kNewDataHeat);
  }
}

Status MetadataState::Impl::CheckLinkCounts() const {
  for (const InodeId id : relinked) {
    const Inode* inode = Find(id);
    if (inode != nullptr) ISOZONE_RETURN_IF_ERROR(CheckLinkCount(*inode));
  }
  return {};
}

void MetadataState::Impl::Rollback() {
  for (; !undo.empty(); undo.pop_back()) undo.back()();
}

MetadataState::MetadataState(const DeviceGeometry& geometry) : impl_(std::make_unique<Impl>(geometry)) {
  Inode root;
  root.id = kRootInode;
  root.is_directory = true;
  impl_->encoded_size = kEncodedFooter + EncodedSize(root);
  impl_->inodes.emplace(kRootInode, std::move(root));
  impl_->directories.emplace(kRootInode, DirectoryTable());
}

MetadataState::MetadataState(MetadataState&&) noexcept = default;
MetadataState& MetadataState::operator=(MetadataState&&) noexcept = default;
MetadataState::~MetadataState() = default;

Result<MetadataState> MetadataState::Restore(const DeviceGeometry& geometry, std::vector<Inode> inodes, InodeId next_id,
                                             std::shared_ptr<const ZoneGroups> zone_groups,
                                             const ZoneHeats& zone_heats) {
  MetadataState state(geometry);
  Impl& impl = *state.impl_;
  impl.inodes.clear();
  for (Inode& inode : inodes) {
    const InodeId id = inode.id;
    if (inode.is_directory) impl.directories.emplace(id, DirectoryTable());
    impl.next_id = std::max(impl.next_id, InodeId(id.value() + 1));
    const size_t before = impl.inodes.size();
    impl.inodes.emplace_hint(impl.inodes.end(), id, std::move(inode));
    if (impl.inodes.size() == before) return Broken(id, "appears twice");
  }
  std::vector<Inode>().swap(inodes);  // what comes needs the memory
  impl.next_id = std::max(impl.next_id, next_id);
  impl.zone_groups = std::move(zone_groups);
  impl.encoded_size = kEncodedFooter + EncodedSize(impl.zone_groups.get());
  for (const auto& [zone, heat] : zone_heats) impl.SetHeat(zone, heat);
  impl.undo.clear();
  ISOZONE_RETURN_IF_ERROR(impl.CheckRoot());
  size_t links = 0;
  for (const auto& [id, inode] : impl.inodes) {
    ISOZONE_RETURN_IF_ERROR(impl.CheckInode(inode));
    ISOZONE_RETURN_IF_ERROR(impl.CheckCapacity(id, inode.extents.end_offset()));
    impl.encoded_size += EncodedSize(inode);
    impl.in_extents += inode.extents.end_offset();
    impl.zone_index.Add(id, inode.extents);
    links += inode.links.size();
    for (const InodeLink& link : inode.links) {
      const auto parent = impl.directories.find(link.parent);
      if (parent == impl.directories.end() || !parent->second.Insert(link.name, id)) {
        return Broken(id, fmt::format("cannot be '{}' of {}", link.name, link.parent.value()));
      }
    }
  }
  ISOZONE_RETURN_IF_ERROR(impl.CheckZones());
  ISOZONE_RETURN_IF_ERROR(impl.CheckReached(links));
  return state;
}

Status MetadataState::Apply(std::span<const MetadataOp> ops, const Admit& admit) {
  Impl& impl = *impl_;
  const uint64_t size_before = impl.encoded_size;
  Status status;
  for (const MetadataOp& op : ops) {
    status = std::visit([&](const auto& o) { return impl.Do(o); }, op);
    if (!status.ok()) break;
  }
  if (status.ok()) status = impl.CheckLinkCounts();
  if (status.ok()) impl.ForgetHeats();
  if (status.ok() && admit && impl.encoded_size > size_before) status = admit(impl.encoded_size);
  if (!status.ok()) {
    impl.Rollback();
    impl.encoded_size = size_before;
  }
  impl.undo.clear();
  impl.relinked.clear();
  impl.emptied.clear();
  return status;
}

const Inode* MetadataState::Find(InodeId id) const { return impl_->Find(id); }

const Inode* MetadataState::Child(InodeId directory, std::string_view name) const {
  const std::optional<InodeId> id = Children(directory).Find(name);
  return id ? Find(*id) : nullptr;
}

Result<const Inode*> MetadataState::Lookup(std::string_view path) const {
  if (!path.starts_with('/')) return Status::InvalidArgument(fmt::format("'{}' is not an absolute path", path));
  const Inode* inode = Find(kRootInode);
  for (std::string_view rest = path; !rest.empty();) {
    const size_t begin = std::min(rest.find_first_not_of('/'), rest.size());
    const size_t end = std::min(rest.find('/', begin), rest.size());
    const std::string_view name = rest.substr(begin, end - begin);
    rest.remove_prefix(end);
    if (name.empty()) break;
    if (!inode->is_directory) {
      return Status::NotDirectory(fmt::format("'{}': what comes before '{}' is not a directory", path, name));
    }
    inode = Child(inode->id, name);
    if (inode == nullptr) return Status::NotFound(fmt::format("no such file or directory: '{}'", path));
  }
  return inode;
}

const DirectoryTable& MetadataState::Children(InodeId directory) const { return impl_->Children(directory); }

std::vector<MetadataState::OwnedExtent> MetadataState::ExtentsIn(ZoneId zone) const {
  std::vector<OwnedExtent> owned;
  std::vector<FileExtent> extents;
  for (const ZoneIndex::Entry& entry : impl_->zone_index.In(zone)) {
    extents.clear();
    impl_->AddExtents(zone, entry, *Find(entry.inode), extents);
    for (const FileExtent& extent : extents) owned.push_back({entry.inode, extent});
  }
  return owned;
}

std::vector<FileExtent> MetadataState::ExtentsIn(ZoneId zone, InodeId inode) const {
  const Inode* found = Find(inode);
  return found == nullptr ? std::vector<FileExtent>() : impl_->ExtentsIn(zone, *found);
}

uint64_t MetadataState::BlocksIn(ZoneId zone) const { return impl_->zone_index.BlocksIn(zone); }

std::vector<std::string> MetadataState::PathsOf(InodeId id) const {
  if (id == kRootInode) return {"/"};
  std::vector<std::string> paths;
  const Inode* inode = Find(id);
  if (inode == nullptr) return paths;
  for (const InodeLink& link : inode->links) {
    std::string path = "/" + link.name;
    for (const Inode* above = Find(link.parent); above->id != kRootInode; above = Find(above->links.front().parent)) {
      path.insert(0, "/" + above->links.front().name);
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

InodeId MetadataState::NextId() const { return impl_->next_id; }

uint64_t MetadataState::encoded_size() const { return impl_->encoded_size; }

size_t MetadataState::size() const { return impl_->inodes.size(); }

const Inode* MetadataState::Next(InodeId after) const {
  const auto it = impl_->inodes.upper_bound(after);
  return it == impl_->inodes.end() ? nullptr : &it->second;
}

Status MetadataState::Impl::CheckRoot() const {
  const Inode* root = Find(kRootInode);
  return root != nullptr && root->is_directory ? Status::Ok() : Broken(kRootInode, "the root directory is missing");
}

Status MetadataState::Impl::CheckInode(const Inode& inode) const {
  ISOZONE_RETURN_IF_ERROR(CheckContent(geometry, inode));
  for (const InodeLink& link : inode.links) {
    if (!IsValidName(link.name)) return Broken(inode.id, fmt::format("bad name '{}'", link.name));
  }
  return CheckLinkCount(inode);
}

Status MetadataState::Impl::CheckZones() const {
  if (zone_groups) ISOZONE_RETURN_IF_ERROR(CheckZoneGroups(geometry, *zone_groups));
  return CheckZoneHeats(zone_heats);
}

Status MetadataState::Impl::CheckReached(size_t links) const {
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

Status MetadataState::CheckInvariants() const {
  ISOZONE_RETURN_IF_ERROR(impl_->CheckZones());
  ISOZONE_RETURN_IF_ERROR(impl_->CheckRoot());
  uint64_t encoded_size = kEncodedFooter + EncodedSize(impl_->zone_groups.get()) + EncodedSize(impl_->zone_heats);
  uint64_t in_extents = 0;
  size_t links = 0;
  ZoneIndex zone_index(impl_->geometry);
  for (const auto& [id, inode] : impl_->inodes) {
    ISOZONE_RETURN_IF_ERROR(impl_->CheckInode(inode));
    encoded_size += EncodedSize(inode);
    in_extents += inode.extents.end_offset();
    zone_index.Add(id, inode.extents);
    for (const InodeLink& link : inode.links) {
      if (Child(link.parent, link.name) != &inode) return Broken(id, fmt::format("'{}' leads elsewhere", link.name));
    }
    links += inode.links.size();
  }
  if (encoded_size != impl_->encoded_size) return Broken(kRootInode, "the size of a checkpoint is not known");
  if (in_extents != impl_->in_extents) return Broken(kRootInode, "the size of all files is not known");
  if (!(zone_index == impl_->zone_index)) return Broken(kRootInode, "the files of some zone are not known");
  return impl_->CheckReached(links);
}

std::shared_ptr<const ZoneGroups> MetadataState::zone_groups() const { return impl_->zone_groups; }

const ZoneHeats& MetadataState::zone_heats() const { return impl_->zone_heats; }

ZoneHeat MetadataState::HeatOf(ZoneId zone) const { return impl_->HeatOf(zone); }

void MetadataState::BeginSnapshot() { impl_->snapshot.emplace(); }

std::vector<Inode> MetadataState::NextOfSnapshot(size_t max) {
  Snapshot& snapshot = *impl_->snapshot;
  std::vector<Inode> inodes;
  while (inodes.size() < max && !snapshot.aside.empty()) {
    inodes.push_back(std::move(snapshot.aside.back()));
    snapshot.aside.pop_back();
  }
  for (auto it = impl_->inodes.upper_bound(snapshot.given); it != impl_->inodes.end() && inodes.size() < max; ++it) {
    snapshot.given = it->first;
    // What was set aside is given from there.
    if (snapshot.changed.erase(it->first) == 0) inodes.push_back(it->second);
  }
  return inodes;
}

void MetadataState::EndSnapshot() { impl_->snapshot.reset(); }

}  // namespace isozone
