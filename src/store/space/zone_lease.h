// ZoneLease: the right to write one zone, and the protocol of a write.
#pragma once

#include <cstdint>

#include "device/zoned_device.h"
#include "store/zone/allocator/zone_request.h"

namespace isozone {

class ZoneExecutor;

// The exclusive right to write one zone. Move-only; gives the zone back when it goes.
//
// Thread safety: one thread at a time; while a write is in flight, only the one that completes it.
class ZoneLease {
 public:
  ZoneLease() = default;  // holds nothing
  ZoneLease(ZoneLease&& other) noexcept;
  ZoneLease& operator=(ZoneLease&& other) noexcept;
  ~ZoneLease();

  bool held() const { return executor_ != nullptr; }
  ZoneId zone() const { return grant_.zone; }
  // Bytes from the start of the zone: where the next write goes. Block-aligned.
  uint64_t write_pointer() const { return grant_.write_pointer; }
  DeviceOffset next() const;
  // Bytes that still fit.
  uint64_t room() const { return grant_.capacity - grant_.write_pointer; }

  // A write, or several, one after another, as one, goes through these three. False: the lease was taken away while it
  // was idle and now holds nothing; acquire another.
  [[nodiscard]] bool BeginWrite();
  // The write has ended, on whatever thread: it has put `bytes` (whole blocks, perhaps none) into the zone, where
  // `status` is kSuccess or IsForLack, or has failed. Short, no I/O: nobody who waits for the zone has to wait for the
  // lease's owner.
  void CompleteWrite(uint64_t bytes, DeviceStatus status);
  // Called by the owner before it uses the lease again, with what CompleteWrite was called with. After a failure the
  // zone is not written again (unless it was refused), and the lease holds nothing. May ask the device for the zone's
  // state.
  void Settle(uint64_t bytes, DeviceStatus status);
  // Gives the zone back early.
  void Release();

 private:
  friend class ZoneExecutor;
  ZoneExecutor* executor_ = nullptr;
  ZoneGrant grant_;
};

}  // namespace isozone
