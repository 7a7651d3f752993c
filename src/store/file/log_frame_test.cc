#include "store/file/log_frame.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "device/passing_device.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

// Fails reads that touch one block, and passes everything else on.
class BadBlockDevice final : public PassingDevice {
 public:
  BadBlockDevice(ZonedDevice& device, uint64_t offset) : PassingDevice(device), offset_(offset) {}

  void Submit(DeviceRequest& request) override {
    const uint64_t begin = request.offset.value();
    if (request.op != DeviceOp::kRead || begin > offset_ || begin + request.length <= offset_) {
      return PassingDevice::Submit(request);
    }
    request.status = DeviceStatus::kUnrecoveredReadError;
    request.done(request);
  }

 private:
  const uint64_t offset_;
};

constexpr InodeId kInode{7};
constexpr ZoneId kZone{3};

// A zone with frames in it.
class LogFrameTest : public testing::Test {
 protected:
  explicit LogFrameTest(bool fua_covers_zone = false)
      : image_(EmulatedDevice::CreateInMemory(Geometry(fua_covers_zone)).value()),
        device_(EmulatedDevice::Open(image_.path(), OpenMode::kReadWrite, {}).value()),
        engine_(*device_) {}

  static DeviceGeometry Geometry(bool fua_covers_zone) {
    DeviceGeometry geometry = SmallGeometry(8);
    geometry.fua_covers_zone = fua_covers_zone;
    return geometry;
  }

  static void Seal(std::span<std::byte> frame, uint64_t file_offset, uint64_t region_begin) {
    const uint32_t crc = Crc32c(frame.subspan(sizeof(LogFrameHeader)), LogPayloadSeed(kSeed, kInode, file_offset));
    SealLogFrame(frame, kSeed, kInode, file_offset, region_begin, crc);
  }

  // Appends a frame with `payload`, or only its first `blocks` blocks, if given.
  void AddFrame(std::string_view payload, uint64_t blocks = UINT64_MAX) {
    const size_t used = sizeof(LogFrameHeader) + payload.size();
    AlignedBuffer frame(RoundUp(used, 4096));
    std::memset(frame.data(), 0, frame.size());
    std::memcpy(frame.data() + sizeof(LogFrameHeader), payload.data(), payload.size());
    Seal(frame.span().first(used), file_offset_, region_begin_);
    file_offset_ += payload.size();
    WriteBlocks(frame.span().first(std::min<uint64_t>(frame.size(), blocks == UINT64_MAX ? blocks : blocks * 4096)));
  }

  // Appends a whole frame, then the first `kept` of the three blocks of another one, and zeros in place of the rest.
  void AddLostFrame(uint64_t kept) {
    AddFrame("whole");
    if (kept > 0) AddFrame(std::string(10000, 'x'), kept);
    AlignedBuffer lost((3 - kept) * 4096);
    std::memset(lost.data(), 0, lost.size());
    WriteBlocks(lost.span());
  }
  void AddFrameOfAnotherRegion() {
    region_begin_ = write_pointer_;
    AddFrame("of another region");
  }

  void WriteBlocks(std::span<std::byte> bytes) {
    DeviceRequest request;
    request.op = DeviceOp::kWrite;
    request.offset = DeviceOffset(device_->geometry().ZoneStart(kZone).value() + write_pointer_);
    request.data = bytes.data();
    request.length = bytes.size();
    ASSERT_EQ(SubmitAndWait(*device_, request), DeviceStatus::kSuccess);
    write_pointer_ += bytes.size();
  }

  LogScan Scan(const LogRegion& region, InodeId inode = kInode, uint32_t seed = kSeed) {
    return ScanLogRegion(engine_, seed, inode, region, {kZone, ZoneState::kClosed, 0, write_pointer_});
  }

  static constexpr uint32_t kSeed = 99;
  MemoryImage image_;
  std::unique_ptr<EmulatedDevice> device_;
  IoEngine engine_;
  uint64_t write_pointer_ = 0;
  uint64_t file_offset_ = 0;
  uint64_t region_begin_ = 0;
  const LogRegion open_{kZone, 0};
};

class CoveringLogFrameTest : public LogFrameTest {
 protected:
  CoveringLogFrameTest() : LogFrameTest(/*fua_covers_zone=*/true) {}
};

TEST_F(LogFrameTest, FindsTheEndOfAnOpenRegion) {
  AddFrame("a");
  AddFrame(std::string(10000, 'b'));
  AddFrame(std::string(4096 - sizeof(LogFrameHeader), 'c'));  // a whole block
  const LogScan scan = Scan(open_);
  EXPECT_TRUE(scan.damage.ok()) << scan.damage.ToString();
  EXPECT_FALSE(scan.torn);
  EXPECT_EQ(scan.payload, 1 + 10000 + 4096 - sizeof(LogFrameHeader));
  EXPECT_EQ(scan.end, 5 * 4096u);
  ASSERT_EQ(scan.extents.size(), 3u);
  EXPECT_EQ(scan.extents[1].file_offset, 1u);
  EXPECT_EQ(scan.extents[1].device_offset.value(), 3 * kMiB + 4096 + sizeof(LogFrameHeader));
}

TEST_F(LogFrameTest, AnEmptyRegionIsEmpty) {
  const LogScan scan = Scan(open_);
  EXPECT_TRUE(scan.damage.ok());
  EXPECT_EQ(scan.payload, 0u);
}

TEST_F(LogFrameTest, ATornFrameIsTheNormalEnd) {
  AddFrame("whole");
  AddFrame(std::string(10000, 'x'), 2);
  const LogScan scan = Scan(open_);
  EXPECT_TRUE(scan.damage.ok());
  EXPECT_TRUE(scan.torn);
  EXPECT_EQ(scan.payload, 5u);
  EXPECT_EQ(scan.end, 4096u);
}

TEST_F(LogFrameTest, ZerosUpToTheCapacityOfAFullZoneAreALostTail) {
  AddFrame("whole");
  const uint64_t capacity = device_->geometry().zone_capacity;
  AddFrame(std::string(10000, 'x'), 2);  // its last block is lost
  const auto fill_with = [&](int value) {
    AlignedBuffer rest(capacity - write_pointer_);
    std::memset(rest.data(), value, rest.size());
    WriteBlocks(rest.span());
  };
  fill_with(0);
  EXPECT_TRUE(Scan(open_).damage.ok()) << Scan(open_).damage.ToString();
  EXPECT_TRUE(Scan(open_).torn);
  EXPECT_EQ(Scan(open_).payload, 5u);
  // In a region that has an end, the same bytes were once whole.
  EXPECT_FALSE(Scan(LogRegion{kZone, 0, capacity, 10005}).damage.ok());
}

TEST_F(CoveringLogFrameTest, OtherBytesUpToTheCapacityAreNot) {
  AddFrame("whole");
  AlignedBuffer rest(device_->geometry().zone_capacity - write_pointer_);
  std::memset(rest.data(), 0, rest.size());
  rest.data()[rest.size() - 1] = std::byte{1};
  WriteBlocks(rest.span());
  EXPECT_FALSE(Scan(open_).damage.ok());
}

// A power cut leaves this where another log was written durably behind a frame that was not durable.
TEST_F(LogFrameTest, ZerosBeforeAnotherRegionAreALostFrame) {
  for (const uint64_t kept : {0, 1, 2}) {
    SCOPED_TRACE(kept);
    const LogRegion region{kZone, region_begin_ = write_pointer_};
    AddLostFrame(kept);
    AddFrameOfAnotherRegion();
    const LogScan scan = Scan(region);
    EXPECT_TRUE(scan.damage.ok()) << scan.damage.ToString();
    EXPECT_TRUE(scan.torn);
    EXPECT_EQ(scan.payload, 5u);
    EXPECT_EQ(scan.end, region.begin + 4096);
  }
}

TEST_F(LogFrameTest, ZerosBeforeAFrameOfTheSameRegionAreDamage) {
  AddLostFrame(0);
  AddFrame("further on");
  EXPECT_FALSE(Scan(open_).damage.ok());
}

TEST_F(CoveringLogFrameTest, ZerosBeforeAnotherRegionAreDamage) {
  AddLostFrame(1);
  AddFrameOfAnotherRegion();
  EXPECT_FALSE(Scan(open_).damage.ok());
}

TEST_F(LogFrameTest, ReadsFramesLargerThanItsWindow) {
  const size_t large = 700 * kKiB;
  AddFrame(std::string(13, 'a'));
  AddFrame(std::string(large - 50000, 'b'));
  const LogScan scan = Scan(open_);
  EXPECT_TRUE(scan.damage.ok()) << scan.damage.ToString();
  EXPECT_EQ(scan.payload, 13 + large - 50000);
}

TEST_F(LogFrameTest, AnyOtherBytesAreDamageWithTheirPlace) {
  AddFrame("good");
  AlignedBuffer junk(4096);
  std::memset(junk.data(), 0xAB, junk.size());
  WriteBlocks(junk.span());
  AddFrame("after");
  const LogScan scan = Scan(open_);
  EXPECT_EQ(scan.damage.message(), "no valid frame header in zone 3 at 4096");
  EXPECT_EQ(scan.payload, 4u);
}

TEST_F(LogFrameTest, FramesMayBeMissingBetweenTwo) {
  AddFrame("one");
  file_offset_ += 100;
  AddFrame("two");
  const LogScan scan = Scan(open_);
  EXPECT_TRUE(scan.damage.ok());
  EXPECT_EQ(scan.payload, 6u);
  ASSERT_EQ(scan.extents.size(), 2u);
  EXPECT_EQ(scan.extents[1].file_offset, 103u);
}

TEST_F(LogFrameTest, AnOpenRegionEndsBeforeAFrameThatIsNotFurtherOn) {
  AddFrame("good");
  const uint64_t end = write_pointer_;
  file_offset_ -= 1;
  AddFrame("elsewhere");
  const LogScan scan = Scan(open_);
  EXPECT_TRUE(scan.damage.ok());
  EXPECT_FALSE(scan.torn);
  EXPECT_EQ(scan.end, end);
  EXPECT_EQ(Scan(open_, InodeId(8)).payload, 0u);
  EXPECT_FALSE(Scan(LogRegion{kZone, 0, write_pointer_, 13}).damage.ok());  // a sealed region must not end early
}

TEST_F(LogFrameTest, ARegionEndsWhereAnotherOfTheSameLogBegins) {
  AddFrame("first");
  const uint64_t second = region_begin_ = write_pointer_;
  AddFrame("second");
  EXPECT_TRUE(Scan(open_).damage.ok());
  EXPECT_EQ(Scan(open_).payload, 5u);
  EXPECT_EQ(Scan(open_).end, second);
  EXPECT_EQ(Scan(LogRegion{kZone, second}).payload, 6u);
}

TEST_F(LogFrameTest, AnOfflineZoneIsDamage) {
  AddFrame("one");
  const ZoneDescriptor offline{kZone, ZoneState::kOffline, 0, 0};
  EXPECT_TRUE(ScanLogRegion(engine_, kSeed, kInode, open_, offline).damage.Is(StatusCode::kIoError));
}

TEST_F(LogFrameTest, AFrameOfAnotherFormatIsDamage) {
  AddFrame("old");
  EXPECT_EQ(Scan(open_, kInode, kSeed + 1).damage.code(), StatusCode::kCorruption);
}

TEST_F(LogFrameTest, EveryFlippedBitOfAFrameIsFound) {
  const std::string payload = "0123456789";
  const size_t used = sizeof(LogFrameHeader) + payload.size();
  for (size_t bit = 0; bit < used * 8; ++bit) {
    const size_t at = bit / 8;
    AlignedBuffer frame(4096);
    std::memset(frame.data(), 0, frame.size());
    std::memcpy(frame.data() + sizeof(LogFrameHeader), payload.data(), payload.size());
    Seal(frame.span().first(used), 0, write_pointer_);
    frame.data()[at] ^= static_cast<std::byte>(1 << (bit % 8));
    const uint64_t begin = write_pointer_;
    WriteBlocks(frame.span());
    const LogScan scan = Scan(LogRegion{kZone, begin});
    // A length that grew past the write pointer cannot pass for a torn frame, since the header has a checksum of its
    // own.
    EXPECT_FALSE(scan.damage.ok()) << "bit " << bit;
    EXPECT_FALSE(scan.torn) << "bit " << bit;
    if (write_pointer_ + 4096 > device_->geometry().zone_capacity) {
      DeviceRequest reset;
      reset.op = DeviceOp::kReset;
      reset.offset = device_->geometry().ZoneStart(kZone);
      ASSERT_EQ(SubmitAndWait(*device_, reset), DeviceStatus::kSuccess);
      write_pointer_ = 0;
    }
  }
}

TEST_F(LogFrameTest, ASealedRegionMustBeWhole) {
  AddFrame("one");
  AddFrame("two");
  const uint64_t end = write_pointer_;
  EXPECT_TRUE(Scan(LogRegion{kZone, 0, end, 6}).damage.ok());
  EXPECT_EQ(Scan(LogRegion{kZone, 0, end, 6}).payload, 6u);
  EXPECT_FALSE(Scan(LogRegion{kZone, 0, end, 7}).damage.ok());
  EXPECT_FALSE(Scan(LogRegion{kZone, 0, end + 4096, 6}).damage.ok());
}

TEST_F(LogFrameTest, ACutLogEndsInsideAFrame) {
  AddFrame("one");
  AddFrame("two");
  const LogScan scan = Scan(LogRegion{kZone, 0, write_pointer_, 4});
  EXPECT_TRUE(scan.damage.ok());
  EXPECT_EQ(scan.payload, 4u);
  ASSERT_EQ(scan.extents.size(), 2u);
  EXPECT_EQ(scan.extents[1].length, 1u);
}

TEST_F(LogFrameTest, WhatIsBehindTheEndOfACutLogDoesNotMatter) {
  AddFrame("one");
  AddFrame("two");
  AlignedBuffer junk(4096);
  std::memset(junk.data(), 0xAB, junk.size());
  WriteBlocks(junk.span());
  AddFrame("three");
  for (const uint64_t payload : {3, 4, 6}) {
    const LogScan scan = Scan(LogRegion{kZone, 0, write_pointer_, payload});
    EXPECT_TRUE(scan.damage.ok()) << scan.damage.ToString();
    EXPECT_EQ(scan.payload, payload);
  }
  // A scan never finds more of a damaged log than it has.
  const LogScan scan = Scan(LogRegion{kZone, 0, write_pointer_, 7});
  EXPECT_FALSE(scan.damage.ok());
  EXPECT_EQ(scan.payload, 6U);
}

TEST_F(LogFrameTest, ABlockThatCannotBeReadHidesNothingBeforeIt) {
  for (const char* payload : {"one", "two", "three"}) AddFrame(payload);
  BadBlockDevice device(*device_, device_->geometry().ZoneStart(kZone).value() + 2 * device_->geometry().block_size);
  IoEngine engine(device);
  const ZoneDescriptor zone{kZone, ZoneState::kClosed, 0, write_pointer_};
  const LogScan cut = ScanLogRegion(engine, kSeed, kInode, LogRegion{kZone, 0, write_pointer_, 6}, zone);
  EXPECT_TRUE(cut.damage.ok()) << cut.damage.ToString();
  EXPECT_EQ(cut.payload, 6U);
  const LogScan whole = ScanLogRegion(engine, kSeed, kInode, LogRegion{kZone, 0, write_pointer_, 11}, zone);
  EXPECT_TRUE(whole.damage.Is(StatusCode::kIoError)) << whole.damage.ToString();
  EXPECT_EQ(whole.payload, 6U);
}

TEST_F(LogFrameTest, AReadErrorIsDamage) {
  AddFrame("one");
  for (int i = 0; i < 2; ++i) device_->FailNext(DeviceOp::kRead, kZone, DeviceStatus::kUnrecoveredReadError);
  EXPECT_EQ(Scan(open_).damage.code(), StatusCode::kIoError);
}

}  // namespace
}  // namespace isozone
