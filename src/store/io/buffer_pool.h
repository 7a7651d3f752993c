// BufferPool: aligned buffers that are reused. The kernel takes longer to find and clear fresh memory than a copy into
// it takes, so writers and read-ahead return their buffers to this pool.
//
// Thread safety: any thread may call any method.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/mutex.h"

namespace isozone {

class BufferPool {
 public:
  // The pool keeps at most `limit` bytes of unused buffers: those that were given last, so that it follows the sizes
  // that are in use.
  explicit BufferPool(uint64_t limit) : limit_(limit) {}

  AlignedBuffer Take(size_t size) {
    {
      const MutexLock lock(mu_);
      // Nearly all buffers have one size, and the last one returned is still in the processor's cache.
      for (size_t i = free_.size(); i-- > 0;) {
        if (free_[i].size() != size) continue;
        AlignedBuffer buffer = std::move(free_[i]);
        free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
        bytes_ -= size;
        return buffer;
      }
    }
    return AlignedBuffer(size);
  }

  void Give(AlignedBuffer buffer) {
    if (buffer.size() == 0 || buffer.size() > limit_) return;
    std::vector<AlignedBuffer> too_many;  // freed after the lock
    const MutexLock lock(mu_);
    bytes_ += buffer.size();
    free_.push_back(std::move(buffer));
    auto kept = free_.begin();
    for (; bytes_ > limit_; ++kept) bytes_ -= kept->size();
    std::move(free_.begin(), kept, std::back_inserter(too_many));
    free_.erase(free_.begin(), kept);
  }

  uint64_t bytes() const {
    const MutexLock lock(mu_);
    return bytes_;
  }

 private:
  const uint64_t limit_;
  mutable Mutex mu_;
  uint64_t bytes_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::vector<AlignedBuffer> free_ ISOZONE_GUARDED_BY(mu_);  // the one that was given last is last
};

}  // namespace isozone
