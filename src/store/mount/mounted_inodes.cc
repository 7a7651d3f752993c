#include "store/mount/mounted_inodes.h"

#include <algorithm>

#include <fmt/format.h>

namespace isozone {
namespace {

Status CheckMode(uint32_t mode) {
  if (mode <= InodeDetails::kModeMax) return Status::Ok();
  return Status::InvalidArgument(fmt::format("{:o} are no permission bits", mode));
}

// Takes the names of a directory when it is read from the beginning.
class NamesAtOnce final : public DirectoryStream {
 public:
  // `names` outlives this.
  NamesAtOnce(const Namespace& names, InodeId directory) : names_(names), directory_(directory) {}

  Result<std::vector<Entry>> Read(uint64_t cookie, size_t most) override {
    const MutexLock lock(mu_);
    if (cookie == 0 || entries_.empty()) {
      entries_.clear();
      names_.VisitNames(directory_, [this](std::string_view name, const Inode& inode) ISOZONE_REQUIRES(mu_) {
        entries_.push_back({std::string(name), inode.id.value(), TypeOf(inode), entries_.size() + 1});
      });
    }
    const size_t begin = std::min<uint64_t>(cookie, entries_.size());
    const size_t count = std::min(most, entries_.size() - begin);
    const auto first = entries_.begin() + static_cast<ptrdiff_t>(begin);
    return std::vector<Entry>(first, first + static_cast<ptrdiff_t>(count));
  }

 private:
  static InodeType TypeOf(const Inode& inode) {
    if (inode.is_directory) return InodeType::kDirectory;
    return inode.is_symlink() ? InodeType::kSymlink : InodeType::kRegular;
  }

  const Namespace& names_;
  const InodeId directory_;
  Mutex mu_;
  std::vector<Entry> entries_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Looking
// ---------------------------------------------------------------------------------------------------------------------

Result<FileAttributes> MountedInodes::Lookup(uint64_t directory, std::string_view name) {
  ISOZONE_RETURN_IF_ERROR(files_.Refresh());
  for (;;) {
    ISOZONE_ASSIGN_OR_RETURN(const InodeId found, names_.Find({name, InodeId(directory)}));
    auto attributes = GetAttributes(found.value());
    // Another file may have taken the name meanwhile.
    if (!attributes.status().Is(StatusCode::kNotFound)) return attributes;
  }
}

Result<std::unique_ptr<FileReader>> MountedInodes::OpenToLook(InodeId id) {
  {
    const MutexLock lock(catalog_.namespace_mutex);
    const Inode* found = catalog_.state.Find(id);
    if (found == nullptr || !files_.MustBeOpened(*found)) return std::unique_ptr<FileReader>();
  }
  ISOZONE_ASSIGN_OR_RETURN(auto log, files_.Open(id));
  return files_.ReaderOf(std::move(log));
}

Result<FileAttributes> MountedInodes::GetAttributes(uint64_t inode) {
  const InodeId id(inode);
  ISOZONE_RETURN_IF_ERROR(files_.Refresh());
  ISOZONE_ASSIGN_OR_RETURN(const auto log, OpenToLook(id));
  const std::shared_ptr<SharedFile> open = open_->Find(id);  // goes behind the lock
  const MutexLock lock(catalog_.namespace_mutex);
  const Inode* found = catalog_.state.Find(id);
  if (found == nullptr && open == nullptr) return NoInode(id);
  FileAttributes a = found == nullptr ? open->NamelessAttributes() : catalog_.AttributesOf(*found);
  if (const FileTime modified = open == nullptr ? FileTime() : open->modified(); modified != FileTime()) {
    a.modified = modified;
    a.modified_s = a.modified.s;
    a.changed = std::max(a.changed, a.modified);
  }
  return a;
}

Result<std::string> MountedInodes::PathOf(uint64_t inode) {
  const MutexLock lock(catalog_.namespace_mutex);
  std::vector<std::string> paths = catalog_.state.PathsOf(InodeId(inode));
  if (paths.empty()) return NoInode(InodeId(inode));
  return std::move(paths.front());
}

Result<uint64_t> MountedInodes::AllocatedBytes(uint64_t inode) {
  const MutexLock lock(catalog_.namespace_mutex);
  const Inode* found = catalog_.state.Find(InodeId(inode));
  if (found == nullptr) return NoInode(InodeId(inode));
  // What the metadata does not know yet is at the end.
  const auto file = catalog_.FindOpen(found->id);
  return found->allocated() + (file == nullptr || file->size() < found->size ? 0 : file->size() - found->size);
}

Result<std::unique_ptr<DirectoryStream>> MountedInodes::OpenDirectory(uint64_t directory) {
  ISOZONE_RETURN_IF_ERROR(files_.Refresh());
  const MutexLock lock(catalog_.namespace_mutex);
  const Inode* found = catalog_.state.Find(InodeId(directory));
  if (found == nullptr) return NoInode(InodeId(directory));
  if (!found->is_directory) return Status::NotDirectory(fmt::format("inode {} is not a directory", directory));
  return std::unique_ptr<DirectoryStream>(std::make_unique<NamesAtOnce>(names_, found->id));
}

Result<std::string> MountedInodes::ReadLink(uint64_t inode) {
  const MutexLock lock(catalog_.namespace_mutex);
  const Inode* found = catalog_.state.Find(InodeId(inode));
  if (found == nullptr) return NoInode(InodeId(inode));
  if (!found->is_symlink()) return Status::InvalidArgument(fmt::format("inode {} is not a symbolic link", inode));
  return found->details->target;
}

uint64_t MountedInodes::inode_count() const {
  const MutexLock lock(catalog_.namespace_mutex);
  return catalog_.state.size();
}

// ---------------------------------------------------------------------------------------------------------------------
// Attributes
// ---------------------------------------------------------------------------------------------------------------------

Result<FileAttributes> MountedInodes::SetAttributes(uint64_t inode, const AttributeChanges& changes) {
  if (changes.mode) ISOZONE_RETURN_IF_ERROR(CheckMode(*changes.mode));
  if (changes.modified && changes.modified->ns >= kSecondNs) {
    return Status::InvalidArgument(fmt::format("{} ns are a second or more", changes.modified->ns));
  }
  // What was written before must not give the file its time later: an open file keeps this one.
  if (changes.modified) {
    if (const auto open = open_->Find(InodeId(inode))) {
      ISOZONE_RETURN_IF_ERROR(open->WriteBack());
      open->SetModified(*changes.modified);
    }
  }
  const auto set = [&](InodeDetails& details) {
    details.mode = changes.mode.value_or(details.mode);
    details.user = changes.user.value_or(details.user);
    details.group = changes.group.value_or(details.group);
    details.modified = changes.modified.value_or(details.modified);
    return Status::Ok();
  };
  ISOZONE_RETURN_IF_ERROR(names_.ChangeDetails(InodeId(inode), set));
  return GetAttributes(inode);
}

Result<std::string> MountedInodes::GetXattr(uint64_t inode, std::string_view name) {
  ISOZONE_ASSIGN_OR_RETURN(const auto details, names_.Details(InodeId(inode)));
  if (details != nullptr) {
    const auto it = details->xattrs.find(name);
    if (it != details->xattrs.end()) return it->second;
  }
  return Status::NotFound(fmt::format("inode {} has no attribute '{}'", inode, name));
}

Result<std::vector<std::string>> MountedInodes::ListXattrs(uint64_t inode) {
  ISOZONE_ASSIGN_OR_RETURN(const auto details, names_.Details(InodeId(inode)));
  std::vector<std::string> names;
  if (details == nullptr) return names;
  for (const auto& [name, value] : details->xattrs) names.push_back(name);
  return names;
}

Status MountedInodes::SetXattr(uint64_t inode, std::string_view name, std::string_view value, XattrMode mode) {
  if (name.empty() || name.size() > kXattrNameMax) {
    return Status::InvalidArgument(
        fmt::format("the name of an attribute has {} bytes, not 1 to {}", name.size(), kXattrNameMax));
  }
  const auto set = [&](InodeDetails& details) {
    const auto it = details.xattrs.find(name);
    const bool there = it != details.xattrs.end();
    if (there && mode == XattrMode::kCreate) return Status::AlreadyExists(fmt::format("attribute '{}' exists", name));
    if (!there && mode == XattrMode::kReplace) return Status::NotFound(fmt::format("no attribute '{}'", name));
    details.xattrs.insert_or_assign(std::string(name), std::string(value));
    size_t bytes = 0;
    for (const auto& [key, held] : details.xattrs) bytes += key.size() + held.size();
    if (bytes <= kXattrBytesMax) return Status::Ok();
    return Status::NoSpace(fmt::format("the attributes of a file have at most {} bytes", kXattrBytesMax));
  };
  return names_.ChangeDetails(InodeId(inode), set);
}

Status MountedInodes::RemoveXattr(uint64_t inode, std::string_view name) {
  const auto remove = [&](InodeDetails& details) {
    const auto it = details.xattrs.find(name);
    if (it == details.xattrs.end()) return Status::NotFound(fmt::format("no attribute '{}'", name));
    details.xattrs.erase(it);
    return Status::Ok();
  };
  return names_.ChangeDetails(InodeId(inode), remove);
}

// ---------------------------------------------------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------------------------------------------------

Result<FileAttributes> MountedInodes::Make(uint64_t directory, std::string_view name, Inode inode,
                                           const InodeOwner& owner, std::string_view target) {
  ISOZONE_RETURN_IF_ERROR(CheckMode(owner.mode));
  auto details = std::make_shared<InodeDetails>();
  details->mode = owner.mode;
  details->user = owner.user;
  details->group = owner.group;
  details->modified = details->changed = names_.Now();
  details->target = target;
  inode.details = std::move(details);
  return names_.Make({name, InodeId(directory)}, std::move(inode), Times::kChange);
}

Result<FileAttributes> MountedInodes::MakeDirectory(uint64_t directory, std::string_view name,
                                                    const InodeOwner& owner) {
  Inode inode;
  inode.is_directory = true;
  return Make(directory, name, std::move(inode), owner);
}

Result<FileAttributes> MountedInodes::MakeSymlink(uint64_t directory, std::string_view name, std::string_view target,
                                                  const InodeOwner& owner) {
  if (target.empty() || target.size() > kTargetMax) {
    return Status::InvalidArgument(fmt::format("a target has {} bytes, not 1 to {}", target.size(), kTargetMax));
  }
  Inode inode;
  inode.kind = FileKind::kSmall;
  return Make(directory, name, std::move(inode), owner, target);
}

Result<FileAttributes> MountedInodes::Link(uint64_t inode, uint64_t directory, std::string_view name) {
  ISOZONE_RETURN_IF_ERROR(names_.Link(InodeId(inode), {name, InodeId(directory)}, Times::kChange));
  return GetAttributes(inode);
}

// ---------------------------------------------------------------------------------------------------------------------
// Files
// ---------------------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<PositionalFile>> MountedInodes::Create(uint64_t directory, std::string_view name,
                                                              const CreateOptions& options, const InodeOwner& owner) {
  Inode inode;
  inode.kind = options.kind;
  inode.lifetime = options.lifetime;
  inode.level = options.level;
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes made, Make(directory, name, std::move(inode), owner));
  ISOZONE_ASSIGN_OR_RETURN(auto file, open_->Open(InodeId(made.inode)));
  file->SetIoClass(options.io_class);
  return std::shared_ptr<PositionalFile>(std::move(file));
}

Result<std::shared_ptr<PositionalFile>> MountedInodes::Open(uint64_t inode) {
  ISOZONE_RETURN_IF_ERROR(files_.Refresh());
  const InodeId id(inode);
  if (auto file = open_->Find(id)) return std::shared_ptr<PositionalFile>(std::move(file));
  {
    const MutexLock lock(catalog_.namespace_mutex);
    const Inode* found = catalog_.state.Find(id);
    if (found == nullptr) return NoInode(id);
    if (found->is_directory) return Status::IsDirectory(fmt::format("inode {} is a directory", inode));
    if (found->is_symlink()) return Status::InvalidArgument(fmt::format("inode {} is a symbolic link", inode));
  }
  ISOZONE_ASSIGN_OR_RETURN(auto file, open_->Open(id));
  return std::shared_ptr<PositionalFile>(std::move(file));
}

}  // namespace isozone
