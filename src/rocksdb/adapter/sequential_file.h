// A file that is read from start to end: logs at recovery, CURRENT and MANIFEST, backups. There is no page cache below,
// so it reads ahead, one window at a time. Requests of at least a window go directly to the caller's memory.
//
// The file may grow while it is read, so the end of the file is never cached.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>

#include "base/aligned_buffer.h"
#include "base/units.h"
#include "rocksdb/adapter/file_class.h"
#include "rocksdb/adapter/mounted_system.h"
#include "store/file_system.h"

namespace isozone {

class SequentialFile : public rocksdb::FSSequentialFile {
 public:
  static constexpr size_t kWindow = 256 * kKiB;

  SequentialFile(std::string path, std::unique_ptr<FileReader> reader, std::shared_ptr<MountedSystem> system);
  ~SequentialFile() override;

  rocksdb::IOStatus Read(size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Skip(uint64_t n) override;
  rocksdb::IOStatus PositionedRead(uint64_t offset, size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                                   char* scratch, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus InvalidateCache(size_t offset, size_t length) override;

 private:
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out, IoClass io_class);
  Result<size_t> ReadNext(std::span<std::byte> out, IoClass io_class);
  std::span<const std::byte> Ahead() const;  // the data from position_ on that was read ahead

  const std::string path_;
  const FileType type_;
  std::unique_ptr<FileReader> reader_;
  const MountedSystem::OpenFile open_;
  uint64_t position_ = 0;
  AlignedBuffer window_;
  uint64_t window_offset_ = 0;  // in the file
  size_t window_length_ = 0;    // bytes of window_ that are valid
};

}  // namespace isozone
