#include "rocksdb/lsm/compaction_debt.h"

#include <algorithm>

namespace isozone {
namespace {

// `bytes` of a level that has `of`, with their share of the `below` bytes that they meet in the next level.
uint64_t WithOverlap(uint64_t bytes, uint64_t of, uint64_t below) {
  return bytes +
         static_cast<uint64_t>(static_cast<double>(bytes) / static_cast<double>(of) * static_cast<double>(below));
}

}  // namespace

uint64_t CompactionDebt(const LsmTree& tree) {
  const LsmLimits& limits = tree.limits();
  uint64_t debt = 0;
  uint64_t from_above = 0;
  if (tree.files(0).size() >= limits.level0_files) {
    from_above = tree.bytes(0);
    debt += WithOverlap(from_above, from_above, tree.bytes(limits.base_level));
  }
  for (int level = limits.base_level; level + 1 < limits.levels(); ++level) {
    const uint64_t bytes = tree.bytes(level) + from_above;
    const uint64_t capacity = limits.capacity_bytes[static_cast<size_t>(level)];
    from_above = bytes > capacity ? bytes - capacity : 0;
    if (from_above > 0) debt += WithOverlap(from_above, bytes, tree.bytes(level + 1));
  }
  return debt;
}

std::optional<uint64_t> BytesBeforeFlush(uint64_t debt_bytes, const CompactionDebtLimits& limits,
                                         uint64_t flush_bytes) {
  if (limits.hard_bytes > 0 && debt_bytes >= limits.hard_bytes) return std::nullopt;
  if (limits.soft_bytes == 0 || debt_bytes <= limits.soft_bytes) return 0;
  if (limits.hard_bytes <= limits.soft_bytes) return flush_bytes * kBytesPerFlushedByte;
  const double share =
      static_cast<double>(debt_bytes - limits.soft_bytes) / static_cast<double>(limits.hard_bytes - limits.soft_bytes);
  return static_cast<uint64_t>(share * static_cast<double>(flush_bytes * kBytesPerFlushedByte));
}

}  // namespace isozone
