#include "device/linux/transfers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/aligned_buffer.h"
#include "base/file_descriptor.h"
#include "base/latch.h"
#include "base/units.h"

namespace isozone {
namespace {

constexpr uint64_t kBlock = 4096;

// A file stands for the device: how transfers reach either is the same.
class TransfersTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    int error = 0;
    if (GetParam()) {
      transfers_ = RingTransfers::Create(file_.get(), error);
      if (transfers_ == nullptr) GTEST_SKIP() << "the kernel refuses io_uring: " << std::strerror(error);
    } else {
      transfers_ = std::make_unique<ThreadTransfers>("");
    }
  }

  void Submit(KernelTransfer& transfer, KernelTransfer::Kind kind, uint64_t block, AlignedBuffer& data) {
    transfer.kind = kind;
    transfer.data = data.data();
    transfer.length = data.size();
    transfer.position = block * kBlock;
    transfer.file = file_.get();
    transfers_->Start(transfer);
  }
  int64_t Run(KernelTransfer::Kind kind, uint64_t block, AlignedBuffer& data, bool durable = false) {
    KernelTransfer transfer;
    transfer.durable = durable;
    Latch latch;
    latch.Expect(transfer);
    Submit(transfer, kind, block, data);
    latch.Wait();
    return transfer.result;
  }

  FileDescriptor file_{::memfd_create("transfers", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  std::unique_ptr<Transfers> transfers_;
};

AlignedBuffer Block(int value) {
  AlignedBuffer data(kBlock);
  std::memset(data.data(), value, data.size());
  return data;
}

TEST_P(TransfersTest, WritesAndReadsBack) {
  AlignedBuffer written = Block(7);
  EXPECT_EQ(Run(KernelTransfer::Kind::kWrite, 3, written), static_cast<int64_t>(kBlock));
  EXPECT_EQ(Run(KernelTransfer::Kind::kWrite, 4, written, /*durable=*/true), static_cast<int64_t>(kBlock));
  AlignedBuffer none;
  EXPECT_EQ(Run(KernelTransfer::Kind::kFlush, 0, none), 0);
  AlignedBuffer read = Block(0);
  EXPECT_EQ(Run(KernelTransfer::Kind::kRead, 4, read), static_cast<int64_t>(kBlock));
  EXPECT_EQ(std::memcmp(read.data(), written.data(), kBlock), 0);
}

TEST_P(TransfersTest, SaysHowMuchWasMovedAndWhatFailed) {
  AlignedBuffer data = Block(1);
  EXPECT_EQ(Run(KernelTransfer::Kind::kRead, 9, data), 0) << "behind the end";
  EXPECT_EQ(Run(KernelTransfer::Kind::kWrite, 0, data), static_cast<int64_t>(kBlock));
  AlignedBuffer longer(3 * kBlock);
  EXPECT_EQ(Run(KernelTransfer::Kind::kRead, 0, longer), static_cast<int64_t>(kBlock));
  ASSERT_EQ(::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(Run(KernelTransfer::Kind::kWrite, 0, data), -EPERM);
}

TEST_P(TransfersTest, ReachesOtherFilesThanTheRegisteredOne) {
  const FileDescriptor other(::memfd_create("other", MFD_CLOEXEC));
  AlignedBuffer written = Block(3);
  AlignedBuffer read = Block(0);
  for (const auto& [kind, data] :
       {std::pair(KernelTransfer::Kind::kWrite, &written), std::pair(KernelTransfer::Kind::kRead, &read)}) {
    KernelTransfer transfer;
    transfer.kind = kind;
    transfer.data = data->data();
    transfer.length = data->size();
    transfer.file = other.get();
    Latch latch;
    latch.Expect(transfer);
    transfers_->Start(transfer);
    latch.Wait();
    EXPECT_EQ(transfer.result, static_cast<int64_t>(kBlock));
  }
  EXPECT_EQ(std::memcmp(read.data(), written.data(), kBlock), 0);
  EXPECT_EQ(Run(KernelTransfer::Kind::kRead, 0, read), 0) << "the registered one is still empty";
}

TEST_P(TransfersTest, ATransferThatMayBlockNeedsNoOtherThread) {
  AlignedBuffer data = Block(7);
  for (const auto kind : {KernelTransfer::Kind::kWrite, KernelTransfer::Kind::kRead, KernelTransfer::Kind::kFlush}) {
    std::thread::id completed_by;
    KernelTransfer transfer;
    transfer.may_block = true;
    transfer.context = &completed_by;
    transfer.done = [](KernelTransfer& done) {
      *static_cast<std::thread::id*>(done.context) = std::this_thread::get_id();
    };
    Submit(transfer, kind, 3, data);
    EXPECT_EQ(completed_by, std::this_thread::get_id());
    EXPECT_EQ(transfer.result, kind == KernelTransfer::Kind::kFlush ? 0 : static_cast<int64_t>(kBlock));
  }
  KernelTransfer wrong;
  wrong.may_block = true;
  wrong.done = [](KernelTransfer&) {};
  file_ = FileDescriptor();
  Submit(wrong, KernelTransfer::Kind::kRead, 0, data);
  EXPECT_EQ(wrong.result, -EBADF);
}

TEST_P(TransfersTest, KeepsManyInFlight) {
  constexpr size_t kCount = 4 * RingTransfers::kRingDepth;
  std::vector<AlignedBuffer> data;
  for (size_t i = 0; i < kCount; ++i) data.push_back(Block(static_cast<int>(i % 251)));
  std::vector<KernelTransfer> transfers(kCount);
  {
    Latch latch;
    for (size_t i = 0; i < kCount; ++i) {
      latch.Expect(transfers[i]);
      Submit(transfers[i], KernelTransfer::Kind::kWrite, i, data[i]);
    }
  }
  AlignedBuffer read(kBlock);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(transfers[i].result, static_cast<int64_t>(kBlock));
    ASSERT_EQ(Run(KernelTransfer::Kind::kRead, i, read), static_cast<int64_t>(kBlock));
    ASSERT_EQ(std::memcmp(read.data(), data[i].data(), kBlock), 0) << i;
  }
}

TEST_P(TransfersTest, ACompletionMayStartTheNextTransfer) {
  struct Chain {
    Transfers* transfers;
    int left;
    Latch* latch;
  };
  AlignedBuffer data = Block(5);
  Latch latch(1);
  Chain chain{transfers_.get(), 100, &latch};
  KernelTransfer transfer;
  transfer.context = &chain;
  transfer.done = [](KernelTransfer& done) {
    Chain& c = *static_cast<Chain*>(done.context);
    if (done.result != static_cast<int64_t>(kBlock) || --c.left == 0) return c.latch->CountDown();
    done.position += kBlock;
    c.transfers->Start(done);
  };
  Submit(transfer, KernelTransfer::Kind::kWrite, 0, data);
  latch.Wait();
  EXPECT_EQ(chain.left, 0);
}

// The descriptor of a ring of this process; -1 if it has none.
int RingDescriptor() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the one by which the folder is listed
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.find("io_uring") != std::string::npos) return std::stoi(entry.path().filename().string());
  }
  return -1;
}

// From some moment on the kernel refuses every system call on the ring, as after a filter of system calls was set up.
// The device is a pipe here, so that reads wait until the test wants them to end.
class BrokenRingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    device_ = FileDescriptor(ends[0]);
    writer_ = FileDescriptor(ends[1]);
    int error = 0;
    ring_ = RingTransfers::Create(device_.get(), error);
    if (ring_ == nullptr) GTEST_SKIP() << "the kernel refuses io_uring: " << std::strerror(error);
  }

  static void Break() {
    const FileDescriptor other(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ASSERT_GE(::dup2(other.get(), RingDescriptor()), 0);
  }
  void StartRead(KernelTransfer& transfer, AlignedBuffer& data) {
    transfer.file = device_.get();
    transfer.data = data.data();
    transfer.length = data.size();
    ring_->Start(transfer);
  }
  void Provide(int value) {
    const AlignedBuffer data = Block(value);
    ASSERT_EQ(::write(writer_.get(), data.data(), data.size()), static_cast<ssize_t>(data.size()));
  }

  FileDescriptor device_;
  FileDescriptor writer_;
  std::unique_ptr<RingTransfers> ring_;
};

TEST(RingTransfers, OutliveTheThreadThatMadeThem) {
  std::unique_ptr<RingTransfers> ring;
  int error = 0;
  std::thread([&] { ring = RingTransfers::Create(STDIN_FILENO, error); }).join();
  if (ring == nullptr) GTEST_SKIP() << "the kernel refuses io_uring: " << std::strerror(error);
  ring.reset();
}

TEST_F(BrokenRingTest, EndsWhileItsThreadWaits) {
  ASSERT_NO_FATAL_FAILURE(Break());
  AlignedBuffer data(kBlock);
  KernelTransfer transfer;
  Latch latch;
  latch.Expect(transfer);
  StartRead(transfer, data);
  latch.Wait();
  EXPECT_LT(transfer.result, 0);
  ring_.reset();
}

TEST_F(BrokenRingTest, CompletesWhatWasAtTheKernel) {
  std::array<AlignedBuffer, 3> data{AlignedBuffer(kBlock), AlignedBuffer(kBlock), AlignedBuffer(kBlock)};
  std::array<KernelTransfer, 3> transfers;
  {
    Latch latch;
    for (size_t i = 0; i < 2; ++i) {
      latch.Expect(transfers[i]);
      StartRead(transfers[i], data[i]);
    }
    ASSERT_NO_FATAL_FAILURE(Break());
    Provide(7);
    latch.WaitForAtMost(1);
    Provide(8);
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(transfers[i].result, static_cast<int64_t>(kBlock)) << i;
  EXPECT_EQ(static_cast<int>(data[0].data()[0]) + static_cast<int>(data[1].data()[0]), 7 + 8);
  Latch latch;
  latch.Expect(transfers[2]);
  StartRead(transfers[2], data[2]);
  latch.Wait();
  EXPECT_LT(transfers[2].result, 0);
}

TEST(ThreadTransfers, SayWhyTheyAreUsed) {
  EXPECT_EQ(ThreadTransfers("").name(), "32 threads");
  EXPECT_EQ(ThreadTransfers("io_uring: Operation not permitted").name(),
            "32 threads (io_uring: Operation not permitted)");
}

INSTANTIATE_TEST_SUITE_P(Both, TransfersTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ring" : "Threads"; });

}  // namespace
}  // namespace isozone
