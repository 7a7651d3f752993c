#include "device/linux/nvme_calls.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.h"
#include "base/units.h"
#include "device/linux/transfers.h"
#include "testing/assert_ok.h"

namespace isozone {
namespace {

using testing::HasSubstr;
using Kind = KernelTransfer::Kind;

constexpr uint16_t kDoNotRetry = 0x4000;

KernelTransfer Transfer(Kind kind, std::byte* data, uint64_t position, uint64_t length) {
  KernelTransfer transfer;
  transfer.kind = kind;
  transfer.data = data;
  transfer.position = position;
  transfer.length = length;
  return transfer;
}

TEST(NvmeCalls, AReadIsACommandInBlocksOfTheNamespace) {
  std::byte data{};
  // Beyond 2^32 blocks, so that its place has a second half.
  const auto command = NvmeCalls(7, 512).CommandOf(Transfer(Kind::kRead, &data, (5ULL << 41) + 3 * 512, 128 * kKiB));
  EXPECT_EQ(command.opcode, 0x02);
  EXPECT_EQ(command.nsid, 7U);
  EXPECT_EQ(command.addr, reinterpret_cast<uint64_t>(&data));
  EXPECT_EQ(command.data_len, 128 * kKiB);
  EXPECT_EQ(command.cdw10, 3U);
  EXPECT_EQ(command.cdw11, 5U);
  EXPECT_EQ(command.cdw12, 255U) << "one less than the blocks";
}

TEST(NvmeCalls, OnlyADurableWriteForcesUnitAccess) {
  std::byte data{};
  KernelTransfer write = Transfer(Kind::kWrite, &data, 4096, 4096);
  EXPECT_EQ(NvmeCalls(1, 4096).CommandOf(write).opcode, 0x01);
  EXPECT_EQ(NvmeCalls(1, 4096).CommandOf(write).cdw12, 0U);
  write.durable = true;
  EXPECT_EQ(NvmeCalls(1, 4096).CommandOf(write).cdw12, 1U << 30);
}

TEST(NvmeCalls, AFlushHasNoData) {
  const auto command = NvmeCalls(3, 4096).CommandOf(Transfer(Kind::kFlush, nullptr, 0, 0));
  nvme_uring_cmd wanted{};
  wanted.nsid = 3;  // and opcode 0
  EXPECT_EQ(std::memcmp(&command, &wanted, sizeof(command)), 0);
}

TEST(NvmeCalls, ASubmissionIsAnEntryOfTwiceTheSize) {
  std::array<io_uring_sqe, 2> entry{};
  std::memset(entry.data(), 0xFF, sizeof(entry));
  std::byte data{};
  const NvmeCalls calls(1, 4096);
  const KernelTransfer read = Transfer(Kind::kRead, &data, 4096, 4096);
  calls.Prepare(read, 9, entry[0]);
  EXPECT_EQ(entry[0].opcode, IORING_OP_URING_CMD);
  EXPECT_EQ(entry[0].fd, 9);
  EXPECT_EQ(entry[0].cmd_op, NVME_URING_CMD_IO);
  EXPECT_EQ(entry[0].flags, 0);
  const nvme_uring_cmd wanted = calls.CommandOf(read);
  EXPECT_EQ(std::memcmp(entry[0].cmd, &wanted, sizeof(wanted)), 0);
  EXPECT_TRUE((calls.ring_flags() & IORING_SETUP_SQE128) != 0 && (calls.ring_flags() & IORING_SETUP_CQE32) != 0);
}

TEST(NvmeCalls, ARingThatLosesErrorsIsNotUsed) {
  EXPECT_EQ(NvmeCalls(1, 4096, {6, 7}).why_no_ring(), "");
  EXPECT_EQ(NvmeCalls(1, 4096, {7, 3}).why_no_ring(), "");
  const NvmeCalls old(1, 4096, {6, 6});
  const auto best = Transfers::Make(TransferPath::kBest, -1, old);
  ISOZONE_ASSERT_OK(best.status());
  EXPECT_EQ((*best)->name(), "NVMe passthrough, 32 threads (io_uring: Linux before 6.7 loses errors of NVMe commands)");
  const Status ring = Transfers::Make(TransferPath::kRing, -1, old).status();
  EXPECT_EQ(ring.code(), StatusCode::kNotSupported);
  EXPECT_THAT(ring.ToString(), HasSubstr("Isozone does not use io_uring: Linux before 6.7 loses errors"));
}

TEST(NvmeCalls, SuccessMovesAllBytes) {
  const NvmeCalls calls(1, 4096);
  EXPECT_EQ(calls.ResultOf(Transfer(Kind::kRead, nullptr, 0, 8192), 0), 8192);
  EXPECT_EQ(calls.ResultOf(Transfer(Kind::kWrite, nullptr, 0, 8192), 0), 8192);
  EXPECT_EQ(calls.ResultOf(Transfer(Kind::kFlush, nullptr, 0, 0), 0), 0);
}

TEST(NvmeCalls, ReadsAndFlushesThatMayPassAreToBeSentAgainAndWritesAreNot) {
  const NvmeCalls calls(1, 4096);
  const KernelTransfer read = Transfer(Kind::kRead, nullptr, 0, 4096);
  const KernelTransfer write = Transfer(Kind::kWrite, nullptr, 0, 4096);
  const KernelTransfer flush = Transfer(Kind::kFlush, nullptr, 0, 0);
  // Internal Path Error and Host Path Error, Aborted by Host, Command Aborted due to SQ Deletion, Namespace Not Ready
  // without Do Not Retry.
  for (const int status : {0x4300, 0x4370, 0x371, 0x4008, 0x082}) {
    EXPECT_EQ(calls.ResultOf(read, status), -EAGAIN) << status;
    EXPECT_EQ(calls.ResultOf(flush, status), -EAGAIN) << status;
    EXPECT_NE(calls.ResultOf(write, status), -EAGAIN) << status;
  }
  EXPECT_EQ(calls.ResultOf(read, 0x281 | kDoNotRetry), -ENODATA);
  EXPECT_EQ(calls.ResultOf(read, -EINTR), -EINTR) << "LinuxDevice sends it again";
  EXPECT_EQ(calls.ResultOf(write, -EINTR), -ENOLINK) << "lost on its way";
}

TEST(NvmeCalls, AnyAnswerOfTheControllerEndsAProbe) {
  const NvmeCalls calls(1, 4096);
  KernelTransfer probe = Transfer(Kind::kRead, nullptr, 0, 4096);
  probe.is_probe = true;
  // Success, LBA Out of Range with and without Do Not Retry, Unrecovered Read Error; given up during a reset.
  for (const int answer : {0, 0x80, 0x4080, 0x281, -EINTR}) EXPECT_EQ(calls.ResultOf(probe, answer), 4096) << answer;
  for (const int error : {EACCES, ENOTTY, EOPNOTSUPP, EAGAIN}) EXPECT_EQ(calls.ResultOf(probe, -error), -error);
}

TEST(NvmeCalls, AStatusIsTheErrorOfABlockDevice) {
  EXPECT_EQ(ErrorOfNvme(0x1BD), EOVERFLOW);     // Too Many Active Zones
  EXPECT_EQ(ErrorOfNvme(0x1BE), ETOOMANYREFS);  // Too Many Open Zones
  EXPECT_EQ(ErrorOfNvme(0x080), EREMOTEIO);     // LBA Out of Range
  EXPECT_EQ(ErrorOfNvme(0x021), EREMOTEIO);     // Command Interrupted
  EXPECT_EQ(ErrorOfNvme(0x081), ENOSPC);        // Capacity Exceeded
  EXPECT_EQ(ErrorOfNvme(0x083), EBADE);         // Reservation Conflict
  EXPECT_EQ(ErrorOfNvme(0x002), EOPNOTSUPP);    // Invalid Field
  EXPECT_EQ(ErrorOfNvme(0x286), ENODATA);       // Access Denied
  EXPECT_EQ(ErrorOfNvme(0x282), EILSEQ);        // End-to-end Guard Check Error
  EXPECT_EQ(ErrorOfNvme(0x020), EPERM);         // Namespace is Write Protected
  EXPECT_EQ(ErrorOfNvme(0x280), ENODATA);       // Write Fault
  EXPECT_EQ(ErrorOfNvme(0x281), ENODATA);       // Unrecovered Read Error
  EXPECT_EQ(ErrorOfNvme(0x370), ENOLINK);       // Host Path Error
  EXPECT_EQ(ErrorOfNvme(0x1B9), EIO);           // Zone Is Full: the report of the zone says so
  EXPECT_EQ(ErrorOfNvme(0x1BC | kDoNotRetry), EIO);
  EXPECT_EQ(ErrorOfNvme(0x1BE | kDoNotRetry), ETOOMANYREFS) << "whatever else the status says";
}

TEST(NvmeCalls, ACallOfWhatTakesNoCommandsFails) {
  KernelTransfer flush = Transfer(Kind::kFlush, nullptr, 0, 0);
  const FileDescriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  flush.file = null.get();
  EXPECT_EQ(NvmeCalls(1, 4096).Call(flush), -ENOTTY);
}

}  // namespace
}  // namespace isozone
