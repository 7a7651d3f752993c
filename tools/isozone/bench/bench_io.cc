// bench io: the speed of a device without a file system. Several zones are written in parallel, then read sequentially
// and at random.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/clock.h"
#include "base/random.h"
#include "isozone/bench/bench.h"
#include "isozone/bench/command_loops.h"
#include "isozone/bench/scratch_zones.h"
#include "isozone/output/progress.h"
#include "isozone/output/table.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

constexpr uint64_t kSeed = 1;

struct IoArguments {
  std::string device;
  uint64_t bytes = 256 * kMiB;  // of each sequential phase
  uint64_t write_size = 768 * kKiB;
  uint64_t read_size = 4 * kKiB;
  uint32_t reads = 10'000;  // of each random phase
  uint32_t depth = 8;
  bool destroy = false;
  bool json = false;
};

struct Measurement {
  std::string name;
  uint64_t size = 0;   // bytes of a command
  uint32_t depth = 0;  // commands in flight
  double seconds = 0;
  uint64_t bytes = 0;
  std::vector<int64_t> latencies_ns = {};

  double BytesPerSecond() const { return static_cast<double>(bytes) / seconds; }
  double CommandsPerSecond() const { return static_cast<double>(latencies_ns.size()) / seconds; }
  double PercentileUs(double percent) const { return static_cast<double>(PercentileOf(latencies_ns, percent)) / 1000; }
};

// What to do on which zones, derived from the user's arguments and the limits of the device.
struct IoPlan {
  uint32_t zones = 0;  // one loop writes each; the depth of the sequential phases
  uint64_t writes_per_zone = 0;
  uint64_t write_size = 0;  // bytes, as are the next two
  uint64_t read_size = 0;
  uint64_t zone_bytes = 0;  // written to each zone
};

Status CheckSize(const char* option, uint64_t size, const DeviceGeometry& geometry) {
  const uint64_t most =
      geometry.max_transfer == 0 ? geometry.zone_capacity : std::min(geometry.max_transfer, geometry.zone_capacity);
  if (size > 0 && IsAligned(size, geometry.block_size) && size <= most) return Status::Ok();
  return Status::InvalidArgument(fmt::format("{} {} does not suit the device; give a multiple of {} up to {}", option,
                                             size, geometry.block_size, FormatSize(most)));
}

Result<IoPlan> MakePlan(const IoArguments& arguments, const DeviceGeometry& geometry) {
  ISOZONE_RETURN_IF_ERROR(CheckSize("--write-size", arguments.write_size, geometry));
  ISOZONE_RETURN_IF_ERROR(CheckSize("--read-size", arguments.read_size, geometry));
  IoPlan plan{.write_size = arguments.write_size, .read_size = arguments.read_size};
  plan.zones = arguments.depth;
  for (const uint32_t limit : {geometry.max_open_zones, geometry.max_active_zones, geometry.zone_count}) {
    if (limit > 0) plan.zones = std::min(plan.zones, limit);
  }
  const uint64_t wanted = arguments.bytes / plan.zones / plan.write_size;
  plan.writes_per_zone = std::clamp<uint64_t>(wanted, 1, geometry.zone_capacity / plan.write_size);
  plan.zone_bytes = plan.writes_per_zone * plan.write_size;
  if (plan.read_size > plan.zone_bytes) {
    return Status::InvalidArgument("--read-size is more than is written to a zone; give more --bytes");
  }
  return plan;
}

class Bench {
 public:
  Bench(ZonedDevice& device, ScratchZones& zones, const IoPlan& plan)
      : device_(device), zones_(zones), plan_(plan), content_(plan.write_size) {
    Random random(kSeed);
    for (std::byte& byte : content_.span()) byte = static_cast<std::byte>(random.Next());
  }

  Result<Measurement> Sequential(DeviceOp op) {
    Progress progress(op == DeviceOp::kWrite ? "writing" : "reading", plan_.zones * plan_.zone_bytes,
                      Progress::Unit::kBytes);
    std::vector<CommandLoop> loops;
    std::vector<AlignedBuffer> buffers;
    uint64_t done = 0;
    for (uint32_t zone = 0; zone < plan_.zones; ++zone) {
      std::byte* data = content_.data();
      if (op == DeviceOp::kRead) data = buffers.emplace_back(plan_.write_size).data();
      loops.push_back({[=, this, &progress, &done, offset = uint64_t{0}](DeviceRequest& request) mutable {
        if (offset == plan_.zone_bytes) return false;
        request.op = op;
        request.offset = At(zone, offset);
        request.data = data;
        request.length = plan_.write_size;
        offset += plan_.write_size;
        progress.Update(done += plan_.write_size);
        return true;
      }});
    }
    return Measure(op == DeviceOp::kWrite ? "sequential write" : "sequential read", plan_.write_size, std::move(loops));
  }

  Result<Measurement> RandomRead(uint32_t depth, uint32_t reads) {
    Progress progress("reading at random", reads, Progress::Unit::kSteps);
    Random random(kSeed);
    uint32_t started = 0;
    std::vector<AlignedBuffer> buffers;
    std::vector<CommandLoop> loops;
    for (uint32_t i = 0; i < depth; ++i) {
      loops.push_back({[&, data = buffers.emplace_back(plan_.read_size).data()](DeviceRequest& request) {
        if (started == reads) return false;
        progress.Update(++started);
        request.op = DeviceOp::kRead;
        request.offset = At(static_cast<uint32_t>(random.Below(plan_.zones)),
                            random.Below(plan_.zone_bytes / plan_.read_size) * plan_.read_size);
        request.data = data;
        request.length = plan_.read_size;
        return true;
      }});
    }
    return Measure("random read", plan_.read_size, std::move(loops));
  }

 private:
  DeviceOffset At(uint32_t zone, uint64_t offset) const {
    return DeviceOffset(device_.geometry().ZoneStart(zones_.zone(zone)).value() + offset);
  }

  Result<Measurement> Measure(std::string name, uint64_t size, std::vector<CommandLoop> loops) {
    const int64_t start_ns = MonotonicNs();
    ISOZONE_RETURN_IF_ERROR(RunLoops(device_, loops));
    Measurement measurement{.name = std::move(name), .size = size, .depth = static_cast<uint32_t>(loops.size())};
    measurement.seconds = static_cast<double>(MonotonicNs() - start_ns) / kSecondNs;
    for (const CommandLoop& loop : loops) {
      measurement.bytes += loop.bytes;
      measurement.latencies_ns.insert(measurement.latencies_ns.end(), loop.latencies_ns.begin(),
                                      loop.latencies_ns.end());
    }
    return measurement;
  }

  ZonedDevice& device_;
  ScratchZones& zones_;
  const IoPlan& plan_;
  AlignedBuffer content_;
};

Result<std::vector<Measurement>> RunAll(ZonedDevice& device, const IoArguments& arguments) {
  ISOZONE_ASSIGN_OR_RETURN(const IoPlan plan, MakePlan(arguments, device.geometry()));
  ISOZONE_ASSIGN_OR_RETURN(ScratchZones zones, ScratchZones::Take(device, plan.zones, arguments.destroy));
  Bench bench(device, zones, plan);
  std::vector<Measurement> measurements;
  for (const DeviceOp op : {DeviceOp::kWrite, DeviceOp::kRead}) {
    ISOZONE_ASSIGN_OR_RETURN(Measurement measurement, bench.Sequential(op));
    measurements.push_back(std::move(measurement));
  }
  for (const uint32_t depth : std::set<uint32_t>{1, arguments.depth}) {
    ISOZONE_ASSIGN_OR_RETURN(Measurement measurement, bench.RandomRead(depth, arguments.reads));
    measurements.push_back(std::move(measurement));
  }
  ISOZONE_RETURN_IF_ERROR(zones.Release());
  return measurements;
}

void PrintTable(const std::vector<Measurement>& measurements, Console& console) {
  using Align = Table::Align;
  Table table({{"TEST"},
               {"SIZE", Align::kRight},
               {"DEPTH", Align::kRight},
               {"THROUGHPUT", Align::kRight},
               {"IO/S", Align::kRight},
               {"P50 US", Align::kRight},
               {"P99 US", Align::kRight},
               {"P99.9 US", Align::kRight}});
  for (const Measurement& one : measurements) {
    table.AddRow({one.name, FormatSize(one.size), std::to_string(one.depth),
                  FormatSize(static_cast<uint64_t>(one.BytesPerSecond())) + "/s",
                  fmt::format("{:.0f}", one.CommandsPerSecond()), fmt::format("{:.1f}", one.PercentileUs(50)),
                  fmt::format("{:.1f}", one.PercentileUs(99)), fmt::format("{:.1f}", one.PercentileUs(99.9))});
  }
  table.Print(console);
}

Json MeasurementsJson(const std::vector<Measurement>& measurements) {
  Json document = Json::array();
  for (const Measurement& one : measurements) {
    document.push_back({{"test", one.name},
                        {"size", one.size},
                        {"depth", one.depth},
                        {"seconds", one.seconds},
                        {"bytes_per_second", one.BytesPerSecond()},
                        {"commands_per_second", one.CommandsPerSecond()},
                        {"p50_us", one.PercentileUs(50)},
                        {"p99_us", one.PercentileUs(99)},
                        {"p99_9_us", one.PercentileUs(99.9)}});
  }
  return document;
}

Status BenchIo(const IoArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenByUri(arguments.device, OpenMode::kReadWrite));
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<Measurement> measurements, RunAll(*opened.device, arguments));
  arguments.json ? console.PrintJson(MeasurementsJson(measurements)) : PrintTable(measurements, console);
  return Status::Ok();
}

}  // namespace

Action DefineBenchIo(CLI::App& app) {
  auto arguments = std::make_shared<IoArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_option("--depth", arguments->depth, "Zones written in parallel, and reads in flight; 8 if not given")
      ->check(CLI::Range(uint32_t{1}, kMaxDepth))
      ->option_text("N");
  AddSizeOption(app, "--bytes", arguments->bytes, "Bytes written and read sequentially; 256M if not given");
  AddSizeOption(app, "--write-size", arguments->write_size, "Bytes of a sequential command; 768K if not given");
  AddSizeOption(app, "--read-size", arguments->read_size, "Bytes of a random read; 4K if not given");
  app.add_option("--reads", arguments->reads, "Random reads of each phase; 10000 if not given")
      ->check(CLI::Range(1U, 1000000000U))
      ->option_text("N");
  AddDestroyFlag(app, arguments->destroy);
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return BenchIo(*arguments, console); };
}

}  // namespace isozone::cli
