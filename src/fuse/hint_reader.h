// HintReader: which lifetime a program has given to a file of a mounted directory (fcntl, F_SET_RW_HINT). FUSE does not
// pass it on; the kernel keeps it in its inode, and tells it to who opens the file.
//
// A process of its own opens the file. To open it is a request to the daemon, so a daemon that did it would wait for
// itself: if it were killed, or dumped its core, in that moment, the kernel would wait for its thread, and that for an
// answer that nobody gives any more. The mount would hang, and the device would stay in use. The process here has
// nothing of the daemon but a socket. When the daemon has gone, the kernel ends what it waits for, and the socket says
// that it is over.
//
//   a thread of the daemon        this process
//   path, device, inode    ->
//                                 finds the path (O_PATH), which needs no more than names and permissions
//                                 is it that inode of that device? What else could have come there is left alone
//                                 opens it for reading, reads the hint, closes it
//   waits                  <-     the hint
//
// The daemon asks while it serves the first write to a file. So a program has it open, and the file that is open here
// makes nobody's unmount fail: it is closed before the answer, and closing sends nothing that waits for the write
// (FOPEN_NOFLUSH; without -o writeback=on).
//
// Time. The process needs one thread of the daemon to answer it (serving_threads.h), and that may serve something long.
// So the daemon waits for kPatienceNs at most, and goes on without the hint. After a question whose answer has not come
// yet, it asks no other one: whatever holds the process up costs one wait. Whatever else may fail, there is no hint.
//
// Thread safety: any thread; Start while the caller's thread is the only one of the process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "base/status.h"

namespace isozone {

class HintReader {
 public:
  static constexpr int64_t kPatienceNs = 10'000'000;
  static constexpr uint64_t kNoHint = 0;  // RWH_WRITE_LIFE_NOT_SET

  struct File {
    std::string path;  // absolute, without symbolic links
    dev_t device = 0;
    uint64_t inode = 0;
  };

  static Result<std::unique_ptr<HintReader>> Start();
  // Ends the process. The directory must no longer be served, so that nothing is left for which the process may wait.
  ~HintReader();
  HintReader(const HintReader&) = delete;
  HintReader& operator=(const HintReader&) = delete;

  // Returns RWH_WRITE_LIFE_*, as the program has set it; kNoHint if it has not, or if that could not be found out in
  // time.
  uint64_t Read(const File& file) ISOZONE_EXCLUDES(mu_);

  pid_t process() const { return process_; }

 private:
  HintReader(FileDescriptor socket, pid_t process);

  // Waits for the turn of this thread to ask. Returns false if that does not come by the deadline.
  bool TakeTurn(int64_t deadline_ns) ISOZONE_EXCLUDES(mu_);
  void EndTurn() ISOZONE_EXCLUDES(mu_);

  // --- Called by the thread whose turn it is ---
  bool Send(const File& file);
  // Returns the answer to the last question; empty if it does not come by the deadline.
  std::optional<uint64_t> Receive(int64_t deadline_ns);
  void NoteEnd();

  const FileDescriptor socket_;
  const pid_t process_;
  uint64_t asked_ = 0;     // number of the last question
  uint64_t answered_ = 0;  // number of the last question whose answer has come
  bool ended_ = false;     // the process has ended

  Mutex mu_;
  CondVar turn_ended_;
  bool turn_taken_ ISOZONE_GUARDED_BY(mu_) = false;
};

}  // namespace isozone
