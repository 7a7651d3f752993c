// TestVolume: a small file system on an emulated SSD in memory, for tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "device/emulated/emulated_device.h"
#include "store/file_system.h"
#include "store/mount/format_device.h"
#include "store/mount/fsck.h"
#include "testing/assert_ok.h"

namespace isozone {

inline DeviceGeometry SmallGeometry(uint32_t zones = 64, uint64_t zone_size = kMiB, uint32_t max_active = 12) {
  DeviceGeometry geometry;
  geometry.zone_count = zones;
  geometry.zone_size = zone_size;
  geometry.zone_capacity = RoundDown(zone_size * 3 / 4, 4096);
  geometry.max_active_zones = geometry.max_open_zones = max_active;
  geometry.optimal_write = 64 * kKiB;
  return geometry;
}

inline std::string RandomBytes(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random.Next());
  return bytes;
}

inline std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

class TestVolume {
 public:
  // `latency_us`: the least time that each command takes.
  explicit TestVolume(const DeviceGeometry& geometry = SmallGeometry(), uint64_t latency_us = 0)
      : image_(EmulatedDevice::CreateInMemory(geometry).value()) {
    if (latency_us > 0) {
      options_.faults.latency_spike = 1;
      options_.faults.latency_spike_us = latency_us;
    }
    auto device = OpenDevice();
    const Status status = FormatDevice(*device, {"test", false});
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  std::unique_ptr<EmulatedDevice> OpenDevice(OpenMode mode = OpenMode::kReadWrite) {
    auto device = EmulatedDevice::Open(image_.path(), mode, options_);
    EXPECT_TRUE(device.ok()) << device.status().ToString();
    return std::move(*device);
  }

  // Mounts the file system, which is then at fs(); its device is at device().
  Status Mount(const MountOptions& options = {}, Clock& clock = Clock::Real()) {
    auto device = OpenDevice(options.read_only ? OpenMode::kReadOnly : OpenMode::kReadWrite);
    device_ = device.get();
    auto mounted = FileSystem::Mount(std::move(device), options, clock);
    if (!mounted.ok()) return mounted.status();
    fs_ = std::move(*mounted);
    return Status::Ok();
  }

  Status Remount(const MountOptions& options = {}) {
    const Status status = fs_->Unmount();
    fs_.reset();
    return status.ok() ? Mount(options) : status;
  }

  // Cuts power and mounts again: data that was not durable is lost. All handles must be closed.
  Status CutAndRemount(const MountOptions& options = {}) {
    device_->CutPower();
    fs_.reset();
    return Mount(options);
  }

  void Unmount() { fs_.reset(); }
  FileSystem& fs() { return *fs_; }
  EmulatedDevice& device() { return *device_; }

  Status WriteFile(std::string_view path, std::string_view content, const CreateOptions& options = {}) {
    ISOZONE_ASSIGN_OR_RETURN(auto writer, fs_->Create(path, options));
    ISOZONE_RETURN_IF_ERROR(writer->Append(Bytes(content)));
    ISOZONE_RETURN_IF_ERROR(writer->Sync());
    return writer->Close();
  }

  Result<std::string> ReadFile(std::string_view path) {
    ISOZONE_ASSIGN_OR_RETURN(auto reader, fs_->OpenForRead(path));
    std::string content(reader->size() + 1, '\0');
    ISOZONE_ASSIGN_OR_RETURN(const size_t n,
                             reader->Read(0, std::as_writable_bytes(std::span(content)), IoClass::kUserRead));
    content.resize(n);
    return content;
  }

  void ExpectFsckClean() {
    auto device = OpenDevice(OpenMode::kReadOnly);
    const auto report = Fsck(*device, {true, {}});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    for (const auto& finding : report->findings) {
      EXPECT_NE(finding.severity, FsckSeverity::kError) << finding.text;
    }
  }

 private:
  MemoryImage image_;
  EmulatedOptions options_;
  std::unique_ptr<FileSystem> fs_;
  EmulatedDevice* device_ = nullptr;
};

}  // namespace isozone
