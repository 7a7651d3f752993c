#include "isozone/bench/scratch_zones.h"

#include <utility>

#include <fmt/format.h>

#include "isozone/bench/run_command.h"
#include "store/mount/free_zones.h"

namespace isozone::cli {
namespace {

Status ResetZone(ZonedDevice& device, ZoneId zone) {
  return RunCommand(device, DeviceOp::kReset, device.geometry().ZoneStart(zone), nullptr, 0);
}

struct ZoneRun {
  uint32_t first = 0;
  uint32_t count = 0;
};

// The first run of `wanted` adjacent zones, or the longest one there is.
ZoneRun FindRun(const std::vector<ZoneId>& zones, uint32_t wanted) {
  ZoneRun longest;
  ZoneRun current;
  for (const ZoneId zone : zones) {
    if (zone.value() != current.first + current.count) current = {zone.value(), 0};
    ++current.count;
    if (current.count > longest.count) longest = current;
    if (longest.count >= wanted) break;
  }
  return longest;
}

}  // namespace

Result<ScratchZones> ScratchZones::Take(ZonedDevice& device, uint32_t count, bool destroy) {
  const uint32_t zones = device.geometry().zone_count;
  if (count > zones) {
    return Status::NoSpace(fmt::format("{} zones are needed and the device has {}; ask for fewer", count, zones));
  }
  if (destroy) {
    ScratchZones scratch(device, ZoneId(0), count);
    ISOZONE_RETURN_IF_ERROR(scratch.Release());
    scratch.device_ = &device;
    return scratch;
  }
  ISOZONE_ASSIGN_OR_RETURN(const FreedZones freed, FreeUpZones(device));
  const ZoneRun run = FindRun(freed.free, count);
  if (run.count >= count) return ScratchZones(device, ZoneId(run.first), count);
  return Status::NoSpace(
      fmt::format("{} empty zones in a row are needed and there are {}; ask for fewer, or give --destroy to erase what "
                  "the device holds",
                  count, run.count));
}

ScratchZones::ScratchZones(ScratchZones&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)), first_(other.first_), count_(other.count_) {}

ScratchZones::~ScratchZones() { static_cast<void>(Release()); }

Status ScratchZones::Reset(uint32_t index) { return ResetZone(*device_, zone(index)); }

Status ScratchZones::Release() {
  if (device_ == nullptr) return Status::Ok();
  ZonedDevice& device = *std::exchange(device_, nullptr);
  std::vector<ZoneDescriptor> zones(count_);
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(first_, zones));
  Status first_error;
  for (const ZoneDescriptor& zone : zones) {
    if (zone.state == ZoneState::kEmpty) continue;
    const Status status = ResetZone(device, zone.zone);
    if (first_error.ok()) first_error = status;
  }
  return first_error;
}

}  // namespace isozone::cli
