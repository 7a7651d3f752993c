// FileTree: one interface for the two trees of files that cp connects, the local file system and the one on a device.
//
// Thread safety: none. A tree must outlive the files that are opened through it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "isozone/holes.h"
#include "store/file_system.h"

namespace isozone::cli {

struct TreeEntry {
  bool is_directory = false;
  uint64_t size = 0;   // bytes
  uint64_t data = 0;   // bytes that are in no hole, roughly; not more than `size`
  uint32_t mode = 0;   // permission bits, 0 to 0777
  std::string target;  // of a symbolic link; empty for all others

  bool is_symlink() const { return !target.empty(); }
  bool is_file() const { return !is_directory && !is_symlink(); }
};

class FileSource {
 public:
  virtual ~FileSource() = default;
  // Reads what the file has at `offset`: bytes, as many as fit into `buffer`, or a hole that is at least as long as
  // that.
  virtual Result<ContentRun> Read(uint64_t offset, std::span<std::byte> buffer) = 0;
};

// A file that is being written. It gets its name when it is complete. If the sink is destroyed before, the file is
// removed, unless it was opened by FileTree::Resume.
class FileSink {
 public:
  virtual ~FileSink() = default;
  // Appends bytes. Blocks of zeros become holes (holes.h).
  virtual Status Append(std::span<const std::byte> data) = 0;
  virtual Status AppendHole(uint64_t bytes) = 0;
  // Makes everything appended durable, under the temporary name.
  virtual Status Sync() = 0;
  // Makes everything appended durable, gives the file its name, and replaces any file of that name.
  virtual Status Finish() = 0;
};

class FileTree {
 public:
  static constexpr char kTemporarySuffix[] = ".isozone-cp";

  virtual ~FileTree() = default;
  // Returns what `path` is. The local tree follows symbolic links, unless `itself`; on a device they are never
  // followed.
  virtual Result<TreeEntry> Stat(const std::string& path, bool itself) = 0;
  // Returns the names in a directory, sorted.
  virtual Result<std::vector<std::string>> List(const std::string& directory) = 0;
  // The `mode` of new files and directories is permission bits, 0 to 0777. In the local tree, those of the umask are
  // taken away, and the owner may always write into a directory.

  // Makes a directory. Does nothing if it exists; a symbolic link to a directory does not count as one.
  virtual Status MakeDirectory(const std::string& path, uint32_t mode) = 0;
  // Replaces a file or symbolic link of that name, atomically.
  virtual Status MakeSymlink(const std::string& path, const std::string& target) = 0;
  virtual Result<std::unique_ptr<FileSource>> Open(const std::string& path) = 0;
  // Returns the name of a file that will become `path`: `path` and kTemporarySuffix, shortened if that would be too
  // long. Only files of this program have such names, so whatever has one is replaced.
  virtual std::string TemporaryName(const std::string& path) const;
  // Creates a file that becomes `path`. Until then it has its temporary name, or none.
  virtual Result<std::unique_ptr<FileSink>> Create(const std::string& path, uint64_t expected_size, uint32_t mode) = 0;
  // Creates a file like Create, but keeps the first `size` bytes of the file with the temporary name. That must be
  // there, with no other name, unless `size` is 0. If the sink is destroyed before Finish, that file stays.
  virtual Result<std::unique_ptr<FileSink>> Resume(const std::string& path, uint64_t size, uint64_t expected_size,
                                                   uint32_t mode) = 0;
  // Returns the room for new files below `directory`.
  virtual Result<TargetRoom> Room(const std::string& directory) = 0;
  // Makes names that were created below `directory` durable.
  virtual Status Sync(const std::string& directory) = 0;
};

// Returns the local file system. Its files have no name until they are complete, so none is left over, however the
// process ends. If `nameless` is false, or the local file system does not support that, they have a temporary name,
// which a process that is killed leaves behind: `temporary`, for any file, or if that is empty FileTree::TemporaryName.
std::unique_ptr<FileTree> MakeLocalTree(bool nameless = true, const std::string& temporary = "");
// `file_system` must outlive the tree.
std::unique_ptr<FileTree> MakeDeviceTree(FileSystem& file_system);

}  // namespace isozone::cli
