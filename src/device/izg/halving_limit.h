// HalvingLimit: the limit between undelayed and delayed needles behind many pivots at once, which slow all needles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "device/izg/latency_probe.h"

namespace isozone {

// Thread safety: a plain value.
class HalvingLimit {
 public:
  HalvingLimit() = default;
  // `times` are those of the burst that showed how long undelayed needles take at most and delayed ones at least.
  HalvingLimit(double longest_undelayed_ns, double shortest_delayed_ns, const std::vector<NeedleTime>& times)
      : latency_ns_(std::sqrt(longest_undelayed_ns * shortest_delayed_ns)), pivots_ns_(PivotsNs(times)) {}

  // Returns the limit in ns for a burst with the same pivots. The device may have become slower or faster since, and
  // its pivots show that.
  int64_t For(const std::vector<NeedleTime>& times) const {
    return static_cast<int64_t>(latency_ns_ * std::clamp(PivotsNs(times) / pivots_ns_, 1 / kMostDrift, kMostDrift));
  }

 private:
  static constexpr double kMostDrift = 2;

  static double PivotsNs(const std::vector<NeedleTime>& times) {
    std::vector<int64_t> pivots;
    for (const int64_t pivot : times.front().pivot_ns) {
      if (pivot > 0) pivots.push_back(pivot);
    }
    return pivots.empty() ? 1 : static_cast<double>(Quantile(std::move(pivots), 0.5));
  }

  double latency_ns_ = 0;
  double pivots_ns_ = 1;
};

}  // namespace isozone
