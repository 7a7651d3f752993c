#include "gc_bench/gc_map.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace isozone::cli {

GcMap::GcMap(uint32_t zones, uint32_t blocks_per_zone, uint32_t logical_blocks)
    : blocks_per_zone_(blocks_per_zone),
      zones_(zones),
      owner_(size_t{zones} * blocks_per_zone, kNowhere),
      place_(logical_blocks, kNowhere),
      version_(logical_blocks, 0),
      free_(zones) {
  for (Zone& zone : zones_) zone.bitmap.assign((blocks_per_zone + 63) / 64, 0);
}

uint32_t GcMap::Open(ZoneHeat heat) {
  const auto zone = std::ranges::find(zones_, Phase::kFree, &Zone::phase);
  assert(zone != zones_.end());
  zone->phase = Phase::kOpen;
  zone->heat = heat;
  zone->opened = ++opened_;
  --free_;
  return static_cast<uint32_t>(zone - zones_.begin());
}

uint32_t GcMap::Write(uint32_t zone, uint32_t logical) {
  ++version_[logical];
  return Move(zone, logical);
}

uint32_t GcMap::Move(uint32_t zone, uint32_t logical) {
  Zone& to = zones_[zone];
  assert(to.phase == Phase::kOpen);
  Invalidate(logical);
  const uint32_t block = to.written++;
  owner_[Index(zone, block)] = logical;
  place_[logical] = static_cast<uint32_t>(Index(zone, block));
  to.bitmap[block / 64] |= uint64_t{1} << block % 64;
  ++to.valid;
  ++written_;
  to.written_at = ++written_ever_;
  if (to.written == blocks_per_zone_) to.phase = Phase::kFull;
  return block;
}

void GcMap::Invalidate(uint32_t logical) {
  const uint32_t place = place_[logical];
  if (place == kNowhere) return;
  Zone& zone = zones_[place / blocks_per_zone_];
  const uint32_t block = place % blocks_per_zone_;
  zone.bitmap[block / 64] &= ~(uint64_t{1} << block % 64);
  --zone.valid;
}

void GcMap::BeginReset(uint32_t zone) {
  assert(zones_[zone].phase == Phase::kVictim && zones_[zone].valid == 0);
  zones_[zone].phase = Phase::kResetting;
}

void GcMap::EndReset(uint32_t zone) {
  assert(zones_[zone].phase == Phase::kResetting);
  written_ -= zones_[zone].written;
  zones_[zone].phase = Phase::kFree;
  zones_[zone].written = 0;
  ++free_;
}

std::optional<uint32_t> GcMap::LeastUtilised() const {
  const Zone* best = nullptr;
  for (const Zone& zone : zones_) {
    if (zone.phase != Phase::kFull) continue;
    if (best == nullptr || std::pair(zone.valid, zone.opened) < std::pair(best->valid, best->opened)) best = &zone;
  }
  if (best == nullptr) return std::nullopt;
  return static_cast<uint32_t>(best - zones_.data());
}

std::vector<GcCandidate> GcMap::Candidates() const {
  std::vector<GcCandidate> candidates;
  for (uint32_t i = 0; i < zones(); ++i) {
    const Zone& zone = zones_[i];
    if (zone.phase != Phase::kFull || zone.valid == zone.written) continue;
    candidates.push_back({.zone = ZoneId(i),
                          .valid = zone.valid,
                          .written = zone.written,
                          .capacity = blocks_per_zone_,
                          .age = written_ever_ - zone.written_at,
                          .data = DataClass(Lifetime::kNotSet, DataClass::kNoLevel, zone.heat)});
  }
  return candidates;
}

void GcMap::TakeVictim(uint32_t zone) {
  assert(zones_[zone].phase == Phase::kFull);
  zones_[zone].phase = Phase::kVictim;
}

UtilisationHistogram HistogramOf(const GcMap& map) {
  UtilisationHistogram zones{};
  for (uint32_t zone = 0; zone < map.zones(); ++zone) {
    if (map.written(zone) == 0) continue;
    const uint64_t bucket = uint64_t{map.valid(zone)} * kUtilisationBuckets / map.blocks_per_zone();
    ++zones[std::min<uint64_t>(bucket, kUtilisationBuckets - 1)];
  }
  return zones;
}

}  // namespace isozone::cli
