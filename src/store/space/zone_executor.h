// ZoneExecutor: does on the device, by a clock, what the ZoneAllocator answers: the mutex around the allocator, the
// threads that wait, and the one that resets and finishes zones in the background. What others see of it is parted:
// zone_pool.h (files and people), metadata_zones.h, adopted_zones.h (mount), collected_zones.h and zone_lease.h.
// Nothing else includes this file.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
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
#include "store/space/deletion_delays.h"
#include "store/space/zone_lease.h"
#include "store/space/zone_pool_options.h"
#include "store/zone/allocator/zone_allocator.h"
#include "store/zone/placement_policy.h"

namespace isozone {

class ZoneExecutor {
 public:
  ZoneExecutor(ZonedDevice& d, ZonePoolOptions o, std::unique_ptr<PlacementPolicy> policy,
               std::span<const ZoneDescriptor> report);
  ~ZoneExecutor() { Stop(); }
  ZoneExecutor(const ZoneExecutor&) = delete;
  ZoneExecutor& operator=(const ZoneExecutor&) = delete;

  // --- Asking: does what the answers say, until a zone is granted or nothing can help ---
  Result<ZoneGrant> Grant(ZoneAllocator::Inquiry& inquiry) ISOZONE_REQUIRES(mu);
  Status CheckWritable() const ISOZONE_REQUIRES(mu);
  ZoneLease LeaseOf(const ZoneGrant& grant);

  // --- Leases ---
  bool BeginWrite(const ZoneGrant& lease) ISOZONE_EXCLUDES(mu);
  void CompleteWrite(const ZoneGrant& lease, uint64_t bytes, DeviceStatus status) ISOZONE_EXCLUDES(mu);
  void Release(const ZoneGrant& lease) ISOZONE_EXCLUDES(mu);

  // --- Background ---
  Status Start() ISOZONE_EXCLUDES(mu);
  void Stop() ISOZONE_EXCLUDES(mu);
  void WakeIfDue() ISOZONE_REQUIRES(mu);
  // What has changed may be what somebody waits for.
  void Announce() ISOZONE_REQUIRES(mu);
  // Tells the allocator what the device has done. True: it has done something; the mutex was given up meanwhile.
  bool Drain() ISOZONE_REQUIRES(mu);

  // --- Pace ---
  void Pace(uint64_t bytes, ZoneWriter who) ISOZONE_EXCLUDES(mu);
  // After whatever may have changed what is free.
  void NoteSpace() ISOZONE_REQUIRES(mu) { is_tight.store(allocator.collection().IsTight(), std::memory_order_relaxed); }

  SpaceInfo Space() const ISOZONE_REQUIRES(mu);

  ZonedDevice& device;
  const ZonePoolOptions options;
  Clock& clock;
  Histogram wait_ns;
  Histogram pace_ns;
  DeletionDelays deletion_delays;
  std::atomic<uint64_t> logged{0};    // bytes of logs that the allocator has not been told of
  std::atomic<bool> is_tight{false};  // what users write costs something

  mutable Mutex mu;
  CondVar work;     // for the background thread
  CondVar changed;  // for those who wait: a zone, a token, a lease or an error
  ZoneAllocator allocator ISOZONE_GUARDED_BY(mu);
  uint64_t waits ISOZONE_GUARDED_BY(mu) = 0;  // inquiries that had to wait
  Status first_error ISOZONE_GUARDED_BY(mu);  // since the last Settle

 private:
  // A reset or finish at the device.
  struct Job {
    ZoneExecutor* executor = nullptr;
    ZoneId zone;
    DeviceRequest request;
  };

  void AwaitCheckpoint(ZoneAllocator::Inquiry& inquiry) ISOZONE_REQUIRES(mu);
  void AwaitChange(ZoneAllocator::Inquiry& inquiry, int64_t until_ns) ISOZONE_REQUIRES(mu);
  Status NothingLeft(Lack lack) const ISOZONE_REQUIRES(mu);

  void RunInBackground() ISOZONE_EXCLUDES(mu);
  void Rest(int64_t until_ns) ISOZONE_REQUIRES(mu);
  void CountOthers() ISOZONE_REQUIRES(mu);
  // Gives commands to the device; those that wait for durable metadata, when it is.
  void Execute(const std::vector<ZoneCommands>& commands) ISOZONE_REQUIRES(mu);
  bool MakeDurable() ISOZONE_REQUIRES(mu);
  // Asks readers about zones that they pin, or that are about to be reset, and tells the allocator.
  void AskReaders(std::vector<ZoneId> zones) ISOZONE_REQUIRES(mu);
  // The same for commands that are ready, which lose what is pinned.
  void KeepPinned(ZoneCommands& commands) ISOZONE_REQUIRES(mu);
  void Submit(const ZoneCommands& commands) ISOZONE_REQUIRES(mu);
  void EndJob(ZoneId zone) ISOZONE_REQUIRES(mu);
  void EndFailedWrite(ZoneId zone) ISOZONE_REQUIRES(mu);
  // Empty, and the error latched, where the device does not answer.
  std::optional<ZoneDescriptor> Report(ZoneId zone) ISOZONE_REQUIRES(mu);
  void Latch(const Status& status) ISOZONE_REQUIRES(mu);
  // Tells the statistics page every zone, now and whenever it changes.
  void ShowZones() ISOZONE_REQUIRES(mu);
  // Tells it what has happened to `zone`, of which so much was written.
  void Tell(PageEventKind kind, ZoneId zone, uint64_t written) const;

  std::unordered_map<ZoneId, Job> jobs_ ISOZONE_GUARDED_BY(mu);
  std::vector<ZoneId> completed_ ISOZONE_GUARDED_BY(mu);      // jobs that the device has done
  std::vector<ZoneId> failed_writes_ ISOZONE_GUARDED_BY(mu);  // leased, written no more, not looked at yet
  std::thread thread_;                                        // touched by Start and Stop only
};

}  // namespace isozone
