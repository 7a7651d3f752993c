#include "device/izg/prober.h"

#include <algorithm>

#include "base/clock.h"
#include "base/latch.h"
#include "base/random.h"

namespace isozone {
namespace {

constexpr uint64_t kLargestRead = 8 * kMiB;
constexpr uint64_t kSmallestWrite = 64 * kKiB;  // if the device programs less at once
constexpr uint32_t kMostPrepared = 1024;        // if the device has no limit

// When a request was submitted and when it completed.
struct Times {
  std::vector<int64_t> submitted_ns;
  std::vector<int64_t> completed_ns;
};
Times SubmitAll(ZonedDevice& device, std::span<DeviceRequest> requests) {
  struct Slot {
    Latch* latch = nullptr;
    int64_t* completed_ns = nullptr;
  };
  Times times;
  times.submitted_ns.resize(requests.size());
  times.completed_ns.resize(requests.size());
  std::vector<Slot> slots(requests.size());
  Latch latch(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    slots[i] = {&latch, &times.completed_ns[i]};
    requests[i].context = &slots[i];
    requests[i].done = [](DeviceRequest& request) {
      const auto* slot = static_cast<Slot*>(request.context);
      *slot->completed_ns = MonotonicNs();
      slot->latch->CountDown();
    };
    times.submitted_ns[i] = MonotonicNs();
    device.Submit(requests[i]);
  }
  latch.Wait();
  return times;
}

// Whether the status concerns one zone only, and says nothing about the others.
bool IsOfOneZone(DeviceStatus status) {
  switch (status) {
    case DeviceStatus::kZoneIsFull:
    case DeviceStatus::kZoneIsReadOnly:
    case DeviceStatus::kZoneIsOffline:
    case DeviceStatus::kZoneInvalidWrite:
    case DeviceStatus::kInvalidZoneStateTransition:
    case DeviceStatus::kWriteFault:
    case DeviceStatus::kUnrecoveredReadError:
      return true;
    default:
      return false;
  }
}

}  // namespace

uint64_t Prober::write_unit() const {
  return std::min({std::max(geometry().optimal_write, kSmallestWrite), max_read(), geometry().zone_capacity});
}

Result<std::unique_ptr<DeviceProber>> DeviceProber::Create(ZonedDevice& device, std::span<const ZoneId> may_write,
                                                           std::span<const uint64_t> written) {
  const DeviceGeometry& geometry = device.geometry();
  std::unique_ptr<DeviceProber> prober(new DeviceProber(device));
  std::vector<ZoneDescriptor> report(geometry.zone_count);
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(ZoneId(0), report));
  uint32_t active = 0;
  for (const ZoneDescriptor& zone : report) {
    prober->written_.push_back(zone.write_pointer);
    if (IsActive(zone.state)) ++active;
    if (zone.state == ZoneState::kOffline) continue;
    const uint64_t readable = std::min(zone.write_pointer, written[zone.zone.value()]);
    if (readable == 0 && !std::ranges::binary_search(may_write, zone.zone)) continue;
    prober->zones_.push_back({zone.zone, readable});
  }
  const uint32_t limit = geometry.max_active_zones;
  prober->preparable_ = limit == 0 ? kMostPrepared : std::min(kMostPrepared, limit - std::min(limit, active));
  prober->buffer_ = AlignedBuffer(prober->max_read());
  Random random(1);
  for (std::byte& byte : prober->buffer_.span()) byte = static_cast<std::byte>(random.Next());
  return prober;
}

uint64_t DeviceProber::max_read() const {
  const uint64_t limit = geometry().max_transfer;
  return limit == 0 ? kLargestRead : std::min(limit, kLargestRead);
}

Status DeviceProber::RunAll(std::span<DeviceRequest> requests) {
  SubmitAll(device_, requests);
  return FirstError(requests);
}

Status DeviceProber::FirstError(std::span<const DeviceRequest> requests) {
  const auto failed = std::ranges::find_if(
      requests, [](const DeviceRequest& request) { return request.status != DeviceStatus::kSuccess; });
  if (failed == requests.end()) return Status::Ok();
  failed_zone_.reset();
  if (IsOfOneZone(failed->status)) failed_zone_ = geometry().ZoneOf(failed->offset);
  return ToStatus(geometry(), *failed);
}

// Each zone has one write in flight: the writes go round by round.
Status DeviceProber::Prepare(std::span<const ZoneId> zones, uint64_t bytes) {
  const uint64_t end = std::min(bytes, geometry().zone_capacity);
  for (;;) {
    std::vector<DeviceRequest> writes;
    for (const ZoneId zone : zones) {
      const uint64_t written = written_[zone.value()];
      if (written < end) writes.push_back(NextWrite(zone, std::min(write_unit(), geometry().zone_capacity - written)));
    }
    if (writes.empty()) return Status::Ok();
    ISOZONE_RETURN_IF_ERROR(RunAll(writes));
  }
}

Result<std::vector<int64_t>> DeviceProber::TimeWrites(ZoneId zone, uint64_t bytes) {
  std::vector<int64_t> took_ns;
  for (const uint64_t end = std::min(bytes, geometry().zone_capacity); written_[zone.value()] + write_unit() <= end;) {
    DeviceRequest write = NextWrite(zone, write_unit());
    const Times times = SubmitAll(device_, {&write, 1});
    ISOZONE_RETURN_IF_ERROR(FirstError({&write, 1}));
    took_ns.push_back(times.completed_ns.front() - times.submitted_ns.front());
  }
  return took_ns;
}

DeviceRequest DeviceProber::NextWrite(ZoneId zone, uint64_t length) {
  DeviceRequest write;
  write.op = DeviceOp::kWrite;
  write.offset = DeviceOffset(geometry().ZoneStart(zone).value() + written_[zone.value()]);
  write.data = buffer_.data();
  write.length = length;
  written_[zone.value()] += length;
  return write;
}

Status DeviceProber::Release(std::span<const ZoneId> zones) {
  std::vector<DeviceRequest> resets;
  for (const ZoneId zone : zones) {
    DeviceRequest& reset = resets.emplace_back();
    reset.op = DeviceOp::kReset;
    reset.offset = geometry().ZoneStart(zone);
    written_[zone.value()] = 0;
  }
  return RunAll(resets);
}

Status DeviceProber::Burst(std::span<ProbeRead> reads) {
  std::vector<DeviceRequest> requests(reads.size());
  for (size_t i = 0; i < reads.size(); ++i) {
    requests[i].op = DeviceOp::kRead;
    requests[i].offset = DeviceOffset(geometry().ZoneStart(reads[i].zone).value() + reads[i].offset);
    requests[i].data = buffer_.data();
    requests[i].length = reads[i].length;
  }
  const Times times = SubmitAll(device_, requests);
  for (size_t i = 0; i < reads.size(); ++i) {
    reads[i].submitted_ns = times.submitted_ns[i];
    reads[i].latency_ns = times.completed_ns[i] - times.submitted_ns[i];
    reads[i].failed = requests[i].status == DeviceStatus::kUnrecoveredReadError;
    if (reads[i].failed) requests[i].status = DeviceStatus::kSuccess;
  }
  return FirstError(requests);
}

}  // namespace isozone
