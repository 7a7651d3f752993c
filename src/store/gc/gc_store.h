// What the collector needs of a file system. GcZones says where there is space and who waits for it; GcFiles says what
// is live in a zone, and moves it. The file system implements both (store/space/zone_pool.h,
// store/file/collected_files.h); tests implement them in memory. So the collector knows nothing of names, journals and
// leases.
//
// Thread safety: any thread may call any method; the collector calls them from one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"
#include "store/zone/gc_scheme.h"

namespace isozone {

// A run of valid bytes in a victim: part of one file.
struct GcRun {
  uint64_t file = 0;  // identifies it to the store
  DeviceOffset from;
  uint64_t length = 0;  // bytes, > 0
  DataClass data;       // of the file, except for its heat
  bool table = true;    // a table of RocksDB, or a file of that size; false for a file of a few bytes
};

// A run that was copied.
struct GcMove {
  uint64_t file = 0;
  DeviceOffset from;
  DeviceOffset to;
  uint64_t length = 0;  // bytes
};

// Whole blocks to be written, and the runs that their bytes belong to.
struct GcBlocks {
  struct Piece {
    uint64_t offset = 0;  // bytes in `blocks`
    uint64_t length = 0;
    uint64_t file = 0;
    DeviceOffset from;
  };
  std::span<std::byte> blocks;
  std::vector<Piece> pieces;  // by rising offset, without overlap
};

// Writes survivors to zones: to several at a time, in different groups, if the policy stripes. Its destructor gives the
// zones back.
class GcWriter {
 public:
  virtual ~GcWriter() = default;
  // Writes all of `blocks`, whose class is now `data`, in parallel as far as there are zones. Appends the new place of
  // each piece to `moves`, also after an error, as far as the writes got; a piece may have been cut at the end of a
  // zone. A failed write is repeated in another zone. kNoSpace; kIoError if many writes in a row have failed.
  virtual Status Write(std::span<const GcBlocks> blocks, DataClass data, std::vector<GcMove>& moves) = 0;
};

class GcZones {
 public:
  virtual ~GcZones() = default;

  virtual GcSpace Look() const = 0;
  // `valid` is in bytes. GcFiles::CountBlocks converts it to whole blocks.
  virtual std::vector<GcCandidate> Candidates() const = 0;

  // Prevents writes to `zone` and its reset until LetGo. Returns its current state, or nothing if it is no candidate
  // any more.
  virtual std::optional<GcCandidate> Hold(ZoneId zone) = 0;
  // Ends a Hold. A zone that is dead by then is reset.
  virtual void LetGo(ZoneId zone) = 0;

  // Says whether writers without space may wait for the collector.
  virtual void Attach(bool attached) = 0;
  // Bracket a round, for writers that wait for space. `gained` says that the round has made space, or will soon.
  virtual void BeginRound() = 0;
  virtual void EndRound(bool gained) = 0;
  // Says whether dead zones are reset as soon as they are dead. If not, they are candidates.
  virtual void ResetAtOnce(bool at_once) = 0;
  // Resets all zones that are dead now.
  virtual void ResetDead() = 0;
  // Below the percentage of free space that `rule` returns, flushes are slowed to the pace at which space is made. The
  // rule is asked with the pool's lock held.
  virtual void ThrottleBelow(ThrottleRule rule) = 0;
};

class GcFiles {
 public:
  struct Outcome {
    uint64_t moved = 0;    // bytes that files now have at their new place
    uint64_t dropped = 0;  // bytes of files that were removed or changed in the meantime
    uint64_t kept = 0;     // bytes of `dropped` that open handles keep at their old place
  };

  virtual ~GcFiles() = default;

  // Raises `valid` of each zone to the whole blocks that its survivors take. If `valid` then reaches `written`,
  // collecting the zone gains nothing.
  virtual void CountBlocks(std::span<GcCandidate> zones) const = 0;
  // Returns the valid runs in a held zone, in rising order. Empty if the zone has bytes that cannot be moved now,
  // because a write of them is still under way, or because their file was removed while it is open: moving the rest
  // would not free the zone. May flush the device.
  virtual std::vector<GcRun> RunsIn(ZoneId zone) = 0;

  // Makes a writer. If it is `confined`, it uses only zones that are partly written and not dead, and fails with
  // kNoSpace if none has room.
  virtual std::unique_ptr<GcWriter> MakeWriter(bool confined) = 0;

  // Makes the copies durable with one flush, then moves the files to them in one atomic change of the metadata: after a
  // power cut either all of it has moved or nothing. If a run was cut or overwritten in the meantime, the rest of it
  // moves; bytes that a file no longer has at the old place are dropped, and their copy is given up. The old places are
  // released when the last read of them is done. On an error, all copies are given up.
  virtual Result<Outcome> Commit(std::span<const GcMove> moves) = 0;
  // Gives up copies that are not needed.
  virtual void GiveUp(std::span<const GcMove> moves) = 0;
};

}  // namespace isozone
