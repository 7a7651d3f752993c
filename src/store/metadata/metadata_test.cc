#include "store/metadata/metadata.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/metadata/naive_metadata_test_util.h"

namespace isozone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MetadataTest : public testing::Test {
 protected:
  Status Apply(std::vector<MetadataOp> ops) { return state_.Apply(ops); }
  void Must(std::vector<MetadataOp> ops) {
    const Status status = Apply(std::move(ops));
    ASSERT_TRUE(status.ok()) << status.ToString();
    const Status invariants = state_.CheckInvariants();
    ASSERT_TRUE(invariants.ok()) << invariants.ToString();
  }
  // Expects that the record is refused for a reason that contains `why`, and that nothing has changed.
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
  Refused({CutFile{InodeId(2), 59, 1}}, "is cut to 59 bytes, but has 58");
  Must({CutFile{InodeId(2), 3, 1}});
  EXPECT_EQ(state_.Find(InodeId(2))->extents, (ExtentList{Extent(0, 2, 100, 3)}));
  EXPECT_EQ(state_.Find(InodeId(2))->size, 3U);
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
  EXPECT_EQ(state_.device().groups, nullptr);
  Must({SetZoneGroups{OneGroup()}});
  ASSERT_NE(state_.device().groups, nullptr);
  EXPECT_EQ(*state_.device().groups, *OneGroup());

  auto groups = std::make_shared<ZoneGroups>(*OneGroup());
  groups->group_of_zone[3] = 1;
  Refused({SetZoneGroups{groups}}, "zone group 1 of 1");
  groups->group_of_zone[3] = ZoneGroups::kUnknown;
  Must({SetZoneGroups{groups}});
  groups = std::make_shared<ZoneGroups>(*groups);
  groups->group_of_zone.pop_back();
  Refused({SetZoneGroups{groups}}, "the zone groups are of");
  EXPECT_EQ(state_.device().groups->group_of_zone[3], ZoneGroups::kUnknown);
}

TEST_F(MetadataTest, RemembersWhereSurvivorsAreForAsLongAsTheyAreThere) {
  Must({PutInode{File(3, "f")}, PutInode{File(4, "g")}, AppendExtents{InodeId(3), 0, {Extent(0, 2, 0, 5)}, 1},
        AppendExtents{InodeId(4), 0, {Extent(0, 2, 5, 5)}, 1}});
  const uint64_t size = state_.encoded_size();
  Refused({SetZoneHeats{{{ZoneId(3), ZoneHeat::kC2}}}}, "zone 3 is said to be C2, but no file has data there");
  Refused({SetZoneHeats{{{ZoneId(2), ZoneHeat::kC2}, {ZoneId(99), ZoneHeat::kC2}}}}, "zone 99");
  Must({SetZoneHeats{{{ZoneId(2), ZoneHeat::kC1H}}}});
  EXPECT_EQ(HeatOf(state_.device().heats, ZoneId(2)), ZoneHeat::kC1H);
  EXPECT_GT(state_.encoded_size(), size);
  // The heat stays as long as there is data in the zone, even where the data goes away and comes back within one
  // record.
  Must({RemoveLink{InodeId(3), {kRootInode, "f"}}, RemoveInode{InodeId(3)}});
  EXPECT_EQ(HeatOf(state_.device().heats, ZoneId(2)), ZoneHeat::kC1H);
  Must({CutFile{InodeId(4), 0, 2}, AppendExtents{InodeId(4), 0, {Extent(0, 2, 9, 5)}, 3}});
  EXPECT_EQ(HeatOf(state_.device().heats, ZoneId(2)), ZoneHeat::kC1H);
  Refused({CutFile{InodeId(4), 0, 2}, RemoveInode{InodeId(77)}}, "inode 77");
  EXPECT_EQ(HeatOf(state_.device().heats, ZoneId(2)), ZoneHeat::kC1H);
  Must({MoveExtents{InodeId(4), {{Extent(0, 2, 9, 1).device_offset, Extent(0, 5, 0, 1).device_offset, 5}}},
        SetZoneHeats{{{ZoneId(5), ZoneHeat::kC2}}}});
  EXPECT_EQ(state_.device().heats, (ZoneHeats{{ZoneId(5), ZoneHeat::kC2}}));
  Must({SetZoneHeats{{{ZoneId(5), ZoneHeat::kC0}}}});
  EXPECT_TRUE(state_.device().heats.empty());
}

TEST_F(MetadataTest, ARefusedRecordLeavesNothingBehind) {
  Must({PutInode{Dir(2, "d")}, PutInode{File(3, "f")}, PutInode{Log(4, "log")},
        AppendExtents{InodeId(3), 0, {Extent(0, 2, 0, 5)}, 1},
        SetLogRegion{InodeId(4), 0, {ZoneId(3), 0, LogRegion::kOpen, 0}, 2}});
  // The record has every kind of operation, and then one that is not possible.
  Refused({PutInode{File(9, "g")}, AddLink{InodeId(3), {InodeId(2), "f2"}}, RemoveLink{InodeId(3), {kRootInode, "f"}},
           AppendExtents{InodeId(3), 1, {Extent(5, 2, 9, 5)}, 4}, CutFile{InodeId(3), 7, 5}, CutFile{InodeId(3), 0, 5},
           SetLogRegion{InodeId(4), 0, {ZoneId(3), 0, 4096, 1}, 6},
           SetLogRegion{InodeId(4), 1, {ZoneId(3), 4096, LogRegion::kOpen, 0}, 7}, SetLogRegions{InodeId(4), {}, 8},
           AppendExtents{InodeId(3), 0, {Extent(0, 2, 9, 5)}, 5},
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
      Geometry(), {File(9, "f", InodeId(5)), Dir(5, "d", InodeId(7)), root, Dir(7, "e")}, InodeId(40), {});
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_THAT(restored->PathsOf(InodeId(9)), ElementsAre("/e/d/f"));
  EXPECT_EQ(restored->NextId(), InodeId(40));
}

TEST_F(MetadataTest, RestoreRefusesWhatIsNoTree) {
  Inode root;
  root.id = kRootInode;
  root.is_directory = true;
  const auto why = [](std::vector<Inode> inodes) {
    const auto restored = MetadataState::Restore(Geometry(), std::move(inodes), InodeId(2), {});
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

}  // namespace
}  // namespace isozone
