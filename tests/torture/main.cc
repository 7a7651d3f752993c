// isozone_torture: power cuts by the thousand. See torture.h.
#include <cstdio>
#include <random>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "torture/torture.h"

int main(int argc, char** argv) {
  isozone::torture::Options options;
  options.seed = std::random_device{}();
  bool progress = false;
  bool rocksdb = false;
  CLI::App app(
      "Cuts the power of an emulated SSD under a random workload, mounts it again and checks what is found.\n"
      "Ends with 1 and the command that replays the failure where something is wrong.");
  app.add_option("--cuts", options.cuts, "how many")->capture_default_str();
  app.add_option("--seed", options.seed, "of everything random; printed")->capture_default_str();
  app.add_option("--first", options.first, "cut to begin with, as a failure names it")->capture_default_str();
  app.add_option("--threads", options.threads, "clients at the same time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_flag("--rocksdb", rocksdb, "RocksDB on top");
  app.add_flag("--progress", progress, "show how far it is");
  CLI11_PARSE(app, argc, argv);

  if (progress) {
    options.progress = [&](uint64_t done) {
      if (done % 100 < isozone::torture::kCutsPerChain) fmt::print(stderr, "\r{} of {} cuts", done, options.cuts);
    };
  }
  fmt::print("isozone_torture {}--seed {} --first {} --cuts {} --threads {}\n", rocksdb ? "--rocksdb " : "",
             options.seed, options.first, options.cuts, options.threads);
  std::fflush(stdout);
  const auto report =
      rocksdb ? isozone::torture::RunPowerCutsOnRocksDb(options) : isozone::torture::RunPowerCuts(options);
  if (progress) fmt::print(stderr, "\n");
  if (!report.ok()) {
    fmt::print(stderr, "FAILED: {}\n", report.status().ToString());
    return 1;
  }
  fmt::print(
      "{} cuts, {} of them while formatting and {} while mounting; {} operations, {} bytes collected, {} times full; "
      "{} copies of the metadata were lost; {} cuts of logs that nobody had synced, {} of which left several logs; "
      "nothing else was lost\n",
      report->cuts, report->in_format, report->in_mount, report->operations, report->bytes_collected,
      report->times_full, report->copies_lost, report->unsynced, report->several_logs);
  return 0;
}
