#include "store/io/write_gaps.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "store/io/class_queues.h"

namespace isozone {
namespace {

constexpr int64_t kGap = 64 * kMillisecondNs;
constexpr int64_t kPause = WriteGaps::PauseNs(kGap);

TEST(WriteGaps, AreToldInProgramsOfTheDevice) {
  EXPECT_EQ(WriteGaps::GapNs(24, 192 * kKiB, 96 * kMiB), 46'875'000);
  EXPECT_EQ(WriteGaps::GapNs(24, 192 * kKiB, 24 * kMiB), 4 * 46'875'000);
  EXPECT_EQ(WriteGaps::GapNs(0, 192 * kKiB, 96 * kMiB), 0);
  EXPECT_EQ(WriteGaps::GapNs(1000, UINT64_MAX, 1), kSecondNs) << "at most";
}

TEST(WriteGapsReaders, AreActiveAfterARunOfReadsUntilAPause) {
  WriteGaps::Readers readers(kGap);
  int64_t now = 0;
  EXPECT_FALSE(readers.Active(now));
  for (uint32_t i = 0; i < WriteGaps::kRun; ++i) {
    EXPECT_FALSE(readers.Active(now)) << i;
    readers.Note(now += kPause);
  }
  EXPECT_TRUE(readers.Active(now));
  EXPECT_TRUE(readers.Active(now + kPause));
  EXPECT_FALSE(readers.Active(now + kPause + 1));
  readers.Note(now + kPause + 1);
  EXPECT_FALSE(readers.Active(now + kPause + 1)) << "a new run begins";
}

TEST(WriteGapsReaders, FewReadsAtATimeAreNotAReader) {
  WriteGaps::Readers readers(kGap);
  for (int64_t table = 0; table < 100; ++table) {
    const int64_t now = table * (kPause + 1);
    for (uint32_t i = 0; i < WriteGaps::kRun - 1; ++i) readers.Note(now);
    EXPECT_FALSE(readers.Active(now));
  }
}

TEST(WriteGapsGate, FlushesKeepTheGapAndAllTheShortest) {
  WriteGaps::Gate gate;
  EXPECT_LT(gate.OpensAt(IoClass::kFlush, kGap), 0) << "the first goes at once";
  gate.OnStart(IoClass::kFlush, 0);
  EXPECT_EQ(gate.OpensAt(IoClass::kFlush, kGap), kGap);
  EXPECT_EQ(gate.OpensAt(IoClass::kCompactionWrite, kGap), kGap / 16);
  gate.OnStart(IoClass::kCompactionWrite, kGap / 16);
  EXPECT_EQ(gate.OpensAt(IoClass::kCompactionWrite, kGap), kGap / 8);
  EXPECT_EQ(gate.OpensAt(IoClass::kWal, kGap), kGap / 8);
  EXPECT_EQ(gate.OpensAt(IoClass::kFlush, kGap), kGap) << "of its own class, not pushed back by others";
}

TEST(WriteGaps, AreNotForWhatSomebodyWaitsFor) {
  EXPECT_TRUE(WriteGaps::Keeps(IoClass::kWal, /*durable=*/false));
  EXPECT_FALSE(WriteGaps::Keeps(IoClass::kWal, /*durable=*/true));
  EXPECT_TRUE(WriteGaps::Keeps(IoClass::kFlush, /*durable=*/true));
  for (const IoClass c : {IoClass::kMetadata, IoClass::kUserRead, IoClass::kOther}) {
    EXPECT_FALSE(WriteGaps::Keeps(c, false)) << IoClassName(c);
  }
}

// One group in virtual time. Every class that keeps gaps always has its next slice waiting.
TEST(WriteGaps, NoClassStarvesAndSlicesGoOneByOne) {
  constexpr std::array kClasses = {IoClass::kWal, IoClass::kFlush, IoClass::kCompactionWrite, IoClass::kGc};
  constexpr int64_t kEnd = 1000 * kGap;
  ClassQueues queues{IoShares()};
  WriteGaps::Gate gate;
  std::array<ClassQueues::Waiting, kClasses.size()> clients;
  std::array<int64_t, kIoClassCount> slices{};
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i] = {kClasses[i], 192 * kKiB * ClassQueues::kWriteCost, /*keeps_gap=*/true};
    queues.PushBack(clients[i]);
  }
  int64_t last = -kGap;
  for (int64_t now = 0; now < kEnd;) {
    IoClassSet gaps;
    int64_t opens_at = INT64_MAX;
    for (const IoClass c : kClasses) {
      gaps[static_cast<size_t>(c)] = now < gate.OpensAt(c, kGap);
      if (now < gate.OpensAt(c, kGap)) opens_at = std::min(opens_at, gate.OpensAt(c, kGap));
    }
    ClassQueues::Waiting* next = queues.Next(/*background_too=*/true, gaps);
    if (next == nullptr) {
      ASSERT_GT(opens_at, now);
      now = opens_at;
      continue;
    }
    EXPECT_GE(now - last, kGap / 16) << "one by one";
    last = now;
    gate.OnStart(next->io_class, now);
    ++slices[static_cast<size_t>(next->io_class)];
    queues.PushBack(*next);
  }
  const auto of = [&](IoClass c) { return slices[static_cast<size_t>(c)]; };
  // There is one place every sixteenth of a gap: 16,000 in all, and logs alone could take all of them. Logs get the
  // time that belongs to no share.
  EXPECT_GT(of(IoClass::kWal), 8000);
  // Each of the others waits for its gap (a flush 16 places, the others one), then until it has saved for a slice, at a
  // share of 15, 10 and 5 percent, and for one slice of each higher class.
  EXPECT_GE(of(IoClass::kFlush), 16000 / (16 + 7 + 3));
  EXPECT_GE(of(IoClass::kCompactionWrite), 16000 / (1 + 10 + 3));
  EXPECT_GE(of(IoClass::kGc), 16000 / (1 + 20 + 3));
  EXPECT_LE(of(IoClass::kFlush), 1000);
}

}  // namespace
}  // namespace isozone
