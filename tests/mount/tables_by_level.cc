// Makes a RocksDB database with tables in the levels 0 to 3, and prints "LEVEL NAME" of each table:
//
//   tables_by_level DIRECTORY
//
// From how a table is made follows what the name of its thread says of its lifetime, and what its level says
// (F_SET_RW_HINT, RocksDB 8 and later):
//
//   level   made by                            the thread says   the level says
//   0       a flush, in `rocksdb:high`         medium            medium
//   1       a compaction, in `rocksdb:low`     long              medium
//   2, 3    CompactFiles, in the main thread   nothing           long, extreme
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rocksdb/db.h>

namespace {

using Database = std::unique_ptr<rocksdb::DB>;

constexpr int kKeys = 200;  // of a table
constexpr size_t kValueSize = 1000;

void Check(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// RocksDB hands a database out as DB** before version 11, as unique_ptr<DB>* since.
template <typename Db>
Database Open(const std::string& path) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.error_if_exists = true;
  options.compression = rocksdb::kNoCompression;
  options.disable_auto_compactions = true;
  options.level_compaction_dynamic_level_bytes = false;  // level 1 is the one below level 0
  Database made;
  if constexpr (requires { Db::Open(options, path, &made); }) {
    Check(Db::Open(options, path, &made));
  } else {
    Db* raw = nullptr;
    Check(Db::Open(options, path, &raw));
    made.reset(raw);
  }
  return made;
}

// A table in level 0. Those of different prefixes have no keys in common.
void Flush(rocksdb::DB& db, const std::string& prefix) {
  for (int i = 0; i < kKeys; ++i) {
    Check(db.Put({}, prefix + std::to_string(i), std::string(kValueSize, static_cast<char>('a' + i % 26))));
  }
  Check(db.Flush({}));
}

std::vector<rocksdb::LiveFileMetaData> Tables(rocksdb::DB& db) {
  std::vector<rocksdb::LiveFileMetaData> tables;
  db.GetLiveFilesMetaData(&tables);
  return tables;
}

void CompactLevel0HereTo(rocksdb::DB& db, int level) {
  std::vector<std::string> names;
  for (const auto& table : Tables(db)) {
    if (table.level == 0) names.push_back(table.name);
  }
  Check(db.CompactFiles({}, names, level));
}

void MakeTables(rocksdb::DB& db) {
  // Twice the same keys: a single table would be moved as it is. There is no deeper level yet to compact into.
  Flush(db, "1");
  Flush(db, "1");
  Check(db.CompactRange({}, nullptr, nullptr));
  for (const int level : {3, 2}) {
    Flush(db, std::to_string(level));
    CompactLevel0HereTo(db, level);
  }
  Flush(db, "0");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: tables_by_level DIRECTORY\n", stderr);
    return 2;
  }
  try {
    const Database db = Open<rocksdb::DB>(argv[1]);
    MakeTables(*db);
    for (const auto& table : Tables(*db)) std::printf("%d %s\n", table.level, table.name.c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tables_by_level: %s\n", error.what());
    return 1;
  }
}
