// AlignedBuffer: memory for direct I/O. It is page-aligned, uninitialised and move-only.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "base/units.h"

namespace isozone {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 4096;

  AlignedBuffer() = default;
  // Throws std::bad_alloc when memory is exhausted, like every container.
  explicit AlignedBuffer(size_t size) : size_(size) {
    if (size == 0) return;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, RoundUp(size, kAlignment))));
    if (data_ == nullptr) throw std::bad_alloc();
  }

  // The buffer that was moved from is empty.
  AlignedBuffer(AlignedBuffer&& other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<std::byte> span() { return {data_.get(), size_}; }
  std::span<const std::byte> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

}  // namespace isozone
