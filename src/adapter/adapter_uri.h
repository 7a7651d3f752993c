// The options of an isozone:// URI that mean something to the adapter only:
//
//   read_only=on        mount read-only, beside a writer in another process
//   log_dir=/path       RocksDB's info log goes to this local directory instead of the device
//   stats_file=/path    statistics, as JSON, are written here while the file system is mounted, and at the end
//   stats_interval=N    so many seconds apart; 0: at the end only
//
// All others belong to the layers below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace isozone {

struct AdapterUri {
  bool read_only = false;
  std::string log_dir;     // empty: on the device
  std::string stats_file;  // empty: none
  uint64_t stats_interval_s = 10;
  std::string rest;  // the URI without these options

  // kInvalidArgument where a value does not convert or a directory or file name is not absolute.
  static Result<AdapterUri> Parse(std::string_view uri);
};

}  // namespace isozone
