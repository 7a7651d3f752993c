#include "device/export/export_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/export/export_test_util.h"

namespace isozone {
namespace {

using testing::HasSubstr;

TEST(ExportShapeTest, SaysWhatTheDeviceIs) {
  auto shape = ShapeOf(ExportGeometry(), false);
  ISOZONE_ASSERT_OK(shape.status());
  const ublk::Parameters& parameters = shape->parameters;
  EXPECT_EQ(parameters.basic.attributes, ublk::kVolatileCache | ublk::kForceUnitAccess);
  EXPECT_EQ(parameters.basic.logical_block_shift, 12);
  EXPECT_EQ(parameters.basic.optimal_io_shift, 16) << "192 KiB is a multiple of 64 KiB";
  EXPECT_EQ(parameters.basic.chunk_sectors, kTestZoneSectors);
  EXPECT_EQ(parameters.basic.device_sectors, 16 * kTestZoneSectors);
  EXPECT_EQ(parameters.zoned.max_open_zones, 4U);
  EXPECT_EQ(parameters.zoned.max_active_zones, 6U);
  EXPECT_EQ(parameters.zoned.max_append_sectors, kMaxRequest / kKernelSector);
  EXPECT_EQ(shape->max_transfer, kMaxRequest);
  EXPECT_TRUE(SameShape(parameters, parameters));
}

TEST(ExportShapeTest, KeepsTheLimitsOfTheDevice) {
  DeviceGeometry geometry = ExportGeometry();
  geometry.block_size = 512;
  geometry.max_transfer = 130 * kKiB;
  geometry.max_append = 63 * kKiB + 512;
  geometry.max_open_zones = 0;
  geometry.max_active_zones = 100;
  auto shape = ShapeOf(geometry, true);
  ISOZONE_ASSERT_OK(shape.status());
  EXPECT_EQ(shape->parameters.basic.attributes & ublk::kReadOnly, ublk::kReadOnly);
  EXPECT_EQ(shape->parameters.basic.logical_block_shift, 9);
  EXPECT_EQ(shape->max_transfer, 128 * kKiB) << "whole pages";
  EXPECT_EQ(shape->parameters.zoned.max_append_sectors, 127U);
  EXPECT_EQ(shape->parameters.zoned.max_open_zones, 0U) << "no limit";
  EXPECT_EQ(shape->parameters.zoned.max_active_zones, 16U) << "at most the number of zones";
  EXPECT_FALSE(SameShape(ShapeOf(ExportGeometry(), false)->parameters, shape->parameters));
}

TEST(ExportShapeTest, RefusesWhatTheKernelDoesNotTake) {
  DeviceGeometry odd = ExportGeometry();
  odd.zone_size = 72 * kMiB;
  odd.zone_capacity = 72 * kMiB;
  const Status status = ShapeOf(odd, false).status();
  EXPECT_TRUE(status.Is(StatusCode::kNotSupported));
  EXPECT_THAT(std::string(status.message()), HasSubstr("zone_size=134217728&zone_capacity=75497472"));

  DeviceGeometry large_blocks = ExportGeometry();
  large_blocks.block_size = 16 * kKiB;
  EXPECT_TRUE(ShapeOf(large_blocks, false).status().Is(StatusCode::kNotSupported));

  DeviceGeometry short_transfers = ExportGeometry();
  short_transfers.block_size = 512;
  short_transfers.max_transfer = 2 * kKiB;
  EXPECT_TRUE(ShapeOf(short_transfers, false).status().Is(StatusCode::kNotSupported));

  DeviceGeometry huge = ExportGeometry();
  huge.zone_size = huge.zone_capacity = 4 * kTiB;
  EXPECT_TRUE(ShapeOf(huge, false).status().Is(StatusCode::kNotSupported));
}

}  // namespace
}  // namespace isozone
