#include "store/zone/allocator/write_pace.h"

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(WritePace, WritingCostsNothingWhileThereIsSpace) {
  WritePace pace;
  EXPECT_EQ(WritePace::PriceOf(0, 0), 0) << "it is off";
  EXPECT_EQ(WritePace::PriceOf(15, 15), 0);
  EXPECT_TRUE(pace.Pay(kMiB, 0));
  EXPECT_FALSE(pace.Pay(kMiB, WritePace::PriceOf(14, 15)));
}

TEST(WritePace, TheLessIsFreeTheMoreAByteCostsAndNeverSuddenly) {
  double before = 0;
  for (double free = 15; free >= 0; free -= 0.25) {
    const double price = WritePace::PriceOf(free, 15);
    EXPECT_GE(price, before) << free;
    EXPECT_LE(price - before, 2) << free;
    before = price;
  }
  EXPECT_EQ(before, WritePace::kDearest);
}

TEST(WritePace, EachByteIsPaidForWithWhatMakersOfSpaceHaveWritten) {
  WritePace pace;
  pace.Earn(64 * 1000);
  EXPECT_TRUE(pace.Pay(1000, WritePace::kDearest));
  EXPECT_TRUE(pace.Pay(1000, WritePace::kDearest));
  EXPECT_FALSE(pace.Pay(1000, WritePace::kDearest));
  EXPECT_TRUE(pace.Pay(1000, 0));
}

TEST(WritePace, SavesLittleAndAsksForNoMoreThanCanBeSaved) {
  WritePace pace;
  for (int i = 0; i < 100; ++i) pace.Earn(kMiB);
  EXPECT_TRUE(pace.Pay(100 * kMiB, WritePace::kDearest));
  EXPECT_FALSE(pace.Pay(1, WritePace::kDearest));
}

TEST(WritePace, WhatWasLoggedIsNotPaidForAgain) {
  WritePace pace;
  EXPECT_EQ(pace.TakeUnlogged(100), 100U);
  pace.NoteLogged(150);
  EXPECT_EQ(pace.TakeUnlogged(100), 0U);
  EXPECT_EQ(pace.TakeUnlogged(100), 50U);
  EXPECT_EQ(pace.TakeUnlogged(100), 100U);
}

}  // namespace
}  // namespace isozone
