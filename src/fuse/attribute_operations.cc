// Operations on attributes, extended attributes and the whole file system.
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>

#include "fuse/file_handle.h"
#include "fuse/fuse_view.h"

namespace isozone {
namespace {

constexpr uint64_t kBlockSize = 4096;  // bytes of a block of statfs

FileTime TimeOf(const timespec& time) {
  // Times before 1970 cannot be kept.
  if (time.tv_sec < 0) return {};
  return {static_cast<uint64_t>(time.tv_sec), static_cast<uint32_t>(time.tv_nsec)};
}

FileTime Now() {
  const auto ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  return {static_cast<uint64_t>(ns / 1'000'000'000), static_cast<uint32_t>(ns % 1'000'000'000)};
}

Status AnswerAttributes(fuse_req_t request, FuseView& view, const FileAttributes& attributes) {
  const struct stat shown = view.StatOf(attributes);
  ::fuse_reply_attr(request, &shown, view.timeout_s());
  return Status::Ok();
}

void GetAttributes(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  Answer(request, [&](FuseView& view) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, view.inodes().GetAttributes(inode));
    return AnswerAttributes(request, view, attributes);
  });
}

Status Resize(FuseView& view, fuse_req_t request, uint64_t inode, uint64_t size, fuse_file_info* info) {
  std::shared_ptr<PositionalFile> file;
  if (info != nullptr) {
    file = FileHandle::Of(*info).file;
  } else {
    ISOZONE_ASSIGN_OR_RETURN(file, view.inodes().Open(inode));
  }
  ISOZONE_RETURN_IF_ERROR(file->Truncate(size));
  const bool drop = view.SetIdSeen() && ::fuse_req_ctx(request)->uid != 0;
  return drop ? view.DropSetId(inode) : Status::Ok();
}

AttributeChanges ChangesOf(const struct stat& wanted, int which) {
  AttributeChanges changes;
  if ((which & FUSE_SET_ATTR_MODE) != 0) changes.mode = wanted.st_mode & 07777;
  if ((which & FUSE_SET_ATTR_UID) != 0) changes.user = wanted.st_uid;
  if ((which & FUSE_SET_ATTR_GID) != 0) changes.group = wanted.st_gid;
  if ((which & FUSE_SET_ATTR_MTIME) != 0) changes.modified = TimeOf(wanted.st_mtim);
  if ((which & FUSE_SET_ATTR_MTIME_NOW) != 0) changes.modified = Now();
  return changes;
}

void SetAttributes(fuse_req_t request, fuse_ino_t inode, struct stat* wanted, int which, fuse_file_info* info) {
  Answer(request, [&](FuseView& view) -> Status {
    if ((which & FUSE_SET_ATTR_SIZE) != 0) {
      if (wanted->st_size < 0) return AnswerErrno(request, EINVAL);
      const auto size = static_cast<uint64_t>(wanted->st_size);
      if (size > PositionalFile::kSizeMax) return AnswerErrno(request, EFBIG);
      ISOZONE_RETURN_IF_ERROR(Resize(view, request, inode, size, info));
    }
    constexpr int kOwner = FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
    if ((which & kOwner) != 0 && view.SetIdSeen()) ISOZONE_RETURN_IF_ERROR(view.DropSetId(inode));
    constexpr int kKept = kOwner | FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW;
    // A file that has lost its last name keeps the attributes that it had.
    Result<FileAttributes> attributes = Status::NotFound("not changed");
    if ((which & kKept) != 0) attributes = view.inodes().SetAttributes(inode, ChangesOf(*wanted, which));
    if (attributes.status().Is(StatusCode::kNotFound)) attributes = view.inodes().GetAttributes(inode);
    if (!attributes.ok()) return attributes.status();
    return AnswerAttributes(request, view, *attributes);
  });
}

// Access lists and file capabilities mean something to the kernel, which would have to be told of every change.
bool IsSupportedXattr(std::string_view name) { return name.starts_with("user.") || name.starts_with("trusted."); }

// Answers with bytes for a program that has room for `room` of them; 0 asks how many there are.
Status AnswerBytes(fuse_req_t request, std::string_view bytes, size_t room) {
  if (room == 0) {
    ::fuse_reply_xattr(request, bytes.size());
  } else if (bytes.size() > room) {
    ::fuse_reply_err(request, ERANGE);
  } else {
    ::fuse_reply_buf(request, bytes.data(), bytes.size());
  }
  return Status::Ok();
}

// kNotFound was answered: the attribute is not there, or all of the inode has gone.
Status AnswerNoXattr(fuse_req_t request, FuseView& view, fuse_ino_t inode) {
  ISOZONE_RETURN_IF_ERROR(view.inodes().GetAttributes(inode).status());
  return AnswerErrno(request, ENODATA);
}

void GetXattr(fuse_req_t request, fuse_ino_t inode, const char* name, size_t room) {
  Answer(request, [&](FuseView& view) -> Status {
    if (!IsSupportedXattr(name)) return AnswerErrno(request, EOPNOTSUPP);
    const auto value = view.inodes().GetXattr(inode, name);
    if (value.status().Is(StatusCode::kNotFound)) return AnswerNoXattr(request, view, inode);
    if (!value.ok()) return value.status();
    return AnswerBytes(request, *value, room);
  });
}

void ListXattrs(fuse_req_t request, fuse_ino_t inode, size_t room) {
  Answer(request, [&](FuseView& view) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, view.inodes().ListXattrs(inode));
    std::string list;
    for (const std::string& name : names) list.append(name).push_back('\0');
    return AnswerBytes(request, list, room);
  });
}

void SetXattr(fuse_req_t request, fuse_ino_t inode, const char* name, const char* value, size_t size, int flags) {
  Answer(request, [&](FuseView& view) -> Status {
    if (!IsSupportedXattr(name)) return AnswerErrno(request, EOPNOTSUPP);
    XattrMode mode = XattrMode::kSet;
    if ((flags & XATTR_CREATE) != 0) mode = XattrMode::kCreate;
    if ((flags & XATTR_REPLACE) != 0) mode = XattrMode::kReplace;
    const Status status = view.inodes().SetXattr(inode, name, {value, size}, mode);
    if (status.Is(StatusCode::kNotFound)) return AnswerNoXattr(request, view, inode);
    ISOZONE_RETURN_IF_ERROR(status);
    return AnswerErrno(request, 0);
  });
}

void RemoveXattr(fuse_req_t request, fuse_ino_t inode, const char* name) {
  Answer(request, [&](FuseView& view) -> Status {
    if (!IsSupportedXattr(name)) return AnswerErrno(request, EOPNOTSUPP);
    const Status status = view.inodes().RemoveXattr(inode, name);
    if (status.Is(StatusCode::kNotFound)) return AnswerNoXattr(request, view, inode);
    ISOZONE_RETURN_IF_ERROR(status);
    return AnswerErrno(request, 0);
  });
}

// The size is what files could take at most, without metadata and reserves. What is dead is free: it comes back before
// a write fails for lack of space. A write that is accepted leaves a zone free (SpacePromises), and the rest of the
// zones of logs.
void StatFileSystem(fuse_req_t request, fuse_ino_t) {
  Answer(request, [&](FuseView& view) -> Status {
    const SpaceInfo space = view.file_system().state().Space();
    struct statvfs shown {};
    shown.f_bsize = kBlockSize;
    shown.f_frsize = kBlockSize;
    shown.f_bfree = (space.free + space.dead) / kBlockSize;
    const uint64_t kept =
        view.file_system().state().device().geometry().zone_capacity + space.free - space.free_for_data;
    shown.f_bavail = shown.f_bfree - std::min<fsblkcnt_t>(shown.f_bfree, kept / kBlockSize);
    shown.f_blocks = shown.f_bfree + (space.live + kBlockSize - 1) / kBlockSize;
    // An inode takes some hundred bytes of the metadata, which has zones of its own.
    shown.f_ffree = shown.f_bfree;
    shown.f_favail = shown.f_bfree;
    shown.f_files = view.inodes().inode_count() + shown.f_ffree;
    shown.f_namemax = InodeFiles::kNameMax;
    ::fuse_reply_statfs(request, &shown);
    return Status::Ok();
  });
}

}  // namespace

void AddAttributeOperations(fuse_lowlevel_ops& operations) {
  operations.getattr = GetAttributes;
  operations.setattr = SetAttributes;
  operations.getxattr = GetXattr;
  operations.listxattr = ListXattrs;
  operations.setxattr = SetXattr;
  operations.removexattr = RemoveXattr;
  operations.statfs = StatFileSystem;
}

}  // namespace isozone
