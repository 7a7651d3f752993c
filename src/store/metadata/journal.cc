// Rolling: one background thread writes new copies from snapshots, while callers of Sync go on committing to the others
// (journal_copies.h). A new copy gets every record that is appended since its snapshot (JournalCopies::rolling). Before
// it takes the place of an old copy, the thread itself leads for a moment: it writes to the new copy what has been
// called durable, and switches.
//
// Lock order: the namespace mutex, then that of the copies, then the pool's.

#include "store/metadata/journal.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <thread>
#include <utility>

#include "base/latch.h"
#include "base/log.h"
#include "base/thread.h"
#include "store/metadata/journal_copies.h"
#include "store/metadata/metadata_codec.h"
#include "store/metadata/metadata_io.h"
#include "store/metadata/metadata_log.h"
#include "store/metadata/metadata_reserve.h"
#include "store/metadata/recovery.h"

namespace isozone {
namespace {

// The number of inodes that are copied at a time under the namespace mutex.
constexpr size_t kInodesPerCopy = 256;

// A new copy is given up after writes to this many zones in a row have failed.
constexpr int kAttemptsMax = 8;

// After a new copy could not be written, the next attempt that nobody asks for waits until this many more bytes were
// journalled.
constexpr uint64_t kRetryAfter = kMiB;

// Stands for the generation of a copy where there is one copy less than there should be.
constexpr uint64_t kMissing = 0;

}  // namespace

class Journal::Impl {
 public:
  Impl(ZonedDevice& d, ZonePool& p, Mutex& m, MetadataState& s, const RecoveredMetadata& recovered, const Options& o);
  ~Impl() { StopThread(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status Resume(const RecoveredMetadata& recovered, uint64_t state_bytes) ISOZONE_EXCLUDES(copies.mu);
  Status Start() {
    ISOZONE_ASSIGN_OR_RETURN(thread_, StartThread("the journal", [this] { Run(); }));
    return Status::Ok();
  }
  void StopThread() ISOZONE_EXCLUDES(copies.mu);

  Status Apply(std::span<const MetadataOp> ops) ISOZONE_EXCLUDES(copies.mu) ISOZONE_REQUIRES(namespace_mutex);
  uint64_t Append(std::span<const MetadataOp> ops) ISOZONE_EXCLUDES(copies.mu) ISOZONE_REQUIRES(namespace_mutex);
  Status AdmitMore() ISOZONE_EXCLUDES(copies.mu) ISOZONE_REQUIRES(namespace_mutex);
  Status Sync(uint64_t sequence) ISOZONE_EXCLUDES(copies.mu);
  void SyncSoon(uint64_t sequence) ISOZONE_EXCLUDES(copies.mu);
  Status Checkpoint() ISOZONE_EXCLUDES(copies.mu);
  uint64_t WantCheckpoint() ISOZONE_EXCLUDES(copies.mu);
  bool CheckpointPending(uint64_t number) const ISOZONE_EXCLUDES(copies.mu);
  Status RestoreCopies() ISOZONE_EXCLUDES(copies.mu);

  // Journal answers questions from these.
  Mutex& namespace_mutex;
  JournalCopies copies;
  std::atomic<bool> has_room{true};  // as of the last record

 private:
  bool WantsSync() const ISOZONE_REQUIRES(copies.mu) {
    return copies.latched.ok() && wanted_sequence_ > copies.durable_sequence;
  }
  // Calls JournalCopies::Commit, and wakes the thread if a copy is to be written anew.
  Status Commit() ISOZONE_REQUIRES(copies.mu);
  // Returns once a copy was written anew, or could not be.
  Status AwaitRoll() ISOZONE_REQUIRES(copies.mu);

  // --- The thread ---
  void Run() ISOZONE_EXCLUDES(copies.mu);
  void SyncInThread() ISOZONE_REQUIRES(copies.mu);
  // The copy that should be written anew next, or kMissing.
  std::optional<uint64_t> NextRoll() const ISOZONE_REQUIRES(copies.mu);
  bool WantsRoll(const MetadataLog& copy) const ISOZONE_REQUIRES(copies.mu);
  void Roll(uint64_t old) ISOZONE_REQUIRES(copies.mu);
  void NoteRollFailed(uint64_t old, const Status& status) ISOZONE_REQUIRES(copies.mu);
  // Writes a new copy, and lets it take the place of the copy `old`. With `lead`, nobody else commits meanwhile. kBusy:
  // the new copy has no room for what was committed meanwhile, so that another attempt has to lead.
  Status TryRoll(uint64_t old, bool lead) ISOZONE_REQUIRES(copies.mu);
  Status CopySnapshot(MetadataLog& log, const DeviceRecords& device, CheckpointFooter footer, uint32_t zones,
                      std::vector<ZoneId> apart_from) ISOZONE_EXCLUDES(copies.mu);
  Status CatchUp(MetadataLog& log, uint64_t old) ISOZONE_REQUIRES(copies.mu);
  Status WriteBatch(MetadataLog& log, uint32_t copies_written) ISOZONE_REQUIRES(copies.mu);

  ZonedDevice& device_;
  MetadataState& state_ ISOZONE_GUARDED_BY(namespace_mutex);
  const Options options_;
  const Superblock superblock_;  // what the superblock of a new copy has in common with the others

  MetadataReserve reserve_ ISOZONE_GUARDED_BY(copies.mu);
  uint64_t state_bytes_ ISOZONE_GUARDED_BY(copies.mu) = 0;  // of a checkpoint, as of the last record
  bool stopping_ ISOZONE_GUARDED_BY(copies.mu) = false;
  uint64_t generation_ ISOZONE_GUARDED_BY(copies.mu);           // the highest that any copy has had
  uint64_t wanted_sequence_ ISOZONE_GUARDED_BY(copies.mu) = 0;  // to be durable soon

  uint64_t rolls_ended_ ISOZONE_GUARDED_BY(copies.mu) = 0;
  Status roll_failure_ ISOZONE_GUARDED_BY(copies.mu);    // of the last roll; it is repeated on request or at retry_at_
  uint64_t retry_at_ ISOZONE_GUARDED_BY(copies.mu) = 0;  // compared with copies.journalled, in bytes
  uint64_t checkpoints_wanted_ ISOZONE_GUARDED_BY(copies.mu) = 0;
  uint64_t checkpoints_ended_ ISOZONE_GUARDED_BY(copies.mu) = 0;
  uint64_t new_enough_ ISOZONE_GUARDED_BY(copies.mu) = 0;   // copies from this generation on need not be written anew
  Status checkpoint_status_ ISOZONE_GUARDED_BY(copies.mu);  // of the checkpoints that have ended

  std::thread thread_;  // touched by Open, Close and the destructor only
};

Journal::Impl::Impl(ZonedDevice& d, ZonePool& p, Mutex& m, MetadataState& s, const RecoveredMetadata& recovered,
                    const Options& o)
    : namespace_mutex(m),
      copies(p, recovered.position->copies.front().superblock.copies, recovered.sequence, o.kept),
      device_(d),
      state_(s),
      options_(o),
      superblock_(recovered.position->copies.front().superblock),
      reserve_(d.geometry(), p, superblock_.copies, s.encoded_size()),
      generation_(recovered.position->generation) {}

Status Journal::Impl::Resume(const RecoveredMetadata& recovered, uint64_t state_bytes) {
  // Everything that is written from here on builds upon what was found. A process that was killed may have left it
  // where a power cut could still take it.
  ISOZONE_RETURN_IF_ERROR(FlushDevice(device_));
  const MutexLock lock(copies.mu);
  ISOZONE_RETURN_IF_ERROR(copies.Resume(device_, recovered.position->copies));
  state_bytes_ = state_bytes;
  reserve_.Renew(state_bytes);
  has_room.store(reserve_.has_whole(state_bytes), std::memory_order_relaxed);
  for (const MetadataCopy& copy : recovered.copies) {
    if (copy.state == MetadataCopy::State::kDamaged) Log().error("{}", copy.text);
  }
  if (copies.all.size() < copies.wanted) {
    Log().error("{} of {} copies of the metadata are left; the others are written anew", copies.all.size(),
                copies.wanted);
  }
  return {};
}

Status Journal::Impl::Apply(std::span<const MetadataOp> ops) {
  const MetadataRest rest = RestLeftBy(state_, ops);
  return state_.Apply(ops, [this, rest](uint64_t bytes) {
    const MutexLock lock(copies.mu);
    return reserve_.Admit(bytes, rest);
  });
}

uint64_t Journal::Impl::Append(std::span<const MetadataOp> ops) {
  const MutexLock lock(copies.mu);
  const uint64_t sequence = copies.Append(ops);
  if (copies.kept != nullptr && copies.kept->wants_records_durable()) {
    wanted_sequence_ = sequence;
    copies.work.Signal();
  }
  state_bytes_ = state_.encoded_size();
  reserve_.Shrink(state_bytes_);
  has_room.store(reserve_.has_whole(state_bytes_), std::memory_order_relaxed);
  return sequence;
}

Status Journal::Impl::AdmitMore() {
  const MutexLock lock(copies.mu);
  const Status admitted = reserve_.Admit(state_.encoded_size(), MetadataRest::kWhole);
  has_room.store(admitted.ok(), std::memory_order_relaxed);
  return admitted;
}

Status Journal::Impl::Sync(uint64_t sequence) {
  const MutexLock lock(copies.mu);
  assert(sequence <= copies.last_sequence);
  while (copies.durable_sequence < sequence) {
    if (!copies.latched.ok()) return copies.latched;
    if (copies.committing) {
      copies.changed.Wait(copies.mu);
    } else {
      ISOZONE_RETURN_IF_ERROR(copies.CanCommit() ? Commit() : AwaitRoll());
    }
  }
  return {};
}

void Journal::Impl::SyncSoon(uint64_t sequence) {
  const MutexLock lock(copies.mu);
  wanted_sequence_ = std::max(wanted_sequence_, sequence);
  if (WantsSync()) copies.work.Signal();
}

Status Journal::Impl::Commit() {
  Status status = copies.Commit();
  if (NextRoll()) copies.work.Signal();
  return status;
}

Status Journal::Impl::AwaitRoll() {
  const uint64_t ended = rolls_ended_;
  roll_failure_ = Status::Ok();  // there may be empty zones by now
  while (rolls_ended_ == ended && !copies.CanCommit()) {
    if (!copies.latched.ok()) return copies.latched;
    if (stopping_) return Status::Aborted("the file system is being unmounted");
    copies.work.Signal();
    copies.changed.Wait(copies.mu);
  }
  return rolls_ended_ == ended ? Status::Ok() : roll_failure_;
}

Status Journal::Impl::Checkpoint() {
  const MutexLock lock(copies.mu);
  new_enough_ = generation_ + 1;
  const uint64_t mine = ++checkpoints_wanted_;
  roll_failure_ = Status::Ok();
  copies.work.Signal();
  while (checkpoints_ended_ < mine) {
    if (!copies.latched.ok()) return copies.latched;
    copies.changed.Wait(copies.mu);
  }
  return checkpoint_status_;
}

uint64_t Journal::Impl::WantCheckpoint() {
  const MutexLock lock(copies.mu);
  const bool gives_back = std::any_of(copies.all.begin(), copies.all.end(),
                                      [this](const JournalCopies::Log& copy) ISOZONE_REQUIRES(copies.mu) {
                                        return copy->zones().size() > reserve_.zones();
                                      });
  if (!gives_back) return checkpoints_ended_;
  new_enough_ = generation_ + 1;
  roll_failure_ = Status::Ok();
  copies.work.Signal();
  return ++checkpoints_wanted_;
}

bool Journal::Impl::CheckpointPending(uint64_t number) const {
  const MutexLock lock(copies.mu);
  return copies.latched.ok() && !stopping_ && checkpoints_ended_ < number;
}

Status Journal::Impl::RestoreCopies() {
  const MutexLock lock(copies.mu);
  roll_failure_ = Status::Ok();
  for (;;) {
    if (!copies.latched.ok()) return copies.latched;
    if (!roll_failure_.ok()) return roll_failure_;
    if (copies.all.size() == copies.wanted && !NextRoll()) return {};
    copies.work.Signal();
    copies.changed.Wait(copies.mu);
  }
}

void Journal::Impl::StopThread() {
  {
    const MutexLock lock(copies.mu);
    stopping_ = true;
    copies.work.Signal();
    copies.changed.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

// --- The thread ---

void Journal::Impl::Run() {
  const MutexLock lock(copies.mu);
  while (!stopping_) {
    if (const auto next = NextRoll()) {
      Roll(*next);
    } else if (WantsSync()) {
      SyncInThread();
    } else {
      copies.work.Wait(copies.mu);
    }
  }
}

void Journal::Impl::SyncInThread() {
  if (copies.committing) {
    copies.changed.Wait(copies.mu);
  } else if (!copies.CanCommit() || !Commit().ok()) {
    wanted_sequence_ = 0;
  }
}

std::optional<uint64_t> Journal::Impl::NextRoll() const {
  if (!copies.latched.ok() || (!roll_failure_.ok() && copies.journalled < retry_at_)) return std::nullopt;
  // Copies without room come first, since callers of Sync wait for them.
  for (const JournalCopies::Log& copy : copies.all) {
    if (copy->room() == 0) return copy->generation();
  }
  if (copies.all.size() < copies.wanted) return kMissing;
  for (const JournalCopies::Log& copy : copies.all) {
    if (WantsRoll(*copy)) return copy->generation();
  }
  return std::nullopt;
}

bool Journal::Impl::WantsRoll(const MetadataLog& copy) const {
  if (checkpoints_wanted_ > checkpoints_ended_ && copy.generation() < new_enough_) return true;
  const uint64_t journal = copy.journal_bytes();
  return journal > std::max(options_.checkpoint_after, state_bytes_) || journal > copy.room();
}

void Journal::Impl::Roll(uint64_t old) {
  const uint64_t serves = checkpoints_wanted_;
  bool lead = false;
  Status status;
  for (int attempt = 0; attempt < kAttemptsMax && !stopping_; ++attempt) {
    status = TryRoll(old, lead);
    lead = status.Is(StatusCode::kBusy);
    // The next attempt gets another zone, since a zone is not written again after a failed write.
    if (!lead && !status.Is(StatusCode::kIoError)) break;
  }
  if (stopping_ && status.ok()) status = Status::Aborted("the file system is being unmounted");
  roll_failure_ = status;
  retry_at_ = copies.journalled + kRetryAfter;
  if (status.ok()) {
    ++copies.stats.checkpoints;
  } else {
    NoteRollFailed(old, status);
  }
  const bool all_new = std::all_of(copies.all.begin(), copies.all.end(),
                                   [this](const JournalCopies::Log& copy)
                                       ISOZONE_REQUIRES(copies.mu) { return copy->generation() >= new_enough_; });
  if (!status.ok() || (all_new && copies.all.size() == copies.wanted)) {
    checkpoints_ended_ = std::max(checkpoints_ended_, serves);
    checkpoint_status_ = std::move(status);
  }
  ++rolls_ended_;
  copies.changed.SignalAll();
}

void Journal::Impl::NoteRollFailed(uint64_t old, const Status& status) {
  if (stopping_ || !copies.latched.ok() || status.Is(StatusCode::kAborted)) return;
  Log().warn("no new copy of the metadata could be written: {}", status.ToString());
  MetadataLog* copy = copies.Find(old);
  if (copy == nullptr || copy->room() > 0) return;
  // Nothing can be acknowledged as long as this copy waits for room. Its own zones are as many as a new copy needs.
  if (copies.all.size() > 1) {
    copies.Lead();
    copy = copies.Find(old);
    if (copy != nullptr && copies.all.size() > 1) {
      copies.announced = false;
      copies.GiveUp(copy, status);
    }
    copies.EndLead();
    roll_failure_ = Status::Ok();
  } else if (status.Is(StatusCode::kIoError)) {
    (void)copies.Latch(status);
  }
}

Status Journal::Impl::TryRoll(uint64_t old, bool lead) {
  if (lead) copies.Lead();
  Superblock begun = superblock_;
  begun.generation = ++generation_;
  std::unique_ptr<MetadataLog> log;
  CheckpointFooter footer;
  DeviceRecords device;
  uint32_t zones = 0;
  std::vector<ZoneId> apart_from = copies.ZonesBut(old);
  Status status;
  {
    const MutexUnlock unlock(copies.mu);
    {
      const MutexLock namespace_lock(namespace_mutex);
      const MutexLock lock(copies.mu);
      begun.sequence = footer.sequence = copies.last_sequence;
      footer.next_id = state_.NextId();
      zones = reserve_.ZonesOfNext(state_.encoded_size());
      device = state_.device();
      state_.BeginSnapshot();
      log = std::make_unique<MetadataLog>(device_, copies.pool, begun);
      copies.rolling = log.get();
    }
    status = CopySnapshot(*log, device, footer, zones, std::move(apart_from));
    const MutexLock namespace_lock(namespace_mutex);
    state_.EndSnapshot();
  }
  if (!lead) copies.Lead();
  if (status.ok()) status = CatchUp(*log, old);
  copies.rolling = nullptr;
  if (status.ok()) {
    copies.Replace(old, std::move(log));
  } else {
    copies.Release(std::move(log));
  }
  copies.EndLead();
  return status;
}

Status Journal::Impl::CopySnapshot(MetadataLog& log, const DeviceRecords& device, CheckpointFooter footer,
                                   uint32_t zones, std::vector<ZoneId> apart_from) {
  ISOZONE_RETURN_IF_ERROR(log.Begin(zones, std::move(apart_from)));
  if (device.groups != nullptr) {
    ISOZONE_RETURN_IF_ERROR(log.Add([&](std::vector<std::byte>& out) { EncodeSetZoneGroups(*device.groups, out); }));
  }
  if (!device.heats.empty()) {
    ISOZONE_RETURN_IF_ERROR(log.Add([&](std::vector<std::byte>& out) { EncodeSetZoneHeats(device.heats, out); }));
  }
  if (device.mount_number != 0) {
    const BeginMount mount{device.mount_number};
    ISOZONE_RETURN_IF_ERROR(log.Add([&](std::vector<std::byte>& out) { EncodeBeginMount(mount, out); }));
  }
  for (;;) {
    std::vector<Inode> inodes;
    {
      const MutexLock namespace_lock(namespace_mutex);
      inodes = state_.NextOfSnapshot(kInodesPerCopy);
    }
    if (inodes.empty()) return log.Finish(footer);
    for (const Inode& inode : inodes) {
      ISOZONE_RETURN_IF_ERROR(log.Add([&](std::vector<std::byte>& out) { EncodePutInode(inode, out); }));
    }
    footer.inodes += inodes.size();
    const MutexLock lock(copies.mu);
    if (stopping_) return Status::Aborted("the file system is being unmounted");
    if (!copies.latched.ok()) return copies.latched;
  }
}

// Writes to the new copy what is called durable already, and that it joins the others. Only then does the copy count,
// so that nothing is lost with the copy that it replaces.
Status Journal::Impl::CatchUp(MetadataLog& log, uint64_t old) {
  while (log.durable_sequence() < copies.durable_sequence) {
    ISOZONE_RETURN_IF_ERROR(WriteBatch(log, /*copies_written=*/0));
  }
  const size_t others = copies.all.size() - (copies.Find(old) != nullptr ? 1 : 0);
  const Status joined = WriteBatch(log, static_cast<uint32_t>(others + 1));
  if (joined.Is(StatusCode::kIoError)) {
    const MutexUnlock unlock(copies.mu);
    log.Erase();  // the device may have written that it joins
  }
  return joined;
}

Status Journal::Impl::WriteBatch(MetadataLog& log, uint32_t copies_written) {
  if (!copies.latched.ok()) return copies.latched;
  if (log.room() == 0) return Status::Busy("the new copy has no room for what came while it was written");
  log.Build(copies_written);
  {
    const MutexUnlock unlock(copies.mu);
    Latch written;
    ISOZONE_RETURN_IF_ERROR(log.Start(written));
  }
  return log.End();
}

// --- Journal ---

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Journal>> Journal::Open(ZonedDevice& device, ZonePool& pool, Mutex& namespace_mutex,
                                               MetadataState& state, const RecoveredMetadata& recovered,
                                               const Options& options) {
  auto impl = std::make_unique<Impl>(device, pool, namespace_mutex, state, recovered, options);
  ISOZONE_RETURN_IF_ERROR(impl->Resume(recovered, state.encoded_size()));
  ISOZONE_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Journal>(new Journal(std::move(impl)));
}

Journal::~Journal() = default;

Result<uint64_t> Journal::Commit(std::span<const MetadataOp> ops) {
  impl_->namespace_mutex.AssertHeld();
  ISOZONE_RETURN_IF_ERROR(impl_->Apply(ops));
  return impl_->Append(ops);
}

uint64_t Journal::Append(std::span<const MetadataOp> ops) {
  impl_->namespace_mutex.AssertHeld();
  return impl_->Append(ops);
}

Status Journal::AdmitMore() {
  impl_->namespace_mutex.AssertHeld();
  return impl_->AdmitMore();
}

bool Journal::has_room() const { return impl_->has_room.load(std::memory_order_relaxed); }

Status Journal::Sync(uint64_t sequence) { return impl_->Sync(sequence); }

void Journal::SyncSoon(uint64_t sequence) { impl_->SyncSoon(sequence); }

Status Journal::Keep(uint64_t sequence) {
  const KeptMemory* const kept = impl_->copies.kept;
  return kept == nullptr || kept->kept_sequence() >= sequence ? Status::Ok() : impl_->Sync(sequence);
}

uint64_t Journal::last_sequence() const {
  const MutexLock lock(impl_->copies.mu);
  return impl_->copies.last_sequence;
}

Status Journal::status() const {
  const MutexLock lock(impl_->copies.mu);
  return impl_->copies.latched;
}

Status Journal::Checkpoint() { return impl_->Checkpoint(); }

uint64_t Journal::WantCheckpoint() { return impl_->WantCheckpoint(); }

bool Journal::CheckpointPending(uint64_t number) const { return impl_->CheckpointPending(number); }

Status Journal::RestoreCopies() { return impl_->RestoreCopies(); }

uint32_t Journal::copies_wanted() const { return impl_->copies.wanted; }

std::vector<std::vector<ZoneId>> Journal::Copies() const {
  const MutexLock lock(impl_->copies.mu);
  std::vector<std::vector<ZoneId>> zones;
  for (const auto& copy : impl_->copies.all) zones.push_back(copy->zones());
  return zones;
}

Status Journal::Close() {
  Status status = Sync(last_sequence());
  impl_->StopThread();
  return status;
}

JournalStats Journal::Stats() const {
  const MutexLock lock(impl_->copies.mu);
  JournalStats stats = impl_->copies.stats;
  for (const auto& copy : impl_->copies.all) stats.bytes += copy->bytes_written();
  return stats;
}

}  // namespace isozone
