// How an LSM tree is kept in shape that Isozone steers, on a device whose space is bounded. A database
// (rocksdb/steering) and the simulator both follow these rules.
//
//   levels       are sized from the last one up, or from level 1 down. Where compactions would find no room, all but
//                the last one are smaller.
//   compactions  One has all the space that there is. Another begins beside it, or one beside a flush, only if all find
//                room: two that both lack some would both be in vain. A flush that may begin goes first.
//   flushes      wait while there is too much compaction debt (compaction_debt.h) by the options, or, beside what runs,
//                too much for the space that is free. They wait until they leave room for what running compactions have
//                yet to write; and, once these have ended, for the next one and for that of level 0 with the flushed
//                table in it, each with a flush beside it. They do not wait where nothing can be compacted.
//   overdue      RocksDB deletes no table that was written after a flush has begun, held or not, before the flush ends.
//                So a flush that is held for too long would fill the device itself. Once compactions that have ended
//                meanwhile have written half of the free space, or so much that the next one lacks the room, no other
//                compaction begins. The flush begins as soon as it leaves room for those that run, or none runs.
//
// Thread safety: pure functions of their arguments; the tree must not change meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "rocksdb/lsm/compaction_debt.h"
#include "rocksdb/lsm/lsm_limits.h"
#include "rocksdb/lsm/lsm_tree.h"

namespace isozone {

// The interval at which a waiting flush or compaction looks for room again. No event reports that space became free.
inline constexpr int64_t kLookForRoomNs = 50'000'000;
// A held flush begins if no compaction has ended for this time.
inline constexpr int64_t kLongestHoldNs = 10'000'000'000;

// A flush counts as running for at most this time, because RocksDB does not report the end of every flush.
inline constexpr int64_t kLongestFlushNs = 60'000'000'000;

// The figures that decide whether a flush or compaction may begin.
struct CompactionRoom {
  uint64_t free_bytes = 0;                     // free on the device, with what GC can give back; at most 2^61
  std::optional<uint64_t> running_bytes = {};  // what all running compactions may yet write; empty: none runs
  uint64_t running_written_bytes = 0;          // what these have written, as far as that is known
  std::optional<uint64_t> next_bytes = {};     // what the next compaction may write; empty: there is none
  uint64_t flushing_bytes = 0;                 // what all running flushes may write
  uint64_t flush_bytes = 0;                    // SteeredShape::flush_bytes
  uint64_t written_bytes_since_asked = 0;      // written by compactions since the first waiting flush began to wait

  // Only compactions that have ended leave obsolete tables. What running ones had written before the flush began to
  // wait is taken off, too, so the flush may be found overdue only once they have ended.
  bool flush_is_overdue() const {
    const uint64_t ended_bytes = written_bytes_since_asked - std::min(written_bytes_since_asked, running_written_bytes);
    const bool next_lacks_room = !running_bytes && next_bytes && *next_bytes + flush_bytes > free_bytes;
    return ended_bytes > free_bytes / 2 || (next_lacks_room && ended_bytes > flush_bytes);
  }
};

struct SteeredShape {
  int levels = 7;
  uint64_t level_base_bytes = 256 * kMiB;
  double level_factor = 10;
  bool dynamic_levels = true;  // sized from the last one up
  uint32_t level0_files = 4;
  uint64_t table_bytes = 64 * kMiB;
  uint64_t memtable_bytes = 64 * kMiB;
  CompactionDebtLimits debt;  // of the options

  // Returns what a flush takes: its table, and the log of the memtable that writers fill meanwhile.
  uint64_t flush_bytes() const { return 2 * memtable_bytes; }
  // Returns the limits to use before it is known what the tree holds.
  LsmLimits EmptyLimits() const;
  // Returns the limits for a tree whose levels hold `bytes`. The less space is free, the smaller the compactions.
  LsmLimits LimitsFor(std::span<const uint64_t> bytes, uint64_t free_bytes) const;
  LsmLimits LimitsFor(const LsmTree& tree, uint64_t free_bytes) const;

  // Returns the limits of the debt that no running compaction works at, where so much space is free.
  static CompactionDebtLimits LimitsOfSpace(uint64_t free_bytes);
  // Returns what the next compaction of level 0 will write at most, with one more flushed table in it.
  uint64_t BytesForLevel0(const LsmTree& tree) const;
  // Returns the free bytes that two compactions need to run at the same time, one of level 0 into the base level and
  // one of a table into the next level. `bytes` says what each level holds.
  uint64_t BytesForCompactions(std::span<const uint64_t> bytes, int base_level) const;

  // Whether the next compaction of `room` may begin, if no flush begins before it.
  static bool MayCompact(const CompactionRoom& room);
  // Whether a flush may begin.
  bool MayFlush(const LsmTree& tree, const CompactionRoom& room) const;
};

}  // namespace isozone
