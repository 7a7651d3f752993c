// Writes and reads a key in a RocksDB database on a zoned SSD:
//
//   isozone mkfs 'emu:ssd.img?zones=64&timing=off'
//   database isozone://emu:ssd.img
//
// Linking isozone::isozone is enough for RocksDB to know isozone://; this program includes the header for more than
// that.

#include <isozone/isozone.h>

#include <cstdio>
#include <memory>
#include <string>

#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>

namespace {

rocksdb::Status Run(const std::string& uri) {
  rocksdb::Env* env = nullptr;
  std::shared_ptr<rocksdb::Env> env_guard;
  rocksdb::Status status = rocksdb::Env::CreateFromUri(rocksdb::ConfigOptions(), "", uri, &env, &env_guard);
  if (!status.ok()) return status;

  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = true;
  rocksdb::DB* raw = nullptr;
  status = rocksdb::DB::Open(options, "/db", &raw);
  if (!status.ok()) return status;
  const std::unique_ptr<rocksdb::DB> db(raw);

  rocksdb::WriteOptions synced;
  synced.sync = true;
  status = db->Put(synced, "greeting", "from a zone");
  if (!status.ok()) return status;
  status = db->Flush(rocksdb::FlushOptions());
  if (!status.ok()) return status;
  std::string value;
  status = db->Get(rocksdb::ReadOptions(), "greeting", &value);
  std::printf("Isozone %s: %s\n", isozone::Version().c_str(), value.c_str());
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const rocksdb::Status status = Run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
