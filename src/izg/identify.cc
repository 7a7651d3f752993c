#include "izg/identify.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "izg/channels.h"
#include "izg/latency_probe.h"

namespace isozone {
namespace {

constexpr int kTriesOfCalibration = 5;
constexpr size_t kFirstBatch = 96;  // enough to meet most groups
constexpr size_t kLargestBatch = 384;
constexpr int kTimesDelayed = 3, kMostTimesDelayed = 12;
constexpr double kMayBeWrong = 0.001;
constexpr double kHalvingSeparation = 3;  // delayed over undelayed latency, behind the pivots of half the groups
constexpr uint32_t kMostHalvingLoad = 8;
constexpr uint64_t kFirstGuesses = 64;  // guesses that are made before it counts how many were right
constexpr uint16_t kNone = ZoneGroups::kUnknown;
// Bytes written to a zone to measure its bandwidth: more than a device buffers. Only the later half counts. If there
// are fewer writes than kLeastTimedWrites, the bandwidth stays unknown.
constexpr uint64_t kTimedWrites = 64 * kMiB;
constexpr size_t kLeastTimedWrites = 8;
constexpr size_t kTriesOfBandwidth = 4;

// If more zones fail, the cause is not in single zones.
constexpr size_t kMostSetAside = 16;

class Identifier {
 public:
  // Identifies all zones of the prober except those of `set_aside`.
  Identifier(Prober& prober, const IdentifyOptions& options, const std::vector<IdentifyReport::SetAside>& set_aside)
      : prober_(prober), options_(options), probe_(prober, options.seed, [this] { return BeforeBurst(); }) {
    for (const ProbeZone& zone : prober.zones()) {
      const bool aside = std::ranges::find(set_aside, zone.zone, &IdentifyReport::SetAside::zone) != set_aside.end();
      if (!aside) zones_.push_back(zone);
    }
    groups_.group_of_zone.assign(prober.geometry().zone_count, kNone);
    groups_.confidence_percent.assign(prober.geometry().zone_count, 0);
  }

  Result<IdentifyReport> Run() {
    const Status status = IdentifyAll();
    const Status released = probe_.ReleaseAll();
    ISOZONE_RETURN_IF_ERROR(status);
    ISOZONE_RETURN_IF_ERROR(released);
    IdentifyReport report;
    ISOZONE_RETURN_IF_ERROR(MeasureBandwidth(report.bytes_prepared));
    report.zones = zones_.size();
    report.reads = probe_.counts().reads;
    report.bursts = probe_.counts().bursts;
    report.burst_ns = probe_.counts().burst_ns;
    report.bytes_prepared += probe_.counts().bytes_prepared;
    report.false_interference = probe_.calibration().false_interference;
    report.unreadable_blocks = probe_.counts().unreadable_blocks;
    NumberByFirstZone();
    report.groups = std::move(groups_);
    return report;
  }

  // The zone that the error of Run was about, if all others can still be measured.
  std::optional<ZoneId> lost_zone() const { return probe_.lost_zone(); }

 private:
  using Zones = std::vector<ZoneId>;

  Status BeforeBurst() const {
    if (options_.cancelled && options_.cancelled()) return Status::Aborted("interrupted; nothing was stored");
    if (options_.progress) options_.progress(placed_, zones_.size());
    return Status::Ok();
  }

  Status IdentifyAll() {
    size_t next = 0;
    ISOZONE_ASSIGN_OR_RETURN(first_pivot_, FirstPivot());
    Zones again{
        first_pivot_};  // what a batch leaves over joins the next one, since a burst for a few needles is expensive
    while (next < zones_.size() || !again.empty()) {
      const bool first = next == 0;
      ISOZONE_ASSIGN_OR_RETURN(const Zones batch, TakeBatch(next, std::move(again)));
      ISOZONE_RETURN_IF_ERROR(probe_.PrepareNeedles(batch));
      if (first) {
        ISOZONE_RETURN_IF_ERROR(probe_.PreparePivot(first_pivot_));
        ISOZONE_ASSIGN_OR_RETURN(const bool interferes, Calibrate(batch));
        if (!interferes) return AllIndependent();
      }
      ISOZONE_ASSIGN_OR_RETURN(again, Classify(batch));
      ISOZONE_RETURN_IF_ERROR(probe_.Release(Done(batch)));
    }
    for (const ZoneId zone : not_pivots_) ISOZONE_RETURN_IF_ERROR(HoldAgainstEveryGroup(zone).status());
    ISOZONE_ASSIGN_OR_RETURN(groups_.channel_of_group, FindChannels(probe_, pivots_, options_.seed));
    return Status::Ok();
  }

  // Tries again when the host is busy: something else may use it for a moment.
  Result<bool> Calibrate(const Zones& batch) {
    Result<bool> interferes = probe_.Calibrate(first_pivot_, batch);
    for (int tries = 1; tries < kTriesOfCalibration && interferes.status().Is(StatusCode::kBusy); ++tries) {
      interferes = probe_.Calibrate(first_pivot_, batch);
    }
    return interferes;
  }

  // An empty zone if there is one, since a zone in use may have been finished early.
  Result<ZoneId> FirstPivot() const {
    const ProbeZone* in_use = nullptr;
    for (const ProbeZone& zone : zones_) {
      if (zone.readable == 0 && prober_.preparable() > 0) return zone.zone;
      if (in_use == nullptr && zone.readable > 0 && probe_.CanBePivot(zone.zone)) in_use = &zone;
    }
    if (in_use != nullptr) return in_use->zone;
    return Status::NoSpace("no zone is empty or holds enough to be read for long: free some space first");
  }

  // Those zones of a batch that need not stay prepared.
  Zones Done(const Zones& batch) const {
    Zones done;
    for (const ZoneId zone : batch) {
      const bool is_pivot = std::ranges::find(pivots_, zone) != pivots_.end();
      if (groups_.group_of_zone[zone.value()] != kNone && !is_pivot) done.push_back(zone);
    }
    return done;
  }

  // Adds the next zones in order to `batch`, as many as can be prepared beside the pivots.
  Result<Zones> TakeBatch(size_t& next, Zones batch) const {
    const size_t most = next == 0 ? kFirstBatch : kLargestBatch;
    const size_t preparable = prober_.preparable() - std::min<size_t>(prober_.preparable(), prepared_pivots_);
    auto empty =
        static_cast<size_t>(std::ranges::count_if(batch, [this](ZoneId zone) { return IsEmptyAtFirst(zone); }));
    for (; next < zones_.size() && batch.size() < most; ++next) {
      const ProbeZone& zone = zones_[next];
      if (zone.zone == first_pivot_) continue;
      if (zone.readable == 0 && empty >= preparable) break;
      if (zone.readable == 0) ++empty;
      batch.push_back(zone.zone);
    }
    std::ranges::sort(batch);
    if (!batch.empty()) return batch;
    return Status::NoSpace(fmt::format(
        "{} zones may be written beside those that are active, but identification needs one for each group, "
        "and one more for the other zones: {} groups were found",
        prober_.preparable(), pivots_.size()));
  }

  Status AllIndependent() {
    for (const ProbeZone& zone : zones_) {
      groups_.group_of_zone[zone.zone.value()] = kNone;
      groups_.confidence_percent[zone.zone.value()] = 100;
    }
    return Status::Ok();
  }

  // Puts zones of `batch` into groups, and returns those that must be tried once more.
  Result<Zones> Classify(const Zones& batch) {
    Zones unplaced = batch, again;
    if (!pivots_.empty()) {
      ISOZONE_ASSIGN_OR_RETURN(Zones left, ConfirmGuesses(batch));
      ISOZONE_ASSIGN_OR_RETURN(left, HalveAndConfirm(left));
      unplaced.clear();
      for (const ZoneId zone : left) (tried_.insert(zone).second ? again : unplaced).push_back(zone);
    }
    ISOZONE_RETURN_IF_ERROR(FoundGroups(std::move(unplaced)));
    ISOZONE_RETURN_IF_ERROR(CalibrateHalving(batch));
    for (const ZoneId zone : batch) RememberSuccessor(zone);
    return again;
  }

  // --- Guesses: the group that followed the last time after the same two groups ---

  using Context = std::pair<uint16_t, uint16_t>;

  Result<Zones> ConfirmGuesses(const Zones& batch) {
    if (guesses_ >= kFirstGuesses && right_guesses_ * 2 < guesses_) return batch;
    std::map<size_t, Zones> by_pair;
    Zones left;
    Context context = context_;
    for (const ZoneId zone : batch) {
      const auto guess = successor_.find(context);
      const uint16_t group = guess == successor_.end() ? kNone : guess->second;
      if (group == kNone) left.push_back(zone);
      if (group != kNone) by_pair[group / 2].push_back(zone), ++guesses_;
      context = {context.second, group};
    }
    for (const auto& [pair, zones] : by_pair) {
      ISOZONE_ASSIGN_OR_RETURN(const Zones wrong, Confirm(pair, zones));
      right_guesses_ += zones.size() - wrong.size();
      left.insert(left.end(), wrong.begin(), wrong.end());
    }
    std::ranges::sort(left);
    return left;
  }

  void RememberSuccessor(ZoneId zone) {
    const uint16_t group = groups_.group_of_zone[zone.value()];
    successor_[context_] = group;
    context_ = {context_.second, group};
  }

  // --- Halving ---

  size_t pairs() const { return (pivots_.size() + 1) / 2; }

  // Returns the zones that were not confirmed.
  Result<Zones> HalveAndConfirm(const Zones& zones) {
    if (!halving_works_) return ConfirmEveryPair(zones);
    std::vector<size_t> pair_of(zones.size());
    for (size_t bit = 0; bit < halving_.size(); ++bit) {
      const std::vector<Pivot> pivots = PivotsOfBit(bit);
      ISOZONE_ASSIGN_OR_RETURN(
          const std::vector<Interference> interference,
          probe_.Measure(pivots, zones, kLargestBatch, halving_[bit], LatencyProbe::Meeting::kMay));
      for (size_t i = 0; i < zones.size(); ++i) {
        if (interference[i] != Interference::kNone) pair_of[i] |= size_t{1} << bit;
      }
    }
    std::map<size_t, Zones> by_pair;
    for (size_t i = 0; i < zones.size(); ++i) by_pair[pair_of[i]].push_back(zones[i]);
    Zones left;
    for (const auto& [pair, members] : by_pair) {
      ISOZONE_ASSIGN_OR_RETURN(const Zones wrong, Confirm(pair, members));
      left.insert(left.end(), wrong.begin(), wrong.end());
    }
    return left;
  }

  Result<Zones> ConfirmEveryPair(Zones zones) {
    for (size_t pair = 0; pair < pairs() && !zones.empty(); ++pair) {
      ISOZONE_ASSIGN_OR_RETURN(zones, Confirm(pair, zones));
    }
    return zones;
  }

  std::vector<Pivot> PivotsOfBit(size_t bit) const {
    std::vector<Pivot> pivots;
    for (size_t group = 0; group < pivots_.size(); ++group) {
      if (((group / 2) >> bit & 1) != 0) pivots.push_back({pivots_[group], halving_load_});
    }
    return pivots;
  }

  // Many pivots at once slow all needles. So the ranges for halving come from zones whose group is known, in a crowd of
  // the size that halving uses. If delayed and undelayed needles cannot be told apart there, zones are measured against
  // one pair after another instead.
  Status CalibrateHalving(const Zones& batch) {
    if (halving_groups_ == pivots_.size()) return Status::Ok();
    halving_groups_ = pivots_.size();
    halving_.assign(static_cast<size_t>(std::bit_width(pairs() - 1)), InterferenceRanges());
    Zones known;
    for (const ZoneId zone : batch) {
      if (groups_.group_of_zone[zone.value()] != kNone) known.push_back(zone);
    }
    for (size_t i = 0; known.size() < kLargestBatch; ++i)
      known.push_back(known[i]);  // to the size of a crowd of halving
    for (halving_load_ = 1; halving_load_ <= kMostHalvingLoad; halving_load_ *= 2) {
      halving_works_ = true;
      for (size_t bit = 0; bit < halving_.size() && halving_works_; ++bit) {
        ISOZONE_RETURN_IF_ERROR(CalibrateBit(bit, known));
      }
      if (halving_works_) break;
    }
    return Status::Ok();
  }

  Status CalibrateBit(size_t bit, const Zones& known) {
    const std::vector<Pivot> pivots = PivotsOfBit(bit);
    std::vector<int64_t> undelayed, delayed;
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> latencies,
                             probe_.Latencies(pivots, known, LatencyProbe::Meeting::kMay));
    for (size_t i = 0; i < known.size(); ++i) {
      const size_t pair = groups_.group_of_zone[known[i].value()] / 2;
      ((pair >> bit & 1) != 0 ? delayed : undelayed).push_back(latencies[i]);
    }
    if (undelayed.empty() || delayed.empty()) {
      halving_works_ = false;
      return Status::Ok();
    }
    const auto longest_undelayed =
        static_cast<double>(std::max(probe_.calibration().undelayed_in_crowd_ns, Quantile(undelayed, 0.95)));
    const auto shortest_delayed = static_cast<double>(Quantile(delayed, 0.05));
    if (shortest_delayed < kHalvingSeparation * longest_undelayed) halving_works_ = false;
    const auto limit = static_cast<int64_t>(std::sqrt(longest_undelayed * shortest_delayed));
    // No latency is doubtful here, since a wrong pair will not be confirmed.
    halving_[bit] = {
        .none_to = limit, .light_from = limit + 1, .light_to = INT64_MAX, .heavy_from = INT64_MAX, .heavy_to = 0};
    return Status::Ok();
  }

  // --- Confirming: the only way into a group ---

  // How many confirmations a zone needs to become a member of a group.
  int confirmations() const { return probe_.calibration().false_interference > kRareFalseInterference ? 2 : 1; }

  // Puts the zones that belong to `pair` into its groups, and returns the others.
  Result<Zones> Confirm(size_t pair, const Zones& zones) {
    if (pair >= pairs()) return zones;
    std::vector<Pivot> pivots;  // the larger one is sent first, because sending it takes the host longer
    if (2 * pair + 1 < pivots_.size()) pivots.push_back({pivots_[2 * pair + 1], probe_.calibration().heavy_load});
    pivots.push_back({pivots_[2 * pair], 1});
    return ConfirmWith(pivots, {static_cast<uint16_t>(2 * pair), static_cast<uint16_t>(2 * pair + 1)}, zones,
                       confirmations());
  }

  Result<Zones> ConfirmWith(std::span<const Pivot> pivots, std::pair<uint16_t, uint16_t> groups, const Zones& zones,
                            int times) {
    std::map<ZoneId, std::optional<Interference>> seen;
    Zones left, candidates = zones;
    for (int time = 0; time < times; ++time) {
      ISOZONE_ASSIGN_OR_RETURN(
          const std::vector<Interference> interference,
          probe_.Measure(pivots, candidates, probe_.calibration().small_crowd, probe_.calibration().ranges));
      Zones again;
      for (size_t i = 0; i < candidates.size(); ++i) {
        std::optional<Interference>& before = seen[candidates[i]];
        const bool member = (interference[i] == Interference::kLight ||
                             (interference[i] == Interference::kHeavy && pivots.size() > 1)) &&
                            before.value_or(interference[i]) == interference[i];
        before = interference[i];
        (member ? again : left).push_back(candidates[i]);
      }
      candidates = std::move(again);
    }
    for (const ZoneId zone : candidates) {
      Join(zone, seen[zone] == Interference::kLight ? groups.first : groups.second, times);
    }
    return left;
  }

  void Join(ZoneId zone, uint16_t group, int times) {
    // One more than was seen, so that no number of samples counts as certainty.
    JoinWith(std::pow(probe_.calibration().false_interference + 1.0 / 600, times), zone, group);
  }

  // --- Founding groups ---

  // Makes groups of zones that no known group has. A zone in use that holds little data cannot be a pivot, so it waits
  // until all groups are found.
  Status FoundGroups(Zones unplaced) {
    const auto not_pivots = std::stable_partition(unplaced.begin(), unplaced.end(),
                                                  [this](ZoneId zone) { return probe_.CanBePivot(zone); });
    not_pivots_.insert(not_pivots_.end(), not_pivots, unplaced.end());
    unplaced.erase(not_pivots, unplaced.end());
    while (!unplaced.empty()) {
      const ZoneId zone = unplaced.front();
      unplaced.erase(unplaced.begin());
      ISOZONE_ASSIGN_OR_RETURN(const bool joined, HoldAgainstEveryGroup(zone));
      if (joined) continue;
      if (pivots_.size() == ZoneGroups::kMostGroups) return Status::NotSupported("too many independent zone groups");
      ISOZONE_RETURN_IF_ERROR(probe_.PreparePivot(zone));
      const auto group = static_cast<uint16_t>(pivots_.size());
      pivots_.push_back(zone);
      if (IsEmptyAtFirst(zone)) ++prepared_pivots_;
      Join(zone, group, 2);
      // All unplaced zones are needles once; those that are delayed are needles again, in smaller crowds.
      const Pivot pivot{zone, 1};
      ISOZONE_ASSIGN_OR_RETURN(
          const std::vector<Interference> interference,
          probe_.Measure({&pivot, 1}, unplaced, probe_.calibration().crowd, probe_.calibration().ranges));
      Zones delayed, undelayed;
      for (size_t i = 0; i < unplaced.size(); ++i) {
        (interference[i] == Interference::kNone ? undelayed : delayed).push_back(unplaced[i]);
      }
      ISOZONE_ASSIGN_OR_RETURN(const Zones wrong, ConfirmWith({&pivot, 1}, {group, group}, delayed, 1));
      undelayed.insert(undelayed.end(), wrong.begin(), wrong.end());
      unplaced = std::move(undelayed);
    }
    return Status::Ok();
  }

  void JoinWith(double chance_wrong, ZoneId zone, uint16_t group) {
    if (groups_.group_of_zone[zone.value()] == kNone) ++placed_;
    groups_.group_of_zone[zone.value()] = group;
    groups_.confidence_percent[zone.value()] = static_cast<uint8_t>(std::floor(100 * (1 - chance_wrong)));
  }

  // Tries to place one zone. An undelayed needle is certain, since nothing makes a read faster. So a zone belongs to a
  // group if its needles are delayed so many times in a row that another reason is unlikely.
  Result<bool> HoldAgainstEveryGroup(ZoneId zone) {
    const double chance = probe_.calibration().false_interference_alone;
    const auto groups = static_cast<double>(pivots_.size());
    int times = kTimesDelayed;
    while (groups * std::pow(chance, times) > kMayBeWrong && times < kMostTimesDelayed) ++times;
    for (size_t group = 0; group < pivots_.size(); ++group) {
      const Pivot pivot{pivots_[group], 1};
      bool undelayed = false;
      for (int time = 0; time < times && !undelayed; ++time) {
        ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> latency, probe_.Latencies({&pivot, 1}, {&zone, 1}));
        undelayed = latency.front() <= probe_.calibration().undelayed_alone_ns;
      }
      if (undelayed) continue;
      JoinWith(std::min(1.0, groups * std::pow(chance, times)), zone, static_cast<uint16_t>(group));
      return true;
    }
    return false;
  }

  bool IsEmptyAtFirst(ZoneId zone) const {
    const auto found = std::ranges::lower_bound(zones_, zone, {}, &ProbeZone::zone);
    return found->readable == 0;
  }

  // Adds the bytes that it writes to `written`.
  Status MeasureBandwidth(uint64_t& written) {
    std::vector<int64_t> took_ns;
    for (size_t i = 0, tries = 0; i < zones_.size() && took_ns.empty() && tries < kTriesOfBandwidth; ++i) {
      if (zones_[i].readable > 0 || prober_.preparable() == 0) continue;
      ++tries;
      Result<std::vector<int64_t>> timed = prober_.TimeWrites(zones_[i].zone, kTimedWrites);
      const bool failed = !timed.ok() && prober_.failed_zone().has_value();
      const Status released = prober_.Release({&zones_[i].zone, 1});
      if (failed) continue;  // another zone may work
      ISOZONE_RETURN_IF_ERROR(released);
      ISOZONE_ASSIGN_OR_RETURN(took_ns, std::move(timed));
    }
    written += took_ns.size() * prober_.write_unit();
    if (took_ns.size() < kLeastTimedWrites) return Status::Ok();
    took_ns.erase(took_ns.begin(), took_ns.begin() + static_cast<ptrdiff_t>(took_ns.size() / 2));
    const int64_t unit_ns = std::max<int64_t>(1, Quantile(std::move(took_ns), 0.5));
    groups_.zone_bandwidth = prober_.write_unit() * static_cast<uint64_t>(kSecondNs) / static_cast<uint64_t>(unit_ns);
    return Status::Ok();
  }

  void NumberByFirstZone() {
    std::vector<uint16_t> number(pivots_.size(), kNone);
    uint16_t next = 0;
    for (uint16_t& group : groups_.group_of_zone) {
      if (group == kNone) continue;
      if (number[group] == kNone) number[group] = next++;
      group = number[group];
    }
    std::vector<uint16_t> channels(groups_.channel_of_group.size());
    std::map<uint16_t, uint16_t> channel_number;
    std::vector<size_t> by_number(pivots_.size());
    for (size_t old = 0; old < number.size(); ++old) by_number[number[old]] = old;
    for (size_t group = 0; group < channels.size(); ++group) {
      const uint16_t old = groups_.channel_of_group[by_number[group]];
      channels[group] = channel_number.emplace(old, static_cast<uint16_t>(channel_number.size())).first->second;
    }
    groups_.channel_of_group = std::move(channels);
  }

  Prober& prober_;
  const IdentifyOptions& options_;
  std::vector<ProbeZone> zones_;  // in order
  uint64_t placed_ = 0;           // zones whose group is known
  LatencyProbe probe_;
  ZoneGroups groups_;
  ZoneId first_pivot_;  // the pivot of the calibration
  Zones pivots_;        // by group
  size_t prepared_pivots_ = 0;
  Zones not_pivots_;  // unplaced zones that cannot be pivots

  std::map<Context, uint16_t> successor_;
  Context context_{kNone, kNone};  // groups of the two zones before
  uint64_t guesses_ = 0;
  uint64_t right_guesses_ = 0;

  std::set<ZoneId> tried_;                   // zones that a batch left over
  std::vector<InterferenceRanges> halving_;  // by bit
  size_t halving_groups_ = 0;                // the number of groups that halving_ was calibrated for
  uint32_t halving_load_ = 1;                // of each pivot
  bool halving_works_ = false;
};

}  // namespace

Result<IdentifyReport> IdentifyZoneGroups(Prober& prober, const IdentifyOptions& options) {
  if (prober.zones().empty()) return Status::NoSpace("the device has no zone that can be read");
  std::vector<IdentifyReport::SetAside> set_aside;
  for (;;) {
    Identifier identifier(prober, options, set_aside);
    Result<IdentifyReport> report = identifier.Run();
    if (report.ok()) {
      report->set_aside = std::move(set_aside);
      return report;
    }
    if (!identifier.lost_zone() || set_aside.size() == kMostSetAside) return report;
    set_aside.push_back({*identifier.lost_zone(), report.status()});
  }
}

}  // namespace isozone
