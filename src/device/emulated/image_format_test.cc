#include "device/emulated/image_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/random.h"

namespace isozone {
namespace {

using testing::HasSubstr;

ImageInfo Info() {
  ImageInfo info;
  info.uuid = {1, 2, 3};
  info.created_s = 1'700'000'000;
  info.geometry = {.block_size = 512,
                   .zone_count = 10,
                   .zone_size = 64 * kKiB,
                   .zone_capacity = 48 * kKiB,
                   .max_open_zones = 3,
                   .max_active_zones = 5,
                   .max_transfer = 16 * kKiB,
                   .max_append = 8 * kKiB,
                   .optimal_write = 4 * kKiB,
                   .fua_covers_zone = true};
  info.profile_text = "name = test\n";
  return info;
}

std::vector<std::byte> Header() {
  auto header = FormatImageHeader(Info());
  EXPECT_TRUE(header.ok());
  return *header;
}

TEST(ImageHeader, ReadsBackWhatWasWritten) {
  const auto read = ParseImageHeader(Header());
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->uuid, Info().uuid);
  EXPECT_EQ(read->created_s, Info().created_s);
  EXPECT_EQ(read->profile_text, Info().profile_text);
  const DeviceGeometry& g = read->geometry;
  EXPECT_EQ(std::tuple(g.block_size, g.zone_count, g.zone_size, g.zone_capacity), std::tuple(512, 10, 65536, 49152));
  EXPECT_EQ(std::tuple(g.max_open_zones, g.max_active_zones), std::tuple(3, 5));
  EXPECT_TRUE(g.fua_covers_zone);
  EXPECT_EQ(std::tuple(g.max_transfer, g.max_append, g.optimal_write), std::tuple(16384, 8192, 4096));
  EXPECT_FALSE(read->timing_off);
  EXPECT_FALSE(read->sync_disk);
}

TEST(ImageHeader, ReadsBackHowTheDeviceIsRun) {
  ImageInfo info = Info();
  info.timing_off = true;
  EXPECT_TRUE(ParseImageHeader(*FormatImageHeader(info))->timing_off);
  EXPECT_FALSE(ParseImageHeader(*FormatImageHeader(info))->sync_disk);
  info.sync_disk = true;
  EXPECT_TRUE(ParseImageHeader(*FormatImageHeader(info))->sync_disk);
}

TEST(ImageHeader, TellsOtherFilesFromDamagedImages) {
  auto header = Header();
  EXPECT_THAT(ParseImageHeader({}).status().ToString(), HasSubstr("not an image"));
  EXPECT_THAT(ParseImageHeader(std::span(header).first(5000)).status().ToString(), HasSubstr("cut off"));
  header[0] ^= std::byte{1};
  EXPECT_THAT(ParseImageHeader(header).status().ToString(), HasSubstr("not an image"));
}

TEST(ImageHeader, IsKnownByItsFirstBytes) {
  auto header = Header();
  EXPECT_TRUE(BeginsImage(header));
  header.back() ^= std::byte{1};
  EXPECT_TRUE(BeginsImage(header)) << "a damaged one";
  EXPECT_FALSE(BeginsImage(std::span(header).first(7)));
  header[0] ^= std::byte{1};
  EXPECT_FALSE(BeginsImage(header));
}

TEST(ImageLayout, TellsHowManyZonesFit) {
  DeviceGeometry geometry = Info().geometry;
  for (const uint64_t zone_size : {64 * kKiB, 3 * kMiB, 1 * kGiB}) {
    geometry.zone_size = zone_size;
    for (const uint64_t bytes : {3 * kMiB, 5 * kMiB, 40 * kGiB, 40 * kGiB + 1, uint64_t{1} << 42}) {
      const uint32_t zones = ZonesThatFit(geometry, bytes);
      geometry.zone_count = zones;
      if (zones > 0) {
        EXPECT_LE(ImageLayout(geometry).file_size, bytes);
      }
      geometry.zone_count = zones + 1;
      if (zones < kMaxZoneCount) {
        EXPECT_GT(ImageLayout(geometry).file_size, bytes) << zone_size << " " << bytes;
      }
    }
  }
  EXPECT_EQ(ZonesThatFit(geometry, 0), 0U);
}

TEST(ImageHeader, RefusesAnotherVersionByNumber) {
  auto header = Header();
  header[offsetof(ImageHeader, version)] = std::byte{7};
  const Status status = ParseImageHeader(header).status();
  EXPECT_EQ(status.code(), StatusCode::kNotSupported);
  EXPECT_THAT(status.ToString(), HasSubstr("format version 7"));
}

TEST(ImageHeader, FindsEveryFlippedBit) {
  const auto header = Header();
  for (size_t bit = 0; bit < sizeof(ImageHeader) * 8; ++bit) {
    auto damaged = header;
    damaged[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_FALSE(ParseImageHeader(damaged).ok()) << "bit " << bit;
  }
  auto damaged = header;
  damaged[kProfileTextOffset + 3] ^= std::byte{4};
  EXPECT_THAT(ParseImageHeader(damaged).status().ToString(), HasSubstr("damaged"));
}

TEST(ImageHeader, RefusesAGeometryThatNoDeviceHas) {
  const auto refused = [](auto change, const char* message) {
    ImageInfo info = Info();
    change(info.geometry);
    EXPECT_THAT(FormatImageHeader(info).status().ToString(), HasSubstr(message));
  };
  refused([](DeviceGeometry& g) { g.block_size = 1000; }, "block size of 1000");
  refused([](DeviceGeometry& g) { g.zone_count = 0; }, "zone count of 0");
  refused([](DeviceGeometry& g) { g.zone_size = 100; }, "zone size of 100");
  refused([](DeviceGeometry& g) { g.zone_capacity = g.zone_size + g.block_size; }, "zone capacity of 66048");
  refused([](DeviceGeometry& g) { g.max_open_zones = 6; }, "open zone limit of 6");
  refused([](DeviceGeometry& g) { g.max_append = 100; }, "append limit of 100");
  refused([](DeviceGeometry& g) { g.optimal_write = 0; }, "optimal write size of 0");
  refused(
      [](DeviceGeometry& g) {
        g.zone_count = kMaxZoneCount;
        g.zone_size = kMaxZoneSize;
      },
      "larger than 1 EiB");
}

TEST(ImageHeader, RefusesAProfileThatDoesNotFit) {
  ImageInfo info = Info();
  info.profile_text.assign(kHeaderBlockSize, 'x');
  EXPECT_THAT(FormatImageHeader(info).status().ToString(), HasSubstr("too long"));
}

TEST(ImageLayout, AlignsDataAndZonesToHugePages) {
  DeviceGeometry geometry = Info().geometry;
  geometry.zone_count = 29'172;
  geometry.zone_capacity = 3 * kMiB;
  const ImageLayout layout(geometry);
  EXPECT_EQ(layout.zone_stride, 4 * kMiB);
  EXPECT_EQ(layout.data_offset, 2 * kMiB);
  EXPECT_EQ(layout.file_size, layout.data_offset + 29'172 * layout.zone_stride);
}

TEST(ZoneTable, IsCheckedZoneByZone) {
  const DeviceGeometry geometry = Info().geometry;
  std::vector<ZoneEntry> table(geometry.zone_count);
  const auto check = [&](ZoneContent content) {
    for (ZoneEntry& entry : table) StoreContent(entry, {ZoneState::kEmpty, 0});
    StoreContent(table[7], content);
    return CheckZoneTable(geometry, table).ToString();
  };
  EXPECT_EQ(check({ZoneState::kFull, geometry.zone_capacity}), "OK");
  EXPECT_EQ(check({ZoneState::kFull, 512}), "OK") << "finished early";
  EXPECT_EQ(check({ZoneState::kReadOnly, geometry.zone_capacity}), "OK");
  EXPECT_THAT(check({static_cast<ZoneState>(0x77), 0}), HasSubstr("zone 7 has an unknown state (state 0x77"));
  EXPECT_THAT(check({ZoneState::kEmpty, 512}), HasSubstr("is empty and has data"));
  EXPECT_THAT(check({ZoneState::kClosed, 100}), HasSubstr("inside a block"));
  EXPECT_THAT(check({ZoneState::kFull, geometry.zone_capacity + 512}), HasSubstr("more written than its capacity"));
  EXPECT_THAT(check({ZoneState::kClosed, geometry.zone_capacity}), HasSubstr("written up and not full"));
  table[7].allocated = geometry.zone_size + 1;
  StoreContent(table[7], {ZoneState::kEmpty, 0});
  EXPECT_THAT(CheckZoneTable(geometry, table).ToString(), HasSubstr("blocks beyond its end"));
}

}  // namespace
}  // namespace isozone
