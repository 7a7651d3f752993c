// Sequences of operations: what there is to do with two files and two directories, and every way to do up to so many
// things one after another.
//
//   create NAME KIND     a new, empty file of kind data or log; an existing one is replaced
//   append NAME          two and a half blocks more
//   sync NAME            of the file
//   rename NAME NAME     of a file, over another or not
//   link NAME NAME
//   unlink NAME
//   truncate NAME        to half of its size
//   extend NAME          with zeros, by a block and a half
//   overwrite NAME       from a quarter of the file on, beyond its end if it is short
//   mkdir NAME, rmdir NAME
//   fsync /              of a directory
//
// Files are A and B, in the root or in one directory each: /A, /B, /C/A, /D/B. Directories are /C and /D. A sequence is
// of operations that succeed, each with an effect.
//
// Exchanging A with B and C with D changes nothing where it does not change the state to begin with; of two sequences
// that differ by that only one counts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "fs/file_system.h"

namespace isozone::crash {

enum class Action : uint8_t {
  kCreate,
  kAppend,
  kSync,
  kRename,
  kLink,
  kUnlink,
  kTruncate,
  kExtend,
  kOverwrite,
  kMakeDirectory,
  kRemoveDirectory,
  kSyncDirectory,
};

struct Operation {
  Action action = Action::kSyncDirectory;
  std::string path = "/";
  std::string to;                   // kRename, kLink
  FileKind kind = FileKind::kData;  // kCreate

  std::string ToString() const;
  bool operator==(const Operation&) const = default;
};

using Sequence = std::vector<Operation>;

// "create /A log; append /A", and back. kInvalidArgument naming what is not understood.
std::string ToString(const Sequence& sequence);
Result<Sequence> ParseSequence(const std::string& text);

// Every operation that there is, whatever the state.
std::vector<Operation> AllOperations();

// The names that there are, as far as it takes to say what can be done.
class Names {
 public:
  // Whether `operation` would succeed and have an effect.
  bool Allows(const Operation& operation) const;
  // `operation` is allowed.
  void Apply(const Operation& operation);

 private:
  struct File {
    FileKind kind = FileKind::kData;
    uint32_t id = 0;
    bool empty = true;
  };
  bool IsFile(const std::string& path) const { return files_.contains(path); }
  bool HasParent(const std::string& path) const;
  bool IsEmptyDirectory(const std::string& path) const;

  std::map<std::string, File> files_;
  std::set<std::string> directories_;
  uint32_t next_id_ = 1;
};

// Every sequence of exactly `length` operations from `start` on; `symmetric`: of two that differ by an exchange of names,
// one.
void ForEachSequence(const Names& start, size_t length, bool symmetric,
                     const std::function<void(const Sequence&)>& visit);

}  // namespace isozone::crash
