// Opens a database according to an options file, which also names the device:
//
//   isozone mkfs 'emu:ssd.img?zones=64&timing=off'
//   options_file options.ini
//
// The program names neither a device nor Isozone: the same binary runs on a local disk with another options file.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/utilities/options_util.h>

namespace {

rocksdb::Status Run(const std::string& options_file) {
  rocksdb::DBOptions options;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  rocksdb::Status status = rocksdb::LoadOptionsFromFile(rocksdb::ConfigOptions(), options_file, &options, &families);
  if (!status.ok()) return status;

  rocksdb::DB* raw = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  status = rocksdb::DB::Open(options, "/db", families, &handles, &raw);
  if (!status.ok()) return status;
  const std::unique_ptr<rocksdb::DB> db(raw);

  std::string value;
  status = db->Put(rocksdb::WriteOptions(), "greeting", "from an options file");
  if (status.ok()) status = db->Get(rocksdb::ReadOptions(), "greeting", &value);
  if (status.ok()) std::printf("on %s: %s\n", options.env->GetFileSystem()->Name(), value.c_str());
  for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const rocksdb::Status status = Run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
