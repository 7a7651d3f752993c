// FuseSession: a mounted directory, and the threads that serve what the kernel asks about it.
//
//   Mount     the directory is mounted; the kernel's requests wait
//   Start     threads serve requests: each takes one from a channel of its own (/dev/fuse, cloned), serves it, and
//             answers on that channel before it takes the next one. Where the kernel offers io_uring, other threads do
//             the same with a FuseRing each, and nearly all requests come to them
//   Unmount   the kernel writes out what it holds of files, and the mount ends. Files may be open: then it ends for new
//             users first, and what the kernel still sends is served until nothing comes any more. What somebody else
//             has mounted over the directory since then stays
//   ~         the threads have ended, and the mount is off the directory
//
// Whether there is io_uring is agreed on by FUSE_INIT, the first request: the threads of the rings wait for its answer.
// From then on the kernel holds requests back until all rings are there, so they have begun before a thread reads that
// request.
//
// The kernel asks for the capabilities of a file before each write to it, unless it hands over that duty: that a write,
// a truncation and a new owner take the set-user-id and set-group-id bits and the capabilities off a file
// (FUSE_HANDLE_KILLPRIV_V2). libfuse 3.14 knows no flag for that, so the session adds it to the answer to FUSE_INIT,
// and `operations` must do it.
//
// Thread safety: Mount, Start, WaitForRings, Unmount and the destructor belong to one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "fuse/fuse_library.h"
#include "fuse/fuse_options.h"
#include "fuse/fuse_ring.h"
#include "fuse/serving_threads.h"

namespace isozone {

class FuseSession {
 public:
  // Mounts `directory`, as PrepareDirectory gave it, as a file system of `source`. `operations` get `user_data`, which
  // must outlive this. kNotSupported without /dev/fuse; kPermissionDenied if this process may not mount.
  static Result<std::unique_ptr<FuseSession>> Mount(const fuse_lowlevel_ops& operations, void* user_data,
                                                    const std::string& directory, const std::string& source,
                                                    const FuseOptions& options);
  ~FuseSession();

  // Begins to serve. `ended` is called once, by a thread of the session, when the last thread is about to end: the
  // directory was unmounted, or the connection broken.
  Status Start(std::function<void()> ended);
  // Waits for the kernel's first request, after Start. OK if requests come by io_uring from then on. kNotSupported if
  // they come by /dev/fuse; the message says why.
  Status WaitForRings();
  // Ends the mount. If it returns OK, all that was written by then has been handed to `operations`. kBusy if programs
  // went on writing, and something of that is lost.
  Status Unmount();

  // Returns the device number of the mounted file system; 0 if it is not known.
  dev_t device() const { return device_; }

  // Returns kLongestRequest bytes of the calling thread for the data of an answer. To be called in an operation. They
  // take the place of the data of the request.
  static std::span<std::byte> AnswerData();

  FuseSession(const FuseSession&) = delete;
  FuseSession& operator=(const FuseSession&) = delete;

 private:
  FuseSession(std::string directory, const FuseOptions& options);

  Status OpenChannels();
  // Starts the threads of the rings. kNotSupported if the kernel offers no io_uring, or this process may not use it;
  // there are no rings then.
  Status StartRings();
  Status MakeRings();
  Status StartThread(std::function<void()> serve);
  void ThreadEnded();
  void Serve(int channel);
  void ServeRing(FuseRing& ring, ServingThreads& of_queue);
  // Serves requests until there is no next one. Returns the error that `next` ended with, or 0 if this session ends.
  int ServeRequests(const std::function<int(fuse_buf& request)>& next);
  Result<FileDescriptor> CloneChannel() const;
  // The mount that the directory shows: this one, another one, or none any more.
  enum class Shown : uint8_t { kThis, kAnother, kNothing };
  Shown WhatIsShown() const;
  // Serves until nothing has come for a while. Returns false if its patience ended before that.
  bool WaitUntilQuiet() const;
  void EndThreads();

  // libfuse reads and writes by these, in a thread of Serve.
  ssize_t ReadRequest(int channel, void* buffer, size_t size);
  ssize_t WriteAnswer(int channel, iovec* parts, int count);
  enum class Rings : uint8_t { kNotAgreed, kUsed, kUnused };
  // Adds to the answer to FUSE_INIT what libfuse 3.14 does not know. Returns whether it tells the kernel to use rings.
  bool CompleteInit(const iovec& answer) const;
  void Agree(Rings rings);
  static FuseSession& Of(void* user_data);

  const std::string directory_;
  const uint32_t thread_count_;
  const bool io_uring_;
  fuse_session* session_ = nullptr;  // set by Mount; libfuse's own is safe for threads
  std::string number_;               // device number of the mounted file system, set by Mount
  dev_t device_ = 0;                 // likewise, as stat(2) has it
  std::vector<FileDescriptor> channels_;
  std::vector<std::unique_ptr<FuseRing>> rings_;
  ServingThreads of_channels_;
  std::deque<ServingThreads> of_queues_;  // by CPU: the threads of its rings
  Status rings_started_;                  // set by Start
  std::vector<std::thread> threads_;
  std::function<void()> ended_;
  std::atomic<uint32_t> running_{0};       // threads that have not ended, and Start
  std::atomic<bool> stopping_{false};      // threads read no more
  std::atomic<uint64_t> init_request_{0};  // the number of the FUSE_INIT whose answer is to be completed; 0: none
  std::atomic<uint64_t> offered_{0};       // flags of that request
  std::atomic<Rings> agreed_{Rings::kNotAgreed};  // changes once
  std::atomic<uint64_t> requests_{0};             // read so far
  std::atomic<uint32_t> in_service_{0};           // read and not answered
};

}  // namespace isozone
