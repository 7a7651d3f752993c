#include "fs/file/open_writers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace isozone {

template <typename Call>
auto OpenWriters::Use(Entry& entry, Call call) {
  ++entry.users;
  struct Release {
    OpenWriters& writers;
    Entry& entry;
    ~Release() {
      writers.mu_.AssertHeld();
      if (--entry.users == 0) writers.released_.SignalAll();
    }
  } const release{*this, entry};
  const MutexUnlock unlock(mu_);
  return call(*entry.writer);
}

void OpenWriters::Start(Clock& clock, bool (*is_memory_short)(const void* memory), const void* memory) {
  clock_ = &clock;
  is_memory_short_ = is_memory_short;
  memory_ = memory;
  thread_ = std::thread([this] { Run(); });
}

void OpenWriters::Stop() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    wake_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void OpenWriters::Add(OpenWriter& writer, InodeId inode, const Order* order) {
  const MutexLock lock(mu_);
  const auto behind = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.inode > inode; });
  entries_.insert(behind, {&writer, inode, order != nullptr, order != nullptr ? *order : Order()});
  if (entries_.size() == 1) wake_.Signal();  // there is something to look after from time to time
}

void OpenWriters::Remove(OpenWriter& writer) {
  const MutexLock lock(mu_);
  const auto it = std::ranges::find(entries_, &writer, &Entry::writer);
  if (it == entries_.end()) return;
  while (it->users > 0) released_.Wait(mu_);
  entries_.erase(it);
}

Status OpenWriters::SaveEarlier(const OpenWriter& writer) {
  const MutexLock lock(mu_);
  const auto self = std::ranges::find(entries_, &writer, &Entry::writer);
  if (self == entries_.end() || !self->is_log) return Status::Ok();
  for (auto it = entries_.begin(); it != self; ++it) {
    if (!it->is_log || !(it->order == self->order) || it->writer->is_durable()) continue;
    ISOZONE_RETURN_IF_ERROR(Use(*it, [](OpenWriter& earlier) { return earlier.SaveAll(); }));
  }
  return Status::Ok();
}

bool OpenWriters::HasLater(const OpenWriter& writer) {
  const MutexLock lock(mu_);
  const auto self = std::ranges::find(entries_, &writer, &Entry::writer);
  return self != entries_.end() && std::any_of(std::next(self), entries_.end(), [&](const Entry& later) {
           return later.is_log && later.order == self->order;
         });
}

void OpenWriters::Wake() {
  const MutexLock lock(mu_);
  woken_ = true;
  wake_.Signal();
}

// ---------------------------------------------------------------------------------------------------------------------
// The thread
// ---------------------------------------------------------------------------------------------------------------------

void OpenWriters::Run() {
  const MutexLock lock(mu_);
  int64_t look_at_ns = clock_->NowNs() + kWriteBackNs;
  while (!stopping_) {
    if (std::exchange(woken_, false)) {
      AdvanceAll(is_memory_short_(memory_));
    } else if (clock_->NowNs() >= look_at_ns) {
      SaveOverdue();
      look_at_ns = clock_->NowNs() + kWriteBackNs;
    } else if (entries_.empty()) {
      wake_.Wait(mu_);
    } else {
      clock_->WaitUntil(wake_, mu_, look_at_ns);
    }
  }
}

void OpenWriters::AdvanceAll(bool all) {
  for (Entry& entry : entries_) {
    Use(entry, [all](OpenWriter& writer) { writer.Advance(all); });
  }
}

void OpenWriters::SaveOverdue() {
  for (Entry& entry : entries_) {
    const bool was_pending = std::exchange(entry.was_pending, !entry.writer->is_durable());
    if (!was_pending || !entry.was_pending) continue;
    // An error latches: whoever writes the file is told of it.
    const Status saved = Use(entry, [](OpenWriter& writer) { return writer.SaveAll(); });
    if (!saved.ok()) Log().debug("inode {}: {}", entry.inode.value(), saved.message());
  }
}

}  // namespace isozone
