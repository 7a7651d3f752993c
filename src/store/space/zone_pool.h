// ZonePool decides who may write which zone. It executes, on a device and by a clock, what the ZoneAllocator of
// store/zone decides (store/zone/allocator/zone_allocator.h, which states the invariants): it hands out leases, gives
// resets and finishes to the device, waits and wakes. One mutex guards the allocator, and one background thread keeps
// zones flowing, so that no writer waits for a reset or a finish while there is another zone to go to.
//
// A zone is in one of these hands at any time (store/zone/zone_table.h has the phases):
//   free      empty, in the table of store/zone
//   leased    one ZoneLease holds it: the only writer
//   idle      partly written, nobody writes: goes on counting against the active-zone budget, first choice for the next
//   full      written to its capacity or finished
//   broken    read-only or offline, or a write failed in it: never written again, read where possible; a zone whose
//             write failed but that the device still calls writable is reset once nothing in it lives
//   metadata  reserved until `ZonePool::ReleaseMetadata`. The first (HomeZones in zone_reserves.h) hold nothing else
//
// `live` of a zone is the bytes of file data in it. It is added as the write of the data ends, until when the zone is
// leased, and taken back when neither the metadata nor a SpaceClaim (space_claim.h) has it. A zone of which a durable
// record may name something is reset, or finished where it holds a log, only after `make_durable`: recovery finds the
// end of the journal, and of logs whose end is not in the metadata, by the write pointer. So a log's end belongs into
// the journal before its lease is released.
//
// Waiting is bounded and counted. Acquire waits only for what is under way or due: a reset, a finish, a write of
// another writer, a checkpoint that gives back zones of metadata, or a round of the collector. Idle leases are taken
// away (BeginWrite then says so) when others wait.
//
// Failures: a reset that fails leaves its zone broken until the next mount; Settle reports it. When `make_durable`
// returns kReadOnly, nothing is reset any more, and Acquire returns that error once no zone has room. After any other
// error (a lack of space that passes) make_durable is called again a moment later, and who has no space waits for a few
// of these calls. A finish that fails is tried again a few times: as long as the device calls the zone active, it costs
// a share of the budget, which comes back with its reset at the latest. A write that the device refused to the end,
// because others hold its active zones (store/io/patient_device.h), does nothing to the zone: it is idle, or empty, as
// before.
//
// What executes the allocator's answers, and the background thread, are in zone_pool_execution.cc.
//
// Thread safety: any thread. `make_durable` is called without locks held; `AcquireForMetadata` may be called inside it,
// and never waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/mutex.h"
#include "base/status.h"
#include "device/zoned_device.h"
#include "store/file_system.h"
#include "store/gc/gc_store.h"
#include "store/space/deletion_delays.h"
#include "store/space/zone_lease.h"
#include "store/space/zone_pool_options.h"
#include "store/zone/allocator/zone_allocator.h"
#include "store/zone/data_class.h"
#include "store/zone/lifetime.h"
#include "store/zone/placement_policy.h"
#include "store/zone/zone_use.h"

namespace isozone {

// Active zones, by who has them.
struct ActiveZones {
  uint64_t metadata = 0;
  uint64_t log = 0;
  uint64_t gc = 0;
  uint64_t data = 0;
  uint64_t others = 0;  // withheld, because somebody else has them
};

struct ZonePoolStats : AllocatorStats {
  uint64_t waits = 0;  // inquiries that had to wait
  SpaceInfo space;
  ActiveZones active;
};

struct ZonePoolHistograms {
  Histogram wait_ns;  // how long those waited who asked for a zone
  Histogram pace_ns;  // how long PaceLog and PaceFlush waited
  DeletionDelays deletion_delays;
};

// What the metadata says of a zone of files.
struct AdoptedZone {
  ZoneUse use = ZoneUse::kFree;  // kData or kLog
  DataClass data = {};
  uint64_t live = 0;      // bytes
  bool has_data = false;  // see ZonePool::NoteHasData
};

class ZonePool final : private GcZones {
 public:
  // Reads the zone report, and makes a pool. kInvalidArgument if there are too few (active) zones, or if the policy is
  // unknown (naming the known ones). The caller then says what the metadata says of the zones, and calls Start.
  static Result<std::unique_ptr<ZonePool>> Create(ZonedDevice& device, ZonePoolOptions options);
  ~ZonePool() override { Stop(); }  // all leases must have gone
  ZonePool(const ZonePool&) = delete;
  ZonePool& operator=(const ZonePool&) = delete;

  // Starts the background thread; from here on dead zones are reset. kIoError if no thread can be had.
  Status Start() ISOZONE_EXCLUDES(mu_);
  // Finishes the background work that is due and ends the thread: `make_durable` must still work. No Acquire succeeds
  // afterwards (kAborted).
  void Stop() ISOZONE_EXCLUDES(mu_);

  // --- At mount, before Start: what the metadata says of zones ---
  // Makes `zone` one that holds metadata, or, where it is empty, one that is reserved for it. kInvalidArgument if the
  // device has no such zone.
  Status AdoptMetadata(ZoneId zone) ISOZONE_EXCLUDES(mu_);
  // Makes `zone` one of files, with what the metadata says of it.
  void Adopt(ZoneId zone, const AdoptedZone& adopted) ISOZONE_EXCLUDES(mu_);
  // Gives an empty zone to nobody before it was reset. A durable record may still name the zone, though the state no
  // longer does, and the reset waits until that is durable.
  void ResetBeforeUse(ZoneId zone) ISOZONE_EXCLUDES(mu_);
  // Lets nothing more be written to a partly written zone before it is reset.
  void KeepAsItIs(ZoneId zone) ISOZONE_EXCLUDES(mu_);
  // Lets dead zones that nothing durable names, those of metadata that was given up included, be reset without asking
  // make_durable, which may need one of them. Whatever recovery has found is durable, so `is_named` may go by it.
  void ReleaseUnnamed(const std::function<bool(ZoneId)>& is_named) ISOZONE_EXCLUDES(mu_);

  // --- Space held by files (space_claim.h, which is who calls the first two) ---
  void AddLive(ZoneId zone, uint64_t bytes) ISOZONE_EXCLUDES(mu_);
  void RemoveLive(ZoneId zone, uint64_t bytes) ISOZONE_EXCLUDES(mu_);
  // Notes that a log which lies in `zone`, one of logs, has become data there. The zone may be collected from now on.
  void NoteHasData(ZoneId zone) ISOZONE_EXCLUDES(mu_);
  // Notes that a file which lies in `zones` has lost its last name. It is called before the bytes are given back.
  void NoteDeletion(Lifetime lifetime, std::span<const ZoneId> zones);

  // --- Writing files ---
  // Returns the lease of a zone for `request`, and waits for one if need be. kNoSpace when nothing can be written even
  // after all dead zones are reset; kReadOnly.
  Result<ZoneLease> Acquire(const ZoneRequest& request) ISOZONE_EXCLUDES(mu_);
  // Returns one more zone for a file that has some: one of another group, and only where two active zones are left for
  // others, and empty ones enough (ZoneChoice::Wider). So a device that fills up is striped less. Never waits.
  std::optional<ZoneLease> TryAcquire(const ZoneRequest& request) ISOZONE_EXCLUDES(mu_);
  // Waits until files of data can take so many bytes, as Acquire waits for a zone. kNoSpace, kReadOnly likewise.
  Status AwaitRoom(uint64_t bytes) ISOZONE_EXCLUDES(mu_);
  // Seals a cohort, as ZoneAllocator::Seal says.
  void Seal(uint64_t cohort) ISOZONE_EXCLUDES(mu_);
  // Notes that the device had no active zone left for a write, though the pool was within its limits: others hold some.
  // For the next moments the pool keeps so many fewer active, and finishes idle zones to get there. Any thread; short.
  void NoteRefusal() ISOZONE_EXCLUDES(mu_);
  // While space is short, these wait for compaction and GC, a moment at most (write_pace.h). PaceLog is called before a
  // user's log grows, PaceFlush before a flush writes, both without locks held.
  void PaceLog(uint64_t bytes) ISOZONE_EXCLUDES(mu_);
  void PaceFlush(uint64_t bytes) ISOZONE_EXCLUDES(mu_);

  // --- Writing metadata ---
  // Returns an empty zone for a copy of the metadata to begin in: one of the first, if there is one or one of them is
  // about to be reset; of another group than `apart_from`, where that can be had. It stays the metadata's, leased or
  // not, until ReleaseMetadata; one that is given back unwritten is free again.
  Result<ZoneLease> AcquireForMetadata(std::span<const ZoneId> apart_from) ISOZONE_EXCLUDES(mu_);
  // Reserves an empty zone, which does not become active, for a copy to go on in; of another group likewise.
  Result<ZoneId> SetAside(std::span<const ZoneId> apart_from) ISOZONE_EXCLUDES(mu_);
  // Returns the lease on a zone of metadata that is not full and that nobody holds; kInvalidArgument for any other
  // zone.
  Result<ZoneLease> Reopen(ZoneId zone) ISOZONE_EXCLUDES(mu_);
  // Notes that the metadata in `zone` is no longer needed, durably. The zone is reset in the background once it is not
  // leased, and is free again.
  void ReleaseMetadata(ZoneId zone) ISOZONE_EXCLUDES(mu_);
  // Reserves so many zones for metadata in all: those that it has and, beyond these, empty ones. Returns false where
  // too few are empty for `claim`; the reserve then stays as it was.
  bool ReserveForMetadata(uint32_t zones, MetadataClaim claim) ISOZONE_EXCLUDES(mu_);

  // --- State ---
  // Returns the zones as the collector sees them.
  GcZones& collected() { return *this; }
  SpaceInfo Space() const ISOZONE_EXCLUDES(mu_);
  // Returns the room that data has in zones that are partly written, as ZoneChoice::RoomOf says.
  ZoneRoom RoomOf(const DataClass& data, uint64_t cohort) const ISOZONE_EXCLUDES(mu_);
  // Returns the bytes of file data in a zone.
  uint64_t Live(ZoneId zone) const ISOZONE_EXCLUDES(mu_);
  // Returns the heat of what a zone holds; for a zone that is being written, of what it was opened for.
  ZoneHeat Heat(ZoneId zone) const ISOZONE_EXCLUDES(mu_);
  std::vector<ZoneView> Zones() const ISOZONE_EXCLUDES(mu_);
  // Returns the counters, all as of one moment.
  ZonePoolStats Stats() const ISOZONE_EXCLUDES(mu_);
  const ZonePoolHistograms& histograms() const { return histograms_; }
  // Waits until no dead zone is left to reset and no finish is due, and returns the first error of the background work
  // since the last call. Returns at once where no thread runs.
  Status Settle() ISOZONE_EXCLUDES(mu_);

 private:
  friend class ZoneLease;

  // A reset or finish at the device.
  struct Job {
    ZonePool* pool = nullptr;
    ZoneId zone;
    DeviceRequest request;
  };

  ZonePool(ZonedDevice& device, ZonePoolOptions options, std::unique_ptr<PlacementPolicy> policy,
           std::span<const ZoneDescriptor> report);

  // --- For the collector ---
  GcSpace Look() const override ISOZONE_EXCLUDES(mu_);
  std::vector<GcCandidate> Candidates() const override ISOZONE_EXCLUDES(mu_);
  std::optional<GcCandidate> Hold(ZoneId zone) override ISOZONE_EXCLUDES(mu_);
  void LetGo(ZoneId zone) override ISOZONE_EXCLUDES(mu_);
  void Attach(bool attached) override ISOZONE_EXCLUDES(mu_);
  void BeginRound() override ISOZONE_EXCLUDES(mu_);
  void EndRound(bool gained) override ISOZONE_EXCLUDES(mu_);
  void ResetAtOnce(bool at_once) override ISOZONE_EXCLUDES(mu_);
  void ResetDead() override ISOZONE_EXCLUDES(mu_);
  void ThrottleBelow(ThrottleRule rule) override ISOZONE_EXCLUDES(mu_);

  // --- For leases ---
  void CompleteWrite(const ZoneGrant& lease, uint64_t bytes, uint64_t live, DeviceStatus status) ISOZONE_EXCLUDES(mu_);
  // Waits until it is known what a failed write has left, and the lease has ended.
  void AwaitEnd(const ZoneGrant& lease) ISOZONE_EXCLUDES(mu_);
  void Release(const ZoneGrant& lease) ISOZONE_EXCLUDES(mu_);

  // --- Asking: does what the answers say, until a zone is granted or nothing can help ---
  Result<ZoneGrant> Grant(ZoneAllocator::Inquiry&& inquiry) ISOZONE_REQUIRES(mu_);
  Result<ZoneLease> Lease(ZoneAllocator::Inquiry&& inquiry) ISOZONE_REQUIRES(mu_);
  Status CheckWritable() const ISOZONE_REQUIRES(mu_);
  void AwaitCheckpoint(ZoneAllocator::Inquiry& inquiry) ISOZONE_REQUIRES(mu_);
  void AwaitChange(ZoneAllocator::Inquiry& inquiry, int64_t until_ns) ISOZONE_REQUIRES(mu_);
  Status NothingLeft(Lack lack) const ISOZONE_REQUIRES(mu_);

  // --- Background ---
  void RunInBackground() ISOZONE_EXCLUDES(mu_);
  void Rest(int64_t until_ns) ISOZONE_REQUIRES(mu_);
  void CountOthers() ISOZONE_REQUIRES(mu_);
  void WakeIfDue() ISOZONE_REQUIRES(mu_);
  // Wakes those who may wait for what has changed.
  void Announce() ISOZONE_REQUIRES(mu_);
  // Gives commands to the device, after MakeDurable those that wait for durable metadata.
  void Execute(const std::vector<ZoneCommands>& commands) ISOZONE_REQUIRES(mu_);
  bool MakeDurable() ISOZONE_REQUIRES(mu_);
  // Asks readers about zones that they pin, or that are about to be reset, and tells the allocator.
  void AskReaders(std::vector<ZoneId> zones) ISOZONE_REQUIRES(mu_);
  // Does the same for the zones of a reset that is ready, and takes those out of it that are pinned.
  void KeepPinned(ZoneCommands& commands) ISOZONE_REQUIRES(mu_);
  void Submit(const ZoneCommands& commands) ISOZONE_REQUIRES(mu_);
  // Tells the allocator what the device has done. Returns true if it has done something: the mutex may have been given
  // up meanwhile.
  bool Drain() ISOZONE_REQUIRES(mu_);
  void EndJob(ZoneId zone) ISOZONE_REQUIRES(mu_);
  void EndFailedWrite(ZoneId zone) ISOZONE_REQUIRES(mu_);
  // Returns what the device says of `zone`. If it does not answer, returns nothing and latches the error.
  std::optional<ZoneDescriptor> Report(ZoneId zone) ISOZONE_REQUIRES(mu_);
  void Latch(const Status& status) ISOZONE_REQUIRES(mu_);

  // --- Pace ---
  void Pace(uint64_t bytes, ZoneWriter who) ISOZONE_EXCLUDES(mu_);
  // Is called after whatever may have changed how much is free.
  void NoteSpace() ISOZONE_REQUIRES(mu_) {
    is_tight_.store(allocator_.collection().IsTight(), std::memory_order_relaxed);
  }

  // --- State ---
  ZoneTable& table() ISOZONE_REQUIRES(mu_) { return allocator_.ledger().table; }
  const ZoneRecord& at(ZoneId zone) const ISOZONE_REQUIRES(mu_) { return allocator_.ledger().table.at(zone); }
  SpaceInfo SpaceNow() const ISOZONE_REQUIRES(mu_);
  // Tells the statistics page every zone, now and whenever it changes.
  void ShowZones() ISOZONE_REQUIRES(mu_);
  // Tells the statistics page what has happened to `zone`, of which `written` bytes were written.
  void Tell(PageEventKind kind, ZoneId zone, uint64_t written) const;

  ZonedDevice& device_;
  const ZonePoolOptions options_;
  Clock& clock_;
  ZonePoolHistograms histograms_;
  std::atomic<uint64_t> logged_{0};    // bytes of logs that the allocator has not been told of
  std::atomic<bool> is_tight_{false};  // space is short: users' writes are paced

  mutable Mutex mu_;
  CondVar work_;     // for the background thread
  CondVar changed_;  // for those who wait: a zone, a token, a lease or an error
  ZoneAllocator allocator_ ISOZONE_GUARDED_BY(mu_);
  uint64_t waits_ ISOZONE_GUARDED_BY(mu_) = 0;  // inquiries that had to wait
  Status first_error_ ISOZONE_GUARDED_BY(mu_);  // since the last Settle
  std::unordered_map<ZoneId, Job> jobs_ ISOZONE_GUARDED_BY(mu_);
  std::vector<ZoneId> completed_ ISOZONE_GUARDED_BY(mu_);      // jobs that the device has done
  std::vector<ZoneId> failed_writes_ ISOZONE_GUARDED_BY(mu_);  // leased, written no more, not looked at yet
  std::thread thread_;                                         // touched by Start and Stop only
};

}  // namespace isozone
