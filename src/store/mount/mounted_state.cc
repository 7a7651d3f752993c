#include "store/mount/mounted_state.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "store/file/file_space.h"
#include "store/file/open_log.h"
#include "store/metadata/metadata_io.h"
#include "store/mount/figure_sources.h"

namespace isozone {
namespace {

// The regions of a log that is being written, each with the most that it can hold.
using OpenRegions = std::vector<std::pair<LogRegion, uint64_t>>;

OpenRegions OpenRegionsOf(const Catalog& catalog, const Inode& inode) ISOZONE_REQUIRES(catalog.namespace_mutex) {
  OpenRegions open;
  for (const LogRegion& region : inode.regions) {
    if (region.open()) open.emplace_back(region, catalog.state.BytesOf(region, catalog.geometry.zone_capacity));
  }
  return open;
}

// What the device has in them by now. It is asked, so the caller does not hold the namespace mutex.
Result<std::vector<ZoneOfFile>> WrittenIn(const MountContext& context, const OpenRegions& open)
    ISOZONE_EXCLUDES(context.catalog.namespace_mutex) {
  std::vector<ZoneOfFile> written;
  for (const auto& [region, most] : open) {
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(*context.data_path.device, region.zone));
    const uint64_t bytes = zone.write_pointer - std::min(region.begin, zone.write_pointer);
    written.push_back({region.zone, std::min(most, bytes)});
  }
  return written;
}

Result<uint64_t> BytesIn(const MountContext& context, const OpenRegions& open)
    ISOZONE_EXCLUDES(context.catalog.namespace_mutex) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneOfFile> written, WrittenIn(context, open));
  uint64_t bytes = 0;
  for (const ZoneOfFile& zone : written) bytes += zone.bytes;
  return bytes;
}

}  // namespace

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
  return FiguresOf(context_.data_path, sources);
}

Status MountedState::VisitFiles(const std::function<void(const FileDetails&)>& visit) const {
  if (refresh_ != nullptr) ISOZONE_RETURN_IF_ERROR(refresh_->Refresh());
  InodeId last;
  for (;;) {
    FileDetails details;
    Inode inode;
    OpenRegions open;
    {
      const MutexLock lock(context_.catalog.namespace_mutex);
      const Inode* next = context_.catalog.state.Next(last);
      if (next == nullptr) return Status::Ok();
      inode = *next;
      details.paths = context_.catalog.state.PathsOf(inode.id);
      details.attributes = context_.catalog.AttributesOf(inode);
      details.allocated = inode.allocated();
      open = OpenRegionsOf(context_.catalog, inode);
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
    ISOZONE_ASSIGN_OR_RETURN(const LogContents log,
                             ReadLog(context_.data_path.engine, context_.data_path.frame_seed, inode));
    // It may have no end yet, or one that its writer, in this process, has gone beyond.
    details.attributes.size = refresh_ == nullptr ? std::max(details.attributes.size, log.size) : log.size;
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
  context_.catalog.Release(*std::move(file));
  const MutexLock lock(context_.catalog.namespace_mutex);
  return context_.catalog.state.Find(inode.id) == nullptr ? Status::Ok() : status;  // it was removed meanwhile
}

MetadataCopies MountedState::Metadata() const {
  if (refresh_ != nullptr) return refresh_->Metadata();
  return {context_.catalog.journal->copies_wanted(), context_.catalog.journal->Copies()};
}

Status MountedState::RestoreMetadataCopies() {
  if (context_.catalog.read_only()) return Status::ReadOnly("the file system is mounted read-only");
  return context_.catalog.journal->RestoreCopies();
}

std::string MountedState::read_only_reason() const {
  if (context_.catalog.read_only()) return "mounted read-only";
  return std::string(context_.catalog.journal->status().message());
}

Result<uint64_t> MountedState::AllocatedBytes(std::string_view path) const {
  if (refresh_ != nullptr) ISOZONE_RETURN_IF_ERROR(refresh_->Refresh());
  uint64_t allocated = 0;
  OpenRegions open;
  {
    const MutexLock lock(context_.catalog.namespace_mutex);
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_.catalog.state.Lookup(path));
    allocated = inode->allocated();
    open = OpenRegionsOf(context_.catalog, *inode);
  }
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t growing, BytesIn(context_, open));
  return allocated + growing;
}

Result<std::vector<FileInZone>> MountedState::FilesIn(ZoneId zone) const {
  if (zone.value() >= context_.data_path.geometry().zone_count) {
    return Status::InvalidArgument(fmt::format("zone {} does not exist: the device has {} zones", zone.value(),
                                               context_.data_path.geometry().zone_count));
  }
  if (refresh_ != nullptr) ISOZONE_RETURN_IF_ERROR(refresh_->Refresh());
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor descriptor, DescribeZone(context_.data_path.engine.device(), zone));
  std::vector<FileInZone> files;
  const MutexLock lock(context_.catalog.namespace_mutex);
  for (const auto& [id, bytes] : context_.catalog.state.BytesIn(zone, descriptor.write_pointer)) {
    if (bytes > 0)
      files.push_back({id.value(), context_.catalog.state.PathsOf(id), context_.catalog.state.Find(id)->kind, bytes});
  }
  return files;
}

Result<std::vector<ZoneOfFile>> MountedState::ZonesOf(std::string_view path) const {
  if (refresh_ != nullptr) ISOZONE_RETURN_IF_ERROR(refresh_->Refresh());
  std::map<ZoneId, uint64_t> bytes;
  OpenRegions open;
  {
    const MutexLock lock(context_.catalog.namespace_mutex);
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_.catalog.state.Lookup(path));
    for (const auto& [zone, in_zone] : SpaceOf(context_.data_path.geometry(), *inode)) bytes[zone] += in_zone;
    open = OpenRegionsOf(context_.catalog, *inode);
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
  ISOZONE_RETURN_IF_ERROR(context_.catalog.SyncMetadata());
  return context_.data_path.pool->Settle();
}

// ---------------------------------------------------------------------------------------------------------------------
// Garbage collection and zone groups
// ---------------------------------------------------------------------------------------------------------------------

Result<CopyStats> MountedCollection::Run(double free_percent, const GcProgress& progress) {
  if (context_.catalog.read_only()) return Status::ReadOnly("the file system is mounted read-only");
  ISOZONE_RETURN_IF_ERROR(context_.catalog.journal->status());
  return context_.collector->Run(free_percent, progress);
}

GcPlan MountedCollection::Plan(bool all) const { return context_.collector->Plan(all); }

Status MountedCollection::SetOptions(const GcOptions& options) {
  if (context_.catalog.read_only()) return Status::ReadOnly("the file system is mounted read-only");
  return context_.collector->SetOptions(options);
}

std::shared_ptr<const ZoneGroups> MountedGroups::Get() const {
  const MutexLock lock(catalog_.namespace_mutex);
  return catalog_.state.device().groups;
}

Status MountedGroups::Set(const ZoneGroups& groups) {
  uint64_t sequence = 0;
  {
    const MutexLock lock(catalog_.namespace_mutex);
    const MetadataOp op = SetZoneGroups{std::make_shared<const ZoneGroups>(groups)};
    ISOZONE_ASSIGN_OR_RETURN(sequence, catalog_.Commit({&op, 1}));
  }
  return catalog_.journal->Sync(sequence);
}

}  // namespace isozone
