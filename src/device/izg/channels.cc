#include "device/izg/channels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace isozone {
namespace {

constexpr size_t kTogether = 4;          // pivots in a burst
constexpr size_t kFewGroups = 8;         // with fewer groups, a burst has two pivots
constexpr size_t kSamplesOfPair = 8;     // on average
constexpr size_t kLeastSamples = 5;      // of each pair; with fewer, two late reads would distort the mean
constexpr double kLeastEffect = 0.06;    // of sharing a channel, as a share of the latency
constexpr double kClear = 0.05;          // the least distance between a group's own channel and any other
constexpr double kMayBeOneGroup = 0.25;  // least effect of two pivots on one die: half of a pivot, on average
constexpr int kTriesOfMeasurement = 6;   // while the result is not clear
constexpr double kNoiseFactor = 3;       // standard deviations of pairs that do not share, less for many pairs together

// The mean of the middle half, which excludes late reads.
double MiddleMean(std::vector<double> values) {
  std::ranges::sort(values);
  const auto quarter = std::ssize(values) / 4;
  const double sum = std::accumulate(values.begin() + quarter, values.end() - quarter, 0.0);
  return sum / static_cast<double>(std::ssize(values) - 2 * quarter);
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// How much longer the two groups of each pair take together than usual.
class Slowdowns {
 public:
  explicit Slowdowns(size_t groups) : groups_(groups), latencies_(groups * groups) {}

  // Adds the latency of `group` in a burst with `other`.
  void Add(size_t group, size_t other, double latency) { latencies_[group * groups_ + other].push_back(latency); }
  size_t samples(size_t a, size_t b) const { return latencies_[a * groups_ + b].size(); }
  // Computes the slowdowns from all latencies that were added.
  void Settle() {
    of_pair_.assign(groups_ * groups_, 1);
    std::vector<double> usual(groups_);
    for (size_t group = 0; group < groups_; ++group) usual[group] = Usual(group);
    for (size_t a = 0; a < groups_; ++a) {
      for (size_t b = a + 1; b < groups_; ++b) {
        std::vector<double> ratios;
        for (const double latency : latencies_[a * groups_ + b]) ratios.push_back(latency / usual[a]);
        for (const double latency : latencies_[b * groups_ + a]) ratios.push_back(latency / usual[b]);
        if (!ratios.empty()) of_pair_[a * groups_ + b] = of_pair_[b * groups_ + a] = MiddleMean(std::move(ratios));
      }
    }
  }
  double Of(size_t a, size_t b) const { return of_pair_[a * groups_ + b]; }

  // Either most pairs share no channel, or all do. So the lower half of them shows what is usual, and how much it
  // varies.
  struct Noise {
    double usual = 1;
    double deviation = 0;
    // The mean slowdown of `pairs` pairs above which they are taken to share a channel.
    double Cut(size_t pairs) const {
      return usual + std::max(kLeastEffect, kNoiseFactor * deviation / std::sqrt(static_cast<double>(pairs)));
    }
  };
  Noise MeasureNoise() const {
    std::vector<double> all;
    for (size_t a = 0; a < groups_; ++a) {
      for (size_t b = a + 1; b < groups_; ++b) all.push_back(Of(a, b));
    }
    const double middle = Median(all);
    std::vector<double> below;
    for (const double slowdown : all) {
      if (slowdown <= middle) below.push_back(middle - slowdown);
    }
    return {middle, 1.4826 * Median(below)};
  }

 private:
  double Usual(size_t group) const {
    std::vector<double> all;
    for (size_t other = 0; other < groups_; ++other) {
      const std::vector<double>& beside = latencies_[group * groups_ + other];
      all.insert(all.end(), beside.begin(), beside.end());
    }
    return all.empty() ? 1 : MiddleMean(std::move(all));
  }

  size_t groups_;
  std::vector<std::vector<double>> latencies_;  // of the first group of each pair beside the second
  std::vector<double> of_pair_;
};

Status MeasureTogether(LatencyProbe& probe, std::span<const ZoneId> pivots, std::span<const size_t> members,
                       Slowdowns& slowdowns) {
  std::vector<ZoneId> zones;
  for (const size_t group : members) zones.push_back(pivots[group]);
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<int64_t> latencies, probe.PivotLatencies(zones));
  for (size_t i = 0; i < members.size(); ++i) {
    for (size_t j = 0; j < members.size(); ++j) {
      if (i != j) slowdowns.Add(members[i], members[j], static_cast<double>(latencies[i]));
    }
  }
  return Status::Ok();
}

// Adds about kSamplesOfPair samples of each pair. First, bursts are drawn from all groups, shuffled each time; then the
// pairs follow that chance has brought together too seldom.
Status Measure(LatencyProbe& probe, std::span<const ZoneId> pivots, Random& random, Slowdowns& slowdowns) {
  const size_t together = pivots.size() < kFewGroups ? 2 : kTogether;
  const size_t rounds = kSamplesOfPair * (pivots.size() - 1) / (together - 1) + 1;
  std::vector<size_t> order(pivots.size());
  std::iota(order.begin(), order.end(), 0);
  const auto shuffle = [&order, &random](size_t from) {
    for (size_t i = order.size() - 1; i > from; --i) std::swap(order[i], order[from + random.Below(i - from + 1)]);
  };
  for (size_t round = 0; round < rounds; ++round) {
    shuffle(0);
    for (size_t begin = 0; begin + together <= order.size(); begin += together) {
      const auto members = std::span(order).subspan(begin, together);
      ISOZONE_RETURN_IF_ERROR(MeasureTogether(probe, pivots, members, slowdowns));
    }
  }
  for (size_t a = 0; a < pivots.size(); ++a) {
    for (size_t b = a + 1; b < pivots.size(); ++b) {
      while (slowdowns.samples(a, b) < kLeastSamples) {
        std::swap(order[0], *std::ranges::find(order, a));
        std::swap(order[1], *std::ranges::find(order, b));
        shuffle(2);
        ISOZONE_RETURN_IF_ERROR(MeasureTogether(probe, pivots, std::span(order).first(together), slowdowns));
      }
    }
  }
  slowdowns.Settle();
  return Status::Ok();
}

using Channel = std::vector<size_t>;  // its groups

double MeanBetween(const Slowdowns& slowdowns, const Channel& a, const Channel& b) {
  double sum = 0;
  for (const size_t i : a) {
    for (const size_t j : b) sum += slowdowns.Of(i, j);
  }
  return sum / static_cast<double>(a.size() * b.size());
}

// Joins the two channels that slow one another most, until no two channels slow one another.
std::vector<Channel> Join(size_t groups, const Slowdowns& slowdowns) {
  std::vector<Channel> channels;
  for (size_t group = 0; group < groups; ++group) channels.push_back({group});
  const Slowdowns::Noise noise = slowdowns.MeasureNoise();
  for (;;) {
    double highest = 0;
    size_t from = 0, into = 0;
    for (size_t a = 0; a < channels.size(); ++a) {
      for (size_t b = a + 1; b < channels.size(); ++b) {
        const double mean = MeanBetween(slowdowns, channels[a], channels[b]);
        if (mean <= noise.Cut(channels[a].size() * channels[b].size()) || mean <= highest) continue;
        highest = mean;
        into = a;
        from = b;
      }
    }
    if (from == into) return channels;
    channels[into].insert(channels[into].end(), channels[from].begin(), channels[from].end());
    channels.erase(channels.begin() + static_cast<ptrdiff_t>(from));
  }
}

// Whether every group interferes clearly more with its own channel than with any other.
bool Clear(const std::vector<Channel>& channels, const Slowdowns& slowdowns) {
  const double usual = slowdowns.MeasureNoise().usual;
  for (const Channel& own : channels) {
    for (const size_t group : own) {
      double to_own = usual + kLeastEffect;  // if the group is the only one of its channel
      if (own.size() > 1) {
        Channel rest = own;
        std::erase(rest, group);
        to_own = MeanBetween(slowdowns, {group}, rest);
      }
      for (const Channel& other : channels) {
        if (&other != &own && to_own - MeanBetween(slowdowns, {group}, other) < kClear) return false;
      }
    }
  }
  return true;
}

}  // namespace

Result<Channels> FindChannels(LatencyProbe& probe, std::span<const ZoneId> pivots, uint64_t seed) {
  std::vector<Channel> channels;
  Channels found;
  if (pivots.size() <= 2) {  // two groups are a single pair, with no other to compare it with
    for (size_t group = 0; group < pivots.size(); ++group) channels.push_back({group});
    if (pivots.size() == 2) found.perhaps_one_group.emplace_back(0, 1);
  } else {
    Random random(seed);
    Slowdowns slowdowns(pivots.size());
    for (int tries = 0; tries < kTriesOfMeasurement; ++tries) {
      ISOZONE_RETURN_IF_ERROR(Measure(probe, pivots, random, slowdowns));
      channels = Join(pivots.size(), slowdowns);
      if (Clear(channels, slowdowns)) break;
    }
    const double usual = slowdowns.MeasureNoise().usual;
    for (size_t a = 0; a < pivots.size(); ++a) {
      for (size_t b = a + 1; b < pivots.size(); ++b) {
        if (slowdowns.Of(a, b) > usual + kMayBeOneGroup) found.perhaps_one_group.emplace_back(a, b);
      }
    }
  }
  std::ranges::sort(channels, {}, [](const Channel& groups) { return std::ranges::min(groups); });
  found.channel_of_group.resize(pivots.size());
  for (size_t channel = 0; channel < channels.size(); ++channel) {
    for (const size_t group : channels[channel]) found.channel_of_group[group] = static_cast<uint16_t>(channel);
  }
  return found;
}

}  // namespace isozone
