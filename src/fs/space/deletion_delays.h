// DeletionDelays: how long the bytes of deleted files go on taking room: from when the last name of a file goes (its
// logical deletion) to when a zone that it lay in is reset (its physical one), for each lifetime of files.
// Lifetime paper, Fig. 14.
//
//   Deleted   notes the zones of a file; deletions of one lifetime within kMergeNs of one another are one note with a
//             count, so that what is kept of a zone is bounded by how long it lies there, not by its files
//   Reset     a value for each note of the zone, as often as it counts
//
// A file counts once in each zone that it lay in. What is not reset before the unmount is not counted, and neither are
// files of an earlier mount that were deleted in it.
//
// Thread safety: any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/histogram.h"
#include "base/mutex.h"
#include "base/units.h"
#include "device/zoned_device.h"
#include "zone/lifetime.h"

namespace isozone {

class DeletionDelays {
 public:
  static constexpr int64_t kMergeNs = kMillisecondNs;
  using Snapshot = std::array<Histogram::Snapshot, kLifetimeCount>;  // ns, by Lifetime

  // A file of `lifetime` lost its last name at `now_ns`. `zones`: those it lay in; one that is named twice counts once.
  // To be called before its bytes are given back: they could be reset at once.
  void Deleted(Lifetime lifetime, std::span<const ZoneId> zones, int64_t now_ns) ISOZONE_EXCLUDES(mu_);
  void Reset(ZoneId zone, int64_t now_ns) ISOZONE_EXCLUDES(mu_);
  Snapshot Take() const;

 private:
  struct Note {
    Lifetime lifetime;
    int64_t at_ns;  // of the first deletion
    uint64_t count;
    uint64_t call;  // the last call of Deleted that it counts
  };

  Mutex mu_;
  uint64_t calls_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::unordered_map<ZoneId, std::vector<Note>> notes_ ISOZONE_GUARDED_BY(mu_);
  std::array<Histogram, kLifetimeCount> delays_ns_;
};

}  // namespace isozone
