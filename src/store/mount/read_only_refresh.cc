#include "store/mount/read_only_refresh.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "store/file/file_space.h"
#include "store/file/open_log.h"
#include "store/metadata/metadata_codec.h"
#include "store/metadata/metadata_io.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {

ReadOnlyRefresh::ReadOnlyRefresh(MountContext& context, MetadataReading reading,
                                 std::function<Result<SpaceInfo>(MountContext&)> find_space)
    : context_(context),
      data_path_(context.data_path),
      catalog_(context.catalog),
      find_space_(std::move(find_space)),
      space_(context.data_path.pool->Space()),
      space_found_ns_(context.data_path.clock.NowNs()) {
  const MutexLock lock(mu_);
  Take(std::move(reading));
  const Status applied = ApplyKept();
  if (!applied.ok()) Log().warn("{}", applied.ToString());
  MakePins();
}

ReadOnlyRefresh::~ReadOnlyRefresh() {
  {
    const MutexLock lock(follow_mu_);
    stopping_ = true;
    stop_following_.Signal();
  }
  if (follower_.joinable()) follower_.join();
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
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor descriptor, DescribeZone(*data_path_.device, zone));
    pointers.emplace_back(zone, descriptor.write_pointer);
  }
  return pointers;
}

Result<bool> ReadOnlyRefresh::SameCopies() {
  Generations known;
  bool everywhere = false;
  for (const MetadataCopy& copy : copies_) {
    // One that is being replaced may be written no further.
    if (copy.state != MetadataCopy::State::kWhole && copy.state != MetadataCopy::State::kBehind) return false;
    known.emplace_back(copy.head, copy.generation);
    everywhere |= copy.head.value() >= kHomeZonesMax;
  }
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<FoundSuperblock> found, FindSuperblocks(*data_path_.device, everywhere));
  Generations now;
  for (const FoundSuperblock& f : found) now.emplace_back(f.zone, f.superblock.ok() ? f.superblock->generation : 0);
  std::sort(known.begin(), known.end());
  return now == known;
}

Status ReadOnlyRefresh::Refresh() {
  const MutexLock lock(mu_);
  return RefreshLocked();
}

Status ReadOnlyRefresh::RefreshLocked(Files files) {
  if (pins_ != nullptr && pins_->is_unseen()) MakePins();
  Tails tails;
  Tails* const wanted = files == Files::kAll ? &tails : nullptr;
  ISOZONE_ASSIGN_OR_RETURN(bool changed, Look(wanted, /*in_any_case=*/unsettled_));
  if (!changed) return Status::Ok();
  unsettled_ = true;  // until open files are there
  // A file that moves on and on meanwhile is read where it was.
  for (int looks = 1; looks < kMostLooks && PinPlaces(); ++looks) {
    ISOZONE_ASSIGN_OR_RETURN(changed, Look(wanted, /*in_any_case=*/false));
  }
  return RefreshOpenFiles(tails, files);
}

Result<uint64_t> ReadOnlyRefresh::DurableSequence() const {
  return kept_ == nullptr ? Result<uint64_t>(uint64_t{0}) : kept_->DurableSequence();
}

Result<bool> ReadOnlyRefresh::Look(Tails* tails, bool in_any_case) {
  ISOZONE_ASSIGN_OR_RETURN(Pointers now, ReadPointers());
  uint64_t kept_now = 0;
  if (kept_ != nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(kept_now, kept_->Version());
  }
  ISOZONE_ASSIGN_OR_RETURN(uint64_t durable, DurableSequence());
  if (now == seen_ && kept_now == kept_seen_ && durable <= applied_ && !in_any_case) return false;
  if (tails != nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(*tails, ReadTails());
  }
  if (now != seen_ || durable > applied_) {
    ISOZONE_ASSIGN_OR_RETURN(const bool same, ReadDevice(durable));
    if (!same) ISOZONE_RETURN_IF_ERROR(ForgetIfElsewhere(now));
  }
  ISOZONE_RETURN_IF_ERROR(ApplyKept());
  // What has become durable since may have left the memory before it was read there.
  ISOZONE_ASSIGN_OR_RETURN(durable, DurableSequence());
  if (durable > applied_) {
    ISOZONE_RETURN_IF_ERROR(ReadDevice(durable).status());
    ISOZONE_RETURN_IF_ERROR(ApplyKept());
    ISOZONE_RETURN_IF_ERROR(ForgetIfElsewhere(now));
  }
  // Both were looked at before the metadata was read, so a change in between shows at the next refresh.
  seen_ = std::move(now);
  kept_seen_ = kept_now;
  return true;
}

Status ReadOnlyRefresh::ForgetIfElsewhere(Pointers& seen) const {
  ISOZONE_ASSIGN_OR_RETURN(const Pointers now, ReadPointers());
  const bool same_zones = std::ranges::equal(now, seen, {}, &Pointers::value_type::first, &Pointers::value_type::first);
  if (!same_zones) seen.clear();
  return Status::Ok();
}

Result<bool> ReadOnlyRefresh::ReadDevice(uint64_t durable) {
  ISOZONE_ASSIGN_OR_RETURN(const bool same, SameCopies());
  if (same && GoOn().ok() && applied_ >= durable) return true;
  // What looks wrong may have been replaced meanwhile, so everything is read once more.
  ISOZONE_RETURN_IF_ERROR(ReadAll());
  return false;
}

Status ReadOnlyRefresh::GoOn() {
  for (;;) {
    ISOZONE_ASSIGN_OR_RETURN(const auto record, reader_->Next());
    if (!record) return {};
    const MutexLock lock(catalog_.namespace_mutex);
    ISOZONE_RETURN_IF_ERROR(ApplyFromDevice(*record));
  }
}

Status ReadOnlyRefresh::ApplyFromDevice(const MetadataReader::Record& record) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<MetadataOp> ops, DecodeRecord(record.body));
  if (record.sequence > applied_) return Apply(ops, record.sequence);
  // A mount that begins where records were kept has not taken these over.
  for (const MetadataOp& op : ops) {
    const auto* begin = std::get_if<BeginMount>(&op);
    if (begin != nullptr && begin->number != catalog_.state.device().mount_number) {
      return Status::Busy("another mount has begun");
    }
  }
  return {};
}

Status ReadOnlyRefresh::Apply(std::span<const MetadataOp> ops, uint64_t sequence) {
  for (const MetadataOp& op : ops) {
    if (const auto* removed = std::get_if<RemoveInode>(&op)) NoteRemoved(removed->inode, /*later=*/false);
  }
  ISOZONE_RETURN_IF_ERROR(catalog_.state.Apply(ops));
  applied_ = sequence;
  for (const MetadataOp& op : ops) {
    if (changed_) changed_->insert(InodeOf(op));
  }
  return {};
}

void ReadOnlyRefresh::NoteRemoved(InodeId id, bool later) {
  const Inode* inode = catalog_.state.Find(id);
  if (inode == nullptr || inode->kind != FileKind::kLog || catalog_.FindOpen(id) == nullptr) return;
  removed_logs_[id] = {*inode, !later || !inode->has_open_region()};
  if (changed_) changed_->insert(id);
}

// ---------------------------------------------------------------------------------------------------------------------
// Kept memory
// ---------------------------------------------------------------------------------------------------------------------

Status ReadOnlyRefresh::FindKept() {
  uint64_t number = 0;
  {
    const MutexLock lock(catalog_.namespace_mutex);
    number = catalog_.state.device().mount_number;
  }
  if (number == mount_number_ && kept_ != nullptr) return {};
  mount_number_ = number;
  auto kept =
      KeptReader::Open(data_path_.device->name(), data_path_.options.kept_memory_directory, context_.uuid, number);
  const Status found = kept.status();
  kept_ = kept.ok() ? *std::move(kept) : nullptr;
  has_kept_.store(kept_ != nullptr, std::memory_order_relaxed);
  return found.Is(StatusCode::kNotFound) || found.Is(StatusCode::kPermissionDenied) ? Status::Ok() : found;
}

Status ReadOnlyRefresh::ApplyKept() {
  ISOZONE_RETURN_IF_ERROR(FindKept());
  if (kept_ == nullptr) return {};
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<KeptRecordBytes> records, kept_->RecordsAfter(applied_));
  const MutexLock lock(catalog_.namespace_mutex);
  for (const KeptRecordBytes& record : records) {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<MetadataOp> ops, DecodeRecord(record.body));
    ISOZONE_RETURN_IF_ERROR(Apply(ops, record.sequence));
  }
  return {};
}

Result<ReadOnlyRefresh::Tails> ReadOnlyRefresh::ReadTails() {
  Tails tails;
  if (kept_ == nullptr || !HasOpenLog()) return tails;
  ISOZONE_ASSIGN_OR_RETURN(std::vector<KeptPiece> pieces, kept_->Pieces(data_path_.frame_seed));
  for (KeptPiece& piece : pieces) tails[piece.inode].push_back(std::move(piece));
  return tails;
}

Status ReadOnlyRefresh::ReadAll() {
  ISOZONE_ASSIGN_OR_RETURN(MetadataReading reading, ReadMetadata(*data_path_.device));
  if (reading.metadata.uuid != context_.uuid) return Status::IoError("the device was formatted anew");
  {
    const MutexLock lock(catalog_.namespace_mutex);
    for (const auto& [id, file] : catalog_.open_files) {
      if (reading.metadata.state.Find(id) == nullptr) NoteRemoved(id, /*later=*/true);
    }
    catalog_.state = std::move(reading.metadata.state);
  }
  changed_.reset();
  Take(std::move(reading));
  return {};
}

SpaceInfo ReadOnlyRefresh::Space() {
  const MutexLock lock(space_mu_);
  const int64_t now_ns = data_path_.clock.NowNs();
  if (now_ns - space_found_ns_ < kSecondNs) return space_;
  const auto found = find_space_(context_);
  if (!found.ok()) Log().warn("the space that is free cannot be told anew: {}", found.status().message());
  if (found.ok()) space_ = *found;
  space_found_ns_ = data_path_.clock.NowNs();
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

bool ReadOnlyRefresh::HasOpenLog() const {
  const MutexLock lock(catalog_.namespace_mutex);
  return std::ranges::any_of(catalog_.open_files, [](const auto& open) {
    const auto file = open.second.lock();
    return file != nullptr && file->kind() == FileKind::kLog;
  });
}

bool ReadOnlyRefresh::MayHaveMoved(InodeId id, const Inode* inode) const {
  const bool is_named = !changed_ || changed_->contains(id);
  return inode == nullptr ? is_named && removed_logs_.contains(id) : is_named || inode->kind == FileKind::kLog;
}

Status ReadOnlyRefresh::RefreshOpenFiles(const Tails& tails, Files files) {
  std::set<InodeId> stay;
  std::vector<std::shared_ptr<OpenFile>> logs;
  {
    const MutexLock lock(catalog_.namespace_mutex);
    std::erase_if(removed_logs_, [&](const auto& log) ISOZONE_REQUIRES(catalog_.namespace_mutex) {
      return !catalog_.open_files.contains(log.first);
    });
    for (auto& [id, weak] : catalog_.open_files) {
      auto file = weak.lock();
      const Inode* inode = catalog_.state.Find(id);
      if (file == nullptr || !MayHaveMoved(id, inode)) continue;
      const bool is_removed = inode == nullptr;
      if (is_removed) inode = &removed_logs_.at(id).inode;
      const bool waits = files == Files::kButLogs && inode->kind == FileKind::kLog;
      if (waits || !TakePins(*file, ZonesOf(data_path_.geometry(), *inode))) {
        // What was removed before it was pinned is lost.
        if (waits || !is_removed) stay.insert(id);
      } else if (inode->kind == FileKind::kLog) {
        logs.push_back(std::move(file));
      } else {
        file->Reset(inode->extents, Status::Ok());
        if (file->kind() == FileKind::kLog) file->NoteIsData();
      }
    }
  }
  unsettled_ = !stay.empty();
  changed_ = std::move(stay);
  Status status;
  for (auto& file : logs) {
    const auto tail = tails.find(file->id().value());
    const Status grown = GrowLogLocked(
        *file, tail == tails.end() ? std::span<const KeptPiece>() : std::span(tail->second), /*at_end=*/false);
    if (status.ok()) status = grown;
    catalog_.Release(std::move(file));
  }
  return status;
}

// ---------------------------------------------------------------------------------------------------------------------
// Open files
// ---------------------------------------------------------------------------------------------------------------------

// Makes what the mount pins with, anew where it was given up: what exists is pinned again by the next look.
void ReadOnlyRefresh::MakePins() {
  pins_ = nullptr;
  const MutexLock lock(catalog_.namespace_mutex);
  for (auto& [id, weak] : catalog_.open_files) {
    const auto file = weak.lock();
    if (file == nullptr) continue;
    file->pins = ZonePins();
    file->coming_pins = ZonePins();
  }
  changed_.reset();
  unsettled_ = true;
  // Of a device that has no name in the file system of the machine, as those of tests, the writer is in this process.
  const auto owner = PageOwner::Of(data_path_.device->name());
  if (!owner.ok() || !owner->has_name) return;
  auto pins = ReaderPins::Make(*owner, data_path_.options.kept_memory_directory, context_.uuid,
                               data_path_.geometry().zone_count);
  if (pins.ok()) {
    pins_ = *std::move(pins);
    return;
  }
  Log().warn(
      "a file that is removed while it is read may be lost to the reader: no shared memory tells the writer ({})",
      pins.status().message());
}

bool ReadOnlyRefresh::PinPlaces() {
  if (pins_ == nullptr) return false;
  bool added = false;
  const MutexLock lock(catalog_.namespace_mutex);
  for (auto& [id, weak] : catalog_.open_files) {
    const auto file = weak.lock();
    const Inode* inode = catalog_.state.Find(id);
    if (file == nullptr || inode == nullptr || !MayHaveMoved(id, inode)) continue;
    const std::vector<ZoneId> zones = ZonesOf(data_path_.geometry(), *inode);
    if (file->pins.Covers(zones) || file->coming_pins.Covers(zones)) continue;
    if (!file->coming_pins.IsOf(pins_.get())) file->coming_pins = ZonePins(pins_);
    file->coming_pins.Add(zones);
    added = true;
  }
  return added;
}

bool ReadOnlyRefresh::TakePins(OpenFile& file, std::span<const ZoneId> zones) {
  if (!file.pins.Covers(zones)) {
    if (file.coming_pins.Covers(zones)) {
      file.pins = std::exchange(file.coming_pins, ZonePins());
    } else if (!file.pins.IsOf(nullptr)) {
      return false;
    }
  }
  file.coming_pins = ZonePins();
  file.pins.KeepOnly(zones);
  return true;
}

Result<std::shared_ptr<OpenFile>> ReadOnlyRefresh::Open(InodeId id) {
  const MutexLock lock(mu_);
  if (pins_ != nullptr && !follower_.joinable()) StartToFollow();
  ZonePins pins(pins_);
  for (;;) {
    std::vector<ZoneId> zones;
    {
      const MutexLock names(catalog_.namespace_mutex);
      const Inode* found = catalog_.state.Find(id);
      if (found == nullptr) return Status::NotFound(fmt::format("inode {} was removed", id.value()));
      auto file = catalog_.FindOpen(id);
      zones = ZonesOf(data_path_.geometry(), *found);
      if (file == nullptr && (pins_ == nullptr || (pins.IsOf(pins_.get()) && pins.Covers(zones)))) {
        const bool is_log = found->kind == FileKind::kLog;
        file = std::make_shared<OpenFile>(id, found->kind, data_path_.geometry().zone_size,
                                          is_log ? ExtentList() : found->extents, Status::Ok());
        pins.KeepOnly(zones);
        file->pins = std::exchange(pins, ZonePins());
        catalog_.open_files[id] = file;
      }
      if (file != nullptr) return file;
    }
    if (!pins.IsOf(pins_.get())) pins = ZonePins(pins_);
    pins.Add(zones);
    ISOZONE_RETURN_IF_ERROR(RefreshLocked());
  }
}

Status ReadOnlyRefresh::CheckRead(const OpenFile& file) {
  ISOZONE_RETURN_IF_ERROR(Refresh());
  const MutexLock lock(catalog_.namespace_mutex);
  if (catalog_.state.Find(file.id()) != nullptr || IsHeld(file)) return Status::Ok();
  return Status::IoError(fmt::format("inode {} was removed by the writer while it was read", file.id().value()));
}

void ReadOnlyRefresh::StartToFollow() {
  auto started = StartThread("cannot follow the writer", [this] { FollowInBackground(); });
  if (started.ok()) {
    follower_ = *std::move(started);
  } else {
    Log().warn("files that are open and not read keep their old places from the writer: {}",
               started.status().message());
  }
}

void ReadOnlyRefresh::FollowInBackground() {
  const MutexLock lock(follow_mu_);
  bool failed = false;
  while (!stopping_) {
    data_path_.clock.WaitUntil(stop_following_, follow_mu_, data_path_.clock.NowNs() + kFollowNs);
    if (stopping_) return;
    const MutexUnlock unlock(follow_mu_);
    const Status status = FollowOnce();
    if (!status.ok() && !std::exchange(failed, true)) Log().warn("following the writer failed: {}", status.ToString());
  }
}

Status ReadOnlyRefresh::FollowOnce() {
  const MutexLock lock(mu_);
  return pins_ != nullptr && pins_->in_use() ? RefreshLocked(Files::kButLogs) : Status::Ok();
}

Status ReadOnlyRefresh::GrowLog(OpenFile& file) {
  const MutexLock lock(mu_);
  std::vector<KeptPiece> tail;
  if (kept_ != nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(tail, kept_->PiecesOf(file.id().value(), data_path_.frame_seed));
  }
  ISOZONE_RETURN_IF_ERROR(RefreshLocked());
  return GrowLogLocked(file, tail, /*at_end=*/true);
}

Status ReadOnlyRefresh::GrowLogLocked(OpenFile& file, std::span<const KeptPiece> tail, bool at_end) {
  Inode inode;
  {
    const MutexLock lock(catalog_.namespace_mutex);
    const Inode* found = catalog_.state.Find(file.id());
    const auto removed = removed_logs_.find(file.id());
    if (found == nullptr && removed == removed_logs_.end()) return Status::Ok();
    if (found == nullptr) found = &removed->second.inode;
    if (found->kind != FileKind::kLog) {  // the writer has written in it (LogToData)
      file.Reset(found->extents, Status::Ok());
      file.NoteIsData();
      return Status::Ok();
    }
    // Where the log is not pinned yet, it is read as it was; one that was removed never will be.
    const bool is_pinned = pins_ == nullptr || file.pins.Covers(ZonesOf(data_path_.geometry(), *found));
    const bool is_lost = removed != removed_logs_.end() && !(is_pinned && removed->second.has_end && IsHeld(file));
    if (!is_pinned && !is_lost) return Status::Ok();
    if (is_lost && !at_end) return Status::Ok();
    if (is_lost) {
      return Status::IoError(
          fmt::format("inode {} was removed by the writer before it was read to its end", file.id().value()));
    }
    inode = *found;
  }
  ISOZONE_ASSIGN_OR_RETURN(LogContents contents, ReadLog(data_path_.engine, data_path_.frame_seed, inode));
  // A log is not shorter because it cannot be read now, but it is when the writer has cut it.
  const bool unread = contents.damage.Is(StatusCode::kIoError);
  if (unread && contents.size < file.size()) return Status::Ok();
  std::vector<std::byte> kept = contents.damage.ok() ? JoinKept(tail, contents.size) : std::vector<std::byte>();
  file.Reset(contents.extents, std::move(contents.damage), std::move(kept));
  return Status::Ok();
}

}  // namespace isozone
