// What the tests of the metadata, of its model and of its codec share: inodes on a small device, a naive model of the
// metadata, and records for it, half of which are refused.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/metadata/metadata_test_util.h"

namespace isozone {

inline DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.zone_count = 8;
  geometry.zone_size = 64 * kKiB;
  geometry.zone_capacity = 48 * kKiB;
  return geometry;
}

inline Inode File(uint64_t id, std::string name, InodeId parent = kRootInode) {
  Inode inode;
  inode.id = InodeId(id);
  inode.links = {{parent, std::move(name)}};
  return inode;
}

inline Inode Dir(uint64_t id, std::string name, InodeId parent = kRootInode) {
  Inode inode = File(id, std::move(name), parent);
  inode.is_directory = true;
  return inode;
}

inline Inode Log(uint64_t id, std::string name) {
  Inode inode = File(id, std::move(name));
  inode.kind = FileKind::kLog;
  return inode;
}

inline FileExtent Extent(uint64_t file_offset, uint32_t zone, uint64_t in_zone, uint64_t length) {
  return {file_offset, DeviceOffset(Geometry().ZoneStart(ZoneId(zone)).value() + in_zone), length};
}

inline std::shared_ptr<const ZoneGroups> OneGroup() {
  auto groups = std::make_shared<ZoneGroups>();
  groups->channel_of_group = {0};
  groups->group_of_zone.assign(Geometry().zone_count, 0);
  groups->confidence_percent.assign(Geometry().zone_count, 99);
  groups->zone_bandwidth = 98'000'000;
  return groups;
}

// The naive model has every inode in a map. A record is applied to a copy of it, which counts if every invariant holds.
class NaiveModel {
 public:
  NaiveModel() {
    Inode root;
    root.id = kRootInode;
    root.is_directory = true;
    inodes[1] = root;
  }

  bool Apply(const std::vector<MetadataOp>& ops) {
    NaiveModel changed = *this;
    for (const MetadataOp& op : ops) {
      if (!std::visit([&](const auto& o) { return changed.Do(o); }, op) || !changed.Holds()) return false;
    }
    for (const auto& [id, inode] : changed.inodes) {
      if (id != 1 && inode.links.empty()) return false;
    }
    std::erase_if(changed.zone_heats, [&](const auto& heat) { return !changed.HasData(heat.first); });
    *this = std::move(changed);
    return true;
  }

  std::map<uint64_t, Inode> inodes;
  std::shared_ptr<const ZoneGroups> zone_groups;
  ZoneHeats zone_heats;
  uint64_t mount_number = 0;

 private:
  Inode* Get(InodeId id) { return inodes.contains(id.value()) ? &inodes[id.value()] : nullptr; }
  bool Do(const PutInode& op) { return inodes.emplace(op.inode.id.value(), op.inode).second; }
  bool Do(const AddLink& op) {
    if (Get(op.inode) == nullptr) return false;
    Get(op.inode)->links.push_back(op.link);
    return true;
  }
  bool Do(const RemoveLink& op) { return Get(op.inode) != nullptr && std::erase(Get(op.inode)->links, op.link) == 1; }
  bool Do(const RemoveInode& op) {
    if (Get(op.inode) == nullptr || !Get(op.inode)->links.empty()) return false;
    return op.inode != kRootInode && inodes.erase(op.inode.value()) == 1;
  }
  bool Do(const AppendExtents& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr || inode->is_directory || inode->kind == FileKind::kLog) return false;
    if (op.first_index != inode->extents.size()) return false;
    if (!op.extents.empty() && op.extents.begin_offset() != inode->size) return false;
    for (const FileExtent& extent : op.extents) {
      inode->extents.push_back(extent);
      inode->size += extent.length;
    }
    inode->modified_s = op.modified_s;
    return true;
  }
  bool Do(const CutFile& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr || inode->is_directory || inode->kind == FileKind::kLog || op.size > inode->size) return false;
    std::vector<FileExtent> kept;
    for (const FileExtent& extent : inode->extents) {
      if (extent.file_offset >= op.size) break;
      kept.push_back(extent);
      kept.back().length = std::min(extent.length, op.size - extent.file_offset);
    }
    inode->extents = kept;
    inode->size = op.size;
    inode->modified_s = op.modified_s;
    return true;
  }
  bool Do(const SetLogRegion& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr || op.index > inode->regions.size()) return false;
    std::vector<LogRegion> regions = inode->regions;
    regions.resize(std::max<size_t>(regions.size(), op.index + 1));
    regions[op.index] = op.region;
    return Do(SetLogRegions{op.inode, regions, op.modified_s});
  }
  bool Do(const SetLogRegions& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr || inode->is_directory || inode->kind != FileKind::kLog) return false;
    inode->regions = op.regions;
    inode->size = 0;
    for (const LogRegion& region : op.regions) inode->size += region.payload;
    inode->modified_s = op.modified_s;
    return true;
  }
  bool Do(const SetZoneGroups& op) {
    zone_groups = op.groups;
    return true;
  }
  bool Do(const BeginMount& op) {
    mount_number = op.number;
    return true;
  }
  bool HasData(ZoneId zone) const {
    return std::any_of(inodes.begin(), inodes.end(), [&](const auto& inode) {
      return std::any_of(inode.second.extents.begin(), inode.second.extents.end(), [&](const FileExtent& extent) {
        return !extent.is_hole() && Geometry().ZoneOf(extent.device_offset) == zone;
      });
    });
  }
  bool Do(const SetZoneHeats& op) {
    for (const auto& [zone, heat] : op.heats) {
      if (!HasData(zone)) return false;
      zone_heats[zone] = heat;
    }
    std::erase_if(zone_heats, [](const auto& heat) { return heat.second == kNewDataHeat; });
    return true;
  }
  // Returns whether each move lies in one extent and no byte moves twice, in zones in which no two extents overlap.
  static bool AreIn(std::span<const FileExtent> extents, std::span<const ExtentMove> moves) {
    std::set<ZoneId> zones;
    for (const ExtentMove& move : moves) zones.insert(Geometry().ZoneOf(move.from));
    std::set<uint64_t> in_zones;
    for (const FileExtent& extent : extents) {
      if (extent.is_hole() || !zones.contains(Geometry().ZoneOf(extent.device_offset))) continue;
      for (uint64_t i = 0; i < extent.length; ++i) {
        if (!in_zones.insert(extent.device_offset.value() + i).second) return false;
      }
    }
    size_t found = 0;
    for (const FileExtent& extent : extents) {
      const uint64_t end = extent.device_offset.value() + extent.length;
      std::set<uint64_t> bytes;
      for (const ExtentMove& move : moves) {
        if (move.from < extent.device_offset || move.from.value() >= end) continue;
        ++found;
        for (uint64_t i = 0; i < move.length; ++i) {
          if (move.from.value() + i >= end || !bytes.insert(move.from.value() + i).second) return false;
        }
      }
    }
    return found == moves.size();
  }
  // Cuts every extent at every end of a move, and then looks at each piece. Joins the pieces that were moved or cut
  // with their neighbours.
  bool Do(const MoveExtents& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr || inode->is_directory || inode->kind == FileKind::kLog) return false;
    const std::vector<FileExtent> extents = inode->extents.Expand();
    if (!AreIn(extents, op.moves)) return false;
    std::vector<FileExtent> pieces;
    std::vector<bool> touched;  // for each piece: whether something of its extent moves
    for (const FileExtent& extent : extents) {
      const uint64_t begin = extent.device_offset.value();
      const bool moves_here = std::any_of(op.moves.begin(), op.moves.end(), [&](const ExtentMove& move) {
        return move.from.value() >= begin && move.from.value() < begin + extent.length;
      });
      std::set<uint64_t> cuts = {begin, begin + extent.length};
      for (const ExtentMove& move : op.moves) {
        for (const uint64_t at : {move.from.value(), move.from.value() + move.length}) {
          if (at > begin && at < begin + extent.length) cuts.insert(at);
        }
      }
      for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
        FileExtent piece = {extent.file_offset + (*cut - begin), DeviceOffset(*cut), *std::next(cut) - *cut};
        for (const ExtentMove& move : op.moves) {
          if (move.from.value() != *cut || move.length != piece.length) continue;
          piece.device_offset = move.to;
          break;
        }
        pieces.push_back(piece);
        touched.push_back(moves_here);
      }
    }
    inode->extents = Joined(pieces, touched);
    return true;
  }
  static std::vector<FileExtent> Joined(const std::vector<FileExtent>& pieces, const std::vector<bool>& touched) {
    std::vector<FileExtent> joined;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (touched[i] || (i > 0 && touched[i - 1])) {
        AppendExtent(joined, pieces[i], Geometry().zone_size);
      } else {
        joined.push_back(pieces[i]);
      }
    }
    return joined;
  }
  // Keeps what lies before and behind the range, and puts the new extents in between.
  bool Do(const PlaceExtents& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr || inode->is_directory || inode->kind == FileKind::kLog) return false;
    const uint64_t begin = op.extents.begin_offset();
    const uint64_t end = op.extents.end_offset();
    if (op.extents.empty() || end > inode->size) return false;
    const std::vector<FileExtent> old = inode->extents.Expand();
    std::vector<FileExtent> pieces;
    std::vector<bool> touched;
    for (const FileExtent& extent : old) {
      if (extent.file_offset >= begin) break;
      pieces.push_back(extent);
      pieces.back().length = std::min(extent.length, begin - extent.file_offset);
      touched.push_back(pieces.back().length < extent.length);
    }
    for (const FileExtent& extent : op.extents) {
      if (extent.is_hole() || extent.length == 0) return false;
      pieces.push_back(extent);
      touched.push_back(true);
    }
    for (const FileExtent& extent : old) {
      if (extent.file_offset + extent.length <= end) continue;
      const uint64_t skip = std::max(end, extent.file_offset) - extent.file_offset;
      pieces.push_back({extent.file_offset + skip, extent.PlaceOf(skip), extent.length - skip});
      touched.push_back(skip > 0);
    }
    inode->extents = Joined(pieces, touched);
    inode->modified_s = op.modified_s;
    return true;
  }
  bool Do(const LogToData& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr || inode->is_directory || inode->kind != FileKind::kLog || inode->has_open_region()) {
      return false;
    }
    inode->kind = FileKind::kData;
    inode->regions.clear();
    inode->size = 0;
    return Do(AppendExtents{op.inode, 0, op.extents, op.modified_s});
  }
  bool Do(const SetTimes& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr || inode->details == nullptr || op.modified.ns >= 1'000'000'000) return false;
    auto details = std::make_shared<InodeDetails>(*inode->details);
    details->modified = op.modified;
    details->changed = op.changed;
    inode->details = std::move(details);
    inode->modified_s = op.modified.s;
    return true;
  }
  bool Do(const SetDetails& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr || op.details->modified.ns >= 1'000'000'000) return false;
    inode->details = op.details;
    inode->modified_s = op.details->modified.s;
    return true;
  }
  bool Do(const SetAttributes& op) {
    if (Get(op.inode) == nullptr) return false;
    Get(op.inode)->lifetime = op.lifetime;
    Get(op.inode)->modified_s = op.modified_s;
    Get(op.inode)->level = op.level;
    return true;
  }

  bool Holds() {
    std::set<std::pair<uint64_t, std::string>> names;
    for (const auto& [id, inode] : inodes) {
      if (id == 1 ? !inode.links.empty() : inode.is_directory && inode.links.size() > 1) return false;
      for (const InodeLink& link : inode.links) {
        if (Get(link.parent) == nullptr || !Get(link.parent)->is_directory || link.name.empty()) return false;
        if (!names.emplace(link.parent.value(), link.name).second) return false;
      }
      size_t steps = 0;
      for (const Inode* at = &inode; inode.is_directory && !at->links.empty(); at = Get(at->links[0].parent)) {
        if (++steps > inodes.size() || Get(at->links[0].parent) == nullptr) return false;
      }
      uint64_t size = 0;
      for (const FileExtent& extent : inode.extents) {
        if (extent.is_hole() && extent.file_offset == size && extent.length > 0) {
          size += extent.length;
          continue;
        }
        const uint64_t zone = extent.device_offset.value() / (64 * kKiB);
        const uint64_t in_zone = extent.device_offset.value() % (64 * kKiB);
        if (extent.file_offset != size || extent.length == 0 || zone >= 8) return false;
        if (in_zone + extent.length > 48 * kKiB) return false;
        size += extent.length;
      }
      for (const LogRegion& region : inode.regions) {
        if (region.zone.value() >= 8 || region.begin % 4096 != 0) return false;
        if (region.open()
                ? region.payload > 0 || region.begin > 48 * kKiB
                : region.end > 48 * kKiB || region.begin > region.end || region.payload > region.end - region.begin) {
          return false;
        }
        size += region.payload;
      }
      if (inode.size != size) return false;
    }
    return true;
  }
};

// Records of a few operations on a few inodes and names; about half of them are refused.
class WildRecords {
 public:
  explicit WildRecords(uint64_t seed) : random(seed) {}

  std::vector<MetadataOp> Next(const NaiveModel& model) {
    std::vector<MetadataOp> ops(random.Between(1, 3));
    for (MetadataOp& op : ops) op = NextOp(model);
    return ops;
  }

  Random random;

 private:
  InodeId Id() { return InodeId(random.Between(1, 14)); }
  InodeLink Link() {
    std::string name(1, static_cast<char>('a' + random.Below(5)));
    return {InodeId(random.Between(1, 5)), std::move(name)};
  }
  // Returns a link of an existing inode, more often than not.
  InodeLink LinkOf(const NaiveModel& model, InodeId id) {
    const auto it = model.inodes.find(id.value());
    if (it == model.inodes.end() || it->second.links.empty()) return Link();
    return it->second.links[random.Below(it->second.links.size())];
  }
  // Some times have too many nanoseconds.
  FileTime Time() { return {random.Next(), static_cast<uint32_t>(random.Below(1'010'000'000))}; }
  std::vector<FileExtent> Extents(uint64_t from) {
    std::vector<FileExtent> extents(random.Below(3));
    for (FileExtent& extent : extents) {
      extent =
          Extent(from, static_cast<uint32_t>(random.Below(9)), random.Below(49) * kKiB, random.Between(1, 2) * 500);
      if (random.Chance(0.2)) extent.device_offset = FileExtent::kHole;
      from += extent.length;
    }
    return extents;
  }
  LogRegion Region() {
    const uint64_t begin = random.Below(13) * 4096;
    const bool open = random.Chance(0.5);
    const uint64_t blocks = random.Below(3);
    return {ZoneId(static_cast<uint32_t>(random.Below(9))), begin, open ? LogRegion::kOpen : begin + blocks * 4096,
            open ? 0 : random.Below(4) * 3000, random.Chance(0.2)};
  }
  // Moves a few runs of the file, and now and then a run that is in no file.
  std::vector<ExtentMove> Moves(const Inode& inode) {
    std::vector<ExtentMove> moves;
    for (const FileExtent& extent : inode.extents) {
      if (extent.is_hole() || random.Chance(0.5)) continue;
      const uint64_t skip = random.Below(extent.length);
      const auto zone = ZoneId(static_cast<uint32_t>(random.Below(9)));
      const uint64_t length = random.Between(1, extent.length - skip);
      moves.push_back(
          {DeviceOffset(extent.device_offset.value() + skip),
           DeviceOffset(Geometry().ZoneStart(zone).value() + random.Below(Geometry().zone_capacity - length + 1)),
           length});
    }
    if (random.Chance(0.1)) moves.push_back({DeviceOffset(random.Below(1000)), DeviceOffset(0), 5});
    return moves;
  }
  MetadataOp NextOp(const NaiveModel& model) {
    const InodeId id = Id();
    const auto it = model.inodes.find(id.value());
    const Inode* inode = it == model.inodes.end() ? nullptr : &it->second;
    switch (random.Below(20)) {
      case 15:
      case 16:
        return PlaceExtents{id, Extents(inode == nullptr ? 0 : random.Below(inode->size + 1)), random.Next()};
      case 17:
        return LogToData{id, Extents(0), random.Next()};
      case 19:
        return BeginMount{random.Next() | 1};
      case 18: {
        if (random.Chance(0.3)) return SetTimes{id, Time(), {random.Next(), 0}};
        auto details = std::make_shared<InodeDetails>();
        details->user = static_cast<uint32_t>(random.Below(1000));
        details->modified = Time();
        for (uint64_t i = random.Below(3); i > 0; --i) details->xattrs[std::to_string(i)] = std::string(i * 40, 'v');
        return SetDetails{id, std::move(details)};
      }
      case 13: {
        ZoneHeats heats;
        for (uint64_t count = random.Below(3); count > 0; --count) {
          heats[ZoneId(static_cast<uint32_t>(random.Below(9)))] = static_cast<ZoneHeat>(random.Below(kZoneHeatCount));
        }
        return SetZoneHeats{std::move(heats)};
      }
      case 12:
        return MoveExtents{id, inode == nullptr ? std::vector<ExtentMove>() : Moves(*inode)};
      case 0:
      case 1:
      case 2: {
        Inode put = File(id.value(), Link().name, Link().parent);
        put.is_directory = id.value() <= 5;
        put.kind = id.value() >= 10 ? FileKind::kLog : FileKind::kData;
        return PutInode{put};
      }
      case 3:
        return AddLink{id, Link()};
      case 4:
        return RemoveLink{id, LinkOf(model, id)};
      case 5:
        return RemoveInode{id};
      case 6:
        return AppendExtents{id, inode == nullptr ? 0 : inode->extents.size(),
                             Extents(inode == nullptr ? 0 : inode->size), random.Next()};
      case 7:
        return CutFile{id, random.Below((inode == nullptr ? 0 : inode->size) + 2), random.Next()};
      case 8:
      case 9:
        return SetLogRegion{id, random.Below(3), Region(), random.Next()};
      case 10:
        return SetLogRegions{id, {Region(), Region()}, random.Next()};
      case 11:
        return SetZoneGroups{OneGroup()};
      default:
        return SetAttributes{id, static_cast<Lifetime>(random.Below(kLifetimeCount)), random.Next(),
                             static_cast<int8_t>(random.Below(9) - 1)};
    }
  }
};

}  // namespace isozone
