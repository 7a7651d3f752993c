// Who does what: callers of Sync commit, one at a time (the leader; the others wait and find themselves served). One
// background thread writes new copies. To let a new copy take the place of an old one it leads for a moment itself. No
// lock is held across device I/O; `committing` says that somebody leads, and only he touches what the copies write to.
//
// A record is durable when every copy in `copies` has it. A new copy joins them only once it has all that was ever called
// durable.
//
// Lock order: the namespace mutex, then mu, then the pool's.

#include "fs/metadata/journal.h"

#include <algorithm>
#include <cassert>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/latch.h"
#include "base/log.h"
#include "fs/metadata/metadata_codec.h"
#include "fs/metadata/metadata_io.h"
#include "fs/metadata/metadata_log.h"
#include "fs/metadata/recovery.h"

namespace isozone {
namespace {

// So many inodes are copied at a time under the namespace mutex.
constexpr size_t kInodesPerCopy = 256;

// Zones in a row in which a new copy meets a failed write before it is given up.
constexpr int kAttemptsMax = 8;

// After a new copy could not be written, the next attempt that nobody asks for comes when so much more was journalled.
constexpr uint64_t kRetryAfter = kMiB;

// Fewer extents can take more bytes, where a cut parts those that were alike.
bool CutsShort(const MetadataState& state, const SetExtents& op) {
  const Inode* inode = state.Find(op.inode);
  return inode != nullptr && op.extents.end_offset() < inode->extents.end_offset();
}

// What a change that makes the state larger must leave of the rest behind a checkpoint. What adds something leaves all of
// it; a rename, half; a move of data, by which collection makes space, a quarter. The last quarter is for what empties a
// device and for what closes logs: a file that is cut short, too, grows by a few bytes, and only once.
MetadataRest RestLeftBy(const MetadataState& state, std::span<const MetadataOp> ops) {
  bool links = false;
  bool unlinks = false;
  bool moves = false;
  for (const MetadataOp& op : ops) {
    if (std::holds_alternative<PutInode>(op) || std::holds_alternative<AppendExtents>(op) ||
        std::holds_alternative<SetZoneGroups>(op)) {
      return MetadataRest::kWhole;
    }
    const auto* set = std::get_if<SetExtents>(&op);
    if (set != nullptr && !CutsShort(state, *set)) return MetadataRest::kWhole;
    links |= std::holds_alternative<AddLink>(op);
    unlinks |= std::holds_alternative<RemoveLink>(op);
    moves |= std::holds_alternative<MoveExtents>(op);
  }
  if (links && !unlinks) return MetadataRest::kWhole;
  if (links) return MetadataRest::kHalf;
  return moves ? MetadataRest::kQuarter : MetadataRest::kLeast;
}

std::vector<ZoneId> ZonesOf(std::span<const std::unique_ptr<MetadataLog>> copies, uint64_t but) {
  std::vector<ZoneId> zones;
  for (const auto& copy : copies) {
    if (copy->generation() != but) zones.insert(zones.end(), copy->zones().begin(), copy->zones().end());
  }
  return zones;
}

}  // namespace

struct Journal::Impl {
  using Log = std::unique_ptr<MetadataLog>;
  static constexpr uint64_t kMissing =
      0;  // instead of the generation of a copy: there is one less than there should be

  Impl(ZonedDevice& d, ZonePool& p, Mutex& m, MetadataState& s, const RecoveredMetadata& recovered, const Options& o);
  ~Impl() { StopThread(); }

  Status Resume(const RecoveredMetadata& recovered) ISOZONE_EXCLUDES(mu);

  // --- Any thread ---
  Status Admit(uint64_t bytes, MetadataRest rest) ISOZONE_EXCLUDES(mu);
  uint64_t Append(std::span<const MetadataOp> ops) ISOZONE_EXCLUDES(mu) ISOZONE_REQUIRES(namespace_mutex);
  Status Sync(uint64_t sequence) ISOZONE_EXCLUDES(mu);
  void SyncSoon(uint64_t sequence) ISOZONE_EXCLUDES(mu);
  Status Checkpoint() ISOZONE_EXCLUDES(mu);
  uint64_t WantCheckpoint() ISOZONE_EXCLUDES(mu);
  Status RestoreCopies() ISOZONE_EXCLUDES(mu);
  void StopThread() ISOZONE_EXCLUDES(mu);

  uint32_t ZonesOfCopy(uint64_t bytes, MetadataRest rest) const { return CopyZones(device.geometry(), bytes, rest); }
  uint32_t ZonesInAll(uint32_t zones_of_a_copy) const { return zones_of_a_copy * (copies_wanted + 1); }
  // Of a copy that is begun now, with a checkpoint of so many bytes: no more than are kept for it, where what may use the
  // rest has made it larger than that.
  uint32_t ZonesOfNext(uint64_t bytes) const ISOZONE_REQUIRES(mu) {
    return std::max(ZonesOfCopy(bytes, MetadataRest::kLeast),
                    std::min(zones_reserved, ZonesOfCopy(bytes, MetadataRest::kWhole)));
  }
  // Some copy has records to write and room for them; nobody is committing.
  bool CanCommit() const ISOZONE_REQUIRES(mu);
  // Writes one batch, of all that waits or as much as fits, to each copy that has room, as the leader. CanCommit.
  Status CommitBatch() ISOZONE_REQUIRES(mu);
  // One batch to each of `writing`, which have room; those that fail are given up. True: some were.
  bool WriteBatches(std::span<MetadataLog* const> writing) ISOZONE_REQUIRES(mu);
  void GiveUp(MetadataLog* copy, const Status& why) ISOZONE_REQUIRES(mu);
  void NoteDurable() ISOZONE_REQUIRES(mu);
  // Returns once a copy was written anew, or could not be.
  Status AwaitRoll() ISOZONE_REQUIRES(mu);
  // Nothing can be written any more; returns what callers are told.
  Status Latch(const Status& cause) ISOZONE_REQUIRES(mu);

  // --- The thread ---
  void Run() ISOZONE_EXCLUDES(mu);
  bool WantsSync() const ISOZONE_REQUIRES(mu) { return latched.ok() && wanted_sequence > durable_sequence; }
  void SyncInThread() ISOZONE_REQUIRES(mu);
  // The copy that should be written anew next, or kMissing.
  std::optional<uint64_t> NextRoll() const ISOZONE_REQUIRES(mu);
  bool WantsRoll(const MetadataLog& copy) const ISOZONE_REQUIRES(mu);
  MetadataLog* Find(uint64_t wanted) const ISOZONE_REQUIRES(mu);
  void Roll(uint64_t old) ISOZONE_REQUIRES(mu);
  void NoteRollFailed(uint64_t old, const Status& status) ISOZONE_REQUIRES(mu);
  // Writes a new copy, and lets it take the place of the copy `old`. kBusy: it lagged behind; nobody else may lead then.
  Status TryRoll(uint64_t old, bool lead) ISOZONE_REQUIRES(mu);
  Status CopySnapshot(MetadataLog& log, const ZoneGroups* groups, const ZoneHeats& heats, CheckpointFooter footer,
                      uint32_t zones, std::vector<ZoneId> apart_from) ISOZONE_EXCLUDES(mu);
  Status CatchUp(MetadataLog& log) ISOZONE_REQUIRES(mu);
  void Switch(uint64_t old, Log log) ISOZONE_REQUIRES(mu);
  // Gives the zones of a copy that is no longer needed back.
  void Release(Log log) ISOZONE_REQUIRES(mu);
  void Lead() ISOZONE_REQUIRES(mu);
  void EndLead() ISOZONE_REQUIRES(mu);

  ZonedDevice& device;
  ZonePool& pool;
  Mutex& namespace_mutex;
  MetadataState& state ISOZONE_GUARDED_BY(namespace_mutex);
  const Options options;
  const Superblock superblock;  // what that of a new copy has in common with the others
  const uint32_t copies_wanted;

  mutable Mutex mu;
  CondVar changed;  // for callers: a commit, a new copy, or an error
  CondVar work;     // for the thread
  Status latched ISOZONE_GUARDED_BY(mu);
  bool stopping ISOZONE_GUARDED_BY(mu) = false;

  std::vector<Log> copies ISOZONE_GUARDED_BY(mu);         // that are being written
  MetadataLog* rolling ISOZONE_GUARDED_BY(mu) = nullptr;  // a new one: gets the records behind its snapshot
  std::vector<std::byte> record ISOZONE_GUARDED_BY(mu);   // that is being appended
  bool announced ISOZONE_GUARDED_BY(mu) = true;           // the batches of the copies say how many they are
  uint64_t generation ISOZONE_GUARDED_BY(mu);             // the highest there is
  uint64_t last_sequence ISOZONE_GUARDED_BY(mu);
  uint64_t durable_sequence ISOZONE_GUARDED_BY(mu) = 0;
  uint64_t wanted_sequence ISOZONE_GUARDED_BY(mu) = 0;  // to be durable soon
  bool committing ISOZONE_GUARDED_BY(mu) = false;

  uint64_t state_bytes ISOZONE_GUARDED_BY(mu);     // of a checkpoint: as the state is, or is about to become
  uint32_t zones_reserved ISOZONE_GUARDED_BY(mu);  // for each copy

  uint64_t rolls_ended ISOZONE_GUARDED_BY(mu) = 0;
  Status roll_failure ISOZONE_GUARDED_BY(mu);      // of the last one; the thread waits for somebody to ask again
  uint64_t journalled ISOZONE_GUARDED_BY(mu) = 0;  // bytes of records that were appended
  uint64_t retry_at ISOZONE_GUARDED_BY(mu) = 0;    // of these
  uint64_t checkpoints_wanted ISOZONE_GUARDED_BY(mu) = 0;
  uint64_t checkpoints_ended ISOZONE_GUARDED_BY(mu) = 0;
  uint64_t new_enough ISOZONE_GUARDED_BY(mu) = 0;   // a copy of this generation need not be written anew
  Status checkpoint_status ISOZONE_GUARDED_BY(mu);  // of those that have ended
  JournalStats stats ISOZONE_GUARDED_BY(mu);

  std::thread thread;  // touched by Open, Close and the destructor only
};

Journal::Impl::Impl(ZonedDevice& d, ZonePool& p, Mutex& m, MetadataState& s, const RecoveredMetadata& recovered,
                    const Options& o)
    : device(d),
      pool(p),
      namespace_mutex(m),
      state(s),
      options(o),
      superblock(recovered.position->copies.front().superblock),
      copies_wanted(superblock.copies),
      generation(recovered.position->generation),
      last_sequence(recovered.sequence),
      state_bytes(s.encoded_size()),
      zones_reserved(ZonesOfCopy(state_bytes, MetadataRest::kWhole)) {}

Status Journal::Impl::Resume(const RecoveredMetadata& recovered) {
  // What was found is what all that is written from here on builds upon. A process that was killed may have left it
  // where a power cut could still take it.
  ISOZONE_RETURN_IF_ERROR(FlushDevice(device));
  const MutexLock lock(mu);
  for (const FoundCopy& found : recovered.position->copies) {
    const bool up_to_date = found.sequence == last_sequence;
    ISOZONE_ASSIGN_OR_RETURN(Log log, MetadataLog::Resume(device, pool, found, up_to_date));
    copies.push_back(std::move(log));
  }
  durable_sequence = UINT64_MAX;
  for (const Log& copy : copies) durable_sequence = std::min(durable_sequence, copy->durable_sequence());
  announced = copies.size() == copies_wanted;
  // A device may have been filled up to what is needed in the least.
  if (!pool.metadata().Reserve(ZonesInAll(zones_reserved), MetadataClaim::kRenewed)) {
    zones_reserved = ZonesOfCopy(state_bytes, MetadataRest::kLeast);
    pool.metadata().Reserve(ZonesInAll(zones_reserved), MetadataClaim::kForced);
  }
  for (const MetadataCopy& copy : recovered.copies) {
    if (copy.state == MetadataCopy::State::kDamaged) isozone::Log().error("{}", copy.text);
  }
  if (copies.size() < copies_wanted) {
    isozone::Log().error("{} of {} copies of the metadata are left; the others are written anew", copies.size(),
                         copies_wanted);
  }
  return {};
}

// --- Any thread ---

Status Journal::Impl::Admit(uint64_t bytes, MetadataRest rest) {
  const MutexLock lock(mu);
  const uint32_t zones = ZonesOfCopy(bytes, MetadataRest::kWhole);
  const bool enough = ZonesOfCopy(bytes, rest) <= zones_reserved;
  if (!enough && !pool.metadata().Reserve(ZonesInAll(zones), MetadataClaim::kNew)) {
    return Status::NoSpace(
        fmt::format("the device is full: {} bytes of metadata would need {} zones in all, and no empty ones are left "
                    "for that; delete files",
                    bytes, ZonesInAll(zones)));
  }
  if (!enough) zones_reserved = zones;
  state_bytes = bytes;
  return {};
}

uint64_t Journal::Impl::Append(std::span<const MetadataOp> ops) {
  const MutexLock lock(mu);
  ++stats.records;
  // Once latched, nothing is written any more.
  if (latched.ok()) {
    record.clear();
    EncodeRecord(ops, record);
    journalled += record.size();
    for (const Log& copy : copies) copy->Append(record);
    if (rolling != nullptr) rolling->Append(record);
  }
  state_bytes = state.encoded_size();
  const uint32_t zones = ZonesOfCopy(state_bytes, MetadataRest::kWhole);
  if (zones < zones_reserved) {
    zones_reserved = zones;
    pool.metadata().Reserve(ZonesInAll(zones), MetadataClaim::kForced);
  }
  return ++last_sequence;
}

Status Journal::Impl::Sync(uint64_t sequence) {
  const MutexLock lock(mu);
  assert(sequence <= last_sequence);
  while (durable_sequence < sequence) {
    if (!latched.ok()) return latched;
    if (committing) {
      changed.Wait(mu);
    } else {
      ISOZONE_RETURN_IF_ERROR(CanCommit() ? CommitBatch() : AwaitRoll());
    }
  }
  return {};
}

void Journal::Impl::SyncSoon(uint64_t sequence) {
  const MutexLock lock(mu);
  wanted_sequence = std::max(wanted_sequence, sequence);
  if (WantsSync()) work.Signal();
}

bool Journal::Impl::CanCommit() const {
  return std::any_of(copies.begin(), copies.end(), [this](const Log& copy) ISOZONE_REQUIRES(mu) {
    return copy->room() > 0 && (copy->has_records() || !announced);
  });
}

Status Journal::Impl::CommitBatch() {
  committing = true;
  ++stats.commits;
  // Copies that are left alone say so, in one more batch, before anything that only they have is called durable.
  for (bool again = true; again && latched.ok();) {
    std::vector<MetadataLog*> writing;
    for (const Log& copy : copies) {
      if (copy->room() > 0 && (copy->has_records() || !announced)) writing.push_back(copy.get());
    }
    if (writing.empty()) break;
    again = WriteBatches(writing);
    announced = !again;
  }
  NoteDurable();
  committing = false;
  if (NextRoll()) work.Signal();
  changed.SignalAll();
  return latched;
}

bool Journal::Impl::WriteBatches(std::span<MetadataLog* const> writing) {
  for (MetadataLog* copy : writing) copy->Build(static_cast<uint32_t>(copies.size()));
  std::vector<Status> results(writing.size());
  {
    const MutexUnlock unlock(mu);
    isozone::Latch written;
    for (size_t i = 0; i < writing.size(); ++i) results[i] = writing[i]->Start(written);
    written.Wait();
  }
  size_t failed = 0;
  for (size_t i = 0; i < writing.size(); ++i) {
    if (results[i].ok()) results[i] = writing[i]->End();
    if (!results[i].ok()) ++failed;
  }
  if (failed == copies.size()) {
    // The zones stay as they are: all that is durable is in them.
    (void)Latch(results.front());
    return true;
  }
  for (size_t i = 0; i < writing.size(); ++i) {
    if (!results[i].ok()) GiveUp(writing[i], results[i]);
  }
  return failed > 0;
}

void Journal::Impl::GiveUp(MetadataLog* copy, const Status& why) {
  isozone::Log().error("a copy of the metadata is given up, and written anew elsewhere: {}", why.message());
  const auto it = std::find_if(copies.begin(), copies.end(), [copy](const Log& log) { return log.get() == copy; });
  Log log = std::move(*it);
  copies.erase(it);
  stats.bytes += log->bytes_written();
  Release(std::move(log));
}

void Journal::Impl::NoteDurable() {
  if (!latched.ok() || !announced) return;
  uint64_t durable = last_sequence;
  for (const Log& copy : copies) durable = std::min(durable, copy->durable_sequence());
  durable_sequence = std::max(durable_sequence, durable);
}

Status Journal::Impl::AwaitRoll() {
  const uint64_t ended = rolls_ended;
  roll_failure = Status::Ok();  // there may be zones now
  while (rolls_ended == ended && !CanCommit()) {
    if (!latched.ok()) return latched;
    if (stopping) return Status::Aborted("the file system is being unmounted");
    work.Signal();
    changed.Wait(mu);
  }
  return rolls_ended == ended ? Status::Ok() : roll_failure;
}

Status Journal::Impl::Latch(const Status& cause) {
  if (latched.ok()) {
    latched = Status::ReadOnly(
        fmt::format("the file system is read-only since its metadata could not be written: {}; mount it again to "
                    "recover",
                    cause.message()));
    isozone::Log().error("{}", latched.message());
  }
  changed.SignalAll();
  work.Signal();
  return latched;
}

Status Journal::Impl::Checkpoint() {
  const MutexLock lock(mu);
  new_enough = generation + 1;
  const uint64_t mine = ++checkpoints_wanted;
  roll_failure = Status::Ok();
  work.Signal();
  while (checkpoints_ended < mine) {
    if (!latched.ok()) return latched;
    changed.Wait(mu);
  }
  return checkpoint_status;
}

uint64_t Journal::Impl::WantCheckpoint() {
  const MutexLock lock(mu);
  const bool gives_back = std::any_of(copies.begin(), copies.end(), [this](const Log& copy) ISOZONE_REQUIRES(mu) {
    return copy->zones().size() > zones_reserved;
  });
  if (!gives_back) return checkpoints_ended;
  new_enough = generation + 1;
  roll_failure = Status::Ok();
  work.Signal();
  return ++checkpoints_wanted;
}

Status Journal::Impl::RestoreCopies() {
  const MutexLock lock(mu);
  roll_failure = Status::Ok();
  for (;;) {
    if (!latched.ok()) return latched;
    if (!roll_failure.ok()) return roll_failure;
    if (copies.size() == copies_wanted && !NextRoll()) return {};
    work.Signal();
    changed.Wait(mu);
  }
}

void Journal::Impl::StopThread() {
  {
    const MutexLock lock(mu);
    stopping = true;
    work.Signal();
    changed.SignalAll();
  }
  if (thread.joinable()) thread.join();
}

// --- The thread ---

void Journal::Impl::Run() {
  const MutexLock lock(mu);
  while (!stopping) {
    if (const auto next = NextRoll()) {
      Roll(*next);
    } else if (WantsSync()) {
      SyncInThread();
    } else {
      work.Wait(mu);
    }
  }
}

void Journal::Impl::SyncInThread() {
  if (committing) {
    changed.Wait(mu);
  } else if (!CanCommit() || !CommitBatch().ok()) {
    wanted_sequence = 0;
  }
}

std::optional<uint64_t> Journal::Impl::NextRoll() const {
  if (!latched.ok() || (!roll_failure.ok() && journalled < retry_at)) return std::nullopt;
  // Those that others wait for come first.
  for (const Log& copy : copies) {
    if (copy->room() == 0) return copy->generation();
  }
  if (copies.size() < copies_wanted) return kMissing;
  for (const Log& copy : copies) {
    if (WantsRoll(*copy)) return copy->generation();
  }
  return std::nullopt;
}

bool Journal::Impl::WantsRoll(const MetadataLog& copy) const {
  if (checkpoints_wanted > checkpoints_ended && copy.generation() < new_enough) return true;
  const uint64_t journal = copy.journal_bytes();
  return journal > options.checkpoint_after || journal > copy.room();
}

MetadataLog* Journal::Impl::Find(uint64_t wanted) const {
  for (const Log& copy : copies) {
    if (copy->generation() == wanted) return copy.get();
  }
  return nullptr;
}

void Journal::Impl::Roll(uint64_t old) {
  const uint64_t serves = checkpoints_wanted;
  bool lead = false;
  Status status;
  for (int attempt = 0; attempt < kAttemptsMax && !stopping; ++attempt) {
    status = TryRoll(old, lead);
    lead = status.Is(StatusCode::kBusy);
    // Another attempt finds another zone: this one is not written again.
    if (!lead && !status.Is(StatusCode::kIoError)) break;
  }
  if (stopping && status.ok()) status = Status::Aborted("the file system is being unmounted");
  roll_failure = status;
  retry_at = journalled + kRetryAfter;
  if (status.ok()) {
    ++stats.checkpoints;
  } else {
    NoteRollFailed(old, status);
  }
  const bool all_new = std::all_of(copies.begin(), copies.end(), [this](const Log& copy) ISOZONE_REQUIRES(mu) {
    return copy->generation() >= new_enough;
  });
  if (!status.ok() || (all_new && copies.size() == copies_wanted)) {
    checkpoints_ended = std::max(checkpoints_ended, serves);
    checkpoint_status = status;
  }
  ++rolls_ended;
  changed.SignalAll();
}

void Journal::Impl::NoteRollFailed(uint64_t old, const Status& status) {
  if (stopping || !latched.ok() || status.Is(StatusCode::kAborted)) return;
  isozone::Log().warn("no new copy of the metadata could be written: {}", status.ToString());
  MetadataLog* copy = Find(old);
  if (copy == nullptr || copy->room() > 0) return;
  // Nothing can be acknowledged as long as it waits. The zones of this copy are as many as one needs.
  if (copies.size() > 1) {
    Lead();
    copy = Find(old);
    if (copy != nullptr && copies.size() > 1) {
      announced = false;
      GiveUp(copy, status);
    }
    EndLead();
    roll_failure = Status::Ok();
  } else if (status.Is(StatusCode::kIoError)) {
    (void)Latch(status);
  }
}

void Journal::Impl::Lead() {
  while (committing) changed.Wait(mu);
  committing = true;
}

void Journal::Impl::EndLead() {
  NoteDurable();
  committing = false;
  changed.SignalAll();
}

Status Journal::Impl::TryRoll(uint64_t old, bool lead) {
  if (lead) Lead();
  Superblock begun = superblock;
  begun.generation = ++generation;
  Log log;
  CheckpointFooter footer;
  std::shared_ptr<const ZoneGroups> groups;
  ZoneHeats heats;
  uint32_t zones = 0;
  std::vector<ZoneId> apart_from = ZonesOf(copies, old);
  Status status;
  {
    const MutexUnlock unlock(mu);
    {
      const MutexLock namespace_lock(namespace_mutex);
      const MutexLock lock(mu);
      begun.sequence = footer.sequence = last_sequence;
      footer.next_id = state.NextId();
      zones = ZonesOfNext(state.encoded_size());
      groups = state.zone_groups();
      heats = state.zone_heats();
      state.BeginSnapshot();
      log = std::make_unique<MetadataLog>(device, pool, begun);
      rolling = log.get();
    }
    status = CopySnapshot(*log, groups.get(), heats, footer, zones, std::move(apart_from));
    const MutexLock namespace_lock(namespace_mutex);
    state.EndSnapshot();
  }
  if (!lead) Lead();
  if (status.ok()) status = CatchUp(*log);
  rolling = nullptr;
  if (status.ok()) {
    Switch(old, std::move(log));
  } else {
    Release(std::move(log));
  }
  EndLead();
  return status;
}

Status Journal::Impl::CopySnapshot(MetadataLog& log, const ZoneGroups* groups, const ZoneHeats& heats,
                                   CheckpointFooter footer, uint32_t zones, std::vector<ZoneId> apart_from) {
  ISOZONE_RETURN_IF_ERROR(log.Begin(zones, std::move(apart_from)));
  if (groups != nullptr) {
    ISOZONE_RETURN_IF_ERROR(log.Add([&](std::vector<std::byte>& out) { EncodeSetZoneGroups(*groups, out); }));
  }
  if (!heats.empty()) {
    ISOZONE_RETURN_IF_ERROR(log.Add([&](std::vector<std::byte>& out) { EncodeSetZoneHeats(heats, out); }));
  }
  for (;;) {
    std::vector<Inode> inodes;
    {
      const MutexLock namespace_lock(namespace_mutex);
      inodes = state.NextOfSnapshot(kInodesPerCopy);
    }
    if (inodes.empty()) return log.Finish(footer);
    for (const Inode& inode : inodes) {
      ISOZONE_RETURN_IF_ERROR(log.Add([&](std::vector<std::byte>& out) { EncodePutInode(inode, out); }));
    }
    footer.inodes += inodes.size();
    const MutexLock lock(mu);
    if (stopping) return Status::Aborted("the file system is being unmounted");
    if (!latched.ok()) return latched;
  }
}

// What is called durable must be in it before it counts, so that nothing is lost with the copy that it replaces.
Status Journal::Impl::CatchUp(MetadataLog& log) {
  while (log.durable_sequence() < durable_sequence) {
    if (!latched.ok()) return latched;
    if (log.room() == 0) return Status::Busy("the new copy has no room for what came while it was written");
    log.Build(copies_wanted);
    {
      const MutexUnlock unlock(mu);
      isozone::Latch written;
      ISOZONE_RETURN_IF_ERROR(log.Start(written));
    }
    ISOZONE_RETURN_IF_ERROR(log.End());
  }
  return latched;
}

void Journal::Impl::Switch(uint64_t old, Log log) {
  const auto it =
      std::find_if(copies.begin(), copies.end(), [old](const Log& copy) { return copy->generation() == old; });
  if (it == copies.end()) {
    isozone::Log().info("a copy of the metadata was written anew, to zone {}", log->zones().front().value());
    copies.push_back(std::move(log));
    return;
  }
  std::swap(*it, log);
  stats.bytes += log->bytes_written();
  Release(std::move(log));
}

void Journal::Impl::Release(Log log) {
  const std::vector<ZoneId> zones = log->zones();
  const MutexUnlock unlock(mu);
  log.reset();
  for (const ZoneId zone : zones) pool.metadata().Release(zone);
}

// --- Journal ---

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Journal>> Journal::Open(ZonedDevice& device, ZonePool& pool, Mutex& namespace_mutex,
                                               MetadataState& state, const RecoveredMetadata& recovered,
                                               const Options& options) {
  auto impl = std::make_unique<Impl>(device, pool, namespace_mutex, state, recovered, options);
  ISOZONE_RETURN_IF_ERROR(impl->Resume(recovered));
  impl->thread = std::thread([i = impl.get()] { i->Run(); });
  return std::unique_ptr<Journal>(new Journal(std::move(impl)));
}

Journal::~Journal() = default;

Result<uint64_t> Journal::Commit(std::span<const MetadataOp> ops) {
  impl_->namespace_mutex.AssertHeld();
  const MetadataRest rest = RestLeftBy(impl_->state, ops);
  ISOZONE_RETURN_IF_ERROR(impl_->state.Apply(ops, [this, rest](uint64_t bytes) { return impl_->Admit(bytes, rest); }));
  return impl_->Append(ops);
}

uint64_t Journal::Append(std::span<const MetadataOp> ops) {
  impl_->namespace_mutex.AssertHeld();
  return impl_->Append(ops);
}

Status Journal::Sync(uint64_t sequence) { return impl_->Sync(sequence); }

void Journal::SyncSoon(uint64_t sequence) { impl_->SyncSoon(sequence); }

uint64_t Journal::last_sequence() const {
  const MutexLock lock(impl_->mu);
  return impl_->last_sequence;
}

Status Journal::status() const {
  const MutexLock lock(impl_->mu);
  return impl_->latched;
}

Status Journal::Checkpoint() { return impl_->Checkpoint(); }

uint64_t Journal::WantCheckpoint() { return impl_->WantCheckpoint(); }

bool Journal::CheckpointPending(uint64_t number) const {
  const MutexLock lock(impl_->mu);
  return impl_->latched.ok() && !impl_->stopping && impl_->checkpoints_ended < number;
}

Status Journal::RestoreCopies() { return impl_->RestoreCopies(); }

uint32_t Journal::copies_wanted() const { return impl_->copies_wanted; }

std::vector<std::vector<ZoneId>> Journal::Copies() const {
  const MutexLock lock(impl_->mu);
  std::vector<std::vector<ZoneId>> zones;
  for (const auto& copy : impl_->copies) zones.push_back(copy->zones());
  return zones;
}

Status Journal::Close() {
  Status status = Sync(last_sequence());
  impl_->StopThread();
  return status;
}

JournalStats Journal::Stats() const {
  const MutexLock lock(impl_->mu);
  JournalStats stats = impl_->stats;
  for (const auto& copy : impl_->copies) stats.bytes += copy->bytes_written();
  return stats;
}

}  // namespace isozone
