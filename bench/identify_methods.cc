// isozone_identify_methods: what it costs to find zone groups, and how often the result is wrong, in virtual time. It
// prints two tables for docs/zone-groups.md:
//
//   disturbances   IdentifyZoneGroups on devices and hosts that are not ideal, for each mapping of zones to dies
//   methods        IdentifyZoneGroups beside two published methods, on a device with everyday noise:
//
//     one by one       ZenFS+ (section III.A): a pivot reads one zone, and each zone without a group is a needle once.
//                      Only needles count as reads, since the pivot reads all the time.
//     guess, verify    the idea of BIZA (SOSP'24): zones are taken to lie on the groups in turn, whose number is known
//                      beforehand. Then the load itself shows mistakes: while one group is busy, a zone of another one
//                      that is slow gets a vote for the busy group, and moves there with the second vote. Here, needles
//                      of random zones are the load, so each of them counts as a read. BIZA has votes of writes, on
//                      channels; here they are of reads, on dies, as for the other methods.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "device/izg/disturbed_test_util.h"
#include "device/izg/identify.h"
#include "device/izg/latency_probe.h"
#include "device/izg/virtual_prober_test_util.h"

namespace isozone {
namespace {

struct Options {
  uint32_t zones = 29172;
  uint64_t seeds = 5;
  std::string only;  // of the tables
};

struct Outcome {
  uint64_t runs = 0, refused = 0, wrong_runs = 0, wrong_zones = 0, measured = 0;
  double reads = 0, most_reads = 0, may_be_wrong = 0;

  void Count(double reads_a_zone, size_t wrong) {
    ++measured;
    reads += reads_a_zone;
    most_reads = std::max(most_reads, reads_a_zone);
    wrong_zones += wrong;
    wrong_runs += wrong > 0 ? 1 : 0;
  }
  double MeanReads() const { return measured == 0 ? 0 : reads / static_cast<double>(measured); }
};

Profile Device(const Options& options) { return SmallZones(options.zones); }

void Identify(VirtualProber& prober, uint64_t seed, Outcome& outcome) {
  IdentifyOptions options;
  options.seed = seed;
  ++outcome.runs;
  const Result<IdentifyReport> report = IdentifyZoneGroups(prober, options);
  // A device that shows no groups at all is reported with a caveat: no group is wrong, but none is found either.
  if (!report.ok() || !report->caveat.empty()) {
    ++outcome.refused;
    return;
  }
  outcome.Count(static_cast<double>(report->reads) / prober.geometry().zone_count, WrongZones(report->groups, prober));
  outcome.may_be_wrong = std::max(outcome.may_be_wrong, report->may_be_wrong);
}

void PrintDisturbances(const Options& options) {
  fmt::print(
      "| disturbance | mapping | reads a zone, mean | at most | right | refused | wrong | wrong with, at most |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const Disturbed& disturbed : kDisturbed) {
    for (const TestMapping mapping : kTestMappings) {
      Outcome outcome;
      for (uint64_t seed = 1; seed <= options.seeds; ++seed) {
        VirtualProber prober = MakeProber(Device(options), mapping, disturbed.disturbances, seed);
        Identify(prober, seed, outcome);
      }
      fmt::print("| {} | {} | {:.1f} | {:.1f} | {} | {} | {} | {:.2g} |\n", disturbed.name, NameOf(mapping),
                 outcome.MeanReads(), outcome.most_reads, outcome.runs - outcome.refused - outcome.wrong_runs,
                 outcome.refused, outcome.wrong_runs, outcome.may_be_wrong);
      std::fflush(stdout);
    }
  }
}

// --- Published methods ---

// A probe on zones that hold data, calibrated.
struct Bench {
  Bench(const Options& options, TestMapping mapping, const Disturbed& disturbed, uint64_t seed)
      : prober(MakeProber(Device(options), mapping, disturbed.disturbances, seed)), random(seed) {
    for (uint32_t zone = 0; zone < options.zones; ++zone) prober.Fill(zone, 8 * kMiB);
    probe.emplace(prober, seed, 0, [] { return Status::Ok(); });
    std::vector<ZoneId> first;
    for (uint32_t zone = 0; zone < 96; ++zone) first.emplace_back(zone);
    calibrated = probe->Calibrate(ZoneId(0), first).ok();
  }
  VirtualProber prober;
  Random random;
  std::optional<LatencyProbe> probe;
  bool calibrated = false;
};

void OneByOne(const Options& options, TestMapping mapping, const Disturbed& disturbed, uint64_t seed,
              Outcome& outcome) {
  Bench bench(options, mapping, disturbed, seed);
  ++outcome.runs;
  ZoneGroups groups;
  groups.group_of_zone.assign(options.zones, ZoneGroups::kUnknown);
  uint64_t needles = 0;
  for (uint32_t pivot = 0, next = 0; pivot < options.zones; ++pivot) {
    if (groups.group_of_zone[pivot] != ZoneGroups::kUnknown) continue;
    groups.group_of_zone[pivot] = static_cast<uint16_t>(next);
    for (uint32_t zone = pivot + 1; zone < options.zones; ++zone) {
      if (groups.group_of_zone[zone] != ZoneGroups::kUnknown) continue;
      ++needles;
      const Result<bool> delayed = bench.probe->IsDelayed(ZoneId(pivot), ZoneId(zone));
      if (delayed.ok() && *delayed) groups.group_of_zone[zone] = static_cast<uint16_t>(next);
    }
    ++next;
  }
  outcome.Count(static_cast<double>(needles) / options.zones, WrongZones(groups, bench.prober));
}

void GuessAndVerify(const Options& options, TestMapping mapping, const Disturbed& disturbed, uint64_t seed,
                    double reads_a_zone, Outcome& outcome) {
  constexpr int kVotes = 2;
  Bench bench(options, mapping, disturbed, seed);
  ++outcome.runs;
  const uint32_t known_groups = bench.prober.profile().dies;
  ZoneGroups groups;
  for (uint32_t zone = 0; zone < options.zones; ++zone) {
    groups.group_of_zone.push_back(static_cast<uint16_t>(zone % known_groups));
  }
  std::vector<std::map<uint16_t, int>> votes(options.zones);
  for (double needles = 0; needles < reads_a_zone * options.zones;) {
    const ZoneId busy(static_cast<uint32_t>(bench.random.Below(options.zones)));
    const uint16_t busy_group = groups.group_of_zone[busy.value()];
    std::vector<ZoneId> zones;
    while (zones.size() < bench.probe->calibration().small_crowd) {
      const ZoneId zone(static_cast<uint32_t>(bench.random.Below(options.zones)));
      if (groups.group_of_zone[zone.value()] != busy_group) zones.push_back(zone);
    }
    needles += static_cast<double>(zones.size());
    const Pivot pivot{busy, 1};
    const auto verdicts = bench.probe->Measure({&pivot, 1}, zones, zones.size());
    for (size_t i = 0; verdicts.ok() && i < zones.size(); ++i) {
      const uint32_t zone = zones[i].value();
      if ((*verdicts)[i] != 0 || ++votes[zone][busy_group] < kVotes) continue;
      groups.group_of_zone[zone] = busy_group;
      votes[zone].clear();
    }
  }
  outcome.Count(reads_a_zone, WrongZones(groups, bench.prober));
}

void PrintRow(std::string_view method, TestMapping mapping, const Options& options, const Outcome& outcome) {
  const double zones = static_cast<double>(options.zones) * static_cast<double>(outcome.measured);
  fmt::print("| {} | {} | {:.1f} | {:.3g} % |\n", method, NameOf(mapping), outcome.MeanReads(),
             outcome.measured == 0 ? 0 : 100 * static_cast<double>(outcome.wrong_zones) / zones);
  std::fflush(stdout);
}

void PrintMethods(const Options& options) {
  const Disturbed& disturbed = kDisturbed[0];
  fmt::print("| method | mapping | reads a zone | zones in a wrong group |\n|---|---|---|---|\n");
  for (const TestMapping mapping :
       {TestMapping::kRoundRobin, TestMapping::kExceptions, TestMapping::kPermuted, TestMapping::kIrregular}) {
    for (const double reads : {0.0, 6.0, 64.0, 256.0}) {
      Outcome outcome;
      for (uint64_t seed = 1; seed <= options.seeds; ++seed) {
        GuessAndVerify(options, mapping, disturbed, seed, reads, outcome);
      }
      PrintRow("guess, verify", mapping, options, outcome);
    }
    Outcome one_by_one, isozone;
    for (uint64_t seed = 1; seed <= options.seeds; ++seed) {
      OneByOne(options, mapping, disturbed, seed, one_by_one);
      VirtualProber prober = MakeProber(Device(options), mapping, disturbed.disturbances, seed);
      Identify(prober, seed, isozone);
    }
    PrintRow("one by one", mapping, options, one_by_one);
    PrintRow("Isozone", mapping, options, isozone);
  }
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures what it costs to find zone groups, in virtual time"};
  app.add_option("--zones", options.zones, "Zones of the device")->capture_default_str();
  app.add_option("--seeds", options.seeds, "Runs with different seeds")->capture_default_str();
  app.add_option("--only", options.only, "disturbances or methods; otherwise both");
  CLI11_PARSE(app, argc, argv);
  if (options.only != "methods") PrintDisturbances(options);
  if (options.only.empty()) fmt::print("\n");
  if (options.only != "disturbances") PrintMethods(options);
  return 0;
}

}  // namespace
}  // namespace isozone

int main(int argc, char** argv) { return isozone::Main(argc, argv); }
