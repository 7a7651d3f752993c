#include "device/export/ublk_kernel.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/assert_ok.h"

namespace isozone {
namespace {

using testing::ElementsAre;

// The kernel's side of one device whose server died.
class FakeControl final : public UblkControl {
 public:
  explicit FakeControl(std::vector<std::string>& log) : log_(log) {}
  int stop_error = 0;

 private:
  int DoSend(uint32_t command, uint32_t device, void* argument, uint16_t length, uint64_t /*data*/) override {
    EXPECT_EQ(device, 5U);
    switch (command) {
      case ublk::kGetDeviceInfo: {
        if (deleted_) return ENODEV;
        ublk::DeviceInfo info;
        info.state = static_cast<uint16_t>(ublk::DeviceState::kQuiesced);
        EXPECT_EQ(length, sizeof(info));
        std::memcpy(argument, &info, sizeof(info));
        return 0;
      }
      case ublk::kStopDevice:
        log_.emplace_back("stops");
        return stop_error;
      case ublk::kDeleteDeviceLater:
        log_.emplace_back("is free");
        deleted_ = true;
        return 0;
      default:
        ADD_FAILURE() << "command " << command;
        return EINVAL;
    }
  }

  std::vector<std::string>& log_;
  bool deleted_ = false;
};

TEST(UblkKernelTest, WhatADeadServerLeftIsForgottenBeforeItsNumberIsFree) {
  std::vector<std::string> log;
  FakeControl control(log);
  ISOZONE_EXPECT_OK(UblkKernel::RemoveDead(control, 5, [&] { log.emplace_back("is forgotten"); }));
  EXPECT_THAT(log, ElementsAre("stops", "is forgotten", "is free"));
}

TEST(UblkKernelTest, WhatADeadServerLeftStaysIfTheDeviceDoes) {
  std::vector<std::string> log;
  FakeControl control(log);
  control.stop_error = EBUSY;
  EXPECT_FALSE(UblkKernel::RemoveDead(control, 5, [&] { log.emplace_back("is forgotten"); }).ok());
  EXPECT_THAT(log, ElementsAre("stops"));
}

}  // namespace
}  // namespace isozone
