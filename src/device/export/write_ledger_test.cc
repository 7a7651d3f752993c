#include "device/export/write_ledger.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/latch.h"
#include "device/export/export_test_util.h"
#include "device/passing_device.h"

namespace isozone {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kSlots = 8;

// A device of which appends can fail, or never arrive.
class FailingDevice final : public PassingDevice {
 public:
  using PassingDevice::PassingDevice;

  void Submit(DeviceRequest& request) override {
    if (!fails && !loses) return PassingDevice::Submit(request);
    request.status = fails ? DeviceStatus::kWriteFault : DeviceStatus::kSuccess;
    request.done(request);
  }

  bool fails = false;
  bool loses = false;  // says that it did, and did not: as if the server had died before
};

class WriteLedgerTest : public testing::Test {
 protected:
  void SetUp() override { StartServer(); }

  // As after a kill: the memory is what the last server has left.
  void StartServer() {
    ledger_.reset();
    auto ledger = WriteLedger::Create(device_, kSlots, memory_);
    ISOZONE_ASSERT_OK(ledger.status());
    ledger_ = std::move(*ledger);
  }

  // A write or append of blocks that reaches the device, and is not answered.
  void Send(uint32_t slot, DeviceOp op, uint64_t offset, std::vector<std::byte> data) {
    DeviceRequest request = Request(op, offset, data);
    Latch latch;
    latch.Expect(request);
    ledger_->Submit(slot, request);
    latch.Wait();
    ledger_->Ended(request);
  }
  static DeviceRequest Request(DeviceOp op, uint64_t offset, std::vector<std::byte>& data) {
    DeviceRequest request;
    request.op = op;
    request.offset = DeviceOffset(offset);
    request.data = data.data();
    request.length = data.size();
    return request;
  }
  std::vector<WriteLedger::Leftover> Find(DeviceOp op, uint64_t offset, size_t blocks) {
    std::vector<std::byte> data(blocks * 4096);
    return ledger_->Find(Request(op, offset, data));
  }

  MemoryImage image_ = std::move(EmulatedDevice::CreateInMemory(ExportGeometry()).value());
  std::unique_ptr<EmulatedDevice> emulated_ =
      std::move(EmulatedDevice::Open(image_.path(), OpenMode::kReadWrite, {}).value());
  FailingDevice device_{*emulated_};
  std::vector<uint64_t> words_ = std::vector<uint64_t>(WriteLedger::MemorySize(kSlots) / 8);
  std::span<std::byte> memory_ = std::as_writable_bytes(std::span(words_));
  std::unique_ptr<WriteLedger> ledger_;
};

// It is done anew, and its place is then that of another append, which may even have the same bytes.
TEST_F(WriteLedgerTest, ForgetsAnAppendThatTheDeviceDidNotGet) {
  device_.loses = true;
  Send(0, DeviceOp::kAppend, 0, Blocks(1, 2));
  device_.loses = false;
  StartServer();
  EXPECT_THAT(Find(DeviceOp::kAppend, 0, 2), IsEmpty());
}

TEST_F(WriteLedgerTest, LeavesBehindWhatWasNotAnswered) {
  Send(0, DeviceOp::kWrite, 0, Blocks(1, 2));
  Send(1, DeviceOp::kWrite, 8192, Blocks(2, 1));
  ledger_->Answer(0);
  EXPECT_THAT(Find(DeviceOp::kWrite, 8192, 1), IsEmpty()) << "what this server does is not left behind";
  StartServer();
  EXPECT_THAT(Find(DeviceOp::kWrite, 0, 2), IsEmpty()) << "answered";
  EXPECT_THAT(Find(DeviceOp::kWrite, 8192, 2), IsEmpty()) << "of another length";
  EXPECT_THAT(Find(DeviceOp::kAppend, 0, 1), IsEmpty());
  ASSERT_THAT(Find(DeviceOp::kWrite, 8192, 1), SizeIs(1));
}

TEST_F(WriteLedgerTest, KnowsWhereAppendsWent) {
  Send(0, DeviceOp::kWrite, kTestZone, Blocks(1, 2));
  ledger_->Answer(0);
  Send(0, DeviceOp::kAppend, kTestZone, Blocks(2, 1));
  Send(1, DeviceOp::kAppend, kTestZone, Blocks(3, 1));
  StartServer();
  const auto found = Find(DeviceOp::kAppend, kTestZone, 1);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].place.value(), kTestZone + 8192);
  EXPECT_EQ(found[1].place.value(), kTestZone + 12288);
  ledger_->Adopt(5, found[0]);
  EXPECT_THAT(Find(DeviceOp::kAppend, kTestZone, 1), SizeIs(1));
  StartServer();
  EXPECT_THAT(Find(DeviceOp::kAppend, kTestZone, 1), SizeIs(2)) << "what was adopted, but not answered";
}

TEST_F(WriteLedgerTest, DoesNotBelieveThePlacesBehindAnAppendThatFailed) {
  Send(0, DeviceOp::kAppend, 0, Blocks(1, 1));
  device_.fails = true;
  Send(1, DeviceOp::kAppend, 0, Blocks(2, 1));
  device_.fails = false;
  Send(2, DeviceOp::kAppend, 0, Blocks(3, 1));
  StartServer();
  const auto found = Find(DeviceOp::kAppend, 0, 1);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].place.value(), 4096U) << "asked for again when nothing was under way";
}

TEST_F(WriteLedgerTest, AResetDropsWhatWasLeftInTheZone) {
  Send(0, DeviceOp::kAppend, 0, Blocks(1, 1));
  Send(1, DeviceOp::kWrite, kTestZone, Blocks(1, 1));
  StartServer();
  ledger_->ZoneWasReset(ZoneId(0));
  EXPECT_THAT(Find(DeviceOp::kAppend, 0, 1), IsEmpty());
  EXPECT_THAT(Find(DeviceOp::kWrite, kTestZone, 1), SizeIs(1));
}

TEST_F(WriteLedgerTest, SeveralServersMayDieInARow) {
  for (uint32_t i = 0; i < 6; ++i) {
    Send(0, DeviceOp::kWrite, i * kTestZone, Blocks(1, 1));
    StartServer();
    StartServer();
  }
  for (uint32_t i = 0; i < 6; ++i) EXPECT_THAT(Find(DeviceOp::kWrite, i * kTestZone, 1), SizeIs(1)) << i;
}

TEST_F(WriteLedgerTest, RefusesTheMemoryOfAnotherDevice) {
  MemoryImage other = std::move(EmulatedDevice::CreateInMemory(ExportGeometry()).value());
  auto device = EmulatedDevice::Open(other.path(), OpenMode::kReadWrite, {});
  ISOZONE_ASSERT_OK(device.status());
  const Status status = WriteLedger::Create(**device, kSlots, memory_).status();
  EXPECT_TRUE(status.Is(StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), HasSubstr(device_.name()));
}

}  // namespace
}  // namespace isozone
