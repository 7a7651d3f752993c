#include "store/io/patient_device.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

constexpr uint64_t kBlock = 4 * kKiB;

// Refuses commands that need a zone while it is told to, and answers at once.
class FullDevice final : public ZonedDevice {
 public:
  FullDevice() {
    geometry_.zone_count = 4;
    geometry_.zone_size = geometry_.zone_capacity = 16 * kBlock;
    geometry_.max_active_zones = geometry_.max_open_zones = 2;
  }
  const DeviceGeometry& geometry() const override { return geometry_; }
  std::string name() const override { return "full"; }
  bool read_only() const override { return false; }
  Status ReportZones(ZoneId, std::span<ZoneDescriptor>) const override { return Status::Ok(); }
  DeviceCounters counters() const override { return {}; }
  void Submit(DeviceRequest& request) override {
    ++submitted;
    const bool needs_zone = request.op == DeviceOp::kWrite || request.op == DeviceOp::kAppend;
    request.status = needs_zone ? answer : DeviceStatus::kSuccess;
    request.done(request);
  }

  DeviceStatus answer = DeviceStatus::kTooManyActiveZones;
  int submitted = 0;

 private:
  DeviceGeometry geometry_;
};

class ManualClock final : public AlarmClock {
 public:
  int64_t Now() const override { return now_ns; }
  bool RingAt(int64_t at_ns, uint32_t) override {
    if (rings) alarms.push_back(at_ns);
    return rings;
  }
  void OnRing(std::function<void(uint32_t)> ring) override { ring_ = std::move(ring); }
  void Stop() override {}
  // Goes to the first alarm, and rings it.
  void Ring() {
    const auto first = std::ranges::min_element(alarms);
    now_ns = std::max(now_ns, *first);
    alarms.erase(first);
    ring_(0);
  }

  int64_t now_ns = 1'000;
  std::vector<int64_t> alarms;
  bool rings = true;

 private:
  std::function<void(uint32_t)> ring_;
};

class PatientDeviceTest : public testing::Test {
 protected:
  PatientDeviceTest() {
    auto device = std::make_unique<FullDevice>();
    auto clock = std::make_unique<ManualClock>();
    device_ = device.get();
    clock_ = clock.get();
    patient_ = std::make_unique<PatientDevice>(std::move(device), std::move(clock));
    patient_->OnRefusal([this] { ++told_; });
  }
  void Submit(DeviceRequest& request, DeviceOp op) {
    request.op = op;
    request.context = this;
    request.done = [](DeviceRequest& r) { static_cast<PatientDeviceTest*>(r.context)->completed_.push_back(r.status); };
    patient_->Submit(request);
  }

  FullDevice* device_ = nullptr;
  ManualClock* clock_ = nullptr;
  std::unique_ptr<PatientDevice> patient_;
  int told_ = 0;
  std::vector<DeviceStatus> completed_;
};

TEST_F(PatientDeviceTest, WhatIsRefusedIsWrittenOnceThereIsAZone) {
  DeviceRequest write;
  Submit(write, DeviceOp::kWrite);
  EXPECT_TRUE(completed_.empty());
  clock_->Ring();
  EXPECT_TRUE(completed_.empty());
  device_->answer = DeviceStatus::kSuccess;
  clock_->Ring();
  EXPECT_EQ(completed_, std::vector{DeviceStatus::kSuccess});
  EXPECT_EQ(told_, 2);
  EXPECT_EQ(patient_->stats().refusals, 1U);
  EXPECT_EQ(patient_->stats().given_up, 0U);
}

TEST_F(PatientDeviceTest, NothingWaitsForAnAlarmThatCannotBeHad) {
  clock_->rings = false;
  DeviceRequest write;
  Submit(write, DeviceOp::kWrite);
  EXPECT_EQ(completed_, std::vector{DeviceStatus::kTooManyActiveZones});
  EXPECT_EQ(patient_->stats().given_up, 1U);
}

TEST_F(PatientDeviceTest, TheWaitIsBounded) {
  DeviceRequest write;
  Submit(write, DeviceOp::kWrite);
  while (completed_.empty()) clock_->Ring();
  EXPECT_EQ(completed_, std::vector{DeviceStatus::kTooManyActiveZones});
  EXPECT_GE(clock_->now_ns, PatientDevice::kPatienceNs);
  EXPECT_LE(clock_->now_ns, PatientDevice::kPatienceNs + 2 * PatientDevice::kLongestPauseNs);
  EXPECT_LT(device_->submitted, 200) << "the device is not kept busy";
  EXPECT_EQ(patient_->stats().given_up, 1U);
  EXPECT_TRUE(ToStatus(patient_->geometry(), write).Is(StatusCode::kNoSpace));
}

TEST_F(PatientDeviceTest, AZoneOfOursThatIsFinishedEndsTheWait) {
  DeviceRequest write;
  DeviceRequest finish;
  Submit(write, DeviceOp::kWrite);
  for (int i = 0; i < 10; ++i) clock_->Ring();
  device_->answer = DeviceStatus::kSuccess;
  const int64_t now_ns = clock_->now_ns;
  Submit(finish, DeviceOp::kFinish);
  clock_->Ring();
  EXPECT_EQ(completed_.size(), 2U);
  EXPECT_EQ(clock_->now_ns, now_ns);
}

TEST_F(PatientDeviceTest, OtherErrorsAreTheSubmitters) {
  device_->answer = DeviceStatus::kWriteFault;
  DeviceRequest write;
  Submit(write, DeviceOp::kWrite);
  EXPECT_EQ(completed_, std::vector{DeviceStatus::kWriteFault});
  EXPECT_EQ(told_, 0);
}

}  // namespace
}  // namespace isozone
