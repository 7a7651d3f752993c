#include "store/zone/segment_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "testing/test_seed.h"

namespace isozone {

void PrintTo(const ByteRange& range, std::ostream* out) { *out << '[' << range.offset << '+' << range.length << ')'; }

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Blocks of 1 byte make blocks and bytes the same thing: segments of 16, requests of 4.
constexpr SegmentRules kTiny = {
    .block_size = 1, .segment_size = 16, .request_size = 4, .group_blocks = 4, .cold_utilisation = 0.5};

// "..##.#" as ranges.
std::vector<ByteRange> Ranges(const std::string& picture) {
  std::vector<ByteRange> ranges;
  for (uint64_t at = 0; at < picture.size(); ++at) {
    if (picture[at] != '#') continue;
    if (!ranges.empty() && ranges.back().end() == at) {
      ++ranges.back().length;
    } else {
      ranges.push_back({at, 1});
    }
  }
  return ranges;
}

// Draws reads as text: 'r' for a byte that is read, '|' before each read.
std::string Picture(const std::vector<ByteRange>& reads) {
  std::string picture;
  uint64_t at = 0;
  for (const ByteRange& read : reads) {
    picture.append(read.offset - at, '.');
    picture += '|';
    picture.append(read.length, 'r');
    at = read.end();
  }
  return picture;
}

TEST(SegmentPlan, OneSegment) {
  struct Case {
    std::string valid;
    bool cold;
    bool grouped;
    std::string reads;
    std::string trimmed;
  };
  const std::vector<Case> cases = {
      // Fewer than four valid blocks: runs.
      {"#...............", false, false, "|r", "|r"},
      {"##.............#", false, false, "|rr.............|r", "|rr.............|r"},
      {"...###..........", false, false, "...|rrr", "...|rrr"},
      // Four: groups, those without a valid block left out.
      {"#...#...#...#...", false, true, "|rrrr|rrrr|rrrr|rrrr", "|r...|r...|r...|r"},
      {"..####..........", false, true, "|rrrr|rrrr", "..|rr|rr"},
      {"#.#.........#.##", false, true, "|rrrr........|rrrr", "|rrr.........|rrrr"},
      // Cold means above the half, not exactly the half.
      {"########........", false, true, "|rrrr|rrrr", "|rrrr|rrrr"},
      {"########.......#", true, true, "|rrrr|rrrr....|rrrr", "|rrrr|rrrr.......|r"},
      {"################", true, true, "|rrrr|rrrr|rrrr|rrrr", "|rrrr|rrrr|rrrr|rrrr"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.valid);
    const std::vector<ByteRange> valid = Ranges(one.valid);
    const std::vector<SegmentPlan> plan = PlanSegments(valid, 16, kTiny);
    ASSERT_EQ(plan.size(), 1U);
    EXPECT_EQ(plan[0].valid_blocks, static_cast<uint64_t>(std::ranges::count(one.valid, '#')));
    EXPECT_EQ(plan[0].cold, one.cold);
    EXPECT_EQ(plan[0].grouped, one.grouped);
    EXPECT_EQ(plan[0].valid, valid);
    EXPECT_EQ(Picture(plan[0].reads), one.reads);
    SegmentRules trimming = kTiny;
    trimming.trim_groups = true;
    EXPECT_EQ(Picture(PlanSegments(valid, 16, trimming)[0].reads), one.trimmed);
  }
}

TEST(SegmentPlan, SegmentsAreReadApartAndEmptyOnesNotAtAll) {
  const std::vector<ByteRange> valid = {{14, 4}, {48, 6}};
  const std::vector<SegmentPlan> plan = PlanSegments(valid, 54, kTiny);
  ASSERT_EQ(plan.size(), 3U);
  EXPECT_EQ(plan[0].offset, 0U);
  EXPECT_THAT(plan[0].reads, ElementsAre(ByteRange{14, 2}));
  EXPECT_EQ(plan[1].offset, 16U);
  EXPECT_THAT(plan[1].reads, ElementsAre(ByteRange{16, 2}));
  EXPECT_EQ(plan[2].offset, 48U);
  EXPECT_EQ(plan[2].length, 6U);  // the zone ends here, and no read passes the end
  EXPECT_TRUE(plan[2].cold);
  EXPECT_THAT(plan[2].reads, ElementsAre(ByteRange{48, 4}, ByteRange{52, 2}));
  EXPECT_THAT(PlanSegments({}, 54, kTiny), IsEmpty());
}

TEST(SegmentPlan, ThresholdOfNoneReadsEverySegmentInGroups) {
  SegmentRules rules = kTiny;
  rules.group_blocks = 0;
  EXPECT_EQ(Picture(PlanSegments(Ranges("......#"), 16, rules)[0].reads), "....|rrrr");
}

TEST(SegmentPlan, ThresholdsAreThePapersByDefault) {
  std::vector<ByteRange> valid;
  for (uint64_t block = 0; block < 15; ++block) valid.push_back({block * 64 * kKiB, 4 * kKiB});
  EXPECT_FALSE(PlanSegments(valid, kGiB, {})[0].grouped);
  valid.push_back({15 * 64 * kKiB, 4 * kKiB});
  EXPECT_TRUE(PlanSegments(valid, kGiB, {})[0].grouped);
  EXPECT_EQ(PlanSegments(valid, kGiB, {})[0].reads.size(), 8U);
  const std::vector<ByteRange> warm = {{0, 204 * 4 * kKiB}};  // 39.8 %
  const std::vector<ByteRange> cold = {{0, 205 * 4 * kKiB}};  // 40.04 %
  EXPECT_FALSE(PlanSegments(warm, kGiB, {})[0].cold);
  EXPECT_TRUE(PlanSegments(cold, kGiB, {})[0].cold);
}

TEST(SegmentPlan, BytesAreReadInWholeBlocks) {
  const SegmentRules rules = {.block_size = 10, .segment_size = 100, .request_size = 30, .group_blocks = 100};
  // Two ends of files in one block, and a range over a segment's end.
  const std::vector<ByteRange> valid = {{3, 4}, {7, 2}, {25, 10}, {95, 20}};
  EXPECT_THAT(PlanRuns(valid, rules), ElementsAre(ByteRange{0, 10}, ByteRange{20, 20}, ByteRange{90, 30}));
  const std::vector<SegmentPlan> plan = PlanSegments(valid, 200, rules);
  ASSERT_EQ(plan.size(), 2U);
  EXPECT_EQ(plan[0].valid_blocks, 4U);
  EXPECT_THAT(plan[0].reads, ElementsAre(ByteRange{0, 10}, ByteRange{20, 20}, ByteRange{90, 10}));
  EXPECT_THAT(plan[0].valid, ElementsAre(ByteRange{3, 4}, ByteRange{7, 2}, ByteRange{25, 10}, ByteRange{95, 5}));
  EXPECT_THAT(plan[1].reads, ElementsAre(ByteRange{100, 20}));
}

TEST(SegmentPlan, RunsAreCutAtTheRequestSize) {
  EXPECT_EQ(Picture(PlanRuns(Ranges("#########.#"), kTiny)), "|rrrr|rrrr|r.|r");
}

TEST(SegmentPlan, RangesOfABitmap) {
  EXPECT_THAT(RangesOf({}, 4096), IsEmpty());
  const std::vector<uint64_t> bitmap = {uint64_t{0b0110} | uint64_t{1} << 63, 0b1, 0, ~uint64_t{0}, 0};
  EXPECT_THAT(RangesOf(bitmap, 10), ElementsAre(ByteRange{10, 20}, ByteRange{630, 20}, ByteRange{1920, 640}));
}

// --- Against an oracle that knows blocks only ---

struct Zone {
  SegmentRules rules;
  uint64_t blocks = 0;
  std::vector<bool> valid;
};

Zone RandomZone(Random& random) {
  Zone zone;
  zone.rules.block_size = uint64_t{1} << random.Between(0, 4);
  zone.rules.request_size = random.Between(1, 6) * zone.rules.block_size;
  zone.rules.segment_size = random.Between(1, 20) * zone.rules.block_size;
  zone.rules.group_blocks = static_cast<uint32_t>(random.Below(12));
  zone.rules.cold_utilisation = random.Real();
  zone.rules.trim_groups = random.Chance(0.5);
  zone.blocks = random.Between(1, 100);
  const double utilisation = random.Real();
  for (uint64_t block = 0; block < zone.blocks; ++block) zone.valid.push_back(random.Chance(utilisation));
  return zone;
}

// The valid blocks as ranges of bytes, shortened at random so that their first or last bytes are dead.
std::vector<ByteRange> RandomRanges(const Zone& zone, Random& random) {
  const uint64_t size = zone.rules.block_size;
  std::vector<ByteRange> ranges;
  for (uint64_t block = 0; block < zone.blocks; ++block) {
    if (!zone.valid[block]) continue;
    const uint64_t skipped = random.Below(size);
    ranges.push_back({block * size + skipped, random.Between(1, size - skipped)});
  }
  return ranges;
}

class Oracle {
 public:
  explicit Oracle(const Zone& zone) : zone_(zone) {}

  uint64_t Valid(uint64_t begin, uint64_t end) const {
    return static_cast<uint64_t>(std::count(zone_.valid.begin() + static_cast<ptrdiff_t>(begin),
                                            zone_.valid.begin() + static_cast<ptrdiff_t>(end), true));
  }

  // Checks the plan block by block.
  void CheckSegment(const SegmentPlan& segment) const {
    const uint64_t size = zone_.rules.block_size;
    const uint64_t begin = segment.offset / size;
    const uint64_t end = begin + segment.length / size;
    const uint64_t valid = Valid(begin, end);
    EXPECT_EQ(segment.valid_blocks, valid);
    EXPECT_EQ(segment.grouped, valid >= zone_.rules.group_blocks);
    EXPECT_EQ(segment.cold,
              static_cast<double>(valid) > zone_.rules.cold_utilisation * static_cast<double>(end - begin));
    std::vector<uint64_t> reads(zone_.blocks, 0);
    for (const ByteRange& read : segment.reads) {
      EXPECT_LE(read.length, zone_.rules.request_size);
      for (uint64_t block = read.offset / size; block < read.end() / size; ++block) ++reads.at(block);
    }
    for (uint64_t block = 0; block < zone_.blocks; ++block) {
      EXPECT_EQ(reads[block], IsRead(segment, begin, end, block) ? 1U : 0U) << "block " << block;
    }
    if (segment.grouped) {
      EXPECT_LE(segment.reads.size(), RoundUp(end - begin, GroupBlocks()) / GroupBlocks());
    }
  }

 private:
  uint64_t GroupBlocks() const { return zone_.rules.request_size / zone_.rules.block_size; }

  bool IsRead(const SegmentPlan& segment, uint64_t begin, uint64_t end, uint64_t block) const {
    if (block < begin || block >= end) return false;
    if (!segment.grouped) return zone_.valid[block];
    const uint64_t group = begin + (block - begin) / GroupBlocks() * GroupBlocks();
    const uint64_t group_end = std::min(group + GroupBlocks(), end);
    if (!zone_.rules.trim_groups) return Valid(group, group_end) > 0;
    return Valid(group, block + 1) > 0 && Valid(block, group_end) > 0;
  }

  const Zone& zone_;
};

std::vector<ByteRange> Joined(const std::vector<ByteRange>& ranges) {
  std::vector<ByteRange> joined;
  for (const ByteRange& range : ranges) {
    if (!joined.empty() && joined.back().end() == range.offset) {
      joined.back().length += range.length;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

TEST(SegmentPlan, AgreesWithTheOracle) {
  const uint64_t seed = TestSeed(20240607);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 3000 && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Zone zone = RandomZone(random);
    const std::vector<ByteRange> ranges = RandomRanges(zone, random);
    const Oracle oracle(zone);
    uint64_t valid = 0;
    std::vector<ByteRange> given;
    for (const SegmentPlan& segment : PlanSegments(ranges, zone.blocks * zone.rules.block_size, zone.rules)) {
      EXPECT_GT(segment.valid_blocks, 0U);
      valid += segment.valid_blocks;
      given.insert(given.end(), segment.valid.begin(), segment.valid.end());
      oracle.CheckSegment(segment);
    }
    EXPECT_EQ(valid, oracle.Valid(0, zone.blocks));
    EXPECT_EQ(given, ranges);
  }
}

TEST(SegmentPlan, RunsAndBitmapsAgreeWithEachOther) {
  const uint64_t seed = TestSeed(20240607);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 1000 && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Zone zone = RandomZone(random);
    std::vector<uint64_t> bitmap((zone.blocks + 63) / 64);
    for (uint64_t block = 0; block < zone.blocks; ++block) {
      if (zone.valid[block]) bitmap[block / 64] |= uint64_t{1} << block % 64;
    }
    const std::vector<ByteRange> runs = PlanRuns(RandomRanges(zone, random), zone.rules);
    EXPECT_EQ(Joined(runs), RangesOf(bitmap, zone.rules.block_size));
    for (const ByteRange& run : runs) EXPECT_LE(run.length, zone.rules.request_size);
  }
}

}  // namespace
}  // namespace isozone
