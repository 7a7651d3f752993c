#include "device/zonefs/open_files.h"

#include <utility>

namespace isozone {

OpenFiles::File OpenFiles::Find(uint32_t number) {
  const MutexLock lock(mu_);
  const auto found = entries_.find(number);
  if (found == entries_.end()) return nullptr;
  found->second.used_at = ++now_;
  return found->second.file;
}

bool OpenFiles::Reserve() {
  File idle;  // closed under no lock
  const MutexLock lock(mu_);
  if (entries_.size() + reserved_ >= most_) {
    idle = TakeIdle();
    if (idle == nullptr) return false;
  }
  ++reserved_;
  return true;
}

void OpenFiles::Unreserve() {
  const MutexLock lock(mu_);
  --reserved_;
}

OpenFiles::File OpenFiles::Add(uint32_t number, File file) {
  const MutexLock lock(mu_);
  --reserved_;
  Entry& entry = entries_[number];
  if (entry.file == nullptr) entry.file = std::move(file);
  entry.used_at = ++now_;
  return entry.file;
}

OpenFiles::File OpenFiles::Take(uint32_t number) {
  const MutexLock lock(mu_);
  auto node = entries_.extract(number);
  return node.empty() ? nullptr : std::move(node.mapped().file);
}

bool OpenFiles::CloseIdle() {
  File idle;  // closed under no lock
  const MutexLock lock(mu_);
  idle = TakeIdle();
  return idle != nullptr;
}

OpenFiles::File OpenFiles::TakeIdle() {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    // Another owner can only come into being under this lock.
    if (entry->second.kept || entry->second.file.use_count() > 1) continue;
    if (oldest == entries_.end() || entry->second.used_at < oldest->second.used_at) oldest = entry;
  }
  if (oldest == entries_.end()) return nullptr;
  return std::move(entries_.extract(oldest).mapped().file);
}

void OpenFiles::Keep(uint32_t number) {
  const MutexLock lock(mu_);
  const auto found = entries_.find(number);
  if (found != entries_.end()) found->second.kept = true;
}

OpenFiles::Use OpenFiles::UseOf(uint32_t number) const {
  const MutexLock lock(mu_);
  const auto found = entries_.find(number);
  if (found == entries_.end()) return Use::kClosed;
  return found->second.kept ? Use::kKept : Use::kOpen;
}

}  // namespace isozone
