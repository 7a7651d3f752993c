// isozone_gc_bench collect: Fig. 5, 6 and 7 of the LSM_ZGC paper.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gc_bench/gc_bench.h"
#include "isozone/output/table.h"

namespace isozone::cli {
namespace {

constexpr uint32_t kMaxRounds = 100'000;

const std::map<std::string, std::vector<CollectScheme>> kSchemes = {
    {"basic", {CollectScheme::kBasic}},
    {"lsm-zgc", {CollectScheme::kLsmZgc}},
    {"isozone", {CollectScheme::kIsozone}},
    {"both", {CollectScheme::kBasic, CollectScheme::kLsmZgc}},
    {"all", {CollectScheme::kBasic, CollectScheme::kLsmZgc, CollectScheme::kIsozone}},
};

struct CollectArguments : GcArguments {
  std::string scheme = "both";
  uint32_t rounds = 1;
};

struct SchemeRun {
  CollectScheme scheme = CollectScheme::kBasic;
  std::vector<CollectResult> rounds = {};

  // The sums over the rounds; the histograms of the last round.
  CollectResult Total() const {
    CollectResult total = rounds.back();
    for (size_t i = 0; i + 1 < rounds.size(); ++i) {
      total.seconds += rounds[i].seconds;
      total.blocks_copied += rounds[i].blocks_copied;
      total.blocks_reclaimed += rounds[i].blocks_reclaimed;
      total.zones_reset += rounds[i].zones_reset;
      total.reads += rounds[i].reads;
      total.bytes_read += rounds[i].bytes_read;
      total.writes += rounds[i].writes;
      total.depth_max = std::max(total.depth_max, rounds[i].depth_max);
    }
    return total;
  }
};

Result<SchemeRun> RunScheme(const CollectArguments& arguments, GcBench& bench, CollectScheme scheme) {
  SchemeRun run{.scheme = scheme};
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<GcVolume> volume, bench.Fill());
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<UpdatePattern> pattern, bench.MakePattern());
  for (uint32_t round = 0; round < arguments.rounds; ++round) {
    ISOZONE_RETURN_IF_ERROR(bench.Update(*volume, *pattern));
    ISOZONE_ASSIGN_OR_RETURN(CollectResult result, bench.CollectWith(*volume, scheme));
    run.rounds.push_back(result);
  }
  if (arguments.verify) ISOZONE_RETURN_IF_ERROR(bench.Verify(*volume));
  return run;
}

std::vector<std::string> Row(const std::string& name, const std::string& round, const CollectResult& result,
                             uint64_t block_size) {
  const uint64_t copied = result.blocks_copied * block_size;
  const auto rate = static_cast<uint64_t>(result.seconds == 0 ? 0 : static_cast<double>(copied) / result.seconds);
  return {name,
          round,
          fmt::format("{:.3f}", result.seconds),
          std::to_string(result.blocks_copied),
          std::to_string(result.blocks_reclaimed),
          std::to_string(result.zones_reset),
          std::to_string(result.reads),
          FormatSize(result.bytes_read),
          FormatSize(rate) + "/s"};
}

void PrintRuns(const std::vector<SchemeRun>& runs, uint64_t block_size, Console& console) {
  using Align = Table::Align;
  Table table({{"SCHEME"},
               {"ROUND", Align::kRight},
               {"SECONDS", Align::kRight},
               {"COPIED", Align::kRight},
               {"RECLAIMED", Align::kRight},
               {"RESETS", Align::kRight},
               {"READS", Align::kRight},
               {"BYTES READ", Align::kRight},
               {"COPY RATE", Align::kRight}});
  for (const SchemeRun& run : runs) {
    const std::string name(CollectSchemeName(run.scheme));
    for (size_t i = 0; i < run.rounds.size(); ++i) {
      table.AddRow(Row(name, std::to_string(i + 1), run.rounds[i], block_size));
    }
    if (run.rounds.size() > 1) table.AddRow(Row(name, "all", run.Total(), block_size));
  }
  table.Print(console);
}

void PrintHistograms(const std::vector<SchemeRun>& runs, Console& console) {
  std::vector<Table::Column> columns = {{"ZONES BY UTILISATION, LAST ROUND"}};
  for (int bucket = 0; bucket < kUtilisationBuckets; ++bucket) {
    columns.push_back({fmt::format("{}-{}%", bucket * 10, bucket * 10 + 10), Table::Align::kRight});
  }
  Table table(std::move(columns));
  for (const SchemeRun& run : runs) {
    for (const auto& [when, histogram] :
         {std::pair("before", run.rounds.back().before), std::pair("after", run.rounds.back().after)}) {
      std::vector<std::string> row = {fmt::format("{}, {}", CollectSchemeName(run.scheme), when)};
      for (const uint32_t zones : histogram) row.push_back(zones == 0 ? "." : std::to_string(zones));
      table.AddRow(std::move(row));
    }
  }
  console.Print("\n");
  table.Print(console);
}

void PrintComparison(const std::vector<SchemeRun>& runs, Console& console) {
  const CollectResult basic = runs[0].Total();
  if (runs.size() < 2 || basic.blocks_copied == 0) return;
  console.Print("\n");
  for (size_t i = 1; i < runs.size(); ++i) {
    const CollectResult other = runs[i].Total();
    if (other.seconds == 0) continue;
    console.Print("{} is {:.2f} times as fast as basic and copies {:.3f} of its blocks.\n",
                  CollectSchemeName(runs[i].scheme), basic.seconds / other.seconds,
                  static_cast<double>(other.blocks_copied) / static_cast<double>(basic.blocks_copied));
  }
}

Json RunsJson(const std::vector<SchemeRun>& runs, uint64_t block_size) {
  Json document = Json::array();
  for (const SchemeRun& run : runs) {
    Json rounds = Json::array();
    for (const CollectResult& round : run.rounds) rounds.push_back(CollectResultJson(round, block_size));
    document.push_back({{"scheme", CollectSchemeName(run.scheme)},
                        {"total", CollectResultJson(run.Total(), block_size)},
                        {"rounds", std::move(rounds)}});
  }
  return document;
}

Status BenchGcCollect(const CollectArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenByUri(arguments.device, OpenMode::kReadWrite));
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<GcBench> bench, GcBench::Open(arguments, *opened.device, 0, 0));
  std::vector<SchemeRun> runs;
  for (const CollectScheme scheme : kSchemes.at(arguments.scheme)) {
    ISOZONE_ASSIGN_OR_RETURN(SchemeRun run, RunScheme(arguments, *bench, scheme));
    runs.push_back(std::move(run));
  }
  ISOZONE_RETURN_IF_ERROR(bench->Release());
  const uint64_t block_size = GcVolume::BlockSize(opened.device->geometry());
  if (arguments.json) {
    Json document = GcSetupJson(arguments, *bench);
    document["verified"] = arguments.verify;
    document["schemes"] = RunsJson(runs, block_size);
    console.PrintJson(document);
    return Status::Ok();
  }
  PrintGcSetup(arguments, *bench, console);
  PrintRuns(runs, block_size, console);
  PrintHistograms(runs, console);
  PrintComparison(runs, console);
  if (arguments.verify) console.Print("\nEvery valid block was read back and is what was written last.\n");
  TimingNote(*opened.device).PrintProblem(console);
  return Status::Ok();
}

}  // namespace

Action DefineCollect(CLI::App& app) {
  auto arguments = std::make_shared<CollectArguments>();
  AddGcOptions(app, *arguments);
  std::vector<std::string> names;
  for (const auto& [name, schemes] : kSchemes) names.push_back(name);
  app.add_option("--scheme", arguments->scheme,
                 "basic, lsm-zgc, isozone, both (basic and lsm-zgc) or all; both if not given")
      ->check(CLI::IsMember(names).description(""))
      ->option_text("NAME");
  app.add_option("--rounds", arguments->rounds, "Rounds of updates and GC; 1 if not given")
      ->check(CLI::Range(uint32_t{1}, kMaxRounds))
      ->option_text("N");
  app.add_flag("--verify", arguments->verify, "At the end, read every valid block back and check it");
  return [arguments](Console& console) { return BenchGcCollect(*arguments, console); };
}

}  // namespace isozone::cli
