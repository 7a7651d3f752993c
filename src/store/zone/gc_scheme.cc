#include "store/zone/gc_scheme.h"

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace isozone {
namespace {

using Candidates = std::vector<GcCandidate>;

// Sorted by `key`, lowest first.
template <typename Key>
Candidates SortedBy(std::span<const GcCandidate> candidates, Key key) {
  Candidates sorted(candidates.begin(), candidates.end());
  std::sort(sorted.begin(), sorted.end(), [&](const GcCandidate& a, const GcCandidate& b) {
    return std::make_tuple(std::invoke(key, a), a.zone) < std::make_tuple(std::invoke(key, b), b.zone);
  });
  return sorted;
}

std::vector<ZoneId> ZonesOf(std::span<const GcCandidate> candidates) {
  std::vector<ZoneId> zones;
  for (const GcCandidate& c : candidates) zones.push_back(c.zone);
  return zones;
}

// The first zones by `key`, lowest first, that together give back `bytes`; at least one. Few of many are sorted.
template <typename Key>
std::vector<ZoneId> EnoughBy(std::span<const GcCandidate> candidates, Key key, double bytes) {
  using Ranked =
      std::tuple<decltype(std::invoke(key, candidates.front())), ZoneId, uint64_t>;  // with the bytes that are gained
  std::vector<Ranked> heap;
  heap.reserve(candidates.size());
  for (const GcCandidate& c : candidates) heap.emplace_back(std::invoke(key, c), c.zone, c.written - c.valid);
  std::ranges::make_heap(heap, std::greater());
  std::vector<ZoneId> zones;
  double gained = 0;
  while (!heap.empty() && (zones.empty() || gained < bytes)) {
    std::ranges::pop_heap(heap, std::greater());
    zones.push_back(std::get<1>(heap.back()));
    gained += static_cast<double>(std::get<2>(heap.back()));
    heap.pop_back();
  }
  return zones;
}

// Bytes that are missing until `percent` is free.
double Missing(const GcSpace& space, double percent) {
  return (percent - space.free_percent()) / 100 * static_cast<double>(space.capacity);
}

// The level, or, if it is not known, a level derived from the lifetime.
int LevelOf(const GcCandidate& c) {
  if (c.data.level != DataClass::kNoLevel) return c.data.level;
  return std::max(0, static_cast<int>(c.data.lifetime) - static_cast<int>(Lifetime::kMedium));
}

// Tables and blobs have a level, or at least a hint of their lifetime.
bool IsOfTree(const GcCandidate& c) { return c.data.level != DataClass::kNoLevel || c.data.lifetime > Lifetime::kNone; }

class NoGc : public GcScheme {
 public:
  std::string_view name() const override { return "none"; }
  int64_t interval_ns() const override { return 10 * kSecondNs; }
  bool automatic() const override { return false; }
  bool Due(const GcSpace&) const override { return false; }
  std::vector<ZoneId> Choose(const GcSpace&, std::span<const GcCandidate>) const override { return {}; }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(SortedBy(candidates, [](const GcCandidate& c) { return c.valid; }));
  }
};

// Works like the GCWorker of ZenFS 2.1, without improvements, since it stands for the baseline.
class ZenfsGc : public GcScheme {
 public:
  explicit ZenfsGc(const GcTuning& tuning) : start_(tuning.start_percent.value_or(20)) {}
  std::string_view name() const override { return "zenfs"; }
  int64_t interval_ns() const override { return 10 * kSecondNs; }
  bool writers_wait() const override { return false; }
  bool confined() const override { return true; }
  bool Due(const GcSpace& space) const override { return space.free_percent() <= start_; }
  std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const override {
    const double threshold = 100 - kSlope * (start_ - space.free_percent());
    Candidates chosen;
    for (const GcCandidate& c : candidates) {
      if (c.full && Garbage(c) > threshold) chosen.push_back(c);
    }
    return ZonesOf(SortedBy(chosen, [](const GcCandidate&) { return 0; }));
  }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(SortedBy(candidates, [](const GcCandidate&) { return 0; }));
  }

 private:
  static constexpr double kSlope = 3;  // GC_SLOPE
  static double Garbage(const GcCandidate& c) { return 100 - 100 * c.utilisation(); }
  const double start_;  // GC_START_LEVEL
};

class ZenfsPlusGc : public GcScheme {
 public:
  ZenfsPlusGc(const GcTuning& tuning, bool minor) : start_(tuning.start_percent.value_or(10)), minor_(minor) {}
  std::string_view name() const override { return minor_ ? "zenfs+" : "full"; }
  int64_t interval_ns() const override { return kSecondNs / 10; }
  bool resets_at_once() const override { return minor_; }
  bool decides_again() const override { return true; }
  bool Due(const GcSpace& space) const override { return space.free_percent() < start_; }
  std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const override {
    return EnoughBy(candidates, KeyOf, Missing(space, start_));
  }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(SortedBy(candidates, KeyOf));
  }

 private:
  static std::pair<int, uint64_t> KeyOf(const GcCandidate& c) { return {LevelOf(c), c.valid}; }
  const double start_;  // fullGC_trigger
  const bool minor_;
};

class LifetimeGc : public GcScheme {
 public:
  explicit LifetimeGc(const GcTuning& tuning)
      : start_(tuning.start_percent.value_or(25)), dynamic_(tuning.dynamic_victims) {}
  std::string_view name() const override { return "lifetime"; }
  int64_t interval_ns() const override { return kSecondNs; }
  bool Due(const GcSpace& space) const override { return space.empty_percent() < start_; }
  std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const override {
    const double empty = space.empty_percent();
    const uint32_t most = dynamic_ ? std::max(1U, space.zones / (1 + space.empty_zones)) : 1;           // equation 1
    const int deepest = dynamic_ ? std::max(1, static_cast<int>(kQueues / (1 + empty / 5))) : kQueues;  // equation 2
    std::vector<ZoneId> victims;
    for (const GcCandidate& c : Sorted(candidates)) {
      if (QueueOf(c) <= deepest && victims.size() < most) victims.push_back(c.zone);
    }
    return victims;
  }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(Sorted(candidates));
  }

 private:
  static constexpr int kQueues = 4;  // L_max
  // The queue of a candidate; 1 has the least valid data.
  static int QueueOf(const GcCandidate& c) {
    return std::min(kQueues, 1 + static_cast<int>(c.utilisation() * kQueues));
  }
  static Candidates Sorted(std::span<const GcCandidate> candidates) {
    return SortedBy(candidates, [](const GcCandidate& c) {
      return std::make_tuple(QueueOf(c), c.valid, -static_cast<int>(c.data.lifetime));
    });
  }
  const double start_;
  const bool dynamic_;
};

class LsmZgc : public GcScheme {
 public:
  explicit LsmZgc(const GcTuning& tuning) : start_(tuning.start_percent.value_or(10)) {}
  std::string_view name() const override { return "lsm-zgc"; }
  int64_t interval_ns() const override { return kSecondNs; }
  bool reads_segments() const override { return true; }
  bool decides_again() const override { return true; }
  ZoneHeat Survivor(ZoneHeat victim, bool cold_segment) const override { return SurvivorHeat(victim, cold_segment); }
  bool Due(const GcSpace& space) const override { return space.free_percent() < start_; }
  std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const override {
    return EnoughBy(candidates, &GcCandidate::utilisation, Missing(space, start_));
  }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(SortedBy(candidates, &GcCandidate::utilisation));
  }

 private:
  const double start_;
};

// What a byte of free space costs the scheme `isozone`, in bytes copied, for one of the given candidates.
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

  // The factor by which copying costs more than its bytes, because of the level in an LSM tree.
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

// Orders victims by the bytes copied for each byte gained, which is the cost for flash and for users. Data that is
// expected to die soon counts more than its bytes, because copying it is in vain. In an LSM tree that is data of short
// lifetimes and upper levels. Of other data, it is the data written last: what has lived for long will live on, so its
// zone loses little more, and its copies last. There the cost is divided by the age, as in the cost-benefit rule of a
// log-structured file system (Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured File
// System", section 3.6). Age says nothing about tables: in a level, the oldest are compacted next.
//
// Urgency grows from 0 at `start` to 1 where a quarter of `start` is left. So at any time the collector takes just the
// share of the device that keeps the space constant, and never causes a sudden stall. If a user's write waits until the
// collector has written more, the collector does not rest, but does not take victims that are not worth it either.
class IsozoneGc : public GcScheme {
 public:
  explicit IsozoneGc(const GcTuning& tuning) : start_(tuning.start_percent.value_or(10)) {}
  std::string_view name() const override { return "isozone"; }
  int64_t interval_ns() const override { return kSecondNs / 10; }
  ZoneHeat Survivor(ZoneHeat victim, bool /*cold_segment*/) const override { return SurvivorHeat(victim, true); }
  bool decides_again() const override { return true; }
  double Urgency(const GcSpace& space) const override { return space.paced ? 1 : Need(space); }
  double throttle_below() const override { return kThrottle * start_; }
  bool Due(const GcSpace& space) const override { return space.free_percent() < start_ || space.wanted; }
  std::vector<ZoneId> Choose(const GcSpace& space, std::span<const GcCandidate> candidates) const override {
    const double need = Need(space);
    Candidates chosen;
    for (const GcCandidate& c : candidates) {
      // While there is time, takes only zones that have lost enough.
      if (need >= 1 || c.utilisation() * IsozoneCost::Impatience(c) <= kWorth + need * (1 - kWorth))
        chosen.push_back(c);
    }
    return EnoughBy(chosen, IsozoneCost(candidates), std::max(0.0, Missing(space, start_)));
  }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(SortedBy(candidates, IsozoneCost(candidates)));
  }

 private:
  static constexpr double kThrottle = 1.5;  // of start_: below this, writers are slowed a little
  static constexpr double kAllOut = 0.25;   // of start_: below this, the collector does not rest
  static constexpr double kLeast = 0.05;
  static constexpr double kWorth = 0.3;  // utilisation up to which a zone is collected as soon as space runs low
  double Need(const GcSpace& space) const {
    if (space.wanted) return 1;
    return std::clamp((start_ - space.free_percent()) / (start_ * (1 - kAllOut)), kLeast, 1.0);
  }
  const double start_;
};

struct NamedScheme {
  std::string_view name;
  std::unique_ptr<GcScheme> (*make)(const GcTuning& tuning);
};

constexpr std::array kSchemes = {
    NamedScheme{"none", [](const GcTuning&) -> std::unique_ptr<GcScheme> { return std::make_unique<NoGc>(); }},
    NamedScheme{"zenfs", [](const GcTuning& t) -> std::unique_ptr<GcScheme> { return std::make_unique<ZenfsGc>(t); }},
    NamedScheme{"full",
                [](const GcTuning& t) -> std::unique_ptr<GcScheme> { return std::make_unique<ZenfsPlusGc>(t, false); }},
    NamedScheme{"zenfs+",
                [](const GcTuning& t) -> std::unique_ptr<GcScheme> { return std::make_unique<ZenfsPlusGc>(t, true); }},
    NamedScheme{"lifetime",
                [](const GcTuning& t) -> std::unique_ptr<GcScheme> { return std::make_unique<LifetimeGc>(t); }},
    NamedScheme{"lsm-zgc", [](const GcTuning& t) -> std::unique_ptr<GcScheme> { return std::make_unique<LsmZgc>(t); }},
    NamedScheme{"isozone",
                [](const GcTuning& t) -> std::unique_ptr<GcScheme> { return std::make_unique<IsozoneGc>(t); }},
};

}  // namespace

Result<std::unique_ptr<GcScheme>> MakeGcScheme(std::string_view name, const GcTuning& tuning) {
  std::string known;
  for (const NamedScheme& scheme : kSchemes) {
    if (scheme.name == name) return scheme.make(tuning);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", scheme.name);
  }
  return Status::InvalidArgument(fmt::format("unknown garbage collection scheme \"{}\"; known: {}", name, known));
}

std::vector<std::string_view> GcSchemeNames() {
  std::vector<std::string_view> names;
  for (const NamedScheme& scheme : kSchemes) names.push_back(scheme.name);
  return names;
}

}  // namespace isozone
