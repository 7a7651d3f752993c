// ZoneBook: what LinuxDevice remembers of its zones between two reports of the kernel, so that it can hold the rules of
// the seam for writes before a request goes out: where each zone is written, and that it has one write in flight. Pure:
// no I/O, no clock.
//
//   idle --BeginWrite--> writing --EndWrite--> idle, the write pointer behind the write
//     \--TakeAppend--------^   \--Relearn----> idle, as the kernel reports the zone now
//
// Appends are writes at the pointer of their moment, one at a time: those that find a write in flight wait in order,
// and whoever ends the write takes the next one (NextAppend).
//
// A report of the kernel may be old when it arrives: a write, reset or finish may have ended since it was taken. So
// each zone has a version, which every change of what is known increments. Whoever asks for a report takes the version
// first, and the report counts only if the version is the same afterwards.
//
// A zone is in doubt until a report of the kernel is taken over if
//
//   * a write was in flight beside a reset or finish, or another reset or finish ended beside it: which of the two came
//     first is open, and its owner asks (EndWrite, NoteReset and NoteFinish return false);
//   * a write failed, and the kernel did not report the zone (Forget). The device may recover, so the zone is not given
//     up.
//
// Whoever is about to write to a zone that is in doubt asks for a report first, and so does a read behind what is
// known.
//
// Thread safety: any thread may call any method.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "base/mutex.h"
#include "device/zoned_device.h"

namespace isozone {

class ZoneBook {
 public:
  explicit ZoneBook(const DeviceGeometry& geometry);

  // Returns the version of what is known of the zone. It must be taken before the kernel is asked for a report.
  uint64_t VersionOf(ZoneId id) const;
  // Takes over what the kernel reports of a zone, unless a write is in flight. Returns false if `version` is no longer
  // that of the zone, which then needs another report.
  bool Learn(const ZoneDescriptor& descriptor, uint64_t version);
  // Returns how many bytes from the start of the zone hold data. Behind them it reads as zeros.
  uint64_t Readable(ZoneId zone) const { return zones_[zone.value()].written.load(std::memory_order_acquire); }
  bool IsInDoubt(ZoneId zone) const { return zones_[zone.value()].in_doubt.load(std::memory_order_relaxed); }
  bool IsOffline(ZoneId zone) const {
    return zones_[zone.value()].state.load(std::memory_order_relaxed) == ZoneState::kOffline;
  }

  // Checks a write and takes the zone for it. If that succeeds (kSuccess), the zone is writing.
  DeviceStatus BeginWrite(ZoneId id, uint64_t offset, uint64_t length);
  // Does that for an append, which goes where the zone is written (`request.written_at` is set). If the zone is writing
  // already, or others wait, the request waits here, and `waits` is true.
  DeviceStatus TakeAppend(DeviceRequest& request, bool& waits);
  // Ends a write of `length` bytes that succeeded. Returns false if the zone is in doubt; it is then still writing, and
  // the caller must call Relearn.
  bool EndWrite(ZoneId id, uint64_t length);
  // Ends a write with what the kernel reports of the zone. Returns false if the zone was reset or finished since
  // `version`; it is then still writing, and needs another report.
  bool Relearn(const ZoneDescriptor& descriptor, uint64_t version);
  // Ends a write that failed while the kernel does not report the zone, which is in doubt from now on.
  void Forget(ZoneId id);
  // Takes an append that waits, if the zone is idle, and checks it; the zone is writing if `status` becomes kSuccess.
  // Returns null if none waits, or if a write has taken the zone.
  DeviceRequest* NextAppend(ZoneId id, DeviceStatus& status);

  // Returns whether the zone's state allows a reset or finish, as far as is known.
  bool MayChange(ZoneId zone) const {
    const ZoneState state = zones_[zone.value()].state.load(std::memory_order_relaxed);
    return state != ZoneState::kReadOnly && state != ZoneState::kOffline;
  }
  // Notes that the zone was reset or finished; `version` was its version before the kernel was asked for that. Returns
  // false if the zone is in doubt, and needs a report.
  bool NoteReset(ZoneId zone, uint64_t version);
  bool NoteFinish(ZoneId zone, uint64_t version);

 private:
  struct Zone {
    // Stored under mu.
    std::atomic<uint64_t> written{0};  // bytes
    std::atomic<ZoneState> state{ZoneState::kEmpty};
    std::atomic<bool> in_doubt{false};
    mutable Mutex mu;
    uint64_t version ISOZONE_GUARDED_BY(mu) = 0;
    bool writing ISOZONE_GUARDED_BY(mu) = false;
    std::unique_ptr<std::deque<DeviceRequest*>> appends ISOZONE_GUARDED_BY(mu);  // those that wait; null: none ever did
  };

  DeviceStatus Check(const Zone& zone, uint64_t offset, uint64_t length) const ISOZONE_REQUIRES(zone.mu);
  void Store(Zone& zone, const ZoneDescriptor& descriptor) const ISOZONE_REQUIRES(zone.mu);
  bool Note(ZoneId id, ZoneState state, uint64_t written, uint64_t version);
  Zone& Of(ZoneId zone) const { return zones_[zone.value()]; }

  const DeviceGeometry geometry_;
  const std::unique_ptr<Zone[]> zones_;
};

}  // namespace isozone
