#include "device/export/export_shape.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/units.h"
#include "device/linux/block_kernel.h"

namespace isozone {
namespace {

constexpr uint32_t kPage = 4096;  // the largest logical block, and the unit of the longest request
// The kernel counts the sectors of a zone in 32 bits.
constexpr uint64_t kLargestZone = kTiB;

uint8_t ShiftOf(uint64_t power_of_two) { return static_cast<uint8_t>(std::countr_zero(power_of_two)); }

// A limit as the kernel takes it.
uint32_t Limit(uint32_t zones, uint32_t zone_count) { return std::min(zones, zone_count); }

// 0 is no limit of the device.
uint32_t Shorter(uint64_t limit) {
  return static_cast<uint32_t>(limit == 0 ? kMaxRequest : std::min<uint64_t>(limit, kMaxRequest));
}

Status Check(const DeviceGeometry& geometry) {
  if (!std::has_single_bit(geometry.zone_size) || geometry.zone_size > kLargestZone) {
    const uint64_t next = std::bit_ceil(geometry.zone_size);
    return Status::NotSupported(fmt::format(
        "the kernel takes zones whose size is a power of two, up to 1 TiB, and these have {} bytes; make the "
        "device with zone_size={}&zone_capacity={}",
        geometry.zone_size, std::min(next, kLargestZone), std::min(geometry.zone_capacity, kLargestZone)));
  }
  if (geometry.block_size > kPage) {
    return Status::NotSupported(fmt::format(
        "the kernel takes blocks of at most {} bytes, and these have {}; make the device with block_size={}", kPage,
        geometry.block_size, kPage));
  }
  if (geometry.zone_size < kPage) return Status::NotSupported("the zones are smaller than a page of memory");
  return Status::Ok();
}

}  // namespace

Result<ExportShape> ShapeOf(const DeviceGeometry& geometry, bool read_only) {
  ISOZONE_RETURN_IF_ERROR(Check(geometry));
  ExportShape shape;
  const auto longest = static_cast<uint32_t>(std::min<uint64_t>(Shorter(geometry.max_transfer), geometry.zone_size));
  shape.max_transfer = static_cast<uint32_t>(RoundDown(longest, kPage));
  const auto append =
      static_cast<uint32_t>(RoundDown(std::min(Shorter(geometry.max_append), shape.max_transfer), geometry.block_size));
  if (shape.max_transfer == 0 || append == 0) {
    return Status::NotSupported(
        fmt::format("the device takes at most {} bytes at once, and the kernel sends pages of {}",
                    std::min(longest, append), kPage));
  }
  const uint8_t block = ShiftOf(geometry.block_size);
  // The largest power of two of which the good size of a write is a multiple.
  const uint64_t good = geometry.optimal_write & (~geometry.optimal_write + 1);

  ublk::BasicParameters& basic = shape.parameters.basic;
  shape.parameters.types = ublk::kBasicParameters | ublk::kZonedParameters;
  basic.attributes = ublk::kVolatileCache | ublk::kForceUnitAccess | (read_only ? ublk::kReadOnly : 0);
  basic.logical_block_shift = basic.physical_block_shift = basic.minimal_io_shift = block;
  basic.optimal_io_shift = std::max(block, ShiftOf(std::clamp<uint64_t>(good, 1, shape.max_transfer)));
  basic.max_sectors = static_cast<uint32_t>(shape.max_transfer / kKernelSector);
  basic.chunk_sectors = static_cast<uint32_t>(geometry.zone_size / kKernelSector);
  basic.device_sectors = geometry.zone_count * geometry.zone_size / kKernelSector;
  shape.parameters.zoned.max_open_zones = Limit(geometry.max_open_zones, geometry.zone_count);
  shape.parameters.zoned.max_active_zones = Limit(geometry.max_active_zones, geometry.zone_count);
  shape.parameters.zoned.max_append_sectors = static_cast<uint32_t>(append / kKernelSector);
  return shape;
}

bool SameShape(const ublk::Parameters& known, const ublk::Parameters& shape) {
  constexpr uint32_t kParts = ublk::kBasicParameters | ublk::kZonedParameters;
  return (known.types & kParts) == kParts && known.basic == shape.basic && known.zoned == shape.zoned;
}

}  // namespace isozone
