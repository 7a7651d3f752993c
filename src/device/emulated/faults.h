// The faults of an emulated SSD, derived from a seed: exactly the fault model of docs/fault-model.md.
//
//   read error       a read fails with Unrecovered Read Error, and one block of its range is bad from then on:
//                    every read of that block fails until its zone is reset
//   write error      a write or append fails with Write Fault; a random number of its blocks, none to all, is stored
//   zone read-only   a write, append or reset finds that its zone has turned read-only, or offline, and fails so
//   latency spike    a command takes fault_latency_spike_us longer
//   power cut        see EmulatedDevice
//
// Thread safety: every method may be called from any thread. If several threads submit commands, their order decides
// which commands the seed's faults hit.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/random.h"
#include "base/status.h"
#include "base/uri.h"
#include "device/zoned_device.h"

namespace isozone {

// The keys in a URI are the names of the fields, with "fault_" in front. Probabilities are per command, 0..1.
struct FaultPlan {
  std::optional<uint64_t> seed;  // random if absent
  double read_error = 0;
  double write_error = 0;
  double zone_read_only = 0;
  double zone_offline = 0;
  double latency_spike = 0;
  uint64_t latency_spike_us = 10'000;
  std::optional<uint64_t> power_cut_after;  // commands before the one in which power fails

  // Returns whether any fault is planned.
  bool any() const;
};

Result<FaultPlan> TakeFaultPlan(UriOptions& options);

class FaultInjector {
 public:
  explicit FaultInjector(const FaultPlan& plan);

  uint64_t seed() const { return seed_; }

  struct Verdict {
    DeviceStatus status = DeviceStatus::kSuccess;  // the status with which the command fails
    bool tears_write = false;                      // the write fails after some of its blocks are stored
    std::optional<ZoneState> zone_turns;           // the state that its zone takes first
    int64_t delay_ns = 0;                          // how much longer the command takes
    bool power_fails = false;                      // power fails while the command is in flight

    // Returns whether there is more to do than to delay the command.
    bool any() const { return status != DeviceStatus::kSuccess || zone_turns || power_fails; }
  };
  // Decides what happens to `request`, which is valid and about to start. Cheap if no fault is planned.
  Verdict Judge(const DeviceGeometry& geometry, const DeviceRequest& request) {
    if (!armed_.load(std::memory_order_relaxed)) return {};
    return JudgeArmed(geometry, request);
  }

  // Makes the next `op` on `zone` (on any zone for kFlush) fail with `status`. Several calls queue up. A read or write
  // that fails in this way has no other effect.
  void FailNext(DeviceOp op, ZoneId zone, DeviceStatus status);
  // Makes power fail in the command after the next `commands` commands.
  void CutPowerAfter(uint64_t commands);
  // Makes the blocks of a zone good again, as a reset does.
  void ForgetBadBlocks(ZoneId zone);

  // Returns a number in [0, bound), for the outcomes of faults that the device decides.
  uint64_t Below(uint64_t bound);

 private:
  struct Scripted {
    DeviceOp op;
    ZoneId zone;
    DeviceStatus status;
  };
  using Block = std::pair<ZoneId, uint64_t>;  // zone, block in the zone

  Verdict JudgeArmed(const DeviceGeometry& geometry, const DeviceRequest& request);
  std::optional<DeviceStatus> TakeScripted(DeviceOp op, ZoneId zone) ISOZONE_REQUIRES(mu_);
  bool ReadFails(const DeviceGeometry& geometry, const DeviceRequest& request) ISOZONE_REQUIRES(mu_);
  void JudgeChange(const DeviceRequest& request, Verdict& verdict) ISOZONE_REQUIRES(mu_);

  const FaultPlan plan_;
  const uint64_t seed_;
  std::atomic<bool> armed_;
  Mutex mu_;
  Random random_ ISOZONE_GUARDED_BY(mu_);
  std::optional<uint64_t> commands_until_cut_ ISOZONE_GUARDED_BY(mu_);
  std::vector<Scripted> scripted_ ISOZONE_GUARDED_BY(mu_);
  std::set<Block> bad_blocks_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
