#include "store/io/class_queues.h"

#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

constexpr uint64_t kSlice = 192 * 1024;

// One die in virtual time. It serves one request after another, for as long as each costs; every client always has its
// next request waiting.
class Die {
 public:
  explicit Die(const IoShares& shares) : queues_(shares) {}

  void AddClient(IoClass io_class, uint64_t cost) {
    clients_.push_back({});
    clients_.back().io_class = io_class;
    clients_.back().cost = cost;
    queues_.PushBack(clients_.back());
  }

  void RunUntil(uint64_t end) {
    while (now_ < end) {
      ClassQueues::Waiting* next = queues_.Next(/*background_too=*/true);
      ASSERT_NE(next, nullptr);
      now_ += next->cost;
      served_[static_cast<size_t>(next->io_class)] += next->cost;
      if (first_served_[static_cast<size_t>(next->io_class)] == 0)
        first_served_[static_cast<size_t>(next->io_class)] = now_;
      queues_.PushBack(*next);
    }
  }

  double Share(IoClass c) const {
    return static_cast<double>(served_[static_cast<size_t>(c)]) / static_cast<double>(now_);
  }
  uint64_t first_served(IoClass c) const { return first_served_[static_cast<size_t>(c)]; }

 private:
  ClassQueues queues_;
  std::deque<ClassQueues::Waiting> clients_;
  uint64_t now_ = 0;
  std::array<uint64_t, kIoClassCount> served_{};
  std::array<uint64_t, kIoClassCount> first_served_{};
};

TEST(ClassQueues, TheHighestClassGoesFirstAndWithinAClassTheFirst) {
  ClassQueues queues{IoShares()};
  std::deque<ClassQueues::Waiting> requests;
  const auto add = [&](IoClass c) { queues.PushBack(requests.emplace_back(ClassQueues::Waiting{c, kSlice})); };
  add(IoClass::kGc);
  add(IoClass::kOther);
  add(IoClass::kFlush);
  add(IoClass::kFlush);
  add(IoClass::kWal);
  for (const size_t expected : {4U, 2U, 3U, 1U, 0U}) EXPECT_EQ(queues.Next(true), &requests[expected]);
  EXPECT_EQ(queues.Next(true), nullptr);
}

TEST(ClassQueues, WhatWasOvertakenBetweenSlicesGoesOnFirst) {
  ClassQueues queues{IoShares()};
  ClassQueues::Waiting begun{IoClass::kCompactionWrite, kSlice};
  ClassQueues::Waiting waiting{IoClass::kCompactionWrite, kSlice};
  queues.PushBack(waiting);
  queues.PushFront(begun);
  EXPECT_EQ(queues.Next(true), &begun);
  EXPECT_EQ(queues.Next(true), &waiting);
}

TEST(ClassQueues, BackgroundWaitsForItsOwnPlaces) {
  ClassQueues queues{IoShares()};
  ClassQueues::Waiting compaction{IoClass::kCompactionRead, kSlice};
  ClassQueues::Waiting flush{IoClass::kFlush, kSlice};
  queues.PushBack(compaction);
  EXPECT_EQ(queues.Next(/*background_too=*/false), nullptr);
  queues.PushBack(flush);
  EXPECT_EQ(queues.Next(/*background_too=*/false), &flush);
  EXPECT_EQ(queues.Next(/*background_too=*/true), &compaction);
  EXPECT_EQ(ClassQueues::BackgroundDepth(2), 1U);
  EXPECT_EQ(ClassQueues::BackgroundDepth(1), 1U);
}

TEST(ClassQueues, EveryClassGetsItsShareOfABusyDie) {
  IoShares shares;
  Die die(shares);
  for (int c = 0; c < kIoClassCount; ++c) {
    const bool reads = c == static_cast<int>(IoClass::kUserRead) || c == static_cast<int>(IoClass::kCompactionRead);
    die.AddClient(static_cast<IoClass>(c), reads ? 4096 : kSlice * ClassQueues::kWriteCost);
  }
  constexpr uint64_t kEnd = 2000 * kSlice * ClassQueues::kWriteCost;
  die.RunUntil(kEnd);
  double sum = 0;
  for (int c = 0; c < kIoClassCount; ++c) {
    const auto io_class = static_cast<IoClass>(c);
    EXPECT_GT(die.Share(io_class), shares.percent[static_cast<size_t>(c)] / 100.0 - 0.01) << IoClassName(io_class);
    sum += die.Share(io_class);
    // At first, a class whose share is s waits for 1/s times what it asks for, and for two requests of each class.
    const double longest = 100.0 / shares.percent[static_cast<size_t>(c)] + 2.0 * kIoClassCount;
    EXPECT_LE(static_cast<double>(die.first_served(io_class)), longest * kSlice * ClassQueues::kWriteCost);
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  // Time that belongs to no share goes to the highest class.
  EXPECT_NEAR(die.Share(IoClass::kWal), 0.25, 0.01);
}

TEST(ClassQueues, TheLowestClassGetsItsShareBesideABusyHigherOne) {
  Die die{IoShares()};
  die.AddClient(IoClass::kFlush, kSlice * 4);
  die.AddClient(IoClass::kGc, kSlice * 4);
  die.RunUntil(4000 * kSlice);
  EXPECT_NEAR(die.Share(IoClass::kGc), 0.05, 0.002);
  EXPECT_NEAR(die.Share(IoClass::kFlush), 0.95, 0.002);
}

TEST(ClassQueues, AClassWithoutAShareWaitsForAllOthers) {
  IoShares shares;
  shares.percent[static_cast<size_t>(IoClass::kGc)] = 0;
  Die die(shares);
  die.AddClient(IoClass::kFlush, kSlice);
  die.AddClient(IoClass::kGc, kSlice);
  die.RunUntil(1000 * kSlice);
  EXPECT_EQ(die.Share(IoClass::kGc), 0);
}

TEST(ClassQueues, WhatKeepsAGapIsLeftOutAndTheRestGoesOn) {
  ClassQueues queues{IoShares()};
  ClassQueues::Waiting flush{IoClass::kFlush, kSlice, /*keeps_gap=*/true};
  ClassQueues::Waiting compaction{IoClass::kCompactionWrite, kSlice, /*keeps_gap=*/false};
  IoClassSet gaps;
  gaps[static_cast<size_t>(IoClass::kFlush)] = gaps[static_cast<size_t>(IoClass::kCompactionWrite)] = true;
  EXPECT_TRUE(queues.KeepingGaps().none());
  queues.PushBack(flush);
  queues.PushBack(compaction);
  EXPECT_TRUE(queues.KeepingGaps()[static_cast<size_t>(IoClass::kFlush)]);
  EXPECT_EQ(queues.KeepingGaps().count(), 1U);
  EXPECT_EQ(queues.Next(true, gaps), &compaction) << "of a class with a gap, but queued before users read";
  EXPECT_EQ(queues.Next(true, gaps), nullptr);
  EXPECT_EQ(queues.Next(true), &flush);
  EXPECT_TRUE(queues.KeepingGaps().none());
}

TEST(ClassQueues, WhatKeepsAGapHoldsUpNothingOfItsClass) {
  ClassQueues queues{IoShares()};
  ClassQueues::Waiting begun{IoClass::kWal, kSlice, /*keeps_gap=*/true};
  ClassQueues::Waiting waiting{IoClass::kWal, kSlice, /*keeps_gap=*/true};
  ClassQueues::Waiting durable{IoClass::kWal, kSlice, /*keeps_gap=*/false};
  IoClassSet gap;
  gap[static_cast<size_t>(IoClass::kWal)] = true;
  queues.PushBack(waiting);
  queues.PushBack(durable);
  queues.PushFront(begun);
  EXPECT_EQ(queues.Next(true, gap), &durable);
  EXPECT_EQ(queues.Next(true, gap), nullptr);
  EXPECT_EQ(queues.Next(true), &begun);
  EXPECT_EQ(queues.Next(true), &waiting);
}

TEST(ClassQueues, AClassSavesNothingWhileItKeepsAGap) {
  ClassQueues queues{IoShares()};
  std::deque<ClassQueues::Waiting> flushes(3, {IoClass::kFlush, kSlice, /*keeps_gap=*/true});
  for (auto& flush : flushes) queues.PushBack(flush);
  ClassQueues::Waiting log{IoClass::kWal, kSlice};
  IoClassSet gap;
  gap[static_cast<size_t>(IoClass::kFlush)] = true;
  for (int i = 0; i < 100; ++i) {
    queues.PushBack(log);
    ASSERT_EQ(queues.Next(true, gap), &log);
  }
  queues.PushBack(log);
  EXPECT_EQ(queues.Next(true), &log) << "the flush does not come first for having waited";
}

}  // namespace
}  // namespace isozone
