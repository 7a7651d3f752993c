// ZoneCopier: moves what is valid out of victims.
//
//   victims   a, b, c, ...         a batch (zone/collector_state.h), read together. The zones of the survivors are kept
//                                  from batch to batch
//   window    a segment of each    (2 MiB), as much as the memory allows
//
//        read window 1 | check, write, verify window 1
//                      | read window 2 meanwhile       | ...  | commit
//
// All of a victim is copied before its files have anything of it (GcFiles::Commit): it is emptied, or stays as it was
// and its copies are given up. So a victim that fails, or that is interrupted by an error, a request to stop or a power
// cut, costs no zone: those opened for its copies are dead, and the collector's reserve comes back with them. Were
// parts of victims moved, a full device would lose the reserve to what is left of that zone after each, and with it all
// garbage that a collection could still have won. Only a confined collection, which has no reserve, leaves behind what
// it has moved of a victim when there is no more room.
//
// Checked: the CRC of what was read is held against that of what is written, right before it goes out, and against what
// the device gives back afterwards (`verify`). Tables carry RocksDB's own checksums, which are not the file system's to
// know; data files have no others.
//
// Errors: a victim of which a segment cannot be read, or a copy does not match, stays as it was, and is counted; a
// write is repeated elsewhere by the writer. Only errors of the store (no space, metadata not writable) end the whole.
//
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "gc/gc_store.h"
#include "io/io_engine.h"
#include "zone/gc_scheme.h"
#include "zone/segment_plan.h"

namespace isozone {

struct CopyStats {
  uint64_t zones = 0;            // emptied
  uint64_t skipped_zones = 0;    // not begun, or not emptied: something in them is not to be moved now
  uint64_t failed_zones = 0;     // left as they were, because they could not be read or copied
  uint64_t bytes_read = 0;       // of victims, invalid ones included
  uint64_t bytes_copied = 0;     // that files have at a new place
  uint64_t bytes_dropped = 0;    // copied in vain: their files went meanwhile
  uint64_t bytes_reclaimed = 0;  // that had died in the emptied zones
  uint64_t read_errors = 0;
  uint64_t mismatches = 0;  // copies that were not what was read

  CopyStats& operator+=(const CopyStats& other);
};

class ZoneCopier {
 public:
  struct Options {
    uint64_t memory = 16 * kMiB;  // bytes of both windows and their copies; at least four segments
    bool verify = true;
    bool confined = false;  // GcScheme::confined
    SegmentRules rules;     // block_size is the device's
  };

  ZoneCopier(GcZones& zones, GcFiles& files, IoEngine& engine, const Options& options)
      : zones_(zones), files_(files), engine_(engine), options_(options) {}
  // Segments of a window, within `memory` bytes. A batch of more victims is read no faster.
  static size_t WindowSize(uint64_t memory, const SegmentRules& rules) {
    return std::max<size_t>(1, memory / (4 * rules.segment_size));
  }

  // Victims that were not emptied.
  struct Left {
    std::vector<ZoneId> failed;   // could not be read or copied
    std::vector<ZoneId> skipped;  // no candidate any more, or something in it is not to be moved now
  };

  // Moves what is valid in `zones`, the next batch, to other zones. `scheme`: how to read, and what survivors become.
  // `pause` is called after each window, and when files have their copies; false: stop, and give up what is not whole
  // once the window that was read ahead is copied. What was done is added to `stats` and `left`. An error: of the
  // store; no other batch follows it.
  Status Copy(std::span<const ZoneId> zones, const GcScheme& scheme, const std::function<bool()>& pause,
              CopyStats& stats, Left& left);

 private:
  struct Victim;
  struct Segment;
  struct Window;

  // Cuts a victim's runs by segments. False: it cannot be moved now.
  bool Plan(const GcScheme& scheme, Victim& victim) const;
  std::unique_ptr<Window> StartReading(std::span<Victim> victims);
  // `pause` as Copy has it; sets `ceased` where it says so.
  Status CopyWindows(std::span<Victim> victims, const std::function<bool()>& pause, bool& ceased, CopyStats& stats);
  Status CopyWindow(Window& window, CopyStats& stats);
  Status CopyClass(DataClass data, std::span<Segment*> segments, CopyStats& stats);
  // Those of `moves` that do not read back as they were written.
  std::vector<GcMove> Verify(std::span<const GcBlocks> written, std::span<const GcMove> moves, CopyStats& stats);
  // Holds those of `zones` that can be moved now.
  std::vector<Victim> Take(std::span<const ZoneId> zones, const GcScheme& scheme, CopyStats& stats, Left& left);
  // Lets files have the copies of a victim that was copied whole, or gives them up. Counts it.
  Status Settle(Victim& victim, const Status& so_far, CopyStats& stats, Left& left);

  GcZones& zones_;
  GcFiles& files_;
  IoEngine& engine_;
  const Options options_;
  std::unique_ptr<GcWriter> writer_;  // from the first batch on
};

}  // namespace isozone
