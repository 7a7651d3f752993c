// Operations on open directories. The kernel's offsets are those of the entries: 0 is before ".", 1 before "..", and
// cookie + 2 of DirectoryStream behind them.
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "fuse/file_handle.h"
#include "fuse/fuse_view.h"

namespace isozone {
namespace {

constexpr uint64_t kDots = 2;

// The answer to one request: entries, as many as the kernel has room for.
class Listing {
 public:
  Listing(fuse_req_t request, FuseView& view, uint64_t directory, size_t room, bool with_attributes)
      : request_(request), view_(view), directory_(directory), bytes_(room), with_attributes_(with_attributes) {}

  // Whether there was room.
  bool Add(const char* name, uint64_t inode, mode_t type, bool is_dot, uint64_t next) {
    char* const at = bytes_.data() + used_;
    const size_t left = bytes_.size() - used_;
    const auto offset = static_cast<off_t>(next);
    size_t needed = 0;
    if (with_attributes_) {
      // The kernel remembers what the name leads to. The listing is of an earlier moment, so the name is looked up now;
      // of the dots, and of a name that has gone or leads elsewhere, the kernel learns nothing.
      fuse_entry_param entry{};
      if (!is_dot) {
        const auto attributes = view_.inodes().Lookup(directory_, name);
        if (attributes.ok() && attributes->inode == inode) entry = view_.EntryOf(*attributes);
      }
      if (entry.ino == 0) entry.attr = TypeAndInode(inode, type);
      needed = ::fuse_add_direntry_plus(request_, at, left, name, &entry, offset);
    } else {
      const struct stat shown = TypeAndInode(inode, type);
      needed = ::fuse_add_direntry(request_, at, left, name, &shown, offset);
    }
    if (needed > left) return false;
    used_ += needed;
    return true;
  }

  void Answer() { ::fuse_reply_buf(request_, bytes_.data(), used_); }

 private:
  static struct stat TypeAndInode(uint64_t inode, mode_t type) {
    struct stat shown {};
    shown.st_ino = inode;
    shown.st_mode = type;
    return shown;
  }

  fuse_req_t request_;
  FuseView& view_;
  const uint64_t directory_;
  std::vector<char> bytes_;
  size_t used_ = 0;
  const bool with_attributes_;
};

mode_t TypeOf(InodeType type) {
  if (type == InodeType::kDirectory) return S_IFDIR;
  return type == InodeType::kSymlink ? S_IFLNK : S_IFREG;
}

Status Fill(Listing& listing, DirectoryStream& stream, uint64_t directory, uint64_t offset) {
  constexpr size_t kBatch = 64;
  // The kernel knows the parent; programs ask it and not the second entry.
  static constexpr std::array<const char*, kDots> kNames = {".", ".."};
  for (; offset < kDots; ++offset) {
    if (!listing.Add(kNames[offset], directory, S_IFDIR, true, offset + 1)) return Status::Ok();
  }
  for (uint64_t cookie = offset - kDots;;) {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<DirectoryStream::Entry> entries, stream.Read(cookie, kBatch));
    if (entries.empty()) return Status::Ok();
    for (const DirectoryStream::Entry& entry : entries) {
      if (!listing.Add(entry.name.c_str(), entry.inode, TypeOf(entry.type), false, entry.cookie + kDots)) {
        return Status::Ok();
      }
      cookie = entry.cookie;
    }
  }
}

void Read(fuse_req_t request, fuse_ino_t inode, size_t room, off_t offset, const fuse_file_info& info, bool plus) {
  Answer(request, [&](FuseView& view) -> Status {
    Listing listing(request, view, inode, room, plus);
    ISOZONE_RETURN_IF_ERROR(Fill(listing, *DirectoryHandle::Of(info).stream, inode, static_cast<uint64_t>(offset)));
    listing.Answer();
    return Status::Ok();
  });
}

void ReadDirectory(fuse_req_t request, fuse_ino_t inode, size_t room, off_t offset, fuse_file_info* info) {
  Read(request, inode, room, offset, *info, false);
}

void ReadDirectoryPlus(fuse_req_t request, fuse_ino_t inode, size_t room, off_t offset, fuse_file_info* info) {
  Read(request, inode, room, offset, *info, true);
}

void OpenDirectory(fuse_req_t request, fuse_ino_t inode, fuse_file_info* info) {
  Answer(request, [&](FuseView& view) -> Status {
    auto handle = std::make_unique<DirectoryHandle>();
    ISOZONE_ASSIGN_OR_RETURN(handle->stream, view.inodes().OpenDirectory(inode));
    info->fh = view.handles().Add(std::move(handle));
    // Offsets are those of one handle: what the kernel kept of one would skip or repeat entries in another.
    info->cache_readdir = 0;
    info->keep_cache = 0;
    // Where the program was interrupted meanwhile, nobody releases the handle.
    if (::fuse_reply_open(request, info) != 0) view.handles().Close(info->fh);
    return Status::Ok();
  });
}

void ReleaseDirectory(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  FuseView::Of(request).handles().Close(info->fh);
  ::fuse_reply_err(request, 0);
}

void SyncDirectory(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  Answer(request, [&](FuseView& view) -> Status {
    ISOZONE_RETURN_IF_ERROR(view.file_system().SyncMetadata());
    return AnswerErrno(request, 0);
  });
}

}  // namespace

void AddDirectoryOperations(fuse_lowlevel_ops& operations) {
  operations.opendir = OpenDirectory;
  operations.readdir = ReadDirectory;
  operations.readdirplus = ReadDirectoryPlus;
  operations.releasedir = ReleaseDirectory;
  operations.fsyncdir = SyncDirectory;
}

}  // namespace isozone
