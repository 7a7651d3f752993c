// Reading and writing little-endian fields of structures whose length varies.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isozone {

static_assert(std::endian::native == std::endian::little, "the device format is little-endian");

// Appends to a vector of the caller.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out) {}

  template <std::unsigned_integral T>
  void Put(T value) {
    PutBytes(std::as_bytes(std::span(&value, 1)));
  }
  void PutBytes(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  // A 16-bit length and the characters; at most 65535 of them.
  void PutString(std::string_view text) {
    Put(static_cast<uint16_t>(text.size()));
    PutBytes(std::as_bytes(std::span(text)));
  }

 private:
  std::vector<std::byte>& out_;
};

// Takes from the front of bytes whose content is not trusted. A field that does not fit reads as 0, and ok() is false
// from then on: decode first, ask once.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <std::unsigned_integral T>
  T Get() {
    T value{};
    const std::span<const std::byte> field = GetBytes(sizeof(T));
    if (!field.empty()) std::memcpy(&value, field.data(), sizeof(T));
    return value;
  }
  // Empty where there are fewer than `size`.
  std::span<const std::byte> GetBytes(size_t size) {
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::span<const std::byte> taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  std::string GetString() {
    const std::span<const std::byte> text = GetBytes(Get<uint16_t>());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  // A number of entries that follow, of at least `entry_size` bytes each; 0 where so many do not fit. So what a decoder
  // allocates by it is bounded by the bytes that are there.
  uint32_t GetCount(size_t entry_size) {
    const auto count = Get<uint32_t>();
    if (count <= bytes_.size() / entry_size) return count;
    ok_ = false;
    bytes_ = {};
    return 0;
  }

  bool ok() const { return ok_; }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

}  // namespace isozone
