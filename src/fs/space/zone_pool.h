// ZonePool: who may write which zone. It executes what layer zone decides (placement, budget), and keeps zones flowing:
// dead zones are reset, and, where active zones run short, the fullest idle ones finished, by one background thread, so
// that no writer waits for a reset or a finish while there is another zone to go to.
//
// A zone is in one of these hands at any time (zone/zone_table.h has the phases):
//   free      empty, in the table of layer zone
//   leased    one ZoneLease holds it: the only writer
//   idle      partly written, nobody writes: goes on counting against the active-zone budget, first choice for the next
//   full      written to its capacity or finished
//   broken    read-only or offline, or a write failed in it: never written again, read where possible; a zone whose
//             write failed but that the device still calls writable is reset once nothing in it lives
//   metadata  kept until ReleaseMetadata. The first zones (HomeZones in zone_reserves.h) hold nothing else
//
// Invariants:
//  * Active zones (leased and idle, not yet full) never exceed the device's limit, nor leased ones its limit of open
//    zones; the reserves for metadata, logs and GC hold at all times (zone/active_budget.h).
//  * Of the empty zones, those are kept that ReserveForMetadata asked for and metadata does not have yet, 1 for GC, and 1
//    that data may not take but logs may: deleting files needs a log. Space() does not call them free.
//  * `live` of a zone is the bytes of file data in it. It is added before the data is written, and taken back when no
//    inode and no open handle refers to it.
//  * A zone is reset only when it is not leased, nothing in it lives, and every metadata record that killed something
//    in it is durable (`make_durable` is called first, but for what was dead when it was mounted): else a power cut
//    could bring back a file without its data.
//  * A dead zone that is not full is not reset at once, where the policy stripes, but gone on with: as long as empty and
//    active zones are plenty, and nobody asks for it. What is dead in it counts as free.
//  * A zone that is being collected (BeginCollection) is leased to nobody and not reset.
//  * Only zones of data and logs are finished, those of logs after `make_durable`: a finish moves the write pointer, by
//    which recovery finds the end of the journal and of logs whose end is not in the metadata. So a log's end belongs
//    into the journal before its lease is released.
//
// Waiting is bounded and counted: Acquire waits only while dead zones are being reset, while a zone is being finished
// where every active zone is in use, or while every active zone is leased by a writer in the middle of a write; idle
// leases are taken away (BeginWrite then says so) when others wait. Where a collector is attached, who has no space
// waits for it, until a whole round of it, begun after the wait, has gained nothing; and for a checkpoint, where that
// gives back zones that metadata has no longer any need of.
//
// As space runs out, users write at the pace of compaction and collection (write_pace.h), which are never slowed.
//
// Failures: a reset that fails leaves its zone broken until the next mount; Settle reports it. When `make_durable` returns
// kReadOnly, nothing is reset any more, and Acquire returns that error once no zone has room. After any other error (a lack
// of space that passes) make_durable is called again a moment later, and who has no space waits for a few of these calls.
// A finish that fails is tried again a few times: as long as the device calls the zone active, it costs a share of the
// budget, which comes back with its reset at the latest.
//
// A write that the device refused to the end, because others hold its active zones (io/patient_device.h), does nothing to
// the zone: it is idle, or empty, as before.
//
// Resets in flight are bounded, so that the device stays free for others when a database is dropped.
//
// Thread safety: any thread. `make_durable` is called without locks held; AcquireMetadata may be called inside it, and
// never waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/status.h"
#include "device/zoned_device.h"
#include "fs/file_system.h"
#include "fs/space/deletion_delays.h"
#include "fs/space/zone_reserves.h"
#include "izg/group_index.h"
#include "zone/data_class.h"
#include "zone/gc_scheme.h"
#include "zone/lifetime.h"
#include "zone/zone_use.h"

namespace isozone {

class ZonePool;

struct ZoneRequest {
  ZoneUse use = ZoneUse::kData;  // kData, kLog; kMetadata through AcquireMetadata
  Lifetime lifetime = Lifetime::kNotSet;
  uint64_t min_room = 0;                        // bytes that must still fit; at least one block
  bool urgent = false;                          // a flush: kept apart from what is not (logs are urgent by themselves)
  std::span<const uint32_t> taken_groups = {};  // for TryAcquire: in which the file has zones already
  int8_t level = DataClass::kNoLevel;
  ZoneHeat heat = kNewDataHeat;
  bool compaction = false;  // makes space sooner or later, so that users may have to wait for it
  bool gc = false;          // the collector's: out of its reserve, and it never waits for itself
  bool confined = false;    // with gc: only a zone that is partly written and not dead, or none; it does not wait
};

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
  ZoneId zone() const { return zone_; }
  // Bytes from the start of the zone: where the next write goes. Block-aligned.
  uint64_t write_pointer() const { return write_pointer_; }
  DeviceOffset next() const;
  // Bytes that still fit.
  uint64_t room() const { return capacity_ - write_pointer_; }

  // Brackets a write (or several, one after another, as one). False: the lease was taken away while it was idle and
  // now holds nothing; acquire another.
  [[nodiscard]] bool BeginWrite();
  // The write between BeginWrite and here put `bytes` (whole blocks; 0 if it failed) into the zone.
  void EndWrite(uint64_t bytes);
  // A write failed with `status`: the zone is not written again. Call instead of EndWrite; the lease holds nothing
  // then.
  void EndFailedWrite(DeviceStatus status);
  // For a write that completes on another thread: called there, instead of EndWrite and EndFailedWrite, so that nobody
  // waits for the owner to look. Short, no I/O. The owner calls Settle before it uses the lease again.
  void CompleteWrite(uint64_t bytes, DeviceStatus status);
  // With what CompleteWrite was called. After a failure the lease holds nothing.
  void Settle(uint64_t bytes, DeviceStatus status);
  // Gives the zone back early.
  void Release();

 private:
  friend class ZonePool;
  void WarnOfFailure(DeviceStatus status) const;
  ZonePool* pool_ = nullptr;
  ZoneId zone_;
  uint64_t lease_id_ = 0;  // tells this lease from a later one of the same zone
  uint64_t write_pointer_ = 0;
  uint64_t capacity_ = 0;
};

struct ZonePoolStats {
  uint64_t resets = 0;
  uint64_t failed_resets = 0;
  uint64_t finishes = 0;
  uint64_t waits = 0;  // calls of Acquire* that had to wait
  Histogram::Snapshot wait_ns;
  uint64_t revoked_leases = 0;
  uint64_t mixed_classes = 0;  // leases of zones that hold data of another class, for want of a better one
  uint64_t space_waits = 0;    // calls of Acquire that waited for the collector
  Histogram::Snapshot
      reset_written_percent;    // of the capacity of each zone that was reset: what had been written of it
  Histogram::Snapshot pace_ns;  // waits of PaceLog and PaceFlush
  DeletionDelays::Snapshot deletion_delays_ns;
};

// Which empty zones a reserve for metadata may count on.
enum class MetadataClaim : uint8_t {
  kNew,      // those that are left beside the reserves of logs and collection
  kRenewed,  // all: it was granted before a mount, and logs and collection may have used their reserves since
  kForced,   // it is granted whatever there is
};

class ZonePool {
 public:
  struct Options {
    std::string policy = "zenfs";                   // a placement policy of layer zone, by name
    std::shared_ptr<const GroupIndex> groups = {};  // of the device's zones; null: all are one group
    bool isolation = true;                          // urgent writers are kept apart from others
    bool keep_away = true;                          // with isolation: nobody widens in another's way
    bool read_only = false;                         // no thread, no lease
    uint32_t metadata_copies = kMetadataCopiesMax;  // says how many of the first zones are kept for metadata
    // Makes every metadata change so far durable; called before a reset.
    std::function<Status()> make_durable;
    // Asks the journal for a checkpoint, after which the metadata has given back what it took of the reserves; returns a
    // number for it. And whether that checkpoint is still to come or under way. Called without locks held; short. Empty:
    // nothing is given back.
    std::function<uint64_t()> want_checkpoint = {};
    std::function<bool(uint64_t)> checkpoint_pending = {};
    // Somebody waits for space. Short, no call back into the pool. Empty: there is no collector.
    std::function<void()> want_space = {};
    // A user is held up until the collector has written more (GcSpace::paced). Short, no call back into the pool.
    std::function<void()> want_pace = {};
  };

  // Reads the zone report. kInvalidArgument: too few (active) zones, or an unknown policy (naming the known ones).
  // Follow with Adopt* for what the metadata says, then Start.
  static Result<std::unique_ptr<ZonePool>> Create(ZonedDevice& device, Options options);
  ~ZonePool();  // stops; all leases must have gone

  // --- Mount, before Start ---
  // A zone that holds metadata, or is set aside for it. kInvalidArgument: the device has no such zone.
  Status AdoptMetadata(ZoneId zone);
  void SetDataClass(ZoneId zone, DataClass data);  // of what it holds
  void SetUse(ZoneId zone, ZoneUse use);           // kData or kLog
  // An empty zone that a durable record may name, though no longer the state: it is given to nobody before it was reset,
  // which waits until that is durable.
  void ResetBeforeUse(ZoneId zone);
  // A partly written zone that nothing more may be written to before it is reset.
  void KeepAsItIs(ZoneId zone);
  // What is dead in zones that nothing durable names, metadata that was given up included, is reset without asking
  // make_durable, which may need one of them. What was found is durable.
  void ReleaseUnnamed(const std::function<bool(ZoneId)>& is_named);
  // Starts the background thread; from here on dead zones are reset.
  void Start();
  // Finishes the background work that is due and ends the thread: `make_durable` must still work. No Acquire succeeds
  // afterwards (kAborted).
  void Stop();

  // --- Space held by files ---
  void AddLive(ZoneId zone, uint64_t bytes);
  void RemoveLive(ZoneId zone, uint64_t bytes);
  // A file has lost its last name, and lay in these zones; to be called before RemoveLive. Counted only.
  void NoteDeletion(Lifetime lifetime, std::span<const ZoneId> zones);

  // --- Writing ---
  // kNoSpace when nothing can be written even after all dead zones are reset; kReadOnly.
  Result<ZoneLease> Acquire(const ZoneRequest& request);
  // One more zone for a file that has some: of another group, and only where kSpareTokens active zones and a
  // sixteenth of all zones, empty, are left for others: what fills up is striped less. Never waits.
  static constexpr uint32_t kSpareTokens = 2;
  static constexpr uint32_t kSpareZonesPart = 16;
  std::optional<ZoneLease> TryAcquire(const ZoneRequest& request);
  // An empty zone for a copy of the metadata to begin in: one of the first, if there is one or one of them is about to be
  // reset; of another group than `apart_from`, where that can be had. It stays the metadata's, leased or not, until
  // ReleaseMetadata; one that is given back unwritten is free again.
  Result<ZoneLease> AcquireMetadata(std::span<const ZoneId> apart_from);
  // An empty zone for a copy to go on in, of another group likewise. It is set aside without being active.
  Result<ZoneId> SetAsideMetadata(std::span<const ZoneId> apart_from);
  // The lease on a zone of metadata that is not full and that nobody holds, to write it; any other is kInvalidArgument.
  Result<ZoneLease> ReopenMetadata(ZoneId zone);
  // The metadata in `zone` is no longer needed, durably: reset in the background, once it is not leased, and free
  // again.
  void ReleaseMetadata(ZoneId zone);
  // Keeps so many zones for metadata in all: those that it has and, beyond these, empty ones. False where there are too few
  // empty ones for `claim`; the reserve then stays as it was.
  bool ReserveForMetadata(uint32_t zones, MetadataClaim claim);

  // The device had no active zone left for a write, though the pool was within its limits: somebody else holds some. For
  // the next moments the pool keeps so many fewer active, and finishes idle zones to get there. Any thread; short.
  void NoteRefusal();

  // --- Collecting ---
  // What the collector decides by. Candidates are zones of data in which something lives and something has died, and that
  // nobody writes; and, unless they are reset at once, dead zones.
  GcSpace SpaceForGc() const;
  std::vector<GcCandidate> GcCandidates() const;
  // The zone is the collector's until EndCollection, also when nothing in it lives any more. As it is now, or empty: it
  // is no candidate any more.
  std::optional<GcCandidate> BeginCollection(ZoneId zone);
  // Resets it, if it is dead.
  void EndCollection(ZoneId zone);
  // Bytes of file data in it.
  uint64_t Live(ZoneId zone) const;
  // What it holds; of a zone that is being written, what it is opened for.
  ZoneHeat Heat(ZoneId zone) const;
  // While a collector is attached, who has no space waits for it.
  void AttachCollector(bool attached);
  // Brackets a round of collecting; `gained`: it made, or is about to make, space.
  void BeginRound();
  void EndRound(bool gained);
  // False: a dead zone is reset only when it was collected, by ResetDeadNow, or when somebody waits for space,
  // or for the active zone that it is.
  void ResetAtOnce(bool at_once);
  void ResetDeadNow();
  // While less than `percent` of the capacity is free, users write at the pace of what makes space. 0: never.
  void ThrottleBelow(double percent);

  // --- Pace (write_pace.h) ---
  // To be called without locks held before a user's log grows, and before a flush writes: while space is short they wait
  // for compaction and collection, a moment at most.
  void PaceLog(uint64_t bytes);
  void PaceFlush(uint64_t bytes);

  // --- State ---
  SpaceInfo Space() const;
  std::vector<ZoneView> Zones() const;
  ZonePoolStats Stats() const;
  // Waits until no dead zone is left to reset and no finish is due; the first error of the background work since the
  // last call. Returns at once where no thread runs.
  Status Settle();

 private:
  friend class ZoneLease;
  struct Impl;
  explicit ZonePool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace isozone
