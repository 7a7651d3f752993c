// JournalCopies: the copies of the metadata that the journal writes, and the commits that make its records durable.
//
// One thread at a time leads. It writes one batch to each copy that has records and room, all in flight at once;
// records may be appended meanwhile, and whoever waits for a commit finds himself served. `committing` says that
// somebody leads, and only he touches what the copies write to. No lock is held across device I/O.
//
// Invariants:
//  * A record is durable when every copy has it. A new copy joins the others, and says so in a batch, only once it has
//    all that was ever called durable. The copy that it replaces is erased at once.
//  * A copy of which a write fails is given up: it is erased, and the others say so in one more batch, before anything
//    that only they have is called durable. When the last one fails that latches, and nothing is erased.
//  * So recovery can tell whether a copy has all that is durable (recovery.cc).
//
// Thread safety: each function says what it needs. Lock order: `mu`, then the pool's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "store/kept/kept_memory.h"
#include "store/metadata/journal.h"
#include "store/metadata/metadata_log.h"
#include "store/metadata/recovery.h"
#include "store/space/zone_pool.h"

namespace isozone {

struct JournalCopies {
  using Log = std::unique_ptr<MetadataLog>;

  // There should be `copies_wanted` copies, and the last record is `sequence`. `zones` and `memory`, which may be null,
  // must outlive this.
  JournalCopies(ZonePool& zones, uint32_t copies_wanted, uint64_t sequence, KeptMemory* memory)
      : pool(zones), wanted(copies_wanted), kept(memory), last_sequence(sequence) {
    if (kept != nullptr) kept->ForgetRecords(sequence);  // the device has them
  }

  // Goes on with the copies that were found.
  Status Resume(ZonedDevice& device, std::span<const FoundCopy> found) ISOZONE_REQUIRES(mu);
  // Takes a record into the next batch of every copy, and returns its sequence number.
  uint64_t Append(std::span<const MetadataOp> ops) ISOZONE_REQUIRES(mu);
  // Returns whether some copy has records to write and room for them. (Somebody may be committing.)
  bool CanCommit() const ISOZONE_REQUIRES(mu);
  // Leads, and writes one batch, of all that waits or as much as fits, to each copy that has room. CanCommit() must
  // hold, and nobody may be committing.
  Status Commit() ISOZONE_REQUIRES(mu);

  // Waits until nobody leads, then leads.
  void Lead() ISOZONE_REQUIRES(mu);
  void EndLead() ISOZONE_REQUIRES(mu);
  // The rest is for the leader.
  // Puts `log` in the place of the copy of that generation, or adds it if there is none.
  void Replace(uint64_t generation, Log log) ISOZONE_REQUIRES(mu);
  void GiveUp(MetadataLog* copy, const Status& why) ISOZONE_REQUIRES(mu);
  // Gives the zones of a copy that is no longer needed back.
  void Release(Log log) ISOZONE_REQUIRES(mu);
  // Notes that nothing can be written any more, and returns what callers are told.
  Status Latch(const Status& cause) ISOZONE_REQUIRES(mu);

  MetadataLog* Find(uint64_t generation) const ISOZONE_REQUIRES(mu);  // null: none
  // Returns the zones of all copies but one.
  std::vector<ZoneId> ZonesBut(uint64_t generation) const ISOZONE_REQUIRES(mu);

  ZonePool& pool;
  const uint32_t wanted;
  KeptMemory* const kept;  // keeps records until they are durable; null: nothing does

  mutable Mutex mu;
  CondVar changed;  // for callers: a commit, a new copy, or an error
  CondVar work;     // for the thread that writes new copies
  Status latched ISOZONE_GUARDED_BY(mu);
  std::vector<Log> all ISOZONE_GUARDED_BY(mu);            // the copies that are written
  MetadataLog* rolling ISOZONE_GUARDED_BY(mu) = nullptr;  // a new copy: gets the records behind its snapshot
  std::vector<std::byte> record ISOZONE_GUARDED_BY(mu);   // the record that is being appended
  bool announced ISOZONE_GUARDED_BY(mu) = true;           // the batches of the copies say how many they are
  bool committing ISOZONE_GUARDED_BY(mu) = false;
  uint64_t last_sequence ISOZONE_GUARDED_BY(mu);
  uint64_t durable_sequence ISOZONE_GUARDED_BY(mu) = 0;
  uint64_t journalled ISOZONE_GUARDED_BY(mu) = 0;  // bytes of records that were appended
  JournalStats stats ISOZONE_GUARDED_BY(mu);

 private:
  bool HasWork(const MetadataLog& copy) const ISOZONE_REQUIRES(mu) {
    return copy.room() > 0 && (copy.has_records() || !announced);
  }
  // Writes one batch to each of `writing`, which must have room, and gives up those that fail. Returns whether any
  // failed.
  bool WriteBatches(std::span<MetadataLog* const> writing) ISOZONE_REQUIRES(mu);
  // Ends a copy that was one of those that get every record, before anything is durable that it lacks.
  void Discard(Log log) ISOZONE_REQUIRES(mu);
  void NoteDurable() ISOZONE_REQUIRES(mu);
};

}  // namespace isozone
