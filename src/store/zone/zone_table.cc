#include "store/zone/zone_table.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace isozone {
namespace {

ZonePhase PhaseOf(const ZoneDescriptor& zone) {
  switch (zone.state) {
    case ZoneState::kEmpty:
      return ZonePhase::kEmpty;
    case ZoneState::kImplicitlyOpen:
    case ZoneState::kExplicitlyOpen:
    case ZoneState::kClosed:
      return ZonePhase::kIdle;
    case ZoneState::kFull:
      return ZonePhase::kFull;
    case ZoneState::kReadOnly:
      return ZonePhase::kRetired;
    case ZoneState::kOffline:
      return ZonePhase::kOffline;
  }
  return ZonePhase::kOffline;
}

bool IsFree(const ZoneRecord& zone) { return zone.phase == ZonePhase::kEmpty && zone.use == ZoneUse::kFree; }

}  // namespace

ZoneTable::ZoneTable(std::span<const ZoneDescriptor> report, std::shared_ptr<const GroupIndex> groups)
    : groups_(groups != nullptr ? std::move(groups)
                                : std::make_shared<GroupIndex>(static_cast<uint32_t>(report.size()), nullptr)),
      empty_(static_cast<uint32_t>(report.size())),
      empty_by_group_(static_cast<uint32_t>(report.size())),
      dead_(static_cast<uint32_t>(report.size())),
      pinned_(static_cast<uint32_t>(report.size())) {
  zones_.resize(report.size());
  for (uint32_t i = 0; i < report.size(); ++i) {
    ZoneRecord& zone = zones_[i];
    zone.phase = PhaseOf(report[i]);
    zone.use = zone.phase == ZonePhase::kEmpty ? ZoneUse::kFree : ZoneUse::kData;
    zone.capacity = report[i].capacity;
    zone.write_pointer = report[i].write_pointer;
    Index(ZoneId(i));
  }
}

void ZoneTable::SetWatch(Watch watch) {
  watch_ = std::move(watch);
  if (!watch_) return;
  for (uint32_t i = 0; i < size(); ++i) watch_(ZoneId(i), at(ZoneId(i)));
}

std::optional<ZoneId> ZoneTable::IdleWithRoom(ZoneUse use, Lifetime lifetime, uint64_t min_room, ZoneHeat heat) const {
  const IdleByRoom& zones = Idle(use, lifetime, heat);
  const auto found = zones.lower_bound({min_room, ZoneId(0)});
  if (found == zones.end()) return std::nullopt;
  return found->second;
}

std::optional<ZoneId> ZoneTable::EmptyIn(uint32_t group) const {
  const auto rank = empty_by_group_.FirstFrom(ZoneId(groups_->first_rank(group)));
  if (!rank || rank->value() >= groups_->first_rank(group + 1)) return std::nullopt;
  return groups_->at_rank(rank->value());
}

std::optional<ZoneId> ZoneTable::FullestIdle(ZoneUse use, std::optional<ZoneId> but_for) const {
  const std::pair<uint64_t, ZoneId>* fullest = nullptr;
  for (const IdleByRoom& zones : idle(use)) {
    const auto first = std::ranges::find_if(zones, [&](const auto& zone) {
      return (at(zone.second).live > 0 || at(zone.second).pinned) && zone.second != but_for;
    });
    if (first != zones.end() && (fullest == nullptr || *first < *fullest)) fullest = &*first;
  }
  if (fullest == nullptr) return std::nullopt;
  return fullest->second;
}

uint32_t ZoneTable::OfCohort(uint64_t cohort) const {
  const auto found = zones_of_cohort_.find(cohort);
  return found == zones_of_cohort_.end() ? 0 : found->second;
}

void ZoneTable::Index(ZoneId id) {
  const ZoneRecord& zone = at(id);
  Count(zone, 1);
  if (zone.live > 0 && !zone.cohort.none()) ++zones_of_cohort_[zone.cohort.id];
  if (IsFree(zone)) {
    empty_.Insert(id);
    empty_by_group_.Insert(ZoneId(groups_->rank(id)));
  }
  if (zone.dead()) dead_.Insert(id);
  if (zone.pinned) pinned_.Insert(id);
  if (!zone.reusable()) return;
  IdleByClass& classes = zone.use == ZoneUse::kLog ? idle_log_ : idle_data_;
  classes[IdleIndex(zone.data.lifetime, zone.data.heat)].emplace(zone.room(), id);
}

void ZoneTable::Unindex(ZoneId id) {
  const ZoneRecord& zone = at(id);
  Count(zone, -1);
  if (zone.live > 0 && !zone.cohort.none()) {
    const auto cohort = zones_of_cohort_.find(zone.cohort.id);
    if (--cohort->second == 0) zones_of_cohort_.erase(cohort);
  }
  if (IsFree(zone)) {
    empty_.Erase(id);
    empty_by_group_.Erase(ZoneId(groups_->rank(id)));
  }
  if (zone.dead()) dead_.Erase(id);
  if (zone.pinned) pinned_.Erase(id);
  if (!zone.reusable()) return;
  IdleByClass& classes = zone.use == ZoneUse::kLog ? idle_log_ : idle_data_;
  classes[IdleIndex(zone.data.lifetime, zone.data.heat)].erase({zone.room(), id});
}

void ZoneTable::Count(const ZoneRecord& zone, int sign) {
  // Unsigned sums: adding the two's complement takes away.
  const auto add = [sign](auto& sum, auto amount) {
    sum += static_cast<std::remove_reference_t<decltype(sum)>>(sign) * amount;
  };
  const bool offline = zone.phase == ZonePhase::kOffline;
  add(totals_.full, zone.phase == ZonePhase::kFull ? 1U : 0U);
  add(totals_.resetting, zone.phase == ZonePhase::kResetting ? 1U : 0U);
  add(totals_.being_reset, zone.phase == ZonePhase::kResetting && zone.at_device ? 1U : 0U);
  add(totals_.finishing, zone.phase == ZonePhase::kFinishing ? 1U : 0U);
  add(totals_.unusable, offline || zone.phase == ZonePhase::kRetired ? 1U : 0U);
  add(totals_.at_device, zone.at_device ? 1U : 0U);
  add(totals_.dead_asked, zone.reset_asked && zone.dead() ? 1U : 0U);
  add(totals_.released, zone.released && zone.dead() ? 1U : 0U);
  const bool dead_idle = zone.dead() && zone.reusable();
  add(totals_.dead_idle, dead_idle ? 1U : 0U);
  add(totals_.dead_in_idle, dead_idle ? zone.write_pointer : 0);
  const bool usable = !offline && zone.phase != ZonePhase::kRetired;
  add(totals_.kept, zone.kept && usable ? 1U : 0U);
  add(totals_.held_elsewhere, !zone.kept && zone.use == ZoneUse::kMetadata && usable && !zone.released ? 1U : 0U);
  if (offline) return;
  add(totals_.capacity, zone.capacity);
  if (zone.use == ZoneUse::kMetadata) {
    add(totals_.metadata, zone.capacity);
    return;
  }
  add(totals_.live, zone.live);
  add(live_of_class_[static_cast<size_t>(zone.data.lifetime)][LevelIndex(zone.data.level)], zone.live);
  add(totals_.dead, zone.dead_bytes());
  add(totals_.pinned, zone.pinned ? zone.write_pointer : 0);
  const bool writable =
      zone.phase == ZonePhase::kEmpty || zone.phase == ZonePhase::kLeased || zone.phase == ZonePhase::kIdle;
  add(totals_.free, writable ? zone.room() : 0);
  add(totals_.free_in_logs, writable && zone.use == ZoneUse::kLog && !dead_idle ? zone.room() : 0);
}

}  // namespace isozone
