// ZoneCopier: moves the valid data of victims to other zones.
//
// victims a, b, c, ... a batch (store/zone/collector_state.h), which is read together. The zones of the survivors
//                                  stay open from batch to batch
//   window    a segment of each    (2 MiB), as many as the memory allows
//
//        read window 1 | check, write, verify window 1
//                      | read window 2 meanwhile       | ...  | commit
//
// All of a victim is copied before its files get any of the copies (GcFiles::Commit). So a victim is either emptied, or
// stays as it was and its copies are given up. A victim that fails, or that is interrupted by an error, a request to
// stop or a power cut, costs no zone: the zones opened for its copies are dead, and the collector's reserve comes back
// with them. If parts of victims were moved, a full device would lose the reserve to the rest of that zone, and with it
// all garbage that GC could still have reclaimed. Only a confined collector, which has no reserve, leaves
// moved parts of a victim where they are when there is no more room.
//
// Checks: the CRC of what was read is compared with what is written, right before the write, and with what the device
// returns afterwards (`verify`). Tables have RocksDB's own checksums, which the file system does not know; data files
// have no others.
//
// Errors: a victim of which a segment cannot be read, or a copy does not match, stays as it was, and is counted. The
// writer repeats a failed write elsewhere. Only errors of the store (no space, metadata not writable) end the
// round.
//
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "store/gc/gc_round.h"
#include "store/gc/gc_store.h"
#include "store/io/io_engine.h"
#include "store/zone/gc_scheme.h"
#include "store/zone/segment_plan.h"

namespace isozone {

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

  // Victims that were not emptied.
  struct Left {
    std::vector<ZoneId> failed;   // could not be read or copied
    std::vector<ZoneId> skipped;  // no candidates any more, or something in them cannot be moved now
  };

  // Moves the valid data of `zones`, the next batch, to other zones. `scheme` decides how to read, and what the
  // survivors become. `pause` is called after each window, and when files have their copies; if it returns false, the
  // copier stops, and gives up incomplete victims once the window that was read ahead is copied. Adds the outcome to
  // `stats` and `left`. Returns an error only of the store; no other batch may follow it.
  Status Copy(std::span<const ZoneId> zones, const GcScheme& scheme, const std::function<bool()>& pause,
              CopyStats& stats, Left& left);

 private:
  struct Victim;
  struct Segment;
  struct Window;

  // Cuts a victim's runs by segments. Returns false if the victim cannot be moved now.
  bool Plan(const GcScheme& scheme, Victim& victim) const;
  std::unique_ptr<Window> StartReading(std::span<Victim> victims);
  // `pause` is that of Copy; sets `ceased` if it returned false.
  Status CopyWindows(std::span<Victim> victims, const std::function<bool()>& pause, bool& ceased, CopyStats& stats);
  Status CopyWindow(Window& window, CopyStats& stats);
  Status CopyClass(DataClass data, std::span<Segment*> segments, CopyStats& stats);
  // Reads the copies of `moves` back, and returns those that are not as they were written.
  std::vector<GcMove> Verify(std::span<const GcBlocks> written, std::span<const GcMove> moves, CopyStats& stats);
  // Holds those of `zones` that can be moved now, and returns them.
  std::vector<Victim> Take(std::span<const ZoneId> zones, const GcScheme& scheme, CopyStats& stats, Left& left);
  // Commits the copies of a victim if it was copied completely, otherwise gives them up. Counts the victim.
  Status Settle(Victim& victim, const Status& so_far, CopyStats& stats, Left& left);

  GcZones& zones_;
  GcFiles& files_;
  IoEngine& engine_;
  const Options options_;
  std::unique_ptr<GcWriter> writer_;  // made for the first batch
};

}  // namespace isozone
