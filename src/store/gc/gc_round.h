// What callers of GC set and see of it: its options, what it has done, and what a round would do
// (store/gc/collector.h).
//
// Thread safety: plain types.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "store/zone/gc_scheme.h"

namespace isozone {

// How GC works.
struct GcOptions {
  std::string scheme = "isozone";              // by name (store/zone/gc_scheme.h)
  std::optional<uint32_t> start_percent = {};  // free space below which it collects; the scheme's own if not set
  uint64_t memory = 16 * kMiB;                 // bytes of buffers, at most; 8 MiB .. 1 GiB
  bool verify = true;                          // reads copies back before files use them
};

// What was copied out of victims.
struct CopyStats {
  uint64_t zones = 0;            // emptied
  uint64_t skipped_zones = 0;    // not begun, or not emptied, because something in them cannot be moved now
  uint64_t failed_zones = 0;     // left as they were, because they could not be read or copied
  uint64_t bytes_read = 0;       // from victims, invalid bytes included
  uint64_t bytes_copied = 0;     // bytes that files have at a new place
  uint64_t bytes_dropped = 0;    // copied in vain, because their files were removed or changed in the meantime
  uint64_t bytes_reclaimed = 0;  // dead bytes of the emptied zones
  uint64_t read_errors = 0;
  uint64_t mismatches = 0;  // copies that differ from what was read

  CopyStats& operator+=(const CopyStats& other);
};

// Called while a round copies, with what it has done and the bytes of all victims to be copied. A round stops when it
// returns false.
using GcProgress = std::function<bool(const CopyStats& done, uint64_t bytes_to_copy)>;

// What GC has done so far, and does now.
struct GcStats {
  CopyStats copies;
  uint64_t rounds = 0;         // rounds in which something was read
  double urgency = 0;          // of the round under way, 0 to 1; 0 if there is none
  bool working = false;        // whether a round is under way; the next two are of it
  uint64_t round_copied = 0;   // bytes
  uint64_t round_to_copy = 0;  // bytes of all victims that were chosen last
};

// What a round of GC would do.
struct GcPlan {
  std::string scheme;
  GcSpace space;
  double urgency = 0;                // 0 if the scheme has nothing to do now
  std::vector<GcCandidate> victims;  // in order
  uint64_t copied() const;           // bytes that would be copied
  uint64_t reclaimed() const;        // bytes that would be gained
};

}  // namespace isozone
