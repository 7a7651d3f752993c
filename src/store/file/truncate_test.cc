// Overwriting a file while something else happens to it: the file has either its old or its new bytes, and no space is
// lost.
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "device/passing_device.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

constexpr size_t kNewBytes = 10'000;
constexpr size_t kNewBlocks = 12'288;  // bytes of the blocks that they take

// Holds back one write of new bytes, and lets all others pass.
class HoldingDevice final : public PassingDevice {
 public:
  using PassingDevice::PassingDevice;

  void Submit(DeviceRequest& request) override {
    if (request.op == DeviceOp::kWrite && request.length == kNewBlocks) {
      const MutexLock lock(mu_);
      if (std::exchange(hold_next_, false)) {
        held_ = true;
        changed_.SignalAll();
        while (held_) changed_.Wait(mu_);
      }
    }
    PassingDevice::Submit(request);
  }

  void HoldNextWrite() {
    const MutexLock lock(mu_);
    hold_next_ = true;
  }
  void WaitUntilHeld() {
    const MutexLock lock(mu_);
    while (!held_) changed_.Wait(mu_);
  }
  void LetGo() {
    const MutexLock lock(mu_);
    held_ = false;
    changed_.SignalAll();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool hold_next_ ISOZONE_GUARDED_BY(mu_) = false;
  bool held_ ISOZONE_GUARDED_BY(mu_) = false;
};

class OverwriteTest : public ::testing::Test {
 protected:
  OverwriteTest() : device_(volume_.OpenDevice()) {
    auto holding = std::make_unique<HoldingDevice>(*device_);
    holding_ = holding.get();
    fs_ = FileSystem::Mount(std::move(holding), {}).value();
    const auto writer = fs_->Create("/file", {}).value();
    EXPECT_TRUE(writer->Append(Bytes(std::string(100'000, 'a'))).ok());
    EXPECT_TRUE(writer->Sync().ok());
    EXPECT_TRUE(writer->Close().ok());
    EXPECT_TRUE(fs_->state().Settle().ok());
  }

  // Overwrites the middle of the file, and calls `meanwhile` while the new bytes are on their way to the device.
  template <typename Meanwhile>
  Status OverwriteAnd(Meanwhile meanwhile) {
    holding_->HoldNextWrite();
    Status status;
    std::thread thread([&] { status = fs_->Overwrite("/file", 60'000, Bytes(std::string(kNewBytes, 'b'))); });
    holding_->WaitUntilHeld();
    meanwhile();
    holding_->LetGo();
    thread.join();
    return status;
  }

  TestVolume volume_;
  const std::unique_ptr<EmulatedDevice> device_;
  HoldingDevice* holding_ = nullptr;
  std::unique_ptr<FileSystem> fs_;
};

TEST_F(OverwriteTest, OfWhatIsCutMeanwhileLeavesTheFileCut) {
  const Status status = OverwriteAnd([&] { ISOZONE_ASSERT_OK(fs_->Truncate("/file", 50'000)); });
  EXPECT_TRUE(status.Is(StatusCode::kInvalidArgument)) << status.ToString();
  EXPECT_EQ(fs_->Stat("/file")->size, 50'000u);
  EXPECT_EQ(fs_->state().Space().live, 50'000u);
  ISOZONE_EXPECT_OK(fs_->Overwrite("/file", 50'000, Bytes("the new end")));
}

TEST_F(OverwriteTest, ThatCannotBeRecordedLeavesNoLiveBytesBehind) {
  const uint64_t live = fs_->state().Space().live;
  const Status status = OverwriteAnd([&] {
    const std::vector<ZoneView> zones = fs_->state().Zones();
    for (uint32_t zone = 0; zone < zones.size(); ++zone) {
      if (zones[zone].use != ZoneUse::kMetadata) continue;
      device_->FailNext(DeviceOp::kWrite, ZoneId(zone), DeviceStatus::kNamespaceWriteProtected);
    }
    ISOZONE_EXPECT_OK(fs_->CreateDirectory("/breaks"));
    EXPECT_FALSE(fs_->SyncMetadata().ok());
  });
  EXPECT_TRUE(status.Is(StatusCode::kReadOnly)) << status.ToString();
  EXPECT_EQ(fs_->state().Space().live, live);
}

}  // namespace
}  // namespace isozone
