#include "rocksdb/lsm/steered_shape.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace isozone {
namespace {

// Of the upper level, for each compaction of the picker isozone.
constexpr uint64_t kSweepTables = 4;
// Such a compaction is to leave three quarters of the free space to others.
constexpr uint64_t kSweepShare = 4;
// What a compaction writes, of what it takes from the upper level.
constexpr uint64_t kFanOut = 11;
// More than any device has; kFanOut times as much fits into 64 bits.
constexpr uint64_t kMostFree = uint64_t{1} << 60;

}  // namespace

LsmLimits SteeredShape::EmptyLimits() const { return LsmLimits::Exponential(levels, level_base_bytes, level_factor); }

uint64_t SteeredShape::BytesForCompactions(std::span<const uint64_t> bytes, int base_level) const {
  const uint64_t level0 = std::min(level0_files * memtable_bytes, std::max(bytes[0], memtable_bytes));
  const uint64_t base = std::min(level_base_bytes, std::max(bytes[static_cast<size_t>(base_level)], table_bytes));
  return level0 + base + kFanOut * table_bytes;
}

// What a level holds that is not the last one, is mostly in the last one, too: where space is missing, the level is to
// give it back. But a level of few tables would give nothing: of n tables, each is compacted with 1/n of the next
// level. What both take together is least where n is the square root of the tables of the next level.
LsmLimits SteeredShape::LimitsFor(std::span<const uint64_t> bytes, uint64_t free_bytes) const {
  LsmLimits limits = dynamic_levels ? LsmLimits::FromLastLevel(bytes, level_base_bytes, level_factor) : EmptyLimits();
  const uint64_t needed_bytes = BytesForCompactions(bytes, limits.base_level);
  for (size_t level = bytes.size() - 1; level-- > 1;) {
    const auto below = static_cast<double>(std::min(bytes[level + 1], limits.capacity_bytes[level + 1]));
    const auto least = static_cast<uint64_t>(std::sqrt(below * static_cast<double>(table_bytes)));
    const uint64_t can_stay = bytes[level] + free_bytes - std::min(needed_bytes, bytes[level] + free_bytes);
    limits.capacity_bytes[level] = std::min(limits.capacity_bytes[level], std::max(least, can_stay));
  }
  limits.level0_files = level0_files;
  limits.table_bytes = table_bytes;
  limits.sweep_bytes = std::min(kSweepTables * table_bytes, free_bytes / (kSweepShare * kFanOut));
  return limits;
}

LsmLimits SteeredShape::LimitsFor(const LsmTree& tree, uint64_t free_bytes) const {
  std::vector<uint64_t> bytes;
  for (int level = 0; level < tree.limits().levels(); ++level) bytes.push_back(tree.bytes(level));
  return LimitsFor(bytes, free_bytes);
}

// A byte that lies too high is compacted with kFanOut bytes, and most of them lie once more below. So debt of kFanOut
// times the free space would fill it. A third of that leaves as much to what compactions write, and to what RocksDB
// keeps of their inputs until jobs that began before have ended.
CompactionDebtLimits SteeredShape::LimitsOfSpace(uint64_t free_bytes) {
  const uint64_t most = std::max<uint64_t>(2, kFanOut * std::min(free_bytes, kMostFree) / 3);
  return {most / 2, most};
}

uint64_t SteeredShape::BytesForLevel0(const LsmTree& tree) const {
  return tree.idle_bytes(0) + memtable_bytes + tree.bytes(tree.limits().base_level);
}

bool SteeredShape::MayCompact(const CompactionRoom& room) {
  if (!room.next_bytes || room.flush_is_overdue()) return false;
  if (!room.running_bytes && room.flushing_bytes == 0) return true;
  return room.running_bytes.value_or(0) + room.flushing_bytes + *room.next_bytes <= room.free_bytes;
}

bool SteeredShape::MayFlush(const LsmTree& tree, const CompactionRoom& room) const {
  if (!room.running_bytes && !room.next_bytes) return true;
  const uint64_t running_bytes = room.running_bytes.value_or(0);
  if (room.flush_is_overdue()) return !room.running_bytes || memtable_bytes + running_bytes <= room.free_bytes;
  const uint64_t debt_bytes = CompactionDebt(tree);
  const uint64_t idle_debt_bytes = debt_bytes - std::min(debt_bytes, running_bytes + room.running_written_bytes);
  for (const auto before : {BytesBeforeFlush(debt_bytes, debt, memtable_bytes),
                            BytesBeforeFlush(idle_debt_bytes, LimitsOfSpace(room.free_bytes), memtable_bytes)}) {
    if (!before || room.written_bytes_since_asked < *before) return false;
  }
  if (room.flush_bytes + running_bytes > room.free_bytes) return false;
  // At its end, a compaction gives back what it has read, and that is no less than what it has written. While the one
  // after this flush runs, another flush comes.
  const uint64_t then_bytes = std::max(room.next_bytes.value_or(0), BytesForLevel0(tree)) + room.flush_bytes;
  return room.flush_bytes + then_bytes <= room.free_bytes + room.running_written_bytes;
}

}  // namespace isozone
