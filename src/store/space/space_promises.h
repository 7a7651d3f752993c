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
  // `pool` must outlive this.
  explicit SpacePromises(ZonePool& pool, uint64_t margin) : pool_(pool), margin_(margin) {}

  class Promise {
   public:
    // `promises` must outlive this.
    explicit Promise(SpacePromises& promises) : promises_(promises) {}
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    ~Promise() { Shrink(0); }

    uint64_t bytes() const { return bytes_; }
    // Makes this a promise of `bytes`, of which `taken` come from `other`, which must have them. Returns false, and
    // changes nothing, if there is not so much space, or no longer what was promised before.
    [[nodiscard]] bool SetFrom(Promise& other, uint64_t taken, uint64_t bytes) {
      if (promises_.Change(bytes_, bytes, taken)) return false;
      other.bytes_ -= taken;
      return true;
    }
    // Does the same as SetFrom, but waits for the space as long as somebody makes some. Fails with kNoSpace, and
    // changes nothing.
    Status Await(uint64_t bytes) { return promises_.AwaitChange(bytes_, bytes, 0); }
    Status AwaitFrom(Promise& other, uint64_t taken, uint64_t bytes) {
      ISOZONE_RETURN_IF_ERROR(promises_.AwaitChange(bytes_, bytes, taken));
      other.bytes_ -= taken;
      return Status::Ok();
    }
    // Lowers this to at most `bytes`.
    void Shrink(uint64_t bytes) { promises_.Lower(bytes_, bytes); }

   private:
    SpacePromises& promises_;
    uint64_t bytes_ = 0;
  };

 private:
  // Changes a promise to `bytes`. `given_up` bytes of another promise end with this change. Returns nothing if it is
  // done, or how many bytes have to be free for it.
  std::optional<uint64_t> Change(uint64_t& promised, uint64_t bytes, uint64_t given_up) ISOZONE_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    const uint64_t total = total_ - promised - given_up + bytes;
    if (total + margin_ > pool_.Space().free_for_data) return total + margin_;
    total_ = total;
    promised = bytes;
    return std::nullopt;
  }
  // Waits for the space of a change; again if others take what has become free.
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
