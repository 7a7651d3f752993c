#include "conventional/extent_allocator.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace isozone {
namespace {

using ::testing::ElementsAre;

std::vector<Extent> Allocate(ExtentAllocator& allocator, uint64_t count) {
  std::vector<Extent> extents;
  allocator.Allocate(count, extents);
  return extents;
}

TEST(ExtentAllocator, GoesOnWhereItEnded) {
  ExtentAllocator allocator(10, 100);
  EXPECT_THAT(Allocate(allocator, 30), ElementsAre(Extent{10, 30}));
  allocator.Free({10, 30});
  EXPECT_THAT(Allocate(allocator, 30), ElementsAre(Extent{40, 30}));
  EXPECT_THAT(Allocate(allocator, 30), ElementsAre(Extent{70, 30}));
  EXPECT_THAT(Allocate(allocator, 30), ElementsAre(Extent{10, 30}));
  EXPECT_EQ(allocator.free(), 0U);
}

TEST(ExtentAllocator, PrefersARunThatHoldsAll) {
  ExtentAllocator allocator(0, 100);
  Allocate(allocator, 100);
  allocator.Free({50, 5});
  allocator.Free({70, 20});
  allocator.Free({10, 8});
  EXPECT_THAT(Allocate(allocator, 20), ElementsAre(Extent{70, 20}));
  EXPECT_THAT(Allocate(allocator, 5), ElementsAre(Extent{10, 5}));
  EXPECT_THAT(Allocate(allocator, 8), ElementsAre(Extent{15, 3}, Extent{50, 5}));
}

TEST(ExtentAllocator, JoinsNeighbours) {
  ExtentAllocator allocator(0, 100);
  Allocate(allocator, 100);
  allocator.Free({20, 10});
  allocator.Free({40, 10});
  allocator.Free({30, 10});
  EXPECT_THAT(Allocate(allocator, 30), ElementsAre(Extent{20, 30}));
}

TEST(ExtentAllocator, NeverGivesABlockTwice) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    ExtentAllocator allocator(5, 505);
    std::vector<bool> taken(505, false);
    std::vector<Extent> held;
    for (int i = 0; i < 2'000; ++i) {
      if (random.Chance(0.5)) {
        std::vector<Extent> extents;
        const uint64_t free = allocator.free();
        const uint64_t count = random.Between(0, std::min<uint64_t>(free, 40));
        allocator.Allocate(count, extents);
        ASSERT_EQ(allocator.free(), free - count);
        for (const Extent& extent : extents) {
          ASSERT_GE(extent.block, 5U);
          ASSERT_LE(extent.block + extent.count, 505U);
          for (uint64_t k = 0; k < extent.count; ++k) {
            ASSERT_FALSE(taken[extent.block + k]);
            taken[extent.block + k] = true;
          }
          held.push_back(extent);
        }
      } else if (!held.empty()) {
        std::swap(held[random.Below(held.size())], held.back());
        for (uint64_t k = 0; k < held.back().count; ++k) taken[held.back().block + k] = false;
        allocator.Free(held.back());
        held.pop_back();
      }
    }
    const auto free = static_cast<uint64_t>(std::count(taken.begin() + 5, taken.end(), false));
    EXPECT_EQ(allocator.free(), free);
  }
}

}  // namespace
}  // namespace isozone
