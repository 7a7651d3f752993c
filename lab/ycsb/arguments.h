// What the command line of isozone_ycsb asks for.
//
// Sizes are in bytes. The parser checks the numbers and choices; FindWorkload judges the name of the workload.
//
// Thread safety: none needed; what was parsed is not changed any more, and any thread may read it.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/units.h"

namespace CLI {
class App;
}

namespace isozone::ycsb {

struct Arguments {
  std::string workload;
  std::string fs_uri;
  std::string db;
  std::string phase = "load-and-run";
  uint64_t records = 100'000;
  uint64_t operations = 100'000;
  uint32_t threads = 1;
  uint64_t value_size = 1000;
  uint64_t write_buffer_size = 64 * kMiB;
  int max_background_jobs = 2;
  uint64_t target_file_size = 64 * kMiB;
  std::string compression = "none";
  uint64_t cache_size = 8 * kMiB;
  uint64_t seed = 1;
  uint64_t interval_ms = 0;
  bool settle = false;
  bool progress = false;

  bool Loads() const { return phase != "run"; }
  bool Runs() const { return phase != "load"; }
};

// Lets `app` parse into `arguments`, whose values are the defaults, and which outlive `app`.
void AddOptions(CLI::App& app, Arguments& arguments);

// The arguments but workload, seed and progress, in the same units and by the same names; and the version of RocksDB.
nlohmann::ordered_json OptionsJson(const Arguments& arguments);

}  // namespace isozone::ycsb
