#include "isozone/zenfs/zenfs_device.h"

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "device/linux/linux_device.h"
#include "testing/assert_ok.h"
#include "testing/fake_zoned_disk.h"

namespace isozone::cli {
namespace {

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kZoneSize = 16 * kBlock;
constexpr uint32_t kConventional = 2;
constexpr uint32_t kZones = 10;

template <typename T>
std::string Fixed(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
// Shorter than 128 bytes.
std::string Sized(std::string_view bytes) { return static_cast<char>(bytes.size()) + std::string(bytes); }

std::string Record(const std::string& payload) {
  const std::string covered = Fixed(static_cast<uint32_t>(payload.size())) + payload;
  const uint32_t crc = Crc32c(covered.data(), covered.size());
  std::string record = Fixed((crc >> 15 | crc << 17) + 0xa282ead8) + covered;
  record.resize(RoundUp(record.size(), kBlock));
  return record;
}

std::string Superblock(uint32_t zone_count) {
  std::string payload = Fixed(0x5a454e46U) + std::string(37, 'u');
  for (const uint32_t field : {1U, 2U, 0U, uint32_t{kBlock}, uint32_t{kZoneSize / kBlock}, zone_count, 0U}) {
    payload += Fixed(field);
  }
  payload.resize(ZenFsSuperblock::kSize);
  return Record(payload);
}

// Of one file with one extent.
std::string Snapshot(uint64_t start, uint64_t length) {
  const std::string file = Fixed(1U) + Fixed(uint64_t{1}) + Fixed(3U) + Fixed(length) + Fixed(5U) +
                           Sized(Fixed(start) + Fixed(length)) + Fixed(9U) + Sized("/db/1.sst");
  return Record(Fixed(1U) + Sized(Sized(file)));
}

// ZenFS counts the conventional zones of a disk, and Isozone does not.
class ConventionalZonesTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeDiskShape shape;
    shape.zones = {.block_size = kBlock,
                   .zone_count = kZones,
                   .zone_size = kZoneSize,
                   .zone_capacity = kZoneSize,
                   .max_open_zones = 6,
                   .max_active_zones = 8,
                   .max_transfer = kZoneSize,
                   .optimal_write = kBlock};
    shape.conventional = kConventional;
    disk_ = std::make_unique<FakeZonedDisk>(shape);
    auto opened = LinuxDevice::Create("dev:fake", OpenMode::kReadWrite, disk_->Open(), disk_->facts());
    ISOZONE_ASSERT_OK(opened.status());
    device_ = std::move(*opened);
  }

  // `zone` as Isozone counts it.
  void Write(uint32_t zone, std::string_view bytes) {
    AlignedBuffer buffer(RoundUp(bytes.size(), kBlock));
    std::memset(buffer.data(), 0, buffer.size());
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    DeviceRequest request;
    request.op = DeviceOp::kWrite;
    request.offset = device_->geometry().ZoneStart(ZoneId(zone));
    request.data = buffer.data();
    request.length = buffer.size();
    ASSERT_EQ(SubmitAndWait(*device_, request), DeviceStatus::kSuccess);
  }

  std::unique_ptr<FakeZonedDisk> disk_;
  std::unique_ptr<LinuxDevice> device_;
};

TEST_F(ConventionalZonesTest, FilesAreFoundWhereZenFsHasThem) {
  Write(4, "the content");
  Write(0, Superblock(kConventional + kZones) + Snapshot((kConventional + 4) * kZoneSize, 11));
  const auto files = ReadZenFs(*device_);
  ISOZONE_ASSERT_OK(files.status());
  ASSERT_EQ(files->size(), 1U);
  std::string content;
  ISOZONE_ASSERT_OK(ReadZenFsFile(*device_, files->front(), [&](std::span<const std::byte> data) {
    content.append(reinterpret_cast<const char*>(data.data()), data.size());
    return Status::Ok();
  }));
  EXPECT_EQ(content, "the content");
}

TEST_F(ConventionalZonesTest, AnExtentInOneOfThemIsRefused) {
  Write(0, Superblock(kConventional + kZones) + Snapshot(kZoneSize, 11));
  EXPECT_TRUE(ReadZenFs(*device_).status().Is(StatusCode::kCorruption));
}

TEST_F(ConventionalZonesTest, ASuperblockOfMoreZonesIsRefused) {
  Write(0, Superblock(kConventional + kZones + 1) + Snapshot((kConventional + 4) * kZoneSize, 11));
  EXPECT_TRUE(ReadZenFs(*device_).status().Is(StatusCode::kCorruption));
}

// An import reads every update that a file has had since the last snapshot.
TEST(ZenFsFilesTest, AnUpdateDoesNotCopyTheExtentsBeforeIt) {
  constexpr uint64_t kUpdates = 10'000;
  ZenFsFiles files;
  ISOZONE_ASSERT_OK(files.Apply(Fixed(1U) + Sized("")).status());
  const ZenFsExtent* where = nullptr;
  int copies = 0;
  for (uint64_t i = 0; i < kUpdates; ++i) {
    const std::string update = Fixed(1U) + Fixed(uint64_t{7}) + Fixed(3U) + Fixed((i + 1) * kBlock) + Fixed(5U) +
                               Sized(Fixed(i * kBlock) + Fixed(kBlock)) + Fixed(9U) + Sized("/db/7.sst");
    ISOZONE_ASSERT_OK(files.Apply(Fixed(2U) + Sized(update)).status());
    const std::vector<ZenFsExtent>& extents = files.files().at(7).extents;
    ASSERT_EQ(extents.size(), i + 1);
    ASSERT_EQ(extents.back().start, i * kBlock);
    copies += std::exchange(where, extents.data()) != extents.data() ? 1 : 0;
  }
  EXPECT_LT(copies, 64) << "more than a growing list takes";
}

}  // namespace
}  // namespace isozone::cli
