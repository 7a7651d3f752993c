// How reads, writes and flushes reach open files, which are block devices or zones, in two ways that differ in nothing
// else:
//
//   RingTransfers    io_uring: one system call for each transfer, and one thread that takes the completions. It calls
//                    `done` and never touches the memory of a transfer.
//   ThreadTransfers  a pool of threads with system calls that block. For containers and kernels that refuse io_uring.
//
// TransferCalls says what a transfer is at the kernel, in both.
//
// A transfer that may block is carried out by the thread that starts it, in both: that thread would wait for a
// completion anyway, and no other thread need be woken for it.
//
// RingTransfers keeps at most kRingDepth transfers at the kernel, so that its completions always find room; further
// ones wait in order, and start when others complete. The kernel may begin to refuse the ring at any time, for example
// because the process forbids itself such system calls. Every transfer that is to start then ends with that error.
// Those that are at the kernel complete, because completions lie in memory that is shared with it: the thread looks
// there from time to time. It is woken to end by an eventfd, for which nothing need be submitted.
//
// KernelTransfer::file names the open file, which stays open until the transfer has completed.
//
// Thread safety: any thread may call Start, also from `done`. When an object is destroyed, all of its transfers must
// have completed.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "base/status.h"
#include "device/linux/block_kernel.h"
#include "device/linux/task_threads.h"
#include "device/linux/transfer_calls.h"

namespace isozone {

enum class TransferPath : uint8_t {
  kBest,     // io_uring, or threads where the kernel refuses it or TransferCalls does not want it
  kRing,     // io_uring, or an error
  kThreads,  // threads
};

class Transfers {
 public:
  // Makes the transfers of `path`. `registered` is a file that most transfers use; -1 if there is none. It and `calls`
  // must outlive this object. kNotSupported if `path` is kRing and no ring can be used.
  static Result<std::unique_ptr<Transfers>> Make(TransferPath path, int registered,
                                                 const TransferCalls& calls = FileCalls::Get());

  virtual ~Transfers() = default;
  virtual void Start(KernelTransfer& transfer) = 0;
  // Returns the name for people: "io_uring", "32 threads", ...
  virtual std::string name() const = 0;
  // Returns whether the kernel carries transfers out while no thread waits in it for them.
  virtual bool asynchronous() const = 0;

 protected:
  // Carries out `transfer` by a system call that blocks, and completes it.
  static void RunHere(const TransferCalls& calls, KernelTransfer& transfer);
};

class RingTransfers final : public Transfers {
 public:
  static constexpr uint32_t kRingDepth = 1024;

  // Takes the arguments of Make. Returns null, with the reason in `error` (a value of errno), if the kernel refuses.
  static std::unique_ptr<RingTransfers> Create(int registered, int& error,
                                               const TransferCalls& calls = FileCalls::Get());
  ~RingTransfers() override;
  RingTransfers(const RingTransfers&) = delete;
  RingTransfers& operator=(const RingTransfers&) = delete;

  void Start(KernelTransfer& transfer) override;
  std::string name() const override { return std::string(calls_.name()) + "io_uring"; }
  bool asynchronous() const override { return true; }

 private:
  RingTransfers(int registered, const TransferCalls& calls) : registered_(registered), calls_(calls) {}

  // Hands `transfer`, or if that is null the wait for the eventfd, to the kernel. Returns 0, or the error for which it
  // has not been started.
  int Send(KernelTransfer* transfer) ISOZONE_REQUIRES(mu_);
  // The thread reaper_ runs this: it takes completions until the object is to be destroyed.
  void Reap();
  // Waits until there are completions. If the kernel refuses to let it wait, sets `blind`, and sleeps a while instead
  // from then on.
  void WaitForCompletions(bool& blind);
  // Takes the completions that there are, which may be none. Returns false if the object is to be destroyed.
  bool TakeCompletions();
  // Gives back the places of `completed` transfers, and starts those that wait for one.
  void Refill(uint32_t completed);
  // Ends the transfers that wait, and all that are still to come, with `error`.
  void Break(int error);
  static void Fail(std::deque<KernelTransfer*>& failed, int error);

  const int registered_;
  const TransferCalls& calls_;
  io_uring ring_{};      // the queue of submissions is guarded by mu_; that of completions belongs to reaper_
  FileDescriptor wake_;  // the eventfd
  Mutex mu_;
  bool stop_ ISOZONE_GUARDED_BY(mu_) = false;
  int broken_ ISOZONE_GUARDED_BY(mu_) = 0;  // the error after which nothing is submitted any more
  uint32_t at_kernel_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::deque<KernelTransfer*> waiting_ ISOZONE_GUARDED_BY(mu_);
  std::thread reaper_;
};

class ThreadTransfers final : public Transfers {
 public:
  static constexpr uint32_t kThreads = 32;

  // `why` says to people why threads are used; it may be empty. `calls` must outlive this object.
  explicit ThreadTransfers(std::string why, const TransferCalls& calls = FileCalls::Get())
      : why_(std::move(why)), calls_(calls) {}

  void Start(KernelTransfer& transfer) override;
  std::string name() const override;
  bool asynchronous() const override { return false; }

 private:
  const std::string why_;
  const TransferCalls& calls_;
  TaskThreads threads_{"isozone-io", kThreads};
};

}  // namespace isozone
