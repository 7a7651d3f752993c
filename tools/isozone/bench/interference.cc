#include "isozone/bench/interference.h"

#include <algorithm>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/random.h"
#include "device/emulated/nand/zone_map.h"
#include "isozone/bench/command_loops.h"

namespace isozone::cli {
namespace {

constexpr uint32_t kFilledUnits = 8;   // transfers written to a zone that will be read
constexpr uint32_t kWarmUpWrites = 8;  // these fill the write buffers, so that later writes go at the pace of the flash

AlignedBuffer RandomBuffer(size_t size) {
  AlignedBuffer buffer(size);
  Random random(size);
  for (std::byte& byte : buffer.span()) byte = static_cast<std::byte>(random.Next());
  return buffer;
}

class Meter {
 public:
  Meter(ZonedDevice& device, ScratchZones& zones, const InterferencePlan& plan)
      : device_(device),
        zones_(zones),
        plan_(plan),
        dies_(plan.profile ? std::optional<ZoneMap>(*plan.profile) : std::nullopt),
        units_(plan.transfer == 0 ? 0 : device.geometry().zone_capacity / plan.transfer) {}

  Result<InterferenceSeries> Reads() {
    InterferenceSeries series{.op = DeviceOp::kRead};
    ISOZONE_RETURN_IF_ERROR(Fill(0));
    for (uint32_t distance = 0; distance <= plan_.distances; ++distance) {
      if (distance > 0) ISOZONE_RETURN_IF_ERROR(Fill(distance));
      ISOZONE_ASSIGN_OR_RETURN(const int64_t median_ns, Median(Reader(distance), Reader(0), distance == 0, 0));
      ISOZONE_RETURN_IF_ERROR(Note(series, distance, median_ns));
    }
    ISOZONE_RETURN_IF_ERROR(zones_.Reset(0));
    return series;
  }

  Result<InterferenceSeries> Writes() {
    InterferenceSeries series{.op = DeviceOp::kWrite};
    for (uint32_t distance = 0; distance <= plan_.distances; ++distance) {
      ISOZONE_ASSIGN_OR_RETURN(const int64_t median_ns,
                               Median(Writer(distance), Writer(0), distance == 0, kWarmUpWrites));
      ISOZONE_RETURN_IF_ERROR(zones_.Reset(0));
      ISOZONE_RETURN_IF_ERROR(Note(series, distance, median_ns));
    }
    return series;
  }

 private:
  using Next = std::function<bool(DeviceRequest&)>;

  Status Fill(uint32_t index) {
    std::vector<CommandLoop> loops(1);
    loops[0].next = Limited(Writer(index), ReadableUnits());
    return RunLoops(device_, loops);
  }

  uint64_t ReadableUnits() const { return std::min<uint64_t>(kFilledUnits, units_); }

  static Next Limited(Next next, uint64_t count) {
    return [next = std::move(next), count](DeviceRequest& request) mutable { return count-- > 0 && next(request); };
  }

  // Reads the filled part of a zone again and again.
  Next Reader(uint32_t index) {
    return [this, index, buffer = std::make_shared<AlignedBuffer>(plan_.transfer),
            unit = uint64_t{0}](DeviceRequest& request) mutable {
      request.op = DeviceOp::kRead;
      request.offset = DeviceOffset(Start(index) + unit * plan_.transfer);
      request.data = buffer->data();
      request.length = plan_.transfer;
      unit = (unit + 1) % ReadableUnits();
      return true;
    };
  }

  // Writes a zone from its beginning, and resets it when it is full.
  Next Writer(uint32_t index) {
    return [this, index, unit = uint64_t{0}](DeviceRequest& request) mutable {
      if (unit == units_) {
        request.op = DeviceOp::kReset;
        request.offset = DeviceOffset(Start(index));
        unit = 0;
        return true;
      }
      request.op = DeviceOp::kWrite;
      request.offset = DeviceOffset(Start(index) + unit * plan_.transfer);
      request.data = content_.data();
      request.length = plan_.transfer;
      ++unit;
      return true;
    };
  }

  uint64_t Start(uint32_t index) const { return device_.geometry().ZoneStart(zones_.zone(index)).value(); }

  // The median latency of `foreground` without its first `warm_up` commands, beside `background` unless `alone`.
  Result<int64_t> Median(Next foreground, Next background, bool alone, uint32_t warm_up) {
    std::vector<CommandLoop> loops(alone ? 1 : 2);
    loops[0].next = Limited(std::move(foreground), plan_.samples + warm_up);
    if (!alone) {
      loops[1].next = std::move(background);
      loops[1].background = true;
    }
    ISOZONE_RETURN_IF_ERROR(RunLoops(device_, loops));
    std::vector<int64_t>& latencies = loops[0].latencies_ns;
    latencies.erase(latencies.begin(), latencies.begin() + std::min<ptrdiff_t>(warm_up, std::ssize(latencies)));
    return PercentileOf(std::move(latencies), 50);
  }

  Status Note(InterferenceSeries& series, uint32_t distance, int64_t median_ns) {
    if (distance == 0) {
      series.alone_ns = median_ns;
      return Status::Ok();
    }
    series.points.push_back({distance, SharingOf(distance), median_ns});
    if (plan_.progress) plan_.progress(distance);
    return zones_.Reset(distance);
  }

  Sharing SharingOf(uint32_t distance) const {
    if (!dies_) return Sharing::kUnknown;
    if (dies_->width() > 1) return Sharing::kDie;
    const uint32_t pivot = dies_->DieOf(zones_.zone(0).value(), 0);
    const uint32_t other = dies_->DieOf(zones_.zone(distance).value(), 0);
    if (pivot == other) return Sharing::kDie;
    const uint32_t channels = plan_.profile->channels;
    return pivot % channels == other % channels ? Sharing::kChannel : Sharing::kNothing;
  }

  ZonedDevice& device_;
  ScratchZones& zones_;
  const InterferencePlan& plan_;
  const std::optional<ZoneMap> dies_;  // of the zones, if the profile of the device is known
  const uint64_t units_;               // whole transfers in a zone
  AlignedBuffer content_ = RandomBuffer(plan_.transfer);
};

}  // namespace

std::string_view SharingName(Sharing sharing) {
  switch (sharing) {
    case Sharing::kUnknown:
      return "another zone";
    case Sharing::kNothing:
      return "nothing shared";
    case Sharing::kChannel:
      return "same channel";
    case Sharing::kDie:
      return "same die";
  }
  return "another zone";
}

std::optional<int64_t> InterferenceSeries::Band(Sharing sharing) const {
  std::vector<int64_t> medians;
  for (const InterferencePoint& point : points) {
    if (point.sharing == sharing) medians.push_back(point.median_ns);
  }
  if (medians.empty()) return std::nullopt;
  return PercentileOf(std::move(medians), 50);
}

Result<InterferenceSeries> MeasureReads(ZonedDevice& device, ScratchZones& zones, const InterferencePlan& plan) {
  return Meter(device, zones, plan).Reads();
}

Result<InterferenceSeries> MeasureWrites(ZonedDevice& device, ScratchZones& zones, const InterferencePlan& plan) {
  return Meter(device, zones, plan).Writes();
}

}  // namespace isozone::cli
