// Helpers for the tests of the emulated device: small devices, requests in one line, data that identifies its place.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "device/emulated/emulated_device.h"
#include "testing/test_seed.h"

namespace isozone {

inline constexpr uint64_t kTestBlock = 4096;

// Eight zones of 16 blocks, 12 of them writable; four may be open, six active.
inline DeviceGeometry SmallGeometry() {
  return {.block_size = kTestBlock,
          .zone_count = 8,
          .zone_size = 16 * kTestBlock,
          .zone_capacity = 12 * kTestBlock,
          .max_open_zones = 4,
          .max_active_zones = 6,
          .max_transfer = 0,
          .max_append = 8 * kTestBlock,
          .optimal_write = kTestBlock};
}

// Returns `blocks` blocks, each filled with a pattern that depends on `tag` and on its index, counted from `first`.
inline std::vector<std::byte> Pattern(uint64_t tag, uint64_t first, uint64_t blocks) {
  std::vector<std::byte> data(blocks * kTestBlock);
  for (uint64_t block = 0; block < blocks; ++block) {
    Random random(tag << 32 ^ (first + block));
    for (uint64_t at = 0; at < kTestBlock; at += sizeof(uint64_t)) {
      const uint64_t word = random.Next();
      std::memcpy(data.data() + block * kTestBlock + at, &word, sizeof(word));
    }
  }
  return data;
}

// Sends one request at a time to a device. Offsets and lengths are in blocks.
class Host {
 public:
  explicit Host(ZonedDevice& device) : device_(&device) {}

  DeviceStatus Write(uint32_t zone, uint64_t block, std::vector<std::byte> data, bool fua = false) {
    return Run(DeviceOp::kWrite, zone, block, data, fua);
  }
  // Sets appended_at() to where the data went, in blocks from the start of the zone.
  DeviceStatus Append(uint32_t zone, std::vector<std::byte> data, bool fua = false) {
    return Run(DeviceOp::kAppend, zone, 0, data, fua);
  }
  DeviceStatus Read(uint32_t zone, uint64_t block, std::vector<std::byte>& data) {
    return Run(DeviceOp::kRead, zone, block, data, false);
  }
  // Returns the blocks that were read; empty if the read failed.
  std::vector<std::byte> Read(uint32_t zone, uint64_t block, uint64_t blocks) {
    std::vector<std::byte> data(blocks * kTestBlock, std::byte{0xAA});
    if (Read(zone, block, data) != DeviceStatus::kSuccess) data.clear();
    return data;
  }
  DeviceStatus Reset(uint32_t zone) { return Run(DeviceOp::kReset, zone); }
  DeviceStatus Finish(uint32_t zone) { return Run(DeviceOp::kFinish, zone); }
  DeviceStatus Open(uint32_t zone) { return Run(DeviceOp::kOpen, zone); }
  DeviceStatus Close(uint32_t zone) { return Run(DeviceOp::kClose, zone); }
  DeviceStatus Flush() { return Run(DeviceOp::kFlush, 0); }

  uint64_t appended_at() const { return appended_at_; }
  ZoneDescriptor Report(uint32_t zone) const {
    ZoneDescriptor descriptor;
    EXPECT_TRUE(device_->ReportZones(ZoneId(zone), {&descriptor, 1}).ok());
    return descriptor;
  }
  ZoneState State(uint32_t zone) const { return Report(zone).state; }
  uint64_t WritePointer(uint32_t zone) const { return Report(zone).write_pointer / kTestBlock; }

 private:
  DeviceStatus Run(DeviceOp op, uint32_t zone, uint64_t block, std::vector<std::byte>& data, bool fua) {
    DeviceRequest request;
    request.op = op;
    request.fua = fua;
    request.offset = DeviceOffset(device_->geometry().ZoneStart(ZoneId(zone)).value() + block * kTestBlock);
    request.data = data.data();
    request.length = data.size();
    const DeviceStatus status = SubmitAndWait(*device_, request);
    if (op == DeviceOp::kAppend) appended_at_ = device_->geometry().OffsetInZone(request.written_at) / kTestBlock;
    return status;
  }
  DeviceStatus Run(DeviceOp op, uint32_t zone) {
    std::vector<std::byte> none;
    return Run(op, zone, 0, none, false);
  }

  ZonedDevice* device_;
  uint64_t appended_at_ = 0;
};

inline MemoryImage NewMemoryImage(const DeviceGeometry& geometry = SmallGeometry()) {
  auto image = EmulatedDevice::CreateInMemory(geometry);
  EXPECT_TRUE(image.ok()) << image.status().ToString();
  return std::move(*image);
}

inline std::unique_ptr<EmulatedDevice> OpenForTest(const std::string& path, OpenMode mode = OpenMode::kReadWrite,
                                                   const EmulatedOptions& options = {}) {
  auto device = EmulatedDevice::Open(path, mode, options);
  EXPECT_TRUE(device.ok()) << device.status().ToString();
  return device.ok() ? std::move(*device) : nullptr;
}

}  // namespace isozone
