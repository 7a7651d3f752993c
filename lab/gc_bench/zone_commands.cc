// isozone_gc_bench reclaim and groups: Fig. 1 and 2 of the LSM_ZGC paper.
#include <memory>
#include <string>
#include <vector>

#include "gc_bench/gc_bench.h"
#include "gc_bench/gc_zone.h"
#include "isozone/bench/bench.h"
#include "isozone/output/progress.h"
#include "isozone/output/table.h"

namespace isozone::cli {
namespace {

const std::vector<double> kUtilisations = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
constexpr uint64_t kGroupSizes = 6;  // 4K to 128K

struct ZoneArguments {
  std::string device;
  uint64_t seed = 1;
  bool destroy = false;
  bool json = false;
};

// The time for a zone of 1 GiB, the size in the paper.
double PerGiB(double seconds, uint64_t zone_capacity) {
  return seconds * static_cast<double>(kGiB) / static_cast<double>(zone_capacity);
}

Status BenchGcReclaim(const ZoneArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenByUri(arguments.device, OpenMode::kReadWrite));
  ISOZONE_ASSIGN_OR_RETURN(ScratchZones zones, ScratchZones::Take(*opened.device, 2, arguments.destroy));
  Progress progress("reclaiming", kUtilisations.size(), Progress::Unit::kSteps);
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ReclaimPoint> points,
                           MeasureReclaim(*opened.device, zones.zone(0), zones.zone(1), kUtilisations, arguments.seed,
                                          [&](uint64_t done) { progress.Update(done); }));
  ISOZONE_RETURN_IF_ERROR(zones.Release());
  const uint64_t capacity = opened.device->geometry().zone_capacity;
  Json document = Json::array();
  Table table({{"UTILISATION", Table::Align::kRight},
               {"BLOCKS", Table::Align::kRight},
               {"SECONDS", Table::Align::kRight},
               {"SECONDS A GIB", Table::Align::kRight}});
  for (const ReclaimPoint& point : points) {
    document.push_back({{"utilisation", point.utilisation},
                        {"valid_blocks", point.valid_blocks},
                        {"seconds", point.seconds},
                        {"seconds_per_gib", PerGiB(point.seconds, capacity)}});
    table.AddRow({fmt::format("{:.1f}", point.utilisation), std::to_string(point.valid_blocks),
                  fmt::format("{:.3f}", point.seconds), fmt::format("{:.1f}", PerGiB(point.seconds, capacity))});
  }
  if (arguments.json) {
    console.PrintJson({{"device", opened.device->name()},
                       {"zone_capacity", capacity},
                       {"seed", arguments.seed},
                       {"points", std::move(document)}});
    return Status::Ok();
  }
  console.Print("{}: reclaiming one zone of {}, block by block; seed {}\n\n", Printable(opened.device->name()),
                FormatSize(capacity), arguments.seed);
  table.Print(console);
  TimingNote(*opened.device).PrintProblem(console);
  return Status::Ok();
}

Status BenchGcGroups(const ZoneArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenByUri(arguments.device, OpenMode::kReadWrite));
  ISOZONE_ASSIGN_OR_RETURN(ScratchZones zones, ScratchZones::Take(*opened.device, 1, arguments.destroy));
  Progress progress("reading", kGroupSizes, Progress::Unit::kSteps);
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<GroupPoint> points,
                           MeasureGroups(*opened.device, zones.zone(0), [&](uint64_t done) { progress.Update(done); }));
  ISOZONE_RETURN_IF_ERROR(zones.Release());
  const uint64_t capacity = opened.device->geometry().zone_capacity;
  Json document = Json::array();
  Table table({{"REQUEST", Table::Align::kRight},
               {"SECONDS", Table::Align::kRight},
               {"SECONDS A GIB", Table::Align::kRight},
               {"THROUGHPUT", Table::Align::kRight}});
  for (const GroupPoint& point : points) {
    const double rate = static_cast<double>(capacity) / point.seconds;
    document.push_back({{"request", point.request},
                        {"seconds", point.seconds},
                        {"seconds_per_gib", PerGiB(point.seconds, capacity)},
                        {"bytes_per_second", rate}});
    table.AddRow({FormatSize(point.request), fmt::format("{:.3f}", point.seconds),
                  fmt::format("{:.1f}", PerGiB(point.seconds, capacity)),
                  FormatSize(static_cast<uint64_t>(rate)) + "/s"});
  }
  if (arguments.json) {
    console.PrintJson(
        {{"device", opened.device->name()}, {"zone_capacity", capacity}, {"points", std::move(document)}});
    return Status::Ok();
  }
  console.Print("{}: reading one zone of {}, one request at a time\n\n", Printable(opened.device->name()),
                FormatSize(capacity));
  table.Print(console);
  TimingNote(*opened.device).PrintProblem(console);
  return Status::Ok();
}

}  // namespace

Action DefineReclaim(CLI::App& app) {
  auto arguments = std::make_shared<ZoneArguments>();
  AddDeviceArgument(app, arguments->device);
  AddSeedOption(app, arguments->seed);
  AddDestroyFlag(app, arguments->destroy);
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return BenchGcReclaim(*arguments, console); };
}

Action DefineGroups(CLI::App& app) {
  auto arguments = std::make_shared<ZoneArguments>();
  AddDeviceArgument(app, arguments->device);
  AddDestroyFlag(app, arguments->destroy);
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return BenchGcGroups(*arguments, console); };
}

}  // namespace isozone::cli
