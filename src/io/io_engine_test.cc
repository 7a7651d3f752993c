#include "io/io_engine.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

// Completes on its own thread, with the status it is told.
class ThreadedDevice : public ZonedDevice {
 public:
  ThreadedDevice() {
    geometry_.zone_count = 1;
    geometry_.zone_size = geometry_.zone_capacity = kMiB;
  }
  ~ThreadedDevice() override {
    for (auto& t : threads_) t.join();
  }
  const DeviceGeometry& geometry() const override { return geometry_; }
  std::string name() const override { return "threaded"; }
  bool read_only() const override { return false; }
  void Submit(DeviceRequest& request) override {
    threads_.emplace_back([this, &request] {
      request.status = status;
      request.done(request);
    });
  }
  Status ReportZones(ZoneId, std::span<ZoneDescriptor>) const override { return Status::Ok(); }
  DeviceCounters counters() const override { return {}; }

  DeviceStatus status = DeviceStatus::kSuccess;

 private:
  DeviceGeometry geometry_;
  std::vector<std::thread> threads_;
};

TEST(IoEngine, CountsByClass) {
  ThreadedDevice device;
  IoEngine engine(device);
  std::vector<std::byte> buffer(8192);
  IoRequest write;
  write.io_class = IoClass::kWal;
  write.device.op = DeviceOp::kWrite;
  write.device.data = buffer.data();
  write.device.length = 8192;
  EXPECT_EQ(engine.Run(write), DeviceStatus::kSuccess);
  IoRequest read;
  read.io_class = IoClass::kUserRead;
  read.device.data = buffer.data();
  read.device.length = 4096;
  EXPECT_EQ(engine.Run(read), DeviceStatus::kSuccess);
  EXPECT_TRUE(engine.Flush(IoClass::kWal).ok());

  EXPECT_EQ(engine.Stats(IoClass::kWal).bytes_written, 8192u);
  EXPECT_EQ(engine.Stats(IoClass::kWal).write_latency_ns.count, 1u);
  EXPECT_EQ(engine.Stats(IoClass::kWal).bytes_read, 0u);
  EXPECT_EQ(engine.Stats(IoClass::kUserRead).bytes_read, 4096u);
  EXPECT_EQ(engine.Stats(IoClass::kUserRead).read_latency_ns.count, 1u);
  EXPECT_EQ(engine.Stats(IoClass::kGc).bytes_written, 0u);
}

TEST(IoEngine, ReturnsWhatTheDeviceSays) {
  ThreadedDevice device;
  device.status = DeviceStatus::kWriteFault;
  IoEngine engine(device);
  EXPECT_EQ(engine.Flush(IoClass::kOther).ToString(), "I/O error: flush failed: Write Fault (280h)");
}

TEST(Latch, OpensWhenEveryEventHappened) {
  Latch latch(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { latch.CountDown(); });
  latch.Wait();
  for (auto& t : threads) t.join();
  SUCCEED();
}

}  // namespace
}  // namespace isozone
