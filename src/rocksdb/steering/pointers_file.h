// Keeps the compaction pointers of a column family in a file of the database's folder, which RocksDB leaves alone.
#pragma once

#include <string>

#include <rocksdb/file_system.h>

#include "rocksdb/lsm/compaction_pointers.h"

namespace isozone {

// Returns the pointers in the file, or none if there is no such file. If the file cannot be used, there are none
// either, and a line in Isozone's log says why.
CompactionPointers LoadPointers(rocksdb::FileSystem& fs, const std::string& path);
// Replaces the file as a whole, so that there is always a complete one. One thread at a time may call this for a file.
void StorePointers(rocksdb::FileSystem& fs, const std::string& path, const CompactionPointers& pointers);

}  // namespace isozone
