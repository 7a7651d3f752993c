// Oracle: the state that a file system must have, kept in memory.
//
// The oracle is told every change, in order, after the file system has accepted it, and knows from when on a change
// must survive a power cut. After a cut, the file system must hold the base (the state as of the last durable point)
// with the first k changes applied, for some k:
//
//   names      exactly those of base + k changes
//   contents   of each file, a prefix of what it held at some time from the k-th change on until the next change that
//              is not an append. The prefix is no shorter than what a Sync in that time covered, and no shorter than
//              what the k changes made part of the namespace (closing, truncating and overwriting a file do that)
//
// Appends alone do not depend on k: the bytes of a log become durable without the metadata. The oracle is also told of
// a change whose call failed half-way. As it is the last change, it may or may not be found.
//
// Thread safety: one thread at a time. If several threads have clients, each has its own Oracle for its own directory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "store/file_system.h"

namespace isozone::model {

using Inode = uint64_t;

struct File {
  bool is_directory = false;
  FileKind kind = FileKind::kData;
  std::string bytes;
  uint64_t published = 0;  // bytes that the metadata knows
};

struct State {
  std::map<std::string, Inode> names;  // absolute paths; the root is not in it
  std::map<Inode, File> files;         // every file that has a name, or had one while it was open

  const File* Find(const std::string& path) const;  // null: there is nothing of that name
  bool IsDirectory(const std::string& path) const;  // the root, which is empty, is one
  bool IsEmptyDirectory(const std::string& path) const;
  // The status of an operation that creates an entry at `path` if its parent is not a directory.
  StatusCode ParentCode(const std::string& path) const;
  StatusCode FileCode(const std::string& path) const;  // kOk, kNotFound, kNotDirectory, kIsDirectory
  uint64_t bytes() const;                              // of all files
};

// "/a" of "/a/b", and "" of "/a".
std::string ParentOf(const std::string& path);

// The result of a walk over a file system.
struct Found {
  std::map<std::string, Inode> names;
  std::map<Inode, File> files;
  std::vector<Inode> unreadable;  // files whose bytes are not known; only with `tolerate_unreadable`
};
// Walks over everything under `directory`, which is itself included unless it is the root. Checks that attributes,
// names and bytes agree.
Result<Found> Collect(FileSystem& fs, const std::string& directory, bool tolerate_unreadable = false);

class Oracle {
 public:
  // --- Changes ---
  void MakeDirectory(const std::string& path, Inode inode);
  void Create(const std::string& path, Inode inode, FileKind kind);  // replaces
  void Link(const std::string& from, const std::string& to);
  void Remove(const std::string& path);  // a name of a file, or an empty directory
  void Rename(const std::string& from, const std::string& to);
  void Append(Inode inode, std::string_view bytes);
  void Truncate(Inode inode, uint64_t size);
  void Overwrite(Inode inode, uint64_t offset, std::string_view bytes);
  void Close(Inode inode);
  // A writer failed: the file has only `size` of its bytes left.
  void Lose(Inode inode, uint64_t size);

  // --- Durable points ---
  // A Sync of the file returned OK.
  void Sync(Inode inode);
  // Every change so far is durable.
  void SyncMetadata();
  // The process may have ended before any later change: later calls of Sync and SyncMetadata no longer count.
  void EndDurability() { durability_ended_ = true; }

  const State& now() const { return now_; }
  // The handles of a file without a name are closed.
  void Forget(Inode inode) { now_.files.erase(inode); }

  // kCorruption with the difference.
  Status CheckAfterPowerCut(const Found& found) const;
  Status CheckExactly(const Found& found) const;

  // From here on, the state that was found is the durable state.
  void Adopt(const Found& found);

 private:
  enum class Kind : uint8_t {
    kMakeDirectory,
    kCreate,
    kLink,
    kRemove,
    kRename,
    kAppend,
    kTruncate,
    kOverwrite,
    kClose,
    kLose,
    kSync,
  };
  struct Change {
    Kind kind{};
    std::string path{};  // kLink, kRename: from
    std::string to{};
    Inode inode = 0;
    FileKind file_kind = FileKind::kData;
    uint64_t size = 0;  // kOverwrite: the offset
    std::string bytes{};
  };

  void Tell(Change change);
  static void Apply(State& state, const Change& change);
  // Whether `found` is `state`, which is the base with the first `k` changes applied.
  Status CheckAt(const State& state, size_t k, const Found& found) const;
  Status CheckFile(Inode inode, const File& file, size_t k, const File& found) const;

  State base_;
  State now_;
  std::vector<Change> changes_;  // since the base
  bool durability_ended_ = false;
};

// OK, or an error with the place where `found` stops being a prefix of `wanted`.
Status CheckPrefix(Inode inode, std::string_view found, std::string_view wanted);

}  // namespace isozone::model
