#include "fs/metadata/metadata.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fs/metadata/metadata_test_util.h"

namespace isozone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.zone_count = 8;
  geometry.zone_size = 64 * kKiB;
  geometry.zone_capacity = 48 * kKiB;
  return geometry;
}

Inode File(uint64_t id, std::string name, InodeId parent = kRootInode) {
  Inode inode;
  inode.id = InodeId(id);
  inode.links = {{parent, std::move(name)}};
  return inode;
}

Inode Dir(uint64_t id, std::string name, InodeId parent = kRootInode) {
  Inode inode = File(id, std::move(name), parent);
  inode.is_directory = true;
  return inode;
}

Inode Log(uint64_t id, std::string name) {
  Inode inode = File(id, std::move(name));
  inode.kind = FileKind::kLog;
  return inode;
}

FileExtent Extent(uint64_t file_offset, uint32_t zone, uint64_t in_zone, uint64_t length) {
  return {file_offset, DeviceOffset(Geometry().ZoneStart(ZoneId(zone)).value() + in_zone), length};
}

std::shared_ptr<const ZoneGroups> OneGroup() {
  auto groups = std::make_shared<ZoneGroups>();
  groups->channel_of_group = {0};
  groups->group_of_zone.assign(Geometry().zone_count, 0);
  groups->confidence_percent.assign(Geometry().zone_count, 99);
  groups->zone_bandwidth = 98'000'000;
  return groups;
}

class MetadataTest : public testing::Test {
 protected:
  Status Apply(std::vector<MetadataOp> ops) { return state_.Apply(ops); }
  void Must(std::vector<MetadataOp> ops) {
    const Status status = Apply(std::move(ops));
    ASSERT_TRUE(status.ok()) << status.ToString();
    const Status invariants = state_.CheckInvariants();
    ASSERT_TRUE(invariants.ok()) << invariants.ToString();
  }
  // Refused for a reason that holds `why`, and nothing has changed.
  void Refused(std::vector<MetadataOp> ops, std::string_view why) {
    const uint32_t before = PrintOf(state_);
    const Status status = Apply(std::move(ops));
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << why;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(why)));
    EXPECT_EQ(PrintOf(state_), before) << why;
    const Status invariants = state_.CheckInvariants();
    EXPECT_TRUE(invariants.ok()) << invariants.ToString();
  }

  MetadataState state_{Geometry()};
};

TEST_F(MetadataTest, StartsWithARootAndNothingElse) {
  EXPECT_EQ(state_.size(), 1U);
  EXPECT_EQ(state_.NextId(), InodeId(2));
  EXPECT_EQ(state_.Lookup("/").value()->id, kRootInode);
  EXPECT_TRUE(state_.CheckInvariants().ok());
}

TEST_F(MetadataTest, FindsPathsWithRepeatedAndTrailingSlashes) {
  Must({PutInode{Dir(2, "d")}, PutInode{File(3, "f", InodeId(2))}});
  EXPECT_EQ(state_.Lookup("/d/f").value()->id, InodeId(3));
  EXPECT_EQ(state_.Lookup("//d///f//").value()->id, InodeId(3));
  EXPECT_EQ(state_.Lookup("/d/g").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(state_.Lookup("/d/f/x").status().code(), StatusCode::kNotDirectory);
  EXPECT_EQ(state_.Lookup("d/f").status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(state_.PathsOf(InodeId(3)), ElementsAre("/d/f"));
  EXPECT_THAT(state_.PathsOf(kRootInode), ElementsAre("/"));
}

TEST_F(MetadataTest, AFileHasAllOfItsNames) {
  Must({PutInode{Dir(2, "d")}, PutInode{File(3, "a")}, AddLink{InodeId(3), {InodeId(2), "b"}}});
  EXPECT_THAT(state_.PathsOf(InodeId(3)), ElementsAre("/a", "/d/b"));
  Must({RemoveLink{InodeId(3), {kRootInode, "a"}}});
  EXPECT_THAT(state_.PathsOf(InodeId(3)), ElementsAre("/d/b"));
}

TEST_F(MetadataTest, RenameOverAnExistingFileIsOneRecord) {
  Must({PutInode{File(2, "old")}, PutInode{File(3, "new")}});
  Must({RemoveLink{InodeId(3), {kRootInode, "new"}}, RemoveInode{InodeId(3)},
        RemoveLink{InodeId(2), {kRootInode, "old"}}, AddLink{InodeId(2), {kRootInode, "new"}}});
  EXPECT_EQ(state_.Child(kRootInode, "new")->id, InodeId(2));
  EXPECT_EQ(state_.Find(InodeId(3)), nullptr);
}

TEST_F(MetadataTest, IdsAreNotUsedAgain) {
  Must({PutInode{File(7, "f")}});
  Must({RemoveLink{InodeId(7), {kRootInode, "f"}}, RemoveInode{InodeId(7)}});
  EXPECT_EQ(state_.NextId(), InodeId(8));
}

TEST_F(MetadataTest, RefusesWhatBreaksTheNamespace) {
  Must({PutInode{Dir(2, "d")}, PutInode{Dir(3, "e", InodeId(2))}, PutInode{File(4, "f")}});
  Refused({PutInode{File(4, "g")}}, "exists already");
  Refused({PutInode{File(0, "g")}}, "not an inode number");
  Refused({PutInode{File(5, "f")}}, "has a 'f' already");
  Refused({PutInode{File(5, "g", InodeId(4))}}, "is not a directory");
  Refused({PutInode{File(5, "g", InodeId(9))}}, "is not a directory");
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                  std::string("a\0b", 3), std::string(256, 'x')}) {
    Refused({PutInode{File(5, name)}}, "bad name");
  }
  Refused({RemoveLink{InodeId(4), {kRootInode, "f"}}}, "has 0 links");
  Refused({RemoveInode{InodeId(4)}}, "has links");
  Refused({RemoveInode{kRootInode}}, "root");
  Refused({RemoveLink{InodeId(2), {kRootInode, "d"}}, RemoveInode{InodeId(2)}}, "not empty");
  Refused({AddLink{InodeId(2), {kRootInode, "d2"}}}, "second link to a directory");
  Refused({RemoveLink{InodeId(4), {InodeId(2), "f"}}}, "is not 'f'");
  Refused({AddLink{InodeId(9), {kRootInode, "x"}}}, "does not exist");
}

TEST_F(MetadataTest, ADirectoryCannotMoveIntoItself) {
  Must({PutInode{Dir(2, "d")}, PutInode{Dir(3, "e", InodeId(2))}, PutInode{Dir(4, "g", InodeId(3))}});
  Refused({RemoveLink{InodeId(2), {kRootInode, "d"}}, AddLink{InodeId(2), {InodeId(4), "d"}}}, "in itself");
  Refused({RemoveLink{InodeId(2), {kRootInode, "d"}}, AddLink{InodeId(2), {InodeId(2), "d"}}}, "in itself");
  Must({RemoveLink{InodeId(4), {InodeId(3), "g"}}, AddLink{InodeId(4), {kRootInode, "g"}},
        RemoveLink{InodeId(2), {kRootInode, "d"}}, AddLink{InodeId(2), {InodeId(4), "d"}}});
  EXPECT_THAT(state_.PathsOf(InodeId(3)), ElementsAre("/g/d/e"));
}

TEST_F(MetadataTest, ExtentsFollowOneAnotherInsideTheirZones) {
  Must({PutInode{File(2, "f")}, AppendExtents{InodeId(2), 0, {Extent(0, 2, 100, 50), Extent(50, 3, 0, 7)}, 9}});
  EXPECT_EQ(state_.Find(InodeId(2))->size, 57U);
  EXPECT_EQ(state_.Find(InodeId(2))->modified_s, 9U);
  const auto append = [](uint64_t index, FileExtent extent) { return AppendExtents{InodeId(2), index, {extent}, 0}; };
  Refused({append(1, Extent(57, 2, 0, 1))}, "there are 2");
  Refused({append(2, Extent(58, 2, 0, 1))}, "begins at 58, not at 57");
  Refused({append(2, Extent(57, 2, 0, 0))}, "capacity");
  Refused({append(2, Extent(57, 8, 0, 1))}, "capacity");
  Refused({append(2, Extent(57, 2, 48 * kKiB, 1))}, "capacity");
  Refused({append(2, Extent(57, 2, 48 * kKiB - 1, 2))}, "capacity");
  Refused({append(2, Extent(57, 2, 50 * kKiB, 1))}, "capacity");
  Refused({append(2, {57, DeviceOffset(UINT64_MAX), 1})}, "capacity");
  Refused({append(2, Extent(57, 2, 1, UINT64_MAX))}, "capacity");
  Must({append(2, Extent(57, 2, 48 * kKiB - 1, 1))});
  Must({SetExtents{InodeId(2), {Extent(0, 4, 0, 3)}, 1}});
  EXPECT_EQ(state_.Find(InodeId(2))->size, 3U);
  Refused({SetExtents{InodeId(2), {Extent(1, 4, 0, 3)}, 1}}, "not at 0");
  Refused({SetLogRegion{InodeId(2), 0, {ZoneId(2), 0, 4096, 1}, 0}}, "is not a log");
  Refused({AppendExtents{kRootInode, 0, {}, 0}}, "is a directory");
}

TEST_F(MetadataTest, ALogHasRegionsAnyOfWhichMayBeOpen) {
  constexpr uint64_t kOpen = LogRegion::kOpen;
  Must({PutInode{Log(2, "wal")}, SetLogRegion{InodeId(2), 0, {ZoneId(2), 0, kOpen, 0}, 0}});
  Must({SetLogRegion{InodeId(2), 1, {ZoneId(3), 4096, kOpen, 0}, 3}});
  EXPECT_TRUE(state_.Find(InodeId(2))->has_open_region());
  Must({SetLogRegion{InodeId(2), 0, {ZoneId(2), 0, 8192, 5000}, 0}});
  EXPECT_TRUE(state_.Find(InodeId(2))->has_open_region());
  EXPECT_EQ(state_.Find(InodeId(2))->size, 5000U);
  Refused({SetLogRegion{InodeId(2), 3, {ZoneId(2), 0, kOpen, 0}, 0}}, "there are 2");
  Refused({SetLogRegion{InodeId(2), 1, {ZoneId(3), 4096, kOpen, 1}, 0}}, "payload");
  Refused({SetLogRegion{InodeId(2), 1, {ZoneId(3), 4096, 8192, 4097}, 0}}, "payload");
  Refused({SetLogRegion{InodeId(2), 1, {ZoneId(3), 4097, kOpen, 0}, 0}}, "capacity");
  Refused({SetLogRegion{InodeId(2), 1, {ZoneId(3), 4096, 49 * kKiB, 0}, 0}}, "capacity");
  Refused({SetLogRegion{InodeId(2), 1, {ZoneId(8), 4096, kOpen, 0}, 0}}, "capacity");
  Refused({AppendExtents{InodeId(2), 0, {Extent(0, 2, 0, 1)}, 0}}, "is a log");
  Must({SetLogRegions{InodeId(2), {{ZoneId(3), 4096, 8192, 10}}, 7}});
  EXPECT_EQ(state_.Find(InodeId(2))->size, 10U);
  EXPECT_FALSE(state_.Find(InodeId(2))->has_open_region());
}

TEST_F(MetadataTest, RemembersZoneGroupsOfItsZonesOnly) {
  EXPECT_EQ(state_.zone_groups(), nullptr);
  Must({SetZoneGroups{OneGroup()}});
  ASSERT_NE(state_.zone_groups(), nullptr);
  EXPECT_EQ(*state_.zone_groups(), *OneGroup());

  auto groups = std::make_shared<ZoneGroups>(*OneGroup());
  groups->group_of_zone[3] = 1;
  Refused({SetZoneGroups{groups}}, "zone group 1 of 1");
  groups->group_of_zone[3] = ZoneGroups::kUnknown;
  Must({SetZoneGroups{groups}});
  groups = std::make_shared<ZoneGroups>(*groups);
  groups->group_of_zone.pop_back();
  Refused({SetZoneGroups{groups}}, "the zone groups are of");
  EXPECT_EQ(state_.zone_groups()->group_of_zone[3], ZoneGroups::kUnknown);
}

TEST_F(MetadataTest, RemembersWhereSurvivorsAreForAsLongAsTheyAreThere) {
  Must({PutInode{File(3, "f")}, PutInode{File(4, "g")}, AppendExtents{InodeId(3), 0, {Extent(0, 2, 0, 5)}, 1},
        AppendExtents{InodeId(4), 0, {Extent(0, 2, 5, 5)}, 1}});
  const uint64_t size = state_.encoded_size();
  Refused({SetZoneHeats{{{ZoneId(3), ZoneHeat::kC2}}}}, "zone 3 is said to be C2, but no file has data there");
  Refused({SetZoneHeats{{{ZoneId(2), ZoneHeat::kC2}, {ZoneId(99), ZoneHeat::kC2}}}}, "zone 99");
  Must({SetZoneHeats{{{ZoneId(2), ZoneHeat::kC1H}}}});
  EXPECT_EQ(HeatOf(state_.zone_heats(), ZoneId(2)), ZoneHeat::kC1H);
  EXPECT_GT(state_.encoded_size(), size);
  // As long as anything of it is there; what moves within one record leaves nothing behind.
  Must({RemoveLink{InodeId(3), {kRootInode, "f"}}, RemoveInode{InodeId(3)}});
  EXPECT_EQ(HeatOf(state_.zone_heats(), ZoneId(2)), ZoneHeat::kC1H);
  Must({SetExtents{InodeId(4), {Extent(0, 6, 0, 5)}, 2}, SetExtents{InodeId(4), {Extent(0, 2, 9, 5)}, 3}});
  EXPECT_EQ(HeatOf(state_.zone_heats(), ZoneId(2)), ZoneHeat::kC1H);
  Refused({SetExtents{InodeId(4), {}, 2}, RemoveInode{InodeId(77)}}, "inode 77");
  EXPECT_EQ(HeatOf(state_.zone_heats(), ZoneId(2)), ZoneHeat::kC1H);
  Must({MoveExtents{InodeId(4), {{Extent(0, 2, 9, 1).device_offset, Extent(0, 5, 0, 1).device_offset, 5}}},
        SetZoneHeats{{{ZoneId(5), ZoneHeat::kC2}}}});
  EXPECT_EQ(state_.zone_heats(), (ZoneHeats{{ZoneId(5), ZoneHeat::kC2}}));
  Must({SetZoneHeats{{{ZoneId(5), ZoneHeat::kC0}}}});
  EXPECT_TRUE(state_.zone_heats().empty());
}

TEST_F(MetadataTest, ARefusedRecordLeavesNothingBehind) {
  Must({PutInode{Dir(2, "d")}, PutInode{File(3, "f")}, PutInode{Log(4, "log")},
        AppendExtents{InodeId(3), 0, {Extent(0, 2, 0, 5)}, 1},
        SetLogRegion{InodeId(4), 0, {ZoneId(3), 0, LogRegion::kOpen, 0}, 2}});
  // Every kind of operation, then one that cannot be.
  Refused({PutInode{File(9, "g")}, AddLink{InodeId(3), {InodeId(2), "f2"}}, RemoveLink{InodeId(3), {kRootInode, "f"}},
           AppendExtents{InodeId(3), 1, {Extent(5, 2, 9, 5)}, 4}, SetExtents{InodeId(3), {}, 5},
           SetLogRegion{InodeId(4), 0, {ZoneId(3), 0, 4096, 1}, 6},
           SetLogRegion{InodeId(4), 1, {ZoneId(3), 4096, LogRegion::kOpen, 0}, 7}, SetLogRegions{InodeId(4), {}, 8},
           SetExtents{InodeId(3), {Extent(0, 2, 9, 5)}, 5},
           MoveExtents{InodeId(3), {{Extent(0, 2, 10, 1).device_offset, Extent(0, 5, 0, 1).device_offset, 3}}},
           SetAttributes{InodeId(2), Lifetime::kShort, 9}, SetZoneGroups{OneGroup()},
           SetZoneHeats{{{ZoneId(5), ZoneHeat::kC2}}}, RemoveLink{InodeId(2), {kRootInode, "d"}},
           AddLink{InodeId(2), {kRootInode, "d2"}}, RemoveLink{InodeId(4), {kRootInode, "log"}},
           RemoveInode{InodeId(4)}, RemoveInode{InodeId(77)}},
          "inode 77: does not exist");
}

TEST_F(MetadataTest, RestoresFromInodesInAnyOrder) {
  Inode root;
  root.id = kRootInode;
  root.is_directory = true;
  const auto restored = MetadataState::Restore(
      Geometry(), {File(9, "f", InodeId(5)), Dir(5, "d", InodeId(7)), root, Dir(7, "e")}, InodeId(40), nullptr, {});
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_THAT(restored->PathsOf(InodeId(9)), ElementsAre("/e/d/f"));
  EXPECT_EQ(restored->NextId(), InodeId(40));
}

TEST_F(MetadataTest, RestoreRefusesWhatIsNoTree) {
  Inode root;
  root.id = kRootInode;
  root.is_directory = true;
  const auto why = [](std::vector<Inode> inodes) {
    const auto restored = MetadataState::Restore(Geometry(), std::move(inodes), InodeId(2), nullptr, {});
    return restored.ok() ? "restored" : std::string(restored.status().message());
  };
  Inode orphan = File(2, "f");
  orphan.links.clear();
  EXPECT_THAT(why({}), HasSubstr("root directory is missing"));
  EXPECT_THAT(why({root, root}), HasSubstr("twice"));
  EXPECT_THAT(why({root, orphan}), HasSubstr("0 links"));
  EXPECT_THAT(why({root, File(2, "f", InodeId(3))}), HasSubstr("cannot be 'f'"));
  EXPECT_THAT(why({root, File(2, "f"), File(3, "f")}), HasSubstr("cannot be 'f'"));
  EXPECT_THAT(why({root, Dir(2, "a", InodeId(3)), Dir(3, "b", InodeId(2))}), HasSubstr("lies in itself"));
}

// The naive model: every inode in a map; a record is applied to a copy, which counts if every invariant holds.
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
    for (const FileExtent& extent : op.extents) {
      inode->extents.push_back(extent);
      inode->size += extent.length;
    }
    inode->modified_s = op.modified_s;
    return true;
  }
  bool Do(const SetExtents& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr) return false;
    inode->extents.clear();
    inode->size = 0;
    return Do(AppendExtents{op.inode, 0, op.extents, op.modified_s});
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
  bool HasData(ZoneId zone) const {
    return std::any_of(inodes.begin(), inodes.end(), [&](const auto& inode) {
      return std::any_of(inode.second.extents.begin(), inode.second.extents.end(),
                         [&](const FileExtent& extent) { return Geometry().ZoneOf(extent.device_offset) == zone; });
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
  // Each move lies in one extent, and in none twice, of zones in which no two extents overlap.
  static bool AreIn(std::span<const FileExtent> extents, std::span<const ExtentMove> moves) {
    std::set<ZoneId> zones;
    for (const ExtentMove& move : moves) zones.insert(Geometry().ZoneOf(move.from));
    std::set<uint64_t> in_zones;
    for (const FileExtent& extent : extents) {
      if (!zones.contains(Geometry().ZoneOf(extent.device_offset))) continue;
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
  // Cuts every extent at every end of a move, and then looks at each piece. Joins what is moved or cut with neighbours.
  bool Do(const MoveExtents& op) {
    Inode* inode = Get(op.inode);
    if (inode == nullptr || inode->is_directory || inode->kind == FileKind::kLog) return false;
    const std::vector<FileExtent> extents = inode->extents.Expand();
    if (!AreIn(extents, op.moves)) return false;
    std::vector<FileExtent> pieces;
    std::vector<bool> touched;  // of each piece: its extent was
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
    std::vector<FileExtent> moved;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (touched[i] || (i > 0 && touched[i - 1])) {
        AppendExtent(moved, pieces[i], Geometry().zone_size);
      } else {
        moved.push_back(pieces[i]);
      }
    }
    inode->extents = moved;
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
  // Of an existing inode, more often than not.
  InodeLink LinkOf(const NaiveModel& model, InodeId id) {
    const auto it = model.inodes.find(id.value());
    if (it == model.inodes.end() || it->second.links.empty()) return Link();
    return it->second.links[random.Below(it->second.links.size())];
  }
  std::vector<FileExtent> Extents(uint64_t from) {
    std::vector<FileExtent> extents(random.Below(3));
    for (FileExtent& extent : extents) {
      extent = Extent(from, static_cast<uint32_t>(random.Below(9)), random.Below(49) * kKiB, random.Below(3) * 500);
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
  // A few runs of the file, now and then of nobody's.
  std::vector<ExtentMove> Moves(const Inode& inode) {
    std::vector<ExtentMove> moves;
    for (const FileExtent& extent : inode.extents) {
      if (random.Chance(0.5)) continue;
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
    switch (random.Below(15)) {
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
        return SetExtents{id, Extents(0), random.Next()};
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

std::map<uint64_t, std::vector<std::byte>> Encoded(const std::map<uint64_t, Inode>& inodes) {
  std::map<uint64_t, std::vector<std::byte>> encoded;
  for (const auto& [id, inode] : inodes) encoded[id] = BytesOf(inode);
  return encoded;
}

TEST(MetadataModelTest, DoesWhatTheNaiveModelDoesAndSnapshotsItsState) {
  const uint64_t seed = TestSeed(20240611);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  WildRecords records(seed);
  Random& random = records.random;
  MetadataState state(Geometry());
  NaiveModel model;
  bool in_snapshot = false;
  std::map<uint64_t, Inode> fixed;  // when the snapshot began
  std::map<uint64_t, Inode> given;
  int accepted = 0;
  int snapshots = 0;
  for (int i = 0; i < 30000; ++i) {
    const std::vector<MetadataOp> ops = records.Next(model);
    const bool expected = model.Apply(ops);
    const Status status = state.Apply(ops);
    ASSERT_EQ(status.ok(), expected) << "record " << i << ": " << status.ToString();
    accepted += expected ? 1 : 0;
    if (i % 50 == 0) {
      std::map<uint64_t, Inode> found;
      for (const Inode* inode = state.Next(InodeId(0)); inode != nullptr; inode = state.Next(inode->id)) {
        found[inode->id.value()] = *inode;
      }
      ASSERT_EQ(Encoded(found), Encoded(model.inodes)) << "record " << i;
      ASSERT_EQ(state.zone_heats(), model.zone_heats) << "record " << i;
      const Status invariants = state.CheckInvariants();
      ASSERT_TRUE(invariants.ok()) << invariants.ToString();
    }
    if (!in_snapshot && random.Chance(0.1)) {
      state.BeginSnapshot();
      in_snapshot = true;
      fixed = model.inodes;
      given.clear();
    } else if (in_snapshot && random.Chance(0.2)) {
      const std::vector<Inode> part = state.NextOfSnapshot(random.Between(1, 4));
      for (const Inode& inode : part) ASSERT_TRUE(given.emplace(inode.id.value(), inode).second) << "given twice";
      if (part.empty()) {
        ASSERT_EQ(Encoded(given), Encoded(fixed)) << "record " << i;
        state.EndSnapshot();
        in_snapshot = false;
        ++snapshots;
      }
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(snapshots, 100);
}

TEST(MetadataCodecTest, EveryOperationSurvivesTheRoundTrip) {
  const uint64_t seed = TestSeed(7);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  WildRecords records(seed);
  NaiveModel model;
  for (int i = 0; i < 5000; ++i) {
    std::vector<MetadataOp> ops = records.Next(model);
    if (model.Apply(ops)) {
      for (const auto& [id, inode] : model.inodes) ops.emplace_back(PutInode{inode});
    }
    std::vector<std::byte> bytes;
    EncodeRecord(ops, bytes);
    const auto decoded = DecodeRecord(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
    ASSERT_EQ(decoded->size(), ops.size());
    std::vector<std::byte> again;
    EncodeRecord(*decoded, again);
    ASSERT_EQ(again, bytes);
  }
}

TEST(MetadataCodecTest, DecodesEveryField) {
  Inode inode = File(300, "name", InodeId(17));
  inode.lifetime = Lifetime::kExtreme;
  inode.kind = FileKind::kSmall;
  inode.modified_s = 12345;
  inode.extents = {Extent(0, 2, 7, 100), Extent(100, 3, 8, 200)};
  inode.size = 300;
  std::vector<std::byte> bytes;
  EncodePutInode(inode, bytes);
  const Inode decoded = std::get<PutInode>(DecodeRecord(bytes).value().front()).inode;
  EXPECT_EQ(decoded.id, inode.id);
  EXPECT_EQ(decoded.links, inode.links);
  EXPECT_EQ(decoded.lifetime, inode.lifetime);
  EXPECT_EQ(decoded.kind, inode.kind);
  EXPECT_EQ(decoded.modified_s, inode.modified_s);
  EXPECT_EQ(decoded.size, inode.size);
  ASSERT_EQ(decoded.extents.size(), 2U);
  EXPECT_EQ(decoded.extents[1].file_offset, 100U);
  EXPECT_EQ(decoded.extents[1].device_offset, inode.extents[1].device_offset);
  EXPECT_EQ(decoded.extents[1].length, 200U);
}

TEST(MetadataCodecTest, ARecordThatIsCutOffIsRefused) {
  Inode inode = File(3, "name");
  inode.extents = {Extent(0, 2, 7, 100)};
  inode.size = 100;
  const std::vector<MetadataOp> ops = {PutInode{inode}};
  std::vector<std::byte> bytes;
  EncodeRecord(ops, bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeRecord(std::span(bytes).first(length)).ok()) << length;
  }
}

TEST(MetadataCodecTest, ACountThatCannotBeTakesNoMemory) {
  std::vector<std::byte> bytes;
  const std::vector<MetadataOp> ops = {SetLogRegions{InodeId(3), {}, 0}};
  EncodeRecord(ops, bytes);
  std::fill(bytes.end() - 4, bytes.end(), std::byte{0xFF});  // the number of regions
  EXPECT_EQ(DecodeRecord(bytes).status().code(), StatusCode::kCorruption);
}

TEST(MetadataCodecTest, TheFooterSurvivesTheRoundTrip) {
  const CheckpointFooter footer{12, 34, InodeId(56)};
  std::vector<std::byte> bytes;
  EncodeFooter(footer, bytes);
  EXPECT_TRUE(IsFooter(bytes));
  EXPECT_EQ(DecodeFooter(bytes).value(), footer);
  EXPECT_FALSE(DecodeFooter(std::span(bytes).first(bytes.size() - 1)).ok());
  EXPECT_FALSE(DecodeRecord(bytes).ok());
}

}  // namespace
}  // namespace isozone
