#include "store/space/space_claim.h"

#include <algorithm>
#include <cassert>

#include "store/space/zone_pool.h"

namespace isozone {
namespace {

// Returns the sum for each zone, in the order of the zones and without those of 0 bytes.
std::vector<ZoneBytes> SumUp(std::span<const ZoneBytes> space) {
  std::vector<ZoneBytes> sums(space.begin(), space.end());
  std::ranges::sort(sums, {}, &ZoneBytes::first);
  size_t zones = 0;
  for (const auto& [zone, bytes] : sums) {
    if (bytes == 0) continue;
    if (zones > 0 && sums[zones - 1].first == zone) {
      sums[zones - 1].second += bytes;
    } else {
      sums[zones++] = {zone, bytes};
    }
  }
  sums.resize(zones);
  return sums;
}

}  // namespace

SpaceClaim::SpaceClaim(ZonePool& pool, ZoneId zone, uint64_t bytes) : SpaceClaim(OfWrite(pool, zone, bytes)) {
  if (bytes > 0) pool.AddLive(zone, bytes);
}

SpaceClaim SpaceClaim::OfWrite(ZonePool& pool, ZoneId zone, uint64_t bytes) {
  SpaceClaim claim;
  claim.pool_ = &pool;
  if (bytes > 0) claim.space_.emplace_back(zone, bytes);
  return claim;
}

SpaceClaim SpaceClaim::FromMetadata(ZonePool& pool, std::span<const ZoneBytes> space) {
  SpaceClaim claim;
  claim.pool_ = &pool;
  claim.space_ = SumUp(space);
  return claim;
}

SpaceClaim::SpaceClaim(SpaceClaim&& other) noexcept : pool_(other.pool_), space_(std::exchange(other.space_, {})) {}

SpaceClaim& SpaceClaim::operator=(SpaceClaim&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pool_ = other.pool_;
  space_ = std::exchange(other.space_, {});
  return *this;
}

void SpaceClaim::Merge(SpaceClaim other) {
  if (other.space_.empty()) return;
  if (space_.empty()) {
    *this = std::move(other);
    return;
  }
  assert(pool_ == other.pool_);
  for (const auto& [zone, bytes] : std::exchange(other.space_, {})) {
    const auto it = std::ranges::lower_bound(space_, zone, {}, &ZoneBytes::first);
    if (it != space_.end() && it->first == zone) {
      it->second += bytes;
    } else {
      space_.emplace(it, zone, bytes);
    }
  }
}

SpaceClaim SpaceClaim::Split(std::span<const ZoneBytes> part) {
  SpaceClaim taken;
  taken.pool_ = pool_;
  taken.space_ = SumUp(part);
  auto from = space_.begin();
  for (const auto& [zone, bytes] : taken.space_) {
    from = std::ranges::lower_bound(from, space_.end(), zone, {}, &ZoneBytes::first);
    assert(from != space_.end() && from->first == zone && from->second >= bytes);
    from->second -= bytes;
  }
  std::erase_if(space_, [](const ZoneBytes& left) { return left.second == 0; });
  return taken;
}

SpaceClaim SpaceClaim::TakeBeyond(std::span<const ZoneBytes> space) {
  std::vector<ZoneBytes> beyond = space_;
  const std::vector<ZoneBytes> kept = SumUp(space);
  for (auto& [zone, bytes] : beyond) {
    const auto it = std::ranges::lower_bound(kept, zone, {}, &ZoneBytes::first);
    if (it != kept.end() && it->first == zone) bytes -= std::min(bytes, it->second);
  }
  return Split(beyond);
}

void SpaceClaim::Grow(ZonePool& pool, std::span<const ZoneBytes> space) {
  for (const auto& [zone, bytes] : SumUp(space)) {
    const auto it = std::ranges::lower_bound(space_, zone, {}, &ZoneBytes::first);
    const uint64_t has = it != space_.end() && it->first == zone ? it->second : 0;
    if (has < bytes) Merge(SpaceClaim(pool, zone, bytes - has));
  }
}

void SpaceClaim::Release() {
  for (const auto& [zone, bytes] : std::exchange(space_, {})) pool_->RemoveLive(zone, bytes);
}

}  // namespace isozone
