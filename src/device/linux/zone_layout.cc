#include "device/linux/zone_layout.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/uri.h"

namespace isozone {
namespace {

constexpr uint64_t kUsualWrite = 128 * kKiB;  // bytes; a good write size if the device tells none
constexpr uint32_t kMostZones = uint32_t{1} << 24;

bool IsSequential(const KernelZone& zone) { return zone.type != BLK_ZONE_TYPE_CONVENTIONAL; }
// Whether the zone has died, and the device does not report any more what it held.
bool HasLostItsCapacity(const KernelZone& zone) {
  const bool dead = zone.condition == BLK_ZONE_COND_READONLY || zone.condition == BLK_ZONE_COND_OFFLINE;
  return dead && zone.capacity == 0;
}

// The capacity with which most bytes of the zones can be used: every zone of less is left alone, and of every zone of
// more the rest is. 0 if there is no sequential zone of full length.
uint64_t BestCapacity(std::span<const KernelZone> zones, uint64_t zone_size, uint64_t block) {
  std::map<uint64_t, uint64_t, std::greater<>> count_of;  // zones by capacity, the largest first
  bool any = false;
  for (const KernelZone& zone : zones) {
    if (!IsSequential(zone) || zone.length != zone_size) continue;
    any = true;
    if (!HasLostItsCapacity(zone)) ++count_of[RoundDown(std::min(zone.capacity, zone_size), block)];
  }
  if (count_of.empty()) return any ? zone_size : 0;
  uint64_t best = 0;
  uint64_t most_bytes = 0;
  uint64_t zones_of_at_least = 0;
  for (const auto& [capacity, count] : count_of) {
    zones_of_at_least += count;
    if (capacity * zones_of_at_least <= most_bytes) continue;
    most_bytes = capacity * zones_of_at_least;
    best = capacity;
  }
  return best;
}

uint64_t OptimalWrite(const QueueFacts& facts, uint64_t capacity) {
  const uint64_t most = std::min(facts.max_transfer, capacity);
  const uint64_t wanted = facts.optimal_write > facts.write_granularity ? facts.optimal_write : kUsualWrite;
  return std::max<uint64_t>(facts.write_granularity, RoundDown(std::min(wanted, most), facts.write_granularity));
}

Status CheckPlace(const KernelZone& zone, size_t index, size_t count, uint64_t zone_size) {
  const bool last = index + 1 == count;
  if (zone.start == index * zone_size && (zone.length == zone_size || (last && zone.length < zone_size))) return {};
  return Status::NotSupported(
      fmt::format("zone {} of the device lies at {} with {}, and zones of {} were expected: its zones are not alike",
                  index, zone.start, FormatSize(zone.length), FormatSize(zone_size)));
}

}  // namespace

KernelZone ToKernelZone(const blk_zone& zone, bool has_capacity) {
  KernelZone converted;
  converted.start = zone.start * kKernelSector;
  converted.length = zone.len * kKernelSector;
  converted.capacity = (has_capacity ? zone.capacity : zone.len) * kKernelSector;
  converted.write_pointer = zone.wp >= zone.start ? (zone.wp - zone.start) * kKernelSector : 0;
  // The write pointer of a zone that is read-only says nothing, and all of it can be read.
  if (zone.cond == BLK_ZONE_COND_READONLY) converted.write_pointer = converted.length;
  converted.type = static_cast<blk_zone_type>(zone.type);
  converted.condition = static_cast<blk_zone_cond>(zone.cond);
  return converted;
}

Result<ZoneLayout> ZoneLayout::Of(const QueueFacts& facts, std::span<const KernelZone> zones) {
  ZoneLayout layout;
  const uint64_t capacity = BestCapacity(zones, facts.zone_size, facts.write_granularity);
  if (zones.empty() || facts.zone_size == 0 || capacity == 0 || zones.size() > kMostZones) {
    return Status::NotSupported(
        fmt::format("none of the {} zones of the device can be written in sequence", zones.size()));
  }
  for (size_t i = 0; i < zones.size(); ++i) {
    const KernelZone& zone = zones[i];
    ISOZONE_RETURN_IF_ERROR(CheckPlace(zone, i, zones.size(), facts.zone_size));
    if (!IsSequential(zone)) {
      ++layout.conventional_;
    } else if (zone.length < facts.zone_size || (!HasLostItsCapacity(zone) && zone.capacity < capacity)) {
      ++layout.small_;
    } else {
      const bool large = zone.capacity > capacity;
      layout.large_ += large ? 1 : 0;
      layout.is_large_.push_back(large);
      layout.kernel_zone_.push_back(static_cast<uint32_t>(i));
    }
  }
  layout.geometry_ = {.block_size = facts.write_granularity,
                      .zone_count = static_cast<uint32_t>(layout.kernel_zone_.size()),
                      .zone_size = facts.zone_size,
                      .zone_capacity = capacity,
                      .max_open_zones = facts.max_open_zones,
                      .max_active_zones = facts.max_active_zones,
                      .max_transfer = facts.max_transfer,
                      .max_append = facts.max_transfer,
                      .buffer_alignment = facts.memory_alignment,
                      .optimal_write = OptimalWrite(facts, capacity),
                      // Without a cache, or where a flush follows, all that was written before is durable as well.
                      .fua_covers_zone = facts.durable != DurableWrites::kForced};
  return layout;
}

uint32_t ZoneLayout::RunOf(ZoneId zone, uint32_t limit) const {
  uint32_t run = 1;
  while (run < limit && kernel_zone_[zone.value() + run] == kernel_zone_[zone.value()] + run) ++run;
  return run;
}

ZoneDescriptor ZoneLayout::Describe(ZoneId zone, const KernelZone& reported) const {
  const uint64_t capacity = geometry_.zone_capacity;
  // The states of ZNS have the numbers that the kernel's conditions have.
  ZoneDescriptor descriptor{zone, static_cast<ZoneState>(reported.condition), capacity,
                            std::min(reported.write_pointer, capacity)};
  switch (descriptor.state) {
    case ZoneState::kEmpty:
    case ZoneState::kOffline:
      descriptor.write_pointer = 0;
      break;
    case ZoneState::kFull:
      descriptor.write_pointer = capacity;
      break;
    case ZoneState::kReadOnly:
      break;
    default:
      if (NeedsFinish(reported)) descriptor.state = ZoneState::kFull;
  }
  return descriptor;
}

bool ZoneLayout::NeedsFinish(const KernelZone& reported) const {
  return IsActive(static_cast<ZoneState>(reported.condition)) && reported.write_pointer >= geometry_.zone_capacity;
}

}  // namespace isozone
