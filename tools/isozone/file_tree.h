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

class FileSink {
 public:
  virtual ~FileSink() = default;
  virtual Status Append(std::span<const std::byte> data) = 0;
  // Everything appended is durable when this returns OK.
  virtual Status Finish() = 0;
};

class FileTree {
 public:
  virtual ~FileTree() = default;
  virtual Result<TreeEntry> Stat(const std::string& path) = 0;
  // Sorted.
  virtual Result<std::vector<std::string>> List(const std::string& directory) = 0;
  // Fine if it exists.
  virtual Status MakeDirectory(const std::string& path) = 0;
  virtual Result<std::unique_ptr<FileSource>> Open(const std::string& path) = 0;
  virtual Result<std::unique_ptr<FileSink>> Create(const std::string& path, uint64_t expected_size) = 0;
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // Best effort, after another error that is the one to report.
  virtual void RemoveQuietly(const std::string& path) = 0;
  // Names made below `directory` are durable when this returns OK.
  virtual Status Sync(const std::string& directory) = 0;
};

std::unique_ptr<FileTree> MakeLocalTree();
// `file_system` outlives the tree.
std::unique_ptr<FileTree> MakeDeviceTree(FileSystem& file_system);

}  // namespace isozone::cli
