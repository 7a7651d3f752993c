// FrozenDevice: a device that consists only of bytes, all of which a test or fuzzer can set. For code that reads
// metadata.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "device/zoned_device.h"

namespace isozone {

class FrozenDevice final : public ZonedDevice {
 public:
  explicit FrozenDevice(const DeviceGeometry& geometry) : geometry_(geometry), zones_(geometry.zone_count) {}

  // Copies everything below the write pointers of `device`.
  explicit FrozenDevice(ZonedDevice& device) : FrozenDevice(device.geometry()) {
    for (uint32_t i = 0; i < geometry_.zone_count; ++i) {
      ZoneDescriptor descriptor;
      if (!device.ReportZones(ZoneId(i), {&descriptor, 1}).ok()) continue;
      const bool broken = descriptor.state == ZoneState::kReadOnly || descriptor.state == ZoneState::kOffline;
      if (broken) SetState(ZoneId(i), descriptor.state);
      if (descriptor.write_pointer == 0) continue;
      zones_[i].resize(descriptor.write_pointer);
      DeviceRequest request;
      request.op = DeviceOp::kRead;
      request.offset = geometry_.ZoneStart(ZoneId(i));
      request.data = zones_[i].data();
      request.length = zones_[i].size();
      if (SubmitAndWait(device, request) != DeviceStatus::kSuccess) zones_[i].clear();
    }
  }

  // The bytes written to a zone, in whole blocks. Their number is the write pointer.
  std::vector<std::byte>& zone(ZoneId zone) { return zones_[zone.value()]; }

  // Gives a zone a state that does not follow from its bytes: read-only or offline.
  void SetState(ZoneId zone, ZoneState state) { states_[zone] = state; }

  const DeviceGeometry& geometry() const override { return geometry_; }
  std::string name() const override { return "frozen"; }
  bool read_only() const override { return true; }

  void Submit(DeviceRequest& request) override {
    request.status = DeviceStatus::kNamespaceWriteProtected;
    if (request.op == DeviceOp::kRead) request.status = Read(request);
    request.done(request);
  }

  Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const override {
    if (first.value() + out.size() > zones_.size()) return Status::InvalidArgument("there are not so many zones");
    for (ZoneDescriptor& descriptor : out) {
      const uint64_t written = zones_[first.value()].size();
      ZoneState state = written == 0                        ? ZoneState::kEmpty
                        : written < geometry_.zone_capacity ? ZoneState::kClosed
                                                            : ZoneState::kFull;
      if (const auto set = states_.find(first); set != states_.end()) state = set->second;
      descriptor = {first, state, geometry_.zone_capacity, written};
      ++first;
    }
    return {};
  }

  DeviceCounters counters() const override { return {}; }

 private:
  DeviceStatus Read(const DeviceRequest& request) {
    const uint64_t in_zone = geometry_.OffsetInZone(request.offset);
    if (geometry_.ZoneOf(request.offset).value() >= zones_.size() || in_zone + request.length > geometry_.zone_size) {
      return DeviceStatus::kLbaOutOfRange;
    }
    const auto set = states_.find(geometry_.ZoneOf(request.offset));
    if (set != states_.end() && set->second == ZoneState::kOffline) return DeviceStatus::kZoneIsOffline;
    const std::vector<std::byte>& bytes = zones_[geometry_.ZoneOf(request.offset).value()];
    std::memset(request.data, 0, request.length);
    if (in_zone < bytes.size()) {
      std::memcpy(request.data, bytes.data() + in_zone, std::min<uint64_t>(request.length, bytes.size() - in_zone));
    }
    return DeviceStatus::kSuccess;
  }

  const DeviceGeometry geometry_;
  std::vector<std::vector<std::byte>> zones_;
  std::map<ZoneId, ZoneState> states_;
};

}  // namespace isozone
