// Readers and writers of little-endian fields, for structures whose length varies.
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

#include "base/varint.h"

namespace isozone {

static_assert(std::endian::native == std::endian::little, "the device format is little-endian");

// Appends fields to a vector of the caller.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out) {}

  template <std::unsigned_integral T>
  void Put(T value) {
    PutBytes(std::as_bytes(std::span(&value, 1)));
  }
  void PutBytes(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void PutNumber(uint64_t value) { PutVarint(value, out_); }
  // Puts the number of bytes, and the bytes.
  void PutCounted(std::span<const std::byte> bytes) {
    PutNumber(bytes.size());
    PutBytes(bytes);
  }

 private:
  std::vector<std::byte>& out_;
};

// Takes fields from the front of bytes whose content is not trusted. A field that does not fit reads as 0, and ok() is
// false from then on: decode first, ask once.
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
  // Returns the next `size` bytes; empty if there are fewer.
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
  uint64_t GetNumber() {
    uint64_t value = 0;
    if (TakeVarint(bytes_, value)) return value;
    ok_ = false;
    bytes_ = {};
    return 0;
  }
  std::span<const std::byte> GetCounted() { return GetBytes(GetNumber()); }
  std::string GetString() {
    const std::span<const std::byte> text = GetCounted();
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  // Returns a number of entries that follow, of at least `entry_size` bytes each; 0 if so many do not fit. So what a
  // decoder allocates for them is bounded by the bytes that are there.
  uint32_t GetCount(size_t entry_size) { return Fitting(Get<uint32_t>(), entry_size); }
  uint32_t GetCountNumber(size_t entry_size) { return Fitting(GetNumber(), entry_size); }

  bool ok() const { return ok_; }
  bool empty() const { return bytes_.empty(); }

 private:
  uint32_t Fitting(uint64_t count, size_t entry_size) {
    if (count <= bytes_.size() / entry_size && count <= UINT32_MAX) return static_cast<uint32_t>(count);
    ok_ = false;
    bytes_ = {};
    return 0;
  }

  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

}  // namespace isozone
