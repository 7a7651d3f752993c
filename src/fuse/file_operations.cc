// Operations on open files.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/clock.h"
#include "fuse/file_handle.h"
#include "fuse/fuse_session.h"
#include "fuse/fuse_view.h"
#include "fuse/new_file.h"

namespace isozone {
namespace {

IoClass ReadClassOf(const FileAttributes& attributes) {
  if (attributes.kind == FileKind::kData) return IoClass::kUserRead;
  if (attributes.kind == FileKind::kSmall) return IoClass::kOther;
  return attributes.lifetime == Lifetime::kLong ? IoClass::kMetadata : IoClass::kWal;
}

// Gives `file` to the kernel, by a handle with the flags of open(2).
void SetHandle(FuseView& view, fuse_file_info& info, std::shared_ptr<PositionalFile> file,
               const FileAttributes& attributes) {
  auto handle = std::make_unique<FileHandle>();
  handle->file = std::move(file);
  handle->read_class = ReadClassOf(attributes);
  handle->can_write = (info.flags & O_ACCMODE) != O_RDONLY;
  info.keep_cache = view.options().read_only ? 0 : 1;
  info.noflush = handle->can_write ? 0 : 1;
  info.fh = view.handles().Add(std::move(handle));
}

void Open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* info) {
  Answer(request, [&](FuseView& view) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(std::shared_ptr<PositionalFile> file, view.inodes().Open(inode));
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, view.inodes().GetAttributes(inode));
    SetHandle(view, *info, std::move(file), attributes);
    // Where the program was interrupted meanwhile, nobody releases the handle.
    if (::fuse_reply_open(request, info) != 0) view.handles().Close(info->fh);
    return Status::Ok();
  });
}

void Create(fuse_req_t request, fuse_ino_t directory, const char* name, mode_t mode, fuse_file_info* info) {
  Answer(request, [&](FuseView& view) -> Status {
    if (std::strlen(name) > InodeFiles::kNameMax) return AnswerErrno(request, ENAMETOOLONG);
    ISOZONE_ASSIGN_OR_RETURN(std::shared_ptr<PositionalFile> file, CreateFile(view, request, directory, name, mode));
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, view.inodes().GetAttributes(file->inode()));
    const fuse_entry_param entry = view.EntryOf(attributes);
    SetHandle(view, *info, std::move(file), attributes);
    FileHandle::Of(*info).may_have_hint = view.has_hints() && MayHaveHint(name);
    if (::fuse_reply_create(request, &entry, info) != 0) view.handles().Close(info->fh);
    return Status::Ok();
  });
}

// A table is read by users and by compactions, often through one handle.
IoClass ReadClassOf(FuseView& view, fuse_req_t request, const FileHandle& handle) {
  if (handle.read_class != IoClass::kUserRead) return handle.read_class;
  const ThreadJob job = view.thread_jobs().Of(::fuse_req_ctx(request)->pid, MonotonicNs());
  return job == ThreadJob::kCompaction ? IoClass::kCompactionRead : IoClass::kUserRead;
}

void Read(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info* info) {
  Answer(request, [&](FuseView& view) -> Status {
    const FileHandle& handle = FileHandle::Of(*info);
    const IoClass io_class = ReadClassOf(view, request, handle);
    const std::span<std::byte> buffer = FuseSession::AnswerData().first(std::min<size_t>(size, kLongestRequest));
    ISOZONE_ASSIGN_OR_RETURN(const size_t got, handle.file->Read(static_cast<uint64_t>(offset), buffer, io_class));
    ::fuse_reply_buf(request, reinterpret_cast<const char*>(buffer.data()), got);
    return Status::Ok();
  });
}

// How many bytes at the beginning of `data` change nothing, where it lies over bytes that `file` has; empty if it would
// change one of those.
Result<std::optional<size_t>> UnchangedPrefix(PositionalFile& file, const FileHandle& handle, uint64_t offset,
                                              std::span<const std::byte> data) {
  const uint64_t size = file.size();
  if (offset >= size) return std::optional<size_t>(0);
  const size_t there = std::min<uint64_t>(data.size(), size - offset);
  AlignedBuffer buffer(there);
  for (size_t at = 0; at < there;) {
    const std::span<std::byte> old = buffer.span().first(there - at);
    ISOZONE_ASSIGN_OR_RETURN(const size_t got, file.Read(offset + at, old, handle.read_class));
    if (got == 0 || std::memcmp(old.data(), data.data() + at, got) != 0) return std::optional<size_t>();
    at += got;
  }
  return std::optional<size_t>(there);
}

// With inplace=refuse: writes what comes behind the end of the file, if the rest changes nothing.
Status WriteOutOfPlace(FuseView& view, fuse_req_t request, const FileHandle& handle, uint64_t offset,
                       std::span<const std::byte> data) {
  PositionalFile& file = *handle.file;
  ISOZONE_ASSIGN_OR_RETURN(const auto unchanged, UnchangedPrefix(file, handle, offset, data));
  if (!unchanged) {
    view.RefusedInPlace(file.inode(), offset, ::fuse_req_ctx(request)->pid);
    return Status::NotSupported("a write in place, which inplace=refuse refuses");
  }
  const std::span<const std::byte> rest = data.subspan(*unchanged);
  return rest.empty() ? Status::Ok() : file.Write(offset + *unchanged, rest);
}

// A new file is written for the first time: its bytes have no place yet.
void LearnLifetime(FuseView& view, FileHandle& handle) {
  if (!handle.may_have_hint.load(std::memory_order_relaxed) || !handle.may_have_hint.exchange(false)) return;
  if (handle.file->size() > 0) return;
  if (const auto lifetime = view.LifetimeByHintOf(handle.file->inode())) handle.file->SetLifetime(*lifetime);
}

void Write(fuse_req_t request, fuse_ino_t inode, const char* bytes, size_t size, off_t offset, fuse_file_info* info) {
  Answer(request, [&](FuseView& view) -> Status {
    FileHandle& handle = FileHandle::Of(*info);
    const std::span<const std::byte> data = std::as_bytes(std::span(bytes, size));
    const auto at = static_cast<uint64_t>(offset);
    if (at + size > PositionalFile::kSizeMax) return AnswerErrno(request, EFBIG);
    LearnLifetime(view, handle);
    ISOZONE_RETURN_IF_ERROR(view.options().refuse_in_place ? WriteOutOfPlace(view, request, handle, at, data)
                                                           : handle.file->Write(at, data));
    const bool drop = view.SetIdSeen() && ::fuse_req_ctx(request)->uid != 0;
    if (drop) ISOZONE_RETURN_IF_ERROR(view.DropSetId(inode));
    ::fuse_reply_write(request, size);
    return Status::Ok();
  });
}

void Flush(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  Answer(request, [&](FuseView&) -> Status {
    const FileHandle& handle = FileHandle::Of(*info);
    if (handle.can_write) ISOZONE_RETURN_IF_ERROR(handle.file->Flush());
    return AnswerErrno(request, 0);
  });
}

void Sync(fuse_req_t request, fuse_ino_t, int, fuse_file_info* info) {
  Answer(request, [&](FuseView&) -> Status {
    ISOZONE_RETURN_IF_ERROR(FileHandle::Of(*info).file->Sync());
    return AnswerErrno(request, 0);
  });
}

void Release(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  Answer(request, [&](FuseView& view) -> Status {
    view.handles().Close(info->fh);
    return AnswerErrno(request, 0);
  });
}

void Allocate(fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t length, fuse_file_info* info) {
  Answer(request, [&](FuseView&) -> Status {
    if (mode != 0 && mode != FALLOC_FL_KEEP_SIZE) return AnswerErrno(request, EOPNOTSUPP);
    const auto at = static_cast<uint64_t>(offset);
    const auto bytes = static_cast<uint64_t>(length);
    if (at + bytes > PositionalFile::kSizeMax) return AnswerErrno(request, EFBIG);
    ISOZONE_RETURN_IF_ERROR(FileHandle::Of(*info).file->Allocate(at, bytes, mode == FALLOC_FL_KEEP_SIZE));
    return AnswerErrno(request, 0);
  });
}

}  // namespace

// Without lseek: the kernel would ask where a hole is without handing over the pages that it holds, of a shared memory
// map for example, and a program that copies a file would leave those out. As it is, the kernel takes all of a file for
// data.
void AddFileOperations(fuse_lowlevel_ops& operations) {
  operations.open = Open;
  operations.create = Create;
  operations.read = Read;
  operations.write = Write;
  operations.flush = Flush;
  operations.fsync = Sync;
  operations.release = Release;
  operations.fallocate = Allocate;
}

}  // namespace isozone
