// ImageFile: the image file of an emulated SSD, opened, mapped, checked and locked.
//
// Header, live block and zone table are mapped shared and, for the writer, writable; their blocks are allocated when
// the image is made, so that storing to them cannot fail. The data area is mapped read-only even by the writer: reads
// are a memcpy, writes are a pwrite(). Measurements led to that (emulated_device_bench.cc): the first write to a block
// through the mapping takes a page fault for every 4 KiB, and neither populating, huge pages nor fallocate() beforehand
// make up for that. It also makes a full host file system an error code here instead of a SIGBUS. If the host fails to
// deliver a page that is read, a FaultGuard turns the SIGBUS into faulted().
//
// The image may lie on a block device without zones. There it begins at the first byte. Its blocks are given back by a
// discard, if the device has that. The device has one writer (O_EXCL), which may not be a mounted file system either.
//
// A sync that fails may lose any write since the last one that did not: the kernel keeps the pages in memory, but takes
// them for written, so that later syncs do not write them. Therefore the next writer in the same boot of the host
// writes them again before it does anything else.
//
// There is one writer. It holds an open-file-description lock on the first byte, which the kernel drops with the
// process. Read-only opens take no lock and see the writer's state through the mapping.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "base/status.h"
#include "device/emulated/fault_guard.h"
#include "device/emulated/image_format.h"
#include "device/open_device.h"

namespace isozone {

// An image in memory, which lives as long as this object. Devices open it by path() like any image, one after another
// or at the same time. Only this process and its children can use the path.
class MemoryImage {
 public:
  static Result<MemoryImage> Create(const ImageInfo& info);
  std::string path() const;

 private:
  explicit MemoryImage(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

// Thread safety: the owner orders WriteData and DropBlocks of one zone. Any thread may call the other methods.
class ImageFile {
 public:
  // Creates an image of empty zones. The file appears under `path` complete or not at all. kAlreadyExists if it exists.
  // On a block device it replaces whatever is there; one that is interrupted leaves no image. kInvalidArgument if the
  // device is too small.
  static Status Create(const std::string& path, const ImageInfo& info);
  // Opens the image at `path`. kNotFound if there is no file, or a block device that carries no image. kIoError if what
  // a failed sync may have lost cannot be written again.
  static Result<std::unique_ptr<ImageFile>> Open(const std::string& path, OpenMode mode);
  // Returns whether the block device at `path` carries an image that could not be opened, as `opened` says, and never
  // will be.
  static bool IsUnusable(const std::string& path, const Status& opened);
  // Makes the block device at `path` one that carries no image.
  static Status Erase(const std::string& path);
  ImageFile(const ImageFile&) = delete;
  ImageFile& operator=(const ImageFile&) = delete;
  // Closes the image. For a writer this is the orderly close, unless a sync has failed: then the next boot of the host
  // takes the image for that of a host that crashed.
  ~ImageFile();

  const ImageInfo& info() const { return info_; }
  // The entries of the zone table, which only a writer may change.
  std::span<ZoneEntry> table() { return table_; }
  std::span<const ZoneEntry> table() const { return table_; }
  LiveBlock& live() { return *live_; }
  const LiveBlock& live() const { return *live_; }
  // Returns whether the host crashed under the last writer, so that only durable data counts.
  bool host_crashed() const { return host_crashed_; }

  const std::byte* ZoneData(ZoneId zone) const {
    return mapping_ + layout_.data_offset + zone.value() * layout_.zone_stride;
  }
  Status WriteData(ZoneId zone, uint64_t offset, std::span<const std::byte> bytes);
  // Gives the blocks of the zone that lie wholly within [from, to) back to the host. Reads there are then undefined. If
  // a device refuses this, it is not asked again.
  Status DropBlocks(ZoneId zone, uint64_t from, uint64_t to);
  // Returns whether the host failed to deliver a part of the file. Then nothing read from it can be trusted.
  bool faulted() const { return guard_->faulted(); }
  // Makes the current content of the file survive a power cut of the host.
  Status Sync();

 private:
  ImageFile(std::string path, FileDescriptor fd, ImageInfo info, OpenMode mode, bool is_device);
  Status Lock();
  Status Map();
  Status WriteUnsyncedAgain();
  Status BeginWriting();
  uint64_t FilePosition(ZoneId zone, uint64_t offset) const;

  const std::string path_;
  const FileDescriptor fd_;
  const ImageInfo info_;
  const ImageLayout layout_;
  const OpenMode mode_;
  const bool is_device_;
  const uint64_t drop_unit_;      // bytes; blocks are given back in such units
  std::atomic<bool> discards_;    // the device gives blocks back
  std::byte* mapping_ = nullptr;  // of the whole file; writable before the data area
  std::unique_ptr<FaultGuard> guard_;
  LiveBlock* live_ = nullptr;
  std::span<ZoneEntry> table_;
  bool host_crashed_ = false;
  bool writing_ = false;  // holds the lock and signed the live block
  std::atomic<bool> sync_failed_{false};
  // One sync at a time: the kernel tells of an error only once, so that a second sync beside the one that fails would
  // succeed without what was lost.
  Mutex sync_mu_;
};

}  // namespace isozone
