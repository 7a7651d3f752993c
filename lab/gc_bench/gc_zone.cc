#include "gc_bench/gc_zone.h"

#include <algorithm>

#include "base/aligned_buffer.h"
#include "base/clock.h"
#include "base/random.h"
#include "gc_bench/gc_volume.h"
#include "isozone/bench/run_command.h"

namespace isozone::cli {
namespace {

constexpr uint64_t kFillSize = kMiB;
constexpr uint64_t kLargestGroup = 128 * kKiB;

class ZoneMeter {
 public:
  explicit ZoneMeter(ZonedDevice& device) : device_(device), buffer_(kFillSize) {
    Random random(kFillSize);
    for (std::byte& byte : buffer_.span()) byte = static_cast<std::byte>(random.Next());
  }

  // Bytes of the zone that are used: whole blocks.
  uint64_t zone_bytes() const { return RoundDown(device_.geometry().zone_capacity, block()); }
  uint64_t block() const { return GcVolume::BlockSize(device_.geometry()); }
  uint64_t Limit(uint64_t wanted) const {
    const uint64_t most = device_.geometry().max_transfer;
    return most == 0 ? wanted : std::min(wanted, std::max(block(), RoundDown(most, block())));
  }

  Status Command(DeviceOp op, ZoneId zone, uint64_t at, uint64_t length) {
    const DeviceOffset offset(device_.geometry().ZoneStart(zone).value() + at);
    return RunCommand(device_, op, offset, op == DeviceOp::kReset ? nullptr : buffer_.data(), length);
  }

  // Reads or writes the whole zone, in commands of `size`.
  Status Sweep(DeviceOp op, ZoneId zone, uint64_t size) {
    for (uint64_t at = 0; at < zone_bytes(); at += size) {
      ISOZONE_RETURN_IF_ERROR(Command(op, zone, at, std::min(size, zone_bytes() - at)));
    }
    return Status::Ok();
  }

  Status Fill(ZoneId zone) { return Sweep(DeviceOp::kWrite, zone, Limit(kFillSize)); }
  Status Reset(ZoneId zone) { return Command(DeviceOp::kReset, zone, 0, 0); }

  Status CopyValid(ZoneId from, ZoneId to, double utilisation, Random& random, uint64_t& copied) {
    for (uint64_t at = 0; at < zone_bytes(); at += block()) {
      if (!random.Chance(utilisation)) continue;
      ISOZONE_RETURN_IF_ERROR(Command(DeviceOp::kRead, from, at, block()));
      ISOZONE_RETURN_IF_ERROR(Command(DeviceOp::kWrite, to, copied++ * block(), block()));
    }
    return Status::Ok();
  }

 private:
  ZonedDevice& device_;
  AlignedBuffer buffer_;
};

double SecondsSince(int64_t start_ns) { return static_cast<double>(MonotonicNs() - start_ns) / kSecondNs; }

}  // namespace

Result<std::vector<ReclaimPoint>> MeasureReclaim(ZonedDevice& device, ZoneId from, ZoneId to,
                                                 std::span<const double> utilisations, uint64_t seed,
                                                 const std::function<void(uint64_t)>& progress) {
  ZoneMeter meter(device);
  Random random(seed);
  std::vector<ReclaimPoint> points;
  for (const double utilisation : utilisations) {
    ISOZONE_RETURN_IF_ERROR(meter.Fill(from));
    ReclaimPoint point{.utilisation = utilisation};
    const int64_t start_ns = MonotonicNs();
    ISOZONE_RETURN_IF_ERROR(meter.CopyValid(from, to, utilisation, random, point.valid_blocks));
    ISOZONE_RETURN_IF_ERROR(meter.Reset(from));
    point.seconds = SecondsSince(start_ns);
    points.push_back(point);
    ISOZONE_RETURN_IF_ERROR(meter.Reset(to));
    if (progress) progress(points.size());
  }
  return points;
}

Result<std::vector<GroupPoint>> MeasureGroups(ZonedDevice& device, ZoneId zone,
                                              const std::function<void(uint64_t)>& progress) {
  ZoneMeter meter(device);
  ISOZONE_RETURN_IF_ERROR(meter.Fill(zone));
  std::vector<GroupPoint> points;
  for (uint64_t size = meter.block(); size <= meter.Limit(kLargestGroup); size *= 2) {
    const int64_t start_ns = MonotonicNs();
    ISOZONE_RETURN_IF_ERROR(meter.Sweep(DeviceOp::kRead, zone, size));
    points.push_back({size, SecondsSince(start_ns)});
    if (progress) progress(points.size());
  }
  ISOZONE_RETURN_IF_ERROR(meter.Reset(zone));
  return points;
}

}  // namespace isozone::cli
