// SpacePromises: space for bytes that a file has accepted and not written out yet, or that were allocated. All promises
// together never exceed what can be written, as far as the pool knows; so whoever holds one can write so much later.
//
// FileWriters do not ask here: they may use up what was promised. In a mount that serves programs by PositionalFile
// alone there are none.
//
// Thread safety: any thread; a Promise belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/status.h"
#include "store/space/zone_pool.h"

namespace isozone {

class SpacePromises {
 public:
  // `pool` outlives this.
  explicit SpacePromises(ZonePool& pool, uint64_t margin) : pool_(pool), margin_(margin) {}

  class Promise {
   public:
    // `promises` outlives this.
    explicit Promise(SpacePromises& promises) : promises_(promises) {}
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    ~Promise() { Shrink(0); }

    uint64_t bytes() const { return bytes_; }
    // False, and nothing changes: there is not so much space, or no longer what was promised before. `taken` bytes of
    // `other`, which it has, become part of this.
    [[nodiscard]] bool SetFrom(Promise& other, uint64_t taken, uint64_t bytes) {
      if (promises_.Change(bytes_, bytes, taken)) return false;
      other.bytes_ -= taken;
      return true;
    }
    // Waits for the space, as long as somebody makes some. kNoSpace, and nothing changes.
    Status Await(uint64_t bytes) { return promises_.AwaitChange(bytes_, bytes, 0); }
    Status AwaitFrom(Promise& other, uint64_t taken, uint64_t bytes) {
      ISOZONE_RETURN_IF_ERROR(promises_.AwaitChange(bytes_, bytes, taken));
      other.bytes_ -= taken;
      return Status::Ok();
    }
    // To at most `bytes`.
    void Shrink(uint64_t bytes) { promises_.Lower(bytes_, bytes); }

   private:
    SpacePromises& promises_;
    uint64_t bytes_ = 0;
  };

 private:
  // `given_up`: bytes of another promise that end with this change. Returns nothing once it is done, else how many
  // bytes have to be free for it.
  std::optional<uint64_t> Change(uint64_t& promised, uint64_t bytes, uint64_t given_up) ISOZONE_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    const uint64_t total = total_ - promised - given_up + bytes;
    if (total + margin_ > pool_.Space().free_for_data) return total + margin_;
    total_ = total;
    promised = bytes;
    return std::nullopt;
  }
  // Where others take what has become free meanwhile, it is waited for again.
  Status AwaitChange(uint64_t& promised, uint64_t bytes, uint64_t given_up) ISOZONE_EXCLUDES(mu_) {
    while (const auto needed = Change(promised, bytes, given_up)) {
      ISOZONE_RETURN_IF_ERROR(pool_.AwaitRoom(*needed));
    }
    return Status::Ok();
  }
  void Lower(uint64_t& promised, uint64_t bytes) ISOZONE_EXCLUDES(mu_) {
    if (bytes >= promised) return;
    const MutexLock lock(mu_);
    total_ -= promised - bytes;
    promised = bytes;
  }

  ZonePool& pool_;
  const uint64_t margin_;  // bytes that are never promised: what ends of zones and padding take
  Mutex mu_;
  uint64_t total_ ISOZONE_GUARDED_BY(mu_) = 0;  // bytes
};

}  // namespace isozone
