#include "store/file/read_ahead_memory.h"

#include <algorithm>
#include <iterator>

namespace isozone {

void ReadAheadMemory::Add(Holder& holder) {
  NoteUse(holder);
  const MutexLock lock(mu_);
  holders_.insert(&holder);
}

void ReadAheadMemory::Remove(Holder& holder) {
  const MutexLock lock(mu_);
  holders_.erase(&holder);
}

void ReadAheadMemory::Reclaim() {
  std::vector<std::shared_ptr<void>> given_up;  // goes after the lock, since it may wait
  const MutexLock lock(mu_);
  const uint64_t read = read_.load(std::memory_order_relaxed);
  std::erase_if(holders_, [&](Holder* holder) {
    if (holder->used_at_.load(std::memory_order_relaxed) + kPatience * limit_ > read) return false;
    std::ranges::move(holder->GiveUp(), std::back_inserter(given_up));
    return true;
  });
}

}  // namespace isozone
