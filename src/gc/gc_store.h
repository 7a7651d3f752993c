// What the collector needs of a file system: GcZones, where there is space and who waits for it, and GcFiles, what
// lives in a zone and how it moves. The file system implements them (fs/space/collected_zones.h,
// fs/file/collected_files.h); a test may, in memory. So the collector knows nothing of names, journals and leases.
//
// Thread safety: any thread; the collector calls from one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"
#include "zone/gc_scheme.h"

namespace isozone {

// A run of valid bytes in a victim: part of one file.
struct GcRun {
  uint64_t file = 0;  // identifies it to the store
  DeviceOffset from;
  uint64_t length = 0;  // bytes, > 0
  DataClass data;       // of the file, its heat aside
  bool table = true;    // of RocksDB, or as large; else a file of a few bytes
};

// A run that was copied.
struct GcMove {
  uint64_t file = 0;
  DeviceOffset from;
  DeviceOffset to;
  uint64_t length = 0;  // bytes
};

// Whole blocks to be written, and which bytes of them belong to whom.
struct GcBlocks {
  struct Piece {
    uint64_t offset = 0;  // bytes in `blocks`
    uint64_t length = 0;
    uint64_t file = 0;
    DeviceOffset from;
  };
  std::span<std::byte> blocks;
  std::vector<Piece> pieces;  // rising, apart
};

// Zones that survivors are written to: several at a time, of different groups, where the policy stripes. Gives them
// back when it goes.
class GcWriter {
 public:
  virtual ~GcWriter() = default;
  // Writes all of `blocks`, which have survived as `data`, all at once as far as there are zones. Where each piece went
  // is appended to `moves` (a piece may have been cut where a zone ended), also after an error, as far as it came. A
  // failed write is repeated in another zone. kNoSpace; kIoError where many in a row have failed.
  virtual Status Write(std::span<const GcBlocks> blocks, DataClass data, std::vector<GcMove>& moves) = 0;
};

class GcZones {
 public:
  virtual ~GcZones() = default;

  virtual GcSpace Space() const = 0;
  // `valid` is in bytes, of which GcFiles::CountBlocks makes whole blocks.
  virtual std::vector<GcCandidate> Candidates() const = 0;

  // Nobody writes to `zone` nor resets it until LetGo. As it is now, or empty: it is no candidate any more.
  virtual std::optional<GcCandidate> Hold(ZoneId zone) = 0;
  // A zone that is dead by then is reset.
  virtual void LetGo(ZoneId zone) = 0;

  // Who has no space may wait for the collector (true), or had better not.
  virtual void Attach(bool attached) = 0;
  // Brackets a round, for those who wait for space: `gained`: there is, or soon will be, more of it.
  virtual void BeginRound() = 0;
  virtual void EndRound(bool gained) = 0;
  // Dead zones are reset as soon as they are dead; else they are candidates.
  virtual void ResetAtOnce(bool at_once) = 0;
  // Resets all that are dead now.
  virtual void ResetDead() = 0;
  // Below so much free space, in percent, flushes are slowed to the pace of what makes space. 0: never.
  virtual void ThrottleBelow(double percent) = 0;
};

class GcFiles {
 public:
  struct Outcome {
    uint64_t moved = 0;    // bytes that files now have at their new place
    uint64_t dropped = 0;  // bytes of files that were removed or changed meanwhile
    uint64_t kept = 0;     // of the dropped: bytes that open handles keep where they were
  };

  virtual ~GcFiles() = default;

  // Raises `valid` of each to what survivors take in whole blocks. A zone of which it is not below `written` any more
  // gains nothing.
  virtual void CountBlocks(std::span<GcCandidate> zones) const = 0;
  // What is valid in a held zone, in rising order. Empty: it has bytes that cannot be moved now (a write of them is
  // still under way, or their file was removed while it is open), so collecting would not free it. May flush the
  // device.
  virtual std::vector<GcRun> RunsIn(ZoneId zone) = 0;

  // `confined`: only to zones that are partly written and not dead; kNoSpace where none has room.
  virtual std::unique_ptr<GcWriter> MakeWriter(bool confined) = 0;

  // Makes what was copied durable, with one flush, then lets the files have it: one atomic change of the metadata, so
  // that after a power cut all of it was moved or none. Of a run that was cut or overwritten meanwhile the rest is
  // moved; what a file no longer has where it was copied from is dropped, and its copy given up. The old places are
  // released when the last read of them is done. An error: all of them are given up.
  virtual Result<Outcome> Commit(std::span<const GcMove> moves) = 0;
  // What was copied is not wanted.
  virtual void GiveUp(std::span<const GcMove> moves) = 0;
};

}  // namespace isozone
