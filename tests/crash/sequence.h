// Sequences of operations: everything that can be done with two files and two directories, and all sequences of such
// operations up to a given length.
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
// Files are A and B, in the root or in one directory each: /A, /B, /C/A, /D/B. Directories are /C and /D. All
// operations of a sequence succeed, and each has an effect.
//
// If exchanging A with B and C with D does not change the initial state, it changes nothing that matters. So of two
// sequences that differ only by that exchange, only one counts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/file_system.h"

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

// "create /A log; append /A", and back. kInvalidArgument with the part that is not understood.
std::string ToString(const Sequence& sequence);
Result<Sequence> ParseSequence(const std::string& text);

// Every possible operation, whatever the state.
std::vector<Operation> AllOperations();

// The names that exist, as far as needed to decide what can be done.
class Names {
 public:
  // Whether `operation` would succeed and have an effect.
  bool Allows(const Operation& operation) const;
  // Applies `operation`, which must be allowed.
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

// Calls the function for every sequence of exactly `length` operations from `start` on. `symmetric`: of two sequences
// that differ only by an exchange of names, only one.
void ForEachSequence(const Names& start, size_t length, bool symmetric,
                     const std::function<void(const Sequence&)>& visit);

}  // namespace isozone::crash
