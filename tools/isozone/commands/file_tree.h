// One face for the two trees of files that cp joins: the local file system and the one on a device.
//
// Thread safety: none. A tree outlives the files opened through it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "fs/file_system.h"

namespace isozone::cli {

struct TreeEntry {
  bool is_directory = false;
  uint64_t size = 0;  // bytes
};

class FileSource {
 public:
  virtual ~FileSource() = default;
  // The next bytes; 0 at the end.
  virtual Result<size_t> Read(std::span<std::byte> buffer) = 0;
};

// A file that is being made. It gets its name when it is whole; what has no name when the sink goes is removed with it.
class FileSink {
 public:
  virtual ~FileSink() = default;
  virtual Status Append(std::span<const std::byte> data) = 0;
  // Everything appended is durable when this returns OK, and has the file's name, in place of what had it.
  virtual Status Finish() = 0;
};

class FileTree {
 public:
  static constexpr char kTemporarySuffix[] = ".isozone-cp";

  virtual ~FileTree() = default;
  virtual Result<TreeEntry> Stat(const std::string& path) = 0;
  // Sorted.
  virtual Result<std::vector<std::string>> List(const std::string& directory) = 0;
  // Fine if it exists.
  virtual Status MakeDirectory(const std::string& path) = 0;
  virtual Result<std::unique_ptr<FileSource>> Open(const std::string& path) = 0;
  // A file that becomes `path`. Until then it has another name, `path` and kTemporarySuffix, or none.
  virtual Result<std::unique_ptr<FileSink>> Create(const std::string& path, uint64_t expected_size) = 0;
  // Names made below `directory` are durable when this returns OK.
  virtual Status Sync(const std::string& directory) = 0;
};

// What the trees make has no name before it is whole: nothing is left of it, however the process ends. `nameless` false,
// or where the local file system cannot do that, it has a temporary one, which a process that is killed leaves.
std::unique_ptr<FileTree> MakeLocalTree(bool nameless = true);
// `file_system` outlives the tree.
std::unique_ptr<FileTree> MakeDeviceTree(FileSystem& file_system);

}  // namespace isozone::cli
