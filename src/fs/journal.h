// The metadata store: superblocks, checkpoints and the journal on the device (docs/format.md has the layouts,
// fs/format.h the structures).
//
//   superblock   zones 0 and 1, appended in turn (superblock.h): names the pieces of zones that hold the newest
//                checkpoint and the journal behind it. The valid record with the highest sequence counts, so switching
//                to a new checkpoint is one atomic step.
//   checkpoint   the whole MetadataState as of one sequence number, over as many zones as it takes
//   journal      the records after the checkpoint, over as many zones as it takes. One batch is one device write (FUA)
//                for all callers of Sync that wait (group commit).
//
// Both are streams of batches (batch_stream.h), which fill zones to the last block: a zone that is left behind is full,
// so three zones at most are active (superblock, journal, checkpoint), and none is ever finished.
//
// The next journal zone is taken, and named by a superblock, by a background thread while the one before is written, so
// that no commit waits for it.
//
// Rolling: when `checkpoint_after` bytes of journal lie behind the last checkpoint, or the journal would take one of the
// last empty zones, the thread notes where the journal stands, writes a snapshot of that moment behind the last
// checkpoint, and then one superblock that names the new checkpoint and lets the journal begin at the noted place. Zones
// it no longer names are given back. Writers go on meanwhile, and the journal in its zone.
//
// Few zones: the journal leaves as many as a checkpoint may need. Records that it has no zone for are left out of it,
// since the checkpoint has what they did; the journal then moves to another zone, and gives its own back. So with one
// zone for the journal, those of one checkpoint, and as many empty ones, it never ends.
//
// Failures: a batch whose blocks end before its length says, at the write pointer of the last journal zone, is torn:
// the normal end after a power cut. Any other invalid byte below a write pointer is corruption, reported with its
// place. The first failed metadata write latches: every later Sync returns kReadOnly with the cause. Where merely no
// zone is left, for the journal or for a checkpoint, Sync returns that error, and a later one tries again.
//
// Thread safety: Append is serialised by the caller together with the MetadataState it belongs to (the namespace lock);
// Sync and the rest from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "device/zoned_device.h"
#include "fs/metadata.h"
#include "fs/zone_pool.h"

namespace isozone {

struct JournalStats {
  uint64_t commits = 0;  // batches of the journal
  uint64_t records = 0;
  uint64_t bytes = 0;  // written, journal, checkpoints and superblocks
  uint64_t checkpoints = 0;
};

// What was found on a device.
struct RecoveredMetadata {
  MetadataState state;
  std::string label;
  std::string uuid;
  uint64_t sequence = 0;  // of the last record
  uint64_t checkpoint_inodes = 0;
  uint64_t journal_records = 0;
  bool torn_tail = false;                         // a torn batch at the end: normal after a power cut
  std::vector<std::pair<ZoneId, ZoneUse>> zones;  // that hold metadata
  // Opaque: where to go on writing.
  struct Position;
  std::shared_ptr<const Position> position;
};

// Reads and replays. Changes nothing. kNotFound: not formatted; kNotSupported: ZenFS or another version; kCorruption.
// Works beside a writer in another process: if zones are rolled under it, it starts over.
Result<RecoveredMetadata> RecoverMetadata(ZonedDevice& device);

// Writes the first superblock, checkpoint and journal to zones that are all empty.
Status InitialiseMetadata(ZonedDevice& device, std::string_view label);

class Journal {
 public:
  struct Options {
    uint64_t checkpoint_after = 32 * kMiB;  // bytes
  };

  // Goes on where `recovered` ends. `state` and `namespace_mutex`, which guards it, must outlive the journal; the pool
  // has adopted recovered.zones. A torn tail is left behind by going on in a new segment.
  static Result<std::unique_ptr<Journal>> Open(ZonedDevice& device, ZonePool& pool, Mutex& namespace_mutex,
                                               MetadataState& state, const RecoveredMetadata& recovered,
                                               const Options& options);
  ~Journal();  // stops; Close was called or the journal has latched

  // Takes a record (already applied to the state, the namespace mutex held) into the next batch, and returns its
  // sequence number. No I/O.
  uint64_t Append(std::span<const MetadataOp> ops);

  // Returns when every record up to `sequence` is durable. Call it without the namespace mutex. kReadOnly once latched;
  // kNoSpace where neither the journal nor a checkpoint has a zone to go on in.
  Status Sync(uint64_t sequence);
  // The same soon, without waiting: the thread does it, and if it fails, the next Sync says so.
  void SyncSoon(uint64_t sequence);

  // The sequence of the last Append.
  uint64_t last_sequence() const;

  // The latched error; OK while writable.
  Status status() const;

  // Writes a checkpoint now and waits for it.
  Status Checkpoint();
  // Asks for a checkpoint that begins after now, and does not wait; returns its number.
  uint64_t WantCheckpoint();
  // It has not ended yet, and may still: false once latched.
  bool CheckpointPending(uint64_t number) const;

  // Syncs everything and ends the thread; a checkpoint that is being written is given up. No other call may be under
  // way or follow.
  Status Close();

  JournalStats Stats() const;

 private:
  struct Impl;
  explicit Journal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace isozone
