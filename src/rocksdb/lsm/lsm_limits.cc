#include "rocksdb/lsm/lsm_limits.h"

#include <algorithm>
#include <cmath>

namespace isozone {
namespace {

// Of the numbers that a double has, the largest one below 2^64: more bytes than there are.
constexpr double kMostBytes = 18446744073709549568.0;

uint64_t AsBytes(double bytes) { return static_cast<uint64_t>(std::clamp(bytes, 0.0, kMostBytes)); }

}  // namespace

LsmLimits LsmLimits::Exponential(int levels, uint64_t level1_bytes, double factor) {
  LsmLimits limits;
  double bytes = static_cast<double>(level1_bytes);
  for (; limits.levels() < levels; bytes *= std::max(1.0, factor)) limits.capacity_bytes.push_back(AsBytes(bytes));
  return limits;
}

LsmLimits LsmLimits::FromLastLevel(std::span<const uint64_t> bytes, uint64_t base_bytes, double factor) {
  const double most_steep = std::max(1.0, factor);
  const auto base = static_cast<double>(base_bytes);
  const int levels = static_cast<int>(bytes.size());
  const auto begin = bytes.begin() + 1;
  const int first_with_data =
      static_cast<int>(std::find_if(begin, bytes.end(), [](uint64_t b) { return b > 0; }) - bytes.begin());
  const auto last = static_cast<double>(*std::max_element(begin, bytes.end()));

  LsmLimits limits;
  limits.capacity_bytes.assign(bytes.size(), base_bytes);
  int needed_from = levels - 1;
  for (double size = last; needed_from > 1 && size > base; size /= most_steep) --needed_from;
  const int steps = levels - 1 - needed_from;
  const double even = steps == 0 ? most_steep : std::pow(last / base, 1.0 / steps);
  const double step = std::clamp(even, std::max(1.0, most_steep / 2), most_steep);
  double size = std::min(last, base * std::pow(step, steps));  // there may be too few levels
  for (int level = levels - 1; level >= needed_from; --level, size /= step) {
    limits.capacity_bytes[static_cast<size_t>(level)] = AsBytes(std::max(size, base));
  }
  limits.base_level = std::min(needed_from, first_with_data);
  for (int level = limits.base_level; level < needed_from; ++level)
    limits.capacity_bytes[static_cast<size_t>(level)] = 0;
  return limits;
}

}  // namespace isozone
