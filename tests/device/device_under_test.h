// The devices that the conformance test runs on: the emulated SSD, the backends for block devices and zonefs on fakes,
// or the one that a person names, which is destroyed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/open_device.h"
#include "device/zoned_device.h"

namespace isozone {

// A device that can be opened, again and again, and keeps its data in between.
class DeviceUnderTest {
 public:
  virtual ~DeviceUnderTest() = default;
  virtual Result<std::unique_ptr<ZonedDevice>> Open(OpenMode mode) = 0;
};

// The names of the devices to test: those that need nothing, or, if the environment has ISOZONE_TEST_DEVICE with the
// URI of a device, that one alone.
std::vector<std::string> DevicesUnderTest();
// `name` is one of DevicesUnderTest.
std::unique_ptr<DeviceUnderTest> MakeDeviceUnderTest(const std::string& name);

}  // namespace isozone
