#include "isozone/bench/run_command.h"

namespace isozone::cli {

Status RunCommand(ZonedDevice& device, DeviceOp op, DeviceOffset offset, std::byte* data, uint64_t length) {
  DeviceRequest request;
  request.op = op;
  request.offset = offset;
  request.data = data;
  request.length = length;
  static_cast<void>(SubmitAndWait(device, request));
  return ToStatus(device.geometry(), request);
}

}  // namespace isozone::cli
