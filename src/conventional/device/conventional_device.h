// A conventional SSD in the process: ConventionalModel run against the real clock. It takes commands and completes them
// when such an SSD would; it holds no data, and nothing of it outlives the object. Whoever uses it keeps the bytes
// elsewhere.
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
#include "conventional/model/conventional_model.h"
#include "device/emulated/completion_timer.h"
#include "nand/profile.h"

namespace isozone {

struct ConventionalOptions {
  Profile profile;     // scaled to the capacity that was asked for
  bool timing = true;  // false: every command completes at once; what is written and copied is counted all the same
  double speed = 1;    // how many times as fast as the profile
  double age = 0;      // see ConventionalModel::Age; 0: fresh from the factory
  uint64_t age_seed = 1;

  // Everything of it, in one line that can be compared.
  std::string ToString() const;
};

// profile= (conventional if absent), size= (8G), timing=, speed=, age= (0 to 100), age_seed=. kInvalidArgument for a
// zoned profile, or a size that the profile cannot be scaled to. The FTL takes 2.2 MiB of memory a GiB.
Result<ConventionalOptions> TakeConventionalOptions(UriOptions& options);

// Bytes that are on their way to or from a device.
class Transfers {
 public:
  void Begin(uint64_t bytes);
  void End(uint64_t bytes);
  // Until all that began has ended.
  void Wait();
  // Until at most `bytes` are on their way.
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
  // Ages it, which takes some 0.05 s for each GiB that is overwritten.
  explicit ConventionalDevice(const ConventionalOptions& options);
  ~ConventionalDevice();
  ConventionalDevice(const ConventionalDevice&) = delete;
  ConventionalDevice& operator=(const ConventionalDevice&) = delete;

  uint64_t capacity() const { return capacity_; }      // bytes
  uint32_t block_size() const { return block_size_; }  // bytes

  // Before the first Submit: see ConventionalModel::Fill.
  void Fill(uint64_t offset, uint64_t length);

  // Starts a read, write, trim or flush of whole blocks within the capacity, and tells `transfers` of its beginning and
  // its end.
  void Submit(TimingOpKind kind, uint64_t offset, uint64_t length, const std::shared_ptr<Transfers>& transfers);

  ConventionalStats Stats() const;

 private:
  struct InFlight {
    std::shared_ptr<Transfers> transfers;
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
  std::unique_ptr<ConventionalModel> untimed_ ISOZONE_GUARDED_BY(mu_);  // null with timing: then it is the timer's

  const ConventionalModel* timed_ = nullptr;  // within timer_; only under CompletionTimer::WithModel
  std::unique_ptr<CompletionTimer> timer_;    // null without timing; last: its thread uses the rest
};

}  // namespace isozone
