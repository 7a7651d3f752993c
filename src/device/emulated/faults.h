// What goes wrong with an emulated SSD, from a seed: the fault model of docs/fault-model.md, and exactly that.
//
//   read error       a read fails with Unrecovered Read Error, and one block of what it wanted is bad from then on:
//                    every read of that block fails until its zone is reset
//   write error      a write or append fails with Write Fault; a random number of its blocks, not all, is stored
//   zone read-only   a write, append or reset finds that its zone has turned read-only, or offline, and fails as such
//   latency spike    a command takes fault_latency_spike_us longer
//   power cut        see EmulatedDevice
//
// Thread safety: every method may be called from any thread. With several threads submitting, the order of their
// commands, and so what the seed hits, is theirs.
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

// URI keys: each field's name after "fault_". Probabilities are per command, 0..1.
struct FaultPlan {
  std::optional<uint64_t> seed;  // drawn where absent
  double read_error = 0;
  double write_error = 0;
  double zone_read_only = 0;
  double zone_offline = 0;
  double latency_spike = 0;
  uint64_t latency_spike_us = 10'000;
  std::optional<uint64_t> power_cut_after;  // commands that pass before the one in which power fails

  // Something is planned to go wrong.
  bool any() const;
};

Result<FaultPlan> TakeFaultPlan(UriOptions& options);

class FaultInjector {
 public:
  explicit FaultInjector(const FaultPlan& plan);

  uint64_t seed() const { return seed_; }

  struct Verdict {
    DeviceStatus status = DeviceStatus::kSuccess;  // how the command is to fail
    bool tears_write = false;                      // after some of its blocks are stored
    std::optional<ZoneState> zone_turns;           // into what its zone turns first
    int64_t delay_ns = 0;                          // how much longer it takes
    bool power_fails = false;                      // while the command is in flight

    // There is more to do than to wait.
    bool any() const { return status != DeviceStatus::kSuccess || zone_turns || power_fails; }
  };
  // What happens to `request`, which is valid and about to start. Cheap while nothing is planned.
  Verdict Judge(const DeviceGeometry& geometry, const DeviceRequest& request) {
    if (!armed_.load(std::memory_order_relaxed)) return {};
    return JudgeArmed(geometry, request);
  }

  // The next `op` on `zone` (any zone for kFlush) fails with `status`; several calls queue up. A read or write that is
  // failed so leaves nothing behind.
  void FailNext(DeviceOp op, ZoneId zone, DeviceStatus status);
  // Power fails in the command that follows `commands` more.
  void CutPowerAfter(uint64_t commands);
  // A reset zone is as new.
  void ForgetBadBlocks(ZoneId zone);

  // Uniform in [0, bound); for the outcomes of faults that the device decides.
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
