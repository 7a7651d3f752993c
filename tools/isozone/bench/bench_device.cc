// bench device: measures Fig. 3 of the ZenFS+ paper on a device.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "isozone/bench/bench.h"
#include "isozone/bench/interference.h"
#include "isozone/output/progress.h"
#include "isozone/output/timing_note.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

constexpr uint64_t kDefaultTransfer = 192 * kKiB;  // the paper's size: the program unit of a die
constexpr uint32_t kMaxDistances = 4096;
constexpr uint32_t kMaxSamples = 10'000;

struct DeviceArguments {
  std::string device;
  std::string svg_path;
  uint32_t distances = 64;
  uint32_t samples = 24;
  uint64_t transfer = kDefaultTransfer;
  bool destroy = false;
  bool json = false;
};

Status CheckTransfer(uint64_t transfer, const DeviceGeometry& geometry) {
  if (transfer > 0 && IsAligned(transfer, geometry.block_size) && transfer <= geometry.zone_capacity &&
      (geometry.max_transfer == 0 || transfer <= geometry.max_transfer)) {
    return Status::Ok();
  }
  const uint64_t most = geometry.max_transfer == 0 ? geometry.zone_capacity : geometry.max_transfer;
  return Status::InvalidArgument(fmt::format("--size {} does not suit the device; give a multiple of {} up to {}",
                                             transfer, geometry.block_size, FormatSize(most)));
}

bool EmulatesTime(const ZonedDevice& device) {
  const auto emulation = device.description().emulation;
  return emulation && emulation->timing;
}

Result<std::vector<InterferenceSeries>> Measure(ZonedDevice& device, const DeviceArguments& arguments) {
  ISOZONE_RETURN_IF_ERROR(CheckTransfer(arguments.transfer, device.geometry()));
  ISOZONE_ASSIGN_OR_RETURN(ScratchZones zones, ScratchZones::Take(device, arguments.distances + 1, arguments.destroy));
  Progress progress("measuring", uint64_t{2} * arguments.distances, Progress::Unit::kSteps);
  InterferencePlan plan{.transfer = arguments.transfer,
                        .distances = arguments.distances,
                        .samples = arguments.samples,
                        .profile = EmulatesTime(device) ? ProfileOf(device) : std::nullopt,
                        .progress = [&progress](uint64_t done) { progress.Update(done); }};
  ISOZONE_ASSIGN_OR_RETURN(InterferenceSeries reads, MeasureReads(device, zones, plan));
  plan.progress = [&](uint64_t done) { progress.Update(arguments.distances + done); };
  ISOZONE_ASSIGN_OR_RETURN(InterferenceSeries writes, MeasureWrites(device, zones, plan));
  ISOZONE_RETURN_IF_ERROR(zones.Release());
  return std::vector<InterferenceSeries>{std::move(reads), std::move(writes)};
}

Json SeriesJson(const InterferenceSeries& series) {
  Json points = Json::array();
  for (const InterferencePoint& point : series.points) {
    points.push_back({{"distance", point.distance},
                      {"sharing", SharingName(point.sharing)},
                      {"median_us", static_cast<double>(point.median_ns) / 1000}});
  }
  Json bands = Json::object();
  for (const Sharing sharing : {Sharing::kUnknown, Sharing::kNothing, Sharing::kChannel, Sharing::kDie}) {
    if (const auto band = series.Band(sharing)) bands[SharingName(sharing)] = static_cast<double>(*band) / 1000;
  }
  return {{"alone_us", static_cast<double>(series.alone_ns) / 1000},
          {"bands_us", std::move(bands)},
          {"points", std::move(points)}};
}

Status BenchDevice(const DeviceArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenByUri(arguments.device, OpenMode::kReadWrite));
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<InterferenceSeries> series, Measure(*opened.device, arguments));
  const TimingNote timing(*opened.device);
  if (!arguments.svg_path.empty()) {
    ISOZONE_RETURN_IF_ERROR(
        WriteLocalFile(arguments.svg_path, InterferenceSvg(series, opened.device->name(), arguments.transfer)));
  }
  if (arguments.json) {
    console.PrintJson({{"device", opened.device->name()},
                       {"transfer", arguments.transfer},
                       {"reads", SeriesJson(series[0])},
                       {"writes", SeriesJson(series[1])},
                       {"lateness", timing.LatenessJson()}});
    return Status::Ok();
  }
  console.Print("{}: {} commands at queue depth 1 beside the same on another zone\n\n",
                Printable(opened.device->name()), FormatSize(arguments.transfer));
  for (const InterferenceSeries& one : series) PrintInterference(one, console);
  timing.Print(console);
  return Status::Ok();
}

}  // namespace

Action DefineBenchDevice(CLI::App& app) {
  auto arguments = std::make_shared<DeviceArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_option("--zones", arguments->distances, "Zones to measure beside the first one; 64 if not given")
      ->check(CLI::Range(uint32_t{1}, kMaxDistances))
      ->option_text("N");
  app.add_option("--samples", arguments->samples, "Commands to measure for each zone; 24 if not given")
      ->check(CLI::Range(uint32_t{1}, kMaxSamples))
      ->option_text("N");
  AddSizeOption(app, "--size", arguments->transfer, "Bytes of a command; 192K if not given");
  app.add_option("--svg", arguments->svg_path, "Draw the chart into this file, too")->option_text("FILE");
  AddDestroyFlag(app, arguments->destroy);
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return BenchDevice(*arguments, console); };
}

}  // namespace isozone::cli
