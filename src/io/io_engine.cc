#include "io/io_engine.h"

#include "base/clock.h"

namespace isozone {

void IoEngine::Submit(IoRequest& request) {
  request.engine = this;
  request.submitted_ns = MonotonicNs();
  request.device.context = &request;
  request.device.done = &IoEngine::OnDone;
  device_.Submit(request.device);
}

void IoEngine::OnDone(DeviceRequest& device_request) {
  auto& request = *static_cast<IoRequest*>(device_request.context);
  PerClass& counts = request.engine->classes_[static_cast<size_t>(request.io_class)];
  const auto latency_ns = static_cast<uint64_t>(MonotonicNs() - request.submitted_ns);
  if (device_request.op == DeviceOp::kRead) {
    counts.bytes_read.fetch_add(device_request.length, std::memory_order_relaxed);
    counts.read_latency_ns.Add(latency_ns);
  } else if (device_request.op == DeviceOp::kWrite || device_request.op == DeviceOp::kAppend) {
    counts.bytes_written.fetch_add(device_request.length, std::memory_order_relaxed);
    counts.write_latency_ns.Add(latency_ns);
  }
  request.done(request);
}

DeviceStatus IoEngine::Run(IoRequest& request) {
  Latch latch(1);
  request.context = &latch;
  request.done = [](IoRequest& r) { static_cast<Latch*>(r.context)->CountDown(); };
  Submit(request);
  latch.Wait();
  return request.device.status;
}

Status IoEngine::Flush(IoClass io_class) {
  IoRequest request;
  request.device.op = DeviceOp::kFlush;
  request.io_class = io_class;
  Run(request);
  return ToStatus(device_.geometry(), request.device);
}

IoClassStats IoEngine::Stats(IoClass io_class) const {
  const PerClass& counts = classes_[static_cast<size_t>(io_class)];
  return {counts.bytes_read.load(std::memory_order_relaxed), counts.bytes_written.load(std::memory_order_relaxed),
          counts.read_latency_ns.Take(), counts.write_latency_ns.Take()};
}

}  // namespace isozone
