#include "device/zonefs/zonefs_kernel.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/aligned_buffer.h"
#include "base/latch.h"
#include "device/linux/linux_device.h"
#include "testing/assert_ok.h"
#include "testing/fake_zonefs.h"

namespace isozone {
namespace {

using testing::HasSubstr;
using Dev = DeviceStatus;

constexpr uint64_t kBlock = 4096;

FakeZonefsShape Shape(bool explicit_open) {
  FakeZonefsShape shape;
  shape.zones = {.block_size = kBlock,
                 .zone_count = 8,
                 .zone_size = 16 * kBlock,
                 .zone_capacity = 12 * kBlock,
                 .max_open_zones = 3,
                 .max_active_zones = 6,
                 .max_transfer = 8 * kBlock,
                 .optimal_write = kBlock};
  shape.explicit_open = explicit_open;
  return shape;
}

// A request with memory of its own.
struct Pending {
  AlignedBuffer data;
  DeviceRequest request;
  Latch done;
};

// Whether the mount has explicit-open.
class ZonefsKernelTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { Use(Shape(GetParam())); }

  void Use(const FakeZonefsShape& shape, size_t max_files = 64) {
    device_.reset();
    zonefs_ = std::make_unique<FakeZonefs>(shape);
    ASSERT_NO_FATAL_FAILURE(Open(OpenMode::kReadWrite, max_files));
  }
  void Open(OpenMode mode = OpenMode::kReadWrite, size_t max_files = 64) {
    device_.reset();
    auto opened = LinuxDevice::Create("zonefs:fake", mode, zonefs_->Open(max_files, max_waits_), zonefs_->facts());
    ISOZONE_ASSERT_OK(opened.status());
    device_ = std::move(*opened);
  }

  std::unique_ptr<Pending> Submit(DeviceOp op, uint32_t zone, uint64_t block = 0, uint64_t blocks = 0,
                                  bool fua = false) {
    auto pending = std::make_unique<Pending>();
    pending->data = AlignedBuffer(blocks * kBlock);
    std::fill_n(pending->data.data(), pending->data.size(), static_cast<std::byte>(zone + 1));
    DeviceRequest& request = pending->request;
    request.op = op;
    request.fua = fua;
    request.offset = DeviceOffset(zone * device_->geometry().zone_size + block * kBlock);
    request.data = pending->data.data();
    request.length = pending->data.size();
    pending->done.Expect(request);
    device_->Submit(request);
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

  uint32_t max_waits_ = 5000;
  std::unique_ptr<FakeZonefs> zonefs_;
  std::unique_ptr<LinuxDevice> device_;
};

TEST_P(ZonefsKernelTest, TheSizeOfAFileIsTheWritePointerOfItsZone) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 2, 0, 5), Dev::kSuccess);
  EXPECT_EQ(Describe(2).write_pointer, 5 * kBlock);
  EXPECT_EQ(Describe(2).state, ZoneState::kImplicitlyOpen);
  EXPECT_EQ(Describe(3).state, ZoneState::kEmpty);
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(Describe(2).state, ZoneState::kClosed);
  EXPECT_EQ(Describe(2).write_pointer, 5 * kBlock);
  EXPECT_EQ(Run(DeviceOp::kWrite, 2, 5, 1), Dev::kSuccess);
}

TEST_P(ZonefsKernelTest, NoMoreFilesAreOpenForWritingThanZonesMayBeOpen) {
  for (uint64_t block = 0; block < 3; ++block) {
    for (uint32_t zone = 0; zone < 6; ++zone) {
      ASSERT_EQ(Run(DeviceOp::kWrite, zone, block, 1), Dev::kSuccess) << zone;
      EXPECT_LE(zonefs_->OpenFor(O_WRONLY), 3U);
    }
  }
  EXPECT_EQ(Run(DeviceOp::kWrite, 6, 0, 1), Dev::kTooManyActiveZones);
}

TEST_P(ZonefsKernelTest, AFileThatIsWrittenIsNotClosedForAnother) {
  zonefs_->Hold();
  std::vector<std::unique_ptr<Pending>> writes;
  for (uint32_t zone = 0; zone < 3; ++zone) writes.push_back(Submit(DeviceOp::kWrite, zone, 0, 1));
  zonefs_->AwaitHeld(3);
  EXPECT_EQ(Run(DeviceOp::kWrite, 3, 0, 1), Dev::kTooManyOpenZones);
  zonefs_->Release();
  for (const auto& write : writes) EXPECT_EQ(Wait(write), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 3, 0, 1), Dev::kSuccess);
}

TEST_P(ZonefsKernelTest, AFullZoneIsNotOpenForWriting) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 8), Dev::kSuccess);
  EXPECT_EQ(zonefs_->OpenFor(O_WRONLY), 1U);
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 8, 4), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kWrite, 1, 0, 1), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kFinish, 1), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kWrite, 2, 0, 1), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kReset, 2), Dev::kSuccess);
  device_.reset();
  EXPECT_EQ(zonefs_->OpenFor(O_WRONLY), 0U);
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(Describe(0).state, ZoneState::kFull);
  EXPECT_EQ(Describe(1).state, ZoneState::kFull);
  EXPECT_EQ(Describe(2).state, ZoneState::kEmpty);
}

TEST_P(ZonefsKernelTest, FilesThatAreReadTakeTurns) {
  Use(Shape(GetParam()), /*max_files=*/2);
  for (uint32_t zone = 0; zone < 6; ++zone) ASSERT_EQ(Run(DeviceOp::kWrite, zone, 0, 1), Dev::kSuccess);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t zone = 0; zone < 6; ++zone) {
      const auto read = Submit(DeviceOp::kRead, zone, 0, 1);
      ASSERT_EQ(Wait(read), Dev::kSuccess);
      EXPECT_EQ(read->data.data()[0], static_cast<std::byte>(zone + 1));
      EXPECT_LE(zonefs_->OpenFor(O_RDONLY), 2U);
    }
  }
}

TEST_P(ZonefsKernelTest, AProcessWithoutFilesToOpenClosesOne) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kWrite, 1, 0, 1), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kRead, 1, 0, 1), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kWrite, 2, 0, 1), Dev::kSuccess);
  ASSERT_EQ(zonefs_->OpenFor(O_RDONLY), 2U) << "that of a flush, and one more";
  zonefs_->FailNextOpen(EMFILE);
  EXPECT_EQ(Run(DeviceOp::kRead, 2, 0, 1), Dev::kSuccess);
  EXPECT_EQ(zonefs_->OpenFor(O_RDONLY), 2U);
  zonefs_->FailNextOpen(EMFILE);
  EXPECT_EQ(Run(DeviceOp::kWrite, 3, 0, 1), Dev::kSuccess);
}

TEST_P(ZonefsKernelTest, AFlushNeedsNoFileThatIsNotOpen) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 3, 0, 8), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kWrite, 3, 8, 4), Dev::kSuccess);
  for (const int error : {EMFILE, ENFILE}) {
    zonefs_->FailOpens(error);
    EXPECT_EQ(Run(DeviceOp::kFlush, 0), Dev::kSuccess);
  }
  EXPECT_EQ(zonefs_->asked().flushes, 2U);
}

TEST_P(ZonefsKernelTest, WhatNeedsAFileWaitsUntilOneCanBeOpened) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
  for (const int error : {EMFILE, ENFILE}) {
    SCOPED_TRACE(error);
    ASSERT_NO_FATAL_FAILURE(Open());
    zonefs_->FailOpens(error);
    const auto read = Submit(DeviceOp::kRead, 0, 0, 1);
    const auto write = Submit(DeviceOp::kWrite, 1, Describe(1).write_pointer / kBlock, 1);
    const auto flush = Submit(DeviceOp::kFlush, 0);
    zonefs_->AwaitRefusedOpens(10);
    zonefs_->FailOpens(0);
    for (const auto* pending : {&read, &write, &flush}) EXPECT_EQ(Wait(*pending), Dev::kSuccess);
  }
}

TEST_P(ZonefsKernelTest, WhatWaitsForAFileInVainIsNoFaultOfItsZone) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
  max_waits_ = 3;
  ASSERT_NO_FATAL_FAILURE(Open());
  zonefs_->FailOpens(EMFILE);
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 1), Dev::kInternalError);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 1, 1), Dev::kTooManyOpenZones) << "which is tried again";
  EXPECT_EQ(Run(DeviceOp::kFlush, 0), Dev::kInternalError);
  zonefs_->FailOpens(0);
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 1), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 1, 1), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kFlush, 0), Dev::kSuccess);
}

TEST_P(ZonefsKernelTest, NoMoreFilesAreReadThanMayBeOpen) {
  Use(Shape(GetParam()), /*max_files=*/3);
  for (uint32_t zone = 0; zone < 6; ++zone) ASSERT_EQ(Run(DeviceOp::kWrite, zone, 0, 1), Dev::kSuccess);
  zonefs_->Hold();
  std::vector<std::unique_ptr<Pending>> reads;
  for (uint32_t zone = 1; zone < 6; ++zone) reads.push_back(Submit(DeviceOp::kRead, zone, 0, 1));
  zonefs_->AwaitHeld(2);
  EXPECT_EQ(zonefs_->OpenFor(O_RDONLY), 3U) << "that of a flush among them";
  zonefs_->Release();
  for (const auto& read : reads) EXPECT_EQ(Wait(read), Dev::kSuccess);
  EXPECT_LE(zonefs_->OpenFor(O_RDONLY), 3U);
}

TEST_P(ZonefsKernelTest, AZoneThatAnotherProgramHasTakenTheLastPlaceOfIsRefused) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 2, 0, 1), Dev::kSuccess);  // and opens the file of flushes
  zonefs_->FailNextOpen(EBUSY);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess) << "in a moment";
  EXPECT_EQ(zonefs_->asked().writer_opens, 2U);
  zonefs_->FailNextOpen(EOVERFLOW);
  EXPECT_EQ(Run(DeviceOp::kWrite, 1, 0, 1), Dev::kTooManyActiveZones);
  zonefs_->FailNextOpen(EACCES);
  EXPECT_EQ(Run(DeviceOp::kWrite, 1, 0, 1), Dev::kNamespaceWriteProtected);
  EXPECT_EQ(Run(DeviceOp::kWrite, 1, 0, 1), Dev::kSuccess);
}

TEST_P(ZonefsKernelTest, AfterAFailedWriteTheSizeSaysWhereThePointerIs) {
  zonefs_->FailNext(KernelTransfer::Kind::kWrite, EIO, 2 * kBlock);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 4), Dev::kWriteFault);
  EXPECT_EQ(Describe(0).write_pointer, 2 * kBlock);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 4, 1), Dev::kZoneInvalidWrite);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kSuccess);
}

TEST_P(ZonefsKernelTest, AMountThatAnErrorMadeReadOnlyIsNotWritten) {
  FakeZonefsShape shape = Shape(GetParam());
  shape.remount_read_only = true;
  Use(shape);
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  zonefs_->FailNext(KernelTransfer::Kind::kWrite, EIO);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kWriteFault);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kNamespaceWriteProtected);
  EXPECT_EQ(Run(DeviceOp::kWrite, 1, 0, 1), Dev::kNamespaceWriteProtected);
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 2), Dev::kSuccess);
}

TEST_P(ZonefsKernelTest, ADeadZoneIsSeenWhenARequestFails) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kWrite, 1, 0, 2), Dev::kSuccess);
  zonefs_->Die(0, /*offline=*/false);
  zonefs_->Die(1, /*offline=*/true);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kZoneIsReadOnly);
  EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kInvalidZoneStateTransition);
  EXPECT_EQ(Describe(0).write_pointer, 2 * kBlock) << "what can be read";
  const auto read = Submit(DeviceOp::kRead, 0, 0, 4);
  EXPECT_EQ(Wait(read), Dev::kSuccess);
  EXPECT_EQ(read->data.data()[kBlock], std::byte{1});
  EXPECT_EQ(read->data.data()[2 * kBlock], std::byte{0}) << "behind the write pointer";
  EXPECT_EQ(Run(DeviceOp::kRead, 1, 0, 2), Dev::kZoneIsOffline);
  EXPECT_EQ(Run(DeviceOp::kWrite, 1, 2, 1), Dev::kZoneIsOffline);
  EXPECT_EQ(Run(DeviceOp::kReset, 1), Dev::kInvalidZoneStateTransition);
  EXPECT_EQ(Run(DeviceOp::kWrite, 2, 0, 1), Dev::kSuccess);
}

TEST_P(ZonefsKernelTest, AZoneThatDiedWhileItsFileWasOpenIsForbidden) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  ASSERT_EQ(Run(DeviceOp::kWrite, 1, 0, 2), Dev::kSuccess);
  zonefs_->ShowDeath(0, /*offline=*/false);
  zonefs_->ShowDeath(1, /*offline=*/true);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 2, 1), Dev::kZoneIsReadOnly);
  EXPECT_EQ(Run(DeviceOp::kWrite, 1, 2, 1), Dev::kZoneIsOffline);
  EXPECT_EQ(Run(DeviceOp::kRead, 1, 0, 2), Dev::kZoneIsOffline);
}

TEST_P(ZonefsKernelTest, AFlushGoesByAZoneThatLives) {
  ASSERT_EQ(Run(DeviceOp::kFlush, 0), Dev::kSuccess);
  zonefs_->ShowDeath(0, /*offline=*/false);
  zonefs_->ShowDeath(1, /*offline=*/true);
  ASSERT_EQ(Run(DeviceOp::kFlush, 0), Dev::kSuccess);
  EXPECT_EQ(zonefs_->asked().flushes, 2U);
  zonefs_->Hold();
  const auto flush = Submit(DeviceOp::kFlush, 0);
  zonefs_->ShowDeath(2, /*offline=*/true);  // by which it goes
  zonefs_->Release();
  EXPECT_EQ(Wait(flush), Dev::kSuccess);
  EXPECT_EQ(zonefs_->asked().flushes, 3U);
  for (uint32_t zone = 3; zone < 8; ++zone) zonefs_->ShowDeath(zone, /*offline=*/false);
  EXPECT_EQ(Run(DeviceOp::kFlush, 0), Dev::kInternalError) << "without any";
}

TEST_P(ZonefsKernelTest, AForcedWriteIsDurable) {
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 1, /*fua=*/true), Dev::kSuccess);
  EXPECT_EQ(zonefs_->asked().durable_writes, 1U);
  FakeZonefsShape shape = Shape(GetParam());
  shape.durable = DurableWrites::kFlushed;
  Use(shape);
  EXPECT_EQ(Run(DeviceOp::kWrite, 0, 0, 1, /*fua=*/true), Dev::kSuccess);
  EXPECT_EQ(zonefs_->asked().durable_writes, 0U);
  EXPECT_EQ(zonefs_->asked().flushes, 1U);
}

TEST_P(ZonefsKernelTest, OpenAndCloseCountWhatTheDeviceAllows) {
  for (uint32_t zone = 0; zone < 6; ++zone) ASSERT_EQ(Run(DeviceOp::kWrite, zone, 0, 1), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kOpen, 6), Dev::kTooManyActiveZones);
  for (uint32_t zone = 0; zone < 3; ++zone) ASSERT_EQ(Run(DeviceOp::kOpen, zone), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kOpen, 3), Dev::kTooManyOpenZones);
  EXPECT_EQ(Run(DeviceOp::kWrite, 3, 1, 1), Dev::kTooManyOpenZones);
  EXPECT_EQ(Describe(0).state, ZoneState::kExplicitlyOpen);
  ASSERT_EQ(Run(DeviceOp::kClose, 0), Dev::kSuccess);
  EXPECT_EQ(Describe(0).state, ZoneState::kClosed);
  EXPECT_EQ(Run(DeviceOp::kWrite, 3, 1, 1), Dev::kSuccess);
}

TEST_P(ZonefsKernelTest, ADeviceThatIsGoneStaysGone) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 1), Dev::kSuccess);
  zonefs_->Remove();
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 1), Dev::kInternalError);
  EXPECT_THAT(device_->gone().ToString(), HasSubstr("zonefs:fake is gone"));
  EXPECT_EQ(Run(DeviceOp::kWrite, 1, 0, 1), Dev::kInternalError);
}

TEST_P(ZonefsKernelTest, AReaderOpensNothingForWriting) {
  ASSERT_EQ(Run(DeviceOp::kWrite, 0, 0, 2), Dev::kSuccess);
  ASSERT_NO_FATAL_FAILURE(Open(OpenMode::kReadOnly));
  EXPECT_EQ(Run(DeviceOp::kRead, 0, 0, 2), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kFlush, 0), Dev::kSuccess);
  EXPECT_EQ(Run(DeviceOp::kReset, 0), Dev::kNamespaceWriteProtected);
  EXPECT_EQ(zonefs_->OpenFor(O_WRONLY), 0U);
}

INSTANTIATE_TEST_SUITE_P(Both, ZonefsKernelTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "ExplicitOpen" : "Plain"; });

}  // namespace
}  // namespace isozone
