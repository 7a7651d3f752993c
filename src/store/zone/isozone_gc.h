// The GC scheme of Isozone, the default. It orders victims by the bytes copied for each byte gained, which is the cost
// for flash and for users. Data that is expected to die soon counts more than its bytes, because copying it is in vain.
// In an LSM tree that is data of short lifetimes and upper levels. Of other data, it is the data written last: what has
// lived for long will live on, so its zone loses little more, and its copies last. There the cost is divided by the
// age, as in the cost-benefit rule of a log-structured file system (Rosenblum and Ousterhout, "The Design and
// Implementation of a Log-Structured File System", section 3.6). Age says nothing about tables: in a level, the oldest
// are compacted next.
//
// It comes last: compaction frees most zones by itself, and what is copied before that is copied in vain. So it starts
// where free space may run out before it comes back by itself: at twice the largest recent fall (space_swing.h), or at
// one zone for each zone that is being written, whichever is more. It never starts above 10 % of free space, and starts
// there as long as the falls are not known.
//
// Urgency grows from 0 at the start to 1 where a quarter of that is left. So at any time the collector takes just the
// share of the device that keeps the space constant, and never causes a sudden stall. If a user's write waits until the
// collector has written more, the collector does not rest, but does not take victims that are not worth it either.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/zone/gc_order.h"
#include "store/zone/gc_scheme.h"
#include "store/zone/heat.h"

namespace isozone {

// The cost of a byte of free space for the scheme `isozone`, in bytes copied, for one of the given candidates.
class IsozoneCost {
 public:
  explicit IsozoneCost(std::span<const GcCandidate> candidates) {
    double sum = 0;
    size_t count = 0;
    for (const GcCandidate& c : candidates) {
      if (IsOfTree(c)) continue;
      sum += AgeOf(c);
      ++count;
    }
    if (count > 0) mean_age_ = sum / static_cast<double>(count);
  }

  // Data of no tree that has the mean age costs as much as that of a deep level.
  double operator()(const GcCandidate& c) const {
    const double bytes = static_cast<double>(c.valid) / static_cast<double>(c.written - c.valid);
    return bytes * (IsOfTree(c) ? Impatience(c) : std::clamp(mean_age_ / AgeOf(c), 1 / kMostByAge, kMostByAge));
  }

  // Returns the factor by which copying costs more than its bytes, because of the level in an LSM tree.
  static double Impatience(const GcCandidate& c) {
    if (!IsOfTree(c) || c.data.heat != kNewDataHeat) return 1;  // in the second case it has survived before
    if (LevelOf(c) == 0) return 2;
    return LevelOf(c) == 1 ? 1.5 : 1;
  }

 private:
  static double AgeOf(const GcCandidate& c) { return static_cast<double>(c.age) + 1; }
  // Age decides among zones that are about as full. Nearly dead ones are never left for it, nor full ones taken.
  static constexpr double kMostByAge = 8;
  double mean_age_ = 1;  // of the candidates of no tree, in bytes
};

class IsozoneGc : public GcScheme {
 public:
  explicit IsozoneGc(std::optional<uint32_t> start_percent) : given_(start_percent) {}
  std::string_view name() const override { return "isozone"; }
  int64_t interval_ns() const override { return kSecondNs / 10; }
  ZoneHeat Survivor(ZoneHeat victim, bool /*cold_segment*/) const override { return SurvivorHeat(victim, true); }
  bool decides_again() const override { return true; }
  double Urgency(const GcSpace& space) const override { return space.paced ? 1 : Need(space); }
  double ThrottleBelow(const GcSpace& space) const override { return kThrottle * Start(space); }
  bool Due(const GcSpace& space) const override { return space.free_percent() < Start(space) || space.wanted; }
  std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const override {
    const double need = Need(space);
    std::vector<GcCandidate> chosen;
    for (const GcCandidate& c : candidates) {
      // While there is time, takes only zones that have lost enough.
      if (need >= 1 || c.utilisation() * IsozoneCost::Impatience(c) <= kWorth + need * (1 - kWorth))
        chosen.push_back(c);
    }
    return EnoughBy(chosen, IsozoneCost(candidates), std::max(0.0, Missing(space, Start(space))));
  }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(SortedBy(candidates, IsozoneCost(candidates)));
  }

 private:
  static constexpr double kEarliest = 10;   // percent
  static constexpr uint64_t kFalls = 2;     // the next fall may begin before space is back from the last
  static constexpr double kThrottle = 1.5;  // of the start: below this, writers are slowed a little
  static constexpr double kAllOut = 0.25;   // of the start: below this, the collector does not rest
  static constexpr double kLeast = 0.05;
  static constexpr double kWorth = 0.3;  // utilisation up to which a zone is collected as soon as space runs low
  double Need(const GcSpace& space) const {
    if (space.wanted) return 1;
    const double start = Start(space);
    return std::clamp((start - space.free_percent()) / (start * (1 - kAllOut)), kLeast, 1.0);
  }
  // Returns the percentage of free space below which it collects; never 0.
  double Start(const GcSpace& space) const {
    if (given_) return *given_;
    if (!space.swing || space.capacity == 0) return kEarliest;
    const uint64_t next_zones = std::max<uint64_t>(1, space.leased);
    const uint64_t bytes = std::max(kFalls * *space.swing, next_zones * (space.capacity / space.zones));
    return std::min(kEarliest, 100.0 * static_cast<double>(bytes) / static_cast<double>(space.capacity));
  }
  const std::optional<double> given_;
};

}  // namespace isozone
