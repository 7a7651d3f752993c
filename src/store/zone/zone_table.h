// ZoneTable: what is known about every zone, and an index for each question of a placement policy or the zone pool.
//
// Invariants (the random test checks them against a naive table):
//  * The empty set holds the empty zones that any writer may have: none reserved for metadata. Of several empty
//    zones (of all, or of a group), the one with the lowest id is given first. This keeps an image file small. Wear
//    levelling is the task of the device, which maps a zone to erase blocks when it is opened.
//  * The dead set holds the dead zones, the pinned set those that only readers keep from being dead, and the idle index
//    the reusable ones (zone_record.h).
//  * Every question about many zones, except at(), costs the same for 100 and for 100,000 zones, to within cache
//    misses: the sets are bitmaps (zone_set.h), the active-zone limit bounds the idle index, and sums
//    are kept.
//
// Every change is one Edit. It takes the zone out of all indexes, and puts it back in its new state. So no operation
// has to know which index a zone is in.
//
// Thread safety: none; the owner locks.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "device/izg/group_index.h"
#include "device/zoned_device.h"
#include "store/zone/data_class.h"
#include "store/zone/heat.h"
#include "store/zone/lifetime.h"
#include "store/zone/zone_record.h"
#include "store/zone/zone_set.h"
#include "store/zone/zone_use.h"

namespace isozone {

// Sums over all zones, in bytes and zones.
struct ZoneTotals {
  uint64_t capacity = 0;        // of all zones that are not offline
  uint64_t live = 0;            // bytes of files
  uint64_t dead = 0;            // bytes written for files and no longer needed
  uint64_t pinned = 0;          // bytes of `dead` in the pinned zones
  uint64_t metadata = 0;        // capacity of the zones that hold metadata
  uint64_t free = 0;            // capacity of the empty zones, and room in leased and idle zones of files
  uint64_t free_in_logs = 0;    // the part of `free` in zones that only logs write until they are reset
  uint32_t full = 0;            // zones
  uint32_t resetting = 0;       // zones
  uint32_t being_reset = 0;     // zones: of those resetting, the ones submitted to the device
  uint32_t finishing = 0;       // zones
  uint32_t unusable = 0;        // zones: retired, offline
  uint32_t at_device = 0;       // zones: of those resetting or finishing, the ones submitted to the device
  uint32_t released = 0;        // zones: dead and released
  uint32_t dead_asked = 0;      // zones: dead, with a reset asked for
  uint32_t dead_idle = 0;       // zones: dead, but in the idle index
  uint64_t dead_in_idle = 0;    // bytes of `dead` in these zones
  uint32_t kept = 0;            // zones that are reserved for metadata and can be written, perhaps after a reset
  uint32_t held_elsewhere = 0;  // other zones that hold metadata which is still needed
  bool operator==(const ZoneTotals&) const = default;
};

class ZoneTable {
 public:
  using IdleByRoom = std::set<std::pair<uint64_t, ZoneId>>;  // room, zone

  // Takes the zones of a report, zone 0 first. A partly written zone is idle; its use is kData at first.
  // `groups` covers the same zones; null: all are one group.
  explicit ZoneTable(std::span<const ZoneDescriptor> report, std::shared_ptr<const GroupIndex> groups = nullptr);

  const GroupIndex& groups() const { return *groups_; }

  uint32_t size() const { return static_cast<uint32_t>(zones_.size()); }
  const ZoneRecord& at(ZoneId zone) const { return zones_[zone.value()]; }

  // One change of one zone, which is in no index as long as this object lives.
  class Change {
   public:
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    ~Change() {
      table_.Index(zone_);
      if (table_.watch_) table_.watch_(zone_, table_.at(zone_));
    }
    ZoneRecord* operator->() { return &table_.zones_[zone_.value()]; }

   private:
    friend class ZoneTable;
    Change(ZoneTable& table, ZoneId zone) : table_(table), zone_(zone) { table_.Unindex(zone_); }
    ZoneTable& table_;
    const ZoneId zone_;
  };
  // Begins a change, for the one call that makes it: Edit(zone)->EndLease().
  Change Edit(ZoneId zone) { return Change(*this, zone); }

  // Tells `watch` every zone as it is now, and from now on as it is after each change.
  using Watch = std::function<void(ZoneId zone, const ZoneRecord& record)>;
  void SetWatch(Watch watch);

  // --- Questions ---
  const ZoneSet& empty() const { return empty_; }
  const ZoneSet& dead() const { return dead_; }
  const ZoneSet& pinned() const { return pinned_; }
  // Returns the fullest idle zone of this use, lifetime and heat with at least `min_room` bytes.
  std::optional<ZoneId> IdleWithRoom(ZoneUse use, Lifetime lifetime, uint64_t min_room,
                                     ZoneHeat heat = kNewDataHeat) const;
  // Returns the idle zones of this use, lifetime and heat, the fullest first.
  const IdleByRoom& Idle(ZoneUse use, Lifetime lifetime, ZoneHeat heat = kNewDataHeat) const {
    return idle(use)[IdleIndex(lifetime, heat)];
  }
  // Returns the lowest empty zone of a group.
  std::optional<ZoneId> EmptyIn(uint32_t group) const;
  // Returns the idle zone of this use with the least room in which something is live or pinned, except `but_for`.
  std::optional<ZoneId> FullestIdle(ZoneUse use, std::optional<ZoneId> but_for = {}) const;
  const ZoneTotals& totals() const { return totals_; }
  // Returns the bytes of files that live in zones of this lifetime and level, whatever their heat.
  uint64_t LiveOf(const DataClass& data) const {
    return live_of_class_[static_cast<size_t>(data.lifetime)][LevelIndex(data.level)];
  }
  // Returns how many zones a cohort has begun in which something is live; of cohort 0, none.
  uint32_t OfCohort(uint64_t cohort) const;

 private:
  using IdleByClass = std::array<IdleByRoom, kLifetimeCount * kZoneHeatCount>;

  static constexpr size_t IdleIndex(Lifetime lifetime, ZoneHeat heat) {
    return static_cast<size_t>(lifetime) * kZoneHeatCount + static_cast<size_t>(heat);
  }
  static constexpr size_t LevelIndex(int8_t level) { return static_cast<size_t>(level - DataClass::kNoLevel); }
  const IdleByClass& idle(ZoneUse use) const { return use == ZoneUse::kLog ? idle_log_ : idle_data_; }
  void Index(ZoneId id);
  void Unindex(ZoneId id);
  // Adds (sign 1) or subtracts (sign -1) the contribution of a zone.
  void Count(const ZoneRecord& zone, int sign);

  const std::shared_ptr<const GroupIndex> groups_;
  std::vector<ZoneRecord> zones_;
  ZoneSet empty_;
  ZoneSet empty_by_group_;  // the same zones, by their rank in groups_
  ZoneSet dead_;
  ZoneSet pinned_;
  IdleByClass idle_data_;
  IdleByClass idle_log_;
  ZoneTotals totals_;
  std::array<std::array<uint64_t, DataClass::kLevelValues>, kLifetimeCount> live_of_class_{};
  Watch watch_;                                             // empty: nobody watches
  std::unordered_map<uint64_t, uint32_t> zones_of_cohort_;  // by cohort that is not 0
};

}  // namespace isozone
