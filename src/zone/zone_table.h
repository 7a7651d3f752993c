// ZoneTable: what is known of every zone, and an index for each question that a placement policy or the zone pool asks.
//
//            Lease            EndLease                BeginReset        EndReset
//   empty ----------> leased ----------> idle, full -----------> resetting -----> empty
//                       ^                 |  | BeginFinish  EndFinish
//                       +----- Lease -----+  +-----------> finishing -----> full
//   any --Fail--> failed (reset once nothing in it lives)     any --Retire--> retired, offline (never written again)
//
// Invariants (the random test holds them against a naive table):
//  * A zone is *dead* when it is idle, full or failed, no byte in it lives, it does not hold metadata that is still
//    needed, and it is not being collected (what is read there must not be another file's meanwhile). Only a dead zone
//    can be reset.
//  * The empty set holds the empty zones that anybody may have: not those kept for metadata. Of empty zones the one
//    (or of those of a group) with the lowest id is given first: an image file stays small, and levelling wear is the
//    device's task, which maps a zone to erase blocks when it is opened.
//  * An idle zone of data or logs in which something lives is in the idle index, unless it is being collected. So is a dead
//    one that is worth going on with: of logs, which die in order, or with little written to it, so that a reset would cost
//    more than what is dead takes. It takes the class of what is written next.
//  * Every question but at() of many zones costs the same for 100 and for 100,000 zones, to within cache misses: the
//    empty and dead sets are bitmaps (zone_set.h), the idle index is bounded by the active-zone limit, sums are kept.
//
// Every change is one Edit, which takes the zone out of all indexes and puts it back as it is afterwards: no operation
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
  kFailed,     // a write failed: not written again before it is reset
  kRetired,    // read-only, or its reset failed: never written again
  kOffline,    // neither read nor written
};

struct ZoneRecord {
  ZonePhase phase = ZonePhase::kEmpty;
  ZoneUse use = ZoneUse::kFree;
  Lifetime lifetime = Lifetime::kNotSet;  // of the first file written to it, as are level and heat
  int8_t level = DataClass::kNoLevel;
  ZoneHeat heat = kNewDataHeat;
  bool kept = false;           // for metadata: nothing else is ever written to it
  bool released = false;       // nothing durable names what is in it
  bool victim = false;         // being collected: nobody goes on writing it, nor resets it
  bool set_aside = false;      // empty, and of metadata: a copy goes on in it
  bool reset_asked = false;    // what is dead of it is reset, even where dead zones wait for the collector
  bool at_device = false;      // its reset or finish was given to the device
  uint64_t live = 0;           // bytes of file data
  uint64_t write_pointer = 0;  // bytes from the start of the zone
  uint64_t capacity = 0;       // bytes
  std::optional<uint64_t> finished_at = {};  // of a finished zone: the write pointer before
  DataClass data_class() const { return {lifetime, level, heat}; }
  uint64_t room() const { return capacity - write_pointer; }
  // Bytes that writers have put into it.
  uint64_t written() const { return finished_at.value_or(write_pointer); }
  bool dead() const;
  // Partly written, and may be gone on with.
  bool reusable() const;
  // The same, though nothing lives in it.
  bool reusable_dead() const { return reusable() && live == 0; }
};

// Sums over all zones, in bytes and zones.
struct ZoneTotals {
  uint64_t capacity = 0;      // of all zones that are not offline
  uint64_t live = 0;          // bytes of files
  uint64_t dead = 0;          // written for files, and no longer needed
  uint64_t metadata = 0;      // capacity of the zones that hold metadata
  uint64_t free = 0;          // capacity of the empty zones, and room in leased and idle zones of files
  uint32_t full = 0;          // zones
  uint32_t resetting = 0;     // zones
  uint32_t finishing = 0;     // zones
  uint32_t unusable = 0;      // zones: retired, offline
  uint32_t at_device = 0;     // zones: of the resetting and finishing ones, those that the device has been told of
  uint32_t released = 0;      // zones: dead, and released
  uint32_t dead_asked = 0;    // zones: dead, and somebody has asked for their reset
  uint32_t dead_idle = 0;     // zones: dead, and yet in the idle index
  uint64_t dead_in_idle = 0;  // bytes of `dead` that are in these
  uint32_t kept = 0;          // zones that are kept for metadata and can be written, or reset first
  uint32_t lent = 0;          // other zones that hold metadata which is still needed
  bool operator==(const ZoneTotals&) const = default;
};

class ZoneTable {
 public:
  using IdleByRoom = std::set<std::pair<uint64_t, ZoneId>>;  // room, zone

  // The zones of a report, zone 0 first. A partly written zone is idle, its use kData until SetUse says otherwise.
  // `groups`: of the same zones; null: all are one group.
  explicit ZoneTable(std::span<const ZoneDescriptor> report, std::shared_ptr<const GroupIndex> groups = nullptr);

  const GroupIndex& groups() const { return *groups_; }

  uint32_t size() const { return static_cast<uint32_t>(zones_.size()); }
  const ZoneRecord& at(ZoneId zone) const { return zones_[zone.value()]; }

  // --- Changes. Each states the phases it starts from; another one is a mistake of the caller (assert). ---
  // Empty or idle. An empty zone takes `use` and `data`, an idle one keeps its own; a dead one its use.
  void Lease(ZoneId zone, ZoneUse use, DataClass data);
  // Leased: `bytes` were written at the write pointer; at most its room.
  void Advance(ZoneId zone, uint64_t bytes);
  // Leased: becomes full, idle, or empty where nothing was written.
  void EndLease(ZoneId zone);
  // Idle or failed.
  void BeginFinish(ZoneId zone);
  // Finishing or resetting: the device is told.
  void Submit(ZoneId zone);
  // Finishing.
  void EndFinish(ZoneId zone);
  // Finishing, of an idle zone: the command was not given, the zone is idle again.
  void CancelFinish(ZoneId zone);
  // Dead.
  void BeginReset(ZoneId zone);
  // Resetting. A zone that is kept for metadata stays so.
  void EndReset(ZoneId zone);
  // Resetting: the command was not given, the zone is dead again, and failed.
  void CancelReset(ZoneId zone);
  // Any: a write or finish failed; the device's write pointer is `write_pointer`.
  void Fail(ZoneId zone, uint64_t write_pointer);
  // Any: kReadOnly or kOffline of the device, or a reset failed.
  void Retire(ZoneId zone, bool offline);

  void AddLive(ZoneId zone, uint64_t bytes);
  // At most what lives in it.
  void RemoveLive(ZoneId zone, uint64_t bytes);
  void SetUse(ZoneId zone, ZoneUse use);
  void SetDataClass(ZoneId zone, DataClass data);
  // Any phase: only metadata is written to it from now on.
  void KeepForMetadata(ZoneId zone);
  // Empty: a copy of the metadata goes on in it, until it is released.
  void SetAside(ZoneId zone);
  // Any phase. Its next lease, or reset, ends it.
  void AskForReset(ZoneId zone);
  // Idle, full or failed. Nobody goes on writing a victim, nor resets it.
  void SetVictim(ZoneId zone, bool victim);
  // What is in it, which is no file's, is not needed any more, durably: dead (or empty, where nothing was written), as
  // soon as it is not leased.
  void Release(ZoneId zone);

  // --- Questions ---
  const ZoneSet& empty() const { return empty_; }
  const ZoneSet& dead() const { return dead_; }
  // Among the idle zones of this use, lifetime and heat with at least `min_room` bytes, the fullest.
  std::optional<ZoneId> IdleWithRoom(ZoneUse use, Lifetime lifetime, uint64_t min_room,
                                     ZoneHeat heat = kNewDataHeat) const;
  // The idle zones of this use, lifetime and heat, the fullest first.
  const IdleByRoom& Idle(ZoneUse use, Lifetime lifetime, ZoneHeat heat = kNewDataHeat) const {
    return idle(use)[IdleIndex(lifetime, heat)];
  }
  // The lowest empty zone of a group.
  std::optional<ZoneId> EmptyIn(uint32_t group) const;
  // The idle zone of this use, in which something lives, with the least room; not `but_for`.
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
  // Adds (sign 1) or takes away (sign -1) what a zone contributes.
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
