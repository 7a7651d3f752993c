// Client: does random operations on a file system, and checks the result of each, and the bytes that it reads, against
// an oracle. The sequence of operations depends only on the generator.
//
// Thread safety: one thread at a time. Several clients may use one file system, in different directories.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "model/choices.h"
#include "model/oracle.h"
#include "store/file_system.h"

namespace isozone::model {

struct ClientOptions {
  std::string directory;            // the client works only in it; empty: the root
  uint64_t max_append = 64 * kKiB;  // bytes
  uint64_t live_target = 0;         // bytes; above this, the client removes files more often than it creates them
  size_t max_writers = 4;
  bool alone = false;           // nothing else uses the device, so space that the client gives up must become free
  bool expects_faults = false;  // I/O errors may be returned, and are no failure
};

struct ClientCounters {
  uint64_t operations = 0;
  uint64_t bytes_appended = 0;
  uint64_t bytes_read = 0;
  uint64_t times_full = 0;  // times that an operation returned kNoSpace, and the client went on after removing files
  uint64_t io_errors = 0;
  uint64_t bytes_collected = 0;  // copied by GC that was asked for
};

class Client {
 public:
  Client(FileSystem& fs, Oracle& oracle, uint64_t seed, ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Makes the client's directory.
  Status Begin();
  // Does one operation. Returns only errors without an explanation: kCorruption if the file system contradicts the
  // oracle, otherwise the error of an operation that should not have failed.
  Status Step();
  // Closes all handles.
  Status CloseAll();

  const ClientCounters& counters() const { return counters_; }

 private:
  struct OpenWriter {
    Inode inode = 0;
    std::unique_ptr<FileWriter> writer;
  };
  struct OpenReader {
    Inode inode = 0;
    std::unique_ptr<FileReader> reader;
  };

  // --- Operations ---
  Status DoCreate();
  Status DoOpenForAppend();
  Status DoAppend();
  Status DoFlush();
  Status DoSync();
  Status DoWriteOut();
  Status DoTruncateWriter();
  Status DoClose();
  Status DoOpenReader();
  Status DoRead();
  Status DoReadAsync();
  Status DoCloseReader();
  Status DoStat();
  Status DoList();
  Status DoMakeDirectory();
  Status DoRemoveDirectory();
  Status DoUnlink();
  Status DoRename();
  Status DoLink();
  Status DoSetModified();
  Status DoTruncatePath();
  Status DoOverwrite();
  Status DoSyncMetadata();
  Status DoSettle();
  Status DoCollect();

  // --- Helpers ---
  bool IsOpen(Inode inode) const;
  bool HasWriter(Inode inode) const;
  Result<Inode> InodeOf(const std::string& path);
  // OK if `status` has the expected code; otherwise kCorruption with the difference.
  Status Expect(const Status& status, StatusCode expected, const char* what, const std::string& path);
  bool Tolerated(const Status& status) const;
  Status CheckRead(Inode inode, uint64_t offset, std::string_view bytes, uint64_t wanted, const Status& status);
  Status CloseWriter(size_t index);
  // A writer returned `error`: closes it, and finds out what is left of the file.
  Status OnWriterError(size_t index, const Status& error);
  Status Learn(Inode inode);
  // An Overwrite or Truncate failed half-way: finds out whether it was done.
  Status LearnAfter(Inode inode, const std::string& path, const std::string& before, const std::string& after,
                    const Status& error);
  void ForgetIfGone(Inode inode);
  void ForgetAllGone();
  Status MakeRoom();
  Status RemoveFiles(double share);
  Status RemoveAllNames(Inode inode);

  FileSystem& fs_;
  Oracle& oracle_;
  const State& now_;  // what the oracle expects
  Random random_;
  const ClientOptions options_;
  Choices choices_;
  ClientCounters counters_;
  std::vector<OpenWriter> writers_;
  std::vector<OpenReader> readers_;
};

}  // namespace isozone::model
