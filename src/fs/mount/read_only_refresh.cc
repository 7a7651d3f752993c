#include "fs/mount/read_only_refresh.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/units.h"
#include "fs/file/open_log.h"
#include "fs/metadata/metadata_codec.h"
#include "fs/metadata/metadata_io.h"
#include "zone/allocator/zone_reserves.h"

namespace isozone {

ReadOnlyRefresh::ReadOnlyRefresh(MountContext& context, MetadataReading reading,
                                 std::function<Result<SpaceInfo>(MountContext&)> find_space)
    : context_(context),
      find_space_(std::move(find_space)),
      space_(context.pool->Space()),
      space_found_ns_(context.clock.NowNs()) {
  const MutexLock lock(mu_);
  Take(std::move(reading));
  const Status applied = ApplyKept();
  if (!applied.ok()) Log().warn("{}", applied.ToString());
}

void ReadOnlyRefresh::Take(MetadataReading reading) {
  reader_ = std::move(reading.reader);
  applied_ = reading.metadata.sequence;
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
  return RefreshLocked();
}

Status ReadOnlyRefresh::RefreshLocked() {
  ISOZONE_ASSIGN_OR_RETURN(Pointers now, ReadPointers());
  uint64_t kept_now = 0;
  if (kept_ != nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(kept_now, kept_->Version());
  }
  if (now == seen_ && kept_now == kept_seen_) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const Tails tails, ReadTails());
  if (now != seen_) {
    ISOZONE_ASSIGN_OR_RETURN(const bool same, SameCopies());
    // What looks wrong may have been replaced meanwhile, so everything is read once more.
    if (!same || !GoOn().ok()) {
      ISOZONE_RETURN_IF_ERROR(ReadAll());
      // The copies may lie in other zones now. The next refresh looks at these.
      now.clear();
    }
  }
  ISOZONE_RETURN_IF_ERROR(ApplyKept());
  // Both were looked at before the metadata was read, so a change in between shows at the next refresh.
  seen_ = std::move(now);
  kept_seen_ = kept_now;
  return RefreshOpenFiles(tails);
}

Status ReadOnlyRefresh::GoOn() {
  for (;;) {
    ISOZONE_ASSIGN_OR_RETURN(const auto record, reader_->Next());
    if (!record) return {};
    const MutexLock lock(context_.namespace_mutex);
    ISOZONE_RETURN_IF_ERROR(ApplyFromDevice(*record));
  }
}

Status ReadOnlyRefresh::ApplyFromDevice(const MetadataReader::Record& record) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<MetadataOp> ops, DecodeRecord(record.body));
  if (record.sequence > applied_) return Apply(ops, record.sequence);
  // A mount that begins where records were kept has not taken these over.
  for (const MetadataOp& op : ops) {
    const auto* begin = std::get_if<BeginMount>(&op);
    if (begin != nullptr && begin->number != context_.state.device().mount_number) {
      return Status::Busy("another mount has begun");
    }
  }
  return {};
}

Status ReadOnlyRefresh::Apply(std::span<const MetadataOp> ops, uint64_t sequence) {
  ISOZONE_RETURN_IF_ERROR(context_.state.Apply(ops));
  applied_ = sequence;
  for (const MetadataOp& op : ops) {
    if (changed_) changed_->insert(InodeOf(op));
  }
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------
// Kept memory
// ---------------------------------------------------------------------------------------------------------------------

void ReadOnlyRefresh::FindKept() {
  uint64_t number = 0;
  {
    const MutexLock lock(context_.namespace_mutex);
    number = context_.state.device().mount_number;
  }
  if (number == mount_number_ && kept_ != nullptr) return;
  mount_number_ = number;
  auto kept = KeptReader::Open(context_.device->name(), context_.options.kept_memory_directory, context_.uuid, number);
  kept_ = kept.ok() ? *std::move(kept) : nullptr;
  has_kept_.store(kept_ != nullptr, std::memory_order_relaxed);
}

Status ReadOnlyRefresh::ApplyKept() {
  FindKept();
  if (kept_ == nullptr) return {};
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<KeptRecordBytes> records, kept_->RecordsAfter(applied_));
  const MutexLock lock(context_.namespace_mutex);
  for (const KeptRecordBytes& record : records) {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<MetadataOp> ops, DecodeRecord(record.body));
    ISOZONE_RETURN_IF_ERROR(Apply(ops, record.sequence));
  }
  return {};
}

Result<ReadOnlyRefresh::Tails> ReadOnlyRefresh::ReadTails() {
  Tails tails;
  if (kept_ == nullptr) return tails;
  ISOZONE_ASSIGN_OR_RETURN(std::vector<KeptPiece> pieces, kept_->Pieces(context_.frame_seed));
  for (KeptPiece& piece : pieces) tails[piece.inode].push_back(std::move(piece));
  return tails;
}

Status ReadOnlyRefresh::ReadAll() {
  ISOZONE_ASSIGN_OR_RETURN(MetadataReading reading, ReadMetadata(*context_.device));
  {
    const MutexLock lock(context_.namespace_mutex);
    context_.state = std::move(reading.metadata.state);
  }
  changed_.reset();
  Take(std::move(reading));
  return {};
}

SpaceInfo ReadOnlyRefresh::Space() {
  const MutexLock lock(space_mu_);
  const int64_t now_ns = context_.clock.NowNs();
  if (now_ns - space_found_ns_ < kSecondNs) return space_;
  const auto found = find_space_(context_);
  if (!found.ok()) Log().warn("the space that is free cannot be told anew: {}", found.status().message());
  if (found.ok()) space_ = *found;
  space_found_ns_ = context_.clock.NowNs();
  return space_;
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

Status ReadOnlyRefresh::RefreshOpenFiles(const Tails& tails) {
  std::vector<std::shared_ptr<OpenFile>> logs;
  {
    const MutexLock lock(context_.namespace_mutex);
    for (auto& [id, weak] : context_.open_files) {
      auto file = weak.lock();
      const Inode* inode = context_.state.Find(id);
      if (file == nullptr || inode == nullptr) continue;
      if (inode->kind == FileKind::kLog) {
        logs.push_back(std::move(file));
      } else if (!changed_ || changed_->contains(id)) {
        file->Reset(inode->extents, Status::Ok());
        if (file->kind() == FileKind::kLog) file->NoteIsData();
      }
    }
  }
  changed_.emplace();
  Status status;
  for (auto& file : logs) {
    const auto tail = tails.find(file->id().value());
    const Status grown =
        GrowLogLocked(*file, tail == tails.end() ? std::span<const KeptPiece>() : std::span(tail->second));
    if (status.ok()) status = grown;
    context_.Release(std::move(file));
  }
  return status;
}

Status ReadOnlyRefresh::CheckExists(InodeId id) {
  ISOZONE_RETURN_IF_ERROR(Refresh());
  const MutexLock lock(context_.namespace_mutex);
  if (context_.state.Find(id) != nullptr) return Status::Ok();
  return Status::IoError(fmt::format("inode {} was removed by the writer while it was read", id.value()));
}

Status ReadOnlyRefresh::GrowLog(OpenFile& file) {
  const MutexLock lock(mu_);
  std::vector<KeptPiece> tail;
  if (kept_ != nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(tail, kept_->PiecesOf(file.id().value(), context_.frame_seed));
  }
  ISOZONE_RETURN_IF_ERROR(RefreshLocked());
  return GrowLogLocked(file, tail);
}

Status ReadOnlyRefresh::GrowLogLocked(OpenFile& file, std::span<const KeptPiece> tail) {
  Inode inode;
  {
    const MutexLock lock(context_.namespace_mutex);
    const Inode* found = context_.state.Find(file.id());
    if (found == nullptr) return Status::Ok();
    if (found->kind != FileKind::kLog) {  // the writer has written in it (LogToData)
      file.Reset(found->extents, Status::Ok());
      file.NoteIsData();
      return Status::Ok();
    }
    inode = *found;
  }
  ISOZONE_ASSIGN_OR_RETURN(LogContents contents, ReadLog(context_.engine, context_.frame_seed, inode));
  // A log is not shorter because it cannot be read now, but it is when the writer has cut it.
  const bool unread = contents.damage.Is(StatusCode::kIoError);
  if (unread && contents.size < file.size()) return Status::Ok();
  std::vector<std::byte> kept = contents.damage.ok() ? JoinKept(tail, contents.size) : std::vector<std::byte>();
  file.Reset(contents.extents, std::move(contents.damage), std::move(kept));
  return Status::Ok();
}

}  // namespace isozone
