#include "store/extents.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "store/extent_list.h"

namespace isozone {

namespace {

constexpr uint64_t kZone = 1000;

using Extents = std::vector<FileExtent>;

FileExtent Extent(uint64_t file_offset, uint64_t device_offset, uint64_t length) {
  return {file_offset, DeviceOffset(device_offset), length};
}
const Extents kFile = {Extent(0, 100, 50), Extent(50, 2000, 30), Extent(80, 500, 20)};

Extents Placed(ExtentList extents, const Extents& placed) {
  for (const ExtentChange& change : PlanChanges(extents, placed, kZone)) extents.Replace(change.now);
  return extents.Expand();
}

TEST(ExtentEditsTest, PlaceWholeExtents) {
  EXPECT_EQ(Placed(kFile, {}), kFile);
  EXPECT_EQ(Placed(kFile, {Extent(0, 3000, 50), Extent(50, 4000, 30)}),
            (Extents{Extent(0, 3000, 50), Extent(50, 4000, 30), Extent(80, 500, 20)}));
}

TEST(ExtentEditsTest, CutWhatIsPlacedInPart) {
  EXPECT_EQ(Placed(Extents{kFile[0]}, {Extent(10, 3000, 5), Extent(30, 5000, 20)}),
            (Extents{Extent(0, 100, 10), Extent(10, 3000, 5), Extent(15, 115, 15), Extent(30, 5000, 20)}));
}

TEST(ExtentEditsTest, PlaceWhatSpansExtents) {
  EXPECT_EQ(Placed(kFile, {Extent(40, 3000, 50)}),
            (Extents{Extent(0, 100, 40), Extent(40, 3000, 50), Extent(90, 510, 10)}));
}

TEST(ExtentEditsTest, JoinWhatBecomesNeighbours) {
  EXPECT_EQ(Placed(kFile, {Extent(0, 3000, 50), Extent(50, 3050, 30), Extent(80, 3080, 20)}),
            (Extents{Extent(0, 3000, 100)}));
  // What is placed is joined with what stays where it is.
  EXPECT_EQ(Placed(kFile, {Extent(50, 150, 30)}), (Extents{Extent(0, 100, 80), Extent(80, 500, 20)}));
  EXPECT_EQ(Placed(kFile, {Extent(50, 470, 30)}), (Extents{Extent(0, 100, 50), Extent(50, 470, 50)}));
  // It is not joined across the end of a zone, and what no edit touches is not joined either.
  EXPECT_EQ(Placed(kFile, {Extent(0, 3950, 50), Extent(50, 4000, 30)}).size(), 3u);
  const Extents apart = {Extent(0, 100, 10), Extent(10, 110, 10), Extent(20, 300, 10), Extent(30, 5000, 10)};
  EXPECT_EQ(Placed(apart, {Extent(30, 600, 10)}).size(), 4u);
}

// Compares the edits with a map of every byte.
TEST(ExtentEditsTest, PutEveryByteWhereItBelongsAndCanBeTakenBack) {
  Random random(20261123);
  for (int round = 0; round < 2'000; ++round) {
    SCOPED_TRACE(round);
    Extents extents;
    uint64_t end = 0;
    for (uint64_t i = random.Between(1, 12); i > 0; --i) {
      const uint64_t length = random.Between(1, 9);
      extents.push_back(Extent(end, kZone * random.Below(20) + 10 * random.Below(20), length));
      end += length;
    }
    Extents placed;
    for (uint64_t at = random.Below(4); at < end;) {
      const uint64_t length = random.Between(1, std::min<uint64_t>(12, end - at));
      placed.push_back(Extent(at, kZone * random.Between(20, 22) + 10 * random.Below(20), length));
      at += length + (random.Below(2) == 0 ? 0 : random.Below(10));
    }
    const auto byte_map = [](const Extents& list, uint64_t size) {
      std::vector<uint64_t> bytes(size);
      for (const FileExtent& e : list) {
        for (uint64_t i = 0; i < e.length; ++i) bytes.at(e.file_offset + i) = e.device_offset.value() + i;
      }
      return bytes;
    };
    std::vector<uint64_t> wanted = byte_map(extents, end);
    for (const FileExtent& e : placed) {
      for (uint64_t i = 0; i < e.length; ++i) wanted.at(e.file_offset + i) = e.device_offset.value() + i;
    }
    ExtentList list = extents;
    const std::vector<ExtentChange> changes = PlanChanges(list, placed, kZone);
    for (const ExtentChange& change : changes) list.Replace(change.now);
    const Extents edited = list.Expand();
    uint64_t offset = 0;
    for (const FileExtent& e : edited) {
      ASSERT_EQ(e.file_offset, offset);
      offset += e.length;
    }
    ASSERT_EQ(offset, end);
    ASSERT_EQ(byte_map(edited, end), wanted);
    size_t edits = 0;
    ASSERT_EQ(changes.size(), PlanEdits(extents, placed, kZone).size());
    for (const ExtentEdit& edit : PlanEdits(extents, placed, kZone)) {
      const ExtentChange& change = changes[edits++];
      ASSERT_EQ(change.now, edit.now) << "what lies farther away matters";
    }
    for (const ExtentChange& change : changes) list.Replace(change.before);
    ASSERT_EQ(list.Expand(), extents);
  }
}

// The list has 270,000 extents, as that of a file of 100 GB may have.
TEST(ExtentEditsTest, TouchWhatIsPlacedAndItsNeighboursOnly) {
  Extents extents;
  for (uint64_t i = 0; i < 270'000; ++i) extents.push_back(Extent(i * 10, i * kZone + 10, 10));
  Extents placed;
  for (uint64_t i = 500; i < 270'000; i += 10'000) placed.push_back(Extent(i * 10, i * kZone + 500, 10));
  const std::vector<ExtentEdit> edits = PlanEdits(extents, placed, kZone);
  size_t touched = 0;
  for (const ExtentEdit& edit : edits) touched += edit.count + edit.now.size();
  EXPECT_EQ(touched, 2 * placed.size());
  ExtentList list = extents;
  const uint64_t steps = ExtentList::steps();
  for (const ExtentChange& change : PlanChanges(list, placed, kZone)) list.Replace(change.now);
  EXPECT_LT(ExtentList::steps() - steps, 2'000 * placed.size());
  extents = list.Expand();
  EXPECT_EQ(extents[500].device_offset.value(), 500 * kZone + 500);
  EXPECT_EQ(extents[501].device_offset.value(), 501 * kZone + 10);
}

}  // namespace
}  // namespace isozone
