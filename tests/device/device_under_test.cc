#include "device/device_under_test.h"

#include <atomic>
#include <cstdlib>
#include <utility>

#include "base/uri.h"
#include "device/emulated/emulated_device.h"
#include "device/linux/linux_device.h"
#include "device/passing_device.h"
#include "testing/fake_zoned_disk.h"
#include "testing/fake_zonefs.h"

namespace isozone {
namespace {

DeviceGeometry TestGeometry(uint32_t block_size) {
  return {.block_size = block_size,
          .zone_count = 12,
          .zone_size = kMiB,
          .zone_capacity = 768 * kKiB,
          .max_open_zones = 5,
          .max_active_zones = 8,
          .max_transfer = 128 * kKiB,
          .max_append = 128 * kKiB,
          .optimal_write = 64 * kKiB};
}

class EmulatedUnderTest final : public DeviceUnderTest {
 public:
  Result<std::unique_ptr<ZonedDevice>> Open(OpenMode mode) override {
    ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<EmulatedDevice> device, EmulatedDevice::Open(image_.path(), mode, {}));
    return std::unique_ptr<ZonedDevice>(std::move(device));
  }

 private:
  MemoryImage image_ = EmulatedDevice::CreateInMemory(TestGeometry(4096)).value();
};

// What stands in for the kernel has one writer at a time, as the real one has by O_EXCL, or by a lock.
template <typename Fake>
class FakeUnderTest final : public DeviceUnderTest {
 public:
  template <typename Shape>
  explicit FakeUnderTest(const Shape& shape) : fake_(shape) {}

  Result<std::unique_ptr<ZonedDevice>> Open(OpenMode mode) override {
    const bool writes = mode == OpenMode::kReadWrite;
    if (writes && has_writer_.exchange(true)) return Status::Busy("it has a writer");
    auto device = LinuxDevice::Create("fake", mode, fake_.Open(), fake_.facts());
    ISOZONE_RETURN_IF_ERROR(device.status());
    return std::unique_ptr<ZonedDevice>(std::make_unique<Opened>(*this, std::move(*device), writes));
  }

 private:
  class Opened final : public PassingDevice {
   public:
    Opened(FakeUnderTest& under_test, std::unique_ptr<LinuxDevice> device, bool writes)
        : PassingDevice(*device), under_test_(under_test), device_(std::move(device)), writes_(writes) {}
    ~Opened() override {
      device_.reset();
      if (writes_) under_test_.has_writer_ = false;
    }

   private:
    FakeUnderTest& under_test_;
    std::unique_ptr<LinuxDevice> device_;
    const bool writes_;
  };

  Fake fake_;
  std::atomic<bool> has_writer_{false};
};

class NamedDevice final : public DeviceUnderTest {
 public:
  explicit NamedDevice(std::string uri) : uri_(std::move(uri)) {}

  Result<std::unique_ptr<ZonedDevice>> Open(OpenMode mode) override {
    ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(uri_));
    ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<ZonedDevice> device, OpenDevice(uri, mode));
    ISOZONE_RETURN_IF_ERROR(uri.options.RejectUnknown());
    return device;
  }

 private:
  const std::string uri_;
};

const char* NamedUri() { return std::getenv("ISOZONE_TEST_DEVICE"); }

}  // namespace

std::vector<std::string> DevicesUnderTest() {
  if (NamedUri() != nullptr) return {"Named"};
  return {"Emulated",          "Disk",   "DiskOfManyKinds",   "DiskOfLargeBlocks", "DiskWithoutForcedWrites",
          "DiskWithoutLimits", "Zonefs", "ZonefsExplicitOpen"};
}

std::unique_ptr<DeviceUnderTest> MakeDeviceUnderTest(const std::string& name) {
  if (name == "Named") return std::make_unique<NamedDevice>(NamedUri());
  if (name == "Emulated") return std::make_unique<EmulatedUnderTest>();
  if (name.starts_with("Zonefs")) {
    FakeZonefsShape shape;
    shape.zones = TestGeometry(4096);
    shape.explicit_open = name == "ZonefsExplicitOpen";
    return std::make_unique<FakeUnderTest<FakeZonefs>>(shape);
  }
  FakeDiskShape shape;
  shape.zones = TestGeometry(4096);
  if (name == "DiskOfManyKinds") {
    shape.zones.block_size = 512;
    shape.conventional = 3;
    shape.last_zone = 256 * kKiB;
    shape.capacities = {{1, 512 * kKiB}, {2, 900 * kKiB}, {7, 1000 * kKiB}};
  } else if (name == "DiskOfLargeBlocks") {
    shape.zones.block_size = shape.logical_block = 16384;
  } else if (name == "DiskWithoutForcedWrites") {
    shape.durable = DurableWrites::kFlushed;
    shape.logical_block = 4096;
  } else if (name == "DiskWithoutLimits") {
    shape.durable = DurableWrites::kAlways;
    shape.zones.max_open_zones = shape.zones.max_active_zones = 0;
    shape.zones.zone_capacity = shape.zones.zone_size;
  }
  return std::make_unique<FakeUnderTest<FakeZonedDisk>>(shape);
}

}  // namespace isozone
