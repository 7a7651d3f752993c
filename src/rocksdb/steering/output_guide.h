// Where the outputs of a steered compaction are cut, and which of them are short-lived: what a CompactionPick says,
// told to the partitioner that RocksDB makes on the thread which compacts, and to the files that this thread opens
// (RunningJob).
//
// Short-lived outputs have zones of their own, the T-Zone of LL-compaction (section 3.2, principle 3): they are a
// cohort (store/zone/cohort.h), one for each column family, whatever their level.
//
// The thread makes an OutputGuide and calls CompactFiles with one subcompaction. SteeringPartitionerFactory finds the
// guide there and has it asked before each key. RocksDB opens a table for the first key that it adds, right after
// it has asked; so the guide knows then where that table begins.
//
// Thread safety: belongs to the thread that makes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rocksdb/lsm/compaction_pick.h"
#include "rocksdb/lsm/key_order.h"

namespace isozone {

class OutputGuide {
 public:
  // Makes the guide of this thread, which has one at a time, until it is destroyed. `pick` and `order` must outlive it.
  // `t_zone` is the number of the cohort of short-lived outputs; 0: they are placed as others are. A table has up to
  // `table_bytes`. The guide keeps `written_bytes`, which outlives it, at what the outputs have so far; any thread may
  // read that.
  OutputGuide(const CompactionPick& pick, const KeyOrder& order, uint64_t t_zone, uint64_t table_bytes,
              std::atomic<uint64_t>& written_bytes);
  ~OutputGuide();
  OutputGuide(const OutputGuide&) = delete;
  OutputGuide& operator=(const OutputGuide&) = delete;

  // Returns whether a new table begins with `key`, where the one that is being written has `bytes`. Keys come in
  // ascending order.
  bool CutsBefore(std::string_view key, uint64_t bytes);
  // Returns whether the inputs may be moved without being written anew.
  bool moves() const { return pick_.trivial_move; }

 private:
  // Moves `next` behind all of `keys` that are not above `key`, and returns whether there were any. Each is passed
  // once, so a compaction takes time by their number, and not by that times the number of its own keys.
  bool Passes(const std::vector<std::string>& keys, size_t& next, std::string_view key) const;
  // Tells the files that this thread opens (RunningJob) whether a table that begins with `key` would be short-lived.
  void FindSpan(std::string_view key);

  const CompactionPick& pick_;
  const KeyOrder& order_;
  const uint64_t t_zone_;
  const uint64_t table_bytes_;
  std::atomic<uint64_t>& written_bytes_;
  uint64_t closed_bytes_ = 0;  // of the outputs before the one that is being written
  uint64_t output_bytes_ = 0;  // of this one
  size_t next_cut_ = 0;
  size_t next_preferred_ = 0;
  size_t next_span_ = 0;
};

}  // namespace isozone
