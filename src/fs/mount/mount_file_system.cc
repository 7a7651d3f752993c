// Mounting: it reads the metadata, finds the ends of logs, tells the pool what lives where, and goes on with the
// journal.
#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "fs/file/collected_files.h"
#include "fs/file/log_frame.h"
#include "fs/file/mount_context.h"
#include "fs/file/open_log.h"
#include "fs/file_system.h"
#include "fs/metadata/metadata_io.h"
#include "fs/metadata/recovery.h"
#include "fs/mount/mounted_file_system.h"
#include "fs/mount/read_only_refresh.h"
#include "zone/placement_policy.h"

namespace isozone {
namespace {

// Tells the pool what the metadata says of the zones: live bytes, use, lifetime and heat.
Status AdoptZones(MountContext& context, std::span<const ZoneId> metadata_zones)
    ISOZONE_REQUIRES(context.namespace_mutex) {
  for (const ZoneId zone : metadata_zones) ISOZONE_RETURN_IF_ERROR(context.pool->adopted().SetMetadata(zone));
  struct Adopted {
    uint64_t live = 0;  // bytes
    ZoneUse use = ZoneUse::kFree;
    bool has_data = false;
    std::optional<DataClass> data;  // a zone keeps the class of the first file in it
  };
  std::vector<Adopted> zones(context.geometry().zone_count);
  std::vector<std::pair<InodeId, ZoneId>> open_regions;
  for (const Inode* inode = context.state.Next(InodeId()); inode != nullptr; inode = context.state.Next(inode->id)) {
    const bool log = inode->kind == FileKind::kLog;
    for (const auto& [id, bytes] : SpaceOf(context.geometry(), *inode)) {
      Adopted& zone = zones[id.value()];
      zone.live += bytes;
      zone.use = log ? ZoneUse::kLog : ZoneUse::kData;
      zone.has_data |= !log;
      if (!zone.data) zone.data = DataClass{inode->lifetime, inode->level, HeatOf(context.state.zone_heats(), id)};
    }
    for (const LogRegion& region : inode->regions) {
      if (region.open()) open_regions.emplace_back(inode->id, region.zone);
    }
  }
  // The metadata of an image may be false. Even then, no zone of metadata may be reset for a file, and no zone may
  // count that takes more than it holds.
  for (uint32_t i = 0; i < zones.size(); ++i) {
    if (zones[i].data && std::ranges::find(metadata_zones, ZoneId(i)) != metadata_zones.end()) {
      return Status::Corruption(fmt::format("a file names zone {}, which holds metadata; run isozone fsck", i));
    }
    if (zones[i].live > context.geometry().zone_capacity) {
      return Status::Corruption(fmt::format("files name {} bytes in zone {}, which holds {}; run isozone fsck",
                                            zones[i].live, i, context.geometry().zone_capacity));
    }
  }
  for (uint32_t i = 0; i < zones.size(); ++i) {
    if (!zones[i].data) continue;
    SpaceClaim(*context.pool, ZoneId(i), zones[i].live).ToMetadata();
    context.pool->adopted().SetUse(ZoneId(i), zones[i].use);
    if (zones[i].has_data) context.pool->collected().NoteHasData(ZoneId(i));
    context.pool->adopted().SetDataClass(ZoneId(i), *zones[i].data);
  }
  for (const auto& [inode, id] : open_regions) {
    context.pool->adopted().SetUse(id, ZoneUse::kLog);
    // The end of the region may be torn. Frames of another log behind it would make it look like damage.
    context.pool->adopted().KeepAsItIs(id);
    uint64_t& live = zones[id.value()].live;
    const uint64_t bytes = std::min<uint64_t>(context.geometry().block_size, context.geometry().zone_capacity - live);
    context.unread_logs[inode].Merge(SpaceClaim(*context.pool, id, bytes));
    live += bytes;
  }
  return Status::Ok();
}

// Returns the regions of a damaged log, each with an end behind what was written there. So the damage is met again
// whenever the log is read, and what lies before it can be read.
Result<std::vector<LogRegion>> SealDamaged(const MountContext& context, const Inode& inode, const LogContents& log) {
  std::vector<LogRegion> regions = inode.regions;
  for (size_t i = 0; i < regions.size(); ++i) {
    if (!regions[i].open()) continue;
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(*context.device, regions[i].zone));
    const LogScan& scan = log.scans[i];
    regions[i].end =
        scan.damage.ok() ? scan.end : std::max(zone.write_pointer, scan.end + context.geometry().block_size);
    regions[i].payload = scan.payload;
    regions[i].damaged = !scan.damage.ok();
  }
  return regions;
}

// Returns the changes that give an end to every log that was open when the last mount ended. A log that cannot be read
// now stays open.
Result<std::vector<MetadataOp>> SealOpenLogs(MountContext& context) ISOZONE_REQUIRES(context.namespace_mutex) {
  std::vector<MetadataOp> ops;
  for (const Inode* inode = context.state.Next(InodeId()); inode != nullptr; inode = context.state.Next(inode->id)) {
    if (!inode->has_open_region()) continue;
    ISOZONE_ASSIGN_OR_RETURN(const LogContents log, ReadLog(context.engine, context.frame_seed, *inode));
    if (log.damage.Is(StatusCode::kIoError)) {
      Log().error("the end of log inode {} is not known: {}", inode->id.value(), log.damage.message());
      continue;
    }
    SealedLog sealed;
    if (log.damage.ok()) {
      sealed = SealLog(context.geometry(), inode->regions, log.extents);
    } else {
      Log().error("{}", log.damage.ToString());
      ISOZONE_ASSIGN_OR_RETURN(sealed.regions, SealDamaged(context, *inode, log));
    }
    // Others may write to the zone of what did not survive, once this is durable.
    for (const LogRegion& region : sealed.dropped) context.pool->adopted().ResetBeforeUse(region.zone);
    ops.emplace_back(SetLogRegions{inode->id, std::move(sealed.regions), inode->modified_s});
  }
  return ops;
}

// Keeps anything from being written behind the ends that `seals` would have given to logs.
void KeepZonesOf(std::span<const MetadataOp> seals, ZonePool& pool) {
  for (const MetadataOp& op : seals) {
    for (const LogRegion& region : std::get<SetLogRegions>(op).regions) pool.adopted().KeepAsItIs(region.zone);
  }
}

ZonePoolOptions PoolOptionsOf(MountContext& context, const MountOptions& options, uint32_t metadata_copies,
                              bool read_only, Clock& clock) {
  ZonePoolOptions pool;
  pool.policy = options.policy;
  pool.groups = context.groups;
  pool.isolation = options.isolation;
  // With fewer groups than two files are wide, writers that keep away from one another would find no group.
  pool.keep_away = pool.groups->count() >= 2 * options.stripe_width;
  pool.read_only = read_only;
  pool.clock = &clock;
  pool.statistics = context.statistics_page == nullptr ? nullptr : &context.statistics_page->writer();
  pool.metadata_copies = metadata_copies;
  pool.make_durable = [c = &context] { return c->journal->Sync(c->journal->last_sequence()); };
  pool.want_checkpoint = [c = &context] { return c->journal->WantCheckpoint(); };
  pool.checkpoint_pending = [c = &context](uint64_t number) { return c->journal->CheckpointPending(number); };
  pool.want_space = [c = &context] { c->collector->Wake(); };
  pool.want_pace = [c = &context] { c->collector->Hurry(); };
  return pool;
}

// The pool and the collector of `context` exist. This starts them.
Result<std::unique_ptr<FileSystem>> MountForWriting(std::shared_ptr<MountContext> context,
                                                    const RecoveredMetadata& recovered, uint64_t checkpoint_after) {
  uint64_t sealed = 0;
  std::vector<MetadataOp> seals;
  {
    // No checkpoint may be taken between the change of the state by the seals and their record in the journal.
    const MutexLock lock(context->namespace_mutex);
    auto named = NamedZones(context->geometry(), context->state, recovered.zones);
    // A copy that is behind may become the only one until it is written anew, so nothing that it names may change.
    for (const ZoneId zone : recovered.behind_zones) {
      if (named.emplace(zone, 0).second) context->pool->adopted().ResetBeforeUse(zone);
    }
    ISOZONE_ASSIGN_OR_RETURN(seals, SealOpenLogs(*context));
    ISOZONE_RETURN_IF_ERROR(context->state.Apply(seals));
    ISOZONE_RETURN_IF_ERROR(AdoptZones(*context, recovered.zones));
    ISOZONE_ASSIGN_OR_RETURN(context->journal,
                             Journal::Open(*context->device, *context->pool, context->namespace_mutex, context->state,
                                           recovered, Journal::Options{checkpoint_after}));
    context->pool->adopted().ReleaseUnnamed([&named](ZoneId zone) { return named.contains(zone); });
    if (!seals.empty()) sealed = context->journal->Append(seals);
  }
  context->pool->Start();
  // The seals must be durable before anything is written behind a torn frame, which would look like a damaged one after
  // another power cut.
  Status status = context->journal->Sync(sealed);
  if (status.ok() && recovered.has_older_version()) status = context->journal->Checkpoint();
  if (!status.ok()) KeepZonesOf(seals, *context->pool);
  context->collector->Start();
  auto mounted = std::make_unique<MountedFileSystem>(std::move(context), nullptr);
  if (status.Is(StatusCode::kNoSpace)) {
    return Status::NoSpace(fmt::format("{}; what is there can be read with read_only=on", status.message()));
  }
  if (!status.ok()) Log().error("{}; nothing can be written", status.ToString());
  return std::unique_ptr<FileSystem>(std::move(mounted));
}

}  // namespace

Result<std::unique_ptr<FileSystem>> FileSystem::Mount(std::unique_ptr<ZonedDevice> device, const MountOptions& options,
                                                      Clock& clock) {
  ISOZONE_ASSIGN_OR_RETURN(const auto policy, MakePlacementPolicy(options.policy));
  ISOZONE_ASSIGN_OR_RETURN(MetadataReading reading, ReadMetadata(*device));
  RecoveredMetadata& recovered = reading.metadata;
  auto context = std::make_shared<MountContext>(std::move(device), options, recovered.label, recovered.uuid,
                                                std::move(recovered.state), policy->parallel(), clock);
  const bool read_only = options.read_only || context->device->read_only();
  if (options.statistics_page && !read_only) context->statistics_page = MakeStatisticsPage(*context);
  ZonePoolOptions pool_options = PoolOptionsOf(*context, options, recovered.copies_wanted, read_only, clock);
  ISOZONE_ASSIGN_OR_RETURN(context->pool, ZonePool::Create(*context->device, std::move(pool_options)));
  context->device->OnRefusal([pool = context->pool.get()] { pool->NoteRefusal(); });
  GcOptions gc = options.gc;
  gc.scheme = options.GcScheme();
  context->collected_files = std::make_unique<CollectedFiles>(*context);
  ISOZONE_ASSIGN_OR_RETURN(context->collector, Collector::Create(context->pool->collected(), *context->collected_files,
                                                                 context->engine, gc, clock));

  if (read_only) {
    {
      const MutexLock lock(context->namespace_mutex);
      ISOZONE_RETURN_IF_ERROR(AdoptZones(*context, recovered.zones));
    }
    auto refresh = std::make_unique<ReadOnlyRefresh>(*context, std::move(reading));
    return std::unique_ptr<FileSystem>(std::make_unique<MountedFileSystem>(context, std::move(refresh)));
  }

  return MountForWriting(std::move(context), recovered, options.checkpoint_after);
}

}  // namespace isozone
