// FuseRing: the kernel's requests by io_uring, instead of by read(2) and write(2) on /dev/fuse (Linux 6.14 and later,
// Documentation/filesystems/fuse-io-uring.rst).
//
// The kernel has a queue for each CPU. It gives a request to an entry of the queue of that CPU on which the program
// asks. A FuseRing is one such entry, with an io_uring of its own; the thread that it belongs to stays on that CPU. So
// the program and the thread that serves it take turns on one core, where a wake-up is a fraction of what it costs
// between two cores, and one system call both answers and waits for the next request. Where the CPU is taken offline
// meanwhile, the kernel lets the thread run anywhere; it returns with the first request that comes from that CPU again.
//
// What /dev/fuse gives in one piece comes here in three: the header of all requests, that of the operation, and the
// data. They are put together in front of the data, where libfuse takes them for what it knows:
//
//   | parts as the kernel exchanges them |   ... header, header of the operation | data, also of the answer |
//   0                                    kPage                              2 * kPage
//
// Until every queue has an entry, the kernel sends no request at all. If FUSE refuses an entry, all requests go on by
// way of /dev/fuse. If a security module forbids the command before FUSE sees it, FUSE waits for the entry for ever.
// Interrupts and FORGET come by /dev/fuse in any case.
//
// Thread safety: an object belongs to one thread, from Begin on.
#pragma once

#include <liburing.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "fuse/fuse_library.h"

namespace isozone {

class FuseRing {
 public:
  // Checks that this machine's kernel may be asked for it: that the parameter enable_uring of its module fuse is on.
  // Fails with kNotSupported otherwise.
  static Status CheckEnabled();
  // Returns the number of the kernel's queues: one for each CPU that this machine may ever have. kNotSupported if the
  // kernel does not say, or if the numbers of the CPUs have gaps.
  static Result<uint16_t> CountQueues();

  // Makes a ring for the connection that `channel` belongs to, which must stay open. kNotSupported if there is no
  // io_uring.
  static Result<std::unique_ptr<FuseRing>> Make(int channel, uint16_t queue);
  ~FuseRing();
  FuseRing(const FuseRing&) = delete;
  FuseRing& operator=(const FuseRing&) = delete;

  // Must be called first, by the thread that the ring belongs to from then on. That thread stays on the CPU of the
  // queue, if it may. kNotSupported if the ring cannot be used.
  Status Begin();
  // Gives the answer to the last request, if there was one, to the kernel, and waits for the next request. `request`
  // shows it until the next call. Returns 0; -EINTR if a signal came and it must be called again; any other -errno if
  // no request comes any more.
  int Next(fuse_buf& request);
  // Takes the answer to that request, as libfuse gives it to writev(2). Returns its size, or -1 and sets errno.
  ssize_t Answer(const iovec* parts, int count);
  // Returns whether the kernel took the entry.
  bool registered() const { return registered_; }
  // Returns kLongestRequest bytes in which the data of an answer may be made, so that nothing copies it. They take the
  // place of the request's data.
  std::span<std::byte> answer_data() { return memory_.span().subspan(2 * kPage); }

 private:
  static constexpr size_t kPage = 4096;
  struct Exchange;

  FuseRing(int channel, uint16_t queue);
  Exchange& exchange();
  void Submit();
  // Waits for what was submitted, and returns its result; -EINTR if it must be waited for once more.
  int WaitForResult();
  int Receive(fuse_buf& request);

  const int channel_;
  const uint16_t queue_;
  AlignedBuffer memory_;
  std::array<iovec, 2> parts_{};  // of memory_, as the kernel learns them
  io_uring ring_{};
  bool made_ = false;        // ring_ was made
  bool registered_ = false;  // the kernel has the entry
  bool waiting_ = false;     // something was submitted, and its result has not come
  uint64_t request_ = 0;     // the number of the request in hand
  bool answered_ = false;
};

}  // namespace isozone
