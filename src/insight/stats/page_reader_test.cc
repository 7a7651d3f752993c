#include "insight/stats/page_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "insight/stats/stats_test_util.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

// What a reader makes of a page with these bytes under the name of `image`.
Status OpenStatus(const TestImage& image, std::span<const std::byte> bytes) {
  std::ofstream(image.page_path(), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const Status status = StatisticsReader::Open(image.device()).status();
  ::unlink(image.page_path().c_str());
  return status;
}

TEST(PageReaderTest, WhatAnotherWritesIsRead) {
  const TestImage image("reads");
  PageHeader header = TestHeader();
  header.device = {'e', 'm', 'u', ':', 'x'};
  const auto page = image.Publish(header);
  const auto reader = StatisticsReader::Open(image.path());
  ISOZONE_ASSERT_OK(reader.status());
  const auto statistics = (*reader)->Read();
  ISOZONE_ASSERT_OK(statistics.status());
  EXPECT_EQ(statistics->life, PageLife::kMounted);
  EXPECT_EQ(statistics->device, "emu:x");
  EXPECT_EQ(statistics->process.pid, static_cast<uint32_t>(::getpid()));
}

TEST(PageReaderTest, ADeviceThatNobodyMountsHasNone) {
  const TestImage image("none");
  EXPECT_TRUE(StatisticsReader::Open(image.device()).status().Is(StatusCode::kNotFound));
  EXPECT_TRUE(StatisticsReader::Open("emu:/no/such/image").status().Is(StatusCode::kNotFound));
}

TEST(PageReaderTest, AnOpenPageTellsThatTheMountHasEnded) {
  const TestImage image("ends");
  auto page = image.Publish();
  const auto reader = StatisticsReader::Open(image.device());
  ISOZONE_ASSERT_OK(reader.status());
  page.reset();
  EXPECT_EQ((*reader)->Life(), PageLife::kUnmounted);
  EXPECT_TRUE(StatisticsReader::Open(image.device()).status().Is(StatusCode::kNotFound));
}

TEST(PageReaderTest, AnotherVersionIsRefusedInOneLine) {
  const TestImage image("version");
  MemoryPage page;
  std::vector<std::byte> bytes = page.Copy();
  bytes[offsetof(PageHeader, version)] = std::byte{99};
  const Status status = OpenStatus(image, bytes);
  EXPECT_TRUE(status.Is(StatusCode::kNotSupported)) << status.ToString();
  EXPECT_NE(status.message().find("version 99"), std::string::npos);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

TEST(PageReaderTest, WhatIsCutOffOrNoPageIsRefused) {
  const TestImage image("cut");
  MemoryPage page;
  const std::vector<std::byte> bytes = page.Copy();
  for (const size_t size : {size_t{0}, size_t{7}, sizeof(PageHeader) - 1, sizeof(PageHeader), bytes.size() - 1}) {
    EXPECT_TRUE(OpenStatus(image, std::span(bytes).first(size)).Is(StatusCode::kCorruption)) << size;
  }
  EXPECT_TRUE(OpenStatus(image, std::vector<std::byte>(100'000, std::byte{'x'})).Is(StatusCode::kCorruption));
}

TEST(PageReaderTest, WhatIsNoPlainFileIsRefused) {
  const TestImage image("fifo");
  ASSERT_EQ(::mkfifo(image.page_path().c_str(), 0600), 0);
  EXPECT_FALSE(StatisticsReader::Open(image.device()).ok());
  ::unlink(image.page_path().c_str());
  ASSERT_EQ(::symlink(image.path().c_str(), image.page_path().c_str()), 0);
  EXPECT_FALSE(StatisticsReader::Open(image.device()).ok());
  ::unlink(image.page_path().c_str());
}

TEST(PageReaderTest, APageThatShrinksWhileItIsReadHarmsNobody) {
  const TestImage image("shrinks");
  const auto page = image.Publish(TestHeader(1000, 2));
  const auto reader = StatisticsReader::Open(image.device());
  ISOZONE_ASSERT_OK(reader.status());
  const auto whole = (*reader)->Read();
  ISOZONE_ASSERT_OK(whole.status());
  EXPECT_EQ(whole->zones.size(), 1000U);
  ASSERT_EQ(::truncate(image.page_path().c_str(), sizeof(PageHeader)), 0);
  EXPECT_TRUE((*reader)->Read().status().Is(StatusCode::kBusy));
  // So that the writer, which says at its end that it ends, does not meet what is not there any more.
  ASSERT_EQ(::truncate(image.page_path().c_str(), static_cast<off_t>(PageLayout::Size(1000, 2))), 0);
}

TEST(PageReaderTest, AnyBytesGiveValidEnumerators) {
  const uint64_t seed = TestSeed(2301);
  SCOPED_TRACE(seed);
  Random random(seed);
  MemoryPage page;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> bytes = page.Copy();
    for (size_t at = sizeof(PageHeader); at < bytes.size(); ++at) bytes[at] = static_cast<std::byte>(random.Next());
    // Otherwise nearly all sequences are odd.
    for (size_t at = PageLayout::kFigures; at < PageLayout::kRecentReads; at += 8) bytes[at] &= std::byte{0xFE};
    const auto read = MemoryPage::Decode(bytes, bytes, bytes);
    ISOZONE_ASSERT_OK(read.status());
    for (const WaitView& wait : read->waits) EXPECT_FALSE(ExplainWait(wait, *read).empty());
    for (const EventView& event : read->events) EXPECT_FALSE(DescribeEvent(event).empty());
    for (const PageZone& zone : read->zones) EXPECT_FALSE(ZonePhaseName(zone.phase).empty());
    for (const LatencyFigures& latency : read->latencies) EXPECT_GE(latency.Percentile(99), 0);
  }
}

}  // namespace
}  // namespace isozone
