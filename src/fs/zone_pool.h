// ZonePool: who may write which zone. It executes what layer zone decides (placement, budget), and keeps zones flowing:
// dead zones are reset, and, where active zones run short, the fullest idle ones finished, by one background thread, so
// that no writer ever waits for a reset or a finish.
//
// A zone is in one of these hands at any time:
//   free      empty, in the table of layer zone
//   leased    one ZoneLease holds it: the only writer
//   idle      partly written, nobody writes: goes on counting against the active-zone budget, first choice for the next
//   full      written to its capacity or finished
//   broken    read-only or offline, or a write failed in it: never written again, read where possible; a zone whose
//   write
//             failed but that the device still calls writable is reset once nothing in it lives
//   metadata  superblock, journal, checkpoint: leased for good, given back by ReleaseMetadata
//
// Invariants:
//  * Active zones (leased and idle, not yet full) never exceed the device's limit; the reserves for metadata, logs and
//  GC
//    hold at all times (layer zone, ActiveBudget).
//  * `live` of a zone is the bytes of file data in it. It is added before the data is written, and taken back when no
//  inode
//    and no open handle refers to it.
//  * A zone is reset only when it is not leased, nothing in it lives, and every metadata record that killed something
//  in it
//    is durable (`make_durable` is called first): else a power cut could bring back a file without its data.
//
// Waiting is bounded and counted: Acquire waits only while every active zone is leased by a writer in the middle of a
// write or while dead zones are being reset; idle leases are taken away (BeginWrite then says so) when others wait.
//
// Thread safety: any thread. `make_durable` is called without locks held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/status.h"
#include "device/zoned_device.h"
#include "fs/file_system.h"
#include "zone/lifetime.h"

namespace isozone {

class ZonePool;

struct ZoneRequest {
  ZoneUse use = ZoneUse::kData;  // kData, kLog; kJournal, kCheckpoint, kSuperblock through AcquireMetadata
  Lifetime lifetime = Lifetime::kNotSet;
  uint64_t min_room = 0;  // bytes that must still fit; at least one block
};

// The exclusive right to write one zone. Move-only; gives the zone back when it goes.
class ZoneLease {
 public:
  ZoneLease() = default;  // holds nothing
  ZoneLease(ZoneLease&& other) noexcept;
  ZoneLease& operator=(ZoneLease&& other) noexcept;
  ~ZoneLease();

  bool held() const { return pool_ != nullptr; }
  ZoneId zone() const { return zone_; }
  // Bytes from the start of the zone: where the next write goes. Block-aligned.
  uint64_t write_pointer() const { return write_pointer_; }
  DeviceOffset next() const;
  // Bytes that still fit.
  uint64_t room() const { return capacity_ - write_pointer_; }

  // Brackets a write. False: the lease was taken away while it was idle and now holds nothing; acquire another.
  [[nodiscard]] bool BeginWrite();
  // The write between BeginWrite and here put `bytes` (whole blocks; 0 if it failed) into the zone.
  void EndWrite(uint64_t bytes);
  // A write failed with `status`: the zone is not written again. Call instead of EndWrite; the lease holds nothing
  // then.
  void EndFailedWrite(DeviceStatus status);
  // Gives the zone back early.
  void Release();

 private:
  friend class ZonePool;
  ZonePool* pool_ = nullptr;
  ZoneId zone_;
  uint64_t lease_id_ = 0;  // tells this lease from a later one of the same zone
  uint64_t write_pointer_ = 0;
  uint64_t capacity_ = 0;
};

struct ZonePoolStats {
  uint64_t resets = 0;
  uint64_t finishes = 0;
  uint64_t waits = 0;
  Histogram::Snapshot wait_ns;
  uint64_t revoked_leases = 0;
};

class ZonePool {
 public:
  struct Options {
    std::string policy = "zenfs";  // a placement policy of layer zone, by name
    bool read_only = false;        // no thread, no lease
    // Makes every metadata change so far durable; called before a reset.
    std::function<Status()> make_durable;
  };

  // Reads the zone report. kInvalidArgument: too few (active) zones, or an unknown policy (naming the known ones).
  // Follow with Adopt* for what the metadata says, then Start.
  static Result<std::unique_ptr<ZonePool>> Create(ZonedDevice& device, Options options);
  ~ZonePool();  // stops; all leases must have gone

  // --- Mount, before Start ---
  // A zone that the superblock names as metadata.
  Status AdoptMetadata(ZoneId zone, ZoneUse use);
  void SetLifetime(ZoneId zone, Lifetime lifetime);  // of what it holds
  void SetUse(ZoneId zone, ZoneUse use);             // kData or kLog
  // Starts the background thread; from here on dead zones are reset.
  void Start();
  // Finishes the background work that is due and ends the thread. No Acquire succeeds afterwards.
  void Stop();

  // --- Space held by files ---
  void AddLive(ZoneId zone, uint64_t bytes);
  void RemoveLive(ZoneId zone, uint64_t bytes);

  // --- Writing ---
  // kNoSpace when nothing can be written even after all dead zones are reset; kReadOnly.
  Result<ZoneLease> Acquire(const ZoneRequest& request);
  // An empty zone for metadata, out of the reserve that is kept for it.
  Result<ZoneLease> AcquireMetadata(ZoneUse use);
  // The lease on a metadata zone that was adopted at mount and is not full, to go on writing it.
  Result<ZoneLease> ReopenMetadata(ZoneId zone);
  // The metadata in `zone` is no longer needed, durably: reset in the background and free again.
  void ReleaseMetadata(ZoneId zone);

  // --- State ---
  SpaceInfo Space() const;
  std::vector<ZoneView> Zones() const;
  ZonePoolStats Stats() const;
  // Waits until no dead zone is left to reset; the first error of a reset since the last call.
  Status Settle();

 private:
  friend class ZoneLease;
  struct Impl;
  explicit ZonePool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What an Isozone file system needs of a device, in words for people; OK or kInvalidArgument.
Status CheckDeviceFits(const DeviceGeometry& geometry);

}  // namespace isozone
