#include "fs/file/read_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace isozone {

void ReadAhead::Stop() {
  while (!windows_.empty()) DropFront();
}

size_t ReadAhead::TryRead(uint64_t offset, std::span<std::byte> buffer, IoClass io_class, uint64_t size,
                          uint64_t generation) {
  if (inside_.exchange(true, std::memory_order_acquire)) return 0;
  if (std::exchange(generation_, generation) != generation) Stop();  // the file was cut or overwritten
  size_t done = 0;
  if (offset == position_) {
    done = Scan(buffer, io_class, size);
  } else if (offset == 0) {  // the reader begins again at the front
    Stop();
  }
  // A scan may begin where the caller stops reading for itself.
  if (windows_.empty()) position_ = offset + buffer.size();
  inside_.store(false, std::memory_order_release);
  return done;
}

size_t ReadAhead::Scan(std::span<std::byte> buffer, IoClass io_class, uint64_t size) {
  size_t done = 0;
  while (done < buffer.size()) {
    if (windows_.empty() && !StartWindow(position_, io_class, size)) return done;
    if (windows_.size() == 1) StartWindow(windows_.back().end(), io_class, size);
    Window& front = windows_.front();
    front.latch.Wait();
    front.read.Take();
    const size_t skip = position_ - front.read.offset;
    if (!front.read.status.ok() || front.read.bytes_read <= skip) {
      Stop();
      return done;
    }
    const size_t piece = std::min(buffer.size() - done, front.read.bytes_read - skip);
    std::memcpy(buffer.data() + done, front.memory.data() + skip, piece);
    done += piece;
    position_ += piece;
    if (position_ == front.end()) DropFront();
  }
  return done;
}

bool ReadAhead::StartWindow(uint64_t offset, IoClass io_class, uint64_t size) {
  if (offset >= size) return false;
  const uint64_t window = window_();
  if (context_.read_ahead_bytes.fetch_add(window) + window > context_.options.read_ahead_memory) {
    context_.read_ahead_bytes.fetch_sub(window);
    return false;
  }
  Window& next = windows_.emplace_back();
  next.memory = context_.buffers.Take(window);
  next.read.offset = offset;
  next.read.buffer = next.memory.span().first(std::min(window, size - offset));
  next.read.io_class = io_class;
  next.latch.Expect(next.read);
  read_(next.read);
  return true;
}

void ReadAhead::DropFront() {
  Window& front = windows_.front();
  front.latch.Wait();
  context_.read_ahead_bytes.fetch_sub(front.memory.size());
  context_.buffers.Give(std::move(front.memory));
  windows_.pop_front();
}

}  // namespace isozone
