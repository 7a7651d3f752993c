#include "device/emulated/ftl/page_map.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

// 4 dies, units of 6 slots in pages of 2, blocks of 2 units: superblocks of 48 slots.
FlashLayout Layout(uint32_t logical_pages, double over_provisioning = 0.15) {
  FlashLayout layout{.dies = 4, .page_slots = 2, .unit_slots = 6, .block_slots = 12, .logical_pages = logical_pages};
  const double physical = logical_pages * (1 + over_provisioning);
  layout.superblocks = static_cast<uint32_t>(std::ceil(physical / layout.superblock_slots())) + PageMap::kReserve;
  return layout;
}

// The seed in ISOZONE_TEST_SEED, if it is set.
uint64_t Seed(uint64_t otherwise) {
  const uint64_t seed = TestSeed(otherwise);
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

// A model of the flash, which refuses what flash cannot do, and of the content that the host expects.
class Oracle {
 public:
  explicit Oracle(const FlashLayout& layout)
      : layout_(layout),
        map_(layout),
        flash_(size_t{layout.superblocks} * layout.superblock_slots()),
        expected_(layout.logical_pages) {}

  void Write(uint32_t page) {
    expected_[page] = ++version_;
    steps_.clear();
    map_.Write(page, steps_);
    for (const FlashStep& step : steps_) Apply(step);
  }
  void Trim(uint32_t page) {
    expected_[page] = 0;
    map_.Trim(page);
  }
  void CheckPage(uint32_t page) const {
    const uint32_t slot = map_.SlotOf(page);
    ASSERT_EQ(slot == PageMap::kNone, expected_[page] == 0) << page;
    if (slot == PageMap::kNone) return;
    ASSERT_EQ(flash_[slot], expected_[page]) << page;
  }
  void CheckAll() const {
    for (uint32_t page = 0; page < layout_.logical_pages; ++page) CheckPage(page);
    ASSERT_TRUE(map_.IsConsistent());
  }
  const PageMap& map() const { return map_; }
  const std::vector<FlashStep>& steps() const { return steps_; }

 private:
  void Program(uint32_t slot, uint64_t content) {
    ASSERT_EQ(flash_[slot], 0U) << "slot " << slot << " is programmed twice";
    flash_[slot] = content;
  }
  void Apply(const FlashStep& step) {
    switch (step.kind) {
      case FlashStep::Kind::kWrite:
        return Program(step.to, version_);
      case FlashStep::Kind::kCopy:
        return Program(step.to, flash_[step.from]);
      case FlashStep::Kind::kErase:
        std::fill_n(flash_.begin() + step.from * layout_.superblock_slots(), layout_.superblock_slots(), 0);
    }
  }

  const FlashLayout layout_;
  PageMap map_;
  std::vector<uint64_t> flash_;     // by slot: the version of the page that was written; 0: erased
  std::vector<uint64_t> expected_;  // by page: the same; 0: nothing
  std::vector<FlashStep> steps_;
  uint64_t version_ = 0;
};

void RunAgainstOracle(uint64_t seed, const FlashLayout& layout) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  Oracle oracle(layout);
  const double trims = random.Real() * 0.5;
  for (int i = 0; i < 20'000; ++i) {
    // Runs of pages, so that whole superblocks become invalid together now and then.
    const auto first = static_cast<uint32_t>(random.Below(layout.logical_pages));
    const uint64_t length = random.Chance(0.1) ? random.Between(1, 100) : 1;
    const bool trim = random.Chance(trims);
    for (uint64_t k = 0; k < length; ++k) {
      const auto page = static_cast<uint32_t>((first + k) % layout.logical_pages);
      trim ? oracle.Trim(page) : oracle.Write(page);
      oracle.CheckPage(page);
    }
    if (i % 1'000 == 0) oracle.CheckAll();
    if (::testing::Test::HasFatalFailure()) return;
  }
  oracle.CheckAll();
}

TEST(PageMap, KeepsEveryPageUnderRandomWritesAndTrims) {
  const uint64_t first = Seed(1);
  for (uint64_t seed = first; seed < first + 8; ++seed) RunAgainstOracle(seed, Layout(2'000));
}

// Two spare superblocks only: GC has no slack at all.
TEST(PageMap, KeepsEveryPageWithLittleToSpare) {
  const uint64_t first = Seed(100);
  for (uint64_t seed = first; seed < first + 4; ++seed) RunAgainstOracle(seed, Layout(2'000, 0.04));
}

TEST(PageMap, SpreadsUnitsOverTheDies) {
  const FlashLayout layout = Layout(2'000);
  PageMap map(layout);
  std::vector<FlashStep> steps;
  for (uint32_t page = 0; page < 48; ++page) map.Write(page, steps);
  for (uint32_t page = 0; page < 48; ++page) EXPECT_EQ(layout.DieOf(map.SlotOf(page)), page / 6 % 4) << page;
}

TEST(PageMap, WritesOnceWhatIsWrittenInOrder) {
  const FlashLayout layout = Layout(4'800);
  PageMap map(layout);
  std::vector<FlashStep> steps;
  for (int round = 0; round < 20; ++round) {
    for (uint32_t page = 0; page < layout.logical_pages; ++page) map.Write(page, steps);
  }
  EXPECT_EQ(map.counters().copied_pages, 0U);
  EXPECT_EQ(map.counters().WriteAmplification(), 1.0);
  EXPECT_GT(map.counters().erases, 1'800U);
}

TEST(PageMap, DoesNotCopyWhatWasTrimmed) {
  const FlashLayout layout = Layout(4'800);
  PageMap map(layout);
  map.Age(3, 1);
  for (uint32_t page = 0; page < layout.logical_pages; ++page) map.Trim(page);
  map.ResetCounters();
  std::vector<FlashStep> steps;
  for (uint32_t page = 0; page < layout.logical_pages; ++page) map.Write(page, steps);
  EXPECT_EQ(map.counters().copied_pages, 0U);
  EXPECT_TRUE(map.IsConsistent());
}

TEST(PageMap, TrimsOnlyWhatIsMapped) {
  PageMap map(Layout(2'000));
  map.Trim(5);
  EXPECT_EQ(map.counters().trimmed_pages, 0U);
  std::vector<FlashStep> steps;
  map.Write(5, steps);
  map.Trim(5);
  EXPECT_EQ(map.counters().trimmed_pages, 1U);
  EXPECT_EQ(map.SlotOf(5), PageMap::kNone);
}

TEST(PageMap, IsDeterministic) {
  const FlashLayout layout = Layout(2'000);
  PageMap one(layout);
  PageMap other(layout);
  one.Age(2, 7);
  other.Age(2, 7);
  for (uint32_t page = 0; page < layout.logical_pages; ++page) ASSERT_EQ(one.SlotOf(page), other.SlotOf(page));
  EXPECT_EQ(one.counters().erases, other.counters().erases);
}

// The fraction u of a victim that is valid solves alpha = (u - 1) / ln u (page_map.h); write amplification follows.
double ExpectedWriteAmplification(double alpha) {
  double low = 1e-9;
  double high = 1 - 1e-9;
  for (int i = 0; i < 100; ++i) {
    const double u = (low + high) / 2;
    ((u - 1) / std::log(u) * alpha < 1 ? low : high) = u;
  }
  return 1 / (1 - low);
}

TEST(PageMap, AmplifiesUniformOverwritesAsTheoryPredicts) {
  // Many superblocks, so that what is open or free does not count.
  for (const double over_provisioning : {0.07, 0.15, 0.28}) {
    FlashLayout layout{.dies = 8, .page_slots = 16, .unit_slots = 48, .block_slots = 48, .superblocks = 1'000};
    const double available = static_cast<double>((layout.superblocks - PageMap::kReserve) * layout.superblock_slots());
    layout.logical_pages = static_cast<uint32_t>(available / (1 + over_provisioning));
    PageMap map(layout);
    map.Age(4, 1);  // to a steady state
    map.ResetCounters();
    Random random(2);
    std::vector<FlashStep> steps;
    for (uint32_t i = 0; i < 2 * layout.logical_pages; ++i) {
      steps.clear();
      map.Write(static_cast<uint32_t>(random.Below(layout.logical_pages)), steps);
    }
    const double expected = ExpectedWriteAmplification(1 + over_provisioning);
    EXPECT_NEAR(map.counters().WriteAmplification() / expected, 1.0, 0.05)
        << over_provisioning << ": " << map.counters().WriteAmplification() << " where theory has " << expected;
  }
}

TEST(PageMap, TheTheoryGivesWhatIsPublished) { EXPECT_NEAR(ExpectedWriteAmplification(1.15), 4.0, 0.1); }

// No single write has to wait for GC of more than a few flash pages.
TEST(PageMap, CollectsInStepWithTheHost) {
  FlashLayout layout{.dies = 8, .page_slots = 16, .unit_slots = 48, .block_slots = 48, .superblocks = 200};
  layout.logical_pages = static_cast<uint32_t>(192 * layout.superblock_slots() / 1.15);
  PageMap map(layout);
  map.Age(2, 1);
  Random random(3);
  size_t most = 0;
  for (uint32_t i = 0; i < layout.logical_pages; ++i) {
    std::vector<FlashStep> steps;
    map.Write(static_cast<uint32_t>(random.Below(layout.logical_pages)), steps);
    most = std::max(most, steps.size());
  }
  EXPECT_GT(most, 1U);
  EXPECT_LE(most, 1 + 2 * layout.page_slots + 2);
}

}  // namespace
}  // namespace isozone
