// The database that processes_test.cc and its child process share.
#pragma once

#include <string>

#include <rocksdb/options.h>

#include "integration/scratch.h"

namespace isozone {

inline constexpr char kTwoProcessPath[] = "/db";

inline rocksdb::Options TwoProcessOptions(rocksdb::Env* env) {
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = true;
  options.write_buffer_size = 128 << 10;
  options.target_file_size_base = 128 << 10;
  options.compression = rocksdb::kNoCompression;
  return options;
}

inline std::string TwoProcessValue(uint64_t number) { return Bytes(200 + number % 100, number); }

}  // namespace isozone
