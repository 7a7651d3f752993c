// ZoneLedger: what the parts of the ZoneAllocator know of all zones, and share: the table, the budgets of active and
// open zones, who holds what, and what is reserved for whom. It grants and ends leases; zone_choice.h decides which
// zone is granted, zone_upkeep.h which zones are reset and finished.
//
// Invariants:
//  * A zone that is leased has a holding with a lease, and is in the phase kLeased.
//  * A zone that the device counts as active, or that is leased and may become so, has a holding with a token.
//  * The zones that are leased and not full have a token of the open zones.
//
// Thread safety: none; the owner locks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/izg/group_index.h"
#include "device/zoned_device.h"
#include "store/zone/allocator/active_budget.h"
#include "store/zone/allocator/collector_rounds.h"
#include "store/zone/allocator/space_swing.h"
#include "store/zone/allocator/zone_request.h"
#include "store/zone/placement_policy.h"
#include "store/zone/zone_table.h"

namespace isozone {

// Counts of the allocator since the start.
struct AllocatorStats {
  uint64_t resets = 0;
  uint64_t reset_bytes = 0;  // that had been written to the zones that were reset
  uint64_t failed_resets = 0;
  uint64_t finishes = 0;
  uint64_t revoked_leases = 0;
  uint64_t mixed_classes = 0;  // leases of zones that hold data of another class, for want of a better one
  uint64_t mixed_cohorts = 0;  // leases of zones reserved for others, or, by an own-zones cohort, of others'
  uint64_t space_waits = 0;    // requests that waited for the collector
};

struct AllocatorOptions {
  DeviceGeometry geometry;
  std::shared_ptr<const GroupIndex> groups = {};  // null: all zones are one group
  bool isolation = true;                          // urgent writers are kept apart from others
  bool keep_away = true;                          // with isolation: nobody widens in another's way
  uint32_t metadata_copies = 0;                   // says how many of the first zones are reserved for metadata
  bool asks_for_checkpoints = false;              // a checkpoint can be had, which may give back zones of metadata
  bool asks_for_space = false;                    // there is a collector to wake
  int64_t patience_ns = 0;  // how long a request waits, at most, while others hold the device's active zones
};

// The result of the last attempt to make the metadata durable.
struct Durability {
  Status error;             // kReadOnly is for good; after any other error it is tried again
  uint64_t failures = 0;    // attempts that have failed so far
  int64_t next_try_ns = 0;  // after an error, the next attempt is not made before
  bool for_good() const { return error.Is(StatusCode::kReadOnly); }
  bool is_due(int64_t now_ns) const { return error.ok() || now_ns >= next_try_ns; }
};

// The lease of a zone.
struct LeaseRecord {
  std::shared_ptr<LeaseState> state;  // the holder has it, too
  BudgetClass budget_class = BudgetClass::kData;
  bool urgent = false;
  bool makes_space = false;                 // the writer is compaction, or GC
  std::optional<ActiveBudget::Token> open;  // held until the zone is full
  uint64_t last_used = 0;                   // ZoneLedger::use_count at its last use
};
// The tokens and the lease of a zone that is active, or leased.
struct ZoneHolding {
  std::optional<ActiveBudget::Token> active;
  std::optional<LeaseRecord> lease;
  // Is set once a write to the zone has failed: it is to be finished, so that it costs no token, and this counts how
  // often that has failed.
  std::optional<uint32_t> failed_finishes;
  // Whether one log has taken the zone over from another, and has not given it back.
  bool taken_over = false;
  // Whether a write to the zone is under way.
  bool is_written() const { return lease && lease->state->writing(); }
};

struct ZoneLedger {
  ZoneLedger(std::span<const ZoneDescriptor> report, AllocatorOptions options);

  // --- Leases ---
  // Leases an empty or idle zone. The caller has looked that the tokens are there.
  ZoneGrant Grant(const ZoneRequest& request, ZoneId zone);
  ZoneGrant GrantMetadata(ZoneId zone);
  // Returns the cohort of a request for data, if the policy heeds cohorts; else none.
  Cohort CohortOf(const ZoneRequest& request) const {
    return heeds_cohorts && request.use == ZoneUse::kData ? request.cohort : Cohort();
  }
  // Returns the record of a lease, or null if the lease has ended.
  LeaseRecord* Find(const ZoneGrant& lease);
  // Ends the lease of a zone, which is idle, full or empty after this.
  void EndLease(ZoneId zone);
  // Ends the lease of a zone that becomes something else.
  void EraseLease(ZoneId zone);
  // Gives back the token of a zone that is no longer active.
  void DropToken(ZoneId zone);
  bool HasToken(ZoneId zone) const;
  // Makes the collector's token of a zone, which is not leased, one of data.
  void PassOnShare(ZoneId zone);
  // Returns the zone with which the collector has left its token.
  std::optional<ZoneId> CollectorsZone() const;

  // Notes at mount what `zone` holds. An empty one that holds metadata is reserved for it.
  void Adopt(ZoneId zone, ZoneUse use);

  // --- Questions ---
  // EmptyForMetadata returns how many empty zones are reserved for metadata, beyond those that it has; EmptyKept how
  // many of them, or of those for logs and the collector, `c` may not have.
  uint32_t EmptyForMetadata() const;
  uint32_t EmptyKept(BudgetClass c) const;
  // Returns the bytes of the empty zones that data may not have.
  uint64_t ReservedBytes() const;
  // Free returns the bytes that can be written now, without the reserved ones; FreeForData those that data can take.
  uint64_t Free() const;
  uint64_t FreeForData() const;
  bool HasEmpty(BudgetClass c) const { return table.empty().size() > EmptyKept(c); }
  // Returns the empty zones beyond those that are reserved, and beyond one for each zone that is leased: whoever writes
  // needs another zone soon.
  uint64_t SpareZones() const;
  // Returns the bytes that can be written, and those that are about to be; the reserved ones are included.
  uint64_t FreeSoon() const;
  // Returns whether data can take an active (or open) zone and leave some for others.
  bool HasSpareTokens(const ActiveBudget& budget) const;
  // Returns whether `zone` is one of the first, in which copies of the metadata begin if they can.
  bool IsHome(ZoneId zone) const;

  const AllocatorOptions options;
  bool heeds_cohorts = false;  // the placement policy does
  ZoneTable table;
  ActiveBudget active;
  ActiveBudget open;
  std::map<ZoneId, ZoneHolding> holdings;
  std::vector<GroupLoad> loads;  // by group: the leases in it
  // Requests that wait for an active zone.
  std::array<uint32_t, kBudgetClassCount> waiting_for_token{};
  bool data_token_wanted = false;  // data went where it does not belong, for want of one
  uint32_t metadata_reserve = 0;   // zones in all
  uint32_t leased = 0;             // zones
  uint32_t space_makers = 0;       // zones leased, or waited for, to make space
  uint32_t collecting = 0;         // the collector's zones among these
  CollectorRounds rounds;
  Durability durability;
  int64_t readers_asked_at_ns = 0;  // when readers are asked next whether they still pin what they pinned
  bool readers_in_the_way = false;  // somebody lacks the space that they pin
  uint64_t bytes_written = 0;       // to all zones since the mount, metadata excepted
  SpaceSwing swing;                 // of FreeSoon
  bool reset_at_once = true;        // dead zones are reset as soon as they are dead
  bool started = false;             // somebody executes what is due
  bool stopping = false;
  AllocatorStats stats;
  uint64_t use_count = 0;
  uint64_t next_lease = 1;  // the number of the lease that is granted next

 private:
  // Counts that data goes where it does not belong, if it does.
  void CountMixing(const ZoneRequest& request, const ZoneRecord& zone);
  ZoneGrant Grant(ZoneId zone, ZoneUse use, DataClass data, Cohort cohort, BudgetClass c, bool urgent,
                  ZoneWriter writer);
  uint32_t& LoadOf(ZoneId zone, const LeaseRecord& lease);
  void EraseIfUnused(std::map<ZoneId, ZoneHolding>::iterator holding);
};

}  // namespace isozone
