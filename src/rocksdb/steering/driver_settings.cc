#include "rocksdb/steering/driver_settings.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <rocksdb/comparator.h>

#include "base/log.h"
#include "rocksdb/adapter/uri_file_system.h"
#include "rocksdb/lsm/lsm_tree.h"

namespace isozone {
namespace {

// No option says so. A database that is open for reading only refuses these before it looks at the files, of which one
// does not exist and the other are none. Where all its tables are in the last level, it refuses the second one only.
bool IsReadOnly(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family) {
  return db->CompactFiles(rocksdb::CompactionOptions(), column_family, {"/000000.sst"}, 1).IsNotSupported() ||
         db->IngestExternalFile(column_family, {}, rocksdb::IngestExternalFileOptions()).IsNotSupported();
}

// The option of a column family exists since RocksDB 10.
template <typename FamilyOptions>
bool IngestsBehind(const rocksdb::DBOptions& db_options, const FamilyOptions& options) {
  if constexpr (requires { options.cf_allow_ingest_behind; }) {
    if (options.cf_allow_ingest_behind) return true;
  }
  return db_options.allow_ingest_behind;
}

}  // namespace

bool HasListener(const rocksdb::DBOptions& options) {
  return std::any_of(options.listeners.begin(), options.listeners.end(),
                     [](const auto& listener) { return std::string_view(listener->Name()) == kSteeringName; });
}

bool HasPartitioner(const rocksdb::ColumnFamilyOptions& options) {
  return options.sst_partitioner_factory != nullptr &&
         std::string_view(options.sst_partitioner_factory->Name()) == kSteeringName;
}

uint32_t DriverThreads(const rocksdb::DBOptions& options) {
  const int jobs = std::max(options.max_background_jobs, 1);
  return static_cast<uint32_t>(std::clamp(jobs - std::max(jobs / 4, 1), 1, static_cast<int>(kDriverThreadsMax)));
}

std::string WhyNotDriven(const rocksdb::DBOptions& db_options, const rocksdb::ColumnFamilyOptions& options) {
  if (options.num_levels < 3 || options.num_levels > kMaxLsmLevels) {
    return fmt::format("it has {} levels; set num_levels=7", options.num_levels);
  }
  if (!std::isfinite(options.max_bytes_for_level_multiplier)) return "max_bytes_for_level_multiplier is no number";
  if (options.comparator->timestamp_size() > 0) return "its keys have timestamps";
  if (IngestsBehind(db_options, options)) {
    return "allow_ingest_behind=true keeps the last level for other tables; turn that off";
  }
  return "";
}

std::string WhyTablesAreElsewhere(const rocksdb::FileSystem& file_system) {
  if (UriFileSystem::IsOurs(file_system)) return "";
  return "its files are not on Isozone's file system; open it on one, by env={id=isozone://...} or --fs_uri";
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
  if (const std::string why = WhyNotDriven(options, options); !why.empty()) {
    return NotDriven(*column_family, why);
  }
  if (!HasListener(options)) {
    return NotDriven(*column_family, "the driver hears of no flush; add listeners={isozone}");
  }
  if (needs_cuts && !HasPartitioner(options)) {
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

SteeredShape ShapeOf(const rocksdb::Options& options, bool dynamic_levels) {
  SteeredShape shape;
  shape.levels = std::min(options.num_levels, kMaxLsmLevels);
  shape.level_base_bytes = options.max_bytes_for_level_base;
  shape.level_factor = options.max_bytes_for_level_multiplier;
  shape.dynamic_levels = dynamic_levels;
  shape.level0_files = static_cast<uint32_t>(std::max(options.level0_file_num_compaction_trigger, 1));
  shape.table_bytes = options.target_file_size_base;
  shape.memtable_bytes = options.write_buffer_size;
  shape.debt = {options.soft_pending_compaction_bytes_limit, options.hard_pending_compaction_bytes_limit};
  return shape;
}

}  // namespace isozone
