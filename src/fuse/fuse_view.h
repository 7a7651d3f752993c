// FuseView: what all operations of a mounted directory share, and how they answer.
//
// Inodes. The kernel's node numbers are the inodes of InodeFiles, whose root has the number that the kernel gives to
// it. Numbers are not used again, so the kernel may remember a node for as long as it likes: nothing is counted, and
// FORGET means nothing. The kernel may also forget a node and ask for it again by its number alone, for a handle of
// name_to_handle_at(2); the generation of nodes tells those of a device that was formatted anew. A file that lost its
// last name lives as long as a handle of it is open, and all handles of one file share one PositionalFile.
//
// Caches. This is the only writer of the file system, so the kernel may keep names, attributes and pages until it
// changes them itself. All that is read and written goes by way of the page cache, so that each program and each memory
// map sees every write. (Direct I/O of one handle of a file beside pages that others read is not safe: before Linux 6.6
// a direct write leaves such pages as they were, and later ones drop them before the write, or after it and not for all
// writes.) A read-only mount may run beside a writer of another process, and keeps all for a second.
//
// Permissions. The kernel checks them (default_permissions) by the modes that it is told here. What belongs to user and
// group 0, as all does that was never given an owner, is shown as that of the one who mounts: who may write to the
// device may write to it.
//
// Thread safety: any thread. Each operation answers once, in its own thread.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "base/status.h"
#include "fuse/file_handle.h"
#include "fuse/fuse_library.h"
#include "fuse/fuse_options.h"
#include "fuse/hint_reader.h"
#include "fuse/thread_jobs.h"
#include "store/file_system.h"
#include "store/inode_files.h"

namespace isozone {

// Returns the errno that a program gets for a status. kNotFound says that an inode has gone, and is ESTALE: the kernel
// then looks up again the name by which it was asked, and goes on with what has that name now. Operations in which a
// name or an attribute may be missing answer that themselves.
int ErrnoOf(const Status& status);

class FuseView {
 public:
  FuseView(FileSystem& file_system, InodeFiles& inodes, const FuseOptions& options);
  static FuseView& Of(fuse_req_t request);

  FileSystem& file_system() const { return file_system_; }
  InodeFiles& inodes() const { return inodes_; }
  OpenHandles& handles() { return handles_; }
  ThreadJobs& thread_jobs() { return thread_jobs_; }
  const FuseOptions& options() const { return options_; }
  // Returns the seconds that the kernel may keep what it is told.
  double timeout_s() const { return options_.read_only ? 1 : 86400; }

  // Returns the attributes as the options show them to users. Looks at the extents of a file.
  struct stat StatOf(const FileAttributes& attributes);
  fuse_entry_param EntryOf(const FileAttributes& attributes);

  // Lets `reader`, which must outlive this, read the hints of programs. The files are shown in `directory`, and
  // `device` is that of stat(2). To be called before the first request.
  void UseHints(HintReader& reader, const std::string& directory, dev_t device);
  // Notes what the kernel can do. Hints are used only if it closes a file that was read without asking for anything
  // (hint_reader.h).
  void NoteKernel(const fuse_conn_info& connection);
  // Returns whether the hints of programs can be read.
  bool has_hints() const { return has_hints_.load(std::memory_order_relaxed); }
  // Returns the lifetime that a program gave to an open file. Empty if it gave none, or if that cannot be told now. To
  // be called in an operation, since it waits for other requests.
  std::optional<Lifetime> LifetimeByHintOf(uint64_t inode);

  // Returns whether a file with the set-user-id or set-group-id bit was ever seen. If not, a write need not ask for
  // them.
  bool SetIdSeen() const { return set_id_seen_.load(std::memory_order_relaxed); }
  // Takes these bits off a file, as a write or a new owner does.
  Status DropSetId(uint64_t inode);

  // Logs an error of which the program sees only a number, so that somebody learns the reason. Of kNoSpace and
  // kReadOnly it logs the first only.
  void Report(const Status& status);
  // Counts a write that was refused because it was in place. Logs it, unless the last one was refused in the same file.
  void RefusedInPlace(uint64_t inode, uint64_t offset, pid_t thread);
  uint64_t refused_in_place() const { return refused_in_place_; }

 private:
  FileSystem& file_system_;
  InodeFiles& inodes_;
  const FuseOptions options_;
  const uid_t roots_user_ = ::geteuid();
  const gid_t roots_group_ = ::getegid();
  const uint32_t generation_;
  OpenHandles handles_;
  ThreadJobs thread_jobs_;
  HintReader* hint_reader_ = nullptr;
  std::string directory_;
  dev_t device_ = 0;
  std::atomic<bool> has_hints_{false};
  std::atomic<bool> set_id_seen_{false};
  std::atomic<bool> full_reported_{false};
  std::atomic<bool> read_only_reported_{false};
  std::atomic<uint64_t> refused_in_place_{0};
  std::atomic<uint64_t> last_refused_inode_{0};
};

// Runs an operation, which answers `request` itself and returns OK, or returns the status to answer with.
template <typename Operation>
void Answer(fuse_req_t request, const Operation& operation) {
  FuseView& view = FuseView::Of(request);
  int error = 0;
  try {
    const Status status = operation(view);
    if (status.ok()) return;
    view.Report(status);
    error = ErrnoOf(status);
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  }
  ::fuse_reply_err(request, error);
}

// These add their operations to the table, each those of one subject.
void AddNameOperations(fuse_lowlevel_ops& operations);
void AddAttributeOperations(fuse_lowlevel_ops& operations);
void AddDirectoryOperations(fuse_lowlevel_ops& operations);
void AddFileOperations(fuse_lowlevel_ops& operations);
// Returns the table of all operations, with the one that greets the kernel.
fuse_lowlevel_ops FuseOperations();

// Answers with an errno that no StatusCode has, such as EEXIST. For operations that answer themselves.
inline Status AnswerErrno(fuse_req_t request, int error) {
  ::fuse_reply_err(request, error);
  return Status::Ok();
}

}  // namespace isozone
