// DeletionDelays: how long the bytes of deleted files still occupy space. It measures the time from the removal of the
// last name of a file (its logical deletion) to the reset of each zone that it lay in (its physical deletion), for each
// lifetime of files. Lifetime paper, Fig. 14.
//
//   Deleted   notes the zones of a file. Deletions of one lifetime within kMergeNs of one another are one note with a
//             count, so that the notes of a zone are bounded by how long they exist, not by the number of files
//   Reset     adds a value for each note of the zone, as often as its count
//
// A file counts once in each zone that it lay in. Zones that are not reset before the unmount do not count, and neither
// do files that were deleted in an earlier mount.
//
// Thread safety: any thread may call any method.
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
#include "store/zone/lifetime.h"

namespace isozone {

class DeletionDelays {
 public:
  static constexpr int64_t kMergeNs = kMillisecondNs;

  // Notes that a file of `lifetime` lost its last name at `now_ns`. `zones` are the zones that it lay in; a zone that
  // is named twice counts once. Must be called before the bytes are given back, because the zones could be reset at
  // once.
  void Deleted(Lifetime lifetime, std::span<const ZoneId> zones, int64_t now_ns) ISOZONE_EXCLUDES(mu_);
  void Reset(ZoneId zone, int64_t now_ns) ISOZONE_EXCLUDES(mu_);
  // Returns the delays of files of `lifetime`, in ns.
  const Histogram& Of(Lifetime lifetime) const { return delays_ns_[static_cast<size_t>(lifetime)]; }

 private:
  struct Note {
    Lifetime lifetime;
    int64_t at_ns;  // of the first deletion
    uint64_t count;
    uint64_t call;  // the last call of Deleted that is counted in it
  };

  Mutex mu_;
  uint64_t calls_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::unordered_map<ZoneId, std::vector<Note>> notes_ ISOZONE_GUARDED_BY(mu_);
  std::array<Histogram, kLifetimeCount> delays_ns_;
};

}  // namespace isozone
