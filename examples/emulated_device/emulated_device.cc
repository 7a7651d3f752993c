// The emulated SSD alone, without a file system and without RocksDB: what a zone allows, and what it refuses.
//
//   example_emulated_device IMAGE
//
// IMAGE is created if it does not exist. The content of its first zone is lost.

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "base/aligned_buffer.h"
#include "base/uri.h"
#include "device/open_device.h"
#include "device/zoned_device.h"

namespace isozone {
namespace {

DeviceStatus Run(ZonedDevice& device, DeviceOp op, DeviceOffset offset, AlignedBuffer* data = nullptr) {
  DeviceRequest request;
  request.op = op;
  request.offset = offset;
  if (data != nullptr) {
    request.data = data->data();
    request.length = data->size();
  }
  const DeviceStatus status = SubmitAndWait(device, request);
  std::printf("%-6s at %6llu: %s\n", std::string(DeviceOpName(op)).c_str(),
              static_cast<unsigned long long>(offset.value()), std::string(DeviceStatusName(status)).c_str());
  return status;
}

Status Report(const ZonedDevice& device, ZoneId zone) {
  ZoneDescriptor descriptor;
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(zone, {&descriptor, 1}));
  std::printf("zone %u is %s, its write pointer at %llu\n", zone.value(),
              std::string(ZoneStateName(descriptor.state)).c_str(),
              static_cast<unsigned long long>(descriptor.write_pointer));
  return Status::Ok();
}

Status Use(ZonedDevice& device) {
  const DeviceGeometry& geometry = device.geometry();
  std::printf("%u zones of %s, of which %u may be active\n", geometry.zone_count,
              FormatSize(geometry.zone_capacity).c_str(), geometry.max_active_zones);

  const ZoneId zone(0);
  const DeviceOffset start = geometry.ZoneStart(zone);
  const DeviceOffset second(start.value() + geometry.block_size);
  AlignedBuffer out(geometry.block_size);
  AlignedBuffer in(geometry.block_size);
  std::memset(out.data(), 'z', out.size());

  Run(device, DeviceOp::kReset, start);
  // A zone is written in sequence, only at its write pointer.
  const DeviceStatus too_far = Run(device, DeviceOp::kWrite, second, &out);
  const DeviceStatus written = Run(device, DeviceOp::kWrite, start, &out);
  const DeviceStatus again = Run(device, DeviceOp::kWrite, start, &out);
  ISOZONE_RETURN_IF_ERROR(Report(device, zone));
  // A completed write may still be in the cache of the device; a flush makes it durable.
  const DeviceStatus flushed = Run(device, DeviceOp::kFlush, DeviceOffset(0));
  const DeviceStatus read = Run(device, DeviceOp::kRead, start, &in);
  Run(device, DeviceOp::kFinish, start);
  ISOZONE_RETURN_IF_ERROR(Report(device, zone));
  Run(device, DeviceOp::kReset, start);
  ISOZONE_RETURN_IF_ERROR(Report(device, zone));

  const bool refused = too_far == DeviceStatus::kZoneInvalidWrite && again == DeviceStatus::kZoneInvalidWrite;
  const bool done = written == DeviceStatus::kSuccess && flushed == DeviceStatus::kSuccess &&
                    read == DeviceStatus::kSuccess && std::memcmp(in.data(), out.data(), in.size()) == 0;
  return refused && done ? Status::Ok() : Status::IoError("the device did not do what a zoned device does");
}

Status Example(const std::string& image) {
  ISOZONE_ASSIGN_OR_RETURN(const Uri uri, ParseUri("emu:" + image + "?profile=small-zone&zones=32&timing=off"));
  Uri to_create = uri;
  ISOZONE_RETURN_IF_ERROR(CreateDevice(to_create));
  Uri to_open = uri;
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<ZonedDevice> device, OpenDevice(to_open, OpenMode::kReadWrite));
  return Use(*device);
}

}  // namespace
}  // namespace isozone

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const isozone::Status status = isozone::Example(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
