#include "ycsb/database.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/table.h>

namespace isozone::ycsb {
namespace {

constexpr auto kSettlePoll = std::chrono::milliseconds(50);

// A database, however this version of RocksDB hands it out: open(DB**) before version 11, open(unique_ptr<DB>*) since.
template <typename OpenFunction>
rocksdb::Status OpenInto(std::unique_ptr<rocksdb::DB>* db, const OpenFunction& open) {
  if constexpr (requires { open(db); }) {
    return open(db);
  } else {
    rocksdb::DB* raw = nullptr;
    const rocksdb::Status status = open(&raw);
    db->reset(raw);
    return status;
  }
}

rocksdb::Options OptionsOf(const Arguments& arguments, rocksdb::Env* env) {
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = arguments.cache_size == 0;
  if (arguments.cache_size > 0) table.block_cache = rocksdb::NewLRUCache(arguments.cache_size);
  rocksdb::Options options;
  options.env = env;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = arguments.write_buffer_size;
  options.max_background_jobs = arguments.max_background_jobs;
  options.target_file_size_base = arguments.target_file_size;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

Status FromRocksDb(const rocksdb::Status& status, std::string_view verb, std::string_view name) {
  return status.ok() ? Status::Ok() : Status::IoError(fmt::format("{} {}: {}", verb, name, status.ToString()));
}

Status Database::FindEnv() {
  if (env_ != nullptr) return Status::Ok();
  if (arguments_.fs_uri.empty()) {
    env_ = rocksdb::Env::Default();
    return Status::Ok();
  }
  rocksdb::ConfigOptions config;
  config.ignore_unsupported_options = false;  // else a file system that nobody brought is no error until it is used
  const rocksdb::Status status = rocksdb::Env::CreateFromUri(config, "", arguments_.fs_uri, &env_, &guard_);
  return FromRocksDb(status, "using", arguments_.fs_uri);
}

Status Database::Open(bool create) {
  ISOZONE_RETURN_IF_ERROR(FindEnv());
  rocksdb::Options options = OptionsOf(arguments_, env_);
  options.create_if_missing = create;
  options.error_if_exists = create;
  const auto open = [&](auto* out) -> decltype(rocksdb::DB::Open(options, arguments_.db, out)) {
    return rocksdb::DB::Open(options, arguments_.db, out);
  };
  return FromRocksDb(OpenInto(&db_, open), "opening", arguments_.db);
}

Status Database::Close() {
  const rocksdb::Status status = db_->Close();
  db_.reset();
  return FromRocksDb(status, "closing", arguments_.db);
}

Result<uint64_t> Database::Property(const std::string& name) {
  uint64_t value = 0;
  if (db_->GetIntProperty(name, &value)) return value;
  return Status::NotSupported("RocksDB does not know " + name);
}

Result<bool> Database::IsIdle() {
  using Properties = rocksdb::DB::Properties;
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t errors, Property(Properties::kBackgroundErrors));
  if (errors > 0) return Status::IoError("RocksDB failed to flush or compact; its LOG file says why");
  for (const std::string& name : {Properties::kMemTableFlushPending, Properties::kNumRunningFlushes,
                                  Properties::kCompactionPending, Properties::kNumRunningCompactions}) {
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t work, Property(name));
    if (work > 0) return false;
  }
  return true;
}

// Work can turn from pending to running between two properties, so that one look may miss it.
Status Database::Settle() {
  for (int idle_looks = 0; idle_looks < 2; std::this_thread::sleep_for(kSettlePoll)) {
    ISOZONE_ASSIGN_OR_RETURN(const bool idle, IsIdle());
    idle_looks = idle ? idle_looks + 1 : 0;
  }
  return Status::Ok();
}

}  // namespace isozone::ycsb
