// ZoneTable: what is known about every zone, and an index for each question of a placement policy or the zone pool.
//
//            Lease            EndLease                BeginReset        EndReset
//   empty ----------> leased ----------> idle, full -----------> resetting -----> empty
//                       ^                 |  | BeginFinish  EndFinish
//                       +----- Lease -----+  +-----------> finishing -----> full
//   any --Fail--> failed (reset once nothing in it lives)     any --Retire--> retired, offline (never written again)
//
// Invariants (the random test checks them against a naive table):
//  * A zone is *dead* when it is idle, full or failed, no byte in it lives, it holds no metadata that is still needed,
//    and it is not being collected (otherwise the collector might read data of another file there). Only a dead zone
//    can be reset.
//  * The empty set holds the empty zones that any writer may have, without those kept for metadata. Of several empty
//    zones (of all, or of a group), the one with the lowest id is given first. This keeps an image file small. Wear
//    levelling is the task of the device, which maps a zone to erase blocks when it is opened.
//  * The idle index holds each idle zone of data or logs in which something lives, unless it is being collected. It
//    also holds dead idle zones that are worth writing further: zones of logs, which die in order, and zones with so
//    little written to them that a reset would cost more than it gains. Such a zone takes the class of the next data.
//  * Every question about many zones, except at(), costs the same for 100 and for 100,000 zones, to within cache
//    misses: the empty and dead sets are bitmaps (zone_set.h), the active-zone limit bounds the idle index, and sums
//    are kept.
//
// Every change is one Edit. It takes the zone out of all indexes, and puts it back in its new state. So no operation
// has to know which index a zone is in.
// has to know which index a zone is in.
//
// Thread safety: none; the owner locks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "device/zoned_device.h"
#include "izg/group_index.h"
#include "zone/cohort.h"
#include "zone/data_class.h"
#include "zone/lifetime.h"
#include "zone/zone_set.h"
#include "zone/zone_use.h"

namespace isozone {

enum class ZonePhase : uint8_t {
  kEmpty,
  kLeased,     // one writer holds it
  kIdle,       // partly written, no writer
  kFinishing,  // a finish is in flight
  kFull,       // written to its capacity, or finished
  kResetting,  // a reset is in flight
  kFailed,     // a write failed: not written again until it is reset
  kRetired,    // read-only, or its reset failed: never written again
  kOffline,    // neither read nor written
};

struct ZoneRecord {
  ZonePhase phase = ZonePhase::kEmpty;
  ZoneUse use = ZoneUse::kFree;
  Lifetime lifetime = Lifetime::kNotSet;  // like level and heat, that of the first file written to it
  int8_t level = DataClass::kNoLevel;
  ZoneHeat heat = kNewDataHeat;
  Cohort cohort = {};                        // that of the first file written to it
  bool sealed = false;                       // its cohort is sealed: it is written only if there is no other zone
  bool kept = false;                         // kept for metadata: nothing else is ever written to it
  bool released = false;                     // no durable record refers to its content
  bool victim = false;                       // being collected: it is neither written nor reset
  bool set_aside = false;                    // empty, and reserved for a copy of the metadata
  bool reset_asked = false;                  // once dead it is reset, even where dead zones wait for the collector
  bool at_device = false;                    // its reset or finish was submitted to the device
  uint64_t live = 0;                         // bytes of file data
  uint64_t write_pointer = 0;                // bytes from the start of the zone
  uint64_t capacity = 0;                     // bytes
  std::optional<uint64_t> finished_at = {};  // of a finished zone: the write pointer before the finish
  DataClass data_class() const { return {lifetime, level, heat}; }
  // Whether data of cohort `id` (0: of no cohort) must go elsewhere as long as there is another zone.
  bool kept_from(uint64_t id) const { return live > 0 && (sealed || (cohort.own_zones && cohort.id != id)); }
  uint64_t room() const { return capacity - write_pointer; }
  // Bytes that writers have written to it.
  uint64_t written() const { return finished_at.value_or(write_pointer); }
  bool dead() const;
  // Whether it is partly written, and may be written further.
  bool reusable() const;
  // Whether it is reusable although nothing lives in it.
  bool reusable_dead() const { return reusable() && live == 0; }
};

// Sums over all zones, in bytes and zones.
struct ZoneTotals {
  uint64_t capacity = 0;      // of all zones that are not offline
  uint64_t live = 0;          // bytes of files
  uint64_t dead = 0;          // bytes written for files and no longer needed
  uint64_t metadata = 0;      // capacity of the zones that hold metadata
  uint64_t free = 0;          // capacity of the empty zones, and room in leased and idle zones of files
  uint32_t full = 0;          // zones
  uint32_t resetting = 0;     // zones
  uint32_t finishing = 0;     // zones
  uint32_t unusable = 0;      // zones: retired, offline
  uint32_t at_device = 0;     // zones: of those resetting or finishing, the ones submitted to the device
  uint32_t released = 0;      // zones: dead and released
  uint32_t dead_asked = 0;    // zones: dead, with a reset asked for
  uint32_t dead_idle = 0;     // zones: dead, but in the idle index
  uint64_t dead_in_idle = 0;  // bytes of `dead` in these zones
  uint32_t kept = 0;          // zones that are kept for metadata and can be written, perhaps after a reset
  uint32_t lent = 0;          // other zones that hold metadata which is still needed
  bool operator==(const ZoneTotals&) const = default;
};

class ZoneTable {
 public:
  using IdleByRoom = std::set<std::pair<uint64_t, ZoneId>>;  // room, zone

  // Takes the zones of a report, zone 0 first. A partly written zone is idle; its use is kData until SetUse changes it.
  // `groups` covers the same zones; null: all are one group.
  explicit ZoneTable(std::span<const ZoneDescriptor> report, std::shared_ptr<const GroupIndex> groups = nullptr);

  const GroupIndex& groups() const { return *groups_; }

  uint32_t size() const { return static_cast<uint32_t>(zones_.size()); }
  const ZoneRecord& at(ZoneId zone) const { return zones_[zone.value()]; }

  // --- Changes. Each states the phases in which it may be called; others are errors of the caller (assert). ---
  // Empty or idle. An empty zone takes `use`, `data` and `cohort`. An idle zone keeps its own, but if it is dead only
  // its use.
  void Lease(ZoneId zone, ZoneUse use, DataClass data, Cohort cohort = {});
  // Leased: `bytes` were written at the write pointer. At most its room.
  void Advance(ZoneId zone, uint64_t bytes);
  // Leased: becomes full, idle, or, if nothing was written, empty.
  void EndLease(ZoneId zone);
  // Idle or failed.
  void BeginFinish(ZoneId zone);
  // Finishing or resetting: the command was submitted to the device.
  void Submit(ZoneId zone);
  // Finishing.
  void EndFinish(ZoneId zone);
  // Finishing, of an idle zone: the command was not submitted, so the zone is idle again.
  void CancelFinish(ZoneId zone);
  // Dead.
  void BeginReset(ZoneId zone);
  // Resetting. A zone that is kept for metadata stays so.
  void EndReset(ZoneId zone);
  // Resetting: the command was not submitted, so the zone is dead again, and failed.
  void CancelReset(ZoneId zone);
  // Any phase: a write or finish failed. `write_pointer` is that of the device.
  void Fail(ZoneId zone, uint64_t write_pointer);
  // Any phase: the device says kReadOnly or kOffline, or a reset failed.
  void Retire(ZoneId zone, bool offline);

  void AddLive(ZoneId zone, uint64_t bytes);
  // Removes live bytes, at most those that live in the zone.
  void RemoveLive(ZoneId zone, uint64_t bytes);
  void SetUse(ZoneId zone, ZoneUse use);
  void SetDataClass(ZoneId zone, DataClass data);
  // Any phase. Sets ZoneRecord::sealed, until the zone is dead.
  void Seal(ZoneId zone);
  // Any phase. Only metadata is written to the zone from now on.
  void KeepForMetadata(ZoneId zone);
  // Empty. A copy of the metadata will be written to the zone, until it is released.
  void SetAside(ZoneId zone);
  // Any phase. The next lease or reset of the zone cancels the request.
  void AskForReset(ZoneId zone);
  // Idle, full or failed. A victim is neither written nor reset.
  void SetVictim(ZoneId zone, bool victim);
  // The content of the zone, which belongs to no file, is durably not needed any more. The zone becomes dead (or empty,
  // if nothing was written) as soon as it is not leased.
  void Release(ZoneId zone);

  // --- Questions ---
  const ZoneSet& empty() const { return empty_; }
  const ZoneSet& dead() const { return dead_; }
  // The fullest idle zone of this use, lifetime and heat with at least `min_room` bytes.
  std::optional<ZoneId> IdleWithRoom(ZoneUse use, Lifetime lifetime, uint64_t min_room,
                                     ZoneHeat heat = kNewDataHeat) const;
  // The idle zones of this use, lifetime and heat, the fullest first.
  const IdleByRoom& Idle(ZoneUse use, Lifetime lifetime, ZoneHeat heat = kNewDataHeat) const {
    return idle(use)[IdleIndex(lifetime, heat)];
  }
  // The lowest empty zone of a group.
  std::optional<ZoneId> EmptyIn(uint32_t group) const;
  // The idle zone of this use with the least room in which something lives, except `but_for`.
  std::optional<ZoneId> FullestIdle(ZoneUse use, std::optional<ZoneId> but_for = {}) const;
  const ZoneTotals& totals() const { return totals_; }

 private:
  class Edit;
  using IdleByClass = std::array<IdleByRoom, kLifetimeCount * kZoneHeatCount>;

  static constexpr size_t IdleIndex(Lifetime lifetime, ZoneHeat heat) {
    return static_cast<size_t>(lifetime) * kZoneHeatCount + static_cast<size_t>(heat);
  }
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
  IdleByClass idle_data_;
  IdleByClass idle_log_;
  ZoneTotals totals_;
};

}  // namespace isozone
