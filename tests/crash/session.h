// Session: executes operations on a mounted file system, and tells an oracle what each has done.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "crash/sequence.h"
#include "model/oracle.h"
#include "store/file_system.h"

namespace isozone::crash {

class Session {
 public:
  // `fs` and `oracle` must outlive this object. `closes`: files are closed after each operation.
  Session(FileSystem& fs, model::Oracle& oracle, bool closes) : fs_(fs), oracle_(oracle), closes_(closes) {}

  // Executes the operation. Returns only errors that the operation should not have returned.
  Status Do(const Operation& operation);
  // Closes all open files.
  Status Close();
  // The oracle for a power cut during the last call of Do or Close: the state before the call, and what it may have
  // added.
  const model::Oracle& during() const { return during_; }

 private:
  using Change = std::function<void(model::Oracle&)>;

  Status Execute(const Operation& operation);
  Status Create(const Operation& operation);
  Status Append(const Operation& operation);
  Status Sync(const Operation& operation);
  Status Resize(const Operation& operation);
  Status Overwrite(const Operation& operation);
  Status MakeDirectory(const Operation& operation);
  Status CloseAll();
  // Tells both oracles.
  void Tell(const Change& change);
  Result<model::Inode> InodeOf(const std::string& path);
  // The open writer of `path`, opened now if there is none.
  Result<FileWriter*> WriterOf(const std::string& path, model::Inode inode);
  std::string NewBytes(size_t size);

  FileSystem& fs_;
  model::Oracle& oracle_;
  model::Oracle during_;
  const bool closes_;
  Random random_{1};
  std::map<model::Inode, std::unique_ptr<FileWriter>> writers_;
};

}  // namespace isozone::crash
