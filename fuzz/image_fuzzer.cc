// Image files: header and zone table of any content are refused or describe a device that can be. The input is an
// ImageHeader, whose checksum is made right, and behind it both the profile's text and the zone table.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "device/emulated/image_format.h"

namespace isozone {
namespace {

constexpr uint32_t kZonesMax = 64;  // of a table that is checked

std::vector<std::byte> HeaderBlock(std::span<const std::byte> input) {
  std::vector<std::byte> block(kHeaderBlockSize);
  const auto header = input.first(std::min(input.size(), sizeof(ImageHeader)));
  const auto text = input.subspan(header.size());
  std::copy(header.begin(), header.end(), block.begin());
  std::copy_n(text.begin(), std::min(text.size(), block.size() - kProfileTextOffset),
              block.begin() + kProfileTextOffset);
  const std::span<std::byte> crc = std::span(block).subspan(offsetof(ImageHeader, crc), sizeof(uint32_t));
  std::fill(crc.begin(), crc.end(), std::byte{0});
  const uint32_t right = Crc32c(block);
  std::memcpy(crc.data(), &right, sizeof(right));
  return block;
}

void CheckTable(const DeviceGeometry& geometry, std::span<const std::byte> bytes) {
  if (geometry.zone_count > kZonesMax) return;
  std::vector<ZoneEntry> table(geometry.zone_count);
  const auto next = [&] {
    uint64_t word = 0;
    const size_t size = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), size);
    bytes = bytes.subspan(size);
    return word;
  };
  for (ZoneEntry& entry : table) {
    entry.word = next();
    entry.durable = next();
    entry.allocated = next();
  }
  if (!CheckZoneTable(geometry, table).ok()) return;
  for (const ZoneEntry& entry : table) {
    if (LoadContent(entry).written > geometry.zone_capacity) std::abort();
  }
}

void Check(std::span<const std::byte> input) {
  (void)ParseImageHeader(input);
  const auto info = ParseImageHeader(HeaderBlock(input));
  if (!info.ok()) return;
  if (!CheckGeometry(info->geometry).ok()) std::abort();
  const ImageLayout layout(info->geometry);
  if (layout.file_size < layout.data_offset || layout.zone_stride < info->geometry.zone_capacity) std::abort();
  const auto again = FormatImageHeader(*info);
  if (!again.ok() || !ParseImageHeader(*again).ok()) std::abort();
  CheckTable(info->geometry, input.subspan(std::min(input.size(), sizeof(ImageHeader))));
}

}  // namespace
}  // namespace isozone

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  isozone::Check(std::as_bytes(std::span(data, size)));
  return 0;
}
