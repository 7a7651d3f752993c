// Who does what: callers of Sync write batches, one at a time (the leader; the others wait and find themselves served).
// One background thread does the rest: it takes the next journal zone, writes checkpoints, and writes every superblock.
// No lock is held across device I/O; `committing` says that a leader is at it, and holds its zone.
//
// Lock order: the namespace mutex, then mu.

#include "fs/journal.h"

#include <algorithm>
#include <cassert>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "fs/batch_stream.h"
#include "fs/checkpoint.h"
#include "fs/metadata_codec.h"
#include "fs/metadata_io.h"
#include "fs/recovery.h"
#include "fs/superblock.h"

namespace isozone {
namespace {

// So many inodes are copied at a time under the namespace mutex.
constexpr size_t kInodesPerCopy = 256;

// A journal in more pieces than these asks for a checkpoint.
constexpr size_t kSegmentsMany = 16;

// Where the next batch of the journal goes.
struct JournalPosition {
  size_t segment = 0;   // index in superblock.journal.segments
  uint64_t offset = 0;  // bytes in its zone
  StreamCounters counters;
};

bool Names(const Superblock& superblock, ZoneId zone) {
  const auto is_in = [zone](const Segment& segment) { return segment.zone == zone; };
  return std::any_of(superblock.checkpoint.segments.begin(), superblock.checkpoint.segments.end(), is_in) ||
         std::any_of(superblock.journal.segments.begin(), superblock.journal.segments.end(), is_in);
}

Status LeavesTheLastZones() { return Status::NoSpace("the journal leaves the last empty zones to checkpoints"); }

// The zones that `before` names and `after` does not.
std::vector<ZoneId> ZonesDropped(const Superblock& before, const Superblock& after) {
  std::vector<ZoneId> dropped;
  for (const StreamPlace* place : {&before.checkpoint, &before.journal}) {
    for (const Segment& segment : place->segments) {
      const bool known = std::find(dropped.begin(), dropped.end(), segment.zone) != dropped.end();
      if (!known && !Names(after, segment.zone)) dropped.push_back(segment.zone);
    }
  }
  return dropped;
}

}  // namespace

struct Journal::Impl {
  Impl(ZonedDevice& d, ZonePool& p, Mutex& m, MetadataState& s, const RecoveredMetadata& recovered, const Options& o);
  ~Impl();

  // --- Opening ---
  Status Resume(const RecoveredMetadata& recovered) ISOZONE_EXCLUDES(mu);
  Status ResumeJournal(const StreamReader::End& end, Superblock& next, bool& changed_segments) ISOZONE_REQUIRES(mu);
  Status ResumeNextZone(Superblock& next, bool& changed_segments) ISOZONE_REQUIRES(mu);
  Status ResumeCheckpoint() ISOZONE_REQUIRES(mu);

  // --- Any thread ---
  uint64_t Append(std::span<const MetadataOp> ops) ISOZONE_EXCLUDES(mu);
  Status Sync(uint64_t sequence) ISOZONE_EXCLUDES(mu);
  void SyncSoon(uint64_t sequence) ISOZONE_EXCLUDES(mu);
  Status Checkpoint() ISOZONE_EXCLUDES(mu);
  void StopThread() ISOZONE_EXCLUDES(mu);

  // A batch can be written; nobody is committing.
  bool HasRoom() const ISOZONE_REQUIRES(mu);
  // A batch can be written, or is.
  bool GoesOn() const ISOZONE_REQUIRES(mu);
  // Writes one batch, of all that waits or as much as fits, as the leader. HasRoom, and nobody else is committing.
  Status CommitBatch() ISOZONE_REQUIRES(mu);
  // Returns once there is room, or a checkpoint stands for what the journal has no room for.
  Status AwaitRoom() ISOZONE_REQUIRES(mu);
  Status AwaitCheckpoint() ISOZONE_REQUIRES(mu);
  // Nothing can be written any more; returns what callers are told.
  Status Latch(const Status& cause) ISOZONE_REQUIRES(mu);

  // --- The thread ---
  void Run() ISOZONE_EXCLUDES(mu);
  // What is done about a zone for the journal to go on in.
  void GetNextZone() ISOZONE_REQUIRES(mu);
  bool WantsNextZone() const ISOZONE_REQUIRES(mu);
  // The journal's one zone is full, and nothing in it counts any more.
  bool IsVoid() const ISOZONE_REQUIRES(mu);
  bool IsShortOfZones() const ISOZONE_REQUIRES(mu);
  // No checkpoint that begins now is larger, in bytes: a record adds no more to the state than it takes itself.
  uint64_t CheckpointMax() const ISOZONE_REQUIRES(mu);
  uint64_t BytesOfCheckpoint() const ISOZONE_REQUIRES(mu);  // of the one that counts
  uint64_t ZonesFor(uint64_t bytes) const;
  bool WantsSync() const ISOZONE_REQUIRES(mu);
  bool WantsCheckpoint() const ISOZONE_REQUIRES(mu);
  void PrepareNextZone() ISOZONE_REQUIRES(mu);
  // Another takes the place of a journal that IsVoid.
  void ReplaceZone() ISOZONE_REQUIRES(mu);
  Result<ZoneLease> AcquireZone() ISOZONE_REQUIRES(mu);
  void RunCheckpoint() ISOZONE_REQUIRES(mu);
  Status WriteCheckpoint() ISOZONE_EXCLUDES(mu);
  // Makes a checkpoint of the snapshot, durable, that no superblock names yet.
  Result<StreamPlace> CopySnapshot(const ZoneGroups* groups, CheckpointFooter footer, uint64_t room_wanted)
      ISOZONE_EXCLUDES(mu);
  Status SwitchCheckpoint(const StreamPlace& checkpoint, const JournalPosition& begin) ISOZONE_REQUIRES(mu);
  // kNoSpace where that takes a zone that the journal should not, or cannot, have now.
  Status SyncInThread(uint64_t sequence) ISOZONE_REQUIRES(mu);
  // The journal goes on behind `sequence`, up to which a checkpoint stands for it, though it has no room to get there.
  void SkipTo(uint64_t sequence) ISOZONE_REQUIRES(mu);
  // Latches where it fails.
  Status WriteSuperblock(Superblock next) ISOZONE_REQUIRES(mu);

  ZonedDevice& device;
  ZonePool& pool;
  Mutex& namespace_mutex;
  MetadataState& state ISOZONE_GUARDED_BY(namespace_mutex);
  const Options options;

  mutable Mutex mu;
  CondVar changed;  // for callers: a commit, a zone, a checkpoint, or an error
  CondVar work;     // for the thread
  Status latched ISOZONE_GUARDED_BY(mu);
  bool stopping ISOZONE_GUARDED_BY(mu) = false;

  RecordQueue pending ISOZONE_GUARDED_BY(mu);
  uint64_t last_sequence ISOZONE_GUARDED_BY(mu);
  uint64_t durable_sequence ISOZONE_GUARDED_BY(mu);
  uint64_t wanted_sequence ISOZONE_GUARDED_BY(mu) = 0;  // to be durable soon
  bool committing ISOZONE_GUARDED_BY(mu) = false;
  BatchBuilder builder ISOZONE_GUARDED_BY(mu);
  JournalPosition position ISOZONE_GUARDED_BY(mu);
  ZoneLease zone ISOZONE_GUARDED_BY(mu);                // of `position`; the leader takes it along
  ZoneLease next_zone ISOZONE_GUARDED_BY(mu);           // named by the superblock behind it
  Status next_zone_failure ISOZONE_GUARDED_BY(mu);      // why there is none; the thread waits for somebody to ask again
  Superblock superblock ISOZONE_GUARDED_BY(mu);         // as it is on the device
  uint64_t tried_base ISOZONE_GUARDED_BY(mu) = 0;       // journal_bytes when a checkpoint was last begun
  uint64_t checkpoint_base ISOZONE_GUARDED_BY(mu) = 0;  // and when that began which counts
  bool in_checkpoint ISOZONE_GUARDED_BY(mu) = false;    // one is being written
  uint64_t journal_bytes ISOZONE_GUARDED_BY(mu) = 0;    // behind the checkpoint that was found, plus all written since
  uint64_t checkpoints_wanted ISOZONE_GUARDED_BY(mu) = 0;
  uint64_t checkpoints_ended ISOZONE_GUARDED_BY(mu) = 0;
  Status checkpoint_status ISOZONE_GUARDED_BY(mu);  // of the last one
  JournalStats stats ISOZONE_GUARDED_BY(mu);

  // Used by Resume, then by the thread only.
  SuperblockWriter superblock_writer;
  CheckpointWriter checkpoint_writer;

  std::thread thread;  // touched by Open, Close and the destructor only
};

Journal::Impl::Impl(ZonedDevice& d, ZonePool& p, Mutex& m, MetadataState& s, const RecoveredMetadata& recovered,
                    const Options& o)
    : device(d),
      pool(p),
      namespace_mutex(m),
      state(s),
      options(o),
      last_sequence(recovered.sequence),
      durable_sequence(recovered.sequence),
      builder(StreamKind::kJournal, ChecksumSeed(recovered.position->superblock.superblock.uuid), d.geometry()),
      superblock(recovered.position->superblock.superblock),
      journal_bytes(recovered.position->journal.bytes),
      superblock_writer(d, recovered.position->superblock.zone, recovered.position->superblock.next_offset),
      checkpoint_writer(d, p, ChecksumSeed(superblock.uuid), recovered.position->next_checkpoint_batch) {}

Journal::Impl::~Impl() { StopThread(); }

// --- Opening ---

Status Journal::Impl::Resume(const RecoveredMetadata& recovered) {
  // What was found is what all that is written from here on builds upon. A process that was killed may have left it
  // where a power cut could still take it.
  ISOZONE_RETURN_IF_ERROR(FlushDevice(device));
  const RecoveredMetadata::Position& found = *recovered.position;
  const MutexLock lock(mu);
  Superblock next = superblock;
  bool changed_segments = false;
  ISOZONE_RETURN_IF_ERROR(ResumeJournal(found.journal, next, changed_segments));
  ISOZONE_RETURN_IF_ERROR(ResumeNextZone(next, changed_segments));
  ISOZONE_RETURN_IF_ERROR(ResumeCheckpoint());
  return changed_segments ? WriteSuperblock(std::move(next)) : Status::Ok();
}

Status Journal::Impl::ResumeJournal(const StreamReader::End& end, Superblock& next, bool& changed_segments) {
  std::vector<Segment>& segments = next.journal.segments;
  position = {end.segment, end.offset, end.counters};
  Segment& last = segments[end.segment];
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor found, DescribeZone(device, last.zone));
  const bool has_room = IsWritable(found.state) && found.write_pointer < found.capacity;
  if (has_room) {
    ISOZONE_ASSIGN_OR_RETURN(zone, pool.ReopenMetadata(last.zone));
  }
  const bool full = end.offset == found.capacity;
  if (last.open() && !end.torn && (has_room || full)) return {};

  // What lies behind the end is never read again. Crash after crash this makes the list longer; a checkpoint cuts it.
  changed_segments = true;
  if (segments.size() > kSegmentsMany) ++checkpoints_wanted;
  last.end = end.offset;
  if (!has_room) return {};
  position.offset = found.write_pointer;
  const Segment behind{found.zone, found.write_pointer, Segment::kOpen};
  if (last.begin == last.end) {
    last = behind;
  } else {
    ++position.segment;
    segments.insert(segments.begin() + static_cast<ptrdiff_t>(position.segment), behind);
  }
  return {};
}

Status Journal::Impl::ResumeNextZone(Superblock& next, bool& changed_segments) {
  std::vector<Segment>& segments = next.journal.segments;
  if (position.segment + 1 == segments.size()) return {};
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor found, DescribeZone(device, segments.back().zone));
  if (IsWritable(found.state)) {
    ISOZONE_ASSIGN_OR_RETURN(next_zone, pool.ReopenMetadata(found.zone));
  } else {
    segments.pop_back();
    changed_segments = true;
  }
  return {};
}

Status Journal::Impl::ResumeCheckpoint() {
  const ZoneId last = superblock.checkpoint.segments.back().zone;
  ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor found, DescribeZone(device, last));
  if (!IsWritable(found.state) || found.write_pointer == found.capacity) return {};
  ISOZONE_ASSIGN_OR_RETURN(ZoneLease lease, pool.ReopenMetadata(last));
  checkpoint_writer.Resume(std::move(lease));
  return {};
}

// --- Any thread ---

uint64_t Journal::Impl::Append(std::span<const MetadataOp> ops) {
  const MutexLock lock(mu);
  // Once latched, nothing is written any more.
  if (latched.ok()) pending.Add([&](std::vector<std::byte>& out) { EncodeRecord(ops, out); });
  ++stats.records;
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
      ISOZONE_RETURN_IF_ERROR(HasRoom() ? CommitBatch() : AwaitRoom());
    }
  }
  return {};
}

void Journal::Impl::SyncSoon(uint64_t sequence) {
  const MutexLock lock(mu);
  wanted_sequence = std::max(wanted_sequence, sequence);
  if (WantsSync()) work.Signal();
}

bool Journal::Impl::HasRoom() const { return next_zone.held() || (zone.held() && zone.room() > 0); }

bool Journal::Impl::GoesOn() const { return committing || HasRoom(); }

Status Journal::Impl::CommitBatch() {
  committing = true;
  if (!zone.held() || zone.room() == 0) {
    zone = std::move(next_zone);
    ++position.segment;
    position.offset = zone.write_pointer();
    work.Signal();
  }
  ZoneLease lease = std::move(zone);
  const BatchBuilder::Batch batch = builder.Build(pending, position.counters, lease.room());
  journal_bytes += batch.blocks.size();
  Status status;
  {
    const MutexUnlock unlock(mu);
    status = WriteDurably(device, lease, batch.blocks);
  }
  if (status.ok()) {
    position.offset = lease.write_pointer();
    position.counters = batch.next;
    durable_sequence = batch.next.sequence - (batch.cuts_record ? 2 : 1);
    stats.bytes += batch.blocks.size();
    ++stats.commits;
    if (WantsCheckpoint()) work.Signal();
  } else {
    status = Latch(status);
  }
  zone = std::move(lease);
  committing = false;
  if (!HasRoom()) {  // better now than when somebody waits for it
    next_zone_failure = Status::Ok();
    work.Signal();
  }
  changed.SignalAll();
  return status;
}

Status Journal::Impl::AwaitRoom() {
  const uint64_t durable = durable_sequence;
  next_zone_failure = Status::Ok();  // there may be one now
  while (!HasRoom() && durable_sequence == durable) {
    if (!latched.ok()) return latched;
    if (!next_zone_failure.ok()) return AwaitCheckpoint();
    work.Signal();
    changed.Wait(mu);
  }
  return {};
}

Status Journal::Impl::AwaitCheckpoint() {
  const uint64_t mine = ++checkpoints_wanted;
  work.Signal();
  while (checkpoints_ended < mine) {
    if (!latched.ok()) return latched;
    changed.Wait(mu);
  }
  return checkpoint_status;
}

Status Journal::Impl::Latch(const Status& cause) {
  if (latched.ok()) {
    latched = Status::ReadOnly(
        fmt::format("the file system is read-only since its metadata could not be written: {}; mount it again to "
                    "recover",
                    cause.message()));
    Log().error("{}", latched.message());
  }
  changed.SignalAll();
  work.Signal();
  return latched;
}

Status Journal::Impl::Checkpoint() {
  const MutexLock lock(mu);
  return AwaitCheckpoint();
}

void Journal::Impl::StopThread() {
  {
    const MutexLock lock(mu);
    stopping = true;
    work.Signal();
  }
  if (thread.joinable()) thread.join();
}

// --- The thread ---

void Journal::Impl::Run() {
  const MutexLock lock(mu);
  while (!stopping) {
    if (WantsNextZone()) {
      GetNextZone();
    } else if (WantsCheckpoint()) {
      RunCheckpoint();
    } else if (WantsSync()) {
      if (!SyncInThread(wanted_sequence).ok()) wanted_sequence = 0;
    } else {
      work.Wait(mu);
    }
  }
}

// The last empty zones are left to checkpoints. One gives back the zones before the one that the journal is in; once that
// one is full, too, the next is written instead of the records, and then the journal moves. So in the end it takes one
// checkpoint for each zone of the journal, and there is always room for that.
void Journal::Impl::GetNextZone() {
  if (IsVoid()) {
    ReplaceZone();
  } else if (!IsShortOfZones()) {
    PrepareNextZone();
  } else if (GoesOn() && superblock.journal.segments.size() == 1) {
    next_zone_failure = LeavesTheLastZones();
  } else {
    RunCheckpoint();
  }
}

bool Journal::Impl::WantsNextZone() const { return latched.ok() && !next_zone.held() && next_zone_failure.ok(); }

bool Journal::Impl::IsVoid() const {
  const std::vector<Segment>& segments = superblock.journal.segments;
  return segments.size() == 1 && segments.front().begin == position.offset && !GoesOn();
}

bool Journal::Impl::IsShortOfZones() const {
  const uint64_t checkpoints = in_checkpoint ? 2 : 1;  // this one, and the next
  return pool.ZonesForMetadata() <= checkpoints * ZonesFor(CheckpointMax());
}

uint64_t Journal::Impl::ZonesFor(uint64_t bytes) const {
  const uint64_t capacity = device.geometry().zone_capacity;
  return (bytes + capacity - 1) / capacity;
}

uint64_t Journal::Impl::BytesOfCheckpoint() const {
  uint64_t bytes = 0;
  for (const Segment& segment : superblock.checkpoint.segments) bytes += segment.end - segment.begin;
  return bytes;
}

uint64_t Journal::Impl::CheckpointMax() const {
  const uint64_t batches = pending.size() / builder.batch_max() + 1;
  const uint64_t coming = pending.size() + batches * device.geometry().block_size;
  return BytesOfCheckpoint() + (journal_bytes - checkpoint_base) + coming;
}

bool Journal::Impl::WantsSync() const { return latched.ok() && wanted_sequence > durable_sequence; }

bool Journal::Impl::WantsCheckpoint() const {
  return latched.ok() &&
         (checkpoints_wanted > checkpoints_ended || journal_bytes - tried_base > options.checkpoint_after);
}

Result<ZoneLease> Journal::Impl::AcquireZone() {
  Result<ZoneLease> lease = [&]() ISOZONE_REQUIRES(mu) {
    const MutexUnlock unlock(mu);
    return pool.AcquireMetadata(ZoneUse::kJournal);
  }();
  if (!lease.ok()) {
    next_zone_failure = lease.status();
    changed.SignalAll();
  }
  return lease;
}

// A superblock that could not be written may count all the same: the zone that it names is nobody else's.
void Journal::Impl::PrepareNextZone() {
  Result<ZoneLease> lease = AcquireZone();
  if (!lease.ok()) return;
  Superblock next = superblock;
  next.journal.segments.push_back({lease->zone(), lease->write_pointer(), Segment::kOpen});
  (void)WriteSuperblock(std::move(next));  // latches
  next_zone = std::move(lease).value();
  changed.SignalAll();
}

void Journal::Impl::ReplaceZone() {
  Result<ZoneLease> lease = AcquireZone();
  if (!lease.ok()) return;
  const ZoneId before = superblock.journal.segments.front().zone;
  Superblock next = superblock;
  next.journal.segments.front() = {lease->zone(), lease->write_pointer(), Segment::kOpen};
  const Status status = WriteSuperblock(std::move(next));  // latches
  position.offset = lease->write_pointer();
  zone = std::move(lease).value();
  changed.SignalAll();
  if (!status.ok()) return;
  const MutexUnlock unlock(mu);
  pool.ReleaseMetadata(before);
}

Status Journal::Impl::WriteSuperblock(Superblock next) {
  Status status;
  {
    const MutexUnlock unlock(mu);
    status = superblock_writer.Write(next);
  }
  if (!status.ok()) return Latch(status);
  superblock = std::move(next);
  stats.bytes += SuperblockSlot(device.geometry());
  return {};
}

void Journal::Impl::RunCheckpoint() {
  const uint64_t serves = checkpoints_wanted;
  Status status;
  in_checkpoint = true;
  {
    const MutexUnlock unlock(mu);
    status = WriteCheckpoint();
  }
  in_checkpoint = false;
  if (!status.ok() && !stopping) Log().warn("no checkpoint could be written: {}", status.ToString());
  if (!next_zone.held()) next_zone_failure = status;
  checkpoint_status = status;
  checkpoints_ended = serves;
  changed.SignalAll();
}

Status Journal::Impl::WriteCheckpoint() {
  CheckpointFooter footer;
  std::shared_ptr<const ZoneGroups> groups;
  JournalPosition begin;
  uint64_t room_wanted = 0;
  uint64_t base = 0;
  {
    const MutexLock namespace_lock(namespace_mutex);
    const MutexLock lock(mu);
    const bool may_fit = pool.ZonesForMetadata() >= ZonesFor(BytesOfCheckpoint());  // of its own, as the last one would
    if (IsShortOfZones() && may_fit) room_wanted = CheckpointMax();
    state.BeginSnapshot();
    groups = state.zone_groups();
    footer.sequence = last_sequence;
    footer.next_id = state.NextId();
    // Records up to footer.sequence may still be written from here on; recovery leaves them out.
    begin = position;
    base = tried_base = journal_bytes;
  }
  const uint64_t bytes_before = checkpoint_writer.bytes_written();
  const Result<StreamPlace> place = CopySnapshot(groups.get(), footer, room_wanted);
  {
    const MutexLock namespace_lock(namespace_mutex);
    state.EndSnapshot();
  }
  const MutexLock lock(mu);
  stats.bytes += checkpoint_writer.bytes_written() - bytes_before;
  if (checkpoint_writer.write_failed()) return Latch(place.status());
  Status status = place.ok() ? SyncInThread(footer.sequence) : place.status();
  const bool skips = place.ok() && status.Is(StatusCode::kNoSpace);
  if (skips) {
    SkipTo(footer.sequence);
    begin = position;
  } else if (!status.ok()) {
    checkpoint_writer.Abandon();
    return status;
  }
  ISOZONE_RETURN_IF_ERROR(SwitchCheckpoint(*place, begin));
  checkpoint_base = base;
  if (skips) durable_sequence = footer.sequence;
  return {};
}

Result<StreamPlace> Journal::Impl::CopySnapshot(const ZoneGroups* groups, CheckpointFooter footer,
                                                uint64_t room_wanted) {
  ISOZONE_RETURN_IF_ERROR(checkpoint_writer.Begin(room_wanted));
  if (groups != nullptr) ISOZONE_RETURN_IF_ERROR(checkpoint_writer.Add(*groups));
  for (;;) {
    std::vector<Inode> inodes;
    {
      const MutexLock namespace_lock(namespace_mutex);
      inodes = state.NextOfSnapshot(kInodesPerCopy);
    }
    if (inodes.empty()) return checkpoint_writer.Finish(footer);
    for (const Inode& inode : inodes) ISOZONE_RETURN_IF_ERROR(checkpoint_writer.Add(inode));
    footer.inodes += inodes.size();

    const MutexLock lock(mu);
    if (stopping) return Status::Aborted("the file system is being unmounted");
    if (WantsNextZone() && !IsShortOfZones()) PrepareNextZone();
    if (!latched.ok()) return latched;
  }
}

// The journal must reach the checkpoint before it counts, so that its sequence numbers have no gap behind it. Commits
// need zones that only this thread prepares: it must not wait for one itself.
Status Journal::Impl::SyncInThread(uint64_t sequence) {
  while (durable_sequence < sequence) {
    if (!latched.ok()) return latched;
    if (committing) {
      changed.Wait(mu);
    } else if (HasRoom()) {
      ISOZONE_RETURN_IF_ERROR(CommitBatch());
    } else if (IsShortOfZones()) {
      return LeavesTheLastZones();
    } else {
      PrepareNextZone();
      if (!next_zone.held()) return next_zone_failure;
    }
  }
  return {};
}

void Journal::Impl::SkipTo(uint64_t sequence) {
  pending.Drop(sequence + 1 - position.counters.sequence);
  position.counters.sequence = sequence + 1;
}

Status Journal::Impl::SwitchCheckpoint(const StreamPlace& checkpoint, const JournalPosition& begin) {
  const Superblock before = superblock;
  Superblock next = superblock;
  next.checkpoint = checkpoint;
  std::vector<Segment>& segments = next.journal.segments;
  segments.erase(segments.begin(), segments.begin() + static_cast<ptrdiff_t>(begin.segment));
  segments.front().begin = begin.offset;
  next.journal.batch = begin.counters.batch;
  next.journal.sequence = begin.counters.sequence;
  ISOZONE_RETURN_IF_ERROR(WriteSuperblock(std::move(next)));
  position.segment -= begin.segment;
  ++stats.checkpoints;
  const std::vector<ZoneId> dropped = ZonesDropped(before, superblock);
  const MutexUnlock unlock(mu);
  for (const ZoneId id : dropped) pool.ReleaseMetadata(id);
  return {};
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

uint64_t Journal::Append(std::span<const MetadataOp> ops) { return impl_->Append(ops); }

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

uint64_t Journal::WantCheckpoint() {
  const MutexLock lock(impl_->mu);
  impl_->work.Signal();
  return ++impl_->checkpoints_wanted;
}

bool Journal::CheckpointPending(uint64_t number) const {
  const MutexLock lock(impl_->mu);
  return impl_->latched.ok() && !impl_->stopping && impl_->checkpoints_ended < number;
}

Status Journal::Close() {
  Status status = Sync(last_sequence());
  impl_->StopThread();
  return status;
}

JournalStats Journal::Stats() const {
  const MutexLock lock(impl_->mu);
  return impl_->stats;
}

}  // namespace isozone
