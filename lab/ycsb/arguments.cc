#include "ycsb/arguments.h"

#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <rocksdb/version.h>

#include "base/uri.h"
#include "ycsb/workload.h"

namespace isozone::ycsb {
namespace {

constexpr uint64_t kMaxCount = 1'000'000'000'000;
constexpr uint64_t kMaxIntervalMs = 3'600'000;

void AddSize(CLI::App& app, const std::string& name, uint64_t* bytes, uint64_t min, const std::string& help) {
  const std::string standard = FormatSize(*bytes);
  app.add_option_function<std::string>(
         name,
         [name, bytes, min](const std::string& text) {
           const auto size = ParseSize(text);
           if (!size.ok()) throw CLI::ValidationError(name, std::string(size.status().message()));
           if (*size < min) throw CLI::ValidationError(name, fmt::format("{} bytes are less than {}", *size, min));
           *bytes = *size;
         },
         help)
      ->option_text(fmt::format("SIZE [{}]", standard));
}

}  // namespace

void AddOptions(CLI::App& app, Arguments& arguments) {
  app.add_option("--workload", arguments.workload, "a to f")->required();
  app.add_option("--db", arguments.db, "Path of the database")->required();
  app.add_option("--fs-uri", arguments.fs_uri, "File system of the database, by URI; the local one if not given");
  app.add_option("--phase", arguments.phase, "load (into a new database), run (on what was loaded) or load-and-run")
      ->check(CLI::IsMember({"load", "run", "load-and-run"}))
      ->capture_default_str();
  app.add_option("--records", arguments.records, "Records that are loaded")
      ->check(CLI::Range(uint64_t{1}, kMaxCount))
      ->capture_default_str();
  app.add_option("--operations", arguments.operations, "Operations of the run")
      ->check(CLI::Range(uint64_t{1}, kMaxCount))
      ->capture_default_str();
  app.add_option("--threads", arguments.threads, "Clients at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  AddSize(app, "--value-size", &arguments.value_size, kMinValueSize, "Bytes of a value");
  AddSize(app, "--write-buffer-size", &arguments.write_buffer_size, 64 * kKiB, "Bytes of a memtable");
  app.add_option("--max-background-jobs", arguments.max_background_jobs, "Flushes and compactions at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  AddSize(app, "--target-file-size", &arguments.target_file_size, 64 * kKiB, "Bytes of a table of level 1");
  app.add_option("--compression", arguments.compression, "none: values are random")
      ->check(CLI::IsMember({"none"}))
      ->capture_default_str();
  AddSize(app, "--cache-size", &arguments.cache_size, 0, "Bytes of the block cache; 0: none");
  app.add_option("--seed", arguments.seed, "Of all that is random")->capture_default_str();
  app.add_option("--interval-ms", arguments.interval_ms, "Record a time series at this interval; 0: none")
      ->check(CLI::Range(uint64_t{0}, kMaxIntervalMs))
      ->capture_default_str();
  app.add_flag("--settle", arguments.settle, "Wait until compaction is done, after the load and before the run");
  app.add_flag("--progress", arguments.progress, "Show how far it is, even where standard error is no terminal");
}

nlohmann::ordered_json OptionsJson(const Arguments& arguments) {
  return {{"fs_uri", arguments.fs_uri},
          {"db", arguments.db},
          {"phase", arguments.phase},
          {"records", arguments.records},
          {"operations", arguments.operations},
          {"threads", arguments.threads},
          {"value_size", arguments.value_size},
          {"write_buffer_size", arguments.write_buffer_size},
          {"max_background_jobs", arguments.max_background_jobs},
          {"target_file_size", arguments.target_file_size},
          {"compression", arguments.compression},
          {"cache_size", arguments.cache_size},
          {"interval_ms", arguments.interval_ms},
          {"settle", arguments.settle},
          {"rocksdb", fmt::format("{}.{}.{}", ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH)}};
}

}  // namespace isozone::ycsb
