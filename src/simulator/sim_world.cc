#include "simulator/sim_world.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace isozone {
namespace {

constexpr uint64_t kLongestPiece = 4 * kMiB;
constexpr uint64_t kReadAheadOfRocksDb = 2 * kMiB;  // compaction_readahead_size

// As RocksDB hints: levels from the third below the base on are one class.
Lifetime LifetimeOfLevel(int level, int base_level) {
  if (level <= base_level) return Lifetime::kMedium;
  return level == base_level + 1 ? Lifetime::kLong : Lifetime::kExtreme;
}

}  // namespace

DataClass SimWorld::ClassOf(int level) const {
  const TableHints hints = options.device.hints;
  if (hints == TableHints::kNone) return {};
  DataClass data;
  if (hints != TableHints::kSteered) data.lifetime = LifetimeOfLevel(level, options.tree.limits.base_level);
  if (hints != TableHints::kLifetime) data.level = static_cast<int8_t>(level);
  return data;
}

void SimWorld::KeepInShape() {
  if (options.tree.steering) model.tree().set_limits(options.tree.steering->LimitsFor(model.tree(), FreeBytes()));
}

uint64_t SimWorld::FreeBytes() const {
  const ZoneTotals& totals = zones->ledger().table.totals();
  return totals.free + totals.dead - zones->ledger().ReservedBytes();
}

CompactionRoom SimWorld::RoomFor(const std::optional<CompactionPick>& next) const {
  CompactionRoom room;
  room.free_bytes = FreeBytes();
  if (compactions.running > 0) room.running_bytes = compactions.running_bytes - compactions.running_written_bytes;
  room.running_written_bytes = compactions.running_written_bytes;
  if (next) room.next_bytes = model.tree().bytes(*next);
  const auto counted = flushes_since_ns.upper_bound(loop.now_ns() - kLongestFlushNs);
  room.flushing_bytes =
      static_cast<uint64_t>(std::distance(counted, flushes_since_ns.end())) * options.tree.memtable_bytes;
  room.flush_bytes = options.tree.steering->flush_bytes();
  if (held_flush) room.written_bytes_since_asked = compactions.written_bytes - held_flush->compacted_before;
  return room;
}

bool SimWorld::FlushGoesFirst() {
  if (!held_flush) return false;
  const int64_t now_ns = loop.now_ns();
  if (std::exchange(held_flush->compactions, compactions.ended) != compactions.ended) {
    held_flush->until_ns = now_ns + kLongestHoldNs;
  }
  if (now_ns >= held_flush->until_ns) return true;
  KeepInShape();
  return options.tree.steering->MayFlush(model.tree(), RoomFor(picker->Pick(model.tree())));
}

uint64_t SimWorld::PieceBytes() const {
  const uint64_t block = options.device.profile.block_size;
  const uint64_t unit = RoundDown(options.device.stripe_unit, block);
  const uint64_t lane = RoundUp(options.tree.limits.table_bytes / options.device.stripe_width, unit);
  return std::clamp(lane, unit, std::max(unit, kLongestPiece));
}

InputStream::Windows SimWorld::InputWindows() const {
  if (!zones->parallel()) return {.bytes = kReadAheadOfRocksDb};
  return {.unit_bytes = options.device.stripe_unit, .width = options.device.stripe_width, .ahead = true};
}

}  // namespace isozone
