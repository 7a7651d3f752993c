// What the tests of an exported device share: a small device in memory, and requests for it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "device/emulated/emulated_device.h"
#include "device/export/ublk_abi.h"
#include "device/linux/block_kernel.h"
#include "testing/assert_ok.h"

namespace isozone {

inline constexpr uint64_t kTestZone = kMiB;
inline constexpr uint64_t kTestZoneSectors = kTestZone / kKernelSector;

// 16 zones of 1 MiB, of which 768 KiB can be written.
inline DeviceGeometry ExportGeometry() {
  DeviceGeometry geometry;
  geometry.zone_count = 16;
  geometry.zone_size = kTestZone;
  geometry.zone_capacity = kTestZone * 3 / 4;
  geometry.max_open_zones = 4;
  geometry.max_active_zones = 6;
  geometry.optimal_write = 192 * kKiB;
  return geometry;
}

inline ublk::RequestDescriptor Describe(ublk::Operation operation, uint64_t sector = 0, uint32_t count = 0,
                                        bool fua = false) {
  return {static_cast<uint32_t>(operation) | (fua ? ublk::kFuaFlag : 0), count, sector, 0};
}

// Returns blocks of 4 KiB that no other seed has.
inline std::vector<std::byte> Blocks(uint8_t seed, size_t count) {
  std::vector<std::byte> data(count * 4096);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(seed + i / 4096 * 7 + i % 251);
  return data;
}

}  // namespace isozone
