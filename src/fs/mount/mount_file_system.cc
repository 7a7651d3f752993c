// Mounting: read the metadata, find the ends of logs, tell the pool what lives where, go on with the journal.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "fs/file/collected_files.h"
#include "fs/file/core.h"
#include "fs/file/log_frame.h"
#include "fs/file/open_log.h"
#include "fs/file_system.h"
#include "fs/metadata/metadata_io.h"
#include "fs/metadata/recovery.h"
#include "fs/mount/follower.h"
#include "fs/mount/mounted_file_system.h"
#include "zone/placement_policy.h"

namespace isozone {
namespace {

// What the metadata says of the zones: live bytes, use, lifetime, heat.
Status AdoptZones(FsCore& core, std::span<const ZoneId> metadata_zones) ISOZONE_REQUIRES(core.namespace_mutex) {
  for (const ZoneId zone : metadata_zones) ISOZONE_RETURN_IF_ERROR(core.pool->AdoptMetadata(zone));
  std::vector<bool> has_lifetime(core.geometry().zone_count);  // a zone keeps that of the first file in it
  std::vector<uint64_t> live(core.geometry().zone_count);      // bytes
  for (const Inode* inode = core.state.Next(InodeId()); inode != nullptr; inode = core.state.Next(inode->id)) {
    const bool log = inode->kind == FileKind::kLog;
    const auto space = log ? SpaceOf(inode->regions) : SpaceOf(core.geometry(), inode->extents);
    for (const auto& [zone, bytes] : space) {
      core.pool->AddLive(zone, bytes);
      live[zone.value()] += bytes;
      core.pool->SetUse(zone, log ? ZoneUse::kLog : ZoneUse::kData);
      if (!has_lifetime[zone.value()]) {
        core.pool->SetDataClass(zone, {inode->lifetime, inode->level, core.state.HeatOf(zone)});
      }
      has_lifetime[zone.value()] = true;
    }
    for (const LogRegion& region : inode->regions) {
      if (!region.open()) continue;
      core.unread_logs[inode->id].emplace_back(region.zone, core.geometry().block_size);
      core.pool->SetUse(region.zone, ZoneUse::kLog);
      // Its end may be torn, which another log's frames behind it would make look like damage.
      core.pool->KeepAsItIs(region.zone);
    }
  }
  for (auto& [id, space] : core.unread_logs) {
    for (auto& [zone, bytes] : space) {
      bytes = std::min(bytes, core.geometry().zone_capacity - live[zone.value()]);
      core.pool->AddLive(zone, bytes);
      live[zone.value()] += bytes;
    }
  }
  return Status::Ok();
}

// The regions of a damaged log, each with an end behind what was written there, so that the damage is met again whenever
// it is read; what is before it can be.
Result<std::vector<LogRegion>> SealDamaged(const FsCore& core, const Inode& inode, const LogContents& log) {
  std::vector<LogRegion> regions = inode.regions;
  for (size_t i = 0; i < regions.size(); ++i) {
    if (!regions[i].open()) continue;
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(*core.device, regions[i].zone));
    const LogScan& scan = log.scans[i];
    regions[i].end = scan.damage.ok() ? scan.end : std::max(zone.write_pointer, scan.end + core.geometry().block_size);
    regions[i].payload = scan.payload;
    regions[i].damaged = !scan.damage.ok();
  }
  return regions;
}

// Gives every log that was open when the last mount ended its end. One that cannot be read now stays open.
Result<std::vector<MetadataOp>> SealOpenLogs(FsCore& core) ISOZONE_REQUIRES(core.namespace_mutex) {
  std::vector<MetadataOp> ops;
  for (const Inode* inode = core.state.Next(InodeId()); inode != nullptr; inode = core.state.Next(inode->id)) {
    if (!inode->has_open_region()) continue;
    ISOZONE_ASSIGN_OR_RETURN(const LogContents log, ReadLog(core.engine, core.frame_seed, *inode));
    if (log.damage.Is(StatusCode::kIoError)) {
      Log().error("the end of log inode {} is not known: {}", inode->id.value(), log.damage.message());
      continue;
    }
    SealedLog sealed;
    if (log.damage.ok()) {
      sealed = SealLog(core.geometry(), inode->regions, log.extents);
    } else {
      Log().error("{}", log.damage.ToString());
      ISOZONE_ASSIGN_OR_RETURN(sealed.regions, SealDamaged(core, *inode, log));
    }
    // The place of what did not survive belongs to whoever writes there next, once this is durable.
    for (const LogRegion& region : sealed.dropped) core.pool->ResetBeforeUse(region.zone);
    ops.emplace_back(SetLogRegions{inode->id, std::move(sealed.regions), inode->modified_s});
  }
  return ops;
}

// Nothing is written behind the ends that `seals` would have given to logs.
void KeepZonesOf(std::span<const MetadataOp> seals, ZonePool& pool) {
  for (const MetadataOp& op : seals) {
    for (const LogRegion& region : std::get<SetLogRegions>(op).regions) pool.KeepAsItIs(region.zone);
  }
}

}  // namespace

Result<std::unique_ptr<FileSystem>> FileSystem::Mount(std::unique_ptr<ZonedDevice> device,
                                                      const MountOptions& options) {
  ISOZONE_ASSIGN_OR_RETURN(const auto policy, MakePlacementPolicy(options.policy));
  ISOZONE_ASSIGN_OR_RETURN(MetadataReading reading, ReadMetadata(*device));
  RecoveredMetadata& recovered = reading.metadata;
  auto core = std::make_shared<FsCore>(std::move(device), options, recovered.label, recovered.uuid,
                                       std::move(recovered.state), policy->parallel());
  const bool read_only = options.read_only || core->device->read_only();

  ZonePool::Options pool_options;
  pool_options.policy = options.policy;
  pool_options.groups = core->groups;
  pool_options.isolation = options.isolation;
  // With fewer groups than two files are wide, those who write would leave one another nothing.
  pool_options.keep_away = pool_options.groups->count() >= 2 * options.stripe_width;
  pool_options.read_only = read_only;
  pool_options.metadata_copies = recovered.copies_wanted;
  pool_options.make_durable = [c = core.get()] { return c->journal->Sync(c->journal->last_sequence()); };
  pool_options.want_checkpoint = [c = core.get()] { return c->journal->WantCheckpoint(); };
  pool_options.checkpoint_pending = [c = core.get()](uint64_t number) { return c->journal->CheckpointPending(number); };
  pool_options.want_space = [c = core.get()] { c->collector->Wake(); };
  pool_options.want_pace = [c = core.get()] { c->collector->Hurry(); };
  ISOZONE_ASSIGN_OR_RETURN(core->pool, ZonePool::Create(*core->device, std::move(pool_options)));
  core->device->OnRefusal([pool = core->pool.get()] { pool->NoteRefusal(); });
  GcOptions gc = options.gc;
  gc.scheme = options.GcScheme();
  core->collected = std::make_unique<CollectedFiles>(*core);
  ISOZONE_ASSIGN_OR_RETURN(core->collector, Collector::Create(*core->collected, core->engine, gc));

  if (read_only) {
    const MutexLock lock(core->namespace_mutex);
    ISOZONE_RETURN_IF_ERROR(AdoptZones(*core, recovered.zones));
    auto follower = std::make_unique<Follower>(*core, std::move(reading));
    return std::unique_ptr<FileSystem>(std::make_unique<MountedFileSystem>(core, std::move(follower)));
  }

  uint64_t sealed = 0;
  std::vector<MetadataOp> seals;
  {
    // From the seals in the state to their record in the journal nothing may take a checkpoint.
    const MutexLock lock(core->namespace_mutex);
    auto named = NamedZones(core->geometry(), core->state, recovered.zones);
    // A copy that is behind may become the only one, until it was written anew: nothing that it names may change.
    for (const ZoneId zone : recovered.behind_zones) {
      if (named.emplace(zone, 0).second) core->pool->ResetBeforeUse(zone);
    }
    ISOZONE_ASSIGN_OR_RETURN(seals, SealOpenLogs(*core));
    ISOZONE_RETURN_IF_ERROR(core->state.Apply(seals));
    ISOZONE_RETURN_IF_ERROR(AdoptZones(*core, recovered.zones));
    ISOZONE_ASSIGN_OR_RETURN(core->journal,
                             Journal::Open(*core->device, *core->pool, core->namespace_mutex, core->state, recovered,
                                           Journal::Options{options.checkpoint_after}));
    core->pool->ReleaseUnnamed([&named](ZoneId zone) { return named.contains(zone); });
    if (!seals.empty()) sealed = core->journal->Append(seals);
  }
  core->pool->Start();
  // Before anything is written behind a torn frame, which after another power cut would look like a damaged one.
  const Status status = core->journal->Sync(sealed);
  if (!status.ok()) KeepZonesOf(seals, *core->pool);
  core->collector->Start();
  auto mounted = std::make_unique<MountedFileSystem>(std::move(core), nullptr);
  if (status.Is(StatusCode::kNoSpace)) {
    return Status::NoSpace(fmt::format("{}; what is there can be read with read_only=on", status.message()));
  }
  if (!status.ok()) Log().error("{}; nothing can be written", status.ToString());
  return std::unique_ptr<FileSystem>(std::move(mounted));
}

}  // namespace isozone
