// HeldFlushes knows the flushes that bear on the compactions of a column family: those of the column family which wait
// for compactions, and those of the whole database which run. While either wait or write, RocksDB keeps the tables that
// compactions make obsolete, whichever column family these are of.
//
// RocksDB does not tell the end of every flush: not of one that found nothing to write, that has failed, or whose table
// another one installs. So each step counts for a time only: for kLongestFlushNs while a table is written, whose end
// follows, and else for kFlushStepNs.
//
// Thread safety: none, and no threads or clock of its own; whoever has it serialises calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "rocksdb/adapter/running_job.h"
#include "rocksdb/lsm/steered_shape.h"

namespace isozone {

// The step that a flush has reached.
enum class FlushStep : uint8_t {
  kBegun,
  kWrites,    // RocksDB writes its table
  kWritten,   // the table is written, and RocksDB installs it
  kFailed,    // the flush has ended without a table
  kInstalled  // the table is part of the tree, and the flush has ended
};

class HeldFlushes {
 public:
  static constexpr int64_t kFlushStepNs = 1'000'000'000;
  // A flush that waits.
  using Waiting = std::multiset<uint64_t>::const_iterator;

  // Notes that a flush begins to wait, when compactions have written `written_bytes` in all.
  Waiting BeginWait(uint64_t written_bytes) { return waiting_since_bytes_.insert(written_bytes); }
  void EndWait(Waiting flush) { waiting_since_bytes_.erase(flush); }
  bool any_waits() const { return !waiting_since_bytes_.empty(); }
  // Returns how many bytes compactions have written since the flush that has waited longest began to wait, where they
  // have written `written_bytes` in all; 0 if none waits.
  uint64_t WrittenWhileWaiting(uint64_t written_bytes) const {
    if (!any_waits()) return 0;
    return written_bytes -
           std::min(written_bytes, *waiting_since_bytes_.begin());  // those that failed are no longer in it
  }

  // Notes that a flush has come to `step`.
  void Note(const FlushJob& flush, FlushStep step, int64_t now_ns) {
    const std::pair key(flush.number, flush.column_family);
    if (step == FlushStep::kFailed || step == FlushStep::kInstalled) {
      running_until_ns_.erase(key);
    } else {
      running_until_ns_[key] = now_ns + (step == FlushStep::kWrites ? kLongestFlushNs : kFlushStepNs);
    }
  }
  // Returns how many flushes run.
  size_t Running(int64_t now_ns) {
    std::erase_if(running_until_ns_, [now_ns](const auto& flush) { return flush.second < now_ns; });
    return running_until_ns_.size();
  }

 private:
  std::multiset<uint64_t> waiting_since_bytes_;  // what compactions had written when each began to wait
  std::map<std::pair<int, uint32_t>, int64_t> running_until_ns_;  // by job and column family
};

}  // namespace isozone
