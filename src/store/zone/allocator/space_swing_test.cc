#include "store/zone/allocator/space_swing.h"

#include <gtest/gtest.h>

namespace isozone {
namespace {

constexpr uint64_t kCapacity = 6400;  // so that a step is 10 bytes

TEST(SpaceSwing, IsNotKnownUntilATenthHasBeenWritten) {
  SpaceSwing swing(kCapacity);
  for (uint64_t written = 0; written < kCapacity / 10 - 10; written += 10) {
    swing.Note(written, 5000);
    EXPECT_FALSE(swing.bytes()) << written;
  }
  swing.Note(kCapacity / 10 - 10, 5000);
  EXPECT_EQ(swing.bytes(), 0U);
}

TEST(SpaceSwing, IsTheLargestFallAndNotWhatCameBack) {
  SpaceSwing swing(kCapacity);
  uint64_t written = 0;
  for (int i = 0; i < 20; ++i) {
    for (const uint64_t free : {1000, 900, 700, 950, 820}) swing.Note(written += 10, free);
  }
  EXPECT_EQ(swing.bytes(), 300U);
}

TEST(SpaceSwing, CountsAFallThatIsInterrupted) {
  SpaceSwing swing(kCapacity);
  uint64_t written = 0;
  for (uint64_t i = 0; i < 64; ++i) swing.Note(written += 10, 3000 - 20 * (i / 2) + 15 * (i % 2));
  EXPECT_EQ(swing.bytes(), 3015U - (3000 - 20 * 31));
}

TEST(SpaceSwing, ForgetsWhatIsATenthAgo) {
  SpaceSwing swing(kCapacity);
  uint64_t written = 0;
  swing.Note(written, 4000);
  for (int i = 0; i < 63; ++i) swing.Note(written += 10, 1000);
  EXPECT_EQ(swing.bytes(), 3000U);
  swing.Note(written += 10, 1000);
  EXPECT_EQ(swing.bytes(), 0U);
}

TEST(SpaceSwing, LooksOncePerStep) {
  SpaceSwing swing(kCapacity);
  for (uint64_t written = 0; written < 2 * kCapacity; written += 10) {
    swing.Note(written, 2000);
    swing.Note(written + 5, 0);
  }
  EXPECT_EQ(swing.bytes(), 0U);
}

}  // namespace
}  // namespace isozone
