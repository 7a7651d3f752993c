// WriteLedger: the places of writes and appends that the device has, or may have, and whose results the kernel does not
// have. It is kept in memory that outlives the process, so that the next server can answer what this one leaves behind.
//
// Why it is needed: when a server dies, the kernel sends the requests that had no result once more, to the next server.
// A read, flush or zone operation can be done twice. A write cannot: its zone has moved on, and it would fail. An
// append would succeed, but its bytes would lie in the zone twice, and the zone would be full before its user expects
// that.
//
//   Submit   notes the place of a write or append, and only then hands it to the device. Appends to a zone are handed
//            over one after another, so their places are known before: they follow each other. If an append fails,
//            those behind it are not where they were expected, and their places count as unknown.
//   Answer   forgets the place, and only then the result goes to the kernel.
//
// So a place that the next server finds (a Leftover) belongs to a request that will come once more, or to none. The
// server that finds the same bytes there need not write them again. A write goes to a place that no other can have, so
// that its bytes are not compared: its user may have changed them meanwhile, and then writes them again. If a server
// dies between Answer and the kernel, an append is done twice, which costs the space. When a zone is reset, its
// leftovers are dropped.
//
//   memory: Header | entries of this server, one for each tag of each queue | leftovers, kGenerations times as many
//
// Thread safety: any thread may call any method. The owner of a slot serialises the calls for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

class WriteLedger {
 public:
  struct Leftover {
    DeviceOp op = DeviceOp::kWrite;  // or kAppend
    DeviceOffset place;
    uint64_t length = 0;  // bytes
    size_t index = 0;     // which one, for Adopt
  };

  // Returns the bytes of memory for a server that has at most `slots` requests at a time.
  static size_t MemorySize(uint32_t slots);

  // Opens the ledger in `memory`, which is all zeros, or what the last server of `device` has left in it; it must
  // outlive this object. kInvalidArgument if another device has left it.
  static Result<std::unique_ptr<WriteLedger>> Create(ZonedDevice& device, uint32_t slots, std::span<std::byte> memory);

  // Submits `request`, a write or an append, to the device.
  void Submit(uint32_t slot, DeviceRequest& request) ISOZONE_EXCLUDES(mu_);
  // Notes that a submitted request has ended. Must be called for each of them, before Answer.
  void Ended(const DeviceRequest& request) ISOZONE_EXCLUDES(mu_);
  // Forgets the request in `slot`, whose result is about to be handed to the kernel.
  void Answer(uint32_t slot) ISOZONE_EXCLUDES(mu_);
  // Forgets what was left behind in `zone`, which was reset.
  void ZoneWasReset(ZoneId zone) ISOZONE_EXCLUDES(mu_);

  // Returns what may be this request, as the last server left it behind: writes to that place, or appends of that
  // length.
  std::vector<Leftover> Find(const DeviceRequest& request) const ISOZONE_EXCLUDES(mu_);
  // Notes that the request is `leftover`, which belongs to `slot` from now on.
  void Adopt(uint32_t slot, const Leftover& leftover) ISOZONE_EXCLUDES(mu_);

 private:
  static constexpr uint64_t kMagic = 0x3152474C455A5349;  // "ISZELGR1"
  static constexpr uint32_t kGenerations = 4;
  static constexpr uint64_t kUnknown = UINT64_MAX;
  enum class State : uint64_t { kFree = 0, kWrite = 1, kAppend = 2 };

  struct Header {
    uint64_t magic;
    uint64_t slots;
    char device[496];  // its name, cut if it is longer
  };
  struct Entry {
    uint64_t state;  // State, written last
    uint64_t place;  // DeviceOffset, or kUnknown
    uint64_t zone;
    uint64_t length;
  };

  WriteLedger(ZonedDevice& device, std::span<Entry> slots, std::span<Entry> leftovers);
  // Moves what the last server had in its slots to the leftovers.
  void TakeOver() ISOZONE_REQUIRES(mu_);
  // Returns whether `entry` is an append that has not reached the device in full.
  bool IsLost(const Entry& entry) const;
  static void Write(Entry& entry, State state, uint64_t zone, uint64_t place, uint64_t length);
  static State StateOf(const Entry& entry);
  static void Free(Entry& entry);
  // Returns where the next append to `zone` will go, or kUnknown.
  uint64_t NextPlace(ZoneId zone) ISOZONE_REQUIRES(mu_);

  ZonedDevice& device_;
  mutable Mutex mu_;  // held while an append is submitted
  const std::span<Entry> slots_ ISOZONE_GUARDED_BY(mu_);
  const std::span<Entry> leftovers_ ISOZONE_GUARDED_BY(mu_);
  bool has_leftovers_ ISOZONE_GUARDED_BY(mu_) = false;
  struct Zone {
    uint64_t next = kUnknown;  // DeviceOffset behind what was submitted last
    uint32_t appends = 0;      // at the device
  };
  std::vector<Zone> zones_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
