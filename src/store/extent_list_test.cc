#include "store/extent_list.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/varint.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

constexpr uint64_t kZone = 1024 * kKiB;
constexpr uint64_t kUnit = 16 * kKiB;

DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.zone_count = 64;
  geometry.zone_size = geometry.zone_capacity = kZone;
  return geometry;
}

using Extents = std::vector<FileExtent>;

// Returns `units` units that go round `zones`, and that begin at `in_zone` in each of them.
Extents Striped(uint64_t file_offset, uint64_t units, const std::vector<uint64_t>& zones, uint64_t in_zone) {
  Extents extents;
  for (uint64_t i = 0; i < units; ++i) {
    const uint64_t at = zones[i % zones.size()] * kZone + in_zone + i / zones.size() * kUnit;
    extents.push_back({file_offset + i * kUnit, DeviceOffset(at), kUnit});
  }
  return extents;
}

ExtentList Parsed(uint64_t offset, std::string_view packed) {
  const auto list = ExtentList::Parse(offset, std::as_bytes(std::span(packed)));
  return list ? *list : ExtentList();
}

Extents Runs(const ExtentList& list, uint64_t from, uint64_t to) {
  Extents extents;
  list.VisitRuns(from, to, [&](const ExtentRun& run) {
    VisitByZone(Geometry(), run, [&](ZoneId zone, const ExtentRun& in_zone) {
      for (uint64_t i = 0; i < in_zone.count; ++i) {
        extents.push_back(in_zone.extent(i));
        EXPECT_EQ(Geometry().ZoneOf(extents.back().device_offset), zone);
      }
    });
  });
  std::ranges::sort(extents, {}, &FileExtent::file_offset);
  return extents;
}

TEST(ExtentListTest, AStripedFileIsOneElement) {
  const Extents extents = Striped(0, 16 * 20, {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}, kUnit);
  const ExtentList list = extents;
  EXPECT_LT(list.packed_size(), 16U);
  EXPECT_EQ(list.size(), extents.size());
  EXPECT_EQ(list.end_offset(), extents.size() * kUnit);
  EXPECT_EQ(list.Expand(), extents);
}

TEST(ExtentListTest, ZonesInAnyOrderTakeAFewBytesEach) {
  const ExtentList list = Striped(0, 16 * 20, {30, 4, 51, 6, 17, 8, 9, 10, 1, 12, 43, 14, 15, 60, 17, 28}, 0);
  EXPECT_LT(list.packed_size(), 16U + 15 * 2);
}

TEST(ExtentListTest, WhatIsNoStripeIsKeptAsItIs) {
  const Extents extents = {{0, DeviceOffset(7), 3}, {3, DeviceOffset(900), 5}, {8, DeviceOffset(0), 1},
                           {9, DeviceOffset(1), 1}, {10, DeviceOffset(2), 1},  {11, DeviceOffset(2), 4096}};
  EXPECT_EQ(ExtentList(extents).Expand(), extents);
}

TEST(ExtentListTest, AnAppendGoesOnWithTheLastElement) {
  const Extents extents = Striped(0, 100, {1, 2, 3, 4}, 0);
  ExtentList list;
  for (const FileExtent& extent : extents) list.push_back(extent);
  EXPECT_EQ(list, ExtentList(extents));
  EXPECT_LT(list.packed_size(), 12U);
}

TEST(ExtentListTest, TheLastUnitMayBeShort) {
  Extents extents = Striped(0, 10, {1, 2, 3, 4}, 0);
  extents.push_back({10 * kUnit, DeviceOffset(3 * kZone + 2 * kUnit), 77});
  EXPECT_EQ(ExtentList(extents).Expand(), extents);
  EXPECT_EQ(ExtentList(extents).back(), extents.back());
}

TEST(ExtentListTest, BeginsWithItsFirstExtentsOnly) {
  const Extents extents = Striped(0, 600, {1, 2, 3, 4}, 0);
  const ExtentList list = extents;
  for (size_t i = 0; i <= extents.size(); i += 7) {
    Extents first(extents.begin(), extents.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_TRUE(list.BeginsWith(first)) << i;
    if (i == 0) continue;
    first.back().length -= 1;
    EXPECT_FALSE(list.BeginsWith(first)) << i;
    first.back() = {extents[i - 1].file_offset, DeviceOffset(50 * kZone), kUnit};
    EXPECT_FALSE(list.BeginsWith(first)) << i;
  }
  EXPECT_FALSE(ExtentList().BeginsWith(list));
}

TEST(ExtentListTest, ColumnsAreCountedWithoutTheirExtents) {
  const ExtentList list = Striped(0, 4 * 60, {1, 2, 3, 4}, 0);
  int runs = 0;
  list.VisitRuns([&](const ExtentRun& run) {
    ++runs;
    EXPECT_EQ(run.count, 60U);
    EXPECT_EQ(run.file_stride, 4 * kUnit);
  });
  EXPECT_EQ(runs, 4);
}

TEST(ExtentListTest, AColumnThatGoesOnInTheNextZoneIsSplitThere) {
  Extents extents;
  for (uint64_t i = 0; i < 10; ++i) extents.push_back({i * kZone, DeviceOffset((3 + i) * kZone), kZone});
  const ExtentList list = extents;
  EXPECT_LT(list.packed_size(), 8U);
  EXPECT_EQ(Runs(list, 0, UINT64_MAX), extents);
}

// A stripe that claims 2^51 units takes no memory, since the units are counted and not made.
TEST(ExtentListTest, WhatIsClaimedTakesNoMemory) {
  std::string packed(1, static_cast<char>(0x40 | 12));  // a stripe, of units of 4096 bytes:
  PutVarint(1, packed);
  PutVarint(uint64_t{1} << 51, packed);  // so many of them,
  PutVarint(1, packed);                  // in one column,
  PutVarint(0, packed);                  // from the beginning of the device
  EXPECT_EQ(Parsed(0, packed).size(), uint64_t{1} << 51);
  EXPECT_EQ(Parsed(0, packed).end_offset(), uint64_t{1} << 63);
  EXPECT_TRUE(Parsed(uint64_t{1} << 63, packed).empty()) << "its end is no number of 64 bits";
}

TEST(ExtentListTest, OneSequenceHasOneSpelling) {
  const auto spell = [](uint8_t head, std::initializer_list<uint64_t> numbers) {
    std::string packed(1, static_cast<char>(head));
    for (const uint64_t number : numbers) PutVarint(number, packed);
    return packed;
  };
  EXPECT_EQ(Parsed(0, spell(12, {2, 5})).size(), 1U);
  EXPECT_TRUE(Parsed(0, spell(11, {4, 10})).empty()) << "shifted by less than could be";
  EXPECT_TRUE(Parsed(0, spell(0x40 | 12, {2, 1, 1, 5})).empty()) << "a stripe of one extent";
  EXPECT_EQ(Parsed(0, spell(0x40 | 12, {2, 2, 1, 5})).size(), 2U);
  EXPECT_TRUE(Parsed(0, spell(0x40 | 12, {2, 2, 2, 5, 4})).empty()) << "the second column goes on where the first ends";
  EXPECT_TRUE(Parsed(0, spell(12, {2, 5}) + spell(12, {2, 9})).empty()) << "two elements that are one";
  EXPECT_EQ(Parsed(0, spell(12, {2, 5}) + spell(12, {3, 9})).size(), 2U);
  EXPECT_EQ(Parsed(0, spell(0xC0 | 12, {1, 4, 4, 5, 200, 3})).size(), 4U);
  EXPECT_TRUE(Parsed(0, spell(0x40 | 12, {1, 4, 4, 5, 200, 200, 200})).empty()) << "counting is shorter";
  EXPECT_TRUE(Parsed(0, spell(0x40 | 8, {1, 2, 1, 5})).empty()) << "units that are too short to repeat";
  EXPECT_TRUE(Parsed(0, spell(0x40 | 12, {2, 2, 3, 5, 4, 4})).empty()) << "more columns than extents";
  EXPECT_TRUE(Parsed(0, spell(0x40 | 12, {2, 300, 257, 5})).empty()) << "too many columns";
  EXPECT_TRUE(Parsed(0, std::string(1, '\0')).empty());
  EXPECT_FALSE(ExtentList::Parse(7, {}).has_value());
}

// Compares lists of all sorts with a vector after each step. A list that is packed anew must have the same form.
class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {}

  void Step() {
    switch (random_.Below(4)) {
      case 0:
        return Replace();
      case 1:
        return CutEnd();
      default:
        return Append();
    }
  }
  void Check() {
    ASSERT_EQ(list_.size(), extents_.size());
    ASSERT_EQ(list_.end_offset(), End());
    ASSERT_TRUE(std::equal(list_.begin(), list_.end(), extents_.begin()));
    ASSERT_EQ(list_, ExtentList(extents_));
    const std::string packed = list_.Packed();
    ASSERT_EQ(packed, ExtentList(extents_).Packed()) << "it is packed as if it were new";
    ASSERT_EQ(packed.size(), list_.packed_size());
    const auto parsed = ExtentList::Parse(0, std::as_bytes(std::span(packed)));
    ASSERT_TRUE(parsed.has_value());
    ASSERT_EQ(*parsed, list_);
    if (extents_.empty()) return;
    const uint64_t index = random_.Below(extents_.size());
    const FileExtent& extent = extents_[index];
    ASSERT_EQ(*list_.At(extent.file_offset + random_.Below(extent.length)), extent);
    const uint64_t from = random_.Below(End());
    const uint64_t to = random_.Between(from, End());
    Extents expected;
    std::ranges::copy_if(extents_, std::back_inserter(expected),
                         [&](const FileExtent& e) { return e.file_offset >= from && e.file_offset < to; });
    ASSERT_EQ(Runs(list_, from, to), expected);
  }
  size_t most() const { return most_; }
  size_t longest_packed() const { return longest_packed_; }

 private:
  uint64_t End() const { return extents_.empty() ? 0 : extents_.back().file_offset + extents_.back().length; }
  uint64_t Place(uint64_t length) {
    const uint64_t in_zone = random_.Below(kZone - length + 1);
    return random_.Below(Geometry().zone_count) * kZone + (random_.Chance(0.5) ? in_zone : RoundDown(in_zone, kUnit));
  }
  // Returns some extents from `offset` on: a stripe, or extents of any length in any place.
  Extents Some(uint64_t offset, uint64_t most) {
    if (random_.Chance(0.5)) {
      std::vector<uint64_t> zones(random_.Between(1, 20));
      for (uint64_t& zone : zones) zone = random_.Below(Geometry().zone_count);
      return Striped(offset, random_.Between(1, most), zones, kUnit * random_.Below(32));
    }
    Extents extents;
    for (uint64_t i = random_.Between(1, std::min<uint64_t>(most, 10)); i > 0; --i) {
      const uint64_t length = random_.Chance(0.3) ? kUnit : random_.Between(1, kUnit);
      extents.push_back({offset, DeviceOffset(Place(length)), length});
      offset += length;
    }
    return extents;
  }
  void Append() {
    if (extents_.size() > 6000) return CutEnd();
    const Extents more = Some(End(), 400);
    if (random_.Chance(0.5))
      list_.Append(std::span(more));
    else
      list_.Append(ExtentList(more));
    extents_.insert(extents_.end(), more.begin(), more.end());
    most_ = std::max(most_, extents_.size());
    longest_packed_ = std::max(longest_packed_, list_.packed_size());
  }
  void CutEnd() {
    const uint64_t keep =
        random_.Chance(0.1) ? 0 : extents_.size() - random_.Below(std::min<size_t>(extents_.size(), 50) + 1);
    list_.CutAt(keep == extents_.size() ? End() : extents_[keep].file_offset);
    extents_.resize(keep);
    if (extents_.empty() || random_.Chance(0.5)) return;
    // An extent becomes shorter.
    extents_.back().length = random_.Between(1, extents_.back().length);
    list_.CutAt(End());
  }
  // Gives a range of extents other places. There may be fewer or more extents afterwards.
  void Replace() {
    if (extents_.empty()) return;
    const uint64_t index = random_.Below(extents_.size());
    const uint64_t count = random_.Between(1, std::min<uint64_t>(extents_.size() - index, 40));
    const uint64_t begin = extents_[index].file_offset;
    const uint64_t end = extents_[index + count - 1].file_offset + extents_[index + count - 1].length;
    Extents now;
    for (uint64_t at = begin; at < end;) {
      const uint64_t length = std::min(end - at, random_.Chance(0.7) ? kUnit : random_.Between(1, kUnit));
      now.push_back({at, DeviceOffset(Place(length)), length});
      at += length;
    }
    list_.Replace(now);
    extents_.erase(extents_.begin() + static_cast<ptrdiff_t>(index),
                   extents_.begin() + static_cast<ptrdiff_t>(index + count));
    extents_.insert(extents_.begin() + static_cast<ptrdiff_t>(index), now.begin(), now.end());
  }

  Random random_;
  ExtentList list_;
  Extents extents_;
  size_t most_ = 0;
  size_t longest_packed_ = 0;
};

TEST(ExtentListModelTest, IsAsAVectorOfExtents) {
  const uint64_t seed = TestSeed(20261124);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Model model(seed);
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    model.Step();
    model.Check();
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(model.most(), 2000U);
  EXPECT_GT(model.longest_packed(), 4 * ExtentList::kChunkBytes);
}

}  // namespace
}  // namespace isozone
