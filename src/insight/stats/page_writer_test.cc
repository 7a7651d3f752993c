#include "insight/stats/page_writer.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/random.h"
#include "insight/stats/stats_test_util.h"
#include "testing/manual_clock.h"

namespace isozone {
namespace {

// Figures of which every word but the sequence is `value`, before the writer adds its own.
PageFigures AllEqual(uint64_t value) {
  std::array<uint64_t, sizeof(PageFigures) / sizeof(uint64_t)> words;
  words.fill(value);
  return std::bit_cast<PageFigures>(words);
}

TEST(PageWriterTest, WhatIsPublishedIsRead) {
  MemoryPage page;
  PageFigures figures{};
  figures.taken_ns = 7;
  figures.live = 4096;
  figures.by_class[static_cast<size_t>(IoClass::kFlush)].bytes_written = 100;
  figures.journal_bytes = 25;
  figures.user_bytes_appended = 50;
  page.writer().Publish(figures);
  page.writer().SetGroup(1, 3, 4);
  page.writer().SetRead(5, PackRead({true, 261, IoClass::kCompactionRead, 1000}));
  const auto read = page.Read();
  ISOZONE_ASSERT_OK(read.status());
  EXPECT_EQ(read->figures.live, 4096U);
  EXPECT_EQ(read->figures.WriteAmplification(), 2.5);
  EXPECT_EQ(read->groups[1].at_device, 3U);
  EXPECT_EQ(read->groups[1].waiting, 4U);
  ASSERT_EQ(read->reads.size(), 1U);
  EXPECT_EQ(read->reads[0].zone, 261U);
  EXPECT_EQ(read->zones.size(), 8U);
  EXPECT_EQ(read->torn, 0U);
}

TEST(PageWriterTest, TheLatestFiguresAreRead) {
  MemoryPage page;
  for (int64_t i = 1; i <= 5; ++i) {
    PageFigures figures{};
    figures.taken_ns = i;
    figures.syncs = static_cast<uint64_t>(i) * 10;
    page.writer().Publish(figures);
    const auto read = page.Read();
    ISOZONE_ASSERT_OK(read.status());
    EXPECT_EQ(read->figures.syncs, static_cast<uint64_t>(i) * 10);
  }
}

TEST(PageWriterTest, OneOfTheFiguresIsKeptForEachSecond) {
  MemoryPage page;
  constexpr int kSeconds = 20;
  for (int i = 0; i <= kSeconds * 10; ++i) {
    PageFigures figures{};
    figures.taken_ns = i * kFiguresIntervalNs;
    page.writer().Publish(figures);
  }
  const auto read = page.Read();
  ISOZONE_ASSERT_OK(read.status());
  ASSERT_EQ(read->history.size(), PageLayout::kHistory);
  EXPECT_EQ(read->history.back().taken_ns, kSeconds * kSecondNs);
  for (size_t i = 1; i < read->history.size(); ++i) {
    EXPECT_EQ(read->history[i].taken_ns - read->history[i - 1].taken_ns, kSecondNs);
  }
}

TEST(PageWriterTest, ZonesThatBeginAndDieAreCounted) {
  MemoryPage page;
  PageZone zone;
  page.writer().SetZone(ZoneId(3), zone);
  zone.phase = ZonePhase::kLeased;
  zone.writer = ZoneWriter::kFlush;
  page.writer().SetZone(ZoneId(3), zone);
  zone.live = zone.write_pointer = 5;
  page.writer().SetZone(ZoneId(3), zone);
  zone.phase = ZonePhase::kIdle;
  page.writer().SetZone(ZoneId(3), zone);
  zone.phase = ZonePhase::kLeased;  // goes on in a zone that it has begun before
  page.writer().SetZone(ZoneId(3), zone);
  zone.live = 0;
  page.writer().SetZone(ZoneId(3), zone);
  page.writer().Publish({});
  const auto read = page.Read();
  ISOZONE_ASSERT_OK(read.status());
  EXPECT_EQ(read->zones[3], zone);
  EXPECT_EQ(read->zones[2], PageZone());
  EXPECT_EQ(read->figures.zones_begun[static_cast<size_t>(ZoneWriter::kFlush)], 1U);
  EXPECT_EQ(read->figures.zones_died, 1U);
}

TEST(PageWriterTest, AWaitIsSeenWhileItLastsAndCountedWhenItEnds) {
  MemoryPage page;
  ManualClock clock;
  clock.Advance(kSecondNs);
  {
    WaitScope none(&page.writer(), clock, ZoneWriter::kFlush);
    WaitScope wait(&page.writer(), clock, ZoneWriter::kCompaction);
    wait.For(WaitReason::kActiveZone);
    clock.Advance(kSecondNs);
    wait.For(WaitReason::kCollection);
    page.writer().Publish({});
    const auto read = page.Read();
    ISOZONE_ASSERT_OK(read.status());
    ASSERT_EQ(read->waits.size(), 1U);
    EXPECT_EQ(read->waits[0].who, ZoneWriter::kCompaction);
    EXPECT_EQ(read->waits[0].reason, WaitReason::kCollection);
    EXPECT_EQ(read->waits[0].since_ns, kSecondNs) << "the wait began before its reason changed";
    clock.Advance(kSecondNs);
  }
  page.writer().Publish({});
  const auto read = page.Read();
  ISOZONE_ASSERT_OK(read.status());
  EXPECT_TRUE(read->waits.empty());
  const PageStall& stall =
      read->figures.stalls[static_cast<size_t>(ZoneWriter::kCompaction)][static_cast<size_t>(WaitReason::kCollection)];
  EXPECT_EQ(stall.count, 1U);
  EXPECT_EQ(stall.ns, static_cast<uint64_t>(2 * kSecondNs));
  ASSERT_EQ(read->events.size(), 1U) << "a long stall is an event";
  EXPECT_EQ(read->events[0].kind, PageEventKind::kStall);
  EXPECT_EQ(StallOf(read->events[0]).since_ns, kSecondNs);
}

TEST(PageWriterTest, MoreWaitsThanThereArePlacesForAreDroppedAndCounted) {
  MemoryPage page;
  std::vector<int> waits;
  for (size_t i = 0; i < PageLayout::kWaits; ++i) {
    waits.push_back(page.writer().BeginWait(ZoneWriter::kLog, WaitReason::kPace, 1));
    EXPECT_NE(waits.back(), StatisticsWriter::kNoWait);
  }
  EXPECT_EQ(page.writer().BeginWait(ZoneWriter::kLog, WaitReason::kPace, 1), StatisticsWriter::kNoWait);
  for (const int wait : waits) page.writer().EndWait(wait, 2);
  EXPECT_NE(page.writer().BeginWait(ZoneWriter::kLog, WaitReason::kPace, 3), StatisticsWriter::kNoWait);
  page.writer().Publish({});
  const auto read = page.Read();
  ISOZONE_ASSERT_OK(read.status());
  EXPECT_EQ(read->waits.size(), 1U);
  EXPECT_EQ(read->figures.dropped_records, 1U);
}

TEST(PageWriterTest, TheLastEventsAndMessagesAreKept) {
  MemoryPage page;
  page.writer().Publish({});
  constexpr uint64_t kMany = 3 * PageLayout::kEvents + 5;
  for (uint64_t i = 0; i < kMany; ++i) {
    page.writer().AddEvent(PageEventKind::kReset, ZoneId(static_cast<uint32_t>(i)), static_cast<int64_t>(i), i);
    page.writer().AddMessage(std::string(300, 'x') + std::to_string(i), i);
  }
  const auto read = page.Read();
  ISOZONE_ASSERT_OK(read.status());
  ASSERT_EQ(read->events.size(), PageLayout::kEvents);
  EXPECT_EQ(read->events.back().number, kMany - 1);
  EXPECT_EQ(read->events.back().zone, kMany - 1);
  EXPECT_EQ(read->events.front().number, kMany - PageLayout::kEvents);
  ASSERT_EQ(read->messages.size(), PageLayout::kMessages);
  EXPECT_EQ(read->messages.back().text, std::string(239, 'x'));
}

TEST(PageWriterTest, ARecordThatIsBeingWrittenIsLeftOut) {
  MemoryPage page;
  PageFigures figures{};
  figures.taken_ns = 1;
  figures.syncs = 11;
  page.writer().Publish(figures);
  figures.taken_ns = 2;
  figures.syncs = 22;
  page.writer().Publish(figures);
  std::vector<std::byte> killed = page.Copy();
  // As if the process had been killed while it wrote the second of the figures.
  killed[PageLayout::kFigures + sizeof(PageFigures)] |= std::byte{1};
  const auto read = MemoryPage::Decode(killed, killed, killed);
  ISOZONE_ASSERT_OK(read.status());
  EXPECT_EQ(read->figures.syncs, 11U) << "those before are whole";
  EXPECT_EQ(read->torn, 1U);
}

TEST(PageWriterTest, ARecordThatChangesBetweenTheCopiesIsLeftOut) {
  MemoryPage page;
  page.writer().Publish({});
  page.writer().AddEvent(PageEventKind::kReset, ZoneId(1), 1);
  const std::vector<std::byte> before = page.Copy();
  for (size_t i = 0; i < PageLayout::kEvents; ++i) page.writer().AddEvent(PageEventKind::kFinish, ZoneId(2), 2);
  const std::vector<std::byte> after = page.Copy();
  const auto read = MemoryPage::Decode(before, after, after);
  ISOZONE_ASSERT_OK(read.status());
  EXPECT_EQ(read->torn, PageLayout::kEvents);
  EXPECT_TRUE(read->events.empty());
}

TEST(PageWriterTest, FiguresThatAreAlwaysBeingWrittenAreBusy) {
  MemoryPage page;
  const std::vector<std::byte> never = page.Copy();
  EXPECT_TRUE(MemoryPage::Decode(never, never, never).status().Is(StatusCode::kBusy));
}

TEST(PageWriterTest, EachValueGoesToTheBucketThatHasIt) {
  Histogram fine;
  uint64_t sum = 0;
  for (uint64_t value = 1; value < uint64_t{1} << 40; value = value * 5 / 4 + 1) {
    fine.Add(value);
    sum += value;
  }
  PageHistogram coarse;
  Coarsen(fine, coarse);
  EXPECT_EQ(coarse.sum, sum);
  uint64_t count = 0;
  for (const uint64_t in_bucket : coarse.buckets) count += in_bucket;
  EXPECT_EQ(count, fine.Take().count);

  Histogram one;
  one.Add(1000);
  Coarsen(one, coarse);
  for (int i = 0; i < PageHistogram::kBuckets; ++i) {
    if (coarse.buckets[static_cast<size_t>(i)] == 0) continue;
    EXPECT_LE(PageHistogram::EndOf(i - 1), 1000U);
    EXPECT_GT(PageHistogram::EndOf(i), 1000U);
  }
}

// Run under the thread sanitizer by `make tsan`.
TEST(PageWriterTest, AReaderNeverTakesHalfOfARecordWhileManyWrite) {
  const TestImage image("torn");
  const auto page = image.Publish();
  ASSERT_NE(page, nullptr);
  StatisticsWriter& writer = page->writer();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (uint64_t i = 1; !stop; ++i) {
      writer.Publish(AllEqual(i));
      if (i % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // a look finds no gap otherwise
    }
  });
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = t; !stop; i += 2) {
        writer.AddEvent(PageEventKind::kReset, ZoneId(static_cast<uint32_t>(i)), static_cast<int64_t>(i), i, i, i);
        writer.EndWait(writer.BeginWait(ZoneWriter::kFlush, WaitReason::kPace, 5), 5);
      }
    });
  }
  const auto reader = StatisticsReader::Open(image.device());
  ISOZONE_ASSERT_OK(reader.status());
  uint64_t last = 0;
  int read = 0;
  while (read < 300) {
    const auto statistics = (*reader)->Read();
    if (!statistics.ok()) continue;  // written each time
    ++read;
    const PageFigures& figures = statistics->figures;
    EXPECT_EQ(figures.syncs, static_cast<uint64_t>(figures.taken_ns));
    EXPECT_EQ(figures.metadata_copies_wanted, figures.syncs);
    EXPECT_EQ(figures.by_class[0].bytes_read, figures.syncs);
    EXPECT_GE(figures.syncs, last);
    last = figures.syncs;
    for (const EventView& event : statistics->events) {
      EXPECT_EQ(static_cast<uint64_t>(event.at_ns), event.a);
      EXPECT_EQ(event.a, event.c);
    }
    for (const WaitView& wait : statistics->waits) EXPECT_EQ(wait.since_ns, 5);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace isozone
