// RegionIndex: which logs have regions in which zones (metadata.h, LogRegion). It is for regions what ZoneIndex is for
// extents. A log has few regions, so each is an entry of its own.
//
// Pure. Thread safety: as a standard container.
#pragma once

#include <compare>
#include <cstdint>
#include <set>

#include "device/zoned_device.h"
#include "store/metadata/inode_id.h"

namespace isozone {

class RegionIndex {
 public:
  // A region of a log, by the place where it begins.
  struct Entry {
    ZoneId zone;
    uint64_t begin = 0;  // bytes in the zone
    InodeId inode;
    uint64_t index = 0;  // of the region in the log
    auto operator<=>(const Entry&) const = default;
  };

  void Add(const Entry& entry) { entries_.insert(entry); }
  void Remove(const Entry& entry) { entries_.erase(entry); }
  // Adds or removes `regions`, which must be all that the log `id` has (LogRegion).
  template <typename Regions>
  void Add(InodeId id, const Regions& regions) {
    for (size_t i = 0; i < regions.size(); ++i) Add({regions[i].zone, regions[i].begin, id, i});
  }
  template <typename Regions>
  void Remove(InodeId id, const Regions& regions) {
    for (size_t i = 0; i < regions.size(); ++i) Remove({regions[i].zone, regions[i].begin, id, i});
  }

  // Calls `visit` for each region in `zone`, in the order in which they lie there. Takes time by their number.
  template <typename Visit>
  void VisitIn(ZoneId zone, Visit visit) const {
    for (auto it = entries_.lower_bound(Entry{zone, 0, InodeId(), 0}); it != entries_.end() && it->zone == zone; ++it) {
      visit(*it);
    }
  }
  // Returns where the first region behind `begin` in `zone` begins; UINT64_MAX if there is none.
  uint64_t NextBegin(ZoneId zone, uint64_t begin) const {
    const auto next = entries_.lower_bound(Entry{zone, begin + 1, InodeId(), 0});
    return next == entries_.end() || next->zone != zone ? UINT64_MAX : next->begin;
  }

  bool operator==(const RegionIndex& other) const { return entries_ == other.entries_; }

 private:
  std::set<Entry> entries_;
};

}  // namespace isozone
