#include "device/export/block_request.h"

#include <linux/ublk_cmd.h>

#include <cerrno>

#include <gtest/gtest.h>

#include "device/export/export_test_util.h"

namespace isozone {
namespace {

using ublk::Operation;

class BlockRequestTest : public testing::Test {
 protected:
  int Parse(const ublk::RequestDescriptor& descriptor) {
    return ParseRequest(geometry_, kMaxRequest, descriptor, request_);
  }

  const DeviceGeometry geometry_ = ExportGeometry();
  BlockRequest request_;
};

TEST_F(BlockRequestTest, TransfersAreWhereAndAsLongAsTheKernelSays) {
  ASSERT_EQ(Parse(Describe(Operation::kRead, kTestZoneSectors + 8, 16, true)), 0);
  EXPECT_EQ(request_.op, DeviceOp::kRead);
  EXPECT_EQ(request_.offset.value(), kTestZone + 4096);
  EXPECT_EQ(request_.length, 8192U);
  EXPECT_FALSE(request_.fua);
  ASSERT_EQ(Parse(Describe(Operation::kWrite, 0, 1024, true)), 0);
  EXPECT_EQ(request_.op, DeviceOp::kWrite);
  EXPECT_EQ(request_.length, kMaxRequest);
  EXPECT_TRUE(request_.fua);
  ASSERT_EQ(Parse(Describe(Operation::kZoneAppend, 3 * kTestZoneSectors, 8)), 0);
  EXPECT_EQ(request_.op, DeviceOp::kAppend);
  EXPECT_EQ(request_.offset.value(), 3 * kTestZone);
}

// What the kernel's header of Debian 12 says, which has no zones yet.
static_assert(ublk::kFuaFlag == UBLK_IO_F_FUA);
static_assert(static_cast<uint32_t>(Operation::kWrite) == UBLK_IO_OP_WRITE);
static_assert(static_cast<uint32_t>(Operation::kFlush) == UBLK_IO_OP_FLUSH);

TEST_F(BlockRequestTest, ZoneOperationsNameAZone) {
  const std::pair<Operation, DeviceOp> operations[] = {{Operation::kZoneOpen, DeviceOp::kOpen},
                                                       {Operation::kZoneClose, DeviceOp::kClose},
                                                       {Operation::kZoneFinish, DeviceOp::kFinish},
                                                       {Operation::kZoneReset, DeviceOp::kReset}};
  for (const auto& [operation, op] : operations) {
    ASSERT_EQ(Parse(Describe(operation, 15 * kTestZoneSectors, kTestZoneSectors)), 0);
    EXPECT_EQ(request_.op, op);
    EXPECT_EQ(request_.offset.value(), 15 * kTestZone);
    EXPECT_EQ(Parse(Describe(operation, 8)), EINVAL) << "inside of a zone";
    EXPECT_EQ(Parse(Describe(operation, 16 * kTestZoneSectors)), EINVAL) << "behind the last zone";
    EXPECT_EQ(Parse(Describe(operation, UINT64_MAX / kTestZoneSectors * kTestZoneSectors)), EINVAL);
  }
  EXPECT_EQ(Parse(Describe(Operation::kFlush, UINT64_MAX, UINT32_MAX)), 0);
  EXPECT_EQ(Parse(Describe(Operation::kZoneResetAll, 0, 0)), 0);
  EXPECT_EQ(request_.kind, BlockRequest::Kind::kResetAll);
}

TEST_F(BlockRequestTest, RefusesMalformedTransfers) {
  const uint64_t end = 16 * kTestZoneSectors;
  for (const Operation operation : {Operation::kRead, Operation::kWrite, Operation::kZoneAppend}) {
    EXPECT_EQ(Parse(Describe(operation, 0, 0)), EINVAL) << "nothing";
    EXPECT_EQ(Parse(Describe(operation, 0, 1032)), EINVAL) << "longer than its memory";
    EXPECT_EQ(Parse(Describe(operation, 0, UINT32_MAX)), EINVAL);
    EXPECT_EQ(Parse(Describe(operation, 0, 1U << 23)), EINVAL) << "4 GiB";
    EXPECT_EQ(Parse(Describe(operation, 1, 8)), EINVAL) << "part of a block";
    EXPECT_EQ(Parse(Describe(operation, 0, 7)), EINVAL);
    EXPECT_EQ(Parse(Describe(operation, end, 8)), EINVAL);
    EXPECT_EQ(Parse(Describe(operation, end - 8, 16)), EINVAL);
    EXPECT_EQ(Parse(Describe(operation, UINT64_MAX - 7, 8)), EINVAL);
    EXPECT_EQ(Parse(Describe(operation, (UINT64_MAX >> 9) + 1, 8)), EINVAL) << "0, counted in bytes";
  }
  EXPECT_EQ(Parse(Describe(Operation::kZoneAppend, 8, 8)), EINVAL) << "inside of a zone";
}

TEST_F(BlockRequestTest, RefusesWhatADeviceWithZonesDoesNotDo) {
  for (const Operation operation : {Operation::kDiscard, Operation::kWriteZeroes, Operation::kWriteSame}) {
    EXPECT_EQ(Parse(Describe(operation, 0, 8)), EOPNOTSUPP);
  }
  for (uint32_t operation = static_cast<uint32_t>(Operation::kReportZones) + 1; operation < 256; ++operation) {
    EXPECT_EQ(Parse({operation, 8, 0, 0}), EOPNOTSUPP) << operation;
  }
  for (const uint32_t operation : {6U, 9U, 16U, 17U}) EXPECT_EQ(Parse({operation, 8, 0, 0}), EOPNOTSUPP) << operation;
}

TEST_F(BlockRequestTest, AReportHasAsManyZonesAsThereAre) {
  ASSERT_EQ(Parse(Describe(Operation::kReportZones, 0, UINT32_MAX)), 0);
  EXPECT_EQ(request_.zones, 16U);
  ASSERT_EQ(Parse(Describe(Operation::kReportZones, 14 * kTestZoneSectors, 5)), 0);
  EXPECT_EQ(request_.zones, 2U);
  EXPECT_EQ(request_.offset.value(), 14 * kTestZone);
  ASSERT_EQ(Parse(Describe(Operation::kReportZones, 15 * kTestZoneSectors + 1, 5)), 0) << "inside of the first zone";
  EXPECT_EQ(request_.offset.value(), 15 * kTestZone);
  EXPECT_EQ(Parse(Describe(Operation::kReportZones, 0, 0)), EINVAL);
  EXPECT_EQ(Parse(Describe(Operation::kReportZones, 16 * kTestZoneSectors, 1)), EINVAL);
  ASSERT_EQ(ParseRequest(geometry_, 3 * sizeof(blk_zone), Describe(Operation::kReportZones, 0, 16), request_), 0);
  EXPECT_EQ(request_.zones, 3U) << "what fits into the memory of a request";
}

TEST_F(BlockRequestTest, ErrorsSayWhatHappened) {
  EXPECT_EQ(ErrorOf(DeviceStatus::kSuccess), 0);
  EXPECT_EQ(ErrorOf(DeviceStatus::kUnrecoveredReadError), ENODATA);
  EXPECT_EQ(ErrorOf(DeviceStatus::kWriteFault), ENODATA);
  EXPECT_EQ(ErrorOf(DeviceStatus::kTooManyOpenZones), ETOOMANYREFS);
  EXPECT_EQ(ErrorOf(DeviceStatus::kTooManyActiveZones), EOVERFLOW);
  EXPECT_EQ(ErrorOf(DeviceStatus::kNamespaceWriteProtected), EREMOTEIO);
  EXPECT_EQ(ErrorOf(DeviceStatus::kZoneInvalidWrite), EIO);
  EXPECT_EQ(ErrorOf(DeviceStatus::kPowerLoss), EIO);
  EXPECT_EQ(ErrorOf(static_cast<DeviceStatus>(0x7FF)), EIO);
}

TEST_F(BlockRequestTest, ZonesLookAsTheKernelExpectsThem) {
  const blk_zone open = ToBlkZone(geometry_, {ZoneId(2), ZoneState::kImplicitlyOpen, 3 * kTestZone / 4, 8192});
  EXPECT_EQ(open.start, 2 * kTestZoneSectors);
  EXPECT_EQ(open.len, kTestZoneSectors);
  EXPECT_EQ(open.capacity, kTestZoneSectors * 3 / 4);
  EXPECT_EQ(open.wp, open.start + 16);
  EXPECT_EQ(open.type, BLK_ZONE_TYPE_SEQWRITE_REQ);
  EXPECT_EQ(open.cond, BLK_ZONE_COND_IMP_OPEN);
  const blk_zone full = ToBlkZone(geometry_, {ZoneId(0), ZoneState::kFull, 3 * kTestZone / 4, 3 * kTestZone / 4});
  EXPECT_EQ(full.wp, kTestZoneSectors);
  EXPECT_EQ(full.cond, BLK_ZONE_COND_FULL);
}

}  // namespace
}  // namespace isozone
