#include "device/linux/kernel_errors.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace isozone {
namespace {

using Dev = DeviceStatus;

constexpr uint64_t kBlock = 4096;

DeviceGeometry Geometry() { return {.zone_count = 4, .zone_size = 16 * kBlock, .zone_capacity = 12 * kBlock}; }

DeviceRequest Request(DeviceOp op, uint64_t block = 4, uint64_t blocks = 4) {
  DeviceRequest request;
  request.op = op;
  request.offset = DeviceOffset(Geometry().zone_size + (op == DeviceOp::kAppend ? 0 : block * kBlock));
  request.length = blocks * kBlock;
  request.written_at = DeviceOffset(Geometry().zone_size + block * kBlock);
  return request;
}

ZoneDescriptor Zone(ZoneState state, uint64_t block = 4) { return {ZoneId(1), state, 12 * kBlock, block * kBlock}; }

Dev Of(DeviceOp op, int error, const ZoneDescriptor& zone) { return StatusOf(Geometry(), Request(op), error, &zone); }

TEST(KernelErrors, MissingResourcesAreNotTheZonesFault) {
  for (const DeviceOp op : {DeviceOp::kWrite, DeviceOp::kAppend, DeviceOp::kOpen}) {
    EXPECT_EQ(Of(op, EOVERFLOW, Zone(ZoneState::kEmpty, 0)), Dev::kTooManyActiveZones);
    EXPECT_EQ(Of(op, ETOOMANYREFS, Zone(ZoneState::kEmpty, 0)), Dev::kTooManyOpenZones);
  }
}

TEST(KernelErrors, TheReportSaysWhatAFailedWriteMeans) {
  for (const DeviceOp op : {DeviceOp::kWrite, DeviceOp::kAppend}) {
    for (const int error : {EIO, EREMOTEIO, ENODATA, ENOSPC, EILSEQ}) {
      EXPECT_EQ(Of(op, error, Zone(ZoneState::kImplicitlyOpen)), Dev::kWriteFault) << "nothing was stored";
      EXPECT_EQ(Of(op, error, Zone(ZoneState::kImplicitlyOpen, 6)), Dev::kWriteFault) << "a part was";
      EXPECT_EQ(Of(op, error, Zone(ZoneState::kImplicitlyOpen, 2)), Dev::kZoneInvalidWrite);
      EXPECT_EQ(Of(op, error, Zone(ZoneState::kImplicitlyOpen, 9)), Dev::kZoneInvalidWrite);
      EXPECT_EQ(Of(op, error, Zone(ZoneState::kFull, 12)), Dev::kZoneIsFull);
      EXPECT_EQ(Of(op, error, Zone(ZoneState::kReadOnly, 12)), Dev::kZoneIsReadOnly);
      EXPECT_EQ(Of(op, error, Zone(ZoneState::kOffline, 0)), Dev::kZoneIsOffline);
    }
  }
  EXPECT_EQ(StatusOf(Geometry(), Request(DeviceOp::kWrite, 8, 4), EIO, nullptr), Dev::kWriteFault);
  const ZoneDescriptor full = Zone(ZoneState::kFull, 12);
  EXPECT_EQ(StatusOf(Geometry(), Request(DeviceOp::kWrite, 8, 4), EIO, &full), Dev::kWriteFault)
      << "it would have filled the zone";
}

TEST(KernelErrors, AFailedReadIsTheMediums) {
  for (const int error : {EIO, EREMOTEIO, ENODATA, EILSEQ}) {
    EXPECT_EQ(Of(DeviceOp::kRead, error, Zone(ZoneState::kFull, 12)), Dev::kUnrecoveredReadError);
    EXPECT_EQ(Of(DeviceOp::kRead, error, Zone(ZoneState::kReadOnly, 12)), Dev::kUnrecoveredReadError);
    EXPECT_EQ(Of(DeviceOp::kRead, error, Zone(ZoneState::kOffline, 0)), Dev::kZoneIsOffline);
  }
  EXPECT_EQ(StatusOf(Geometry(), Request(DeviceOp::kRead), EIO, nullptr), Dev::kUnrecoveredReadError);
}

TEST(KernelErrors, ZoneCommandsFailForTheirStateOrTheMedium) {
  EXPECT_EQ(Of(DeviceOp::kReset, EIO, Zone(ZoneState::kReadOnly)), Dev::kInvalidZoneStateTransition);
  EXPECT_EQ(Of(DeviceOp::kFinish, EIO, Zone(ZoneState::kOffline)), Dev::kInvalidZoneStateTransition);
  EXPECT_EQ(Of(DeviceOp::kOpen, EIO, Zone(ZoneState::kFull)), Dev::kInvalidZoneStateTransition);
  EXPECT_EQ(Of(DeviceOp::kClose, EIO, Zone(ZoneState::kEmpty)), Dev::kInvalidZoneStateTransition);
  EXPECT_EQ(Of(DeviceOp::kReset, EIO, Zone(ZoneState::kFull)), Dev::kWriteFault);
  EXPECT_EQ(StatusOf(Geometry(), Request(DeviceOp::kFlush), EIO, nullptr), Dev::kInternalError);
}

TEST(KernelErrors, AZoneCommandWhoseAnswerWasLostHasSucceeded) {
  EXPECT_EQ(Of(DeviceOp::kReset, EIO, Zone(ZoneState::kEmpty, 0)), Dev::kSuccess);
  EXPECT_EQ(Of(DeviceOp::kFinish, EREMOTEIO, Zone(ZoneState::kFull, 12)), Dev::kSuccess);
  EXPECT_EQ(Of(DeviceOp::kReset, EIO, Zone(ZoneState::kFull, 12)), Dev::kWriteFault);
  EXPECT_EQ(Of(DeviceOp::kFinish, EIO, Zone(ZoneState::kEmpty, 0)), Dev::kWriteFault);
}

TEST(KernelErrors, ErrorsOfTheHostAreInternal) {
  for (const int error : {ENODEV, ENXIO, ETIMEDOUT, ENOMEM, EAGAIN, ECANCELED, EMFILE, ENFILE}) {
    EXPECT_EQ(Of(DeviceOp::kWrite, error, Zone(ZoneState::kImplicitlyOpen)), Dev::kInternalError) << error;
    EXPECT_EQ(Of(DeviceOp::kRead, error, Zone(ZoneState::kImplicitlyOpen)), Dev::kInternalError) << error;
    EXPECT_EQ(Of(DeviceOp::kReset, error, Zone(ZoneState::kImplicitlyOpen)), Dev::kInternalError) << error;
  }
  EXPECT_TRUE(IsGone(ENODEV));
  EXPECT_FALSE(IsGone(EIO));
}

TEST(KernelErrors, WhatADeadZoneForbidsIsTheZonesAlone) {
  for (const int error : {EPERM, EACCES, EROFS}) {
    EXPECT_EQ(Of(DeviceOp::kWrite, error, Zone(ZoneState::kReadOnly)), Dev::kZoneIsReadOnly);
    EXPECT_EQ(Of(DeviceOp::kWrite, error, Zone(ZoneState::kOffline, 0)), Dev::kZoneIsOffline);
    EXPECT_EQ(Of(DeviceOp::kRead, error, Zone(ZoneState::kOffline, 0)), Dev::kZoneIsOffline);
    EXPECT_EQ(Of(DeviceOp::kReset, error, Zone(ZoneState::kReadOnly)), Dev::kInvalidZoneStateTransition);
  }
}

TEST(KernelErrors, RequestsThatTheKernelForbids) {
  EXPECT_EQ(Of(DeviceOp::kWrite, EROFS, Zone(ZoneState::kEmpty, 0)), Dev::kNamespaceWriteProtected);
  EXPECT_EQ(Of(DeviceOp::kReset, EPERM, Zone(ZoneState::kEmpty, 0)), Dev::kNamespaceWriteProtected);
  EXPECT_EQ(Of(DeviceOp::kWrite, EINVAL, Zone(ZoneState::kImplicitlyOpen)), Dev::kInvalidField);
  EXPECT_EQ(Of(DeviceOp::kRead, EINVAL, Zone(ZoneState::kImplicitlyOpen)), Dev::kInvalidField);
}

}  // namespace
}  // namespace isozone
