// isozone_gc_bench worker: Fig. 8 and 9 of the LSM_ZGC paper.
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "gc_bench/gc_bench.h"
#include "gc_bench/gc_worker.h"
#include "isozone/bench/bench.h"
#include "isozone/output/progress.h"
#include "isozone/output/table.h"

namespace isozone::cli {
namespace {

constexpr uint32_t kMaxThreads = 8;

struct WorkerArguments : GcArguments {
  std::vector<uint32_t> threads = {1};
  uint64_t worker_bytes = 64 * kMiB;
};

struct Case {
  uint32_t threads = 1;
  std::optional<CollectScheme> scheme;  // none: the worker runs alone
  WorkerResult worker = {};
  CollectResult collection = {};

  std::string Name() const { return scheme ? fmt::format("beside {}", CollectSchemeName(*scheme)) : "alone"; }
};

WorkerOptions OptionsOf(const WorkerArguments& arguments, uint32_t threads, uint64_t block_size) {
  return {.bytes = arguments.worker_bytes, .threads = threads, .read_size = block_size, .seed = arguments.seed};
}

// Runs the worker, and GC from the same moment on.
Status RunBoth(GcBench& bench, GcVolume& volume, const WorkerOptions& options, const std::vector<ZoneId>& zones,
               Case& one) {
  Result<WorkerResult> worker = Status::Aborted("the worker did not run");
  Result<CollectResult> collection = Status::Aborted("GC did not run");
  ISOZONE_ASSIGN_OR_RETURN(std::thread thread,
                           StartThread("the worker", [&] { worker = RunWorker(bench.device(), zones, options); }));
  collection = bench.CollectWith(volume, *one.scheme);
  thread.join();
  ISOZONE_ASSIGN_OR_RETURN(one.collection, std::move(collection));
  ISOZONE_ASSIGN_OR_RETURN(one.worker, std::move(worker));
  return Status::Ok();
}

Status RunCase(GcBench& bench, const WorkerOptions& options, Case& one) {
  std::vector<ZoneId> zones = bench.ZonesBeside();
  zones.resize(WorkerZones(bench.device().geometry(), options));
  if (!one.scheme) {
    ISOZONE_ASSIGN_OR_RETURN(one.worker, RunWorker(bench.device(), zones, options));
    return Status::Ok();
  }
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<GcVolume> volume, bench.Fill());
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<UpdatePattern> pattern, bench.MakePattern());
  ISOZONE_RETURN_IF_ERROR(bench.Update(*volume, *pattern));
  return RunBoth(bench, *volume, options, zones, one);
}

// The time of a case, divided by that of the same threads alone.
double SlowdownOf(const std::vector<Case>& cases, const Case& one) {
  for (const Case& other : cases) {
    if (!other.scheme && other.threads == one.threads) return one.worker.seconds / other.worker.seconds;
  }
  return 0;
}

void PrintCases(const std::vector<Case>& cases, Console& console) {
  using Align = Table::Align;
  Table table({{"WORKER"},
               {"THREADS", Align::kRight},
               {"SECONDS", Align::kRight},
               {"OF ALONE", Align::kRight},
               {"THROUGHPUT", Align::kRight},
               {"COLLECTOR SECONDS", Align::kRight},
               {"COPIED", Align::kRight}});
  for (const Case& one : cases) {
    table.AddRow({one.Name(), std::to_string(one.threads), fmt::format("{:.3f}", one.worker.seconds),
                  fmt::format("{:.3f}", SlowdownOf(cases, one)),
                  FormatSize(static_cast<uint64_t>(one.worker.BytesPerSecond())) + "/s",
                  one.scheme ? fmt::format("{:.3f}", one.collection.seconds) : "",
                  one.scheme ? std::to_string(one.collection.blocks_copied) : ""});
  }
  table.Print(console);
}

Json CasesJson(const std::vector<Case>& cases, uint64_t block_size) {
  Json document = Json::array();
  for (const Case& one : cases) {
    document.push_back({{"beside", one.scheme ? Json(CollectSchemeName(*one.scheme)) : Json()},
                        {"threads", one.threads},
                        {"seconds", one.worker.seconds},
                        {"of_alone", SlowdownOf(cases, one)},
                        {"bytes_per_second", one.worker.BytesPerSecond()},
                        {"collection", one.scheme ? CollectResultJson(one.collection, block_size) : Json()}});
  }
  return document;
}

Status BenchGcWorker(const WorkerArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenByUri(arguments.device, OpenMode::kReadWrite));
  const DeviceGeometry& geometry = opened.device->geometry();
  const uint64_t block_size = GcVolume::BlockSize(geometry);
  if (arguments.worker_bytes < block_size) {
    return Status::InvalidArgument(fmt::format("--worker-bytes must be at least a block, {}", FormatSize(block_size)));
  }
  uint32_t worker_zones = 0;
  uint32_t threads_max = 0;
  for (const uint32_t threads : arguments.threads) {
    worker_zones = std::max(worker_zones, WorkerZones(geometry, OptionsOf(arguments, threads, block_size)));
    threads_max = std::max(threads_max, threads);
  }
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<GcBench> bench,
                           GcBench::Open(arguments, *opened.device, worker_zones, threads_max));
  std::vector<Case> cases;
  for (const uint32_t threads : arguments.threads) {
    for (const std::optional<CollectScheme> scheme :
         {std::optional<CollectScheme>(), std::optional(CollectScheme::kBasic),
          std::optional(CollectScheme::kLsmZgc)}) {
      Case& one = cases.emplace_back(Case{.threads = threads, .scheme = scheme});
      ISOZONE_RETURN_IF_ERROR(RunCase(*bench, OptionsOf(arguments, threads, block_size), one));
    }
  }
  ISOZONE_RETURN_IF_ERROR(bench->Release());
  if (arguments.json) {
    Json document = GcSetupJson(arguments, *bench);
    document["worker_bytes"] = arguments.worker_bytes;
    document["cases"] = CasesJson(cases, block_size);
    console.PrintJson(document);
    return Status::Ok();
  }
  PrintGcSetup(arguments, *bench, console);
  PrintCases(cases, console);
  TimingNote(*opened.device).PrintProblem(console);
  return Status::Ok();
}

}  // namespace

Action DefineWorker(CLI::App& app) {
  auto arguments = std::make_shared<WorkerArguments>();
  AddGcOptions(app, *arguments);
  app.add_option("--threads", arguments->threads, "Threads of the worker, several numbers with commas; 1 if not given")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(uint32_t{1}, kMaxThreads))
      ->option_text("N,...");
  AddSizeOption(app, "--worker-bytes", arguments->worker_bytes,
                "Bytes that all threads write, and then read in blocks at random; 64M if not given");
  return [arguments](Console& console) { return BenchGcWorker(*arguments, console); };
}

}  // namespace isozone::cli
