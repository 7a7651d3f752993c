// What the extents of a file cost, by how many there are: counted in steps (ExtentList::steps), and not timed.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "store/metadata/metadata.h"
#include "store/metadata/metadata_codec.h"
#include "testing/assert_ok.h"

namespace isozone {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPagesInZone = 32'768;
constexpr uint64_t kMillion = 1'000'000;
constexpr uint64_t kSteps = 2'000;  // that a look-up or an edit takes at most

DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.block_size = kPage;
  geometry.zone_count = 200;
  geometry.zone_size = geometry.zone_capacity = kPagesInZone * kPage;
  return geometry;
}

// Hands out one or two pages of the device, one behind the other with a gap, and round and round.
class Pages {
 public:
  FileExtent Next(uint64_t file_offset, uint64_t length = kPage) {
    next_ = (next_ + 4) % ((Geometry().zone_count - 1) * kPagesInZone);
    return {file_offset, DeviceOffset(next_ * kPage), length};
  }

 private:
  uint64_t next_ = 0;
};

// A file of `count` extents of one or two pages, as one that is written in place.
ExtentList Fragmented(uint64_t count, Pages& pages) {
  Random random(20261127);
  std::vector<FileExtent> extents;
  uint64_t end = 0;
  while (extents.size() < count) {
    extents.push_back(pages.Next(end, random.Between(1, 2) * kPage));
    end += extents.back().length;
  }
  return extents;
}

class Steps {
 public:
  // The steps that `work` takes.
  template <typename Work>
  static uint64_t Of(Work work) {
    const uint64_t before = ExtentList::steps();
    work();
    return ExtentList::steps() - before;
  }
};

uint64_t RandomPage(Random& random, const ExtentList& list) { return random.Below(list.end_offset() / kPage) * kPage; }

TEST(ExtentCostTest, ALookUpCostsTheSameAfterAMillionEdits) {
  Random random(7);
  Pages pages;
  ExtentList list = Fragmented(kMillion, pages);
  const auto look_ups = [&] {
    uint64_t most = 0;
    for (int i = 0; i < 1'000; ++i) {
      const uint64_t offset = RandomPage(random, list);
      most = std::max(most, Steps::Of([&] { EXPECT_LE((*list.At(offset)).file_offset, offset); }));
    }
    return most;
  };
  EXPECT_LT(look_ups(), kSteps);
  uint64_t steps = 0;
  for (uint64_t i = 0; i < kMillion; ++i) {
    const FileExtent placed = pages.Next(RandomPage(random, list));
    steps += Steps::Of([&] {
      for (const ExtentChange& change : PlanChanges(list, {&placed, 1}, Geometry().zone_size)) list.Replace(change.now);
    });
  }
  EXPECT_LT(steps / kMillion, kSteps / 2);
  RecordProperty("steps_of_an_edit", std::to_string(steps / kMillion));
  EXPECT_GT(list.size(), kMillion);
  EXPECT_LT(look_ups(), kSteps);
  const std::string packed = list.Packed();
  EXPECT_EQ(ExtentList::Parse(0, std::as_bytes(std::span(packed))), list);
}

// A stripe is one element, however many units it has.
TEST(ExtentCostTest, AnEditOfAStripeDoesNotCostItsUnits) {
  constexpr uint64_t kColumns = 16;
  std::vector<FileExtent> units;
  for (uint64_t i = 0; i < kMillion; ++i) {
    units.push_back({i * kPage, DeviceOffset((i % kColumns * kMillion + i / kColumns) * kPage), kPage});
  }
  ExtentList list = units;
  const std::string before = list.Packed();
  ASSERT_LT(before.size(), 64U);
  const FileExtent placed{kMillion / 2 * kPage, DeviceOffset(kColumns * kMillion * kPage), kPage};
  std::vector<ExtentChange> changes;
  EXPECT_LT(Steps::Of([&] {
              changes = PlanChanges(list, {&placed, 1}, Geometry().zone_size);
              for (const ExtentChange& change : changes) list.Replace(change.now);
            }),
            kSteps);
  EXPECT_EQ(list.Packed(), ExtentList(list.Expand()).Packed());
  EXPECT_LT(Steps::Of([&] {
              for (const ExtentChange& change : changes) list.Replace(change.before);
            }),
            kSteps);
  EXPECT_EQ(list.Packed(), before);
}

// The metadata of a file that has `extents`, and what is done with it.
class ExtentCostOf : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    Inode inode;
    inode.id = state_.NextId();
    inode.links = {{kRootInode, "000007.ibd"}};
    inode.extents = Fragmented(GetParam(), pages_);
    inode.size = inode.extents.end_offset();
    id_ = inode.id;
    Apply({PutInode{std::move(inode)}});
  }
  void Apply(const std::vector<MetadataOp>& ops) { ISOZONE_ASSERT_OK(state_.Apply(ops)); }
  const ExtentList& extents() const { return state_.Find(id_)->extents; }
  std::vector<MetadataOp> WriteInPlace(uint64_t pages) {
    std::vector<MetadataOp> ops;
    for (uint64_t i = 0; i < pages; ++i) {
      ops.emplace_back(PlaceExtents{id_, {pages_.Next(RandomPage(random_, extents()))}, 1});
    }
    return ops;
  }

  Random random_{11};
  Pages pages_;
  MetadataState state_{Geometry()};
  InodeId id_;
};

TEST_P(ExtentCostOf, AnFsyncCostsWhatWasWritten) {
  constexpr uint64_t kWritten = 1'000;
  const std::vector<MetadataOp> ops = WriteInPlace(kWritten);
  EXPECT_LT(Steps::Of([&] { Apply(ops); }), kWritten * kSteps);
  std::vector<std::byte> record;
  EncodeRecord(ops, record);
  EXPECT_LT(record.size(), kWritten * 40);
  ISOZONE_EXPECT_OK(state_.CheckInvariants());
}

TEST_P(ExtentCostOf, WhatIsRefusedIsTakenBackAtItsCost) {
  std::vector<MetadataOp> ops = WriteInPlace(100);
  ops.emplace_back(RemoveInode{id_});
  const std::string before = extents().Packed();
  EXPECT_LT(Steps::Of([&] { EXPECT_FALSE(state_.Apply(ops).ok()); }), 2 * ops.size() * kSteps);
  EXPECT_EQ(extents().Packed(), before);
  ISOZONE_EXPECT_OK(state_.CheckInvariants());
}

TEST_P(ExtentCostOf, AStatTakesNoExtent) {
  uint64_t bytes = 0;
  EXPECT_EQ(Steps::Of([&] { bytes = state_.Find(id_)->allocated(); }), 0U);
  EXPECT_EQ(bytes, extents().end_offset());
}

TEST_P(ExtentCostOf, ATruncationCostsWhatItCutsOff) {
  const std::vector<FileExtent> cut = extents().Expand(extents().end_offset() - 8 * kPage);
  const uint64_t size = cut.front().file_offset + 100;
  const std::string before = extents().Packed();
  std::vector<MetadataOp> ops{CutFile{id_, size, 1}};
  ops.emplace_back(RemoveInode{id_});
  EXPECT_LT(Steps::Of([&] { EXPECT_FALSE(state_.Apply(ops).ok()); }), 2 * kSteps);
  EXPECT_EQ(extents().Packed(), before);
  ops.pop_back();
  EXPECT_LT(Steps::Of([&] { Apply(ops); }), kSteps);
  EXPECT_EQ(state_.Find(id_)->size, size);
  EXPECT_EQ(extents().size(), GetParam() - cut.size() + 1);
  std::vector<std::byte> record;
  EncodeRecord(ops, record);
  EXPECT_LT(record.size(), 40U);
  ISOZONE_EXPECT_OK(state_.CheckInvariants());
}

// A snapshot of the inode, and each open file, has the list as it was.
TEST_P(ExtentCostOf, ACopyStaysAsItWas) {
  ExtentList copy;
  EXPECT_EQ(Steps::Of([&] { copy = extents(); }), 0U);
  const std::string before = copy.Packed();
  Apply(WriteInPlace(10));
  EXPECT_EQ(copy.Packed(), before);
  EXPECT_NE(extents().Packed(), before);
}

TEST_P(ExtentCostOf, AnAppendCostsWhatItAdds) {
  const AppendExtents op{id_, extents().size(), {pages_.Next(extents().end_offset())}, 1};
  EXPECT_LT(Steps::Of([&] { Apply({op}); }), kSteps);
}

// The collector moves the file out of one zone.
TEST_P(ExtentCostOf, AMoveCostsWhatMoves) {
  MoveExtents op{id_, {}};
  constexpr uint64_t kVictim = kPagesInZone / 2 * kPage;  // its first half has data, of any file
  for (const FileExtent& extent : extents().Expand(0, kVictim)) {
    if (Geometry().ZoneOf(extent.device_offset) != ZoneId(0)) break;
    const FileExtent to = pages_.Next(0, extent.length);
    op.moves.push_back({extent.device_offset, to.device_offset, extent.length});
  }
  EXPECT_LT(Steps::Of([&] { Apply({op}); }), (op.moves.size() + 100) * kSteps);
}

TEST_P(ExtentCostOf, AMountTakesEachElementAFewTimes) {
  std::vector<std::byte> record;
  EncodePutInode(*state_.Find(id_), record);
  EXPECT_LT(record.size(), GetParam() * 12 + 100);
  const uint64_t steps = Steps::Of([&] {
    const std::vector<MetadataOp> ops = DecodeRecord(record).value();
    MetadataState state(Geometry());
    ISOZONE_EXPECT_OK(state.Apply(ops));
  });
  EXPECT_LT(steps, GetParam() * 10 + 100);
}

INSTANTIATE_TEST_SUITE_P(Extents, ExtentCostOf, testing::Values(10, 10'000, kMillion));

}  // namespace
}  // namespace isozone
