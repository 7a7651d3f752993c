// ZoneCollection: what the collector sees of the zones and does with them, and how fast users may write while space is
// short: at the pace of what makes space, compaction and GC (write_pace.h).
//
// A zone that is being collected is leased to nobody and not reset until the collector lets go of it.
//
// Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "store/zone/allocator/write_pace.h"
#include "store/zone/allocator/zone_ledger.h"
#include "store/zone/gc_scheme.h"

namespace isozone {

class ZoneCollection {
 public:
  explicit ZoneCollection(ZoneLedger& ledger) : ledger_(ledger) {}

  // --- Collecting ---
  GcSpace Space() const;
  // Zones of data, and of logs that have become data, in which something lives and something has died, and that nobody
  // writes; and, unless they are reset at once, dead zones.
  std::vector<GcCandidate> Candidates() const;
  // As it is now; empty: it is no candidate any more. Else it is the collector's until End.
  std::optional<GcCandidate> Begin(ZoneId zone);
  void End(ZoneId zone);

  // --- Pace ---
  // While less than `percent` of the capacity is free. 0: never.
  void ThrottleBelow(double percent) { pace_.SetBelow(percent); }
  // What users write costs something.
  bool IsTight() const { return pace_.PriceAt(FreeToUsers()) > 0; }
  // Pays for so many bytes of a user. False: that has to be earned first, and somebody is about to.
  bool Pay(uint64_t bytes) { return ledger_.space_makers == 0 || pace_.Pay(bytes, FreeToUsers()); }
  void Earn(uint64_t bytes) { pace_.Earn(bytes); }
  // Of `flushed` bytes, those that no log has had; `logged`: bytes that logs have had since the last call.
  uint64_t TakeUnlogged(uint64_t flushed, uint64_t logged);
  // Brackets the wait of a user for Pay.
  void BeginPaced() { ++paced_; }
  void EndPaced() { --paced_; }
  // Nobody but the collector could pay for the users that wait.
  bool CollectorIsAwaited() const { return paced_ > 0 && ledger_.space_makers == ledger_.collecting; }

 private:
  bool MayCollect(ZoneId zone) const;
  GcCandidate AsCandidate(ZoneId id) const;
  // Percent, beyond a few zones: where these are all that is left, compaction and GC need them.
  double FreeToUsers() const;

  ZoneLedger& ledger_;
  WritePace pace_;
  uint32_t paced_ = 0;  // users that wait
};

}  // namespace isozone
