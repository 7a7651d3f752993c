#include "device/emulated/image_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/boot_id.h"
#include "base/log.h"
#include "device/linux/block_device_node.h"
#include "device/linux/refusals.h"

namespace isozone {
namespace {

// The page size of the host: the kernel gives blocks of files back in these units.
constexpr uint64_t kHostPage = 4096;

std::string Quote(const std::string& path) { return "'" + path + "'"; }

// Writes all of `bytes` at `position`. Returns false with errno set if the file could not take them.
bool WriteFully(int fd, std::span<const std::byte> bytes, uint64_t position) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(position));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0) errno = ENOSPC;
      return false;
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
    position += static_cast<uint64_t>(n);
  }
  return true;
}

// Whether the device discards blocks.
bool Discards(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return false;
  const std::string most = QueueAttribute(st.st_rdev, "discard_max_bytes").value_or("0");
  return most.find_first_of("123456789") != std::string::npos;
}

// Tells a block device that it may forget these bytes. Returns false with errno set if it refuses, which harms nothing.
bool Discard(int fd, uint64_t position, uint64_t length) {
  std::array<uint64_t, 2> range{position, length};
  return ::ioctl(fd, BLKDISCARD, range.data()) == 0;
}

// The unit in which blocks are given back.
uint64_t DropUnit(int fd, bool is_device) {
  int block = 0;
  if (!is_device || ::ioctl(fd, BLKSSZGET, &block) != 0 || block < 0) return kHostPage;
  return std::max(kHostPage, static_cast<uint64_t>(block));
}

void WarnOfDiscard(const std::string& path, int error) {
  Log().warn("{} refuses to discard blocks: {}; those of zones that are reset stay in use", path, std::strerror(error));
}

// Opens a block device that may carry an image. It is not opened with O_DIRECT, because all who have it open share its
// pages in memory, as they do those of a file.
Result<FileDescriptor> OpenDevice(const std::string& path, OpenMode mode) {
  ISOZONE_ASSIGN_OR_RETURN(const BlockDeviceNode device, FindBlockDevice(path));
  const std::string model = QueueAttribute(device.number, "zoned").value_or("none");
  if (!model.starts_with("none")) return HasZones(path);
  return OpenBlockDevice(device, mode, 0);
}

// The size of a file or block device.
Result<uint64_t> SizeOf(int fd, const std::string& path) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  if (size < 0) return Status::FromErrno(errno, fmt::format("cannot tell the size of {}", Quote(path)));
  return static_cast<uint64_t>(size);
}

// Writes the table of empty zones. Returns false with errno set on failure.
bool WriteTable(int fd, uint32_t zone_count) {
  std::vector<ZoneEntry> table(zone_count);
  for (ZoneEntry& entry : table) StoreContent(entry, {ZoneState::kEmpty, 0});
  return WriteFully(fd, std::as_bytes(std::span(table)), kZoneTableOffset);
}

// Turns `fd`, an empty file, into an image. Returns false with errno set on failure.
bool FillImage(int fd, std::span<const std::byte> header, const ImageLayout& layout, uint32_t zone_count) {
  const uint64_t table_end = kZoneTableOffset + zone_count * sizeof(ZoneEntry);
  if (const int error = AllocateStart(fd, table_end); error != 0) {
    errno = error;
    return false;
  }
  return ::ftruncate(fd, static_cast<off_t>(layout.file_size)) == 0 && WriteTable(fd, zone_count) &&
         WriteFully(fd, header, 0);
}

Status OpenError(int error, const std::string& path, OpenMode mode) {
  switch (error) {
    case ENOENT:
      return Status::NotFound(
          fmt::format("there is no image {}; correct the path, or create it with 'isozone mkfs'", Quote(path)));
    case EACCES:
    case EPERM:
    case EROFS:
      return Status::PermissionDenied(
          fmt::format("not allowed to open {} {}; change its permissions, or open it as its owner", Quote(path),
                      mode == OpenMode::kReadOnly ? "for reading" : "for writing"));
    case EISDIR:
      return Status::Corruption(fmt::format("{} is a directory, not an image; name a file", Quote(path)));
    default:
      return Status::FromErrno(error, fmt::format("cannot open image {}", Quote(path)));
  }
}

Result<ImageInfo> ReadInfo(int fd, const std::string& path) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Status::FromErrno(errno, fmt::format("cannot read image {}", Quote(path)));
  if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
    return Status::Corruption(fmt::format("{} is not a regular file; name an image file", Quote(path)));
  }
  std::vector<std::byte> block(kHeaderBlockSize);
  const ssize_t n = ::pread(fd, block.data(), block.size(), 0);
  if (n < 0) return Status::FromErrno(errno, fmt::format("cannot read image {}", Quote(path)));
  if (S_ISBLK(st.st_mode) && !BeginsImage(block)) {
    return Status::NotFound(
        fmt::format("{} carries no image of an emulated SSD; make one with 'isozone mkfs emu:{}'", path, path));
  }
  auto info = ParseImageHeader(std::span(block).first(static_cast<size_t>(n)));
  if (!info.ok()) return info.status().WithContext(path);
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(fd, path));
  if (const uint64_t wanted = ImageLayout(info->geometry).file_size; size < wanted) {
    return Status::Corruption(
        fmt::format("{}: the image is cut off at {} of {} bytes; restore it from a copy, or create a new image", path,
                    size, wanted));
  }
  return info;
}

// Without a header there is no image: it comes last.
Status CreateOnDevice(const std::string& path, std::span<const std::byte> header, const DeviceGeometry& geometry) {
  ISOZONE_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenDevice(path, OpenMode::kReadWrite));
  const ImageLayout layout(geometry);
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(fd.get(), path));
  ISOZONE_RETURN_IF_ERROR(CheckImageFits(geometry, path, size));
  std::vector<std::byte> begin(kHeaderBlockSize);
  if (::pread(fd.get(), begin.data(), begin.size(), 0) == static_cast<ssize_t>(begin.size()) && BeginsImage(begin)) {
    return Status::AlreadyExists(fmt::format("{} carries an image already", path));  // another process was faster
  }
  const std::vector<std::byte> zeros(layout.data_offset);
  const uint64_t data = layout.file_size - layout.data_offset;
  const bool emptied = WriteFully(fd.get(), zeros, 0) && WriteTable(fd.get(), geometry.zone_count);
  if (emptied && Discards(fd.get()) && !Discard(fd.get(), layout.data_offset, data)) WarnOfDiscard(path, errno);
  const bool written =
      emptied && ::fdatasync(fd.get()) == 0 && WriteFully(fd.get(), header, 0) && ::fdatasync(fd.get()) == 0;
  return written ? Status::Ok() : Status::FromErrno(errno, fmt::format("cannot write image {}", Quote(path)));
}

}  // namespace

Result<MemoryImage> MemoryImage::Create(const ImageInfo& info) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::byte> header, FormatImageHeader(info));
  FileDescriptor fd(::memfd_create("isozone-image", MFD_CLOEXEC));
  if (fd.get() < 0 || !FillImage(fd.get(), header, ImageLayout(info.geometry), info.geometry.zone_count)) {
    return Status::FromErrno(errno, "cannot make an image in memory");
  }
  return MemoryImage(std::move(fd));
}

std::string MemoryImage::path() const { return fmt::format("/proc/self/fd/{}", fd_.get()); }

Status ImageFile::Create(const std::string& path, const ImageInfo& info) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::byte> header, FormatImageHeader(info));
  if (IsBlockDevice(path)) return CreateOnDevice(path, header, info.geometry);
  const std::string unfinished = fmt::format("{}.new-{}", path, ::getpid());
  const auto error = [&](const char* what) {
    return Status::FromErrno(errno, fmt::format("cannot {} image {}", what, Quote(path)));
  };
  const FileDescriptor fd(::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) return error("create");
  Status status;
  if (!FillImage(fd.get(), header, ImageLayout(info.geometry), info.geometry.zone_count)) {
    status = error("write");
  } else if (::link(unfinished.c_str(), path.c_str()) != 0) {
    status = error("create");
  }
  ::unlink(unfinished.c_str());
  return status;
}

bool ImageFile::IsUnusable(const std::string& path, const Status& opened) {
  if (!IsBlockDevice(path) || !(opened.Is(StatusCode::kCorruption) || opened.Is(StatusCode::kNotSupported)))
    return false;
  const auto fd = OpenDevice(path, OpenMode::kReadOnly);
  if (!fd.ok()) return false;
  std::vector<std::byte> begin(kHeaderBlockSize);
  return ::pread(fd->get(), begin.data(), begin.size(), 0) == static_cast<ssize_t>(begin.size()) && BeginsImage(begin);
}

Status ImageFile::Erase(const std::string& path) {
  ISOZONE_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenDevice(path, OpenMode::kReadWrite));
  const std::vector<std::byte> zeros(kHeaderBlockSize);
  if (WriteFully(fd.get(), zeros, 0) && ::fdatasync(fd.get()) == 0) return Status::Ok();
  return Status::FromErrno(errno, fmt::format("cannot erase the image on {}", path));
}

Result<std::unique_ptr<ImageFile>> ImageFile::Open(const std::string& path, OpenMode mode) {
  const int access = mode == OpenMode::kReadOnly ? O_RDONLY : O_RDWR;
  const bool is_device = IsBlockDevice(path);
  FileDescriptor fd;
  if (is_device) {
    ISOZONE_ASSIGN_OR_RETURN(fd, OpenDevice(path, mode));
  } else {
    fd = FileDescriptor(::open(path.c_str(), access | O_CLOEXEC));
    if (fd.get() < 0) return OpenError(errno, path, mode);
  }
  ISOZONE_ASSIGN_OR_RETURN(ImageInfo info, ReadInfo(fd.get(), path));
  std::unique_ptr<ImageFile> image(new ImageFile(path, std::move(fd), std::move(info), mode, is_device));
  ISOZONE_RETURN_IF_ERROR(image->Map());
  if (mode == OpenMode::kReadWrite) ISOZONE_RETURN_IF_ERROR(image->Lock());
  if (const Status table = CheckZoneTable(image->info_.geometry, image->table_); !table.ok()) {
    return table.WithContext(path);
  }
  if (mode == OpenMode::kReadWrite) {
    ISOZONE_RETURN_IF_ERROR(image->BeginWriting());
    ISOZONE_RETURN_IF_ERROR(image->WriteUnsyncedAgain());
  }
  return image;
}

ImageFile::ImageFile(std::string path, FileDescriptor fd, ImageInfo info, OpenMode mode, bool is_device)
    : path_(std::move(path)),
      fd_(std::move(fd)),
      info_(std::move(info)),
      layout_(info_.geometry),
      mode_(mode),
      is_device_(is_device),
      drop_unit_(DropUnit(fd_.get(), is_device)),
      discards_(is_device && Discards(fd_.get())) {}

ImageFile::~ImageFile() {
  if (writing_) {
    // After a failed sync the file may lack what the host still has in memory, until it is booted again.
    if (!sync_failed_) live_->boot_id.fill('\0');
    live_->writer_pid.store(0, std::memory_order_relaxed);
  }
  guard_.reset();
  if (mapping_ != nullptr) ::munmap(mapping_, layout_.file_size);
}

Status ImageFile::Map() {
  void* mapping = ::mmap(nullptr, layout_.file_size, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (mapping == MAP_FAILED) return Status::FromErrno(errno, fmt::format("cannot map image {}", Quote(path_)));
  mapping_ = static_cast<std::byte*>(mapping);
  ::madvise(mapping, layout_.file_size, MADV_DONTDUMP);  // best effort: keeps the device out of core files
  if (mode_ == OpenMode::kReadWrite && ::mprotect(mapping, layout_.data_offset, PROT_READ | PROT_WRITE) != 0) {
    return Status::FromErrno(errno, fmt::format("cannot map image {}", Quote(path_)));
  }
  ISOZONE_ASSIGN_OR_RETURN(guard_, FaultGuard::Create({mapping_, layout_.file_size}));
  live_ = std::launder(reinterpret_cast<LiveBlock*>(mapping_ + kLiveBlockOffset));
  table_ = {std::launder(reinterpret_cast<ZoneEntry*>(mapping_ + kZoneTableOffset)), info_.geometry.zone_count};
  return Status::Ok();
}

Status ImageFile::Lock() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0;
  lock.l_len = 1;
  if (::fcntl(fd_.get(), F_OFD_SETLK, &lock) == 0) return Status::Ok();
  if (errno != EAGAIN && errno != EACCES) return Status::FromErrno(errno, fmt::format("cannot lock {}", Quote(path_)));
  const uint32_t pid = live_->writer_pid.load(std::memory_order_relaxed);
  const std::string who = pid == 0                                   ? "another process"
                          : pid == static_cast<uint32_t>(::getpid()) ? "this process"
                                                                     : fmt::format("process {}", pid);
  return Status::Busy(fmt::format("image {} is in use by {}; stop it, or open the image read-only", Quote(path_), who));
}

Status ImageFile::BeginWriting() {
  const auto boot_id = BootId();
  if (!boot_id.ok() && !boot_id.status().Is(StatusCode::kNotFound)) return boot_id.status();
  const std::string boot = boot_id.ok() ? *boot_id : "";
  const std::string last(live_->boot_id.data(), ::strnlen(live_->boot_id.data(), live_->boot_id.size()));
  host_crashed_ = !last.empty() && last != boot;
  live_->boot_id.fill('\0');
  std::memcpy(live_->boot_id.data(), boot.data(), std::min(boot.size(), live_->boot_id.size()));
  live_->writer_pid.store(static_cast<uint32_t>(::getpid()), std::memory_order_relaxed);
  writing_ = true;
  return Status::Ok();
}

// After a crash of the host there is nothing to write again: only what is durable counts.
Status ImageFile::WriteUnsyncedAgain() {
  if (host_crashed_) live_->sync_failed = 0;
  if (live_->sync_failed == 0) return Status::Ok();
  sync_failed_ = true;  // both marks stay until it is done, whatever ends it
  for (uint32_t i = 0; i < info_.geometry.zone_count; ++i) {
    ZoneEntry& entry = table_[i];
    entry.word.store(entry.word.load());  // also what does not change makes the page one that is to be written
    const uint64_t written = LoadContent(entry).written;
    const uint64_t durable = std::min(entry.durable.load(), written);
    const std::span unsynced(ZoneData(ZoneId(i)) + durable, written - durable);
    const Status status = WriteData(ZoneId(i), durable, unsynced);
    ISOZONE_RETURN_IF_ERROR(status);
    if (faulted()) return Status::IoError(fmt::format("cannot read image {}", Quote(path_)));
  }
  sync_failed_ = false;
  live_->sync_failed = 0;
  return Status::Ok();
}

uint64_t ImageFile::FilePosition(ZoneId zone, uint64_t offset) const {
  return layout_.data_offset + zone.value() * layout_.zone_stride + offset;
}

Status ImageFile::WriteData(ZoneId zone, uint64_t offset, std::span<const std::byte> bytes) {
  if (WriteFully(fd_.get(), bytes, FilePosition(zone, offset))) return Status::Ok();
  return Status::FromErrno(errno, fmt::format("cannot write to image {}", Quote(path_)));
}

Status ImageFile::DropBlocks(ZoneId zone, uint64_t from, uint64_t to) {
  from = RoundUp(from, drop_unit_);
  to = RoundUp(to, drop_unit_);  // the rest of the last unit belongs to no other zone
  if (from >= to || (is_device_ && !discards_.load(std::memory_order_relaxed))) return Status::Ok();
  const uint64_t position = FilePosition(zone, from);
  if (is_device_) {
    if (!Discard(fd_.get(), position, to - from) && discards_.exchange(false)) WarnOfDiscard(path_, errno);
    return Status::Ok();
  }
  if (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(position),
                  static_cast<off_t>(to - from)) == 0) {
    return Status::Ok();
  }
  return Status::FromErrno(errno, fmt::format("cannot give back blocks of image {}", Quote(path_)));
}

Status ImageFile::Sync() {
  const MutexLock lock(sync_mu_);
  if (sync_failed_) return Status::IoError(fmt::format("an earlier sync of image {} has failed", Quote(path_)));
  if (::fdatasync(fd_.get()) == 0) return Status::Ok();
  const int error = errno;
  sync_failed_ = true;
  live_->sync_failed = 1;
  return Status::FromErrno(error, fmt::format("cannot sync image {}", Quote(path_)));
}

}  // namespace isozone
