#include "device/linux/linux_device.h"

#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/aligned_buffer.h"
#include "base/latch.h"
#include "testing/assert_ok.h"
#include "testing/fake_zoned_disk.h"

namespace isozone {
namespace {

using testing::HasSubstr;
using Dev = DeviceStatus;

constexpr uint64_t kBlock = 4096;

FakeDiskShape Shape(DurableWrites durable = DurableWrites::kForced) {
  FakeDiskShape shape;
  shape.zones = {.block_size = kBlock,
                 .zone_count = 8,
                 .zone_size = 16 * kBlock,
                 .zone_capacity = 12 * kBlock,
                 .max_open_zones = 4,
                 .max_active_zones = 6,
                 .max_transfer = 8 * kBlock,
                 .optimal_write = kBlock};
  shape.durable = durable;
  return shape;
}

// A request with memory of its own.
struct Pending {
  explicit Pending(uint64_t blocks = 0, int value = 1) : data(blocks * kBlock) {
    if (blocks > 0) std::memset(data.data(), value, data.size());
  }
  DeviceRequest request;
  AlignedBuffer data;
  Latch done;
};

class LinuxDeviceTest : public testing::Test {
 protected:
  void Use(const FakeDiskShape& shape) {
    device_.reset();
    disk_ = std::make_unique<FakeZonedDisk>(shape);
    Open();
  }
  void SetUp() override { Use(Shape()); }
  void Open(OpenMode mode = OpenMode::kReadWrite) {
    device_.reset();
    auto opened = LinuxDevice::Create("dev:fake", mode, disk_->Open(), disk_->facts());
    ISOZONE_ASSERT_OK(opened.status());
    device_ = std::move(*opened);
  }

  std::unique_ptr<Pending> Submit(DeviceOp op, uint32_t zone, uint64_t block = 0, uint64_t blocks = 0,
                                  bool fua = false) {
    auto pending = std::make_unique<Pending>(blocks);
    pending->request.op = op;
    pending->request.fua = fua;
    pending->request.offset = DeviceOffset(device_->geometry().ZoneStart(ZoneId(zone)).value() + block * kBlock);
    pending->request.data = pending->data.data();
    pending->request.length = pending->data.size();
    pending->done.Expect(pending->request);
    device_->Submit(pending->request);
    return pending;
  }
  static Dev Wait(const std::unique_ptr<Pending>& pending) {
    pending->done.Wait();
    return pending->request.status;
  }
  Dev Run(DeviceOp op, uint32_t zone, uint64_t block = 0, uint64_t blocks = 0, bool fua = false) {
    return Wait(Submit(op, zone, block, blocks, fua));
  }
  ZoneDescriptor Describe(uint32_t zone) {
    ZoneDescriptor descriptor;
    ISOZONE_EXPECT_OK(device_->ReportZones(ZoneId(zone), {&descriptor, 1}));
    return descriptor;
  }

  std::unique_ptr<FakeZonedDisk> disk_;
  std::unique_ptr<LinuxDevice> device_;
};

TEST_F(LinuxDeviceTest, NeverHasTwoWritesOfAZoneAtTheKernel) {
  disk_->Hold();
  const auto first = Submit(DeviceOp::kWrite, 0, 0, 2);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kZoneInvalidWrite);
  const auto other_zone = Submit(DeviceOp::kWrite, 1, 0, 1);
  const auto append = Submit(DeviceOp::kAppend, 0, 0, 1);
  const auto another = Submit(DeviceOp::kAppend, 0, 0, 2);
  EXPECT_EQ(disk_->held(), 2U) << "the appends wait for the write";
  disk_->Release();
  for (const auto* pending : {&first, &other_zone, &append, &another}) EXPECT_EQ(Wait(*pending), Dev::kSuccess);
  EXPECT_EQ(append->request.written_at, DeviceOffset(2 * kBlock));
  EXPECT_EQ(another->request.written_at, DeviceOffset(3 * kBlock));
  EXPECT_EQ(disk_->asked().most_writes_of_a_zone, 1U);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 5, 1), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, WritesThatTheRulesForbidDoNotReachTheKernel) {
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 1, 1), Dev::kZoneInvalidWrite);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 9), Dev::kInvalidField) << "longer than the limit";
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 8), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 8, 5), Dev::kZoneBoundaryError);
  EXPECT_EQ(Run(DeviceOp::kAppend, 0, 0, 5), Dev::kZoneBoundaryError);
  EXPECT_EQ(disk_->asked().writes, 1U);
}

TEST_F(LinuxDeviceTest, AForcedWriteIsSentAsOneWhereTheDeviceCanDoIt) {
  EXPECT_FALSE(device_->geometry().fua_covers_zone);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 1, /*fua=*/true), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kAppend, 0, 0, 1, /*fua=*/true), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().durable_writes, 2U);
  EXPECT_EQ(disk_->asked().volatile_bytes, 0U);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().durable_writes, 2U);
  EXPECT_EQ(disk_->asked().volatile_bytes, kBlock);
  EXPECT_EQ(Run(DeviceOp::kFlush, 0), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().volatile_bytes, 0U);
}

TEST_F(LinuxDeviceTest, AForcedWriteIsFollowedByAFlushWhereTheDeviceHasNone) {
  Use(Shape(DurableWrites::kFlushed));
  EXPECT_TRUE(device_->geometry().fua_covers_zone);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 1, 1, /*fua=*/true), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().durable_writes, 0U);
  EXPECT_EQ(disk_->asked().flushes, 1U);
  EXPECT_EQ(disk_->asked().volatile_bytes, 0U);
  disk_->FailNext(KernelTransfer::Kind::kFlush, EIO);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1, /*fua=*/true), Dev::kWriteFault) << "it may not be durable";
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 3, 1), Dev::kSuccess) << "but it was stored";
}

TEST_F(LinuxDeviceTest, WithoutACacheNothingIsForcedOrFlushed) {
  Use(Shape(DurableWrites::kAlways));
  EXPECT_TRUE(device_->geometry().fua_covers_zone);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 1, /*fua=*/true), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kFlush, 0), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().durable_writes, 0U);
  EXPECT_EQ(disk_->asked().flushes, 0U);
}

TEST_F(LinuxDeviceTest, AfterAFailedWriteTheReportSaysWhereThePointerIs) {
  disk_->FailNext(KernelTransfer::Kind::kWrite, ENODATA, 2 * kBlock);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 4), Dev::kWriteFault);
  EXPECT_EQ(Describe(0).write_pointer, 2 * kBlock);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 4, 1), Dev::kZoneInvalidWrite);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, AWriteThatTheKernelRefusesForAPointerOfItsOwnIsSentAgainAsOneThatBlocks) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  for (int i = 0; i < 2; ++i) disk_->FailNext(KernelTransfer::Kind::kWrite, EIO);
  const auto write = Submit(DeviceOp::kWrite, 0, 2, 1);
  EXPECT_EQ(Wait(write), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().writes, 4U);
  EXPECT_EQ(disk_->asked().blocking_writes, 2U);
  EXPECT_FALSE(write->request.may_block) << "which belongs to the one who submits";
  disk_->FailNext(KernelTransfer::Kind::kWrite, EIO);
  EXPECT_EQ(Wait(Submit(DeviceOp::kAppend, 0, 0, 1)), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().blocking_writes, 3U);
  EXPECT_EQ(Describe(0).write_pointer, 4 * kBlock);

  for (int i = 0; i < 3; ++i) disk_->FailNext(KernelTransfer::Kind::kWrite, EIO);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 4, 1), Dev::kWriteFault) << "but not for ever";
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 4, 1), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, WritesThatAreSentAgainKeepNoOtherTaskWaiting) {
  std::vector<std::unique_ptr<Pending>> writes;
  disk_->Hold();
  for (uint32_t zone = 0; zone < 4; ++zone) {
    writes.push_back(Submit(DeviceOp::kWrite, zone, 0, 1));
    disk_->FailNext(KernelTransfer::Kind::kWrite, EIO);
  }
  Latch reported(1);
  disk_->AfterNextReport([&] {  // before the first is sent again
    disk_->Hold();
    reported.CountDown();
  });
  disk_->Release();
  reported.Wait();
  for (uint32_t zone = 4; zone < 8; ++zone) EXPECT_EQ(Run(DeviceOp::kReset, zone), Dev::kSuccess);
  disk_->Release();
  for (const auto& write : writes) EXPECT_EQ(Wait(write), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, WithoutPointersOfTheKernelNoWriteIsSentAgain) {
  FakeDiskShape shape = Shape();
  shape.errs_about_pointers = false;
  Use(shape);
  disk_->FailNext(KernelTransfer::Kind::kWrite, EIO);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kWriteFault);
  EXPECT_EQ(disk_->asked().writes, 1U);
}

TEST_F(LinuxDeviceTest, AWriteOfWhichTheZoneHasAPartIsNotSentAgain) {
  disk_->FailNext(KernelTransfer::Kind::kWrite, EIO, 1 * kBlock);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kWriteFault);
  EXPECT_EQ(disk_->asked().writes, 1U);
}

TEST_F(LinuxDeviceTest, AZoneThatDoesNotReportIsNotWrittenUntilItDoes) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  disk_->FailNext(KernelTransfer::Kind::kWrite, ENODATA, 1 * kBlock);
  disk_->FailReports(EIO);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 2), Dev::kWriteFault);
  const uint64_t writes = disk_->asked().writes;
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kWriteFault);
  EXPECT_EQ(Run(DeviceOp::kAppend, 0, 0, 1), Dev::kWriteFault);
  EXPECT_EQ(disk_->asked().writes, writes) << "nobody knows where it would go";
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 2), Dev::kSuccess) << "what is known to be there";
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 3), Dev::kUnrecoveredReadError);

  disk_->FailReports(0);
  const auto read = Submit(DeviceOp::kRead, 0, 0, 4);
  EXPECT_EQ(Wait(read), Dev::kSuccess);
  EXPECT_EQ(read->data.data()[3 * kBlock - 1], std::byte{1});
  EXPECT_EQ(read->data.data()[3 * kBlock], std::byte{0});
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kZoneInvalidWrite);
  EXPECT_EQ(Run(DeviceOp::kAppend, 0, 0, 1), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 4, 1), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, AZoneThatDoesNotReportIsWrittenAfterAReset) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  disk_->FailNext(KernelTransfer::Kind::kWrite, EIO);
  disk_->FailReports(ETIMEDOUT);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 2), Dev::kWriteFault);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 2), Dev::kInternalError) << "for lack of a report";
  EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess) << "of an empty zone no report is needed";
}

TEST_F(LinuxDeviceTest, NoticesThatAnotherProgramFinishedAZone) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
  DeviceRequest finish;
  finish.op = DeviceOp::kFinish;
  ASSERT_EQ(SubmitAndWait(disk_->ssd(), finish), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 1, 1), Dev::kZoneIsFull);
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 8), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, ZonesThatDieAreSeenAtTheNextCommand) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kWrite, 1, 0, 2), Dev::kSuccess);
  disk_->ssd().SetZoneState(ZoneId(0), ZoneState::kReadOnly);
  disk_->ssd().SetZoneState(ZoneId(1), ZoneState::kOffline);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kZoneIsReadOnly);
  EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kInvalidZoneStateTransition);
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 2), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kRead, 1, 0, 2), Dev::kZoneIsOffline);
  EXPECT_EQ(Run(DeviceOp::kAppend, 1, 0, 1), Dev::kZoneIsOffline);
  EXPECT_EQ(Run(DeviceOp::kReset, 1), Dev::kInvalidZoneStateTransition);
  EXPECT_EQ(Describe(1).write_pointer, 0U);
}

TEST_F(LinuxDeviceTest, AReadErrorIsTheReadsAlone) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  disk_->FailNext(KernelTransfer::Kind::kRead, ENODATA);
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 2), Dev::kUnrecoveredReadError);
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 2), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, ReadsAndFlushesThatTheHostInterruptsAreSentAgain) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  for (const int error : {EAGAIN, EINTR, ECANCELED}) {
    disk_->FailNext(KernelTransfer::Kind::kRead, error);
    disk_->FailNext(KernelTransfer::Kind::kFlush, error);
  }
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 2), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kFlush, 0), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().reads, 4U);
  EXPECT_EQ(disk_->asked().flushes, 4U);
  EXPECT_EQ(disk_->asked().resent, 6U) << "so that the kernel's side may choose another way";
  for (int i = 0; i < 9; ++i) disk_->FailNext(KernelTransfer::Kind::kRead, EAGAIN);
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 2), Dev::kInternalError) << "but not without an end";
}

TEST_F(LinuxDeviceTest, ReadsBehindTheWritePointerDoNotReachTheDevice) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
  const auto across = Submit(DeviceOp::kRead, 0, 0, 4);
  EXPECT_EQ(Wait(across), Dev::kSuccess);
  EXPECT_EQ(across->data.data()[kBlock - 1], std::byte{1});
  EXPECT_EQ(across->data.data()[kBlock], std::byte{0});
  const uint64_t reads = disk_->asked().reads;
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 1, 4), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().reads, reads);
}

TEST_F(LinuxDeviceTest, ADeviceThatIsGoneStaysGoneAndSaysWhy) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
  EXPECT_TRUE(device_->gone().ok());
  disk_->Remove();
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 1, 1), Dev::kInternalError);
  EXPECT_THAT(device_->gone().ToString(), HasSubstr("dev:fake is gone: No such device"));
  const FakeZonedDisk::Asked before = disk_->asked();
  for (const DeviceOp op : {DeviceOp::kRead, DeviceOp::kWrite, DeviceOp::kAppend, DeviceOp::kFlush, DeviceOp::kReset,
                            DeviceOp::kFinish, DeviceOp::kOpen}) {
    EXPECT_EQ(Run(op, 2, 0, 1), Dev::kInternalError) << DeviceOpName(op);
  }
  EXPECT_EQ(disk_->asked().writes, before.writes);
  EXPECT_EQ(disk_->asked().zone_commands, before.zone_commands);
  ZoneDescriptor zone;
  EXPECT_EQ(device_->ReportZones(ZoneId(0), {&zone, 1}).code(), StatusCode::kIoError);
}

TEST_F(LinuxDeviceTest, ADeviceThatLeavesWhileRequestsAreInFlightEndsThemAll) {
  disk_->Hold();
  const auto write = Submit(DeviceOp::kWrite, 0, 0, 1);
  const auto append = Submit(DeviceOp::kAppend, 0, 0, 1);
  disk_->Remove();
  disk_->Release();
  EXPECT_EQ(Wait(write), Dev::kInternalError);
  EXPECT_THAT(Wait(append), testing::AnyOf(Dev::kInternalError, Dev::kZoneIsReadOnly));
}

TEST_F(LinuxDeviceTest, ResetsThatLieNextToEachOtherAreOneCall) {
  for (uint32_t zone = 0; zone < 8; ++zone) {
    ASSERT_EQ(Run(DeviceOp::kWrite, zone, 0, 1), Dev::kSuccess);
    ASSERT_EQ(Run(DeviceOp::kFinish, zone), Dev::kSuccess);
  }
  const uint64_t before = disk_->asked().zone_commands;
  std::vector<std::unique_ptr<Pending>> resets;
  for (const uint32_t zone : {7, 6, 5, 4, 3, 2, 1, 0}) resets.push_back(Submit(DeviceOp::kReset, zone));
  for (const auto& reset : resets) EXPECT_EQ(Wait(reset), Dev::kSuccess);
  for (uint32_t zone = 0; zone < 8; ++zone) EXPECT_EQ(Describe(zone).state, ZoneState::kEmpty);
  EXPECT_LE(disk_->asked().zone_commands - before, 8U);
}

TEST_F(LinuxDeviceTest, OneZoneThatCannotBeResetDoesNotFailItsNeighbours) {
  for (uint32_t zone = 0; zone < 4; ++zone) ASSERT_EQ(Run(DeviceOp::kWrite, zone, 0, 1), Dev::kSuccess);
  disk_->ssd().SetZoneState(ZoneId(2), ZoneState::kReadOnly);
  std::vector<std::unique_ptr<Pending>> resets;
  for (const uint32_t zone : {0, 1, 2, 3}) resets.push_back(Submit(DeviceOp::kReset, zone));
  for (uint32_t zone = 0; zone < 4; ++zone) {
    EXPECT_EQ(Wait(resets[zone]), zone == 2 ? Dev::kInvalidZoneStateTransition : Dev::kSuccess) << zone;
  }
}

TEST_F(LinuxDeviceTest, AZoneCommandThatFailsLeavesTheZoneToTheReport) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
  disk_->FailNextCommand(EIO);
  EXPECT_EQ(Run(DeviceOp::kFinish, 0), Dev::kWriteFault);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 1, 1), Dev::kSuccess);
  disk_->FailNextCommand(ETIMEDOUT);
  EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kInternalError);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, AWriteDuringAResetLeavesTheZoneToTheReport) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  disk_->Hold();
  const auto write = Submit(DeviceOp::kWrite, 0, 2, 1);
  EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kSuccess);
  disk_->Release();
  EXPECT_EQ(Wait(write), Dev::kZoneInvalidWrite) << "the device had the reset first";
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, AResetThatIsNotedLateDoesNotTakeBackWhatWasWrittenAfterIt) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 1, 0, 3), Dev::kSuccess);
  for (const uint32_t zone : {0, 1}) {
    SCOPED_TRACE(zone);
    disk_->AfterNextCommand([&] {
      if (zone == 1) {
        EXPECT_EQ(Run(DeviceOp::kWrite, zone, 3, 1), Dev::kZoneInvalidWrite) << "it learns of the reset";
      }
      EXPECT_EQ(Run(DeviceOp::kWrite, zone, 0, 2), Dev::kSuccess);
    });
    EXPECT_EQ(Run(DeviceOp::kReset, zone), Dev::kSuccess);
    const auto read = Submit(DeviceOp::kRead, zone, 0, 2);
    std::memset(read->data.data(), 0, read->data.size());
    EXPECT_EQ(Wait(read), Dev::kSuccess);
    EXPECT_EQ(Run(DeviceOp::kWrite, zone, 2, 1), Dev::kSuccess);
  }
}

TEST_F(LinuxDeviceTest, AResetThatIsNotedLateLeavesTheNextWriteToTheReport) {
  disk_->AfterNextCommand([this] {
    EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
    disk_->FailReports(EIO);
  });
  EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kSuccess);
  disk_->FailReports(0);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 3, 1), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, AFinishThatIsNotedLateDoesNotFillAZoneThatWasReset) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 3), Dev::kSuccess);
  disk_->AfterNextCommand([this] { EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kSuccess); });
  EXPECT_EQ(Run(DeviceOp::kFinish, 0), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, AReportThatIsOlderThanAWriteDoesNotCount) {
  disk_->AfterNextReport([this] { EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess); });
  disk_->FailNextCommand(EIO);
  EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kWriteFault);
  const uint64_t reads = disk_->asked().reads;
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 2), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().reads, reads + 1) << "what was written does not read as zeros";
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, AReportThatIsOlderThanAResetIsAskedForAgain) {
  disk_->AfterNextReport([this] { EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kSuccess); });
  disk_->FailNext(KernelTransfer::Kind::kWrite, ENODATA, 2 * kBlock);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 4), Dev::kWriteFault);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
}

TEST_F(LinuxDeviceTest, ALargeZoneIsFinishedWhenItHasWhatTheOthersTake) {
  FakeDiskShape shape = Shape();
  shape.conventional = 2;
  shape.capacities = {{0, 14 * kBlock}};
  Use(shape);
  EXPECT_EQ(device_->geometry().zone_capacity, 12 * kBlock);
  EXPECT_EQ(device_->description().kernel->large_zones, 1U);
  EXPECT_EQ(device_->description().kernel->conventional_zones, 2U);
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 8), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 8, 4), Dev::kSuccess);
  EXPECT_EQ(disk_->ssd().image_info().geometry.zone_capacity, 14 * kBlock);
  ZoneDescriptor on_disk;
  ISOZONE_ASSERT_OK(disk_->ssd().ReportZones(ZoneId(0), {&on_disk, 1}));
  EXPECT_EQ(on_disk.state, ZoneState::kFull) << "it holds no active resource";
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 12, 1), Dev::kZoneIsFull);
}

TEST_F(LinuxDeviceTest, ALargeZoneIsFinishedAlsoIfTheWriteThatFilledItFailed) {
  FakeDiskShape shape = Shape();
  shape.capacities = {{0, 14 * kBlock}};
  Use(shape);
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 8), Dev::kSuccess);
  disk_->FailNext(KernelTransfer::Kind::kWrite, ENODATA, 4 * kBlock);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 8, 4), Dev::kWriteFault);
  ZoneDescriptor on_disk;
  ISOZONE_ASSERT_OK(disk_->ssd().ReportZones(ZoneId(0), {&on_disk, 1}));
  EXPECT_EQ(on_disk.state, ZoneState::kFull) << "it holds no active resource";
}

TEST_F(LinuxDeviceTest, ALargeZoneThatACrashLeftActiveIsFinishedBeforeTheFirstChange) {
  FakeDiskShape shape = Shape();
  shape.capacities = {{0, 14 * kBlock}};
  Use(shape);
  device_.reset();
  Pending all(12);
  all.request.op = DeviceOp::kWrite;
  all.request.data = all.data.data();
  all.request.length = all.data.size();
  ASSERT_EQ(SubmitAndWait(disk_->ssd(), all.request), Dev::kSuccess);
  ASSERT_NO_FATAL_FAILURE(Open(OpenMode::kReadOnly));
  EXPECT_EQ(Describe(0).state, ZoneState::kFull);
  EXPECT_EQ(disk_->asked().zone_commands, 0U) << "a reader changes nothing";
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 8), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kFlush, 0), Dev::kSuccess);
  EXPECT_EQ(disk_->asked().zone_commands, 0U) << "what is on the disk may not be Isozone's";
  const auto first = Submit(DeviceOp::kAppend, 1, 0, 1);
  const auto second = Submit(DeviceOp::kAppend, 1, 0, 1);
  EXPECT_EQ(Wait(first), Dev::kSuccess);
  EXPECT_EQ(Wait(second), Dev::kSuccess);
  EXPECT_EQ(device_->geometry().OffsetInZone(first->request.written_at), 0U);
  EXPECT_EQ(disk_->asked().zone_commands, 1U);
  ZoneDescriptor on_disk;
  ISOZONE_ASSERT_OK(disk_->ssd().ReportZones(ZoneId(0), {&on_disk, 1}));
  EXPECT_EQ(on_disk.state, ZoneState::kFull);
}

TEST_F(LinuxDeviceTest, AReaderFollowsAnotherProcess) {
  const auto reader = LinuxDevice::Create("dev:fake", OpenMode::kReadOnly, disk_->Open(), disk_->facts());
  ISOZONE_ASSERT_OK(reader.status());
  const auto writer = std::exchange(device_, nullptr);
  const auto write = [&](uint64_t block) {
    Pending pending(1);
    pending.request.op = DeviceOp::kWrite;
    pending.request.offset = DeviceOffset(block * kBlock);
    pending.request.data = pending.data.data();
    pending.request.length = kBlock;
    return SubmitAndWait(*writer, pending.request);
  };
  Pending read(1, 9);
  read.request.data = read.data.data();
  read.request.length = kBlock;
  for (uint64_t block = 0; block < 3; ++block) {
    ASSERT_EQ(write(block), Dev::kSuccess);
    read.request.offset = DeviceOffset(block * kBlock);
    ASSERT_EQ(SubmitAndWait(**reader, read.request), Dev::kSuccess);
    EXPECT_EQ(read.data.data()[0], std::byte{1});
  }
  disk_->FailReports(EIO);
  read.request.offset = DeviceOffset(8 * kBlock);
  EXPECT_EQ(SubmitAndWait(**reader, read.request), Dev::kUnrecoveredReadError);
}

TEST_F(LinuxDeviceTest, AResetWhoseAnswerWasLostHasSucceeded) {
  disk_->FailNextCommand(EIO);  // of a zone that is empty all the same
  EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  EXPECT_EQ(Describe(0).write_pointer, 2 * kBlock);
}

TEST_F(LinuxDeviceTest, RepeatsAReportThatFails) {
  disk_->FailReports(2, EIO);
  const auto device = LinuxDevice::Create("dev:fake", OpenMode::kReadWrite, disk_->Open(), disk_->facts());
  ISOZONE_ASSERT_OK(device.status());
  disk_->FailReports(2, EIO);
  ZoneDescriptor zone;
  ISOZONE_EXPECT_OK((*device)->ReportZones(ZoneId(1), {&zone, 1}));
}

TEST_F(LinuxDeviceTest, SaysWhyADeviceCannotBeUsed) {
  disk_->FailReports(EIO);
  const auto mute = LinuxDevice::Create("dev:fake", OpenMode::kReadWrite, disk_->Open(), disk_->facts());
  EXPECT_EQ(mute.status().code(), StatusCode::kIoError);
  EXPECT_THAT(mute.status().ToString(), HasSubstr("dev:fake: the kernel does not report the zones"));
}

}  // namespace
}  // namespace isozone
