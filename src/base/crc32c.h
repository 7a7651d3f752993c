// CRC-32C (Castagnoli), the checksum of every structure that Isozone writes. RFC 3720 B.4 gives the test vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace isozone {

// Returns the CRC of `data`; if `crc` is the CRC of the bytes before `data`, the CRC of both together.
uint32_t Crc32c(std::span<const std::byte> data, uint32_t crc = 0);
inline uint32_t Crc32c(const void* data, size_t size, uint32_t crc = 0) {
  return Crc32c(std::span(static_cast<const std::byte*>(data), size), crc);
}

}  // namespace isozone
