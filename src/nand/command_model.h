// What a model of an SSD's timing is to those who run it: commands and their submission times go in, completion times
// come out, in virtual time. TimingModel is the zoned SSD, ConventionalModel the one with a page-mapped FTL.
//
// Thread safety: none; the owner serialises.
#pragma once

#include <cstdint>
#include <vector>

namespace isozone {

enum class TimingOpKind : uint8_t {
  kRead,
  kWrite,
  kAppend,  // to a zone
  kReset,   // of a zone
  kFinish,  // of a zone
  kOpen,    // of a zone
  kClose,   // of a zone
  kFlush,
  kTrim,  // of a range of a conventional SSD: its content is no longer needed
};

struct TimingOp {
  TimingOpKind kind = TimingOpKind::kRead;
  uint32_t zone = 0;
  // Bytes from the start of the zone, or of a conventional SSD. kAppend: where the data will be, in order of submission.
  uint64_t offset = 0;
  uint64_t length = 0;  // bytes; kRead of a zone: only what lies below the write pointer costs time, the caller clips
  // kReset, kFinish: bytes below the zone's write pointer; they take longer for some than for others.
  uint64_t written = 0;
};

struct TimingCompletion {
  uint64_t ticket = 0;
  int64_t time_ns = 0;
};

class CommandModel {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  virtual ~CommandModel() = default;

  // Starts `op` at `now_ns`, which never goes back over calls of Submit and AdvanceTo. `ticket` comes back with the
  // completion. The range lies within the capacity of the zone or the device.
  virtual void Submit(int64_t now_ns, const TimingOp& op, uint64_t ticket) = 0;

  // Runs to `now_ns` and appends what completed at or before it, in order of time, then of submission.
  virtual void AdvanceTo(int64_t now_ns, std::vector<TimingCompletion>& completed) = 0;

  // No command in flight completes before this; kNever with none in flight. A later Submit can only bring an earlier
  // completion of the new command itself, never of an old one. Exactly the next completion where the command neither
  // waits for others nor for another page of its own on a channel or the link. Always later than the last AdvanceTo,
  // so that waiting until the bound, advancing to it and asking again ends. O(log n) amortised.
  virtual int64_t NextCompletionBound() = 0;

  // Bytes programmed to flash so far, padding included. What is still in a write buffer does not count. Without timing,
  // the bytes of all writes and appends, and of what the device copied.
  virtual uint64_t MediaBytesWritten() const = 0;
};

}  // namespace isozone
