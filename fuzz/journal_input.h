// How an input of the journal fuzzer describes a device: a flags byte, then for each zone the number of its written
// blocks (one byte) and their bytes, in order; what is missing at the end is unwritten.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "store/metadata/batch_stream.h"
#include "store/metadata/superblock.h"
#include "testing/frozen_device.h"

namespace isozone {

// With kRepair, checksums are made right first, so that what lies behind them is reached.
inline constexpr uint8_t kRepair = 1;
// The rest is the body of one record, not a device.
inline constexpr uint8_t kRecord = 2;

inline DeviceGeometry FuzzGeometry() {
  DeviceGeometry geometry;
  geometry.block_size = 512;
  geometry.zone_count = 16;
  geometry.zone_size = geometry.zone_capacity = 16 * geometry.block_size;
  geometry.max_active_zones = geometry.max_open_zones = 12;
  geometry.optimal_write = geometry.block_size;
  return geometry;
}

inline std::vector<uint8_t> EncodeInput(uint8_t flags, FrozenDevice& device) {
  std::vector<uint8_t> input = {flags};
  for (uint32_t i = 0; i < device.geometry().zone_count; ++i) {
    const std::vector<std::byte>& bytes = device.zone(ZoneId(i));
    input.push_back(static_cast<uint8_t>(bytes.size() / device.geometry().block_size));
    for (const std::byte b : bytes) input.push_back(static_cast<uint8_t>(b));
  }
  return input;
}

inline void DecodeInput(std::span<const std::byte> input, FrozenDevice& device) {
  const DeviceGeometry& geometry = device.geometry();
  for (uint32_t i = 0; i < geometry.zone_count && !input.empty(); ++i) {
    const uint64_t blocks = static_cast<uint8_t>(input.front()) % (geometry.zone_capacity / geometry.block_size + 1);
    input = input.subspan(1);
    const size_t given = std::min<size_t>(input.size(), blocks * geometry.block_size);
    std::vector<std::byte>& zone = device.zone(ZoneId(i));
    zone.assign(input.begin(), input.begin() + static_cast<ptrdiff_t>(given));
    zone.resize(blocks * geometry.block_size);
    input = input.subspan(given);
  }
}

}  // namespace isozone
