#include "store/space/zone_lease.h"

#include <utility>

#include "base/log.h"
#include "store/space/zone_executor.h"

namespace isozone {

ZoneLease::ZoneLease(ZoneLease&& other) noexcept { *this = std::move(other); }

ZoneLease& ZoneLease::operator=(ZoneLease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  executor_ = std::exchange(other.executor_, nullptr);
  grant_ = other.grant_;
  return *this;
}

ZoneLease::~ZoneLease() { Release(); }

DeviceOffset ZoneLease::next() const {
  return DeviceOffset(executor_->device.geometry().ZoneStart(grant_.zone).value() + grant_.write_pointer);
}

bool ZoneLease::BeginWrite() {
  if (executor_ == nullptr) return false;
  if (executor_->BeginWrite(grant_)) return true;
  executor_ = nullptr;
  return false;
}

void ZoneLease::CompleteWrite(uint64_t bytes, DeviceStatus status) { executor_->CompleteWrite(grant_, bytes, status); }

void ZoneLease::Settle(uint64_t bytes, DeviceStatus status) {
  if (status == DeviceStatus::kSuccess) {
    grant_.write_pointer += bytes;
    return;
  }
  ZoneExecutor& executor = *std::exchange(executor_, nullptr);
  if (IsForLack(status)) return;
  Log().warn("a write to zone {} at {} failed: {}; the zone is not written again before it is reset",
             grant_.zone.value(), grant_.write_pointer, DeviceStatusName(status));
  const MutexLock lock(executor.mu);
  // Another thread may already be asking the device about the zone, for which it gives the mutex up.
  while (executor.allocator.ledger().Find(grant_.zone, grant_.lease_id) != nullptr) {
    if (!executor.Drain()) executor.changed.Wait(executor.mu);
  }
}

void ZoneLease::Release() {
  if (executor_ != nullptr) std::exchange(executor_, nullptr)->Release(grant_);
}

}  // namespace isozone
