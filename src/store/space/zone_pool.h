// ZonePool: who may write which zone. It executes, on a device and by a clock, what the ZoneAllocator of layer zone
// decides (store/zone/allocator/zone_allocator.h, which states the invariants): it hands out leases, gives resets and
// finishes to the device, waits and wakes. One mutex guards the allocator, and one background thread keeps zones
// flowing, so that no writer waits for a reset or a finish while there is another zone to go to.
//
// A zone is in one of these hands at any time (store/zone/zone_table.h has the phases):
//   free      empty, in the table of layer zone
//   leased    one ZoneLease holds it: the only writer
//   idle      partly written, nobody writes: goes on counting against the active-zone budget, first choice for the next
//   full      written to its capacity or finished
//   broken    read-only or offline, or a write failed in it: never written again, read where possible; a zone whose
//             write failed but that the device still calls writable is reset once nothing in it lives
//   metadata  kept until `MetadataZones::Release`. The first zones (HomeZones in zone_reserves.h) hold nothing else
//
// `live` of a zone is the bytes of file data in it. It is added before the data is written, and taken back when neither
// the metadata nor a SpaceClaim (space_claim.h) has it. A zone of which a durable record may name something is reset,
// or finished where it holds a log, only after `make_durable`: recovery finds the end of the journal, and of logs whose
// end is not in the metadata, by the write pointer. So a log's end belongs into the journal before its lease is
// released.
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
// Thread safety: any thread. `make_durable` is called without locks held; `MetadataZones::Acquire` may be called inside
// it, and never waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/status.h"
#include "device/izg/group_index.h"
#include "device/zoned_device.h"
#include "store/file_system.h"
#include "store/space/adopted_zones.h"
#include "store/space/collected_zones.h"
#include "store/space/deletion_delays.h"
#include "store/space/metadata_zones.h"
#include "store/space/zone_lease.h"
#include "store/space/zone_pool_options.h"
#include "store/space/zone_statistics.h"
#include "store/zone/allocator/zone_allocator.h"
#include "store/zone/allocator/zone_request.h"
#include "store/zone/allocator/zone_reserves.h"
#include "store/zone/data_class.h"
#include "store/zone/gc_scheme.h"
#include "store/zone/lifetime.h"
#include "store/zone/zone_use.h"

namespace isozone {

struct ZonePoolStats : AllocatorStats {
  uint64_t waits = 0;  // calls of Acquire* that had to wait
  Histogram::Snapshot wait_ns;
  // Of the capacity of each zone that was reset: what had been written of it.
  Histogram::Snapshot reset_written_percent;
  Histogram::Snapshot pace_ns;  // waits of PaceLog and PaceFlush
  DeletionDelays::Snapshot deletion_delays_ns;
};

class ZonePool {
 public:
  // Reads the zone report. kInvalidArgument: too few (active) zones, or an unknown policy (naming the known ones).
  // Follow with adopted() for what the metadata says, then Start.
  static Result<std::unique_ptr<ZonePool>> Create(ZonedDevice& device, ZonePoolOptions options);
  ~ZonePool();  // stops; all leases must have gone

  // Starts the background thread; from here on dead zones are reset. kIoError: there is no thread.
  Status Start();
  // Finishes the background work that is due and ends the thread: `make_durable` must still work. No Acquire succeeds
  // afterwards (kAborted).
  void Stop();

  // --- Space held by files (space_claim.h, which is who calls these two) ---
  void AddLive(ZoneId zone, uint64_t bytes);
  void RemoveLive(ZoneId zone, uint64_t bytes);

  // --- Writing ---
  // kNoSpace when nothing can be written even after all dead zones are reset; kReadOnly.
  Result<ZoneLease> Acquire(const ZoneRequest& request);
  // One more zone for a file that has some: of another group, and only where two active zones and a
  // sixteenth of all zones, empty, are left for others: what fills up is striped less. Never waits.
  std::optional<ZoneLease> TryAcquire(const ZoneRequest& request);
  // Waits until files of data can take so many bytes, as Acquire waits for a zone. kNoSpace, kReadOnly likewise.
  Status AwaitRoom(uint64_t bytes);
  // See ZoneAllocator::Seal.
  void Seal(uint64_t cohort);
  // The device had no active zone left for a write, though the pool was within its limits: somebody else holds some.
  // For the next moments the pool keeps so many fewer active, and finishes idle zones to get there. Any thread; short.
  void NoteRefusal();

  // --- Zones of other kinds ---
  AdoptedZones& adopted() { return adopted_; }
  MetadataZones& metadata() { return metadata_; }
  CollectedZones& collected() { return collected_; }
  ZoneStatistics& statistics() { return statistics_; }

  // --- Pace (write_pace.h) ---
  // To be called without locks held before a user's log grows, and before a flush writes: while space is short they
  // wait for compaction and collection, a moment at most.
  void PaceLog(uint64_t bytes);
  void PaceFlush(uint64_t bytes);

  // --- State ---
  SpaceInfo Space() const;
  // See ZoneChoice::RoomOf.
  ZoneRoom RoomOf(const DataClass& data, uint64_t cohort) const;
  std::vector<ZoneView> Zones() const;
  ZonePoolStats Stats() const;
  // Waits until no dead zone is left to reset and no finish is due; the first error of the background work since the
  // last call. Returns at once where no thread runs.
  Status Settle();

 private:
  explicit ZonePool(std::unique_ptr<ZoneExecutor> executor);
  const std::unique_ptr<ZoneExecutor> executor_;
  AdoptedZones adopted_;
  MetadataZones metadata_;
  CollectedZones collected_;
  ZoneStatistics statistics_;
};

}  // namespace isozone
