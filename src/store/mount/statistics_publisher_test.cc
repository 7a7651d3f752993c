#include "store/mount/statistics_publisher.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "insight/stats/page_reader.h"
#include "store/file_system.h"
#include "store/inode_files.h"
#include "store/mount/statistics_at_rest.h"
#include "store/positional_file.h"
#include "testing/manual_clock.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

// Puts `bytes` bytes into a file of `volume`.
void Put(TestVolume& volume, const std::string& path, size_t bytes) {
  CreateOptions options;
  options.io_class = IoClass::kFlush;
  options.level = 2;
  auto writer = volume.fs().Create(path, options);
  ISOZONE_ASSERT_OK(writer.status());
  Random random(bytes);
  ISOZONE_ASSERT_OK((*writer)->Append(Bytes(RandomBytes(random, bytes))));
  ISOZONE_ASSERT_OK((*writer)->Sync());
  ISOZONE_ASSERT_OK((*writer)->Close());
}

// Writes a few bytes of a file in place, durably.
void OverwriteSome(TestVolume& volume, std::string_view name) {
  InodeFiles& inodes = volume.fs().inodes();
  const auto found = inodes.Lookup(InodeFiles::kRoot, name);
  ISOZONE_ASSERT_OK(found.status());
  const auto file = inodes.Open(found->inode);
  ISOZONE_ASSERT_OK(file.status());
  ISOZONE_ASSERT_OK((*file)->Write(kMiB, Bytes("in place")));
  ISOZONE_ASSERT_OK((*file)->Sync());
}

// Looks until the figures are those of `clock` or later: its thread publishes them soon. A thread that begins to wait
// only now sees time go on again.
Statistics LookAfter(const StatisticsReader& reader, ManualClock& clock) {
  constexpr int kLooks = 1000;
  for (const int64_t asked_ns = clock.NowNs();; clock.Advance(kFiguresIntervalNs)) {
    for (int i = 0; i < kLooks; ++i) {
      auto look = reader.Read();
      if (look.ok() && look->figures.taken_ns >= asked_ns) return std::move(look).value();
    }
  }
}

TEST(StatisticsPublisherTest, APageTellsWhatTheMountKnows) {
  ManualClock clock;
  TestVolume volume;
  ISOZONE_ASSERT_OK(volume.Mount({}, clock));
  const auto reader = StatisticsReader::Open(volume.fs().state().device().name());
  ISOZONE_ASSERT_OK(reader.status());
  Put(volume, "/file", 3 * kMiB);
  Put(volume, "/dies", 3 * kMiB);
  ISOZONE_ASSERT_OK(volume.fs().Unlink("/dies"));
  OverwriteSome(volume, "file");
  ISOZONE_ASSERT_OK(volume.fs().state().Settle());
  clock.Advance(kFiguresIntervalNs);
  const Statistics page = LookAfter(**reader, clock);

  EXPECT_EQ(page.life, PageLife::kMounted);
  EXPECT_EQ(page.uuid, volume.fs().state().uuid());
  EXPECT_EQ(page.policy, "isozone");
  const Figures stats = volume.fs().state().Stats();
  const SpaceInfo space = volume.fs().state().Space();
  EXPECT_EQ(page.figures.user_bytes_appended, stats.user_bytes_appended);
  EXPECT_EQ(page.figures.journal_bytes, stats.journal_bytes);
  EXPECT_EQ(page.figures.WriteAmplification(), stats.WriteAmplification());
  EXPECT_EQ(page.figures.zone_resets, stats.zone_resets);
  EXPECT_GT(page.figures.zone_resets, 0U);
  EXPECT_EQ(page.figures.live, space.live);
  EXPECT_EQ(page.figures.free, space.free);
  EXPECT_EQ(page.figures.empty_zones, space.empty_zones);
  const auto flush = static_cast<size_t>(IoClass::kFlush);
  EXPECT_EQ(page.figures.by_class[flush].bytes_written, stats.by_class[flush].bytes_written);
  EXPECT_EQ(page.Writes(IoClass::kFlush).count, stats.by_class[flush].writes);
  EXPECT_EQ(page.figures.zone_reset_bytes, stats.zone_reset_bytes);
  EXPECT_GT(page.figures.zone_reset_bytes, 0U);
  EXPECT_GT(page.figures.zones_died, 0U);
  EXPECT_GT(page.figures.zones_begun[static_cast<size_t>(ZoneWriter::kFlush)], 0U);
  EXPECT_EQ(std::ranges::count(page.events, PageEventKind::kReset, &EventView::kind),
            static_cast<std::ptrdiff_t>(page.figures.zone_resets));

  const std::vector<ZoneView> zones = volume.fs().state().Zones();
  ASSERT_EQ(page.zones.size(), zones.size());
  for (size_t i = 0; i < zones.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(page.zones[i].use, zones[i].use);
    EXPECT_EQ(page.zones[i].live, RoundUp(zones[i].live, page.block_size) / page.block_size);
    EXPECT_EQ(page.zones[i].data.level, zones[i].level);
    const bool finished = page.zones[i].phase == ZonePhase::kFull;
    EXPECT_TRUE(finished || uint64_t{page.zones[i].write_pointer} * page.block_size == zones[i].device.write_pointer);
  }
}

TEST(StatisticsPublisherTest, ThePageGoesWithTheMount) {
  TestVolume volume;
  ISOZONE_ASSERT_OK(volume.Mount());
  const std::string device = volume.fs().state().device().name();
  const auto reader = StatisticsReader::Open(device);
  ISOZONE_ASSERT_OK(reader.status());
  ISOZONE_ASSERT_OK(volume.fs().Unmount());
  EXPECT_EQ((*reader)->Life(), PageLife::kUnmounted);
  EXPECT_TRUE(StatisticsReader::Open(device).status().Is(StatusCode::kNotFound));
}

TEST(StatisticsPublisherTest, WhoOnlyReadsPublishesNothingAndKnowsWhatItDoes) {
  TestVolume volume;
  ISOZONE_ASSERT_OK(volume.Mount());
  Put(volume, "/file", 3 * kMiB);
  MountOptions options;
  options.read_only = true;
  ISOZONE_ASSERT_OK(volume.Mount(options));
  const std::string device = volume.fs().state().device().name();
  EXPECT_TRUE(StatisticsReader::Open(device).status().Is(StatusCode::kNotFound));
  const auto reader = volume.fs().OpenForRead("/file");
  ISOZONE_ASSERT_OK(reader.status());
  std::vector<std::byte> buffer(kMiB);
  ISOZONE_ASSERT_OK((*reader)->Read(0, buffer, IoClass::kUserRead).status());
  const auto look = volume.fs().Look();
  ISOZONE_ASSERT_OK(look.status());
  EXPECT_EQ(look->life, PageLife::kMounted);
  EXPECT_EQ(look->figures.by_class[static_cast<size_t>(IoClass::kUserRead)].bytes_read, kMiB);
  EXPECT_EQ(look->figures.live, volume.fs().state().Space().live);
  EXPECT_EQ(look->Reads(IoClass::kUserRead).count,
            look->figures.by_class[static_cast<size_t>(IoClass::kUserRead)].reads);
  EXPECT_GT(look->Reads(IoClass::kUserRead).count, 0U);
}

TEST(StatisticsPublisherTest, AProcessSeesItsOwnPageAsOfNow) {
  ManualClock clock;  // so that nobody else publishes
  TestVolume volume;
  ISOZONE_ASSERT_OK(volume.Mount({}, clock));
  Put(volume, "/short-lived", 3 * kMiB);
  ISOZONE_ASSERT_OK(volume.fs().Unlink("/short-lived"));
  ISOZONE_ASSERT_OK(volume.fs().state().Settle());
  const auto look = volume.fs().Look();
  ISOZONE_ASSERT_OK(look.status());
  EXPECT_EQ(look->life, PageLife::kMounted);
  EXPECT_GE(look->figures.user_bytes_appended, 3 * kMiB);
  EXPECT_GT(look->Writes(IoClass::kFlush).count, 0U);
  EXPECT_GT(look->DeletionDelay(Lifetime::kNotSet).count, 0U);
  ISOZONE_ASSERT_OK(volume.fs().Unmount());
  const auto last = volume.fs().Look();
  ISOZONE_ASSERT_OK(last.status());
  EXPECT_EQ(last->life, PageLife::kUnmounted);
  EXPECT_GE(last->figures.user_bytes_appended, 3 * kMiB);
}

TEST(StatisticsPublisherTest, ADeviceAtRestTellsWhatLiesOnIt) {
  TestVolume volume;
  ISOZONE_ASSERT_OK(volume.Mount());
  Put(volume, "/file", 3 * kMiB);
  ISOZONE_ASSERT_OK(volume.fs().state().Settle());
  const Statistics rest = StatisticsAtRest(volume.fs(), Clock::Real());
  const SpaceInfo space = volume.fs().state().Space();
  EXPECT_EQ(rest.life, PageLife::kUnmounted);
  EXPECT_EQ(rest.figures.live, space.live);
  EXPECT_EQ(rest.figures.user_bytes_appended, 0U);
  EXPECT_EQ(static_cast<uint64_t>(std::ranges::count(rest.zones, ZonePhase::kEmpty, &PageZone::phase)),
            static_cast<uint64_t>(std::ranges::count(volume.fs().state().Zones(), ZoneState::kEmpty,
                                                     [](const ZoneView& zone) { return zone.device.state; })));
  EXPECT_TRUE(std::ranges::any_of(rest.zones, [](const PageZone& zone) { return zone.data.level == 2; }));
}

}  // namespace
}  // namespace isozone
