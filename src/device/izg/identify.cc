#include "device/izg/identify.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "base/uri.h"
#include "device/izg/channels.h"
#include "device/izg/doubts.h"
#include "device/izg/group_numbers.h"
#include "device/izg/halving_limit.h"
#include "device/izg/latency_probe.h"
#include "device/izg/zone_bandwidth.h"

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
constexpr int kRounds = 4;              // of guessing or halving, before a zone is held against every group
constexpr size_t kFewLeft = 48;         // zones for which halving is not worth its pivots, at first
// How many of so many needles of a zone a pivot of the zone itself must delay, before the zone founds a group.
constexpr int kOwnNeedles = 6, kOwnDelayed = 5;
constexpr int kMostFresh = 3;  // zones that a group delayed only when more had been written to them
// What is written while the device answers reads from memory: the next of these is tried if the one before does not do.
constexpr std::array<Preparation, 3> kPreparations{
    {{.beyond = 0, .filler = 0}, {.beyond = kMiB, .filler = 128 * kMiB}, {.beyond = kMiB, .filler = kGiB}}};
constexpr size_t kMostFillerShare = 4;  // at most one zone in so many is written as filler
// With a higher probability that any zone is in a wrong group, there is no result.
constexpr double kRefused = 0.25;
constexpr uint16_t kNone = ZoneGroups::kUnknown;
// If more zones fail, the cause is not in single zones.
constexpr size_t kMostLeftOut = 16;

class Identifier {
 public:
  // Identifies all zones of the prober except those of `left_out`. `preparation` is one of kPreparations.
  Identifier(Prober& prober, const IdentifyOptions& options, const std::vector<IdentifyReport::LeftOut>& left_out,
             size_t preparation)
      : prober_(prober),
        options_(options),
        preparation_(preparation),
        probe_(prober, options.seed, kPreparations[preparation].beyond, [this] { return BeforeBurst(); }) {
    for (const ProbeZone& zone : prober.zones()) {
      const bool aside = std::ranges::find(left_out, zone.zone, &IdentifyReport::LeftOut::zone) != left_out.end();
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
    report.may_be_wrong = doubts_.any_wrong();
    if (report.may_be_wrong > kRefused) {
      return Status::Busy(
          "so many reads are late by chance that the groups would be uncertain: measure when the device "
          "and this host have nothing else to do");
    }
    report.caveat = caveat_;
    report.left_out = std::move(unknown_);
    ISOZONE_ASSIGN_OR_RETURN(const ZoneBandwidth bandwidth, MeasureZoneBandwidth(prober_, zones_));
    groups_.zone_bandwidth = bandwidth.bytes_per_second;
    report.zones = zones_.size();
    report.reads = probe_.counts().reads;
    report.bursts = probe_.counts().bursts;
    report.burst_ns = probe_.counts().burst_ns;
    report.bytes_prepared = probe_.counts().bytes_prepared + bandwidth.bytes_written;
    report.false_interference = probe_.calibration().false_interference;
    report.unreadable_blocks = probe_.counts().unreadable_blocks;
    report.filler = preparation_ == 0 ? 0 : FillerZones() * prober_.geometry().zone_capacity;
    SetConfidence();
    NumberByFirstZone(groups_);
    report.groups = std::move(groups_);
    return report;
  }

  // The zone that the error of Run was about, if all others can still be measured.
  std::optional<ZoneId> lost_zone() const { return probe_.lost_zone(); }
  // Whether the device answered reads from memory, so that more must be written.
  bool met_memory() const { return met_memory_; }
  ProbeCounts counts() const { return probe_.counts(); }

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
    // What a batch leaves over joins the next one, since a burst for a few needles is expensive.
    Zones again{first_pivot_};
    while (next < zones_.size() || !again.empty()) {
      const bool first = next == 0;
      ISOZONE_ASSIGN_OR_RETURN(const Zones batch, TakeBatch(next, std::move(again)));
      ISOZONE_RETURN_IF_ERROR(PrepareBatch(batch, first));
      if (first) {
        ISOZONE_ASSIGN_OR_RETURN(const LatencyProbe::Delays delays, Calibrate(batch));
        if (delays != LatencyProbe::Delays::kAlways) return WithoutDelays(delays);
        doubts_.Calibrated(probe_.calibration().false_interference_bound);
      }
      ISOZONE_ASSIGN_OR_RETURN(again, Classify(batch));
      ISOZONE_RETURN_IF_ERROR(probe_.Release(Done(batch)));
    }
    for (const ZoneId zone : not_pivots_) ISOZONE_RETURN_IF_ERROR(HoldAgainstEveryGroup(zone).status());
    return SettleGroups();
  }

  Status PrepareBatch(const Zones& batch, bool first) {
    batch_ = batch;
    ISOZONE_RETURN_IF_ERROR(probe_.PrepareNeedles(batch));
    for (const ZoneId zone : batch) {
      // Most groups are founded in the first batch. Filler can then be written behind all their pivots at once.
      if (zone == first_pivot_ || (first && preparation_ > 0)) ISOZONE_RETURN_IF_ERROR(probe_.PreparePivot(zone));
    }
    ISOZONE_RETURN_IF_ERROR(WriteFiller());
    if (first) return probe_.FindWhetherCold(batch);
    return probe_.WarmUp(batch);
  }

  // Tries again when the host is busy: something else may use it for a moment.
  Result<LatencyProbe::Delays> Calibrate(const Zones& batch) {
    Result<LatencyProbe::Delays> delays = probe_.Calibrate(first_pivot_, batch);
    for (int tries = 1; tries < kTriesOfCalibration && delays.status().Is(StatusCode::kBusy); ++tries) {
      delays = probe_.Calibrate(first_pivot_, batch);
    }
    return delays;
  }

  // --- What to do where the device may answer from memory ---

  Status FromMemory() {
    met_memory_ = true;
    return Status::NotSupported(fmt::format(
        "the device answers reads from memory, even of what was followed by {} of other writes, so their latency does "
        "not show which zones share a die: store more data, and measure again",
        FormatSize(FillerZones() * prober_.geometry().zone_capacity)));
  }

  // A needle in the zone of the first pivot was not always delayed, or never.
  Status WithoutDelays(LatencyProbe::Delays delays) {
    const bool written = IsEmptyAtFirst(first_pivot_);
    if (written && preparation_ + 1 < kPreparations.size()) return FromMemory();
    if (delays == LatencyProbe::Delays::kSometimes) return FromMemory();
    if (written) {
      caveat_ = fmt::format(
          "no zone slowed another even after {} of other writes; a device that answers reads of newer data from memory "
          "looks the same",
          FormatSize(FillerZones() * prober_.geometry().zone_capacity));
    }
    return AllIndependent();
  }

  // How many zones beside a batch are written as filler.
  size_t FillerZones() const {
    const uint64_t capacity = prober_.geometry().zone_capacity;
    const size_t wanted = (kPreparations[preparation_].filler + capacity - 1) / capacity;
    return std::min(wanted, std::min<size_t>(zones_.size(), prober_.preparable()) / kMostFillerShare);
  }

  Status WriteFiller() {
    Zones filler;
    const size_t wanted = FillerZones();
    for (auto zone = zones_.rbegin(); zone != zones_.rend() && filler.size() < wanted; ++zone) {
      const bool is_free = zone->readable == 0 && !std::ranges::binary_search(batch_, zone->zone) &&
                           std::ranges::find(pivots_, zone->zone) == pivots_.end() && zone->zone != first_pivot_;
      if (is_free) filler.push_back(zone->zone);
    }
    return filler.empty() ? Status::Ok() : probe_.WriteFiller(filler);
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
    const size_t filler = FillerZones();
    const size_t most = std::min(next == 0 ? kFirstBatch : kLargestBatch, zones_.size() + 1 - filler);
    const size_t used = prepared_pivots_ + filler;
    const size_t preparable = prober_.preparable() - std::min<size_t>(prober_.preparable(), used);
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
      doubt_[zone.zone.value()] = caveat_.empty() ? 0 : 1;
    }
    return Status::Ok();
  }

  // Puts zones of `batch` into groups, and returns those that must be tried once more.
  Result<Zones> Classify(const Zones& batch) {
    Zones unplaced = batch, again;
    if (!pivots_.empty()) {
      ISOZONE_ASSIGN_OR_RETURN(Zones left, ConfirmGuesses(batch));
      unplaced.clear();
      if (left.size() < kFewLeft) {  // most of them were only read late
        const auto last =
            std::stable_partition(left.begin(), left.end(), [this](ZoneId zone) { return tried_[zone] + 1 < kRounds; });
        for (auto zone = left.begin(); zone != last; ++zone) ++tried_[*zone], again.push_back(*zone);
        left.erase(left.begin(), last);
      }
      ISOZONE_ASSIGN_OR_RETURN(left, HalveAndConfirm(left));
      for (const ZoneId zone : left) (++tried_[zone] < kRounds ? again : unplaced).push_back(zone);
    }
    ISOZONE_RETURN_IF_ERROR(FoundGroups(std::move(unplaced)));
    ISOZONE_RETURN_IF_ERROR(CalibrateHalving(batch));
    for (const ZoneId zone : batch) RememberSuccessor(zone);
    return again;
  }

  // --- Guesses: the group that followed the last time after the same two groups ---

  using Context = std::pair<uint16_t, uint16_t>;

  // Returns the zones that were not confirmed.
  Result<Zones> ConfirmGuesses(const Zones& batch) {
    if (guesses_ >= kFirstGuesses && right_guesses_ * 2 < guesses_) return batch;
    Candidates candidates;
    Zones left;
    std::map<uint32_t, uint16_t> guessed;  // by zone
    const auto group_of = [this, &guessed](uint32_t zone) {
      const auto guess = guessed.find(zone);
      return guess == guessed.end() ? groups_.group_of_zone[zone] : guess->second;
    };
    for (const ZoneId zone : batch) {
      if (zone.value() < 2) {
        left.push_back(zone);
        continue;
      }
      const auto guess = successor_.find({group_of(zone.value() - 2), group_of(zone.value() - 1)});
      if (guess == successor_.end()) {
        left.push_back(zone);
        continue;
      }
      guessed[zone.value()] = guess->second;
      candidates[guess->second / set_size()].push_back({zone, guess->second});
      ++guesses_;
    }
    const uint64_t placed = placed_;
    ISOZONE_ASSIGN_OR_RETURN(const Zones wrong, Place(Doubts::Proposal::kGuess, std::move(candidates)));
    right_guesses_ += placed_ - placed;
    left.insert(left.end(), wrong.begin(), wrong.end());
    std::ranges::sort(left);
    return left;
  }

  // Learns from the zones whose predecessors have groups, too.
  void RememberSuccessor(ZoneId zone) {
    if (zone.value() < 2) return;
    const std::vector<uint16_t>& groups = groups_.group_of_zone;
    const Context context{groups[zone.value() - 2], groups[zone.value() - 1]};
    const uint16_t group = groups[zone.value()];
    if (context.first != kNone && context.second != kNone && group != kNone) successor_[context] = group;
  }

  // --- Halving ---

  // The groups that one burst tells apart.
  size_t set_size() const { return probe_.calibration().levels; }
  size_t sets() const { return (pivots_.size() + set_size() - 1) / set_size(); }

  // Returns the zones that were not confirmed.
  Result<Zones> HalveAndConfirm(const Zones& zones) {
    if (zones.empty()) return zones;
    if (!halving_works_) return ConfirmEverySet(zones);
    std::vector<size_t> set_of(zones.size());
    for (size_t bit = 0; bit < halving_.size(); ++bit) {
      ISOZONE_ASSIGN_OR_RETURN(const std::vector<NeedleTime> times,
                               probe_.Latencies(PivotsOfBit(bit), zones, LatencyProbe::Meeting::kMay));
      const int64_t limit = halving_[bit].For(times);
      for (size_t i = 0; i < zones.size(); ++i) {
        if (times[i].latency_ns > limit) set_of[i] |= size_t{1} << bit;
      }
    }
    Candidates candidates;
    for (size_t i = 0; i < zones.size(); ++i) candidates[set_of[i]].push_back({zones[i], kNone});
    return Place(Doubts::Proposal::kHalving, std::move(candidates));
  }

  // The zones that a set lets pass need other confirmations as if halving had proposed them.
  Result<Zones> ConfirmEverySet(Zones zones) {
    for (size_t set = 0; set < sets() && !zones.empty(); ++set) {
      Candidates candidates;
      for (const ZoneId zone : zones) candidates[set].push_back({zone, kNone});
      ISOZONE_ASSIGN_OR_RETURN(zones, Place(Doubts::Proposal::kHalving, std::move(candidates)));
    }
    return zones;
  }

  std::vector<Pivot> PivotsOfBit(size_t bit) const {
    std::vector<Pivot> pivots;
    for (size_t group = 0; group < pivots_.size(); ++group) {
      if (((group / set_size()) >> bit & 1) != 0) pivots.push_back({pivots_[group], halving_load_});
    }
    return pivots;
  }

  // Many pivots at once slow all needles. So the ranges for halving come from zones whose group is known, in a crowd of
  // the size that halving uses. If delayed and undelayed needles cannot be told apart there, zones are measured against
  // one pair after another instead.
  Status CalibrateHalving(const Zones& batch) {
    if (halving_sets_ == sets() && halving_works_) return Status::Ok();
    if (halving_groups_ == pivots_.size()) return Status::Ok();
    halving_sets_ = sets();
    halving_groups_ = pivots_.size();
    halving_.assign(static_cast<size_t>(std::bit_width(sets() - 1)), HalvingLimit());
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
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<NeedleTime> times,
                             probe_.Latencies(pivots, known, LatencyProbe::Meeting::kMay));
    for (size_t i = 0; i < known.size(); ++i) {
      const size_t set = groups_.group_of_zone[known[i].value()] / set_size();
      ((set >> bit & 1) != 0 ? delayed : undelayed).push_back(times[i].latency_ns);
    }
    if (undelayed.empty() || delayed.empty()) {
      halving_works_ = false;
      return Status::Ok();
    }
    const auto longest_undelayed =
        static_cast<double>(std::max(probe_.calibration().undelayed_in_crowd_ns, Quantile(undelayed, 0.95)));
    const auto shortest_delayed = static_cast<double>(Quantile(delayed, 0.05));
    if (shortest_delayed < kHalvingSeparation * longest_undelayed) halving_works_ = false;
    // No latency is doubtful here, since a wrong set will not be confirmed.
    halving_[bit] = HalvingLimit(longest_undelayed, shortest_delayed, times);
    return Status::Ok();
  }

  // --- Confirming: the only way into a group ---

  struct Candidate {
    ZoneId zone;
    uint16_t group;  // that it was proposed for; kNone: for any of the set
  };
  using Candidates = std::map<size_t, std::vector<Candidate>>;  // by set

  // Puts the candidates that are confirmed into groups, and returns the others. All of them are confirmed once before
  // any is confirmed again, so that what disturbed one measurement is over at the next.
  Result<Zones> Place(Doubts::Proposal proposal, Candidates&& candidates) {
    Zones left;
    for (size_t pass = 1;; ++pass) {
      for (auto& [set, of_set] : candidates) {
        ISOZONE_ASSIGN_OR_RETURN(Confirmation confirmation, Confirm(set, of_set, pass % 2 == 0));
        doubts_.Reject(proposal, pass, confirmation.wrong);
        left.insert(left.end(), confirmation.left.begin(), confirmation.left.end());
        of_set = std::move(confirmation.confirmed);
      }
      if (!doubts_.Suffices(proposal, pass)) continue;
      doubts_.Join(proposal, pass);
      for (const auto& [set, of_set] : candidates) {
        for (const Candidate& candidate : of_set) Join(candidate.zone, candidate.group, 0);
      }
      return left;
    }
  }

  struct Confirmation {
    std::vector<Candidate> confirmed;  // with their groups
    Zones left;
    uint64_t wrong = 0;  // of those left, the ones that were read sooner than their group allows
  };

  // Measures the candidates of a set in one burst, or a few. The loads of the pivots rise with the number of the group,
  // or fall if `reversed`.
  Result<Confirmation> Confirm(size_t set, const std::vector<Candidate>& candidates, bool reversed) {
    const size_t begin = std::min(set * set_size(), pivots_.size());
    const size_t count = std::min(set_size(), pivots_.size() - begin);
    Confirmation confirmation;
    Zones zones;
    for (const Candidate& candidate : candidates) zones.push_back(candidate.zone);
    if (count == 0) {
      confirmation.left = std::move(zones);
      confirmation.wrong = confirmation.left.size();
      return confirmation;
    }
    std::vector<Pivot> pivots(count);
    std::vector<uint16_t> group_of_pivot(count);
    for (size_t level = 0; level < count; ++level) {
      // The larger ones are sent first, because sending them takes the host longer.
      const size_t group = begin + (reversed ? count - 1 - level : level);
      pivots[count - 1 - level] = {pivots_[group], kLoads[level]};
      group_of_pivot[count - 1 - level] = static_cast<uint16_t>(group);
    }
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<Verdict> verdicts,
                             probe_.Measure(pivots, zones, probe_.calibration().small_crowd));
    for (size_t i = 0; i < zones.size(); ++i) {
      const uint16_t proposed = candidates[i].group;
      const uint16_t group = verdicts[i] < 0 ? kNone : group_of_pivot[static_cast<size_t>(verdicts[i])];
      if (group != kNone && (proposed == kNone || proposed == group)) {
        confirmation.confirmed.push_back({zones[i], group});
        continue;
      }
      confirmation.left.push_back(zones[i]);
      const bool is_lighter = group != kNone && (reversed ? group > proposed : group < proposed);
      if (verdicts[i] == kUndelayed || is_lighter) ++confirmation.wrong;
    }
    return confirmation;
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
      ISOZONE_ASSIGN_OR_RETURN(const bool founded, Found(zone, tried_.contains(zone)));
      if (founded) {
        ISOZONE_ASSIGN_OR_RETURN(unplaced, JoinFounded(zone, unplaced));
      }
    }
    return Status::Ok();
  }

  // Makes `zone` the pivot of a new group, or puts it into the group that it belongs to. If it was not tried before, it
  // was a needle of all groups just now.
  Result<bool> Found(ZoneId zone, bool was_tried) {
    bool joined = false;
    if (was_tried) {
      ISOZONE_ASSIGN_OR_RETURN(joined, HoldAgainstEveryGroup(zone));
    }
    if (joined) return false;
    if (pivots_.size() == ZoneGroups::kMostGroups) return Status::NotSupported("too many independent zone groups");
    const uint64_t written = probe_.counts().bytes_prepared;
    ISOZONE_RETURN_IF_ERROR(probe_.PreparePivot(zone));
    if (probe_.counts().bytes_prepared > written) ISOZONE_RETURN_IF_ERROR(WriteFiller());
    int delayed = 0;
    for (int i = 0; i < kOwnNeedles; ++i) {
      const Result<bool> is_delayed = probe_.IsDelayed(zone, zone);
      // A pivot that comes from memory is over before its needle is sent.
      if (is_delayed.status().Is(StatusCode::kBusy) && preparation_ + 1 < kPreparations.size()) return FromMemory();
      ISOZONE_RETURN_IF_ERROR(is_delayed.status());
      delayed += *is_delayed ? 1 : 0;
    }
    if (delayed < kOwnDelayed && preparation_ + 1 < kPreparations.size()) return FromMemory();
    if (delayed < kOwnDelayed) return LeaveUnknown(zone);
    // Its needles certainly read the flash by now. They did not if they only now wait for a group.
    ISOZONE_ASSIGN_OR_RETURN(joined, HoldAgainstEveryGroup(zone));
    if (joined && ++fresh_ > kMostFresh && preparation_ + 1 < kPreparations.size()) return FromMemory();
    if (joined) return false;
    const auto group = static_cast<uint16_t>(pivots_.size());
    pivots_.push_back(zone);
    if (IsEmptyAtFirst(zone)) ++prepared_pivots_;
    Join(zone, group, 0);
    return true;
  }

  // A few zones whose data always comes from memory do not spoil the rest.
  Result<bool> LeaveUnknown(ZoneId zone) {
    if (unknown_.size() == kMostLeftOut) return FromMemory();
    unknown_.push_back({zone, Status::NotSupported("reads of it are answered from memory")});
    ISOZONE_RETURN_IF_ERROR(probe_.Release({&zone, 1}));
    return false;
  }

  // All of `zones` are needles of the newest group once; those that are delayed are needles again, in smaller crowds.
  // Returns those that are of other groups.
  Result<Zones> JoinFounded(ZoneId founder, const Zones& zones) {
    const auto group = static_cast<uint16_t>(pivots_.size() - 1);
    const Pivot pivot{founder, 1};
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<Verdict> verdicts,
                             probe_.Measure({&pivot, 1}, zones, probe_.calibration().crowd));
    Zones delayed, others;
    for (size_t i = 0; i < zones.size(); ++i) (verdicts[i] == kUndelayed ? others : delayed).push_back(zones[i]);
    const int times = TimesToHold();
    for (int time = 1; time < times && !delayed.empty(); ++time) {
      ISOZONE_ASSIGN_OR_RETURN(const std::vector<Verdict> again,
                               probe_.Measure({&pivot, 1}, delayed, probe_.calibration().small_crowd));
      Zones kept;
      for (size_t i = 0; i < delayed.size(); ++i) (again[i] == 0 ? kept : others).push_back(delayed[i]);
      delayed = std::move(kept);
    }
    for (const ZoneId zone : delayed) Join(zone, group, DoubtOfHolding());
    std::ranges::sort(others);
    return others;
  }

  // `doubt` is the probability that the group is wrong, if it is not one of those that doubts_ counts.
  void Join(ZoneId zone, uint16_t group, double doubt) {
    if (groups_.group_of_zone[zone.value()] == kNone) ++placed_;
    groups_.group_of_zone[zone.value()] = group;
    doubt_[zone.value()] = doubt;
    doubts_.JoinOtherwise(doubt);
  }

  // How many needles of a zone must be delayed by a group's pivot, all of them, if the zone is measured alone. An
  // undelayed needle is nearly certain, since nothing makes a read faster.
  int TimesToHold() const {
    const double chance = ChanceOfDelay();
    int times = kTimesDelayed;
    while (GroupsToCompare() * std::pow(chance, times) > kMayBeWrong && times < kMostTimesDelayed) ++times;
    return times;
  }
  double DoubtOfHolding() const { return std::min(1.0, GroupsToCompare() * std::pow(ChanceOfDelay(), TimesToHold())); }
  double ChanceOfDelay() const {
    return std::max(probe_.calibration().false_interference_alone, probe_.calibration().false_interference);
  }
  double GroupsToCompare() const { return static_cast<double>(std::max<size_t>(1, pivots_.size())); }

  Result<bool> HoldAgainstEveryGroup(ZoneId zone) {
    const int times = TimesToHold();
    for (size_t group = 0; group < pivots_.size(); ++group) {
      bool delayed = true;
      for (int time = 0; time < times && delayed; ++time) {
        ISOZONE_ASSIGN_OR_RETURN(delayed, probe_.IsDelayed(pivots_[group], zone));
      }
      if (!delayed) continue;
      Join(zone, static_cast<uint16_t>(group), DoubtOfHolding());
      return true;
    }
    return false;
  }

  // --- Settling ---

  // Finds the channels. Two groups that turn out to share a die become one.
  Status SettleGroups() {
    for (;;) {
      bool merged = false;
      ISOZONE_ASSIGN_OR_RETURN(Channels channels, FindChannels(probe_, pivots_, options_.seed));
      // The last groups come first, so that the numbers of the others stay.
      std::ranges::sort(channels.perhaps_one_group, std::greater<>(), &std::pair<size_t, size_t>::second);
      size_t last_merged = pivots_.size();
      for (const auto& [kept, dropped] : channels.perhaps_one_group) {
        if (dropped == last_merged) continue;
        ISOZONE_ASSIGN_OR_RETURN(const bool one, AreOneGroup(kept, dropped));
        if (!one) continue;
        MergeGroups(groups_.group_of_zone, kept, dropped);
        pivots_.erase(pivots_.begin() + static_cast<ptrdiff_t>(dropped));
        last_merged = dropped;
        merged = true;
      }
      if (merged) continue;
      groups_.channel_of_group = std::move(channels.channel_of_group);
      return Status::Ok();
    }
  }

  Result<bool> AreOneGroup(size_t a, size_t b) {
    int delayed = 0;
    for (int i = 0; i < kOwnNeedles; ++i) {
      ISOZONE_ASSIGN_OR_RETURN(const bool is_delayed, probe_.IsDelayed(pivots_[a], pivots_[b]));
      delayed += is_delayed ? 1 : 0;
    }
    return delayed >= kOwnDelayed;
  }

  // The doubt of all zones that were confirmed is shared among them.
  void SetConfidence() {
    double own = 0;
    for (const auto& [zone, doubt] : doubt_) own += doubt;
    const double shared = std::max(0.0, doubts_.any_wrong() - own) / static_cast<double>(std::max<size_t>(1, placed_));
    for (const auto& [zone, doubt] : doubt_) {
      groups_.confidence_percent[zone] = static_cast<uint8_t>(std::floor(100 * (1 - std::min(1.0, doubt + shared))));
    }
  }

  bool IsEmptyAtFirst(ZoneId zone) const {
    const auto found = std::ranges::lower_bound(zones_, zone, {}, &ProbeZone::zone);
    return found->readable == 0;
  }

  Prober& prober_;
  const IdentifyOptions& options_;
  const size_t preparation_;      // of kPreparations
  std::vector<ProbeZone> zones_;  // in order
  uint64_t placed_ = 0;           // zones whose group is known
  LatencyProbe probe_;
  ZoneGroups groups_;
  ZoneId first_pivot_;  // the pivot of the calibration
  Zones pivots_;        // by group
  size_t prepared_pivots_ = 0;
  Zones batch_;       // that is prepared now
  Zones not_pivots_;  // unplaced zones that cannot be pivots

  std::map<Context, uint16_t> successor_;
  uint64_t guesses_ = 0;
  uint64_t right_guesses_ = 0;

  Doubts doubts_;
  std::map<uint32_t, double> doubt_;  // by zone in a group: what Join was told
  std::string caveat_;
  bool met_memory_ = false;
  std::vector<IdentifyReport::LeftOut> unknown_;
  int fresh_ = 0;  // zones that a group delayed only when more had been written to them

  std::map<ZoneId, int> tried_;                   // how many batches left a zone over
  std::vector<HalvingLimit> halving_;             // by bit
  size_t halving_groups_ = 0, halving_sets_ = 0;  // that halving_ was calibrated for
  uint32_t halving_load_ = 1;                     // of each pivot
  bool halving_works_ = false;
};

}  // namespace

Result<IdentifyReport> IdentifyZoneGroups(Prober& prober, const IdentifyOptions& options) {
  if (prober.zones().empty()) return Status::NoSpace("the device has no zone that can be read");
  std::vector<IdentifyReport::LeftOut> left_out;
  ProbeCounts before;  // of what was begun and had to begin again
  for (size_t preparation = 0;;) {
    Identifier identifier(prober, options, left_out, preparation);
    Result<IdentifyReport> report = identifier.Run();
    if (report.ok()) {
      report->left_out.insert(report->left_out.begin(), left_out.begin(), left_out.end());
      report->reads += before.reads;
      report->bursts += before.bursts;
      report->burst_ns += before.burst_ns;
      report->bytes_prepared += before.bytes_prepared;
      return report;
    }
    before += identifier.counts();
    if (identifier.met_memory() && preparation + 1 < kPreparations.size()) {
      ++preparation;
      continue;
    }
    if (!identifier.lost_zone() || left_out.size() == kMostLeftOut) return report;
    left_out.push_back({*identifier.lost_zone(), report.status()});
  }
}

}  // namespace isozone
