// Filler: fills a file system to the last block, changes it while it is full, and empties it, as a user could. It tells
// an oracle what each operation has done.
//
// Only operations that add something may answer "No space", which includes a rename to a longer name. Removing,
// syncing, cutting files short, and all other renames must work on any device.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "model/oracle.h"
#include "store/file_system.h"

namespace isozone::crash {

class Filler {
 public:
  // Called after each operation with its name, and with the oracle for a power cut during the operation. May be empty.
  // An error ends the current call of the filler.
  using After = std::function<Status(const std::string& operation, const model::Oracle& during)>;

  // `fs` and `oracle` must outlive this object. With the same seed, Fill makes the same files in the same order.
  Filler(FileSystem& fs, model::Oracle& oracle, uint64_t seed, After after);

  // Creates many small files with long names, and some larger ones, until there is no space; then ever smaller files;
  // then blocks, until no kind of file gets one; then names alone. Some files are synced. In some runs names come
  // first, and a log stays open.
  Status Fill();
  // Creates files of whole blocks, from a zone's size down to a block, until there is no space: what the device can
  // take.
  Status FillBlocks();
  // Does `operations` operations of any kind.
  Status Change(uint64_t operations);
  // Removes everything, in a random order.
  Status Empty();

  uint64_t written() const { return written_; }  // bytes written to files by this object

 private:
  // Returns false if there is no space.
  using Operation = std::function<Result<bool>()>;
  Result<bool> Do(const std::string& name, const Operation& operation);
  // Does an operation that must not fail for lack of space.
  Status Must(const std::string& name, const std::function<Status()>& operation);
  void Tell(const std::function<void(model::Oracle&)>& change);

  // --- Filling ---
  Status FillNames(Random& random);
  Status FillFiles(Random& random, uint64_t largest);
  Status FillWith(Random& random, uint64_t size, const CreateOptions& options);
  Result<bool> Write(const std::string& path, uint64_t size, const CreateOptions& options, bool sync);
  Result<bool> WriteTo(FileWriter& writer, model::Inode inode, uint64_t size, bool sync);
  // A writer failed with `error`, or could not be closed. Finds out what is left of its file.
  Result<bool> Learn(const std::string& path, model::Inode inode, const Status& error);
  Status OpenLog();
  Status AppendToLog();
  Status CloseLog();

  // --- Changing ---
  Status ChangeOnce();
  Status Rename(const std::string& from, const std::string& to);
  Status Truncate(const std::string& path);
  Status Unlink(const std::string& path);
  Status SyncMetadata();
  Status Collect();

  std::string NewPath(Random& random);
  std::vector<std::string> Files() const;  // names of files, without that of the log
  Result<model::Inode> InodeOf(const std::string& path);
  std::string Bytes(uint64_t size);

  FileSystem& fs_;
  model::Oracle& oracle_;
  model::Oracle during_;
  const uint64_t seed_;
  Random random_;
  const After after_;
  uint64_t written_ = 0;
  uint64_t names_ = 0;
  std::unique_ptr<FileWriter> log_;
  model::Inode log_inode_ = 0;
};

}  // namespace isozone::crash
