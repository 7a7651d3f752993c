// SpacePromises: space for bytes that a file has accepted and not written out yet, or that were allocated. All promises
// together never exceed what can be written, as far as the pool knows; so whoever holds one can write so much later.
//
// FileWriters do not ask here: they may use up what was promised. In a mount that serves programs by PositionalFile
// alone there are none.
//
// Thread safety: any thread; a Promise belongs to one thread at a time.
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "fs/space/zone_pool.h"

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
    // False, and nothing changes: there is not so much space, or no longer what was promised before.
    [[nodiscard]] bool Set(uint64_t bytes) { return promises_.Change(bytes_, bytes, 0); }
    // As Set; `taken` bytes of `other`, which it has, become part of this.
    [[nodiscard]] bool SetFrom(Promise& other, uint64_t taken, uint64_t bytes) {
      if (!promises_.Change(bytes_, bytes, taken)) return false;
      other.bytes_ -= taken;
      return true;
    }
    // To at most `bytes`.
    void Shrink(uint64_t bytes) { promises_.Lower(bytes_, bytes); }

   private:
    SpacePromises& promises_;
    uint64_t bytes_ = 0;
  };

 private:
  // `given_up`: bytes of another promise that end with this change.
  bool Change(uint64_t& promised, uint64_t bytes, uint64_t given_up) ISOZONE_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    const uint64_t free = pool_.Space().free_for_data;
    const uint64_t others = total_ - promised - given_up;
    if (free < margin_ || bytes > free - margin_ || others > free - margin_ - bytes) return false;
    total_ = others + bytes;
    promised = bytes;
    return true;
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
