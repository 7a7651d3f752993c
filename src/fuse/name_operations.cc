// Operations on names: looking them up, making and removing them.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "fuse/fuse_view.h"
#include "fuse/new_file.h"

namespace isozone {
namespace {

bool TooLong(const char* name) { return std::strlen(name) > InodeFiles::kNameMax; }

// Answers what a new or found inode is.
Status AnswerEntry(fuse_req_t request, FuseView& view, const Result<FileAttributes>& attributes) {
  if (!attributes.ok()) return attributes.status();
  const fuse_entry_param entry = view.EntryOf(*attributes);
  ::fuse_reply_entry(request, &entry);
  return Status::Ok();
}

// Answers how a change of names that are there went.
Status AnswerChange(fuse_req_t request, const Status& status) {
  if (status.Is(StatusCode::kNotFound)) return AnswerErrno(request, ENOENT);
  ISOZONE_RETURN_IF_ERROR(status);
  return AnswerErrno(request, 0);
}

Result<FileAttributes> ParentOf(FuseView& view, fuse_ino_t directory) {
  ISOZONE_ASSIGN_OR_RETURN(const std::string path, view.inodes().PathOf(directory));
  return view.file_system().Stat(path.substr(0, std::max<size_t>(path.rfind('/'), 1)));
}

// An inode is looked up as "." of itself, and a directory's parent as "..", for handles of files that the kernel has
// given out and forgotten (fuse_view.h).
Result<FileAttributes> Find(FuseView& view, fuse_ino_t directory, std::string_view name) {
  if (name == ".") return view.inodes().GetAttributes(directory);
  return name == ".." ? ParentOf(view, directory) : view.inodes().Lookup(directory, name);
}

void Lookup(fuse_req_t request, fuse_ino_t directory, const char* name) {
  Answer(request, [&](FuseView& view) -> Status {
    if (TooLong(name)) return AnswerErrno(request, ENAMETOOLONG);
    const auto found = Find(view, directory, name);
    if (!found.status().Is(StatusCode::kNotFound)) return AnswerEntry(request, view, found);
    ISOZONE_RETURN_IF_ERROR(view.inodes().GetAttributes(directory).status());
    fuse_entry_param nothing{};  // the kernel may remember that there is nothing, too
    nothing.entry_timeout = view.timeout_s();
    ::fuse_reply_entry(request, &nothing);
    return Status::Ok();
  });
}

// Nothing is counted (fuse_view.h).
void Forget(fuse_req_t request, fuse_ino_t, uint64_t) { ::fuse_reply_none(request); }
void ForgetMulti(fuse_req_t request, size_t, fuse_forget_data*) { ::fuse_reply_none(request); }

void MakeNode(fuse_req_t request, fuse_ino_t directory, const char* name, mode_t mode, dev_t) {
  Answer(request, [&](FuseView& view) -> Status {
    if (TooLong(name)) return AnswerErrno(request, ENAMETOOLONG);
    if (!S_ISREG(mode)) return AnswerErrno(request, EPERM);  // as mknod(2): not on this file system
    ISOZONE_ASSIGN_OR_RETURN(const auto file, CreateFile(view, request, directory, name, mode));
    return AnswerEntry(request, view, view.inodes().GetAttributes(file->inode()));
  });
}

void MakeDirectory(fuse_req_t request, fuse_ino_t directory, const char* name, mode_t mode) {
  Answer(request, [&](FuseView& view) -> Status {
    if (TooLong(name)) return AnswerErrno(request, ENAMETOOLONG);
    ISOZONE_ASSIGN_OR_RETURN(const InodeOwner owner, OwnerOfNew(view, request, directory, mode | S_IFDIR));
    return AnswerEntry(request, view, view.inodes().MakeDirectory(directory, name, owner));
  });
}

void MakeSymlink(fuse_req_t request, const char* target, fuse_ino_t directory, const char* name) {
  Answer(request, [&](FuseView& view) -> Status {
    if (TooLong(name) || std::strlen(target) > InodeFiles::kTargetMax) return AnswerErrno(request, ENAMETOOLONG);
    ISOZONE_ASSIGN_OR_RETURN(const InodeOwner owner, OwnerOfNew(view, request, directory, 0777));
    return AnswerEntry(request, view, view.inodes().MakeSymlink(directory, name, target, owner));
  });
}

void ReadLink(fuse_req_t request, fuse_ino_t inode) {
  Answer(request, [&](FuseView& view) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const std::string target, view.inodes().ReadLink(inode));
    ::fuse_reply_readlink(request, target.c_str());
    return Status::Ok();
  });
}

void Link(fuse_req_t request, fuse_ino_t inode, fuse_ino_t directory, const char* name) {
  Answer(request, [&](FuseView& view) -> Status {
    if (TooLong(name)) return AnswerErrno(request, ENAMETOOLONG);
    return AnswerEntry(request, view, view.inodes().Link(inode, directory, name));
  });
}

void Unlink(fuse_req_t request, fuse_ino_t directory, const char* name) {
  Answer(request, [&](FuseView& view) -> Status {
    if (TooLong(name)) return AnswerErrno(request, ENAMETOOLONG);
    return AnswerChange(request, view.inodes().Unlink(directory, name));
  });
}

void RemoveDirectory(fuse_req_t request, fuse_ino_t directory, const char* name) {
  Answer(request, [&](FuseView& view) -> Status {
    if (TooLong(name)) return AnswerErrno(request, ENAMETOOLONG);
    return AnswerChange(request, view.inodes().RemoveDirectory(directory, name));
  });
}

void Rename(fuse_req_t request, fuse_ino_t from_directory, const char* from, fuse_ino_t to_directory, const char* to,
            unsigned int flags) {
  Answer(request, [&](FuseView& view) -> Status {
    if (TooLong(from) || TooLong(to)) return AnswerErrno(request, ENAMETOOLONG);
    RenameMode mode = RenameMode::kReplace;
    if (flags == RENAME_NOREPLACE) mode = RenameMode::kNoReplace;
    if (flags == RENAME_EXCHANGE) mode = RenameMode::kExchange;
    if (flags != 0 && mode == RenameMode::kReplace) return AnswerErrno(request, EINVAL);
    return AnswerChange(request, view.inodes().Rename(from_directory, from, to_directory, to, mode));
  });
}

}  // namespace

void AddNameOperations(fuse_lowlevel_ops& operations) {
  operations.lookup = Lookup;
  operations.forget = Forget;
  operations.forget_multi = ForgetMulti;
  operations.mknod = MakeNode;
  operations.mkdir = MakeDirectory;
  operations.symlink = MakeSymlink;
  operations.readlink = ReadLink;
  operations.link = Link;
  operations.unlink = Unlink;
  operations.rmdir = RemoveDirectory;
  operations.rename = Rename;
}

}  // namespace isozone
