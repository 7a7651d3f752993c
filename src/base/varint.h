// Varints: unsigned numbers in 1 to 10 bytes, 7 bits in each byte, the low bits first. The highest bit of a byte is set
// if another byte follows. Each number has exactly one valid encoding, the shortest.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace isozone {

inline constexpr size_t kVarintMax = 10;  // bytes

constexpr size_t VarintSize(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

// Appends to a container of bytes or characters.
template <typename Bytes>
void PutVarint(uint64_t value, Bytes& out) {
  using Byte = typename Bytes::value_type;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<Byte>(value | 0x80));
  out.push_back(static_cast<Byte>(value));
}

// Takes a number from the front of `bytes`, whose content is not trusted. Returns false and takes nothing if there is
// no number, or if it is not encoded in the shortest form.
inline bool TakeVarint(std::span<const std::byte>& bytes, uint64_t& value) {
  if (!bytes.empty() && static_cast<uint8_t>(bytes.front()) < 0x80) {
    value = static_cast<uint8_t>(bytes.front());
    bytes = bytes.subspan(1);
    return true;
  }
  value = 0;
  for (size_t i = 0; i < kVarintMax && i < bytes.size(); ++i) {
    const auto byte = static_cast<uint64_t>(bytes[i]);
    if (i + 1 == kVarintMax && byte > 1) return false;
    value |= (byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    if (byte == 0) return false;
    bytes = bytes.subspan(i + 1);
    return true;
  }
  return false;
}

// Maps signed numbers close to 0 to small unsigned ones, in the order 0, -1, 1, -2, ...
constexpr uint64_t ZigZag(uint64_t two_s_complement) {
  return (two_s_complement << 1) ^ (0 - (two_s_complement >> 63));
}
constexpr uint64_t UnZigZag(uint64_t value) { return (value >> 1) ^ (0 - (value & 1)); }

}  // namespace isozone
