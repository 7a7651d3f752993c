// Mounting: read the metadata, find the ends of logs, tell the pool what lives where, go on with the journal.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "fs/core.h"
#include "fs/file_system.h"
#include "fs/follower.h"
#include "fs/log_frame.h"
#include "fs/mounted_file_system.h"
#include "fs/open_log.h"
#include "zone/placement_policy.h"

namespace isozone {
namespace {

// What the metadata says of the zones: live bytes, use, lifetime.
Status AdoptZones(FsCore& core, std::span<const std::pair<ZoneId, ZoneUse>> metadata_zones)
    ISOZONE_REQUIRES(core.namespace_mutex) {
  for (const auto& [zone, use] : metadata_zones) ISOZONE_RETURN_IF_ERROR(core.pool->AdoptMetadata(zone, use));
  std::vector<bool> has_lifetime(core.geometry().zone_count);  // a zone keeps that of the first file in it
  std::vector<uint64_t> live(core.geometry().zone_count);      // bytes
  for (const Inode* inode = core.state.Next(InodeId()); inode != nullptr; inode = core.state.Next(inode->id)) {
    const bool log = inode->kind == FileKind::kLog;
    const auto space = log ? SpaceOf(inode->regions) : SpaceOf(core.geometry(), inode->extents);
    for (const auto& [zone, bytes] : space) {
      core.pool->AddLive(zone, bytes);
      live[zone.value()] += bytes;
      core.pool->SetUse(zone, log ? ZoneUse::kLog : ZoneUse::kData);
      if (!has_lifetime[zone.value()]) core.pool->SetLifetime(zone, inode->lifetime);
      has_lifetime[zone.value()] = true;
    }
    if (log && !inode->regions.empty() && inode->regions.back().open()) {
      const ZoneId zone = inode->regions.back().zone;
      core.unread_logs[inode->id] = {zone, core.geometry().block_size};
      core.pool->SetUse(zone, ZoneUse::kLog);
    }
  }
  for (auto& [id, space] : core.unread_logs) {
    auto& [zone, bytes] = space;
    bytes = std::min(bytes, core.geometry().zone_capacity - live[zone.value()]);
    core.pool->AddLive(zone, bytes);
    live[zone.value()] += bytes;
  }
  return Status::Ok();
}

// Gives every log that was open when the last mount ended its end. A damaged one ends behind what was written, so that
// the damage is met again whenever it is read; what is before it can be. One that cannot be read now stays open.
Result<std::vector<MetadataOp>> SealOpenLogs(FsCore& core) ISOZONE_REQUIRES(core.namespace_mutex) {
  std::vector<MetadataOp> ops;
  for (const Inode* inode = core.state.Next(InodeId()); inode != nullptr; inode = core.state.Next(inode->id)) {
    if (inode->regions.empty() || !inode->regions.back().open()) continue;
    LogRegion region = inode->regions.back();
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t write_pointer, WritePointerOf(*core.device, region.zone));
    const LogScan scan = ScanLogRegion(core.engine, core.frame_seed, inode->id, region, inode->size, write_pointer);
    if (scan.damage.Is(StatusCode::kIoError)) {
      Log().error("the end of log inode {} is not known: {}", inode->id.value(), scan.damage.message());
      continue;
    }
    region.end = scan.damage.ok() ? scan.end : std::max(write_pointer, scan.end + core.geometry().block_size);
    region.payload = scan.payload;
    if (!scan.damage.ok()) Log().error("{}", scan.damage.ToString());
    if (region.end == region.begin) {
      // Nothing of it survived; its place belongs to whoever writes there next, once this is durable.
      core.pool->ResetBeforeUse(region.zone);
      std::vector<LogRegion> others(inode->regions.begin(), inode->regions.end() - 1);
      ops.emplace_back(SetLogRegions{inode->id, std::move(others), inode->modified_s});
      continue;
    }
    ops.emplace_back(SetLogRegion{inode->id, inode->regions.size() - 1, region, inode->modified_s});
  }
  return ops;
}

}  // namespace

Result<std::unique_ptr<FileSystem>> FileSystem::Mount(std::unique_ptr<ZonedDevice> device,
                                                      const MountOptions& options) {
  ISOZONE_ASSIGN_OR_RETURN(const auto policy, MakePlacementPolicy(options.policy));
  ISOZONE_ASSIGN_OR_RETURN(RecoveredMetadata recovered, RecoverMetadata(*device));
  auto core = std::make_shared<FsCore>(std::move(device), options, recovered.label, recovered.uuid,
                                       std::move(recovered.state), policy->parallel());
  const bool read_only = options.read_only || core->device->read_only();

  ZonePool::Options pool_options;
  pool_options.policy = options.policy;
  pool_options.groups = core->groups;
  pool_options.isolation = options.isolation;
  pool_options.read_only = read_only;
  pool_options.make_durable = [c = core.get()] { return c->journal->Sync(c->journal->last_sequence()); };
  ISOZONE_ASSIGN_OR_RETURN(core->pool, ZonePool::Create(*core->device, std::move(pool_options)));

  if (read_only) {
    const MutexLock lock(core->namespace_mutex);
    ISOZONE_RETURN_IF_ERROR(AdoptZones(*core, recovered.zones));
    auto follower = std::make_unique<Follower>(*core, recovered.zones);
    return std::unique_ptr<FileSystem>(std::make_unique<MountedFileSystem>(core, std::move(follower)));
  }

  uint64_t sealed = 0;
  {
    // From the seals in the state to their record in the journal nothing may take a checkpoint.
    const MutexLock lock(core->namespace_mutex);
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<MetadataOp> seals, SealOpenLogs(*core));
    ISOZONE_RETURN_IF_ERROR(core->state.Apply(seals));
    ISOZONE_RETURN_IF_ERROR(AdoptZones(*core, recovered.zones));
    ISOZONE_ASSIGN_OR_RETURN(core->journal,
                             Journal::Open(*core->device, *core->pool, core->namespace_mutex, core->state, recovered,
                                           Journal::Options{options.checkpoint_after}));
    if (!seals.empty()) sealed = core->journal->Append(seals);
  }
  core->pool->Start();
  // Before anything is written behind a torn frame, which after another power cut would look like a damaged one.
  const Status status = core->journal->Sync(sealed);
  if (!status.ok()) Log().error("{}; nothing can be written", status.ToString());
  return std::unique_ptr<FileSystem>(std::make_unique<MountedFileSystem>(std::move(core), nullptr));
}

}  // namespace isozone
