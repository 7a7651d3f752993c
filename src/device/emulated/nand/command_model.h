// CommandModel: the timing model of an SSD as its users see it. Commands and their submission times go in, completion
// times come out, in virtual time. TimingModel models the zoned SSD, ConventionalModel the one with a page-mapped FTL.
//
// Thread safety: none; the owner serialises calls.
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
  // Bytes from the start of the zone, or of a conventional SSD. kAppend: where the data will be; appends to a zone are
  // submitted in this order.
  uint64_t offset = 0;
  // Bytes. For kRead of a zone, the caller clips it, since reading beyond the write pointer takes no time.
  uint64_t length = 0;
  // For kReset and kFinish: the bytes of the zone that hold data, on which the duration may depend.
  uint64_t written = 0;
  // For kReset and kFinish: whether the zone is full already. If it holds less than its capacity, it was finished.
  bool full = false;
};

struct TimingCompletion {
  uint64_t ticket = 0;
  int64_t time_ns = 0;
};

// Bytes programmed to flash.
struct MediaCounts {
  // All, dummy bytes included. Data that is still in a write buffer does not count. Without timing, the bytes of all
  // writes and appends, those that the device copied, and dummy bytes.
  uint64_t written = 0;
  // The part of `written` that stands in place of data: units are padded at the end of a zone, zones when they are
  // finished or reset. Without timing, only zones are padded.
  uint64_t dummy = 0;
  bool operator==(const MediaCounts&) const = default;
};

class CommandModel {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  virtual ~CommandModel() = default;

  // Starts `op` at `now_ns`, which never goes back over calls of Submit and AdvanceTo. The completion carries `ticket`.
  // The range must lie within the capacity of the zone or the device.
  virtual void Submit(int64_t now_ns, const TimingOp& op, uint64_t ticket) = 0;

  // Runs the model to `now_ns`, and appends the commands that completed by then, in order of time, then of submission.
  virtual void AdvanceTo(int64_t now_ns, std::vector<TimingCompletion>& completed) = 0;

  // A time before which no command in flight completes; kNever if none is in flight. A later Submit can only add an
  // earlier completion of the new command, and never makes an older command complete earlier. The bound is exact if the
  // next command to complete waits neither for other commands nor for another of its own pages on a channel or the
  // link. It is always later than the last AdvanceTo, so a loop that waits until the bound, advances to it and asks
  // again ends. O(log n) amortised.
  virtual int64_t NextCompletionBound() = 0;

  // Returns what was programmed to flash so far.
  virtual MediaCounts Media() const = 0;
};

}  // namespace isozone
