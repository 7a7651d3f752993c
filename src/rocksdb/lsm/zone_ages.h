// The zones in which the files of one level lie, by age: which were begun first.
//
// A zone is as old as the first file that was put there since the zone last held none of the level.
//
// Thread safety: none; it is a part of LsmTree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "rocksdb/lsm/lsm_file.h"

namespace isozone {

class ZoneAges {
 public:
  void Add(const LsmFile& file) {
    for (const ZoneId zone : file.zones) {
      Zone& entry = zones_[zone];
      if (entry.files.empty()) {
        entry.first_file = file.number;
        by_age_.insert({file.number, zone});
      }
      entry.files.insert(file.number);
    }
  }
  void Remove(const LsmFile& file) {
    for (const ZoneId zone : file.zones) {
      const auto entry = zones_.find(zone);
      entry->second.files.erase(file.number);
      if (!entry->second.files.empty()) continue;
      by_age_.erase({entry->second.first_file, zone});
      zones_.erase(entry);
    }
  }
  size_t count() const { return zones_.size(); }
  // Returns the `count` oldest zones, or all if there are fewer.
  std::unordered_set<ZoneId> Oldest(size_t count) const {
    std::unordered_set<ZoneId> oldest;
    for (auto zone = by_age_.begin(); zone != by_age_.end() && oldest.size() < count; ++zone) {
      oldest.insert(zone->second);
    }
    return oldest;
  }
  // Returns the lowest file number in the oldest zone, or nothing if no zone is known.
  std::optional<uint64_t> OldestFile() const {
    if (by_age_.empty()) return std::nullopt;
    return *zones_.at(by_age_.begin()->second).files.begin();
  }

 private:
  struct Zone {
    std::set<uint64_t> files;  // by number
    uint64_t first_file = 0;   // the first file that was put there; it tells the age
  };
  std::unordered_map<ZoneId, Zone> zones_;
  std::set<std::pair<uint64_t, ZoneId>> by_age_;
};

}  // namespace isozone
