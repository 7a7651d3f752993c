#include "store/space/zone_lease.h"

#include <utility>

#include "base/log.h"
#include "store/space/zone_pool.h"

namespace isozone {

ZoneLease::ZoneLease(ZoneLease&& other) noexcept { *this = std::move(other); }

ZoneLease& ZoneLease::operator=(ZoneLease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pool_ = std::exchange(other.pool_, nullptr);
  grant_ = other.grant_;
  live_ = other.live_;
  return *this;
}

ZoneLease::~ZoneLease() { Release(); }

DeviceOffset ZoneLease::next() const {
  return DeviceOffset(pool_->device_.geometry().ZoneStart(grant_.zone).value() + grant_.write_pointer);
}

bool ZoneLease::BeginWrite(uint64_t live) {
  if (pool_ == nullptr) return false;
  live_ = live;
  if (grant_.state->BeginWrite()) return true;
  pool_ = nullptr;
  return false;
}

void ZoneLease::CompleteWrite(uint64_t bytes, DeviceStatus status) {
  pool_->CompleteWrite(grant_, bytes, live_, status);
}

SpaceClaim ZoneLease::Settle(uint64_t bytes, DeviceStatus status) {
  if (status == DeviceStatus::kSuccess) {
    grant_.write_pointer += bytes;
    return SpaceClaim::OfWrite(*pool_, zone(), live_);
  }
  ZonePool& pool = *std::exchange(pool_, nullptr);
  if (IsForLack(status)) return {};
  Log().warn("a write to zone {} at {} failed: {}; the zone is not written again before it is reset",
             grant_.zone.value(), grant_.write_pointer, DeviceStatusName(status));
  pool.AwaitEnd(grant_);
  return {};
}

void ZoneLease::Release() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->Release(grant_);
}

}  // namespace isozone
