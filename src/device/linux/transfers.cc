#include "device/linux/transfers.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/thread.h"

namespace isozone {
namespace {

constexpr uint32_t kSubmissions = 256;  // that can be prepared before the kernel is called: one is
constexpr int kTheFile = 0;             // the number of the one registered file
// How long the reaper sleeps between two looks at completions where the kernel does not let it wait for them.
constexpr std::chrono::milliseconds kBlindPause(1);

// Whether a submission, or a wait, that failed may succeed later: the kernel lacks memory for the moment.
bool IsTransient(int error) { return error == EAGAIN || error == EBUSY || error == EINTR || error == ENOMEM; }

}  // namespace

Result<std::unique_ptr<Transfers>> Transfers::Make(TransferPath path, int registered, const TransferCalls& calls) {
  std::string why;
  if (path != TransferPath::kThreads) {
    const std::string_view unused = calls.why_no_ring();
    int error = 0;
    std::unique_ptr<Transfers> ring;
    if (unused.empty()) ring = RingTransfers::Create(registered, error, calls);
    if (ring != nullptr) return ring;
    why = fmt::format("io_uring: {}", unused.empty() ? std::strerror(error) : unused);
    if (path == TransferPath::kRing) {
      return Status::NotSupported(fmt::format("{} {}; leave the option io= out to use threads",
                                              unused.empty() ? "the kernel refuses" : "Isozone does not use", why));
    }
  }
  return std::unique_ptr<Transfers>(std::make_unique<ThreadTransfers>(why, calls));
}

void Transfers::RunHere(const TransferCalls& calls, KernelTransfer& transfer) {
  transfer.result = calls.Call(transfer);
  transfer.done(transfer);
}

std::unique_ptr<RingTransfers> RingTransfers::Create(int registered, int& error, const TransferCalls& calls) {
  std::unique_ptr<RingTransfers> transfers(new RingTransfers(registered, calls));
  io_uring_params params{};
  params.flags = IORING_SETUP_CQSIZE | calls.ring_flags();
  params.cq_entries = 2 * kRingDepth;
  error = -::io_uring_queue_init_params(kSubmissions, &transfers->ring_, &params);
  if (error != 0) {
    transfers->ring_.ring_fd = -1;
    return nullptr;
  }
  if (registered >= 0) error = -::io_uring_register_files(&transfers->ring_, &registered, 1);
  if (error != 0) return nullptr;
  transfers->wake_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (transfers->wake_.get() < 0) {
    error = errno;
    return nullptr;
  }
  {
    const MutexLock lock(transfers->mu_);
    error = transfers->Send(nullptr);
  }
  if (error != 0) return nullptr;
  ::io_uring_ring_dontfork(&transfers->ring_);  // best effort: a child has no use for it
  auto reaper = StartThread("an io_uring", [ring = transfers.get()] { ring->Reap(); });
  if (!reaper.ok()) {
    error = EAGAIN;
    return nullptr;
  }
  transfers->reaper_ = std::move(reaper).value();
  return transfers;
}

RingTransfers::~RingTransfers() {
  if (ring_.ring_fd < 0) return;
  if (reaper_.joinable()) {
    {
      const MutexLock lock(mu_);
      stop_ = true;
    }
    ::eventfd_write(wake_.get(), 1);
    reaper_.join();
  }
  // The kernel ends a ring later than this returns, and would hold the device open until then.
  if (registered_ >= 0) ::io_uring_unregister_files(&ring_);
  ::io_uring_queue_exit(&ring_);
}

void RingTransfers::Start(KernelTransfer& transfer) {
  if (transfer.may_block) return RunHere(calls_, transfer);
  int error = 0;
  {
    const MutexLock lock(mu_);
    if (broken_ == 0 && at_kernel_ >= kRingDepth) {
      waiting_.push_back(&transfer);
      return;
    }
    error = Send(&transfer);
  }
  if (error == 0) return;
  transfer.result = -error;
  transfer.done(transfer);
}

int RingTransfers::Send(KernelTransfer* transfer) {
  if (broken_ != 0) return broken_;
  io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);  // never null: each one is submitted before the next
  const bool is_registered = transfer != nullptr && transfer->file == registered_;
  const int file = transfer == nullptr || is_registered ? kTheFile : transfer->file;
  if (transfer == nullptr) {
    ::io_uring_prep_poll_add(entry, wake_.get(), POLLIN);
  } else {
    calls_.Prepare(*transfer, file, *entry);
  }
  if (is_registered) ::io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE);
  ::io_uring_sqe_set_data(entry, transfer);
  int submitted = 0;
  do {
    submitted = ::io_uring_submit(&ring_);
    if (submitted < 0 && IsTransient(-submitted)) ::sched_yield();
  } while (submitted == 0 || (submitted < 0 && IsTransient(-submitted)));
  if (submitted < 0) {
    broken_ = -submitted;  // the entry stays where it is, so nothing may be submitted any more
    return broken_;
  }
  ++at_kernel_;
  return 0;
}

void RingTransfers::Reap() {
  ::prctl(PR_SET_NAME, "isozone-ring");
  bool blind = false;
  do {
    WaitForCompletions(blind);
  } while (TakeCompletions());
}

void RingTransfers::WaitForCompletions(bool& blind) {
  if (blind) return std::this_thread::sleep_for(kBlindPause);
  io_uring_cqe* first = nullptr;
  const int error = -::io_uring_wait_cqe(&ring_, &first);
  if (error == 0) return;
  if (IsTransient(error)) {
    ::sched_yield();
  } else {
    blind = true;
    Break(error);
  }
}

bool RingTransfers::TakeCompletions() {
  constexpr unsigned kBatch = 64;
  std::array<io_uring_cqe*, kBatch> entries{};
  std::array<KernelTransfer*, kBatch> completed{};
  const unsigned count = ::io_uring_peek_batch_cqe(&ring_, entries.data(), kBatch);
  bool stop = false;
  {
    // Whoever started a transfer has held this lock after it wrote the transfer: what it wrote is seen from here on.
    const MutexLock lock(mu_);
    stop = stop_;
    for (unsigned i = 0; i < count; ++i) {
      completed[i] = static_cast<KernelTransfer*>(::io_uring_cqe_get_data(entries[i]));
      if (completed[i] != nullptr) completed[i]->result = calls_.ResultOf(*completed[i], entries[i]->res);
    }
  }
  ::io_uring_cq_advance(&ring_, count);
  Refill(count);
  for (unsigned i = 0; i < count; ++i) {
    if (completed[i] != nullptr) completed[i]->done(*completed[i]);
  }
  return !stop;
}

void RingTransfers::Refill(uint32_t completed) {
  std::deque<KernelTransfer*> failed;
  int error = 0;
  {
    const MutexLock lock(mu_);
    at_kernel_ -= completed;
    while (error == 0 && !waiting_.empty() && at_kernel_ < kRingDepth) {
      error = Send(waiting_.front());
      if (error == 0) waiting_.pop_front();
    }
    if (error != 0) failed.swap(waiting_);
  }
  Fail(failed, error);
}

void RingTransfers::Break(int error) {
  std::deque<KernelTransfer*> failed;
  {
    const MutexLock lock(mu_);
    if (broken_ == 0) broken_ = error;
    failed.swap(waiting_);
  }
  Fail(failed, error);
}

void RingTransfers::Fail(std::deque<KernelTransfer*>& failed, int error) {
  for (KernelTransfer* transfer : failed) {
    transfer->result = -error;
    transfer->done(*transfer);
  }
}

std::string ThreadTransfers::name() const {
  return fmt::format("{}{} threads{}", calls_.name(), kThreads, why_.empty() ? "" : fmt::format(" ({})", why_));
}

void ThreadTransfers::Start(KernelTransfer& transfer) {
  if (transfer.may_block) return RunHere(calls_, transfer);
  threads_.Add([this, &transfer] { RunHere(calls_, transfer); });
}

}  // namespace isozone
