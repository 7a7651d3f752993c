// Holes of files: copies keep them, so that a copy takes no more space than what it is a copy of, and no more time than
// its data. Whoever reads leaves out holes that are as long as its buffer, and reads shorter ones as zeros. Whoever
// writes takes whole blocks of zeros for a hole: they read the same, and need no space. Room is what files need where
// they are copied to.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "store/file_system.h"
#include "store/positional_file.h"

namespace isozone::cli {

constexpr size_t kHoleBlock = 4096;  // bytes: what is shorter, or lies across such blocks, is no hole

// The next part of a file: bytes, or a hole.
struct ContentRun {
  uint64_t length = 0;  // bytes; 0 at the end of the file
  bool is_hole = false;
};

// Returns what `content`, which is not empty, begins with: only whole blocks of zeros, or none of them.
ContentRun FirstRunOf(std::span<const std::byte> content);

// Calls `data` with a part of `content`, or `hole` with the length of one, until all of it was told in order.
template <typename OnData, typename OnHole>
Status ForEachRun(std::span<const std::byte> content, const OnData& data, const OnHole& hole) {
  while (!content.empty()) {
    const ContentRun run = FirstRunOf(content);
    ISOZONE_RETURN_IF_ERROR(run.is_hole ? hole(run.length) : data(content.first(run.length)));
    content = content.subspan(run.length);
  }
  return Status::Ok();
}

// Calls `data` with zeros, `bytes` in all.
template <typename OnData>
Status ForZeros(uint64_t bytes, const OnData& data) {
  static const std::vector<std::byte> zeros(kMiB);
  for (; bytes > 0; bytes -= std::min<uint64_t>(bytes, zeros.size())) {
    ISOZONE_RETURN_IF_ERROR(data(std::span(zeros).first(std::min<uint64_t>(bytes, zeros.size()))));
  }
  return Status::Ok();
}

// Gives `target` what was read as `run` into `buffer`.
template <typename Target>
Status AppendRun(Target& target, const ContentRun& run, std::span<const std::byte> buffer) {
  return run.is_hole ? target.AppendHole(run.length) : target.Append(buffer.first(run.length));
}

// Opens the file that has the name `path` on a device now. The errors are those of FileSystem::OpenForRead.
Result<std::shared_ptr<PositionalFile>> OpenWithHoles(FileSystem& file_system, const std::string& path);
// Reads what `file` has at `offset`: bytes, as many as fit into `buffer`, or a hole that is at least as long as that.
Result<ContentRun> ReadRun(PositionalFile& file, uint64_t offset, std::span<std::byte> buffer);

// Writes a file on a device from its beginning to its end, with holes. A log, which can have none, gets zeros. Data
// goes through a FileWriter, which may fill a device to its last block; a PositionalFile may not.
class SparseWriter {
 public:
  // Creates `path`, or replaces it.
  static Result<std::unique_ptr<SparseWriter>> Create(FileSystem& file_system, const std::string& path,
                                                      const CreateOptions& options);
  // Goes on behind the first `size` bytes of a file that has at least as many, and is no log.
  static Result<std::unique_ptr<SparseWriter>> Continue(FileSystem& file_system, const std::string& path, uint64_t size,
                                                        const CreateOptions& options);

  Status Append(std::span<const std::byte> content);
  Status AppendHole(uint64_t bytes);
  Status Sync();
  // Writes everything out, which is durable only if Sync was called. Must be the last call.
  Status Close();

 private:
  SparseWriter(FileSystem& file_system, std::string path, const CreateOptions& options)
      : file_system_(file_system), path_(std::move(path)), options_(options) {}
  Status AppendData(std::span<const std::byte> data);
  // Ends what writer_ writes, and opens the file as file_.
  Status EndData();

  FileSystem& file_system_;
  const std::string path_;
  const CreateOptions options_;
  std::unique_ptr<FileWriter> writer_;    // null behind a hole
  std::shared_ptr<PositionalFile> file_;  // null before the first hole
};

// TargetRoom: how many bytes fit into a target at most, and how many are to be written there. Each file takes whole
// blocks.
class TargetRoom {
 public:
  TargetRoom(uint64_t bytes, uint64_t block_size) : bytes_(bytes), block_size_(block_size) {}
  // Returns the room on a device: what is free, and what GC can free. `file_system` must outlive it.
  static TargetRoom OnDevice(const FileSystem& file_system);
  // Returns what is free in the local file system that `directory` is in.
  static Result<TargetRoom> In(const std::string& directory);

  uint64_t bytes() const { return bytes_; }  // bytes that are free
  // Adds a file that needs `data` bytes, of which `there` are in the target already.
  void Need(uint64_t data, uint64_t there = 0);
  // Fails with kNoSpace if not all of it fits. `where` is the target, as users know it.
  Status Check(const std::string& where) const;

 private:
  const uint64_t bytes_;
  const uint64_t block_size_;             // bytes
  const FileSystem* collects_ = nullptr;  // a device, where GC can free more than that; else null
  uint64_t needed_ = 0;                   // bytes
};

}  // namespace isozone::cli
