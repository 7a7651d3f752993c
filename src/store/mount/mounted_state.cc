#include "store/mount/mounted_state.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "store/file/open_log.h"
#include "store/metadata/metadata_io.h"
#include "store/mount/figure_sources.h"

namespace isozone {
namespace {

void TakeDetails(const InodeDetails& details, FileAttributes& a) {
  a.mode = details.mode;
  a.user = details.user;
  a.group = details.group;
  if (details.modified.s == a.modified_s) a.modified = details.modified;
  a.changed = std::max(details.changed, a.modified);
  if (details.target.empty()) return;
  a.type = InodeType::kSymlink;
  a.size = details.target.size();
}

// The regions of a log that is being written, each with the most that it can hold.
using OpenRegions = std::vector<std::pair<LogRegion, uint64_t>>;

OpenRegions OpenRegionsOf(const MountContext& context, const Inode& inode) ISOZONE_REQUIRES(context.namespace_mutex) {
  OpenRegions open;
  for (const LogRegion& region : inode.regions) {
    if (region.open()) open.emplace_back(region, context.state.BytesOf(region, context.geometry().zone_capacity));
  }
  return open;
}

// What the device has in them by now. It is asked, so the caller does not hold the namespace mutex.
Result<std::vector<ZoneOfFile>> WrittenIn(const MountContext& context, const OpenRegions& open)
    ISOZONE_EXCLUDES(context.namespace_mutex) {
  std::vector<ZoneOfFile> written;
  for (const auto& [region, most] : open) {
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(*context.device, region.zone));
    const uint64_t bytes = zone.write_pointer - std::min(region.begin, zone.write_pointer);
    written.push_back({region.zone, std::min(most, bytes)});
  }
  return written;
}

Result<uint64_t> BytesIn(const MountContext& context, const OpenRegions& open)
    ISOZONE_EXCLUDES(context.namespace_mutex) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneOfFile> written, WrittenIn(context, open));
  uint64_t bytes = 0;
  for (const ZoneOfFile& zone : written) bytes += zone.bytes;
  return bytes;
}

}  // namespace

FileAttributes AttributesOf(MountContext& context, const Inode& inode) {
  FileAttributes a;
  a.inode = inode.id.value();
  a.is_directory = inode.is_directory;
  a.kind = inode.kind;
  a.lifetime = inode.lifetime;
  a.level = inode.level;
  a.size = inode.size;
  a.modified_s = inode.modified_s;
  a.links = static_cast<uint32_t>(inode.links.size());
  a.modified = a.changed = {inode.modified_s, 0};
  a.type = inode.is_directory ? InodeType::kDirectory : InodeType::kRegular;
  a.mode = inode.is_directory ? 0755 : 0644;
  if (inode.details != nullptr) TakeDetails(*inode.details, a);
  if (const auto file = context.FindOpen(inode.id)) a.size = file->size();
  return a;
}

// ---------------------------------------------------------------------------------------------------------------------
// State
// ---------------------------------------------------------------------------------------------------------------------

Figures MountedState::Stats() const {
  FigureSources sources(context_);
  if (refresh_ != nullptr) {
    const MetadataCopies copies = refresh_->Metadata();
    sources.space = refresh_->Space();
    sources.metadata = {copies.whole.size(), copies.wanted, /*failed=*/false};
  }
  return FiguresOf(context_, sources);
}

Status MountedState::VisitFiles(const std::function<void(const FileDetails&)>& visit) const {
  if (refresh_ != nullptr) ISOZONE_RETURN_IF_ERROR(refresh_->Refresh());
  InodeId last;
  for (;;) {
    FileDetails details;
    Inode inode;
    OpenRegions open;
    {
      const MutexLock lock(context_.namespace_mutex);
      const Inode* next = context_.state.Next(last);
      if (next == nullptr) return Status::Ok();
      inode = *next;
      details.paths = context_.state.PathsOf(inode.id);
      details.attributes = AttributesOf(context_, inode);
      details.allocated = inode.allocated();
      open = OpenRegionsOf(context_, inode);
    }
    last = inode.id;
    if (inode.kind == FileKind::kLog) {
      ISOZONE_ASSIGN_OR_RETURN(const uint64_t growing, BytesIn(context_, open));
      details.allocated += growing;
      ISOZONE_RETURN_IF_ERROR(ReadLogOf(inode, details));
    } else {
      details.extents = std::move(inode.extents);
    }
    visit(details);
  }
}

Status MountedState::ReadLogOf(const Inode& inode, FileDetails& details) const {
  if (refresh_ == nullptr || !refresh_->MayGrow(inode)) {
    ISOZONE_ASSIGN_OR_RETURN(const LogContents log, ReadLog(context_.engine, context_.frame_seed, inode));
    if (refresh_ != nullptr) details.attributes.size = log.size;
    details.extents = log.extents;
    return Status::Ok();
  }
  // A writer in another process may have it open.
  auto file = refresh_->Open(inode.id);
  if (file.status().Is(StatusCode::kNotFound)) return Status::Ok();  // it was removed meanwhile
  ISOZONE_RETURN_IF_ERROR(file.status());
  Status status = refresh_->GrowLog(**file);
  details.attributes.size = (*file)->size();
  details.extents = (*file)->Extents();
  context_.Release(*std::move(file));
  const MutexLock lock(context_.namespace_mutex);
  return context_.state.Find(inode.id) == nullptr ? Status::Ok() : status;  // it was removed meanwhile
}

MetadataCopies MountedState::Metadata() const {
  if (refresh_ != nullptr) return refresh_->Metadata();
  return {context_.journal->copies_wanted(), context_.journal->Copies()};
}

Status MountedState::RestoreMetadataCopies() {
  if (context_.read_only()) return Status::ReadOnly("the file system is mounted read-only");
  return context_.journal->RestoreCopies();
}

std::string MountedState::read_only_reason() const {
  if (context_.read_only()) return "mounted read-only";
  return std::string(context_.journal->status().message());
}

Result<uint64_t> MountedState::AllocatedBytes(std::string_view path) const {
  if (refresh_ != nullptr) ISOZONE_RETURN_IF_ERROR(refresh_->Refresh());
  uint64_t allocated = 0;
  OpenRegions open;
  {
    const MutexLock lock(context_.namespace_mutex);
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_.state.Lookup(path));
    allocated = inode->allocated();
    open = OpenRegionsOf(context_, *inode);
  }
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t growing, BytesIn(context_, open));
  return allocated + growing;
}

Result<std::vector<FileInZone>> MountedState::FilesIn(ZoneId zone) const {
  if (zone.value() >= context_.geometry().zone_count) {
    return Status::InvalidArgument(
        fmt::format("zone {} does not exist: the device has {} zones", zone.value(), context_.geometry().zone_count));
  }
  if (refresh_ != nullptr) ISOZONE_RETURN_IF_ERROR(refresh_->Refresh());
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor descriptor, DescribeZone(context_.engine.device(), zone));
  std::vector<FileInZone> files;
  const MutexLock lock(context_.namespace_mutex);
  for (const auto& [id, bytes] : context_.state.BytesIn(zone, descriptor.write_pointer)) {
    if (bytes > 0) files.push_back({id.value(), context_.state.PathsOf(id), context_.state.Find(id)->kind, bytes});
  }
  return files;
}

Result<std::vector<ZoneOfFile>> MountedState::ZonesOf(std::string_view path) const {
  if (refresh_ != nullptr) ISOZONE_RETURN_IF_ERROR(refresh_->Refresh());
  std::map<ZoneId, uint64_t> bytes;
  OpenRegions open;
  {
    const MutexLock lock(context_.namespace_mutex);
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_.state.Lookup(path));
    for (const auto& [zone, in_zone] : SpaceOf(context_.geometry(), *inode)) bytes[zone] += in_zone;
    open = OpenRegionsOf(context_, *inode);
  }
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneOfFile> written, WrittenIn(context_, open));
  for (const ZoneOfFile& zone : written) bytes[zone.zone] += zone.bytes;
  std::vector<ZoneOfFile> zones;
  for (const auto& [zone, in_zone] : bytes) {
    if (in_zone > 0) zones.push_back({zone, in_zone});
  }
  return zones;
}

Status MountedState::Settle() {
  ISOZONE_RETURN_IF_ERROR(context_.SyncMetadata());
  return context_.pool->Settle();
}

// ---------------------------------------------------------------------------------------------------------------------
// Garbage collection and zone groups
// ---------------------------------------------------------------------------------------------------------------------

Result<CopyStats> MountedCollection::Run(double free_percent, const GcProgress& progress) {
  if (context_.read_only()) return Status::ReadOnly("the file system is mounted read-only");
  ISOZONE_RETURN_IF_ERROR(context_.journal->status());
  return context_.collector->Run(free_percent, progress);
}

GcPlan MountedCollection::Plan(bool all) const { return context_.collector->Plan(all); }

Status MountedCollection::SetOptions(const GcOptions& options) {
  if (context_.read_only()) return Status::ReadOnly("the file system is mounted read-only");
  return context_.collector->SetOptions(options);
}

std::shared_ptr<const ZoneGroups> MountedGroups::Get() const {
  const MutexLock lock(context_.namespace_mutex);
  return context_.state.device().groups;
}

Status MountedGroups::Set(const ZoneGroups& groups) {
  uint64_t sequence = 0;
  {
    const MutexLock lock(context_.namespace_mutex);
    const MetadataOp op = SetZoneGroups{std::make_shared<const ZoneGroups>(groups)};
    ISOZONE_ASSIGN_OR_RETURN(sequence, context_.Commit({&op, 1}));
  }
  return context_.journal->Sync(sequence);
}

}  // namespace isozone
