// Journal is the metadata store: it keeps copies of the metadata on the device (docs/format.md has the layouts,
// format.h the structures).
//
//   copy         a chain of zones: superblock, checkpoint (the whole MetadataState as of one sequence number), and
//                behind it the journal, the records that came after (metadata_log.h writes one, metadata_reader.h reads
//                one)
//   copies       as many as were asked for when the device was formatted, two by default, in zones of different groups
//                where these are known. Each by itself is enough to mount.
//
// Appending: a record is queued for every copy. Sync writes one batch to each, side by side (FUA, all in flight at
// once), and returns when every copy has it; one such commit serves all callers that wait (group commit).
//
// Rolling: a new copy is written into other zones by a background thread, from a snapshot, while writers go on; it
// takes the records that are appended meanwhile, and then the place of the old copy, whose zones are given back. That
// is done, one copy after the other, when more journal lies behind a checkpoint than `checkpoint_after` and than a
// checkpoint has bytes, when the room behind it is half used, and when a copy has no room left: its records then wait,
// and the snapshot stands for them. So a mount reads at most twice what it must read in any case, or 32 MiB more; and
// for each byte of journal a few bytes of checkpoints are written, however large the metadata is: the room is half a
// checkpoint and more (MetadataRest). A copy that is damaged, missing or behind when the device is mounted is written
// anew in the same way.
//
// Zones: a copy has as many as its size asks for (CopyZones). So many for each copy and one more are reserved by the
// pool (`ZonePool::ReserveForMetadata`). Commit refuses a change for which these would not be enough, before anything
// is done, so that every copy can be written again at any time, however full the device is.
//
// Failures: a copy of which a write fails is given up, reported, and written anew elsewhere in the background. The
// others go on, and say so in their next batch, before anything is acknowledged. If the last one fails, that latches:
// every later Sync returns kReadOnly with the cause, or kNoSpace if there was no room behind the device. If merely no
// zone is left, Sync returns that error, and a later one tries again.
//
// Thread safety: Commit, AdmitMore and Append are serialised by the caller together with the MetadataState they belong
// to (the namespace lock); Sync and the rest from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "device/zoned_device.h"
#include "store/kept/kept_memory.h"
#include "store/metadata/metadata.h"
#include "store/space/zone_pool.h"

namespace isozone {

struct JournalStats {
  uint64_t commits = 0;  // writes of the journal, each to all copies
  uint64_t records = 0;
  uint64_t bytes = 0;        // written, of all copies
  uint64_t checkpoints = 0;  // copies that were written anew
};

struct RecoveredMetadata;

class Journal {
 public:
  struct Options {
    uint64_t checkpoint_after = 32 * kMiB;  // bytes, at least
    KeptMemory* kept = nullptr;  // keeps records until they are durable; outlives the journal. Null: nothing does
  };

  // Returns a journal that goes on where `recovered` ends. `state` and `namespace_mutex`, which guards it, must outlive
  // the journal; the pool has adopted recovered.zones.
  static Result<std::unique_ptr<Journal>> Open(ZonedDevice& device, ZonePool& pool, Mutex& namespace_mutex,
                                               MetadataState& state, const RecoveredMetadata& recovered,
                                               const Options& options);
  ~Journal();  // stops; Close was called or the journal has latched

  // Applies a record to the state (the namespace mutex held), appends it, and returns its sequence number. kNoSpace
  // where the metadata would then need more zones than can be reserved: nothing was changed. Records that free
  // something or cut it short and those that close logs may use up what others must leave; renames and moves of extents
  // half of it, and those that say where written data is, a quarter.
  Result<uint64_t> Commit(std::span<const MetadataOp> ops);

  // Returns OK if something can be added to the metadata, or kNoSpace. The record of data that is accepted while this
  // returns OK is admitted later, also where names take up the rest meanwhile. The namespace mutex is held.
  Status AdmitMore();
  // Returns whether there was room after the last record, or when AdmitMore was last asked. If not, AdmitMore may find
  // more zones. Any thread may call this, without a lock.
  bool has_room() const;

  // Takes a record (already applied to the state, the namespace mutex held) into the next batch, and returns its
  // sequence number. No I/O.
  uint64_t Append(std::span<const MetadataOp> ops);

  // Returns when every record up to `sequence` is durable. Must be called without the namespace mutex. kReadOnly once
  // latched; kNoSpace if a copy has no room, and no zone can be had to write another.
  Status Sync(uint64_t sequence);
  // Lets the journal's thread do that soon, and does not wait. If that fails, the next Sync says so.
  void SyncSoon(uint64_t sequence);

  // Returns when the death of the process can no longer take the records up to `sequence`: at once, unless there is no
  // room for them in the kept memory. Without such a memory it does nothing. Errors as Sync.
  Status Keep(uint64_t sequence);

  // Returns the sequence number of the record that was appended last.
  uint64_t last_sequence() const;

  // Returns the latched error; OK while the metadata is writable.
  Status status() const;

  // Writes every copy anew, now, and waits for it.
  Status Checkpoint();
  // Asks for copies that take no more zones than they must, and does not wait. Returns the number of this request.
  uint64_t WantCheckpoint();
  // Returns whether the copies of request `number` are not written yet and may still be: false once latched.
  bool CheckpointPending(uint64_t number) const;

  // Waits until as many copies are written as there should be, and returns why that cannot be.
  Status RestoreCopies();
  uint32_t copies_wanted() const;
  // Returns the zones of each copy that is in use.
  std::vector<std::vector<ZoneId>> Copies() const;

  // Syncs everything and ends the thread; a copy that is being begun is given up. No other call may be under way or
  // follow.
  Status Close();

  JournalStats Stats() const;

 private:
  class Impl;
  explicit Journal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace isozone
