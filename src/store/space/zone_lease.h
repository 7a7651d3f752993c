// ZoneLease: the right to write one zone, and the protocol of a write.
#pragma once

#include <cstdint>

#include "device/zoned_device.h"
#include "store/space/space_claim.h"
#include "store/zone/allocator/zone_request.h"

namespace isozone {

class ZonePool;

// The exclusive right to write one zone. Move-only; gives the zone back when it goes.
//
// Thread safety: one thread at a time; while a write is in flight, only the one that completes it.
class ZoneLease {
 public:
  ZoneLease() = default;  // holds nothing
  ZoneLease(ZoneLease&& other) noexcept;
  ZoneLease& operator=(ZoneLease&& other) noexcept;
  ~ZoneLease();

  bool held() const { return pool_ != nullptr; }
  ZoneId zone() const { return grant_.zone; }
  // Returns where the next write goes: bytes from the start of the zone, block-aligned.
  uint64_t write_pointer() const { return grant_.write_pointer; }
  DeviceOffset next() const;
  // Returns how many bytes still fit.
  uint64_t room() const { return grant_.capacity - grant_.write_pointer; }

  // A write goes through these three, and so do several writes, one after another, that count as one. CompleteWrite
  // takes the pool's lock, once, and what was written becomes live under it; the other two take no lock, unless a write
  // has failed. BeginWrite returns false if the lease was taken away while it was idle: it then holds nothing, and the
  // caller acquires another. `live` says how many of the bytes to be written are a file's.
  [[nodiscard]] bool BeginWrite(uint64_t live = 0);
  // Is called, on whatever thread, when the write has ended: it has put `bytes` (whole blocks, perhaps none) into the
  // zone, where `status` is kSuccess or IsForLack, or has failed. Short, no I/O: nobody who waits for the zone has to
  // wait for the lease's owner.
  void CompleteWrite(uint64_t bytes, DeviceStatus status);
  // Is called by the owner before it uses the lease again, with what CompleteWrite was called with. Returns the claim
  // on what is live of it. After a failure that is nothing, the zone is not written again (unless it was refused), and
  // the lease holds nothing. May ask the device for the zone's state.
  SpaceClaim Settle(uint64_t bytes, DeviceStatus status);
  // Gives the zone back early.
  void Release();

 private:
  friend class ZonePool;
  ZoneLease(ZonePool& pool, const ZoneGrant& grant) : pool_(&pool), grant_(grant) {}

  ZonePool* pool_ = nullptr;
  ZoneGrant grant_;
  uint64_t live_ = 0;  // bytes of a file in the write that was begun last
};

}  // namespace isozone
