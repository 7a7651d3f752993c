#include "store/file/open_log.h"

#include <gtest/gtest.h>

#include "testing/test_volume.h"

namespace isozone {
namespace {

constexpr uint64_t kOpen = LogRegion::kOpen;

class OpenLogTest : public testing::Test {
 protected:
  // Returns a frame with `length` bytes of the file from `file_offset` on. It begins `at` bytes into `zone`.
  static FileExtent Frame(uint64_t file_offset, uint64_t length, uint32_t zone, uint64_t at) {
    return {file_offset, DeviceOffset(zone * kMiB + at + sizeof(LogFrameHeader)), length};
  }
  void AddRegion(const LogRegion& region, std::vector<FileExtent> frames, Status damage = {}) {
    log_.regions.push_back(region);
    LogScan& scan = scans_.emplace_back();
    for (const FileExtent& frame : frames) scan.payload += frame.length;
    scan.extents = std::move(frames);
    scan.damage = std::move(damage);
  }
  LogContents Join() {
    log_.id = InodeId(7);
    return JoinRegions(log_, scans_);
  }

  const DeviceGeometry geometry_ = SmallGeometry(8);
  Inode log_;
  std::vector<LogScan> scans_;
};

TEST_F(OpenLogTest, PutsFramesInFileOrder) {
  AddRegion({ZoneId(2), 0, kOpen, 0}, {Frame(0, 100, 2, 0), Frame(300, 50, 2, 4096)});
  AddRegion({ZoneId(3), 0, kOpen, 0}, {Frame(100, 200, 3, 0)});
  const LogContents log = Join();
  EXPECT_TRUE(log.damage.ok()) << log.damage.ToString();
  EXPECT_EQ(log.size, 350U);
  ASSERT_EQ(log.extents.size(), 3U);
  EXPECT_EQ(log.extents[1].file_offset, 100U);
}

TEST_F(OpenLogTest, AGapIsTheEndWhileARegionIsOpen) {
  AddRegion({ZoneId(2), 0, 8192, 150}, {Frame(0, 100, 2, 0), Frame(300, 50, 2, 4096)});
  AddRegion({ZoneId(3), 0, kOpen, 0}, {Frame(100, 100, 3, 0)});
  const LogContents log = Join();
  EXPECT_TRUE(log.damage.ok()) << log.damage.ToString();
  EXPECT_EQ(log.size, 200U);
  EXPECT_EQ(log.extents.size(), 2U);
}

TEST_F(OpenLogTest, AGapBetweenSealedRegionsIsDamage) {
  AddRegion({ZoneId(2), 0, 8192, 150}, {Frame(0, 100, 2, 0), Frame(300, 50, 2, 4096)});
  AddRegion({ZoneId(3), 0, 4096, 100}, {Frame(100, 100, 3, 0)});
  const LogContents log = Join();
  EXPECT_EQ(log.damage.message(), "log inode 7: a frame is missing; its bytes from 200 on are lost");
  EXPECT_EQ(log.size, 200U);
}

TEST_F(OpenLogTest, TheSameBytesTwiceAreDamage) {
  AddRegion({ZoneId(2), 0, kOpen, 0}, {Frame(0, 100, 2, 0)});
  AddRegion({ZoneId(3), 0, kOpen, 0}, {Frame(50, 100, 3, 0)});
  EXPECT_TRUE(Join().damage.Is(StatusCode::kCorruption));
}

TEST_F(OpenLogTest, DamageOfARegionIsThatOfTheLog) {
  AddRegion({ZoneId(2), 0, kOpen, 0}, {Frame(0, 100, 2, 0)}, Status::Corruption("a bad frame in zone 2 at 4096"));
  AddRegion({ZoneId(3), 0, kOpen, 0}, {Frame(100, 100, 3, 0)});
  EXPECT_EQ(Join().damage.message(), "log inode 7: a bad frame in zone 2 at 4096; its bytes from 200 on are lost");
  scans_[1].damage = Status::IoError("cannot read");
  EXPECT_TRUE(Join().damage.Is(StatusCode::kIoError)) << "it may be read another time";
}

TEST_F(OpenLogTest, SealsWhatTheLogConsistsOf) {
  // There are two regions in one zone, one that was sealed before and goes on behind its end, and one of which nothing
  // is left.
  AddRegion({ZoneId(2), 0, kOpen, 0}, {Frame(0, 100, 2, 0), Frame(100, 5000, 2, 4096)});
  AddRegion({ZoneId(2), 16384, kOpen, 0}, {Frame(5100, 10, 2, 16384)});
  AddRegion({ZoneId(3), 0, 8192, 20}, {Frame(5110, 10, 3, 0), Frame(6000, 10, 3, 4096)});
  AddRegion({ZoneId(4), 4096, kOpen, 0}, {Frame(5999, 1, 4, 4096)});
  const LogContents log = Join();
  EXPECT_EQ(log.size, 5120U);
  const SealedLog sealed = SealLog(geometry_, log_.regions, log.extents);
  ASSERT_EQ(sealed.regions.size(), 3U);
  EXPECT_EQ(sealed.regions[0].payload, 5100U);
  EXPECT_EQ(sealed.regions[0].end, 12288U);
  EXPECT_EQ(sealed.regions[1].payload, 10U);
  EXPECT_EQ(sealed.regions[1].end, 20480U);
  EXPECT_EQ(sealed.regions[2].payload, 10U);
  EXPECT_EQ(sealed.regions[2].end, 8192U);
  ASSERT_EQ(sealed.dropped.size(), 1U);
  EXPECT_EQ(sealed.dropped[0].zone, ZoneId(4));
  EXPECT_TRUE(sealed.dropped[0].open());
}

}  // namespace
}  // namespace isozone
