// Oracle: what a file system must hold, kept beside it in memory.
//
// It is told every change after the file system took it, in order, and knows from when on a change must survive a power
// cut. What is found after a cut must be the base (the state as of the last durable point) with the first k changes
// made, for some k:
//
//   names      exactly those of base + k changes
//   contents   of each file, a prefix of what it held, from the k-th change on, until the next change that is not an
//              append; no shorter than what a Sync in that time covered, and than what the k changes made part of the
//              namespace (closing a file does, truncating and overwriting too)
//
// Appends alone are not bound to k: the bytes of a log become durable without the metadata. A change whose call failed
// half-way is told as well: being the last, it may or may not be found.
//
// Thread safety: one thread at a time. Clients on several threads have an Oracle each, for their own directories.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "fs/file_system.h"

namespace isozone::model {

using Inode = uint64_t;

struct File {
  bool is_directory = false;
  FileKind kind = FileKind::kData;
  std::string bytes;
  uint64_t published = 0;  // so many of the bytes the metadata knows
};

struct State {
  std::map<std::string, Inode> names;  // absolute paths; the root is not in it
  std::map<Inode, File> files;         // everything that has a name, and what had one while it was open
};

// What a walk over a file system found.
struct Found {
  std::map<std::string, Inode> names;
  std::map<Inode, File> files;
  std::vector<Inode> unreadable;  // their bytes are not known; only with `tolerate_unreadable`
};
// Everything under `directory`, which is itself part of it unless it is the root. Checks on the way that attributes,
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
  // The process may have ended before any of what is told from here on: the two above no longer count.
  void EndDurability() { durability_ended_ = true; }

  const State& now() const { return now_; }
  // The handles of a file that has no name any more are closed.
  void Forget(Inode inode) { now_.files.erase(inode); }

  // kCorruption with what is wrong.
  Status CheckAfterPowerCut(const Found& found) const;
  Status CheckExactly(const Found& found) const;

  // From here on what was found is how it is, durably.
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
  // Whether `found` is `state`, the base with the first `k` changes made.
  Status CheckAt(const State& state, size_t k, const Found& found) const;
  Status CheckFile(Inode inode, const File& file, size_t k, const File& found) const;

  State base_;
  State now_;
  std::vector<Change> changes_;  // since the base
  bool durability_ended_ = false;
};

// "OK" or where `found` stops being a prefix of `wanted`.
Status CheckPrefix(Inode inode, std::string_view found, std::string_view wanted);

}  // namespace isozone::model
