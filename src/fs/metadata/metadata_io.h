// Device I/O of the metadata: in whole blocks; what is synchronous is split where a device limits the length of a transfer.
#pragma once

#include <cstddef>
#include <span>

#include "base/mutex.h"
#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

Result<ZoneDescriptor> DescribeZone(const ZonedDevice& device, ZoneId zone);

// Whether the write pointer of a zone in this state can move.
constexpr bool IsWritable(ZoneState state) { return state == ZoneState::kEmpty || IsActive(state); }

Status ReadBlocks(ZonedDevice& device, DeviceOffset offset, std::span<std::byte> blocks);

// Writes at the write pointer; durable when it returns kSuccess.
DeviceStatus WriteDurably(ZonedDevice& device, DeviceOffset offset, std::span<std::byte> blocks);

// Everything that was written before is durable when it returns OK.
Status FlushDevice(ZonedDevice& device);

// kReset, kFinish.
Status ManageZone(ZonedDevice& device, DeviceOp op, ZoneId zone);

// Requests that one thread has under way together. The requests must outlive Wait.
class PendingRequests {
 public:
  explicit PendingRequests(ZonedDevice& device) : device_(device) {}
  ~PendingRequests() { Wait(); }
  PendingRequests(const PendingRequests&) = delete;
  PendingRequests& operator=(const PendingRequests&) = delete;

  // Sets done and context, and starts it; waits first while `in_flight_max` are under way.
  void Submit(DeviceRequest& request, size_t in_flight_max = SIZE_MAX);
  // Until all are done.
  void Wait();

 private:
  void Done();

  ZonedDevice& device_;
  Mutex mu_;
  CondVar changed_;
  size_t in_flight_ ISOZONE_GUARDED_BY(mu_) = 0;
};

}  // namespace isozone
