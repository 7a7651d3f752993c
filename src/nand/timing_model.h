// The timing of a zoned SSD, as a pure unit in virtual time: commands and their submission times go in, completion
// times come out. No thread, no real clock, no data. The emulator runs it against the real clock, the simulator and the
// tests against a virtual one.
//
// The model is a set of FIFO servers. A command passes the host link (a fixed latency, and the link held for its
// bytes), then, page by page, dies and channels:
//   read    die: array time, and the die stays held until the page has crossed its channel
//   write   channel per page into the die's write buffer, then the die for the program time of the unit. A write
//   completes
//           when the last of it is in the buffer; the buffer holds a bounded number of program units a die, so at queue
//           depth 1 it completes at the pace of the die
// Completion times depend on what is submitted later (pages of several commands take turns on a channel), so the model
// is an event simulation: AdvanceTo() runs it, NextCompletionBound() says how long nothing can complete.
//
// Thread safety: none; the owner serialises.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nand/profile.h"

namespace isozone {

enum class TimingOpKind : uint8_t { kRead, kWrite, kAppend, kReset, kFinish, kOpen, kClose, kFlush };

struct TimingOp {
  TimingOpKind kind = TimingOpKind::kRead;
  uint32_t zone = 0;
  uint64_t offset = 0;  // bytes from the start of the zone
  uint64_t length = 0;  // bytes; kRead: only what lies below the write pointer costs flash time, the caller clips
  uint64_t written =
      0;  // bytes below the zone's write pointer; kReset and kFinish take longer for some than for others
};

struct TimingCompletion {
  uint64_t ticket = 0;
  int64_t time_ns = 0;
};

class TimingModel {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  explicit TimingModel(const Profile& profile);
  ~TimingModel();
  TimingModel(const TimingModel&) = delete;
  TimingModel& operator=(const TimingModel&) = delete;

  // Starts `op` at `now_ns`, which never goes back over calls of Submit and AdvanceTo. `ticket` comes back with the
  // completion.
  void Submit(int64_t now_ns, const TimingOp& op, uint64_t ticket);

  // Runs to `now_ns` and appends what completed at or before it, in order of time.
  void AdvanceTo(int64_t now_ns, std::vector<TimingCompletion>& completed);

  // No command in flight completes before this; kNever with none in flight. A later Submit can only bring an earlier
  // completion of the new command itself, never of an old one.
  int64_t NextCompletionBound() const;

  // Bytes programmed to flash so far, padding included.
  uint64_t MediaBytesWritten() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace isozone
