#include "lsm/lsm_limits.h"

#include <algorithm>

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
  const double by = std::max(1.0, factor);
  const auto most = static_cast<double>(base_bytes);
  const int levels = static_cast<int>(bytes.size());
  const auto begin = bytes.begin() + 1;
  const int first_with_data =
      static_cast<int>(std::find_if(begin, bytes.end(), [](uint64_t b) { return b > 0; }) - bytes.begin());

  LsmLimits limits;
  limits.capacity_bytes.assign(bytes.size(), base_bytes);
  int needed_from = levels - 1;
  double size = static_cast<double>(*std::max_element(begin, bytes.end()));
  for (; needed_from > 1 && size > most; size /= by) --needed_from;
  size = std::min(size, most);  // there may be too few levels
  for (int level = needed_from; level < levels; ++level, size *= by) {
    limits.capacity_bytes[static_cast<size_t>(level)] = AsBytes(std::max(size, most));
  }
  limits.base_level = std::min(needed_from, first_with_data);
  for (int level = limits.base_level; level < needed_from; ++level)
    limits.capacity_bytes[static_cast<size_t>(level)] = 0;
  return limits;
}

}  // namespace isozone
