#include "fuse/fuse_view.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/crc32c.h"
#include "base/log.h"
#include "fuse/new_file.h"
#include "fuse/serving_threads.h"
#include "fuse/thread_name.h"

namespace isozone {
namespace {

constexpr blksize_t kPreferredSize = 4096;  // bytes that programs are told to read and write at least

mode_t TypeBits(InodeType type) {
  switch (type) {
    case InodeType::kDirectory:
      return S_IFDIR;
    case InodeType::kSymlink:
      return S_IFLNK;
    case InodeType::kRegular:
      break;
  }
  return S_IFREG;
}

timespec TimeOf(const FileTime& time) {
  return {static_cast<time_t>(time.s), static_cast<long>(time.ns)};  // NOLINT(google-runtime-int): timespec has it
}

// The kernel's first question: what it may do. Without FUSE_CAP_ATOMIC_O_TRUNC it truncates by a request of its own,
// after it has seen whether a program is running from the file; otherwise O_RDONLY | O_TRUNC would cut that first, and
// fail then.
void Greet(void* user_data, fuse_conn_info* connection) {
  auto* view = static_cast<FuseView*>(user_data);
  view->NoteKernel(*connection);
  const uint32_t wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ASYNC_DIO |
                          FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_EXPORT_SUPPORT |
                          // Beside another writer, new attributes say which pages are old.
                          (view->options().read_only ? FUSE_CAP_AUTO_INVAL_DATA : FUSE_CAP_EXPLICIT_INVAL_DATA) |
                          (view->options().writeback ? FUSE_CAP_WRITEBACK_CACHE : 0);
  connection->want = wanted & connection->capable;
  connection->max_write = kLongestRequest;
  connection->max_read = kLongestRequest;  // as the option of the session says
  connection->max_readahead = kLongestRequest;
  connection->max_background = 64;
  connection->congestion_threshold = 48;
  connection->time_gran = 1;
}

}  // namespace

int ErrnoOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
      return EINVAL;
    case StatusCode::kNotFound:
      return ESTALE;
    case StatusCode::kAlreadyExists:
      return EEXIST;
    case StatusCode::kPermissionDenied:
      return EACCES;
    case StatusCode::kBusy:
      return EBUSY;
    case StatusCode::kNoSpace:
      return ENOSPC;
    case StatusCode::kReadOnly:
      return EROFS;
    case StatusCode::kNotSupported:
      return EOPNOTSUPP;
    case StatusCode::kNotDirectory:
      return ENOTDIR;
    case StatusCode::kIsDirectory:
      return EISDIR;
    case StatusCode::kNotEmpty:
      return ENOTEMPTY;
    case StatusCode::kCorruption:
    case StatusCode::kIoError:
    case StatusCode::kAborted:
      break;
  }
  return EIO;
}

FuseView::FuseView(FileSystem& file_system, InodeFiles& inodes, const FuseOptions& options)
    : file_system_(file_system),
      inodes_(inodes),
      options_(options),
      generation_(Crc32c(std::as_bytes(std::span<const char>(file_system.state().uuid())))) {}

FuseView& FuseView::Of(fuse_req_t request) { return *static_cast<FuseView*>(::fuse_req_userdata(request)); }

struct stat FuseView::StatOf(const FileAttributes& attributes) {
  struct stat shown {};
  shown.st_ino = attributes.inode;
  shown.st_mode = TypeBits(attributes.type) | attributes.mode;
  if ((attributes.mode & (S_ISUID | S_ISGID)) != 0 && attributes.type == InodeType::kRegular) set_id_seen_ = true;
  if (options_.umask) shown.st_mode &= ~*options_.umask;
  const bool is_roots = attributes.user == 0 && attributes.group == 0;
  shown.st_uid = options_.uid.value_or(is_roots ? roots_user_ : attributes.user);
  shown.st_gid = options_.gid.value_or(is_roots ? roots_group_ : attributes.group);
  shown.st_nlink = attributes.links;
  shown.st_size = static_cast<off_t>(attributes.size);
  shown.st_blksize = kPreferredSize;
  uint64_t allocated = attributes.size;
  if (attributes.type == InodeType::kRegular && attributes.size > 0) {
    const auto known = inodes_.AllocatedBytes(attributes.inode);
    if (known.ok()) allocated = *known;
  }
  shown.st_blocks = static_cast<blkcnt_t>((allocated + 511) / 512);
  shown.st_mtim = TimeOf(attributes.modified);
  shown.st_ctim = TimeOf(attributes.changed);
  shown.st_atim = shown.st_mtim;
  return shown;
}

fuse_entry_param FuseView::EntryOf(const FileAttributes& attributes) {
  fuse_entry_param entry{};
  entry.ino = attributes.inode;
  // The kernel knows the root before it asks.
  entry.generation = attributes.inode == InodeFiles::kRoot ? 0 : generation_;
  entry.attr = StatOf(attributes);
  entry.attr_timeout = timeout_s();
  entry.entry_timeout = timeout_s();
  return entry;
}

void FuseView::UseHints(HintReader& reader, const std::string& directory, dev_t device) {
  hint_reader_ = &reader;
  directory_ = directory;
  device_ = device;
}

void FuseView::NoteKernel(const fuse_conn_info& connection) {
  constexpr unsigned kHasNoFlush = 35;  // FOPEN_NOFLUSH, in Linux 5.16
  const bool quiet = connection.proto_major == 7 && connection.proto_minor >= kHasNoFlush && !options_.writeback;
  has_hints_ = hint_reader_ != nullptr && quiet;
}

std::optional<Lifetime> FuseView::LifetimeByHintOf(uint64_t inode) {
  if (!has_hints()) return {};
  const ServingThreads::Pause pause;
  if (!pause.granted()) return {};
  const auto path = inodes_.PathOf(inode);
  if (!path.ok()) return {};
  return LifetimeByHint(hint_reader_->Read({directory_ + *path, device_, inode}));
}

Status FuseView::DropSetId(uint64_t inode) {
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, inodes_.GetAttributes(inode));
  uint32_t mode = attributes.mode & ~uint32_t{S_ISUID};
  // Without the right of the group to execute, the bit means something else.
  if ((mode & S_IXGRP) != 0) mode &= ~uint32_t{S_ISGID};
  if (attributes.type != InodeType::kRegular || mode == attributes.mode) return Status::Ok();
  AttributeChanges changes;
  changes.mode = mode;
  const Status status = inodes_.SetAttributes(inode, changes).status();
  return status.Is(StatusCode::kNotFound) ? Status::Ok() : status;  // it lost its last name meanwhile
}

void FuseView::Report(const Status& status) {
  const StatusCode code = status.code();
  if (code == StatusCode::kCorruption || code == StatusCode::kIoError) Log().error("{}", status.message());
  if (code == StatusCode::kNoSpace && !full_reported_.exchange(true)) Log().warn("{}", status.message());
  if (code == StatusCode::kReadOnly && !read_only_reported_.exchange(true)) Log().error("{}", status.message());
}

void FuseView::RefusedInPlace(uint64_t inode, uint64_t offset, pid_t thread) {
  ++refused_in_place_;
  if (last_refused_inode_.exchange(inode) == inode) return;
  Log().warn("'{}' wrote in place at byte {} of inode {}, which inplace=refuse refuses; mount without it to allow that",
             ThreadName(thread), offset, inode);
}

fuse_lowlevel_ops FuseOperations() {
  fuse_lowlevel_ops operations{};
  operations.init = Greet;
  AddNameOperations(operations);
  AddAttributeOperations(operations);
  AddDirectoryOperations(operations);
  AddFileOperations(operations);
  return operations;
}

}  // namespace isozone
