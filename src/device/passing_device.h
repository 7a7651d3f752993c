// PassingDevice: a device that passes everything to another one. Tests derive from it and override what they change.
#pragma once

#include <string>

#include "device/zoned_device.h"

namespace isozone {

class PassingDevice : public ZonedDevice {
 public:
  // `device` must outlive this object.
  explicit PassingDevice(ZonedDevice& device) : device_(device) {}

  const DeviceGeometry& geometry() const override { return device_.geometry(); }
  std::string name() const override { return device_.name(); }
  bool read_only() const override { return device_.read_only(); }
  Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const override {
    return device_.ReportZones(first, out);
  }
  DeviceCounters counters() const override { return device_.counters(); }
  DeviceDescription description() const override { return device_.description(); }
  void Submit(DeviceRequest& request) override { device_.Submit(request); }

 private:
  ZonedDevice& device_;
};

}  // namespace isozone
