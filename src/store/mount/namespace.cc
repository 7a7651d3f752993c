#include "store/mount/namespace.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "store/file/file_space.h"
#include "store/metadata/metadata_rules.h"
#include "store/space/zone_pool.h"

namespace isozone {
namespace {

// "/a/b/" -> {"/a/", "b"}. The name is empty for the root.
std::pair<std::string_view, std::string_view> SplitPath(std::string_view path) {
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"/", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

Status CheckName(std::string_view name) {
  if (IsValidName(name)) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("'{}' cannot be a file name (1 to 255 bytes, not '.' or '..', without '/' and NUL)", name));
}

// Details have the time to the nanosecond, unless the data was changed since they got it.
FileTime ModifiedOf(const Inode& inode) {
  const bool precise = inode.details != nullptr && inode.details->modified.s == inode.modified_s;
  return precise ? inode.details->modified : FileTime{inode.modified_s, 0};
}

Status CheckType(const Inode& inode, bool is_directory, const Where& where) {
  if (inode.is_directory == is_directory) return Status::Ok();
  return is_directory ? Status::NotDirectory(fmt::format("'{}' is not a directory", where.name))
                      : Status::IsDirectory(fmt::format("'{}' is a directory", where.name));
}

}  // namespace

Status NoInode(InodeId id) { return Status::NotFound(fmt::format("inode {} does not exist", id.value())); }

Result<Namespace::Place> Namespace::FindPlace(const Where& where) const {
  const auto [path, name] = where.directory ? std::pair(std::string_view(), where.name) : SplitPath(where.name);
  const Inode* directory = nullptr;
  if (where.directory) {
    directory = catalog_.state.Find(*where.directory);
    if (directory == nullptr) return NoInode(*where.directory);
  } else {
    if (!where.name.starts_with('/')) {
      return Status::InvalidArgument(fmt::format("path '{}' is not absolute", where.name));
    }
    if (name.empty()) return Status::InvalidArgument(fmt::format("path '{}' names the root directory", where.name));
    ISOZONE_RETURN_IF_ERROR(CheckName(name));
    ISOZONE_ASSIGN_OR_RETURN(directory, catalog_.state.Lookup(path));
  }
  if (!directory->is_directory) {
    return Status::NotDirectory(fmt::format("'{}': what it would lie in is not a directory", where.name));
  }
  return Place{directory, {directory->id, std::string(name)}, catalog_.state.Child(directory->id, name)};
}

Result<Namespace::Place> Namespace::FindExisting(const Where& where) const {
  ISOZONE_ASSIGN_OR_RETURN(Place place, FindPlace(where));
  if (place.existing == nullptr) return Status::NotFound(fmt::format("'{}' does not exist", where.name));
  return place;
}

Result<Namespace::Place> Namespace::FindNew(const Where& where) const {
  if (where.directory) ISOZONE_RETURN_IF_ERROR(CheckName(where.name));
  return FindPlace(where);
}

Result<Namespace::Place> Namespace::FindFree(const Where& where) const {
  ISOZONE_ASSIGN_OR_RETURN(Place place, FindNew(where));
  if (place.existing != nullptr) return Status::AlreadyExists(fmt::format("'{}' exists", where.name));
  return place;
}

Result<InodeId> Namespace::Find(const Where& where) const {
  const MutexLock lock(catalog_.namespace_mutex);
  ISOZONE_ASSIGN_OR_RETURN(const Place place, FindExisting(where));
  return place.existing->id;
}

void Namespace::VisitNames(InodeId directory, const Visit& visit) const {
  std::string last;  // the one that was visited last before the mutex was let go
  for (size_t count = kNamesAtOnce; count == kNamesAtOnce;) {
    const MutexLock lock(catalog_.namespace_mutex);
    if (catalog_.state.Find(directory) == nullptr) return;  // it was removed: it has none
    const DirectoryTable& names = catalog_.state.Children(directory);
    auto name = names.Behind(last);
    for (count = 0; count < kNamesAtOnce && name != names.end(); ++count, ++name) {
      visit((*name).name, *catalog_.state.Find((*name).inode));
      if (count + 1 == kNamesAtOnce) last = (*name).name;
    }
  }
}

bool Namespace::IsAbove(const Inode& inode, const Inode& directory) const {
  if (!inode.is_directory) return false;
  for (const Inode* up = &directory;; up = catalog_.state.Find(up->links.front().parent)) {
    if (up->id == inode.id) return true;
    if (up->id == kRootInode) return false;
  }
}

Status Namespace::CheckEmpty(const Inode& inode, const Where& where) const {
  if (!inode.is_directory || catalog_.state.Children(inode.id).empty()) return Status::Ok();
  return Status::NotEmpty(fmt::format("'{}' is not empty", where.name));
}

FileTime Namespace::Now() const {
  const uint64_t ns = catalog_.clock.NowWallNs();
  return {ns / kSecondNs, static_cast<uint32_t>(ns % kSecondNs)};
}

std::shared_ptr<InodeDetails> Namespace::DetailsOf(const Inode& inode) {
  auto details = std::make_shared<InodeDetails>();
  if (inode.details != nullptr) *details = *inode.details;
  if (inode.details == nullptr && inode.is_directory) details->mode = 0755;
  details->modified = ModifiedOf(inode);
  return details;
}

MetadataOp Namespace::NewTimes(const Inode& inode, const FileTime& modified) const {
  // Most often there are details. What they hold besides, which can be 64 KiB, is not written again.
  if (inode.details != nullptr) return SetTimes{inode.id, modified, Now()};
  auto details = DetailsOf(inode);
  details->modified = modified;
  details->changed = Now();
  return SetDetails{inode.id, std::move(details)};
}

MetadataOp Namespace::Changed(const Inode& inode) const { return NewTimes(inode, ModifiedOf(inode)); }

void Namespace::AddUnlink(const Inode& inode, const InodeLink& link, Times times, std::vector<MetadataOp>& ops) const {
  const bool last = inode.links.size() == 1;
  if (!last && times == Times::kChange) ops.push_back(Changed(inode));
  ops.emplace_back(RemoveLink{inode.id, link});
  if (last) ops.emplace_back(RemoveInode{inode.id});
}

Status Namespace::Commit(std::span<const MetadataOp> ops, const Inode* unlinked) {
  if (unlinked == nullptr || unlinked->links.size() > 1) return catalog_.Commit(ops).status();
  const InodeId id = unlinked->id;
  // A region that a writer has open is not part of this, since the writer claims it.
  const auto space = SpaceOf(catalog_.geometry, *unlinked);
  // A log of unknown lifetime is most likely a WAL.
  const bool unknown_log = unlinked->kind == FileKind::kLog && unlinked->lifetime == Lifetime::kNotSet;
  const Lifetime lifetime = unknown_log ? Lifetime::kShort : unlinked->lifetime;
  const auto file = catalog_.FindOpen(id);
  std::shared_ptr<const InodeDetails> details = file == nullptr ? nullptr : DetailsOf(*unlinked);
  ISOZONE_RETURN_IF_ERROR(catalog_.Commit(ops).status());
  if (file != nullptr) {
    file->NoteRemoved();
    file->details = std::move(details);
  }
  std::vector<ZoneId> zones;
  for (const auto& [zone, bytes] : space) zones.push_back(zone);
  catalog_.pool->NoteDeletion(lifetime, zones);
  SpaceClaim unnamed = SpaceClaim::FromMetadata(*catalog_.pool, space);
  if (auto unread = catalog_.unread_logs.extract(id)) unnamed.Merge(std::move(unread.mapped()));
  catalog_.LeaveToHandles(id, std::move(unnamed));
  return Status::Ok();
}

// ---------------------------------------------------------------------------------------------------------------------
// Changing names
// ---------------------------------------------------------------------------------------------------------------------

Result<InodeId> Namespace::Put(const Place& place, Inode inode, Times times) {
  const InodeId id = inode.id = catalog_.state.NextId();
  inode.modified_s = inode.details == nullptr ? catalog_.clock.NowWallS() : inode.details->modified.s;
  inode.links = {place.link};
  std::vector<MetadataOp> ops;
  if (place.existing != nullptr) AddUnlink(*place.existing, place.link, times, ops);
  ops.emplace_back(PutInode{std::move(inode)});
  if (times == Times::kChange) ops.push_back(NamesChanged(*place.directory));
  ISOZONE_RETURN_IF_ERROR(Commit(ops, place.existing));
  return id;
}

Result<FileAttributes> Namespace::Make(const Where& where, Inode inode, Times times) {
  FileAttributes made;
  {
    const MutexLock lock(catalog_.namespace_mutex);
    ISOZONE_ASSIGN_OR_RETURN(const Place place, FindFree(where));
    ISOZONE_ASSIGN_OR_RETURN(const InodeId id, Put(place, std::move(inode), times));
    made = catalog_.AttributesOf(*catalog_.state.Find(id));
  }
  ISOZONE_RETURN_IF_ERROR(catalog_.KeepNames());
  return made;
}

Result<std::shared_ptr<OpenFile>> Namespace::MakeOrReplace(const Where& where, Inode inode, Times times) {
  const FileKind kind = inode.kind;
  const MutexLock lock(catalog_.namespace_mutex);
  ISOZONE_ASSIGN_OR_RETURN(const Place place, FindNew(where));
  if (place.existing != nullptr) ISOZONE_RETURN_IF_ERROR(CheckType(*place.existing, /*is_directory=*/false, where));
  ISOZONE_ASSIGN_OR_RETURN(const InodeId id, Put(place, std::move(inode), times));
  auto file = std::make_shared<OpenFile>(id, kind, catalog_.geometry.zone_size, ExtentList(), Status::Ok());
  file->has_writer = true;
  catalog_.open_files[id] = file;
  return file;
}

Status Namespace::Link(InodeId id, const Where& to, Times times) {
  {
    const MutexLock lock(catalog_.namespace_mutex);
    const Inode* inode = catalog_.state.Find(id);
    if (inode == nullptr) return NoInode(id);
    if (inode->is_directory) return Status::IsDirectory(fmt::format("inode {} is a directory", id.value()));
    ISOZONE_ASSIGN_OR_RETURN(const Place place, FindFree(to));
    std::vector<MetadataOp> ops = {AddLink{id, place.link}};
    if (times == Times::kChange) {
      ops.push_back(Changed(*inode));
      ops.push_back(NamesChanged(*place.directory));
    }
    ISOZONE_RETURN_IF_ERROR(Commit(ops, nullptr));
  }
  return catalog_.KeepNames();
}

Status Namespace::Remove(const Where& where, bool is_directory, Times times) {
  {
    const MutexLock lock(catalog_.namespace_mutex);
    ISOZONE_ASSIGN_OR_RETURN(const Place place, FindExisting(where));
    ISOZONE_RETURN_IF_ERROR(CheckType(*place.existing, is_directory, where));
    ISOZONE_RETURN_IF_ERROR(CheckEmpty(*place.existing, where));
    std::vector<MetadataOp> ops;
    if (times == Times::kChange) ops.push_back(NamesChanged(*place.directory));
    AddUnlink(*place.existing, place.link, times, ops);
    ISOZONE_RETURN_IF_ERROR(Commit(ops, place.existing));
  }
  return catalog_.KeepNames();
}

Status Namespace::Rename(const Where& from, const Where& to, RenameMode mode, Times times) {
  {
    const MutexLock lock(catalog_.namespace_mutex);
    ISOZONE_ASSIGN_OR_RETURN(const Place source, FindExisting(from));
    ISOZONE_ASSIGN_OR_RETURN(const Place target, mode == RenameMode::kNoReplace ? FindFree(to) : FindNew(to));
    const bool exchange = mode == RenameMode::kExchange;
    if (target.existing == nullptr && exchange) return Status::NotFound(fmt::format("'{}' does not exist", to.name));
    const Inode& moved = *source.existing;
    // Both are names of one file, or one name: as POSIX has it, nothing happens.
    if (target.existing == &moved) return Status::Ok();
    const Inode* exchanged = exchange ? target.existing : nullptr;
    const Inode* replaced = exchange ? nullptr : target.existing;
    if (replaced != nullptr) ISOZONE_RETURN_IF_ERROR(CheckType(*replaced, moved.is_directory, to));
    if (IsAbove(moved, *target.directory) || (exchanged != nullptr && IsAbove(*exchanged, *source.directory))) {
      return Status::InvalidArgument(fmt::format("'{}' cannot be moved into itself", from.name));
    }
    if (replaced != nullptr) ISOZONE_RETURN_IF_ERROR(CheckEmpty(*replaced, to));

    std::vector<MetadataOp> ops;
    if (times == Times::kChange) {
      ops = {Changed(moved), NamesChanged(*source.directory)};
      if (target.directory != source.directory) ops.push_back(NamesChanged(*target.directory));
      if (exchanged != nullptr) ops.push_back(Changed(*exchanged));
    }
    if (replaced != nullptr) AddUnlink(*replaced, target.link, times, ops);
    ops.emplace_back(RemoveLink{moved.id, source.link});
    if (exchanged != nullptr) ops.emplace_back(RemoveLink{exchanged->id, target.link});
    ops.emplace_back(AddLink{moved.id, target.link});
    if (exchanged != nullptr) ops.emplace_back(AddLink{exchanged->id, source.link});
    ISOZONE_RETURN_IF_ERROR(Commit(ops, replaced));
  }
  return catalog_.KeepNames();
}

// ---------------------------------------------------------------------------------------------------------------------
// Attributes
// ---------------------------------------------------------------------------------------------------------------------

Status Namespace::SetModified(std::string_view path, uint64_t modified_s) {
  {
    const MutexLock lock(catalog_.namespace_mutex);
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, catalog_.state.Lookup(path));
    const MetadataOp op = SetAttributes{inode->id, inode->lifetime, modified_s, inode->level};
    ISOZONE_RETURN_IF_ERROR(Commit({&op, 1}, nullptr));
    if (const auto file = catalog_.FindOpen(inode->id)) file->keeps_time = true;
  }
  return catalog_.KeepNames();
}

Status Namespace::ChangeDetails(InodeId id, const std::function<Status(InodeDetails&)>& change) {
  {
    const MutexLock lock(catalog_.namespace_mutex);
    const Inode* inode = catalog_.state.Find(id);
    const auto file = catalog_.FindOpen(id);
    if (inode == nullptr && (file == nullptr || file->details == nullptr)) return NoInode(id);
    auto details = inode == nullptr ? std::make_shared<InodeDetails>(*file->details) : DetailsOf(*inode);
    ISOZONE_RETURN_IF_ERROR(change(*details));
    details->changed = Now();
    if (inode == nullptr) {
      file->details = std::move(details);
    } else {
      const MetadataOp op = SetDetails{id, std::move(details)};
      ISOZONE_RETURN_IF_ERROR(Commit({&op, 1}, nullptr));
    }
  }
  return catalog_.KeepNames();
}

Result<std::shared_ptr<const InodeDetails>> Namespace::Details(InodeId id) const {
  const MutexLock lock(catalog_.namespace_mutex);
  if (const Inode* inode = catalog_.state.Find(id)) return inode->details;
  const auto file = catalog_.FindOpen(id);
  if (file == nullptr || file->details == nullptr) return NoInode(id);
  return file->details;
}

}  // namespace isozone
