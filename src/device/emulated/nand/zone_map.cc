#include "device/emulated/nand/zone_map.h"

#include <algorithm>

#include "base/random.h"

namespace isozone {
namespace {

// Puts every zone on a random die. Some dies are up to four times as likely as others.
std::vector<uint32_t> DrawDies(uint32_t zones, uint32_t dies, uint64_t seed) {
  static constexpr uint64_t kLargestWeight = 4;
  Random random(seed);
  std::vector<uint64_t> weight_up_to(dies);
  uint64_t total = 0;
  for (uint64_t& up_to : weight_up_to) up_to = total += random.Between(1, kLargestWeight);
  std::vector<uint32_t> drawn(zones);
  for (uint32_t& die : drawn) {
    const auto up_to = std::upper_bound(weight_up_to.begin(), weight_up_to.end(), random.Below(total));
    die = static_cast<uint32_t>(up_to - weight_up_to.begin());
  }
  return drawn;
}

}  // namespace

ZoneMap::ZoneMap(const Profile& profile)
    : dies_(profile.dies),
      width_(profile.mapping == ZoneMapping::kInterleaved ? profile.dies : 1),
      page_size_(profile.page_size) {
  if (profile.mapping == ZoneMapping::kRandom) {
    first_die_ = DrawDies(profile.zone_count, profile.dies, profile.mapping_seed);
    return;
  }
  first_die_.resize(profile.zone_count);
  for (uint32_t zone = 0; zone < profile.zone_count; ++zone) first_die_[zone] = zone % profile.dies;
}

uint64_t ZoneMap::BytesOnSlot(uint32_t slot, uint64_t written) const {
  const uint64_t pages = written / page_size_;
  const uint64_t last_slot = pages % width_;  // holds the bytes beyond the last whole page
  const uint64_t whole = (pages / width_ + (slot < last_slot ? 1 : 0)) * page_size_;
  return whole + (slot == last_slot ? written % page_size_ : 0);
}

}  // namespace isozone
