// ConventionalDevice: a conventional SSD in this process, a ConventionalModel that runs against the real clock. It
// completes commands when such an SSD would. It holds no data, and none of its state outlives the object; its user
// keeps the bytes elsewhere.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/uri.h"
#include "device/emulated/completion_timer.h"
#include "device/emulated/ftl/conventional_model.h"
#include "device/emulated/nand/profile.h"

namespace isozone {

struct ConventionalOptions {
  Profile profile;     // scaled to the capacity that was asked for
  bool timing = true;  // false: every command completes at once; bytes written and copied are counted all the same
  double speed = 1;    // as a multiple of the profile's speed
  double age = 0;      // see ConventionalModel::Age; 0: fresh from the factory
  uint64_t age_seed = 1;

  // Returns all options in one line, for comparison.
  std::string ToString() const;
};

// Takes profile= (conventional if absent), size= (8G), timing=, speed=, age= (0 to 100) and age_seed=. kInvalidArgument
// for a zoned profile, or a size that the profile cannot be scaled to. The FTL takes 2.2 MiB of memory for each GiB.
Result<ConventionalOptions> TakeConventionalOptions(UriOptions& options);

// BytesInFlight: counts the commands and the bytes in flight to or from a device.
class BytesInFlight {
 public:
  void Begin(uint64_t bytes);
  void End(uint64_t bytes);
  // Waits until every transfer that has begun has ended.
  void Wait();
  // Waits until at most `bytes` are in flight.
  void WaitForAtMost(uint64_t bytes);

 private:
  Mutex mu_;
  CondVar changed_;
  uint64_t commands_ ISOZONE_GUARDED_BY(mu_) = 0;
  uint64_t bytes_ ISOZONE_GUARDED_BY(mu_) = 0;
};

struct ConventionalStats {
  FtlCounters ftl;  // in blocks
  uint64_t host_bytes_read = 0;
  uint64_t host_bytes_written = 0;
  uint64_t host_bytes_trimmed = 0;
  uint64_t flash_bytes_written = 0;  // written by the host or copied
};

class ConventionalDevice {
 public:
  // Ages the device, which takes some 0.05 s for each GiB that is overwritten. Start must follow.
  explicit ConventionalDevice(const ConventionalOptions& options);
  ~ConventionalDevice();
  ConventionalDevice(const ConventionalDevice&) = delete;
  ConventionalDevice& operator=(const ConventionalDevice&) = delete;

  // Starts the thread of the timer, if there is one. Fails with kIoError if the system has none.
  Status Start() { return timer_ ? timer_->Start() : Status::Ok(); }

  uint64_t capacity() const { return capacity_; }      // bytes
  uint32_t block_size() const { return block_size_; }  // bytes

  // See ConventionalModel::Fill. Must be called before the first Submit.
  void Fill(uint64_t offset, uint64_t length);

  // Starts a read, write, trim or flush of whole blocks within the capacity. `transfers` is told when it begins and
  // when it ends.
  void Submit(TimingOpKind kind, uint64_t offset, uint64_t length, const std::shared_ptr<BytesInFlight>& transfers);

  ConventionalStats Stats() const;

 private:
  struct InFlight {
    std::shared_ptr<BytesInFlight> transfers;
    uint64_t bytes = 0;
  };

  void Count(TimingOpKind kind, uint64_t length);
  void OnTimer(std::span<const uint64_t> tickets);

  const uint64_t capacity_;
  const uint32_t block_size_;
  std::atomic<uint64_t> bytes_read_{0};
  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<uint64_t> bytes_trimmed_{0};

  mutable Mutex mu_;
  uint64_t next_ticket_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::unordered_map<uint64_t, InFlight> in_flight_ ISOZONE_GUARDED_BY(mu_);
  std::vector<TimingCompletion> completed_ ISOZONE_GUARDED_BY(mu_);
  std::unique_ptr<ConventionalModel> untimed_ ISOZONE_GUARDED_BY(mu_);  // null with timing: the timer owns the model

  const ConventionalModel* timed_ = nullptr;  // within timer_; used only under CompletionTimer::WithModel
  std::unique_ptr<CompletionTimer> timer_;    // null without timing; last: its thread uses the rest
};

}  // namespace isozone
