#include "store/mount/mounted_file_system.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/log.h"
#include "store/file/data_sink.h"
#include "store/file/file_reader.h"
#include "store/file/file_writer.h"
#include "store/file/log_sink.h"
#include "store/file/open_log.h"
#include "store/file/truncate.h"
#include "store/mount/statistics_at_rest.h"
#include "store/zone/lane_choice.h"

namespace isozone {
namespace {

// Small files are written a little at a time, so their buffer need not hold a stripe.
constexpr size_t kSmallBuffer = 64 * kKiB;

struct ParentAndName {
  std::string_view parent;
  std::string_view name;
};

// "/a/b/" -> {"/a", "b"}. The name is empty for the root.
ParentAndName SplitPath(std::string_view path) {
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"/", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

Status CheckName(std::string_view path, std::string_view name) {
  if (path.empty() || path.front() != '/') {
    return Status::InvalidArgument(fmt::format("path '{}' is not absolute", path));
  }
  if (name.empty()) return Status::InvalidArgument(fmt::format("path '{}' names the root directory", path));
  if (name == "." || name == ".." || name.size() > 255 || name.find('\0') != std::string_view::npos) {
    return Status::InvalidArgument(fmt::format("'{}' cannot be a file name (1 to 255 bytes, not '.' or '..')", name));
  }
  return Status::Ok();
}

Status CheckCohort(const CreateOptions& options) {
  if (options.together_with != 0 || !options.own_zones) return Status::Ok();
  return Status::InvalidArgument("own_zones says nothing without together_with: name the files that share the zones");
}

}  // namespace

MountedFileSystem::~MountedFileSystem() {
  const Status status = Unmount();
  if (!status.ok()) Log().error("unmounting {} failed: {}", context_->device->name(), status.ToString());
}

// ---------------------------------------------------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------------------------------------------------

Result<MountedFileSystem::Place> MountedFileSystem::FindPlace(std::string_view path) const {
  const auto [parent_path, name] = SplitPath(path);
  ISOZONE_RETURN_IF_ERROR(CheckName(path, name));
  ISOZONE_ASSIGN_OR_RETURN(const Inode* parent, context_->state.Lookup(parent_path));
  if (!parent->is_directory) return Status::NotDirectory(fmt::format("'{}' is not a directory", parent_path));
  return Place{parent->id, std::string(name), context_->state.Child(parent->id, name)};
}

Result<MountedFileSystem::Place> MountedFileSystem::FindPlaceIn(InodeId directory, std::string_view name) const {
  const Inode* parent = context_->state.Find(directory);
  if (parent == nullptr) return Status::NotFound(fmt::format("inode {} does not exist", directory.value()));
  if (!parent->is_directory) return Status::NotDirectory(fmt::format("inode {} is not a directory", directory.value()));
  return Place{parent->id, std::string(name), context_->state.Child(parent->id, name)};
}

Result<const Inode*> MountedFileSystem::FindFile(std::string_view path) const {
  ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_->state.Lookup(path));
  if (inode->is_directory) return Status::IsDirectory(fmt::format("'{}' is a directory", path));
  if (inode->is_symlink()) {
    return Status::NotSupported(
        fmt::format("'{}' is a symbolic link to '{}', which paths do not follow", path, inode->details->target));
  }
  return inode;
}

Result<FileAttributes> MountedFileSystem::Stat(std::string_view path) {
  ISOZONE_RETURN_IF_ERROR(Refresh());
  InodeId open_log;
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_->state.Lookup(path));
    const bool grows_elsewhere = refresh_ != nullptr && refresh_->MayGrow(*inode);
    if (!grows_elsewhere) return AttributesOf(*context_, *inode);
    open_log = inode->id;
  }
  // A writer in another process may have this log open, and only its frames and that process's memory tell its size.
  ISOZONE_ASSIGN_OR_RETURN(const auto reader, OpenForRead(path));
  const MutexLock lock(mutex());
  const Inode* inode = context_->state.Find(open_log);
  if (inode == nullptr) return Status::NotFound(fmt::format("'{}' does not exist", path));
  return AttributesOf(*context_, *inode);
}

Result<std::vector<DirectoryEntry>> MountedFileSystem::List(std::string_view directory) {
  ISOZONE_RETURN_IF_ERROR(Refresh());
  InodeId id;
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_->state.Lookup(directory));
    if (!inode->is_directory) return Status::NotDirectory(fmt::format("'{}' is not a directory", directory));
    id = inode->id;
  }
  std::vector<DirectoryEntry> entries;
  for (bool more = true; more;) {
    std::vector<DirectoryEntry> batch = ListBehind(id, entries.empty() ? nullptr : &entries.back().name);
    more = batch.size() == kListBatch;
    entries.insert(entries.end(), std::make_move_iterator(batch.begin()), std::make_move_iterator(batch.end()));
  }
  if (refresh_ == nullptr) return entries;
  for (DirectoryEntry& entry : entries) {
    if (entry.attributes.kind != FileKind::kLog || entry.attributes.is_directory) continue;
    const auto now = Stat(fmt::format("{}/{}", directory, entry.name));
    if (now.ok()) entry.attributes = *now;
  }
  return entries;
}

std::vector<DirectoryEntry> MountedFileSystem::ListBehind(InodeId directory, const std::string* after) const {
  std::vector<DirectoryEntry> entries;
  const MutexLock lock(mutex());
  if (context_->state.Find(directory) == nullptr) return entries;  // it was removed meanwhile
  const DirectoryTable& children = context_->state.Children(directory);
  for (auto child = after == nullptr ? children.begin() : children.Behind(*after);
       child != children.end() && entries.size() < kListBatch; ++child) {
    entries.push_back({std::string((*child).name), AttributesOf(*context_, *context_->state.Find((*child).inode))});
  }
  return entries;
}

Status MountedFileSystem::PutNew(const Place& place, Inode inode, const Inode* replaced) {
  inode.links = {{place.parent, place.name}};
  inode.modified_s = context_->clock.NowWallS();
  std::vector<MetadataOp> ops;
  if (replaced != nullptr) AddUnlinkOps(*replaced, inode.links.front(), ops);
  ops.emplace_back(PutInode{std::move(inode)});
  if (replaced != nullptr) return CommitUnlink(*replaced, ops);
  return context_->Commit(ops).status();
}

Status MountedFileSystem::CreateDirectory(std::string_view path) {
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Place place, FindPlace(path));
    if (place.existing != nullptr) return Status::AlreadyExists(fmt::format("'{}' exists", path));
    Inode inode;
    inode.id = context_->state.NextId();
    inode.is_directory = true;
    ISOZONE_RETURN_IF_ERROR(PutNew(place, std::move(inode), nullptr));
  }
  return context_->KeepNames();
}

Status MountedFileSystem::CreateDirectories(std::string_view path) {
  for (size_t end = 0; end != std::string_view::npos;) {
    end = path.find('/', end + 1);
    const std::string_view prefix = path.substr(0, end);
    if (SplitPath(prefix).name.empty()) continue;
    const Status status = CreateDirectory(prefix);
    if (!status.ok() && !status.Is(StatusCode::kAlreadyExists)) return status;
  }
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, Stat(path));
  if (!attributes.is_directory) return Status::NotDirectory(fmt::format("'{}' exists and is no directory", path));
  return Status::Ok();
}

Status MountedFileSystem::RemoveDirectory(std::string_view path) {
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_->state.Lookup(path));
    if (!inode->is_directory) return Status::NotDirectory(fmt::format("'{}' is not a directory", path));
    if (inode->id == kRootInode) return Status::InvalidArgument("the root directory cannot be removed");
    if (!context_->state.Children(inode->id).empty()) return Status::NotEmpty(fmt::format("'{}' is not empty", path));
    const std::array<MetadataOp, 2> ops = {RemoveLink{inode->id, inode->links.front()}, RemoveInode{inode->id}};
    ISOZONE_RETURN_IF_ERROR(context_->Commit(ops).status());
  }
  return context_->KeepNames();
}

void MountedFileSystem::AddUnlinkOps(const Inode& inode, const InodeLink& link, std::vector<MetadataOp>& ops) {
  ops.emplace_back(RemoveLink{inode.id, link});
  if (inode.links.size() == 1) ops.emplace_back(RemoveInode{inode.id});
}

void MountedFileSystem::NoteDeletion(Lifetime lifetime, std::span<const ZoneBytes> space) {
  std::vector<ZoneId> zones;
  zones.reserve(space.size());
  for (const auto& [zone, bytes] : space) zones.push_back(zone);
  context_->pool->NoteDeletion(lifetime, zones);
}

Status MountedFileSystem::CommitUnlink(const Inode& replaced, std::span<const MetadataOp> ops) {
  const InodeId id = replaced.id;
  const bool last = replaced.links.size() == 1;
  // A region that a writer has open is not part of this, since the writer claims it.
  const auto space = SpaceOf(context_->geometry(), replaced);
  // A log of unknown lifetime is most likely a WAL.
  const bool unknown_log = replaced.kind == FileKind::kLog && replaced.lifetime == Lifetime::kNotSet;
  const Lifetime lifetime = unknown_log ? Lifetime::kShort : replaced.lifetime;
  ISOZONE_RETURN_IF_ERROR(context_->Commit(ops).status());
  if (!last) return Status::Ok();
  if (const auto file = context_->FindOpen(id)) file->NoteRemoved();
  NoteDeletion(lifetime, space);
  SpaceClaim unnamed = SpaceClaim::FromMetadata(*context_->pool, space);
  unnamed.Merge(TakeUnread(id));
  context_->LeaveToHandles(id, std::move(unnamed));
  return Status::Ok();
}

Status MountedFileSystem::Unlink(std::string_view path) {
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Place place, FindPlace(path));
    if (place.existing == nullptr) return Status::NotFound(fmt::format("'{}' does not exist", path));
    if (place.existing->is_directory) return Status::IsDirectory(fmt::format("'{}' is a directory", path));
    std::vector<MetadataOp> ops;
    AddUnlinkOps(*place.existing, {place.parent, place.name}, ops);
    ISOZONE_RETURN_IF_ERROR(CommitUnlink(*place.existing, ops));
  }
  return context_->KeepNames();
}

Status MountedFileSystem::Rename(std::string_view from, std::string_view to) {
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Place source, FindPlace(from));
    if (source.existing == nullptr) return Status::NotFound(fmt::format("'{}' does not exist", from));
    ISOZONE_ASSIGN_OR_RETURN(const Place target, FindPlace(to));
    const Inode* replaced = target.existing;
    if (replaced == source.existing) {
      // Both are names of one file, or they are the same name: as POSIX has it, nothing happens.
      return Status::Ok();
    }
    ISOZONE_RETURN_IF_ERROR(RenameTo(source, target, {}));
  }
  return context_->KeepNames();
}

bool MountedFileSystem::IsAbove(InodeId above, InodeId directory) const {
  for (const Inode* up = context_->state.Find(directory);; up = context_->state.Find(up->links.front().parent)) {
    if (up->id == above) return true;
    if (up->id == kRootInode) return false;
  }
}

Status MountedFileSystem::RenameTo(const Place& source, const Place& target, std::vector<MetadataOp> ops) {
  const Inode* replaced = target.existing;
  if (replaced != nullptr && replaced->is_directory != source.existing->is_directory) {
    return replaced->is_directory ? Status::IsDirectory(fmt::format("'{}' is a directory", target.name))
                                  : Status::NotDirectory(fmt::format("'{}' is not a directory", target.name));
  }
  if (source.existing->is_directory && IsAbove(source.existing->id, target.parent)) {
    return Status::InvalidArgument(fmt::format("'{}' cannot be moved into itself", source.name));
  }
  if (replaced != nullptr && replaced->is_directory && !context_->state.Children(replaced->id).empty()) {
    return Status::NotEmpty(fmt::format("'{}' is not empty", target.name));
  }
  if (replaced != nullptr) AddUnlinkOps(*replaced, {target.parent, target.name}, ops);
  const InodeId moved = source.existing->id;
  ops.emplace_back(RemoveLink{moved, {source.parent, source.name}});
  ops.emplace_back(AddLink{moved, {target.parent, target.name}});
  if (replaced != nullptr) return CommitUnlink(*replaced, ops);
  return context_->Commit(ops).status();
}

Status MountedFileSystem::Link(std::string_view from, std::string_view to) {
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, FindFile(from));
    ISOZONE_ASSIGN_OR_RETURN(const Place target, FindPlace(to));
    if (target.existing != nullptr) return Status::AlreadyExists(fmt::format("'{}' exists", to));
    const MetadataOp op = AddLink{inode->id, {target.parent, target.name}};
    ISOZONE_RETURN_IF_ERROR(context_->Commit({&op, 1}).status());
  }
  return context_->KeepNames();
}

Status MountedFileSystem::SetModified(std::string_view path, uint64_t modified_s) {
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_->state.Lookup(path));
    const MetadataOp op = SetAttributes{inode->id, inode->lifetime, modified_s, inode->level};
    ISOZONE_RETURN_IF_ERROR(context_->Commit({&op, 1}).status());
    if (const auto file = context_->FindOpen(inode->id)) file->keeps_time = true;
  }
  return context_->KeepNames();
}

Status MountedFileSystem::SyncMetadata() { return context_->SyncMetadata(); }

// ---------------------------------------------------------------------------------------------------------------------
// Files
// ---------------------------------------------------------------------------------------------------------------------

std::shared_ptr<OpenFile> MountedFileSystem::Register(InodeId id, FileKind kind, ExtentList extents, Status damage) {
  if (auto file = context_->FindOpen(id)) {
    // A log that could not be read when it was opened before may be readable now.
    if (!file->is_busy() && file->damage().Is(StatusCode::kIoError)) file->Reset(std::move(extents), std::move(damage));
    return file;
  }
  auto file =
      std::make_shared<OpenFile>(id, kind, context_->geometry().zone_size, std::move(extents), std::move(damage));
  context_->open_files[id] = file;
  return file;
}

Result<std::shared_ptr<OpenFile>> MountedFileSystem::OpenFollowed(InodeId id) {
  ISOZONE_ASSIGN_OR_RETURN(auto file, refresh_->Open(id));
  if (file->kind() != FileKind::kLog) return file;
  Status grown = refresh_->GrowLog(*file);
  if (grown.ok()) return file;
  context_->Release(std::move(file));
  const MutexLock lock(mutex());
  if (context_->state.Find(id) == nullptr) return Status::NotFound(fmt::format("inode {} was removed", id.value()));
  return grown;
}

Result<std::shared_ptr<OpenFile>> MountedFileSystem::Open(Inode inode) {
  // A log has to be scanned. That is I/O, so it is done without the lock. If the log was opened meanwhile, Register
  // finds it. If it was written to and closed again, it is scanned again.
  for (;;) {
    LogContents log;
    if (inode.kind == FileKind::kLog) {
      ISOZONE_ASSIGN_OR_RETURN(log, ReadLog(context_->engine, context_->frame_seed, inode));
    }
    const MutexLock lock(mutex());
    const Inode* now = context_->state.Find(inode.id);
    if (now == nullptr) return Status::NotFound(fmt::format("inode {} was removed", inode.id.value()));
    if (inode.kind != FileKind::kLog) return Register(inode.id, inode.kind, now->extents, Status::Ok());
    if (context_->FindOpen(inode.id) != nullptr || now->regions == inode.regions) {
      return Register(inode.id, inode.kind, log.extents, std::move(log.damage));
    }
    inode = *now;
  }
}

Status MountedFileSystem::SealLeftOpen(const OpenFile& file) {
  const Inode* inode = context_->state.Find(file.id());
  if (inode == nullptr || !inode->has_open_region()) return Status::Ok();
  SealedLog log = SealLog(context_->geometry(), inode->regions, file.Extents().Expand());
  const std::vector<ZoneBytes> before = SpaceOf(inode->regions);
  const std::vector<ZoneBytes> after = SpaceOf(log.regions);
  const MetadataOp op = SetLogRegions{file.id(), std::move(log.regions), inode->modified_s};
  ISOZONE_RETURN_IF_ERROR(context_->Commit({&op, 1}).status());
  SpaceClaim space = SpaceClaim::FromMetadata(*context_->pool, before);
  space.Merge(TakeUnread(file.id()));
  space.Grow(*context_->pool, after);
  space.Split(after).ToMetadata();
  return Status::Ok();
}

SpaceClaim MountedFileSystem::TakeUnread(InodeId id) {
  auto unread = context_->unread_logs.extract(id);
  return unread ? std::move(unread.mapped()) : SpaceClaim();
}

size_t MountedFileSystem::BufferSize(FileKind kind) const {
  const DeviceGeometry& geometry = context_->geometry();
  uint64_t wanted = context_->options.write_buffer;
  if (kind == FileKind::kSmall) wanted = kSmallBuffer;
  if (kind == FileKind::kData && context_->parallel) {
    wanted = RoundUp(context_->options.stripe_unit, std::max<uint64_t>(geometry.optimal_write, 1));
  }
  // A frame lies in one zone, so it must be small compared with a zone.
  const uint64_t limit =
      std::max<uint64_t>(RoundDown(geometry.zone_capacity / 8, geometry.block_size), 2ULL * geometry.block_size);
  return RoundUp(std::min(wanted, limit), geometry.block_size);
}

// Returns over how many zones a writer stripes, and how many units it may hold.
SinkOptions MountedFileSystem::StripeOptions(size_t unit, uint64_t expected_size) const {
  const MountOptions& options = context_->options;
  SinkOptions sink;
  sink.depth = std::clamp<uint64_t>(options.writer_memory / unit, 2, 1024) - 1;
  sink.width = static_cast<uint32_t>(std::min<uint64_t>({options.stripe_width, context_->groups->count(), sink.depth}));
  sink.width = LanesOf(expected_size, unit, sink.width);
  return sink;
}

// A log leaves at least half of the groups to others: to flushes, which keep out of the groups of a log, and to
// compactions.
SinkOptions MountedFileSystem::LogOptions(size_t unit) const {
  SinkOptions sink;
  sink.unit = unit;
  sink.width = std::min(context_->options.log_width, std::max(1U, context_->groups->count() / 2));
  sink.depth = sink.width;
  return sink;
}

InodeId MountedFileSystem::DirectoryOf(InodeId id) const {
  const MutexLock lock(mutex());
  const Inode* inode = context_->state.Find(id);
  return inode == nullptr || inode->links.empty() ? InodeId() : inode->links.front().parent;
}

std::unique_ptr<FileWriter> MountedFileSystem::MakeWriter(std::shared_ptr<OpenFile> file, const CreateOptions& options,
                                                          DataClass data) {
  const FileKind kind = file->kind();
  const size_t buffer = BufferSize(kind);
  BufferedWriter::Options how{buffer, context_->kept != nullptr && kind != FileKind::kData, {}};
  std::unique_ptr<WriteSink> sink;
  if (kind == FileKind::kLog) {
    SinkOptions with = context_->parallel ? LogOptions(buffer) : SinkOptions();
    with.wakes = how.kept;
    sink = MakeLogSink(*context_, *file, data.lifetime, with);
    how.directory = DirectoryOf(file->id());
  } else {
    const bool striped = kind == FileKind::kData && context_->parallel;
    SinkOptions with = striped ? StripeOptions(buffer, options.expected_size) : SinkOptions();
    with.unit = buffer;
    with.expected_size = options.expected_size;
    with.cohort = {options.together_with, options.own_zones};
    sink = MakeDataSink(*context_, file->id(), data, with);
  }
  auto writer = std::make_unique<BufferedWriter>(context_, std::move(file), std::move(sink), data, how);
  writer->SetIoClass(options.io_class);
  return writer;
}

Result<std::unique_ptr<FileWriter>> MountedFileSystem::Create(std::string_view path, const CreateOptions& options) {
  ISOZONE_RETURN_IF_ERROR(CheckCohort(options));
  std::shared_ptr<OpenFile> file;
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Place place, FindPlace(path));
    if (place.existing != nullptr && place.existing->is_directory) {
      return Status::IsDirectory(fmt::format("'{}' is a directory", path));
    }
    Inode inode;
    inode.id = context_->state.NextId();
    inode.kind = options.kind;
    inode.lifetime = options.lifetime;
    inode.level = options.level;
    const InodeId id = inode.id;
    ISOZONE_RETURN_IF_ERROR(PutNew(place, std::move(inode), place.existing));
    file = Register(id, options.kind, {}, Status::Ok());
    file->has_writer = true;
  }
  auto writer = MakeWriter(std::move(file), options, {options.lifetime, options.level});
  ISOZONE_RETURN_IF_ERROR(context_->KeepNames());
  return writer;
}

Result<std::unique_ptr<FileWriter>> MountedFileSystem::OpenForAppend(std::string_view path,
                                                                     const CreateOptions& options) {
  if (context_->read_only()) return Status::ReadOnly("the file system is mounted read-only");
  ISOZONE_RETURN_IF_ERROR(CheckCohort(options));
  Inode inode;
  {
    const MutexLock lock(mutex());
    const auto found = FindFile(path);
    if (found.ok()) inode = **found;
    if (!found.ok() && !found.status().Is(StatusCode::kNotFound)) return found.status();
  }
  if (inode.id == InodeId()) return Create(path, options);
  ISOZONE_ASSIGN_OR_RETURN(auto file, Open(inode));
  auto writer = WriterOf(std::move(file), options,
                         {options.lifetime == Lifetime::kNotSet ? inode.lifetime : options.lifetime,
                          options.level == DataClass::kNoLevel ? inode.level : options.level});
  return writer.ok() ? std::move(writer) : writer.status().WithContext(fmt::format("'{}'", path));
}

Result<std::unique_ptr<FileWriter>> MountedFileSystem::WriterOf(std::shared_ptr<OpenFile> file,
                                                                const CreateOptions& options, DataClass data,
                                                                bool claimed) {
  Status status = file->damage();
  bool left_open = false;
  if (status.ok() && file->kind() == FileKind::kLog) {
    const MutexLock lock(mutex());
    const Inode* inode = context_->state.Find(file->id());
    left_open = inode != nullptr && inode->has_open_region() && !file->has_writer;
  }
  // The log is given an end below, which says that everything before it is there.
  if (status.ok() && left_open) status = context_->engine.Flush(options.io_class);
  if (status.ok()) {
    const MutexLock lock(mutex());
    if (file->has_writer || (file->is_claimed && !claimed))
      status = Status::Busy("the file is being written by another handle");
    if (status.ok()) status = SealLeftOpen(*file);
    if (status.ok()) file->has_writer = true;
  }
  if (!status.ok()) {
    context_->Release(std::move(file));
    return status;
  }
  return MakeWriter(std::move(file), options, data);
}

Result<uint64_t> MountedFileSystem::TakeOver(InodeId id, std::span<const KeptPiece> pieces) {
  Inode inode;
  {
    const MutexLock lock(mutex());
    const Inode* found = context_->state.Find(id);
    if (found == nullptr || found->is_directory || found->is_symlink()) return uint64_t{0};
    inode = *found;
  }
  const DataClass data{inode.lifetime, inode.level};
  ISOZONE_ASSIGN_OR_RETURN(auto file, Open(std::move(inode)));
  const std::vector<std::byte> missing = JoinKept(pieces, file->size());
  const uint64_t end = file->size() + missing.size();
  Status status = file->damage();
  // Of data, only what is appended in small pieces is kept.
  const bool has_gap = pieces.back().file_offset > end && file->kind() != FileKind::kData;
  if (status.ok() && has_gap) status = Status::Corruption("a piece in the middle is missing");
  if (!status.ok() || missing.empty()) {
    context_->Release(std::move(file));
    if (!status.ok()) return status;
    return uint64_t{0};
  }
  ISOZONE_ASSIGN_OR_RETURN(const auto writer, WriterOf(std::move(file), {}, data));
  ISOZONE_RETURN_IF_ERROR(writer->Append(missing));
  ISOZONE_RETURN_IF_ERROR(writer->Sync());
  ISOZONE_RETURN_IF_ERROR(writer->Close());
  return missing.size();
}

Result<std::unique_ptr<FileReader>> MountedFileSystem::OpenForRead(std::string_view path) {
  ISOZONE_RETURN_IF_ERROR(Refresh());
  for (;;) {
    InodeId id;
    {
      const MutexLock lock(mutex());
      ISOZONE_ASSIGN_OR_RETURN(const Inode* found, FindFile(path));
      id = found->id;
    }
    auto file = OpenById(id);
    if (file.ok()) return ReaderOf(*std::move(file));
    // Another file may have taken the name meanwhile.
    if (!file.status().Is(StatusCode::kNotFound)) return file.status();
  }
}

Result<std::shared_ptr<OpenFile>> MountedFileSystem::OpenById(InodeId id) {
  if (refresh_ != nullptr) return OpenFollowed(id);
  Inode inode;
  {
    const MutexLock lock(mutex());
    const Inode* found = context_->state.Find(id);
    if (found == nullptr) return Status::NotFound(fmt::format("inode {} was removed", id.value()));
    auto file = context_->FindOpen(id);
    // A log that could not be read when it was opened before is tried again.
    if (file != nullptr && !file->is_busy() && file->damage().Is(StatusCode::kIoError)) file.reset();
    if (file == nullptr && found->kind != FileKind::kLog) {
      file = Register(found->id, found->kind, found->extents, Status::Ok());
    }
    if (file != nullptr) return file;
    inode = *found;
  }
  return Open(std::move(inode));
}

std::unique_ptr<FileReader> MountedFileSystem::ReaderOf(std::shared_ptr<OpenFile> file) {
  PiecewiseReader::Hooks hooks;
  if (refresh_ != nullptr) {
    const std::weak_ptr<OpenFile> weak = file;
    hooks.after_read = [this, weak] { return refresh_->CheckRead(*weak.lock()); };
    if (file->kind() == FileKind::kLog) {
      hooks.before_end = [this, weak] { return refresh_->GrowLog(*weak.lock()); };
    }
  }
  return std::make_unique<PiecewiseReader>(context_, std::move(file), std::move(hooks));
}

Status MountedFileSystem::SealCohort(uint64_t together_with) {
  if (together_with == 0) return Status::InvalidArgument("0 is the number of no cohort");
  if (context_->read_only()) return Status::ReadOnly("the file system is mounted read-only");
  context_->pool->Seal(together_with);
  return Status::Ok();
}

Status MountedFileSystem::Overwrite(std::string_view path, uint64_t offset, std::span<const std::byte> data) {
  Inode inode;
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Inode* found, FindFile(path));
    if (HasWriter(found->id)) return Status::Busy(fmt::format("'{}' is being written by another handle", path));
    inode = *found;
  }
  if (inode.kind == FileKind::kLog) return Status::NotSupported(fmt::format("'{}' is a log: it only grows", path));
  ISOZONE_RETURN_IF_ERROR(CheckNoHole(inode.size, offset));
  if (data.empty()) return Status::Ok();
  return OverwriteFile(*context_, inode.id, offset, data);
}

Status MountedFileSystem::Truncate(std::string_view path, uint64_t size) {
  // A writer knows how to cut and how to extend a file, so this opens one.
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, Stat(path));
  if (attributes.is_directory) return Status::IsDirectory(fmt::format("'{}' is a directory", path));
  if (attributes.size == size && attributes.kind != FileKind::kLog) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(auto writer, OpenForAppend(path, {attributes.kind, IoClass::kOther, attributes.lifetime}));
  ISOZONE_RETURN_IF_ERROR(writer->Truncate(size));
  return writer->Close();
}

Result<Statistics> MountedFileSystem::Look() const {
  Statistics statistics;
  if (publisher_ != nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(statistics, publisher_->Look());
  } else {
    statistics = StatisticsAtRest(*this, context_->clock);
    statistics.life = PageLife::kMounted;
    statistics.process = PageProcess::Self();
    static_cast<Figures&>(statistics.figures) = state_->Stats();
  }
  statistics.gc_scheme = context_->collector->options().scheme;
  return statistics;
}

Status MountedFileSystem::Unmount() {
  if (unmounted_) return Status::Ok();
  unmounted_ = true;
  const Status detached = inodes_->DetachAll();
  if (context_->read_only()) return Status::Ok();
  context_->writers.Stop();
  context_->collector->Stop();
  Status status = context_->journal->Sync(context_->journal->last_sequence());
  if (status.ok()) status = detached;
  if (status.ok()) status = context_->engine.Flush(IoClass::kOther);
  context_->pool->Stop();
  publisher_->Stop();
  const Status closed = context_->journal->Close();
  context_->statistics_page->End();
  // What could not be written stays, for the next mount to try.
  if (status.ok() && closed.ok() && context_->kept != nullptr) context_->kept->Remove();
  return status.ok() ? closed : status;
}

}  // namespace isozone
