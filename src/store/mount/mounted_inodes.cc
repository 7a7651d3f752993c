#include "store/mount/mounted_inodes.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "store/metadata/metadata_rules.h"
#include "store/mount/mounted_file_system.h"

namespace isozone {
namespace {

constexpr size_t kNamesAtOnce = 1000;  // that are taken under the namespace mutex at a time

Status NoInode(InodeId id) { return Status::NotFound(fmt::format("inode {} does not exist", id.value())); }

Status CheckNewName(std::string_view name) {
  if (IsValidName(name)) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("'{}' cannot be a file name (1 to 255 bytes, not '.' or '..', without '/' and NUL)", name));
}

FileTime ModifiedOf(const Inode& inode) {
  const bool precise = inode.details != nullptr && inode.details->modified.s == inode.modified_s;
  return precise ? inode.details->modified : FileTime{inode.modified_s, 0};
}

Status CheckOwner(const InodeOwner& owner) {
  if (owner.mode <= InodeDetails::kModeMax) return Status::Ok();
  return Status::InvalidArgument(fmt::format("{:o} are no permission bits", owner.mode));
}

// Keeps the details of a file whose last name goes for those who have it open. Made before the namespace mutex is
// taken, and destroyed after it.
class LastName {
 public:
  explicit LastName(OpenInodes& open) : open_(open) {}
  // Of one that is still there after all, what is kept is not used.
  void Goes(InodeId id, std::shared_ptr<const InodeDetails> details) {
    id_ = id;
    details_ = std::move(details);
  }
  ~LastName() {
    if (details_ != nullptr) open_.KeepDetails(id_, std::move(details_));
  }
  LastName(const LastName&) = delete;
  LastName& operator=(const LastName&) = delete;

 private:
  OpenInodes& open_;
  InodeId id_;
  std::shared_ptr<const InodeDetails> details_;
};

// A moment of a directory.
class NamesAtOnce final : public DirectoryStream {
 public:
  // `inodes` outlives this.
  NamesAtOnce(const MountedInodes& inodes, InodeId directory) : inodes_(inodes), directory_(directory) {}

  Result<std::vector<Entry>> Read(uint64_t cookie, size_t most) override {
    const MutexLock lock(mu_);
    if (cookie == 0 || !read_) {
      ISOZONE_ASSIGN_OR_RETURN(names_, inodes_.Names(directory_));
      read_ = true;
    }
    const size_t begin = std::min<uint64_t>(cookie, names_.size());
    const size_t count = std::min(most, names_.size() - begin);
    const auto first = names_.begin() + static_cast<ptrdiff_t>(begin);
    return std::vector<Entry>(first, first + static_cast<ptrdiff_t>(count));
  }

 private:
  const MountedInodes& inodes_;
  const InodeId directory_;
  Mutex mu_;
  std::vector<Entry> names_ ISOZONE_GUARDED_BY(mu_);
  bool read_ ISOZONE_GUARDED_BY(mu_) = false;
};

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Open files
// ---------------------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<SharedFile>> OpenInodes::Get(InodeId id, const Make& make) {
  {
    const MutexLock lock(mu_);
    for (auto it = files_.find(id); it != files_.end(); it = files_.find(id)) {
      if (auto file = it->second.file.lock()) return file;
      removed_.Wait(mu_);
    }
    files_.emplace(id, Entry());
  }
  auto made = make();
  if (!made.ok()) {
    Remove(id);
    return made.status();
  }
  std::shared_ptr<SharedFile> file(made->release(), [self = shared_from_this(), id](SharedFile* last) {
    delete last;
    self->Remove(id);
  });
  const MutexLock lock(mu_);
  files_[id].file = file;
  removed_.SignalAll();
  return file;
}

std::shared_ptr<SharedFile> OpenInodes::Find(InodeId id) {
  const MutexLock lock(mu_);
  for (auto it = files_.find(id); it != files_.end(); it = files_.find(id)) {
    if (auto file = it->second.file.lock()) return file;
    removed_.Wait(mu_);
  }
  return nullptr;
}

void OpenInodes::KeepDetails(InodeId id, std::shared_ptr<const InodeDetails> details) {
  const MutexLock lock(mu_);
  const auto it = files_.find(id);
  if (it != files_.end()) it->second.details = std::move(details);
}

std::shared_ptr<const InodeDetails> OpenInodes::KeptDetails(InodeId id) {
  const MutexLock lock(mu_);
  const auto it = files_.find(id);
  return it == files_.end() ? nullptr : it->second.details;
}

std::vector<std::shared_ptr<SharedFile>> OpenInodes::All() {
  std::vector<std::shared_ptr<SharedFile>> all;
  const MutexLock lock(mu_);
  for (const auto& [id, entry] : files_) {
    if (auto file = entry.file.lock()) all.push_back(std::move(file));
  }
  return all;
}

void OpenInodes::Remove(InodeId id) {
  const MutexLock lock(mu_);
  files_.erase(id);
  removed_.SignalAll();
}

MountedInodes::MountedInodes(MountedFileSystem& fs)
    : fs_(fs), services_(std::make_shared<PositionalServices>(fs.context_)), open_(std::make_shared<OpenInodes>()) {}

Status MountedInodes::DetachAll() {
  Status status;
  for (const auto& file : open_->All()) {
    const Status detached = file->Detach();
    if (status.ok()) status = detached;
  }
  services_->zones.Release();
  return status;
}

Result<std::shared_ptr<SharedFile>> MountedInodes::OpenShared(InodeId id) {
  return open_->Get(id, [this, id]() -> Result<std::unique_ptr<SharedFile>> {
    ISOZONE_ASSIGN_OR_RETURN(auto file, fs_.OpenById(id));
    SharedFile::Parts parts;
    parts.services = services_;
    parts.file = file;
    parts.reader = fs_.ReaderOf(std::move(file));
    parts.make_writer = [fs = &fs_](std::shared_ptr<OpenFile> of, const CreateOptions& options) {
      return fs->WriterOf(std::move(of), options, {options.lifetime, options.level}, /*claimed=*/true);
    };
    const MutexLock lock(fs_.mutex());
    if (const Inode* inode = fs_.context_->state.Find(id)) {
      parts.attributes = AttributesOf(*fs_.context_, *inode);
      parts.options.kind = inode->kind;
      parts.options.lifetime = inode->lifetime;
      parts.options.level = inode->level;
    }
    return std::make_unique<SharedFile>(std::move(parts));
  });
}

Result<std::shared_ptr<PositionalFile>> MountedInodes::Open(uint64_t inode) {
  ISOZONE_RETURN_IF_ERROR(fs_.Refresh());
  const InodeId id(inode);
  if (auto file = open_->Find(id)) return std::shared_ptr<PositionalFile>(std::move(file));
  {
    const MutexLock lock(fs_.mutex());
    const Inode* found = fs_.context_->state.Find(id);
    if (found == nullptr) return NoInode(id);
    if (found->is_directory) return Status::IsDirectory(fmt::format("inode {} is a directory", inode));
    if (found->is_symlink()) return Status::InvalidArgument(fmt::format("inode {} is a symbolic link", inode));
  }
  ISOZONE_ASSIGN_OR_RETURN(auto file, OpenShared(id));
  return std::shared_ptr<PositionalFile>(std::move(file));
}

Result<std::shared_ptr<PositionalFile>> MountedInodes::Create(uint64_t directory, std::string_view name,
                                                              const CreateOptions& options, const InodeOwner& owner) {
  ISOZONE_RETURN_IF_ERROR(CheckOwner(owner));
  Inode inode;
  inode.kind = options.kind;
  inode.lifetime = options.lifetime;
  inode.level = options.level;
  inode.details = NewDetails(owner);
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes made, Put(directory, name, std::move(inode)));
  ISOZONE_ASSIGN_OR_RETURN(auto file, OpenShared(InodeId(made.inode)));
  file->SetIoClass(options.io_class);
  return std::shared_ptr<PositionalFile>(std::move(file));
}

// ---------------------------------------------------------------------------------------------------------------------
// Looking
// ---------------------------------------------------------------------------------------------------------------------

Result<FileAttributes> MountedInodes::Lookup(uint64_t directory, std::string_view name) {
  ISOZONE_RETURN_IF_ERROR(fs_.Refresh());
  for (;;) {
    uint64_t found = 0;
    {
      const MutexLock lock(fs_.mutex());
      ISOZONE_ASSIGN_OR_RETURN(const auto place, fs_.FindPlaceIn(InodeId(directory), name));
      if (place.existing == nullptr) return Status::NotFound(fmt::format("'{}' does not exist", name));
      found = place.existing->id.value();
    }
    auto attributes = GetAttributes(found);
    // Another file may have taken the name meanwhile.
    if (!attributes.status().Is(StatusCode::kNotFound)) return attributes;
  }
}

Result<std::unique_ptr<FileReader>> MountedInodes::FollowLog(InodeId id) {
  if (fs_.refresh_ == nullptr) return std::unique_ptr<FileReader>();
  {
    const MutexLock lock(fs_.mutex());
    const Inode* found = fs_.context_->state.Find(id);
    if (found == nullptr || !fs_.refresh_->MayGrow(*found)) return std::unique_ptr<FileReader>();
  }
  ISOZONE_ASSIGN_OR_RETURN(auto log, fs_.OpenById(id));
  return fs_.ReaderOf(std::move(log));
}

Result<FileAttributes> MountedInodes::GetAttributes(uint64_t inode) {
  const InodeId id(inode);
  ISOZONE_RETURN_IF_ERROR(fs_.Refresh());
  ISOZONE_ASSIGN_OR_RETURN(const auto log, FollowLog(id));
  const std::shared_ptr<SharedFile> open = open_->Find(id);  // goes behind the lock
  const std::shared_ptr<const InodeDetails> kept = open_->KeptDetails(id);
  const MutexLock lock(fs_.mutex());
  const Inode* found = fs_.context_->state.Find(id);
  if (found == nullptr && open == nullptr) return NoInode(id);
  FileAttributes a = found == nullptr ? open->NamelessAttributes() : AttributesOf(*fs_.context_, *found);
  if (found == nullptr && kept != nullptr) {
    a.mode = kept->mode;
    a.user = kept->user;
    a.group = kept->group;
    a.modified = kept->modified;
    a.modified_s = kept->modified.s;
    a.changed = kept->changed;
  }
  if (const uint64_t ns = open == nullptr ? 0 : open->modified_ns()) {
    constexpr uint64_t kNsInS = 1'000'000'000;
    a.modified = {ns / kNsInS, static_cast<uint32_t>(ns % kNsInS)};
    a.modified_s = a.modified.s;
    a.changed = std::max(a.changed, a.modified);
  }
  return a;
}

Result<std::string> MountedInodes::PathOf(uint64_t inode) {
  const MutexLock lock(fs_.mutex());
  const Inode* at = fs_.context_->state.Find(InodeId(inode));
  if (at == nullptr) return NoInode(InodeId(inode));
  std::vector<const InodeLink*> links;
  while (at->id != kRootInode) {
    links.push_back(&at->links.front());
    at = fs_.context_->state.Find(links.back()->parent);
  }
  std::string path;
  for (auto link = links.rbegin(); link != links.rend(); ++link) path.append("/").append((*link)->name);
  return path.empty() ? "/" : path;
}

Result<uint64_t> MountedInodes::AllocatedBytes(uint64_t inode) {
  const MutexLock lock(fs_.mutex());
  const Inode* found = fs_.context_->state.Find(InodeId(inode));
  if (found == nullptr) return NoInode(InodeId(inode));
  // What the metadata does not know yet is at the end.
  const auto file = fs_.context_->FindOpen(found->id);
  return found->allocated() + (file == nullptr || file->size() < found->size ? 0 : file->size() - found->size);
}

Result<std::unique_ptr<DirectoryStream>> MountedInodes::OpenDirectory(uint64_t directory) {
  ISOZONE_RETURN_IF_ERROR(fs_.Refresh());
  const MutexLock lock(fs_.mutex());
  const Inode* found = fs_.context_->state.Find(InodeId(directory));
  if (found == nullptr) return NoInode(InodeId(directory));
  if (!found->is_directory) return Status::NotDirectory(fmt::format("inode {} is not a directory", directory));
  return std::unique_ptr<DirectoryStream>(std::make_unique<NamesAtOnce>(*this, found->id));
}

Result<std::vector<DirectoryStream::Entry>> MountedInodes::Names(InodeId directory) const {
  std::vector<DirectoryStream::Entry> names;
  for (bool more = true; more;) {
    more = false;
    const MutexLock lock(fs_.mutex());
    if (fs_.context_->state.Find(directory) == nullptr) return names;  // it was removed: it has none
    const DirectoryTable& children = fs_.context_->state.Children(directory);
    const size_t before = names.size();
    for (auto child = names.empty() ? children.begin() : children.Behind(names.back().name); child != children.end();
         ++child) {
      const Inode& inode = *fs_.context_->state.Find((*child).inode);
      const InodeType type = inode.is_directory   ? InodeType::kDirectory
                             : inode.is_symlink() ? InodeType::kSymlink
                                                  : InodeType::kRegular;
      names.push_back({std::string((*child).name), inode.id.value(), type, names.size() + 1});
      more = names.size() == before + kNamesAtOnce;
      if (more) break;
    }
  }
  return names;
}

Result<std::string> MountedInodes::ReadLink(uint64_t inode) {
  const MutexLock lock(fs_.mutex());
  const Inode* found = fs_.context_->state.Find(InodeId(inode));
  if (found == nullptr) return NoInode(InodeId(inode));
  if (!found->is_symlink()) return Status::InvalidArgument(fmt::format("inode {} is not a symbolic link", inode));
  return found->details->target;
}

uint64_t MountedInodes::inode_count() const {
  const MutexLock lock(fs_.mutex());
  return fs_.context_->state.size();
}

// ---------------------------------------------------------------------------------------------------------------------
// Details
// ---------------------------------------------------------------------------------------------------------------------

FileTime MountedInodes::Now() const {
  constexpr uint64_t kNsInS = 1'000'000'000;
  const uint64_t ns = fs_.context_->clock.NowWallNs();
  return {ns / kNsInS, static_cast<uint32_t>(ns % kNsInS)};
}

std::shared_ptr<InodeDetails> MountedInodes::NewDetails(const InodeOwner& owner) const {
  auto details = std::make_shared<InodeDetails>();
  details->mode = owner.mode;
  details->user = owner.user;
  details->group = owner.group;
  details->modified = details->changed = Now();
  return details;
}

std::shared_ptr<InodeDetails> MountedInodes::DetailsOf(const Inode& inode) const {
  auto details = std::make_shared<InodeDetails>();
  if (inode.details != nullptr) *details = *inode.details;
  if (inode.details == nullptr && inode.is_directory) details->mode = 0755;
  details->modified = ModifiedOf(inode);
  return details;
}

MetadataOp MountedInodes::NewTimes(const Inode& inode, const FileTime& modified) const {
  // Most often there are details. What they hold besides, which can be 64 KiB, is not written again.
  if (inode.details != nullptr) return SetTimes{inode.id, modified, Now()};
  auto details = DetailsOf(inode);
  details->modified = modified;
  details->changed = Now();
  return SetDetails{inode.id, std::move(details)};
}

MetadataOp MountedInodes::Changed(const Inode& inode) const { return NewTimes(inode, ModifiedOf(inode)); }

MetadataOp MountedInodes::NamesChanged(const Inode& directory) const { return NewTimes(directory, Now()); }

Result<FileAttributes> MountedInodes::ChangeDetails(uint64_t inode,
                                                    const std::function<Status(InodeDetails&)>& change) {
  bool has_name = false;
  {
    const MutexLock lock(fs_.mutex());
    const Inode* found = fs_.context_->state.Find(InodeId(inode));
    has_name = found != nullptr;
    if (has_name) {
      auto details = DetailsOf(*found);
      ISOZONE_RETURN_IF_ERROR(change(*details));
      details->changed = Now();
      const MetadataOp op = SetDetails{found->id, std::move(details)};
      ISOZONE_RETURN_IF_ERROR(fs_.context_->Commit({&op, 1}).status());
    }
  }
  ISOZONE_RETURN_IF_ERROR(fs_.context_->KeepNames());
  return has_name ? GetAttributes(inode) : ChangeNameless(InodeId(inode), change);
}

Result<FileAttributes> MountedInodes::ChangeNameless(InodeId id, const std::function<Status(InodeDetails&)>& change) {
  const auto kept = open_->KeptDetails(id);
  if (kept == nullptr) return NoInode(id);
  auto details = std::make_shared<InodeDetails>(*kept);
  ISOZONE_RETURN_IF_ERROR(change(*details));
  details->changed = Now();
  open_->KeepDetails(id, std::move(details));
  return GetAttributes(id.value());
}

Result<std::shared_ptr<const InodeDetails>> MountedInodes::FindDetails(InodeId id) {
  {
    const MutexLock lock(fs_.mutex());
    if (const Inode* found = fs_.context_->state.Find(id)) return found->details;
  }
  auto kept = open_->KeptDetails(id);
  if (kept == nullptr) return NoInode(id);
  return kept;
}

Result<FileAttributes> MountedInodes::SetAttributes(uint64_t inode, const AttributeChanges& changes) {
  if (changes.mode) ISOZONE_RETURN_IF_ERROR(CheckOwner({*changes.mode, 0, 0}));
  if (changes.modified && changes.modified->ns >= 1'000'000'000) {
    return Status::InvalidArgument(fmt::format("{} ns are a second or more", changes.modified->ns));
  }
  // What was written before must not give the file its time later: an open file keeps this one.
  if (changes.modified) {
    if (const auto open = open_->Find(InodeId(inode))) {
      ISOZONE_RETURN_IF_ERROR(open->WriteBack());
      open->SetModified(*changes.modified);
    }
  }
  return ChangeDetails(inode, [&](InodeDetails& details) {
    details.mode = changes.mode.value_or(details.mode);
    details.user = changes.user.value_or(details.user);
    details.group = changes.group.value_or(details.group);
    details.modified = changes.modified.value_or(details.modified);
    return Status::Ok();
  });
}

Result<std::string> MountedInodes::GetXattr(uint64_t inode, std::string_view name) {
  ISOZONE_ASSIGN_OR_RETURN(const auto details, FindDetails(InodeId(inode)));
  if (details != nullptr) {
    const auto it = details->xattrs.find(name);
    if (it != details->xattrs.end()) return it->second;
  }
  return Status::NotFound(fmt::format("inode {} has no attribute '{}'", inode, name));
}

Result<std::vector<std::string>> MountedInodes::ListXattrs(uint64_t inode) {
  ISOZONE_ASSIGN_OR_RETURN(const auto details, FindDetails(InodeId(inode)));
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
  return ChangeDetails(inode, set).status();
}

Status MountedInodes::RemoveXattr(uint64_t inode, std::string_view name) {
  const auto remove = [&](InodeDetails& details) {
    const auto it = details.xattrs.find(name);
    if (it == details.xattrs.end()) return Status::NotFound(fmt::format("no attribute '{}'", name));
    details.xattrs.erase(it);
    return Status::Ok();
  };
  return ChangeDetails(inode, remove).status();
}

// ---------------------------------------------------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------------------------------------------------

Result<FileAttributes> MountedInodes::Put(uint64_t directory, std::string_view name, Inode inode) {
  ISOZONE_RETURN_IF_ERROR(CheckNewName(name));
  FileAttributes made;
  {
    const MutexLock lock(fs_.mutex());
    ISOZONE_ASSIGN_OR_RETURN(const auto place, fs_.FindPlaceIn(InodeId(directory), name));
    if (place.existing != nullptr) return Status::AlreadyExists(fmt::format("'{}' exists", name));
    inode.id = fs_.context_->state.NextId();
    inode.modified_s = inode.details->modified.s;
    inode.links = {{place.parent, place.name}};
    const InodeId id = inode.id;
    const std::array<MetadataOp, 2> ops = {PutInode{std::move(inode)},
                                           NamesChanged(*fs_.context_->state.Find(place.parent))};
    ISOZONE_RETURN_IF_ERROR(fs_.context_->Commit(ops).status());
    made = AttributesOf(*fs_.context_, *fs_.context_->state.Find(id));
  }
  ISOZONE_RETURN_IF_ERROR(fs_.context_->KeepNames());
  return made;
}

Result<FileAttributes> MountedInodes::MakeDirectory(uint64_t directory, std::string_view name,
                                                    const InodeOwner& owner) {
  ISOZONE_RETURN_IF_ERROR(CheckOwner(owner));
  Inode inode;
  inode.is_directory = true;
  inode.details = NewDetails(owner);
  return Put(directory, name, std::move(inode));
}

Result<FileAttributes> MountedInodes::MakeSymlink(uint64_t directory, std::string_view name, std::string_view target,
                                                  const InodeOwner& owner) {
  ISOZONE_RETURN_IF_ERROR(CheckOwner(owner));
  if (target.empty() || target.size() > kTargetMax) {
    return Status::InvalidArgument(fmt::format("a target has {} bytes, not 1 to {}", target.size(), kTargetMax));
  }
  auto details = NewDetails(owner);
  details->target = target;
  Inode inode;
  inode.kind = FileKind::kSmall;
  inode.details = std::move(details);
  return Put(directory, name, std::move(inode));
}

Result<FileAttributes> MountedInodes::Link(uint64_t inode, uint64_t directory, std::string_view name) {
  ISOZONE_RETURN_IF_ERROR(CheckNewName(name));
  {
    const MutexLock lock(fs_.mutex());
    const Inode* found = fs_.context_->state.Find(InodeId(inode));
    if (found == nullptr) return NoInode(InodeId(inode));
    if (found->is_directory) return Status::IsDirectory(fmt::format("inode {} is a directory", inode));
    ISOZONE_ASSIGN_OR_RETURN(const auto place, fs_.FindPlaceIn(InodeId(directory), name));
    if (place.existing != nullptr) return Status::AlreadyExists(fmt::format("'{}' exists", name));
    const std::array<MetadataOp, 3> ops = {AddLink{found->id, {place.parent, place.name}}, Changed(*found),
                                           NamesChanged(*fs_.context_->state.Find(place.parent))};
    ISOZONE_RETURN_IF_ERROR(fs_.context_->Commit(ops).status());
  }
  ISOZONE_RETURN_IF_ERROR(fs_.context_->KeepNames());
  return GetAttributes(inode);
}

Status MountedInodes::Unlink(uint64_t directory, std::string_view name) {
  {
    LastName last(*open_);
    const MutexLock lock(fs_.mutex());
    ISOZONE_ASSIGN_OR_RETURN(const auto place, fs_.FindPlaceIn(InodeId(directory), name));
    if (place.existing == nullptr) return Status::NotFound(fmt::format("'{}' does not exist", name));
    if (place.existing->is_directory) return Status::IsDirectory(fmt::format("'{}' is a directory", name));
    std::vector<MetadataOp> ops = {NamesChanged(*fs_.context_->state.Find(place.parent))};
    if (place.existing->links.size() > 1) ops.push_back(Changed(*place.existing));
    if (place.existing->links.size() == 1) last.Goes(place.existing->id, DetailsOf(*place.existing));
    MountedFileSystem::AddUnlinkOps(*place.existing, {place.parent, place.name}, ops);
    ISOZONE_RETURN_IF_ERROR(fs_.CommitUnlink(*place.existing, ops));
  }
  return fs_.context_->KeepNames();
}

Status MountedInodes::RemoveDirectory(uint64_t directory, std::string_view name) {
  {
    const MutexLock lock(fs_.mutex());
    ISOZONE_ASSIGN_OR_RETURN(const auto place, fs_.FindPlaceIn(InodeId(directory), name));
    const Inode* gone = place.existing;
    if (gone == nullptr) return Status::NotFound(fmt::format("'{}' does not exist", name));
    if (!gone->is_directory) return Status::NotDirectory(fmt::format("'{}' is not a directory", name));
    if (!fs_.context_->state.Children(gone->id).empty())
      return Status::NotEmpty(fmt::format("'{}' is not empty", name));
    const std::array<MetadataOp, 3> ops = {NamesChanged(*fs_.context_->state.Find(place.parent)),
                                           RemoveLink{gone->id, gone->links.front()}, RemoveInode{gone->id}};
    ISOZONE_RETURN_IF_ERROR(fs_.context_->Commit(ops).status());
  }
  return fs_.context_->KeepNames();
}

Status MountedInodes::Rename(uint64_t from_directory, std::string_view from, uint64_t to_directory, std::string_view to,
                             RenameMode mode) {
  ISOZONE_RETURN_IF_ERROR(CheckNewName(to));
  {
    LastName last(*open_);
    const MutexLock lock(fs_.mutex());
    ISOZONE_ASSIGN_OR_RETURN(const auto source, fs_.FindPlaceIn(InodeId(from_directory), from));
    ISOZONE_ASSIGN_OR_RETURN(const auto target, fs_.FindPlaceIn(InodeId(to_directory), to));
    if (source.existing == nullptr) return Status::NotFound(fmt::format("'{}' does not exist", from));
    if (target.existing == nullptr && mode == RenameMode::kExchange) {
      return Status::NotFound(fmt::format("'{}' does not exist", to));
    }
    if (target.existing != nullptr && mode == RenameMode::kNoReplace) {
      return Status::AlreadyExists(fmt::format("'{}' exists", to));
    }
    // Both are names of one file: as POSIX has it, nothing happens.
    if (target.existing == source.existing) return Status::Ok();
    std::vector<MetadataOp> ops = {Changed(*source.existing), NamesChanged(*fs_.context_->state.Find(source.parent))};
    if (target.parent != source.parent) ops.push_back(NamesChanged(*fs_.context_->state.Find(target.parent)));
    if (mode != RenameMode::kExchange) {
      const Inode* replaced = target.existing;
      if (replaced != nullptr && replaced->links.size() > 1) ops.push_back(Changed(*replaced));
      if (replaced != nullptr && replaced->links.size() == 1) last.Goes(replaced->id, DetailsOf(*replaced));
      ISOZONE_RETURN_IF_ERROR(fs_.RenameTo(source, target, std::move(ops)));
    } else {
      const Inode& one = *source.existing;
      const Inode& other = *target.existing;
      const bool in_itself = (one.is_directory && fs_.IsAbove(one.id, target.parent)) ||
                             (other.is_directory && fs_.IsAbove(other.id, source.parent));
      if (in_itself) return Status::InvalidArgument(fmt::format("'{}' cannot be moved into itself", from));
      ops.emplace_back(Changed(other));
      ops.emplace_back(RemoveLink{one.id, {source.parent, source.name}});
      ops.emplace_back(RemoveLink{other.id, {target.parent, target.name}});
      ops.emplace_back(AddLink{one.id, {target.parent, target.name}});
      ops.emplace_back(AddLink{other.id, {source.parent, source.name}});
      ISOZONE_RETURN_IF_ERROR(fs_.context_->Commit(ops).status());
    }
  }
  return fs_.context_->KeepNames();
}

}  // namespace isozone
