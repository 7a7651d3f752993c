// The image file of an emulated SSD, opened: mapped, checked, locked.
//
// Header, live block and zone table are mapped shared and, for the writer, writable; their blocks are allocated when
// the image is made, so that storing to them cannot fail. The data area is mapped read-only even by the writer: reads
// are a memcpy, writes are pwrite(). That is by measurement (emulated_device_bench.cc): a first write to a block
// through the mapping pays a page fault for every 4 KiB, which populating, huge pages or fallocate() beforehand do not
// make up for; and it is how a full host file system becomes an error code here and not a SIGBUS. Where the host fails
// to deliver a page that is read, a FaultGuard turns the SIGBUS into faulted().
//
// One writer: it holds an open-file-description lock on the first byte, which the kernel drops with the process.
// Read-only opens take no lock and see the writer's state through the mapping.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "device/emulated/fault_guard.h"
#include "device/emulated/image_format.h"
#include "device/open_device.h"

namespace isozone {

// An open file descriptor, closed with its owner; -1 is none. Never that of a standard stream: where a process has one of
// these closed, what it prints would go into the file.
class FileDescriptor {
 public:
  // Takes over `fd`. May become -1, with errno.
  explicit FileDescriptor(int fd = -1);
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

// An image in memory, gone with this object. Devices open it by path() as they do any image, one after another or
// beside each other; the path means something in this process and its children only.
class MemoryImage {
 public:
  static Result<MemoryImage> Create(const ImageInfo& info);
  std::string path() const;

 private:
  explicit MemoryImage(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

// Thread safety: the owner orders WriteData and DropBlocks of one zone; everything else is safe from any thread.
class ImageFile {
 public:
  // Makes an image of empty zones. The file appears under `path` complete or not at all. kAlreadyExists.
  static Status Create(const std::string& path, const ImageInfo& info);
  static Result<std::unique_ptr<ImageFile>> Open(const std::string& path, OpenMode mode);
  ImageFile(const ImageFile&) = delete;
  ImageFile& operator=(const ImageFile&) = delete;
  // A writer's orderly close.
  ~ImageFile();

  const ImageInfo& info() const { return info_; }
  // To be changed by a writer only.
  std::span<ZoneEntry> table() { return table_; }
  std::span<const ZoneEntry> table() const { return table_; }
  LiveBlock& live() { return *live_; }
  const LiveBlock& live() const { return *live_; }
  // The host went down under the last writer: only what was durable counts.
  bool host_crashed() const { return host_crashed_; }

  const std::byte* ZoneData(ZoneId zone) const {
    return mapping_ + layout_.data_offset + zone.value() * layout_.zone_stride;
  }
  Status WriteData(ZoneId zone, uint64_t offset, std::span<const std::byte> bytes);
  // Gives the host back the blocks of the zone that lie wholly within [from, to); reads there are undefined.
  Status DropBlocks(ZoneId zone, uint64_t from, uint64_t to);
  // The host failed to deliver a part of the file; nothing read from it can be trusted.
  bool faulted() const { return guard_->faulted(); }
  // The file survives a power cut of the host as it is now.
  Status Sync();

 private:
  ImageFile(std::string path, FileDescriptor fd, ImageInfo info, OpenMode mode);
  Status Lock();
  Status Map();
  void BeginWriting();
  uint64_t FilePosition(ZoneId zone, uint64_t offset) const;

  const std::string path_;
  const FileDescriptor fd_;
  const ImageInfo info_;
  const ImageLayout layout_;
  const OpenMode mode_;
  std::byte* mapping_ = nullptr;  // of the whole file, writable before the data area
  std::unique_ptr<FaultGuard> guard_;
  LiveBlock* live_ = nullptr;
  std::span<ZoneEntry> table_;
  bool host_crashed_ = false;
  bool writing_ = false;  // holds the lock and signed the live block
};

}  // namespace isozone
