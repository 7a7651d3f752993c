// The server, with the kernel's side and the users of the device played by FakeExportKernel.
#include "device/export/export_server.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/latch.h"
#include "base/random.h"
#include "device/export/block_request.h"
#include "device/export/export_test_util.h"
#include "device/passing_device.h"
#include "testing/fake_export_kernel.h"

namespace isozone {
namespace {

using testing::Each;
using ublk::Operation;

constexpr ExportLayout kLayout{2, 4, kMaxRequest};

// A device that keeps requests until they are let go, or fails them.
class HoldingDevice final : public PassingDevice {
 public:
  using PassingDevice::PassingDevice;

  void Submit(DeviceRequest& request) override {
    DeviceStatus failure = DeviceStatus::kSuccess;
    {
      const MutexLock lock(mu_);
      ++submitted_[static_cast<size_t>(request.op)];
      if (holds_) {
        held_.push_back(&request);
        return;
      }
      failure = failure_;
    }
    if (failure == DeviceStatus::kSuccess) return PassingDevice::Submit(request);
    request.status = failure;
    request.done(request);
  }
  void Hold() {
    const MutexLock lock(mu_);
    holds_ = true;
  }
  void LetGo() {
    std::vector<DeviceRequest*> held;
    {
      const MutexLock lock(mu_);
      holds_ = false;
      held.swap(held_);
    }
    for (DeviceRequest* request : held) PassingDevice::Submit(*request);
  }
  void Fail(DeviceStatus status) {
    const MutexLock lock(mu_);
    failure_ = status;
  }
  size_t submitted(DeviceOp op) {
    const MutexLock lock(mu_);
    return submitted_[static_cast<size_t>(op)];
  }

 private:
  Mutex mu_;
  bool holds_ ISOZONE_GUARDED_BY(mu_) = false;
  DeviceStatus failure_ ISOZONE_GUARDED_BY(mu_) = DeviceStatus::kSuccess;
  std::vector<DeviceRequest*> held_ ISOZONE_GUARDED_BY(mu_);
  std::array<size_t, 8> submitted_ ISOZONE_GUARDED_BY(mu_) = {};
};

class ExportServerTest : public testing::Test {
 protected:
  using Answer = FakeExportKernel::Answer;

  void SetUp() override {
    MakeServer();
    ISOZONE_ASSERT_OK(server_->Start());
  }

  // A server with what the last one has left.
  void MakeServer() {
    server_.reset();
    kernel_ = std::make_unique<FakeExportKernel>(kLayout);
    auto ledger = WriteLedger::Create(device_, kSlots, std::as_writable_bytes(std::span(words_)));
    ISOZONE_ASSERT_OK(ledger.status());
    ledger_ = std::move(*ledger);
    server_ = std::make_unique<ExportServer>(device_, *ledger_, *kernel_);
  }

  Answer Write(uint64_t block, std::vector<std::byte> data, bool fua = false, uint16_t queue = 0) {
    const auto sectors = static_cast<uint32_t>(data.size() / kKernelSector);
    return kernel_->Call(queue, Describe(Operation::kWrite, block * 8, sectors, fua), std::move(data));
  }
  Answer Append(uint64_t zone, std::vector<std::byte> data) {
    const auto sectors = static_cast<uint32_t>(data.size() / kKernelSector);
    return kernel_->Call(1, Describe(Operation::kZoneAppend, zone * kTestZoneSectors, sectors), std::move(data));
  }
  std::vector<std::byte> Read(uint64_t block, size_t blocks) {
    const auto sectors = static_cast<uint32_t>(blocks * 8);
    return kernel_->Call(1, Describe(Operation::kRead, block * 8, sectors), {}, blocks * 4096).data;
  }
  int32_t Zone(Operation operation, uint64_t zone) {
    return kernel_->Call(0, Describe(operation, zone * kTestZoneSectors)).result;
  }
  ZoneDescriptor Look(uint32_t zone) {
    ZoneDescriptor descriptor;
    EXPECT_TRUE(emulated_->ReportZones(ZoneId(zone), {&descriptor, 1}).ok());
    return descriptor;
  }
  // Has a server die that has done a write or append of which its user does not know.
  void DieAfter(DeviceOp op, uint64_t offset, std::vector<std::byte> data) {
    DeviceRequest request;
    request.op = op;
    request.offset = DeviceOffset(offset);
    request.data = data.data();
    request.length = data.size();
    Latch latch;
    latch.Expect(request);
    ledger_->Submit(0, request);
    latch.Wait();
    ASSERT_EQ(request.status, DeviceStatus::kSuccess);
    MakeServer();
    ISOZONE_ASSERT_OK(server_->Start());
  }

  static constexpr uint32_t kSlots = uint32_t{kLayout.queues} * kLayout.depth;
  MemoryImage image_ = std::move(EmulatedDevice::CreateInMemory(ExportGeometry()).value());
  std::unique_ptr<EmulatedDevice> emulated_ =
      std::move(EmulatedDevice::Open(image_.path(), OpenMode::kReadWrite, {}).value());
  HoldingDevice device_{*emulated_};
  std::vector<uint64_t> words_ = std::vector<uint64_t>(WriteLedger::MemorySize(kSlots) / 8);
  std::unique_ptr<FakeExportKernel> kernel_;
  std::unique_ptr<WriteLedger> ledger_;
  std::unique_ptr<ExportServer> server_;
};

TEST_F(ExportServerTest, WritesAppendsAndReads) {
  EXPECT_EQ(Write(0, Blocks(1, 3)).result, 3 * 4096);
  const Answer appended = Append(0, Blocks(2, 2));
  EXPECT_EQ(appended.result, 2 * 4096);
  EXPECT_EQ(appended.append_sector, 24U);
  EXPECT_EQ(Read(0, 3), Blocks(1, 3));
  EXPECT_EQ(Read(3, 2), Blocks(2, 2));
  EXPECT_THAT(Read(250, 6), Each(std::byte{0})) << "behind the capacity";
  EXPECT_EQ(kernel_->Call(0, Describe(Operation::kFlush)).result, 0);
  EXPECT_EQ(device_.submitted(DeviceOp::kFlush), 1U);
}

TEST_F(ExportServerTest, MovesZones) {
  ASSERT_EQ(Write(0, Blocks(1, 1)).result, 4096);
  EXPECT_EQ(Zone(Operation::kZoneClose, 0), 0);
  EXPECT_EQ(Look(0).state, ZoneState::kClosed);
  EXPECT_EQ(Zone(Operation::kZoneOpen, 0), 0);
  EXPECT_EQ(Look(0).state, ZoneState::kExplicitlyOpen);
  EXPECT_EQ(Zone(Operation::kZoneFinish, 0), 0);
  EXPECT_EQ(Look(0).state, ZoneState::kFull);
  EXPECT_EQ(Zone(Operation::kZoneReset, 0), 0);
  EXPECT_EQ(Look(0).state, ZoneState::kEmpty);
  EXPECT_EQ(Zone(Operation::kZoneReset, 16), -EINVAL);
}

TEST_F(ExportServerTest, ResetsAllZonesThatNeedIt) {
  EXPECT_EQ(kernel_->Call(0, Describe(Operation::kZoneResetAll)).result, 0) << "none";
  for (uint64_t zone : {2, 5, 9}) ASSERT_EQ(Append(zone, Blocks(1, 1)).result, 4096);
  ASSERT_EQ(Zone(Operation::kZoneFinish, 5), 0);
  EXPECT_EQ(kernel_->Call(0, Describe(Operation::kZoneResetAll)).result, 0);
  EXPECT_EQ(device_.submitted(DeviceOp::kReset), 3U);
  for (uint32_t zone = 0; zone < 16; ++zone) EXPECT_EQ(Look(zone).state, ZoneState::kEmpty) << zone;
}

TEST_F(ExportServerTest, ReportsZones) {
  ASSERT_EQ(Append(1, Blocks(1, 1)).result, 4096);
  const Answer answer =
      kernel_->Call(1, Describe(Operation::kReportZones, kTestZoneSectors, 3), {}, 5 * sizeof(blk_zone));
  EXPECT_GE(answer.result, static_cast<int32_t>(5 * sizeof(blk_zone))) << "all of the memory, or the kernel asks again";
  const auto* const zones = reinterpret_cast<const blk_zone*>(answer.data.data());
  EXPECT_EQ(zones[0].start, kTestZoneSectors);
  EXPECT_EQ(zones[0].wp, kTestZoneSectors + 8);
  EXPECT_EQ(zones[0].cond, BLK_ZONE_COND_IMP_OPEN);
  EXPECT_EQ(zones[2].start, 3 * kTestZoneSectors);
  EXPECT_EQ(zones[3].len, 0U);
}

TEST_F(ExportServerTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(Write(1, Blocks(1, 1)).result, -EIO) << "not at the write pointer";
  EXPECT_EQ(Write(0, Blocks(1, 1)).result, 4096);
  EXPECT_EQ(Write(0, Blocks(1, 1)).result, -EIO) << "no server has died, so nothing comes twice";
  EXPECT_EQ(kernel_->Call(0, Describe(Operation::kDiscard, 0, 8)).result, -EOPNOTSUPP);
  EXPECT_EQ(kernel_->Call(0, Describe(Operation::kRead, 0, UINT32_MAX)).result, -EINVAL);
  EXPECT_EQ(kernel_->Call(0, {200, 8, 0, 0}).result, -EOPNOTSUPP);
  EXPECT_EQ(kernel_->Call(0, Describe(Operation::kWrite, 8, 8), {}).result, -EFAULT) << "the kernel has no data";
  for (uint64_t zone = 1; zone < 6; ++zone) ASSERT_EQ(Append(zone, Blocks(1, 1)).result, 4096);
  EXPECT_EQ(Append(6, Blocks(1, 1)).result, -EOVERFLOW);
}

TEST_F(ExportServerTest, SaysWhatTheDeviceFails) {
  ASSERT_EQ(Write(0, Blocks(1, 1)).result, 4096);
  device_.Fail(DeviceStatus::kUnrecoveredReadError);
  EXPECT_EQ(kernel_->Call(0, Describe(Operation::kRead, 0, 8), {}, 4096).result, -ENODATA);
  device_.Fail(DeviceStatus::kPowerLoss);
  EXPECT_EQ(Write(1, Blocks(1, 1)).result, -EIO);
  EXPECT_EQ(Append(0, Blocks(1, 1)).result, -EIO);
  EXPECT_EQ(Zone(Operation::kZoneReset, 0), -EIO);
  EXPECT_EQ(kernel_->Call(0, Describe(Operation::kZoneResetAll)).result, -EIO);
  EXPECT_EQ(kernel_->Call(0, Describe(Operation::kFlush)).result, -EIO);
  device_.Fail(DeviceStatus::kSuccess);
  EXPECT_EQ(Write(1, Blocks(2, 1)).result, 4096) << "the next one may succeed";
}

TEST_F(ExportServerTest, StopWaitsForWhatUsersHaveAskedFor) {
  device_.Hold();
  std::vector<std::thread> users;
  std::atomic<int> succeeded = 0;
  for (uint64_t zone = 0; zone < 4; ++zone) {
    users.emplace_back([&, zone] { succeeded += Append(zone, Blocks(1, 1)).result == 4096; });
  }
  kernel_->WaitForCalls(4);
  std::thread stopper([&] { ISOZONE_EXPECT_OK(server_->Stop()); });
  while (!kernel_->stopped()) std::this_thread::yield();
  EXPECT_EQ(kernel_->unanswered(), 4U);
  device_.LetGo();
  stopper.join();
  for (std::thread& user : users) user.join();
  EXPECT_EQ(succeeded, 4);
  EXPECT_EQ(Append(5, Blocks(1, 1)).result, -EIO);
}

TEST_F(ExportServerTest, ServesManyUsersAtOnce) {
  const uint64_t seed = testing::UnitTest::GetInstance()->random_seed();
  std::vector<std::thread> users;
  std::atomic<uint32_t> wrong = 0;
  for (uint64_t user = 0; user < 4; ++user) {
    users.emplace_back([&, user] {
      Random random(seed + user);
      for (int round = 0; round < 4; ++round) {
        for (uint64_t block = 0; block < 180;) {
          const uint64_t blocks = std::min<uint64_t>(1 + random.Next() % 20, 192 - block);
          const auto data = Blocks(static_cast<uint8_t>(random.Next()), blocks);
          const uint64_t at = user * 256 + block;
          wrong += Write(at, data, random.Next() % 4 == 0, user % 2).result != static_cast<int32_t>(data.size());
          wrong += Read(at, blocks) != data;
          block += blocks;
        }
        wrong += Zone(Operation::kZoneReset, user) != 0;
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0U) << "seed " << seed;
}

TEST_F(ExportServerTest, AWriteThatComesAgainIsNotDoneAgain) {
  DieAfter(DeviceOp::kWrite, 0, Blocks(1, 4));
  const size_t writes = device_.submitted(DeviceOp::kWrite);
  EXPECT_EQ(Write(0, Blocks(1, 4), true).result, 4 * 4096);
  EXPECT_EQ(device_.submitted(DeviceOp::kWrite), writes);
  EXPECT_EQ(device_.submitted(DeviceOp::kFlush), 1U) << "it was to be durable";
  EXPECT_EQ(Write(4, Blocks(2, 1)).result, 4096);
  EXPECT_EQ(Write(0, Blocks(1, 4)).result, -EIO) << "only once";
  EXPECT_EQ(Read(0, 4), Blocks(1, 4));
}

TEST_F(ExportServerTest, AnAppendThatComesAgainIsNotDoneAgain) {
  ASSERT_EQ(Append(3, Blocks(9, 2)).result, 8192);
  DieAfter(DeviceOp::kAppend, 3 * kTestZone, Blocks(1, 2));
  EXPECT_EQ(Append(3, Blocks(7, 2)).append_sector, 3 * kTestZoneSectors + 32) << "another one, of the same length";
  const Answer again = Append(3, Blocks(1, 2));
  EXPECT_EQ(again.result, 8192);
  EXPECT_EQ(again.append_sector, 3 * kTestZoneSectors + 16);
  EXPECT_EQ(Look(3).write_pointer, 6 * 4096U);
  EXPECT_EQ(Append(3, Blocks(1, 2)).append_sector, 3 * kTestZoneSectors + 48) << "a new one with the same bytes";
}

TEST_F(ExportServerTest, AWriteThatDidNotReachTheDeviceIsDone) {
  DieAfter(DeviceOp::kWrite, 0, Blocks(1, 2));
  // The device lost it, for example because the host's file system did.
  DeviceRequest reset;
  reset.op = DeviceOp::kReset;
  ASSERT_EQ(SubmitAndWait(*emulated_, reset), DeviceStatus::kSuccess);
  EXPECT_EQ(Write(0, Blocks(1, 2)).result, 8192);
  EXPECT_EQ(Read(0, 2), Blocks(1, 2));
}

TEST_F(ExportServerTest, AWriteOfWhichTheDeviceHasAPartIsCompleted) {
  DieAfter(DeviceOp::kWrite, 0, Blocks(1, 4));
  DeviceRequest reset;
  reset.op = DeviceOp::kReset;
  ASSERT_EQ(SubmitAndWait(*emulated_, reset), DeviceStatus::kSuccess);
  auto part = Blocks(1, 4);
  DeviceRequest write;
  write.op = DeviceOp::kWrite;
  write.data = part.data();
  write.length = 4096;
  ASSERT_EQ(SubmitAndWait(*emulated_, write), DeviceStatus::kSuccess);
  EXPECT_EQ(Write(0, Blocks(1, 4)).result, 4 * 4096);
  EXPECT_EQ(Read(0, 4), Blocks(1, 4));
}

class ExportStartTest : public ExportServerTest {
 protected:
  void SetUp() override { MakeServer(); }
};

TEST_F(ExportStartTest, TheKernelReadsBeforeStartReturns) {
  int32_t seen = 0;
  kernel_->WhileStarting(
      [&] { seen = kernel_->Call(0, Describe(Operation::kReportZones, 0, 16), {}, 16 * sizeof(blk_zone)).result; });
  ISOZONE_ASSERT_OK(server_->Start());
  EXPECT_GT(seen, 0);
  ISOZONE_EXPECT_OK(server_->Stop());
}

TEST_F(ExportStartTest, AQueueThatCannotBeOpenedIsAnError) {
  kernel_->FailQueue(EMFILE);
  EXPECT_TRUE(server_->Start().Is(StatusCode::kIoError));
  EXPECT_TRUE(kernel_->stopped());
}

TEST_F(ExportStartTest, ADeviceThatCannotBeStartedIsAnError) {
  kernel_->FailStart(EBUSY);
  EXPECT_TRUE(server_->Start().Is(StatusCode::kBusy));
  EXPECT_TRUE(kernel_->stopped());
}

}  // namespace
}  // namespace isozone
