#include "fs/follower.h"

#include <set>

#include <fmt/format.h>

#include "fs/open_log.h"

namespace isozone {
namespace {

std::vector<ZoneId> WithSuperblocks(std::span<const std::pair<ZoneId, ZoneUse>> metadata_zones) {
  std::set<ZoneId> zones = {ZoneId(0), ZoneId(1)};
  for (const auto& [zone, use] : metadata_zones) zones.insert(zone);
  return {zones.begin(), zones.end()};
}

}  // namespace

Follower::Follower(FsCore& core, std::vector<std::pair<ZoneId, ZoneUse>> metadata_zones)
    : core_(core), zones_(WithSuperblocks(metadata_zones)) {}

Result<Follower::Signature> Follower::TakeSignature(std::span<const ZoneId> zones) const {
  Signature signature;
  for (const ZoneId zone : zones) {
    ZoneDescriptor descriptor;
    ISOZONE_RETURN_IF_ERROR(core_.device->ReportZones(zone, {&descriptor, 1}));
    signature.emplace_back(zone, descriptor.write_pointer);
  }
  return signature;
}

Status Follower::Refresh() {
  const MutexLock lock(mu_);
  ISOZONE_ASSIGN_OR_RETURN(Signature now, TakeSignature(zones_));
  if (now == seen_) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(RecoveredMetadata recovered, RecoverMetadata(*core_.device));
  zones_ = WithSuperblocks(recovered.zones);
  // What was signed was there before the metadata was read, so a change in between shows next time.
  seen_ = std::move(now);
  {
    const MutexLock namespace_lock(core_.namespace_mutex);
    core_.state = std::move(recovered.state);
  }
  return RefreshOpenFiles();
}

Status Follower::RefreshOpenFiles() {
  std::vector<std::shared_ptr<OpenFile>> logs;
  {
    const MutexLock lock(core_.namespace_mutex);
    for (auto& [id, weak] : core_.open_files) {
      auto file = weak.lock();
      const Inode* inode = core_.state.Find(id);
      if (file == nullptr || inode == nullptr) continue;
      if (inode->kind == FileKind::kLog) {
        logs.push_back(std::move(file));
      } else {
        file->Reset(inode->extents, Status::Ok());
      }
    }
  }
  for (auto& file : logs) {
    const Status status = GrowLog(*file);
    core_.Release(std::move(file));
    ISOZONE_RETURN_IF_ERROR(status);
  }
  return Status::Ok();
}

Status Follower::CheckExists(InodeId id) {
  ISOZONE_RETURN_IF_ERROR(Refresh());
  const MutexLock lock(core_.namespace_mutex);
  if (core_.state.Find(id) != nullptr) return Status::Ok();
  return Status::IoError(fmt::format("inode {} was removed by the writer while it was read", id.value()));
}

Status Follower::GrowLog(OpenFile& file) {
  Inode inode;
  {
    const MutexLock lock(core_.namespace_mutex);
    const Inode* found = core_.state.Find(file.id());
    if (found == nullptr) return Status::Ok();
    inode = *found;
  }
  ISOZONE_ASSIGN_OR_RETURN(LogContents contents, ReadLog(core_.engine, core_.frame_seed, inode));
  // What cannot be read now is no shorter for that; what the writer has cut is.
  const bool unread = contents.damage.Is(StatusCode::kIoError);
  if (contents.size >= file.size() || !unread) file.Reset(std::move(contents.extents), std::move(contents.damage));
  return Status::Ok();
}

}  // namespace isozone
