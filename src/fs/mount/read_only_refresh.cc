#include "fs/mount/read_only_refresh.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "fs/file/open_log.h"
#include "fs/metadata/metadata_io.h"
#include "zone/allocator/zone_reserves.h"

namespace isozone {

ReadOnlyRefresh::ReadOnlyRefresh(MountContext& context, MetadataReading reading) : context_(context) {
  const MutexLock lock(mu_);
  Take(std::move(reading));
}

void ReadOnlyRefresh::Take(MetadataReading reading) {
  reader_ = std::move(reading.reader);
  copies_ = std::move(reading.metadata.copies);
  copies_wanted_ = reading.metadata.copies_wanted;
}

Result<ReadOnlyRefresh::Pointers> ReadOnlyRefresh::ReadPointers() const {
  std::set<ZoneId> zones(reader_->zones().begin(), reader_->zones().end());
  for (uint32_t i = 0; i < HomeZones(copies_wanted_); ++i) zones.insert(ZoneId(i));
  for (const MetadataCopy& copy : copies_) zones.insert(copy.zones.begin(), copy.zones.end());
  Pointers pointers;
  for (const ZoneId zone : zones) {
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor descriptor, DescribeZone(*context_.device, zone));
    pointers.emplace_back(zone, descriptor.write_pointer);
  }
  return pointers;
}

Result<bool> ReadOnlyRefresh::SameCopies() {
  Generations known;
  bool everywhere = false;
  for (const MetadataCopy& copy : copies_) {
    if (copy.state == MetadataCopy::State::kDamaged) return false;
    known.emplace_back(copy.head, copy.generation);
    everywhere |= copy.head.value() >= kHomeZonesMax;
  }
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<FoundSuperblock> found, FindSuperblocks(*context_.device, everywhere));
  Generations now;
  for (const FoundSuperblock& f : found) now.emplace_back(f.zone, f.superblock.ok() ? f.superblock->generation : 0);
  std::sort(known.begin(), known.end());
  return now == known;
}

Status ReadOnlyRefresh::Refresh() {
  const MutexLock lock(mu_);
  ISOZONE_ASSIGN_OR_RETURN(Pointers now, ReadPointers());
  if (now == seen_) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const bool same, SameCopies());
  // What looks wrong may have been replaced meanwhile, so everything is read once more.
  if (!same || !GoOn().ok()) {
    ISOZONE_RETURN_IF_ERROR(ReadAll());
    // The copies may lie in other zones now. The next refresh looks at these.
    now.clear();
  }
  // The pointers were read before the metadata, so a change in between shows at the next refresh.
  seen_ = std::move(now);
  return RefreshOpenFiles();
}

Status ReadOnlyRefresh::GoOn() {
  for (;;) {
    ISOZONE_ASSIGN_OR_RETURN(const auto record, reader_->Next());
    if (!record) return {};
    const MutexLock lock(context_.namespace_mutex);
    ISOZONE_RETURN_IF_ERROR(ApplyRecord(*reader_, *record, context_.state));
  }
}

Status ReadOnlyRefresh::ReadAll() {
  ISOZONE_ASSIGN_OR_RETURN(MetadataReading reading, ReadMetadata(*context_.device));
  {
    const MutexLock lock(context_.namespace_mutex);
    context_.state = std::move(reading.metadata.state);
  }
  Take(std::move(reading));
  return {};
}

MetadataCopies ReadOnlyRefresh::Metadata() const {
  const MutexLock lock(mu_);
  MetadataCopies copies;
  copies.wanted = copies_wanted_;
  for (const MetadataCopy& copy : copies_) {
    if (copy.state == MetadataCopy::State::kWhole) copies.whole.push_back(copy.zones);
  }
  return copies;
}

Status ReadOnlyRefresh::RefreshOpenFiles() {
  std::vector<std::shared_ptr<OpenFile>> logs;
  {
    const MutexLock lock(context_.namespace_mutex);
    for (auto& [id, weak] : context_.open_files) {
      auto file = weak.lock();
      const Inode* inode = context_.state.Find(id);
      if (file == nullptr || inode == nullptr) continue;
      if (inode->kind == FileKind::kLog) {
        logs.push_back(std::move(file));
      } else {
        file->Reset(inode->extents.Expand(), Status::Ok());
        if (file->kind() == FileKind::kLog) file->NoteIsData();
      }
    }
  }
  for (auto& file : logs) {
    const Status status = GrowLog(*file);
    context_.Release(std::move(file));
    ISOZONE_RETURN_IF_ERROR(status);
  }
  return Status::Ok();
}

Status ReadOnlyRefresh::CheckExists(InodeId id) {
  ISOZONE_RETURN_IF_ERROR(Refresh());
  const MutexLock lock(context_.namespace_mutex);
  if (context_.state.Find(id) != nullptr) return Status::Ok();
  return Status::IoError(fmt::format("inode {} was removed by the writer while it was read", id.value()));
}

Status ReadOnlyRefresh::GrowLog(OpenFile& file) {
  Inode inode;
  {
    const MutexLock lock(context_.namespace_mutex);
    const Inode* found = context_.state.Find(file.id());
    if (found == nullptr) return Status::Ok();
    if (found->kind != FileKind::kLog) {  // the writer has written in it (LogToData)
      file.Reset(found->extents.Expand(), Status::Ok());
      file.NoteIsData();
      return Status::Ok();
    }
    inode = *found;
  }
  ISOZONE_ASSIGN_OR_RETURN(LogContents contents, ReadLog(context_.engine, context_.frame_seed, inode));
  // A log is not shorter because it cannot be read now, but it is when the writer has cut it.
  const bool unread = contents.damage.Is(StatusCode::kIoError);
  if (contents.size >= file.size() || !unread) file.Reset(std::move(contents.extents), std::move(contents.damage));
  return Status::Ok();
}

}  // namespace isozone
