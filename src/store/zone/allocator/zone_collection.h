// ZoneCollection: what the collector sees of the zones and does with them, and how fast users may write while space is
// short: as fast as compaction and GC make space (write_pace.h).
//
// A zone that is being collected is leased to nobody and not reset until the collector lets go of it.
//
// Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
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
  // Returns the zones of data, and of logs that have become data, in which something is live and something is dead, and
  // that nobody writes. Includes dead zones, unless they are reset at once.
  std::vector<GcCandidate> Candidates() const;
  // Gives the zone to the collector until End, and returns it as it is now. Empty if it is no candidate any more.
  std::optional<GcCandidate> Begin(ZoneId zone);
  void End(ZoneId zone);

  // --- Pace ---
  // Sets the rule that returns the percentage of free space below which users are paced; 0: they never are.
  void ThrottleBelow(ThrottleRule rule) { throttle_ = std::move(rule); }
  // Returns whether what users write costs something now.
  bool IsTight() const { return Price() > 0; }
  // Pays for so many bytes of a user. Returns false if that has to be earned first, and somebody is about to.
  bool Pay(uint64_t bytes) { return ledger_.space_makers == 0 || pace_.Pay(bytes, Price()); }
  void Earn(uint64_t bytes) { pace_.Earn(bytes); }
  // Returns how many of `flushed` bytes no log has had. `logged` is the number of bytes that logs have had since the
  // last call.
  uint64_t TakeUnlogged(uint64_t flushed, uint64_t logged);
  // Bracket the wait of a user for Pay.
  void BeginPaced() { ++paced_; }
  void EndPaced() { --paced_; }
  // Returns whether nobody but the collector could pay for the users that wait.
  bool CollectorIsAwaited() const { return paced_ > 0 && ledger_.space_makers == ledger_.collecting; }

 private:
  bool MayCollect(ZoneId zone) const;
  GcCandidate AsCandidate(ZoneId id) const;
  // Returns the price of a byte now. What is free in a few zones does not count: if these are all that is left,
  // compaction and GC need them.
  double Price() const;

  ZoneLedger& ledger_;
  ThrottleRule throttle_;  // none: nobody is paced
  WritePace pace_;
  uint32_t paced_ = 0;  // users that wait
};

}  // namespace isozone
