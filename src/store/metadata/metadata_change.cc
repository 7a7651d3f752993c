#include "store/metadata/metadata_change.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/varint.h"
#include "store/metadata/metadata_codec.h"

namespace isozone {
namespace {

// Returns whether two of `by_place` share bytes of the device.
bool Overlap(std::span<const FileExtent> by_place) {
  const auto found = std::adjacent_find(by_place.begin(), by_place.end(), [](const auto& a, const auto& b) {
    return a.device_offset.value() + a.length > b.device_offset.value();
  });
  return found != by_place.end();
}

RegionIndex::Entry PlaceOf(const Inode& log, uint64_t index) {
  return {log.regions[index].zone, log.regions[index].begin, log.id, index};
}

}  // namespace

MetadataChange::~MetadataChange() {
  if (kept_) return;
  for (; !undo_.empty(); undo_.pop_back()) undo_.back()();
  tables_.encoded_size = size_before_;
}

Status MetadataChange::Do(std::span<const MetadataOp> ops) {
  for (const MetadataOp& op : ops) {
    ISOZONE_RETURN_IF_ERROR(std::visit([this](const auto& o) { return Do(o); }, op));
  }
  ISOZONE_RETURN_IF_ERROR(CheckLinkCounts());
  ForgetHeats();
  return {};
}

void MetadataChange::SaveForSnapshot(InodeId id, const Inode* before) {
  if (tables_.snapshot) tables_.snapshot->Save(id, before);
}

Inode* MetadataChange::Change(InodeId id) {
  const auto it = tables_.inodes.find(id);
  if (it == tables_.inodes.end()) return nullptr;
  SaveForSnapshot(id, &it->second);
  return &it->second;
}

Result<Inode*> MetadataChange::ChangeFile(InodeId id, bool log) {
  Inode* inode = Change(id);
  if (inode == nullptr) return Broken(id, "does not exist");
  if (inode->is_directory) return Broken(id, "is a directory");
  if (inode->is_symlink()) return Broken(id, "is a symbolic link");
  if ((inode->kind == FileKind::kLog) != log) return Broken(id, log ? "is not a log" : "is a log");
  return inode;
}

Status MetadataChange::CheckNewLink(const Inode& inode, const InodeLink& link) const {
  if (!IsValidName(link.name)) return Broken(inode.id, fmt::format("bad name '{}'", link.name));
  const Inode* parent = tables_.Find(link.parent);
  if (parent == nullptr || !parent->is_directory) {
    return Broken(inode.id, fmt::format("the parent {} of '{}' is not a directory", link.parent.value(), link.name));
  }
  if (tables_.Children(link.parent).Find(link.name)) {
    return Broken(inode.id, fmt::format("directory {} has a '{}' already", link.parent.value(), link.name));
  }
  if (!inode.is_directory) return {};
  if (inode.id == kRootInode || !inode.links.empty()) return Broken(inode.id, "a second link to a directory");
  // Every directory has at most one link here, so this ends: at the root, or at a directory that is being moved.
  for (const Inode* above = parent;; above = tables_.Find(above->links.front().parent)) {
    if (above->id == inode.id) return Broken(inode.id, "would lie in itself");
    if (above->links.empty()) return {};
  }
}

Status MetadataChange::CheckLinkCounts() const {
  for (const InodeId id : relinked_) {
    const Inode* inode = tables_.Find(id);
    if (inode != nullptr) ISOZONE_RETURN_IF_ERROR(CheckLinkCount(*inode));
  }
  return {};
}

Status MetadataChange::Do(const AddLink& op) {
  Inode* inode = Change(op.inode);
  if (inode == nullptr) return Broken(op.inode, "does not exist");
  ISOZONE_RETURN_IF_ERROR(CheckNewLink(*inode, op.link));
  inode->links.push_back(op.link);
  tables_.directories[op.link.parent].Insert(op.link.name, op.inode);
  tables_.encoded_size += EncodedSize(op.link) + VarintSize(inode->links.size()) - VarintSize(inode->links.size() - 1);
  relinked_.push_back(op.inode);
  undo_.emplace_back([this, inode] {
    const InodeLink& link = inode->links.back();
    tables_.directories[link.parent].Erase(link.name);
    inode->links.pop_back();
  });
  return {};
}

Status MetadataChange::Do(const RemoveLink& op) {
  Inode* inode = Change(op.inode);
  if (inode == nullptr) return Broken(op.inode, "does not exist");
  const auto link = std::find(inode->links.begin(), inode->links.end(), op.link);
  if (link == inode->links.end()) {
    return Broken(op.inode, fmt::format("is not '{}' of directory {}", op.link.name, op.link.parent.value()));
  }
  const auto index = link - inode->links.begin();
  inode->links.erase(link);
  tables_.directories[op.link.parent].Erase(op.link.name);
  tables_.encoded_size -= EncodedSize(op.link) + VarintSize(inode->links.size() + 1) - VarintSize(inode->links.size());
  relinked_.push_back(op.inode);
  undo_.emplace_back([this, inode, index, removed = op.link] {
    inode->links.insert(inode->links.begin() + index, removed);
    tables_.directories[removed.parent].Insert(removed.name, inode->id);
  });
  return {};
}

Status MetadataChange::Do(const PutInode& op) {
  const InodeId id = op.inode.id;
  if (tables_.inodes.contains(id)) return Broken(id, "exists already");
  ISOZONE_RETURN_IF_ERROR(tables_.rules.CheckContent(op.inode));
  ISOZONE_RETURN_IF_ERROR(tables_.CheckCapacity(id, op.inode.extents.StoredBytes()));
  SaveForSnapshot(id, nullptr);
  Inode& put = tables_.inodes.emplace(id, op.inode).first->second;
  put.links.clear();
  tables_.encoded_size += EncodedSize(put);
  LearnPlaces(put);
  if (op.inode.is_directory) tables_.directories.emplace(id, DirectoryTable());
  relinked_.push_back(id);
  undo_.emplace_back([this, id, old_next = tables_.next_id] {
    ForgetPlaces(tables_.inodes.at(id));
    tables_.inodes.erase(id);
    tables_.directories.erase(id);
    tables_.next_id = old_next;
  });
  tables_.next_id = std::max(tables_.next_id, InodeId(id.value() + 1));
  for (const InodeLink& link : op.inode.links) ISOZONE_RETURN_IF_ERROR(Do(AddLink{id, link}));
  return {};
}

Status MetadataChange::Do(const RemoveInode& op) {
  Inode* inode = Change(op.inode);
  if (inode == nullptr) return Broken(op.inode, "does not exist");
  if (op.inode == kRootInode) return Broken(op.inode, "the root cannot be removed");
  if (!inode->links.empty()) return Broken(op.inode, "is removed, but has links");
  if (!tables_.Children(op.inode).empty()) return Broken(op.inode, "is removed, but is not empty");
  tables_.encoded_size -= EncodedSize(*inode);
  ForgetPlaces(*inode);
  auto node = std::make_shared<std::map<InodeId, Inode>::node_type>(tables_.inodes.extract(op.inode));
  tables_.directories.erase(op.inode);
  undo_.emplace_back([this, node] {
    Inode& back = tables_.inodes.insert(std::move(*node)).position->second;
    if (back.is_directory) tables_.directories.emplace(back.id, DirectoryTable());
    LearnPlaces(back);
  });
  return {};
}

Status MetadataChange::Do(const AppendExtents& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/false));
  const uint64_t count = inode->extents.size();
  const uint64_t size = inode->size;
  if (op.first_index != count) {
    return Broken(op.inode, fmt::format("extents are added behind {} but there are {}", op.first_index, count));
  }
  ISOZONE_RETURN_IF_ERROR(tables_.rules.CheckExtents(op.inode, size, op.extents));
  const uint64_t bytes = op.extents.StoredBytes();
  ISOZONE_RETURN_IF_ERROR(tables_.CheckCapacity(op.inode, bytes));
  undo_.emplace_back([this, inode, size, old_modified = inode->modified_s] {
    ReplaceEnd(*inode, size, {});
    inode->modified_s = old_modified;
  });
  tables_.encoded_size -= EncodedSize(inode->extents);
  inode->extents.Append(op.extents);
  tables_.encoded_size += EncodedSize(inode->extents);
  inode->in_blocks += tables_.zone_index.Add(op.inode, inode->extents, size);
  tables_.in_extents += bytes;
  inode->size = inode->extents.end_offset();
  inode->modified_s = op.modified_s;
  return {};
}

Status MetadataChange::Do(const CutFile& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/false));
  if (op.size > inode->size) {
    return Broken(op.inode, fmt::format("is cut to {} bytes, but has {}", op.size, inode->size));
  }
  undo_.emplace_back([this, inode, size = op.size, cut = ReplaceEnd(*inode, op.size, {}),
                      old_modified = std::exchange(inode->modified_s, op.modified_s)] {
    ReplaceEnd(*inode, cut.empty() ? size : cut.begin_offset(), cut);
    inode->modified_s = old_modified;
  });
  return {};
}

Status MetadataChange::Do(const MoveExtents& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/false));
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<FileExtent> placed, Place(*inode, op.moves));
  if (!placed.empty()) PlaceAt(*inode, placed);
  return {};
}

void MetadataChange::PlaceAt(Inode& inode, std::span<const FileExtent> placed) {
  std::vector<ExtentChange> changes = PlanChanges(inode.extents, placed, tables_.geometry.zone_size);
  for (const ExtentChange& change : changes) ReplacePart(inode, change.now);
  undo_.emplace_back([this, file = &inode, changes = std::move(changes)] {
    for (const ExtentChange& change : changes) ReplacePart(*file, change.before);
  });
}

Status MetadataChange::Do(const PlaceExtents& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/false));
  if (op.extents.empty() || op.extents.end_offset() > inode->size) return Broken(op.inode, "is written behind its end");
  ISOZONE_RETURN_IF_ERROR(tables_.rules.CheckExtents(op.inode, op.extents.begin_offset(), op.extents));
  const uint64_t bytes = op.extents.StoredBytes();
  if (bytes != op.extents.end_offset() - op.extents.begin_offset()) return Broken(op.inode, "a hole is written");
  if (bytes > tables_.rules.capacity() - tables_.in_extents) {
    // The place of what the range held is free afterwards.
    const uint64_t from = op.extents.begin_offset();
    const uint64_t to = op.extents.end_offset();
    const ExtentList held = ExtentsFrom(CutExtents(inode->extents.Expand(from, to), to), from);
    ISOZONE_RETURN_IF_ERROR(tables_.CheckCapacity(op.inode, bytes - std::min(bytes, held.StoredBytes())));
  }
  undo_.emplace_back(
      [inode, old_modified = std::exchange(inode->modified_s, op.modified_s)] { inode->modified_s = old_modified; });
  PlaceAt(*inode, op.extents.Expand());
  return {};
}

Status MetadataChange::Do(const LogToData& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/true));
  if (inode->has_open_region()) return Broken(op.inode, "becomes a file of data while a region is open");
  ISOZONE_RETURN_IF_ERROR(tables_.rules.CheckExtents(op.inode, 0, op.extents));
  ISOZONE_RETURN_IF_ERROR(tables_.CheckCapacity(op.inode, op.extents.StoredBytes()));
  tables_.encoded_size += EncodedRegions(0) - EncodedRegions(inode->regions.size());
  tables_.region_index.Remove(op.inode, inode->regions);
  undo_.emplace_back([this, inode, old_regions = std::exchange(inode->regions, {}), old_size = inode->size,
                      old_modified = std::exchange(inode->modified_s, op.modified_s)] {
    ReplaceEnd(*inode, 0, {});
    inode->kind = FileKind::kLog;
    inode->regions = old_regions;
    tables_.region_index.Add(inode->id, inode->regions);
    inode->size = old_size;
    inode->modified_s = old_modified;
  });
  inode->kind = FileKind::kData;
  inode->size = 0;
  ReplaceEnd(*inode, 0, op.extents);
  return {};
}

Status MetadataChange::Do(const SetDetails& op) {
  Inode* inode = Change(op.inode);
  if (inode == nullptr) return Broken(op.inode, "does not exist");
  const bool same_target = (inode->details == nullptr ? "" : inode->details->target) == op.details->target;
  if (!same_target) return Broken(op.inode, "its target changes");
  ISOZONE_RETURN_IF_ERROR(MetadataRules::CheckDetails(*inode, *op.details));
  tables_.encoded_size += EncodedSize(op.details.get()) - EncodedSize(inode->details.get());
  undo_.emplace_back([inode, old = std::exchange(inode->details, op.details),
                      old_modified = std::exchange(inode->modified_s, op.details->modified.s)] {
    inode->details = old;
    inode->modified_s = old_modified;
  });
  return {};
}

Status MetadataChange::Do(const SetTimes& op) {
  const Inode* inode = tables_.Find(op.inode);
  if (inode == nullptr || inode->details == nullptr) return Broken(op.inode, "has no details to set times in");
  auto details = std::make_shared<InodeDetails>(*inode->details);
  details->modified = op.modified;
  details->changed = op.changed;
  return Do(SetDetails{op.inode, std::move(details)});
}

Result<std::vector<FileExtent>> MetadataChange::Place(const Inode& inode, std::span<const ExtentMove> moves) const {
  std::map<ZoneId, std::vector<FileExtent>> known;  // by their place on the device
  std::vector<FileExtent> placed;
  for (const ExtentMove& move : moves) {
    const ZoneId zone = tables_.geometry.ZoneOf(move.from);
    const auto [in_zone, first_look] = known.try_emplace(zone);
    if (first_look) {
      in_zone->second = tables_.ExtentsIn(zone, inode);
      SortByPlace(in_zone->second);
      if (Overlap(in_zone->second)) return Broken(inode.id, "its extents overlap");
    }
    const FileExtent* extent = FindByPlace(in_zone->second, move.from);
    const uint64_t skip = extent == nullptr ? 0 : move.from.value() - extent->device_offset.value();
    if (extent == nullptr || move.length > extent->length - skip) {
      return Broken(inode.id, "what is moved does not belong to it");
    }
    placed.push_back({extent->file_offset + skip, move.to, move.length});
    ISOZONE_RETURN_IF_ERROR(tables_.rules.CheckPlace(inode.id, {0, move.to, move.length, 1, 0}));
  }
  std::sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.file_offset < b.file_offset; });
  const auto overlap = std::adjacent_find(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
    return a.file_offset + a.length > b.file_offset;
  });
  if (overlap != placed.end()) return Broken(inode.id, "what is moved overlaps");
  return placed;
}

void MetadataChange::ReplacePart(Inode& inode, std::span<const FileExtent> now) {
  const uint64_t from = now.front().file_offset;
  const uint64_t to = now.back().file_offset + now.back().length;
  const ExtentList before = inode.extents.Expand(from, to);
  tables_.encoded_size -= EncodedSize(inode.extents);
  inode.extents.Replace(now);
  NoteReplaced(inode, before, from, to);
}

ExtentList MetadataChange::ReplaceEnd(Inode& inode, uint64_t size, const ExtentList& more) {
  const uint64_t from = size < inode.size ? (*inode.extents.At(size)).file_offset : size;
  tables_.encoded_size -= EncodedSize(inode.extents);
  ExtentList before = inode.extents.CutAt(from);
  if (from < size) {
    const FileExtent parted = before.front();
    inode.extents.push_back({from, parted.device_offset, size - from});
  }
  inode.extents.Append(more);
  inode.size = inode.extents.end_offset();
  NoteReplaced(inode, before, from, std::max(before.end_offset(), inode.size));
  return before;
}

void MetadataChange::NoteReplaced(Inode& inode, const ExtentList& before, uint64_t from, uint64_t to) {
  tables_.encoded_size += EncodedSize(inode.extents);
  inode.in_blocks += tables_.zone_index.Add(inode.id, inode.extents, from, to);
  inode.in_blocks -= tables_.zone_index.Remove(inode.id, before, from, to, emptied_);
  tables_.in_extents -= before.StoredBytes(from, to);
  tables_.in_extents += inode.extents.StoredBytes(from, to);
}

void MetadataChange::LearnPlaces(Inode& inode) {
  inode.in_blocks = tables_.zone_index.Add(inode.id, inode.extents);
  tables_.region_index.Add(inode.id, inode.regions);
  tables_.in_extents += inode.extents.StoredBytes();
}

void MetadataChange::ForgetPlaces(const Inode& inode) {
  tables_.region_index.Remove(inode.id, inode.regions);
  tables_.zone_index.Remove(inode.id, inode.extents, 0, UINT64_MAX, emptied_);
  tables_.in_extents -= inode.extents.StoredBytes();
}

Status MetadataChange::Do(const SetLogRegion& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/true));
  std::vector<LogRegion>& regions = inode->regions;
  const bool adds = op.index == regions.size();
  if (op.index > regions.size()) {
    return Broken(op.inode, fmt::format("log region {} is set but there are {}", op.index, regions.size()));
  }
  ISOZONE_RETURN_IF_ERROR(tables_.rules.CheckRegion(op.inode, op.region));
  const LogRegion old = adds ? LogRegion() : regions[op.index];
  undo_.emplace_back(
      [this, inode, adds, index = op.index, old, old_size = inode->size, old_modified = inode->modified_s] {
        tables_.region_index.Remove(PlaceOf(*inode, index));
        if (adds) {
          inode->regions.pop_back();
        } else {
          inode->regions[index] = old;
          tables_.region_index.Add(PlaceOf(*inode, index));
        }
        inode->size = old_size;
        inode->modified_s = old_modified;
      });
  if (adds) {
    tables_.encoded_size += EncodedRegions(regions.size() + 1) - EncodedRegions(regions.size());
    regions.push_back(op.region);
  } else {
    tables_.region_index.Remove(PlaceOf(*inode, op.index));
    regions[op.index] = op.region;
  }
  tables_.region_index.Add(PlaceOf(*inode, op.index));
  inode->size += op.region.payload - old.payload;
  inode->modified_s = op.modified_s;
  return {};
}

Status MetadataChange::Do(const SetLogRegions& op) {
  ISOZONE_ASSIGN_OR_RETURN(Inode * inode, ChangeFile(op.inode, /*log=*/true));
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t size, tables_.rules.CheckRegions(op.inode, op.regions));
  tables_.encoded_size += EncodedRegions(op.regions.size()) - EncodedRegions(inode->regions.size());
  tables_.region_index.Remove(op.inode, inode->regions);
  tables_.region_index.Add(op.inode, op.regions);
  undo_.emplace_back([this, inode, old_regions = std::exchange(inode->regions, op.regions),
                      old_size = std::exchange(inode->size, size),
                      old_modified = std::exchange(inode->modified_s, op.modified_s)] {
    tables_.region_index.Remove(inode->id, inode->regions);
    tables_.region_index.Add(inode->id, old_regions);
    inode->regions = old_regions;
    inode->size = old_size;
    inode->modified_s = old_modified;
  });
  return {};
}

Status MetadataChange::Do(const SetAttributes& op) {
  Inode* inode = Change(op.inode);
  if (inode == nullptr) return Broken(op.inode, "does not exist");
  ISOZONE_RETURN_IF_ERROR(MetadataRules::CheckClass(op.inode, op.lifetime, op.level));
  undo_.emplace_back([inode, old_lifetime = std::exchange(inode->lifetime, op.lifetime),
                      old_level = std::exchange(inode->level, op.level),
                      old_modified = std::exchange(inode->modified_s, op.modified_s)] {
    inode->lifetime = old_lifetime;
    inode->level = old_level;
    inode->modified_s = old_modified;
  });
  return {};
}

Status MetadataChange::Do(const SetZoneGroups& op) {
  ISOZONE_RETURN_IF_ERROR(tables_.rules.CheckZoneGroups(*op.groups));
  tables_.encoded_size += EncodedSize(op.groups.get()) - EncodedSize(tables_.device.groups.get());
  undo_.emplace_back(
      [this, old_groups = std::exchange(tables_.device.groups, op.groups)] { tables_.device.groups = old_groups; });
  return {};
}

Status MetadataChange::Do(const BeginMount& op) {
  if (op.number == 0) return Status::Corruption("a mount begins without a number");
  tables_.encoded_size += EncodedSize(op) - EncodedSize(BeginMount{tables_.device.mount_number});
  undo_.emplace_back(
      [this, old = std::exchange(tables_.device.mount_number, op.number)] { tables_.device.mount_number = old; });
  return {};
}

Status MetadataChange::Do(const SetZoneHeats& op) {
  ISOZONE_RETURN_IF_ERROR(tables_.CheckZoneHeats(op.heats));
  for (const auto& [zone, heat] : op.heats) SetHeat(zone, heat);
  return {};
}

void MetadataChange::SetHeat(ZoneId zone, ZoneHeat heat) {
  const ZoneHeat old = HeatOf(tables_.device.heats, zone);
  if (old == heat) return;
  const auto set = [this, zone](ZoneHeat to) {
    if (to == kNewDataHeat) {
      tables_.device.heats.erase(zone);
    } else {
      tables_.device.heats[zone] = to;
    }
  };
  tables_.encoded_size -= EncodedSize(tables_.device.heats);
  set(heat);
  tables_.encoded_size += EncodedSize(tables_.device.heats);
  undo_.emplace_back([set, old] { set(old); });
}

void MetadataChange::ForgetHeats() {
  for (const ZoneId zone : emptied_) {
    if (!tables_.zone_index.contains(zone)) SetHeat(zone, kNewDataHeat);
  }
}

}  // namespace isozone
