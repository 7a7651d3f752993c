#include "rocksdb/steering/pointers_file.h"

#include "base/log.h"

namespace isozone {

CompactionPointers LoadPointers(rocksdb::FileSystem& fs, const std::string& path) {
  std::string text;
  const rocksdb::IOStatus read = rocksdb::ReadFileToString(&fs, path, &text);
  if (read.IsNotFound() || read.IsPathNotFound()) return {};
  auto pointers = read.ok() ? CompactionPointers::FromText(text) : Status::IoError(read.ToString());
  if (pointers.ok()) return std::move(*pointers);
  Log().warn("{} is not used, and sweeps begin anew: {}", path, pointers.status().message());
  return {};
}

void StorePointers(rocksdb::FileSystem& fs, const std::string& path, const CompactionPointers& pointers) {
  rocksdb::IOStatus status = rocksdb::WriteStringToFile(&fs, pointers.ToText(), path + ".new", /*should_sync=*/true);
  if (status.ok()) status = fs.RenameFile(path + ".new", path, rocksdb::IOOptions(), nullptr);
  if (!status.ok()) Log().warn("{} is not written: {}", path, status.ToString());
}

}  // namespace isozone
