// Holes of files: copies keep them, so that a copy takes no more space than what it is a copy of. Whoever writes takes
// whole blocks of zeros for a hole: they read the same, and need no space.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "fs/file_system.h"
#include "fs/positional_file.h"

namespace isozone::cli {

constexpr size_t kHoleBlock = 4096;  // bytes: what is shorter, or lies across such blocks, is no hole

// The length of what `content`, which is not empty, begins with: only blocks of zeros, or none at all.
struct ContentRun {
  size_t length = 0;
  bool is_hole = false;
};
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

// Writes a file on a device from its beginning to its end, with holes. A log, which can have none, gets zeros.
class SparseWriter {
 public:
  // Creates `path`, or replaces it.
  static Result<std::unique_ptr<SparseWriter>> Create(FileSystem& file_system, const std::string& path,
                                                      const CreateOptions& options);
  // Goes on behind the first `size` bytes of a file that has at least as many.
  static Result<std::unique_ptr<SparseWriter>> Continue(FileSystem& file_system, const std::string& path,
                                                        uint64_t size);

  Status Append(std::span<const std::byte> content);
  Status Sync();
  // Writes out; durable only if Sync was called. No more calls.
  Status Close();

 private:
  SparseWriter(FileSystem& file_system, std::string path, bool may_have_holes)
      : file_system_(file_system), path_(std::move(path)), may_have_holes_(may_have_holes) {}
  // From now on the file is written as one that may have holes.
  Status OpenForHoles();

  FileSystem& file_system_;
  const std::string path_;
  const bool may_have_holes_;
  std::unique_ptr<FileWriter> writer_;    // until the first hole
  std::shared_ptr<PositionalFile> file_;  // from then on
};

// Bytes of data that fit onto a device, at most: those that are free, and those that are dead.
uint64_t RoomOnDevice(const FileSystem& file_system);
// Likewise into the local file system that `directory` is in.
Result<uint64_t> RoomIn(const std::string& directory);
// kNoSpace: `needed` bytes do not fit into `room`. `where`: the target, as users know it.
Status CheckRoom(uint64_t needed, uint64_t room, const std::string& where);

}  // namespace isozone::cli
