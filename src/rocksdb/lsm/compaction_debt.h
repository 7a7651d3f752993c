// Compaction debt: what compactions have to write until no level of a tree is too large, and what a flush must wait for
// while there is much of it. RocksDB bounds writers by this where it picks compactions itself, and by nothing but the
// files of level 0 where it does not.
//
//   debt      As RocksDB estimates it (estimated-pending-compaction-bytes): what is above the size of a level goes
//             down, together with what it meets there, and adds to what the next level has above its own.
//   flushes   Up to the soft limit a flush waits for nothing. From there on, it waits until compactions have written
//             more and more for each of its bytes, up to kBytesPerFlushedByte at the hard limit. Above the hard limit
//             it waits until the debt is below.
//
// So writers slow down before they stop, by bytes and not by a clock.
//
// Thread safety: none; the tree must not change meanwhile.
#pragma once

#include <cstdint>
#include <optional>

#include "rocksdb/lsm/lsm_tree.h"

namespace isozone {

struct CompactionDebtLimits {
  uint64_t soft_bytes = 0;  // 0: none
  uint64_t hard_bytes = 0;  // 0: none
};

// Returns the debt of the tree, in bytes.
uint64_t CompactionDebt(const LsmTree& tree);

// The bytes that compactions write before each byte of a flush, at the hard limit. This is more than most trees write
// for a byte that is put, so debt does not grow up to the hard limit.
inline constexpr uint64_t kBytesPerFlushedByte = 32;

// Returns how many bytes compactions are to write before a flush of `flush_bytes` begins, or nothing if the debt has
// reached the hard limit: then the flush waits until there is less.
std::optional<uint64_t> BytesBeforeFlush(uint64_t debt_bytes, const CompactionDebtLimits& limits, uint64_t flush_bytes);

}  // namespace isozone
