// Mounting: it reads the metadata, finds the ends of logs, tells the pool what lives where, and goes on with the
// journal. Where the last process to mount was killed, it takes over what that has left in memory (take_over.h).
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "store/file/collected_files.h"
#include "store/file/file_space.h"
#include "store/file/log_frame.h"
#include "store/file/open_log.h"
#include "store/file_system.h"
#include "store/metadata/metadata_io.h"
#include "store/metadata/recovery.h"
#include "store/mount/mount_context.h"
#include "store/mount/mounted_file_system.h"
#include "store/mount/read_only_refresh.h"
#include "store/mount/take_over.h"
#include "store/pins/pinning_readers.h"
#include "store/zone/placement_policy.h"

namespace isozone {
namespace {

// What logs hold whose ends are not known.
using OpenLogs = std::vector<std::pair<InodeId, SpaceClaim>>;

// Tells `pool` what the metadata says of the zones: live bytes, use, lifetime and heat.
// `beside`: the device, where a writer in another process may have logs open; null: this is the writer.
Result<OpenLogs> AdoptZones(ZonePool& pool, const DeviceGeometry& geometry, const MetadataState& state,
                            std::span<const ZoneId> metadata_zones, const ZonedDevice* beside) {
  for (const ZoneId zone : metadata_zones) ISOZONE_RETURN_IF_ERROR(pool.AdoptMetadata(zone));
  std::vector<AdoptedZone> zones(geometry.zone_count);
  std::vector<std::pair<InodeId, LogRegion>> open_regions;
  for (const Inode* inode = state.Next(InodeId()); inode != nullptr; inode = state.Next(inode->id)) {
    const bool log = inode->kind == FileKind::kLog;
    for (const auto& [id, bytes] : SpaceOf(geometry, *inode)) {
      AdoptedZone& zone = zones[id.value()];
      // A zone keeps the class of the first file in it.
      if (zone.use == ZoneUse::kFree) zone.data = {inode->lifetime, inode->level, HeatOf(state.device().heats, id)};
      zone.live += bytes;
      zone.use = log ? ZoneUse::kLog : ZoneUse::kData;
      zone.has_data |= !log;
    }
    for (const LogRegion& region : inode->regions) {
      if (region.open()) open_regions.emplace_back(inode->id, region);
    }
  }
  // The metadata of an image may be false. Even then, no zone of metadata may be reset for a file, and no zone may
  // count that takes more than it holds.
  for (uint32_t i = 0; i < zones.size(); ++i) {
    if (zones[i].use != ZoneUse::kFree && std::ranges::find(metadata_zones, ZoneId(i)) != metadata_zones.end()) {
      return Status::Corruption(fmt::format("a file names zone {}, which holds metadata; run isozone fsck", i));
    }
    if (zones[i].live > geometry.zone_capacity) {
      return Status::Corruption(fmt::format("files name {} bytes in zone {}, which holds {}; run isozone fsck",
                                            zones[i].live, i, geometry.zone_capacity));
    }
  }
  for (const auto& [inode, region] : open_regions) zones[region.zone.value()].use = ZoneUse::kLog;
  for (uint32_t i = 0; i < zones.size(); ++i) {
    if (zones[i].use != ZoneUse::kFree) pool.Adopt(ZoneId(i), zones[i]);
  }
  OpenLogs logs;
  for (const auto& [inode, region] : open_regions) {
    const ZoneId id = region.zone;
    // The end of the region may be torn. Frames of another log behind it would make it look like damage.
    pool.KeepAsItIs(id);
    uint64_t& live = zones[id.value()].live;
    uint64_t bytes = geometry.block_size;
    if (beside != nullptr) {
      ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(*beside, id));
      bytes = state.BytesOf(region, zone.write_pointer);
    }
    bytes = std::min(bytes, geometry.zone_capacity - live);
    logs.emplace_back(inode, SpaceClaim(pool, id, bytes));
    live += bytes;
  }
  return logs;
}

// The same for the pool of `context`.
Status AdoptZones(MountContext& context, std::span<const ZoneId> metadata_zones, const ZonedDevice* beside)
    ISOZONE_REQUIRES(context.catalog.namespace_mutex) {
  ISOZONE_ASSIGN_OR_RETURN(OpenLogs logs, AdoptZones(*context.data_path.pool, context.data_path.geometry(),
                                                     context.catalog.state, metadata_zones, beside));
  for (auto& [inode, space] : logs) context.catalog.unread_logs[inode].Merge(std::move(space));
  return Status::Ok();
}

// Returns the regions of a damaged log, each with an end behind what was written there. So the damage is met again
// whenever the log is read, and what lies before it can be read.
Result<std::vector<LogRegion>> SealDamaged(const DataPath& data_path, const Inode& inode, const LogContents& log) {
  std::vector<LogRegion> regions = inode.regions;
  for (size_t i = 0; i < regions.size(); ++i) {
    if (!regions[i].open()) continue;
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(*data_path.device, regions[i].zone));
    const LogScan& scan = log.scans[i];
    regions[i].end =
        scan.damage.ok() ? scan.end : std::max(zone.write_pointer, scan.end + data_path.geometry().block_size);
    regions[i].payload = scan.payload;
    regions[i].damaged = !scan.damage.ok();
  }
  return regions;
}

// Returns the changes that give an end to every log that was open when the last mount ended. A log that cannot be read
// now stays open.
Result<std::vector<MetadataOp>> SealOpenLogs(MountContext& context) ISOZONE_REQUIRES(context.catalog.namespace_mutex) {
  std::vector<MetadataOp> ops;
  for (const Inode* inode = context.catalog.state.Next(InodeId()); inode != nullptr;
       inode = context.catalog.state.Next(inode->id)) {
    if (!inode->has_open_region()) continue;
    ISOZONE_ASSIGN_OR_RETURN(const LogContents log,
                             ReadLog(context.data_path.engine, context.data_path.frame_seed, *inode));
    if (log.damage.Is(StatusCode::kIoError)) {
      Log().error("the end of log inode {} is not known: {}", inode->id.value(), log.damage.message());
      continue;
    }
    SealedLog sealed;
    if (log.damage.ok()) {
      sealed = SealLog(context.data_path.geometry(), inode->regions, log.extents);
    } else {
      Log().error("{}", log.damage.ToString());
      ISOZONE_ASSIGN_OR_RETURN(sealed.regions, SealDamaged(context.data_path, *inode, log));
    }
    // Others may write to the zone of what did not survive, once this is durable.
    for (const LogRegion& region : sealed.dropped) context.data_path.pool->ResetBeforeUse(region.zone);
    ops.emplace_back(SetLogRegions{inode->id, std::move(sealed.regions), inode->modified_s});
  }
  return ops;
}

// Keeps anything from being written behind the ends that `seals` would have given to logs.
void KeepZonesOf(std::span<const MetadataOp> seals, ZonePool& pool) {
  for (const MetadataOp& op : seals) {
    for (const LogRegion& region : std::get<SetLogRegions>(op).regions) pool.KeepAsItIs(region.zone);
  }
}

// Asks the readers of the device, which are in other processes; empty where it has no name in the file system of the
// machine by which others could open it.
std::function<std::vector<ZoneId>(std::span<const ZoneId>, bool)> PinnedIn(const MountContext& context) {
  const auto owner = PageOwner::Of(context.data_path.device->name());
  if (!owner.ok() || !owner->has_name) return {};
  const uint32_t zone_count = context.data_path.geometry().zone_count;
  const uint64_t most = uint64_t{zone_count} * context.data_path.options.reader_hold / 100;
  return [c = &context, device = *owner, zone_count, most](std::span<const ZoneId> zones, bool are_short) {
    return FindPinned(device, c->data_path.options.kept_memory_directory, c->uuid, zone_count, zones,
                      are_short ? most : zone_count);
  };
}

ZonePoolOptions PoolOptionsOf(MountContext& context, const MountOptions& options, uint32_t metadata_copies,
                              bool read_only, Clock& clock) {
  ZonePoolOptions pool;
  pool.policy = options.policy;
  pool.groups = context.data_path.groups;
  pool.isolation = options.isolation;
  // With fewer groups than two files are wide, writers that keep away from one another would find no group.
  pool.keep_away = pool.groups->count() >= 2 * options.stripe_width;
  pool.read_only = read_only;
  pool.clock = &clock;
  pool.statistics = context.statistics_page == nullptr ? nullptr : &context.statistics_page->writer();
  pool.metadata_copies = metadata_copies;
  pool.make_durable = [c = &context] { return c->catalog.journal->Sync(c->catalog.journal->last_sequence()); };
  pool.want_checkpoint = [c = &context] { return c->catalog.journal->WantCheckpoint(); };
  pool.checkpoint_pending = [c = &context](uint64_t number) { return c->catalog.journal->CheckpointPending(number); };
  pool.want_space = [c = &context] { c->collector->Wake(); };
  pool.pinned = PinnedIn(context);
  pool.want_pace = [c = &context] { c->collector->Hurry(); };
  return pool;
}

// Keeps zones as they are that the metadata on the device names, though the state does no longer.
void KeepNamed(MountContext& context, std::map<ZoneId, uint64_t>& named, const RecoveredMetadata& recovered)
    ISOZONE_REQUIRES(context.catalog.namespace_mutex) {
  const auto now = NamedZones(context.data_path.geometry(), context.catalog.state, recovered.zones);
  for (const auto& [zone, end] : named) {
    if (!now.contains(zone)) context.data_path.pool->ResetBeforeUse(zone);
  }
  for (const auto& [zone, end] : now) named[zone] = std::max(named[zone], end);
  // A copy that is behind may become the only one until it is written anew, so nothing that it names may change.
  for (const ZoneId zone : recovered.behind_zones) {
    if (named.emplace(zone, 0).second) context.data_path.pool->ResetBeforeUse(zone);
  }
}

// As a mount would find it now.
Result<SpaceInfo> FindSpace(MountContext& context) {
  ISOZONE_ASSIGN_OR_RETURN(const MetadataReading reading, ReadMetadata(*context.data_path.device));
  const RecoveredMetadata& found = reading.metadata;
  ZonePoolOptions options =
      PoolOptionsOf(context, context.data_path.options, found.copies_wanted, true, context.data_path.clock);
  ISOZONE_ASSIGN_OR_RETURN(const auto pool, ZonePool::Create(*context.data_path.device, std::move(options)));
  ISOZONE_ASSIGN_OR_RETURN(const OpenLogs logs, AdoptZones(*pool, context.data_path.geometry(), found.state,
                                                           found.zones, context.data_path.device.get()));
  return pool->Space();
}

// Starts what looks after the device and after writers from now on.
Status StartCare(MountContext& context) {
  ISOZONE_RETURN_IF_ERROR(context.collector->Start());
  if (context.data_path.kept == nullptr) return Status::Ok();
  KeptMemory* const kept = context.data_path.kept.get();
  const OpenWriters::Work work = {
      .is_memory_short = [kept] { return kept->is_awaited(); },
      .prepare_memory = [kept] { return kept->Prepare(); },
      .save_metadata = [journal = context.catalog.journal.get()] { journal->SyncSoon(journal->last_sequence()); }};
  ISOZONE_RETURN_IF_ERROR(context.data_path.writers.Start(context.data_path.clock, work));
  kept->OnAwaited([writers = &context.data_path.writers] { writers->Wake(); });
  return Status::Ok();
}

// The pool and the collector of `context` exist. This starts them.
Result<std::unique_ptr<FileSystem>> MountForWriting(const std::shared_ptr<MountContext>& context,
                                                    const RecoveredMetadata& recovered, uint64_t checkpoint_after) {
  uint64_t sealed = 0;
  std::vector<MetadataOp> seals;
  KeptLegacy legacy;
  const uint64_t mount_number = MakeKeptMemory(*context);
  {
    // No checkpoint may be taken between the change of the state by the seals and their record in the journal.
    const MutexLock lock(context->catalog.namespace_mutex);
    auto named = NamedZones(context->data_path.geometry(), context->catalog.state, recovered.zones);
    ISOZONE_ASSIGN_OR_RETURN(legacy, ApplyLegacy(*context, recovered.sequence));
    KeepNamed(*context, named, recovered);
    EraseReplaced(*context->data_path.device, recovered, [&named](ZoneId zone) { return named.contains(zone); });
    // What no durable record names may be reset at once, but not where readers of the last mount still read it.
    for (const ZoneId zone :
         PinnedZones(*context->data_path.device, context->uuid, context->data_path.options.kept_memory_directory)) {
      if (zone.value() >= HomeZones(recovered.copies_wanted)) named.emplace(zone, 0);
    }
    ISOZONE_ASSIGN_OR_RETURN(seals, SealOpenLogs(*context));
    ISOZONE_RETURN_IF_ERROR(context->catalog.state.Apply(seals));
    ISOZONE_RETURN_IF_ERROR(AdoptZones(*context, recovered.zones, /*beside=*/nullptr));
    ISOZONE_ASSIGN_OR_RETURN(context->catalog.journal,
                             Journal::Open(*context->data_path.device, *context->data_path.pool,
                                           context->catalog.namespace_mutex, context->catalog.state, recovered,
                                           Journal::Options{checkpoint_after, context->data_path.kept.get()}));
    context->data_path.pool->ReleaseUnnamed([&named](ZoneId zone) { return named.contains(zone); });
    for (const std::vector<MetadataOp>& record : legacy.records) sealed = context->catalog.journal->Append(record);
    if (!seals.empty()) sealed = context->catalog.journal->Append(seals);
  }
  ISOZONE_RETURN_IF_ERROR(context->data_path.pool->Start());
  // The seals must be durable before anything is written behind a torn frame, which would look like a damaged one after
  // another power cut.
  Status status = context->catalog.journal->Sync(sealed);
  if (status.ok() && recovered.has_older_version()) status = context->catalog.journal->Checkpoint();
  if (!status.ok()) KeepZonesOf(seals, *context->data_path.pool);
  if (const Status started = StartCare(*context); !started.ok()) {
    context->collector->Stop();
    context->data_path.pool->Stop();  // while the journal is there, which its thread uses
    return started;
  }
  auto mounted = std::make_unique<MountedFileSystem>(context, nullptr);
  if (status.Is(StatusCode::kNoSpace)) {
    return Status::NoSpace(fmt::format("{}; what is there can be read with read_only=on", status.message()));
  }
  if (status.ok()) {
    TakeOver(context, legacy);
    BeginMountOf(*context, mount_number);
  } else {
    Log().error("{}; nothing can be written", status.ToString());
  }
  return std::unique_ptr<FileSystem>(std::move(mounted));
}

}  // namespace

Result<std::unique_ptr<FileSystem>> FileSystem::Mount(std::unique_ptr<ZonedDevice> device, const MountOptions& options,
                                                      Clock& clock) {
  ISOZONE_ASSIGN_OR_RETURN(const auto policy, MakePlacementPolicy(options.policy));
  ISOZONE_ASSIGN_OR_RETURN(MetadataReading reading, ReadMetadata(*device));
  RecoveredMetadata& recovered = reading.metadata;
  const bool read_only = options.read_only || device->read_only();
  if (!recovered.newest.ok()) Log().warn("{}", recovered.newest.message());
  if (!read_only && !options.accept_older_metadata && !recovered.newest.ok()) {
    return Status::IoError(
        fmt::format("{}. Mount it read-only to copy out what is left, or go on from that with isozone fsck --repair",
                    recovered.newest.message()));
  }
  auto context = std::make_shared<MountContext>(std::move(device), options, recovered.label, recovered.uuid,
                                                std::move(recovered.state), policy->parallel(), clock);
  if (!read_only) {
    ISOZONE_ASSIGN_OR_RETURN(context->statistics_page, MakeStatisticsPage(*context));
  }
  ZonePoolOptions pool_options = PoolOptionsOf(*context, options, recovered.copies_wanted, read_only, clock);
  ISOZONE_ASSIGN_OR_RETURN(context->data_path.pool,
                           ZonePool::Create(*context->data_path.device, std::move(pool_options)));
  context->catalog.pool = context->data_path.pool.get();
  context->data_path.device->OnRefusal([pool = context->data_path.pool.get()] { pool->NoteRefusal(); });
  GcOptions gc = options.gc;
  gc.scheme = options.GcScheme();
  context->collected_files = std::make_unique<CollectedFiles>(context->data_path, context->catalog);
  ISOZONE_ASSIGN_OR_RETURN(context->collector,
                           Collector::Create(context->data_path.pool->collected(), *context->collected_files,
                                             context->data_path.engine, gc, clock));

  if (read_only) {
    {
      const MutexLock lock(context->catalog.namespace_mutex);
      ISOZONE_RETURN_IF_ERROR(AdoptZones(*context, recovered.zones, context->data_path.device.get()));
    }
    auto refresh = std::make_unique<ReadOnlyRefresh>(*context, std::move(reading), FindSpace);
    return std::unique_ptr<FileSystem>(std::make_unique<MountedFileSystem>(context, std::move(refresh)));
  }

  return MountForWriting(context, recovered, options.checkpoint_after);
}

}  // namespace isozone
