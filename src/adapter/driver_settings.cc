#include "adapter/driver_settings.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <rocksdb/comparator.h>

#include "adapter/lsm_level.h"
#include "base/log.h"
#include "lsm/lsm_tree.h"

namespace isozone {
namespace {

// Of the upper level, for each compaction of the picker isozone.
constexpr uint64_t kSweepTables = 4;
// Such a compaction is to leave three quarters of the free space to others.
constexpr uint64_t kSweepShare = 4;
// What a compaction writes, of what it takes from the upper level.
constexpr uint64_t kFanOut = 11;

// No option says so. A database that is open for reading only refuses these before it looks at the files, of which one
// does not exist and the other are none. Where all its tables are in the last level, it refuses the second one only.
bool IsReadOnly(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family) {
  return db->CompactFiles(rocksdb::CompactionOptions(), column_family, {"/000000.sst"}, 1).IsNotSupported() ||
         db->IngestExternalFile(column_family, {}, rocksdb::IngestExternalFileOptions()).IsNotSupported();
}

// The option of a column family exists since RocksDB 10.
template <typename Options>
bool IngestsBehind(const Options& options) {
  if constexpr (requires { options.cf_allow_ingest_behind; }) {
    if (options.cf_allow_ingest_behind) return true;
  }
  return options.allow_ingest_behind;
}

}  // namespace

uint32_t DriverThreads(const rocksdb::DBOptions& options) {
  const int jobs = std::max(options.max_background_jobs, 1);
  return static_cast<uint32_t>(std::clamp(jobs - std::max(jobs / 4, 1), 1, static_cast<int>(kDriverThreadsMax)));
}

std::string WhyNotDriven(const rocksdb::ColumnFamilyOptions& options) {
  if (options.num_levels < 3 || options.num_levels > kMaxLsmLevels) {
    return fmt::format("it has {} levels; set num_levels=7", options.num_levels);
  }
  if (!std::isfinite(options.max_bytes_for_level_multiplier)) return "max_bytes_for_level_multiplier is no number";
  if (options.comparator->timestamp_size() > 0) return "its keys have timestamps";
  return "";
}

rocksdb::Status NotDriven(const rocksdb::ColumnFamilyHandle& column_family, std::string_view why) {
  return rocksdb::Status::InvalidArgument(
      fmt::format("column family '{}' cannot be compacted", column_family.GetName()), why);
}

rocksdb::Status CheckCanBeDriven(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, bool needs_cuts) {
  const rocksdb::Options options = db->GetOptions(column_family);
  if (options.compaction_style != rocksdb::kCompactionStyleNone) {
    return NotDriven(*column_family, "RocksDB compacts it itself; open it with compaction_style=kCompactionStyleNone");
  }
  if (const std::string why = WhyNotDriven(options); !why.empty()) return NotDriven(*column_family, why);
  if (IngestsBehind(options)) {
    return NotDriven(*column_family, "allow_ingest_behind=true keeps the last level for other tables; turn that off");
  }
  if (!LevelListener::IsIn(options)) {
    return NotDriven(*column_family, "the driver hears of no flush; add listeners={isozone}");
  }
  if (needs_cuts && !LevelPartitionerFactory::IsIn(options)) {
    return NotDriven(*column_family, "tables cannot be cut where the picker says; set sst_partitioner_factory=isozone");
  }
  if (IsReadOnly(db, column_family)) return NotDriven(*column_family, "the database is open for reading only");
  return rocksdb::Status::OK();
}

// RocksDB's own defaults are no wish of a user.
void WarnOfUnusedOptions(const rocksdb::Options& options, const std::string& column_family) {
  constexpr uint64_t kThirtyDays = 30 * 24 * 60 * 60;
  const auto is_wish = [](uint64_t seconds) {
    return seconds != 0 && seconds != kThirtyDays && seconds < UINT64_MAX - 1;
  };
  if (!is_wish(options.ttl) && !is_wish(options.periodic_compaction_seconds)) return;
  isozone::Log().warn(
      "column family '{}': ttl and periodic_compaction_seconds have no effect, since Isozone picks what is "
      "compacted",
      column_family);
}

DriverSettings::DriverSettings(const rocksdb::Options& options)
    : levels(std::min(options.num_levels, kMaxLsmLevels)),
      level_base_bytes(options.max_bytes_for_level_base),
      level_factor(options.max_bytes_for_level_multiplier),
      level0_files(static_cast<uint32_t>(std::max(options.level0_file_num_compaction_trigger, 1))),
      table_bytes(options.target_file_size_base),
      memtable_bytes(options.write_buffer_size),
      debt{options.soft_pending_compaction_bytes_limit, options.hard_pending_compaction_bytes_limit},
      compacts(!options.disable_auto_compactions) {}

uint64_t DriverSettings::BytesForCompactions(std::span<const uint64_t> bytes, int base_level) const {
  const uint64_t level0 = std::min(level0_files * memtable_bytes, std::max(bytes[0], memtable_bytes));
  const uint64_t base = std::min(level_base_bytes, std::max(bytes[static_cast<size_t>(base_level)], table_bytes));
  return level0 + base + kFanOut * table_bytes;
}

// What a level holds that is not the last one, is mostly in the last one, too: where space is missing, the level is to give
// it back. But a level of few tables would give nothing: of n tables, each is compacted with 1/n of the next level. What
// both take together is least where n is the square root of the tables of the next level.
LsmLimits DriverSettings::LimitsFor(std::span<const uint64_t> bytes, bool dynamic, uint64_t free_bytes) const {
  LsmLimits limits = dynamic ? LsmLimits::FromLastLevel(bytes, level_base_bytes, level_factor)
                             : LsmLimits::Exponential(levels, level_base_bytes, level_factor);
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

}  // namespace isozone
