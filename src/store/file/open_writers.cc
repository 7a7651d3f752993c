#include "store/file/open_writers.h"

#include <iterator>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

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

Status OpenWriters::Start(Clock& clock, Work work) {
  clock_ = &clock;
  work_ = std::move(work);
  ISOZONE_ASSIGN_OR_RETURN(thread_, StartThread("writers of logs", [this] { Run(); }));
  return Status::Ok();
}

void OpenWriters::Stop() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    wake_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

OpenWriters::Place OpenWriters::Add(OpenWriter& writer, InodeId inode, const Order* order) {
  Entry added{&writer, order != nullptr ? std::optional(*order) : std::nullopt, inode};
  const auto key = [](const Entry& entry) { return std::tie(entry.order, entry.inode); };
  const MutexLock lock(mu_);
  // A new file is mostly the last one.
  auto behind = entries_.end();
  while (behind != entries_.begin() && key(added) < key(*std::prev(behind))) --behind;
  return entries_.insert(behind, added);
}

void OpenWriters::Remove(Place& place) {
  if (!place) return;
  const MutexLock lock(mu_);
  while ((*place)->users > 0) released_.Wait(mu_);
  entries_.erase(*place);
  place.reset();
}

Status OpenWriters::SaveEarlier(const Place& place) {
  if (!place) return Status::Ok();
  const MutexLock lock(mu_);
  auto first = *place;
  while (first != entries_.begin() && std::prev(first)->order == (*place)->order) --first;
  for (auto it = first; it != *place; ++it) {
    if (it->writer->is_durable()) continue;
    ISOZONE_RETURN_IF_ERROR(Use(*it, [](OpenWriter& earlier) { return earlier.SaveAll(); }));
  }
  return Status::Ok();
}

bool OpenWriters::HasLater(const Place& place) {
  if (!place) return false;
  const MutexLock lock(mu_);
  const auto next = std::next(*place);
  return next != entries_.end() && next->order == (*place)->order;
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
  bool prepares = true;
  while (!stopping_) {
    if (std::exchange(woken_, false)) {
      AdvanceAll(work_.is_memory_short());
    } else if (prepares) {
      const MutexUnlock unlock(mu_);
      prepares = work_.prepare_memory();
    } else if (clock_->NowNs() >= look_at_ns) {
      SaveOverdue();
      look_at_ns = clock_->NowNs() + kWriteBackNs;
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
  {
    const MutexUnlock unlock(mu_);
    work_.save_metadata();
  }
  for (Entry& entry : entries_) {
    const bool was_pending = std::exchange(entry.was_pending, !entry.writer->is_durable());
    if (!was_pending || !entry.was_pending) continue;
    // An error latches: whoever writes the file is told of it.
    const Status saved = Use(entry, [](OpenWriter& writer) { return writer.SaveAll(); });
    if (!saved.ok()) Log().debug("inode {}: {}", entry.inode.value(), saved.message());
  }
}

}  // namespace isozone
