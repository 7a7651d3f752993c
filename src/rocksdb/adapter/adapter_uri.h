// AdapterUri: the options of an isozone:// URI that only the adapter uses:
//
//   read_only=on        mount read-only, beside a writer in another process
//   log_dir=/path       RocksDB's info logs go below this local directory instead of to the device
//   stats_file=/path    statistics are written here as JSON while the file system is mounted, and at the end
//
// All other options belong to the layers below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace isozone {

struct AdapterUri {
  bool read_only = false;
  std::string log_dir;     // with a directory for this device, "/path/emu/data/ssd.img"; empty: on the device
  std::string stats_file;  // empty: none
  std::string rest;        // the URI without these options

  // Parses a URI. kInvalidArgument: a value cannot be converted, or the name of a directory or file is not absolute.
  static Result<AdapterUri> Parse(std::string_view uri);
};

}  // namespace isozone
