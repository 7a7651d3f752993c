#include "zone/zone_table.h"

#include <algorithm>
#include <cassert>
#include <type_traits>

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

// A dead zone of data is written further if at most 1 / kLittle of its capacity is written.
constexpr uint64_t kLittle = 4;

bool HoldsFiles(ZoneUse use) { return use == ZoneUse::kData || use == ZoneUse::kLog; }
bool IsFree(const ZoneRecord& zone) { return zone.phase == ZonePhase::kEmpty && zone.use == ZoneUse::kFree; }

}  // namespace

bool ZoneRecord::dead() const {
  const bool at_rest = phase == ZonePhase::kIdle || phase == ZonePhase::kFull || phase == ZonePhase::kFailed;
  return at_rest && live == 0 && !victim && (released || use != ZoneUse::kMetadata);
}

bool ZoneRecord::reusable() const {
  const bool worth_it = live > 0 || use == ZoneUse::kLog || write_pointer <= capacity / kLittle;
  return phase == ZonePhase::kIdle && HoldsFiles(use) && !victim && !released && worth_it;
}

// Sets that the zone is empty and has no owner. A zone that is kept for metadata stays so.
void MakeEmpty(ZoneRecord& zone) {
  zone.phase = ZonePhase::kEmpty;
  zone.use = zone.kept ? ZoneUse::kMetadata : ZoneUse::kFree;
  zone.lifetime = Lifetime::kNotSet;
  zone.level = DataClass::kNoLevel;
  zone.heat = kNewDataHeat;
  zone.cohort = {};
  zone.sealed = false;
  zone.released = false;
  zone.victim = false;
  zone.set_aside = false;
  zone.reset_asked = false;
  zone.at_device = false;
  zone.finished_at.reset();
  zone.write_pointer = 0;
}

// One change of one zone.
class ZoneTable::Edit {
 public:
  Edit(ZoneTable& table, ZoneId zone) : table_(table), zone_(zone) { table_.Unindex(zone_); }
  ~Edit() { table_.Index(zone_); }
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;
  ZoneRecord& operator*() { return table_.zones_[zone_.value()]; }
  ZoneRecord* operator->() { return &table_.zones_[zone_.value()]; }

 private:
  ZoneTable& table_;
  const ZoneId zone_;
};

ZoneTable::ZoneTable(std::span<const ZoneDescriptor> report, std::shared_ptr<const GroupIndex> groups)
    : groups_(groups != nullptr ? std::move(groups)
                                : std::make_shared<GroupIndex>(static_cast<uint32_t>(report.size()), nullptr)),
      empty_(static_cast<uint32_t>(report.size())),
      empty_by_group_(static_cast<uint32_t>(report.size())),
      dead_(static_cast<uint32_t>(report.size())) {
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

void ZoneTable::Lease(ZoneId zone, ZoneUse use, DataClass data, Cohort cohort) {
  Edit edit(*this, zone);
  assert(edit->phase == ZonePhase::kEmpty || edit->phase == ZonePhase::kIdle);
  if (edit->phase == ZonePhase::kEmpty) {
    edit->use = use;
  }
  if (edit->phase == ZonePhase::kEmpty || edit->dead()) {
    edit->lifetime = data.lifetime;
    edit->level = data.level;
    edit->heat = data.heat;
    edit->cohort = cohort;
    edit->sealed = false;
  }
  edit->phase = ZonePhase::kLeased;
  edit->set_aside = false;
  edit->reset_asked = false;
}

void ZoneTable::Advance(ZoneId zone, uint64_t bytes) {
  Edit edit(*this, zone);
  assert(edit->phase == ZonePhase::kLeased && bytes <= edit->room());
  edit->write_pointer += bytes;
}

void ZoneTable::EndLease(ZoneId zone) {
  Edit edit(*this, zone);
  assert(edit->phase == ZonePhase::kLeased);
  if (edit->write_pointer == edit->capacity) {
    edit->phase = ZonePhase::kFull;
  } else if (edit->write_pointer > 0 || edit->live > 0) {
    edit->phase = ZonePhase::kIdle;
  } else {
    MakeEmpty(*edit);
  }
}

void ZoneTable::BeginFinish(ZoneId zone) {
  Edit edit(*this, zone);
  assert(edit->phase == ZonePhase::kIdle || edit->phase == ZonePhase::kFailed);
  edit->phase = ZonePhase::kFinishing;
}

void ZoneTable::Submit(ZoneId zone) {
  Edit edit(*this, zone);
  assert(edit->phase == ZonePhase::kFinishing || edit->phase == ZonePhase::kResetting);
  edit->at_device = true;
}

void ZoneTable::EndFinish(ZoneId zone) {
  Edit edit(*this, zone);
  assert(edit->phase == ZonePhase::kFinishing);
  edit->phase = ZonePhase::kFull;
  edit->at_device = false;
  edit->finished_at = edit->write_pointer;
  edit->write_pointer = edit->capacity;
}

void ZoneTable::CancelFinish(ZoneId zone) {
  Edit edit(*this, zone);
  assert(edit->phase == ZonePhase::kFinishing);
  edit->phase = ZonePhase::kIdle;
}

void ZoneTable::BeginReset(ZoneId zone) {
  Edit edit(*this, zone);
  assert(edit->dead());
  edit->phase = ZonePhase::kResetting;
}

void ZoneTable::EndReset(ZoneId zone) {
  Edit edit(*this, zone);
  assert(edit->phase == ZonePhase::kResetting && edit->live == 0);
  MakeEmpty(*edit);
}

void ZoneTable::CancelReset(ZoneId zone) {
  Edit edit(*this, zone);
  assert(edit->phase == ZonePhase::kResetting);
  edit->phase = ZonePhase::kFailed;
}

void ZoneTable::Fail(ZoneId zone, uint64_t write_pointer) {
  Edit edit(*this, zone);
  assert(write_pointer <= edit->capacity);
  edit->phase = ZonePhase::kFailed;
  edit->at_device = false;
  edit->write_pointer = write_pointer;
}

void ZoneTable::Retire(ZoneId zone, bool offline) {
  Edit edit(*this, zone);
  edit->phase = offline ? ZonePhase::kOffline : ZonePhase::kRetired;
  edit->at_device = false;
}

void ZoneTable::AddLive(ZoneId zone, uint64_t bytes) {
  Edit edit(*this, zone);
  assert(edit->phase != ZonePhase::kResetting && edit->live + bytes <= edit->capacity);
  edit->live += bytes;
}

void ZoneTable::RemoveLive(ZoneId zone, uint64_t bytes) {
  Edit edit(*this, zone);
  assert(bytes <= edit->live);
  edit->live -= bytes;
}

void ZoneTable::SetUse(ZoneId zone, ZoneUse use) { Edit(*this, zone)->use = use; }

void ZoneTable::SetDataClass(ZoneId zone, DataClass data) {
  Edit edit(*this, zone);
  edit->lifetime = data.lifetime;
  edit->level = data.level;
  edit->heat = data.heat;
}

void ZoneTable::Seal(ZoneId zone) { Edit(*this, zone)->sealed = true; }

void ZoneTable::KeepForMetadata(ZoneId zone) {
  Edit edit(*this, zone);
  edit->kept = true;
  edit->use = ZoneUse::kMetadata;
}

void ZoneTable::SetAside(ZoneId zone) {
  Edit edit(*this, zone);
  assert(edit->phase == ZonePhase::kEmpty);
  edit->use = ZoneUse::kMetadata;
  edit->set_aside = true;
}

void ZoneTable::AskForReset(ZoneId zone) { Edit(*this, zone)->reset_asked = true; }

void ZoneTable::SetVictim(ZoneId zone, bool victim) { Edit(*this, zone)->victim = victim; }

void ZoneTable::Release(ZoneId zone) {
  Edit edit(*this, zone);
  assert(edit->live == 0);
  edit->released = true;
  edit->set_aside = false;
  if (edit->phase == ZonePhase::kEmpty) MakeEmpty(*edit);  // set aside, never written
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
    const auto first = std::ranges::find_if(
        zones, [&](const auto& zone) { return at(zone.second).live > 0 && zone.second != but_for; });
    if (first != zones.end() && (fullest == nullptr || *first < *fullest)) fullest = &*first;
  }
  if (fullest == nullptr) return std::nullopt;
  return fullest->second;
}

void ZoneTable::Index(ZoneId id) {
  const ZoneRecord& zone = at(id);
  Count(zone, 1);
  if (IsFree(zone)) {
    empty_.Insert(id);
    empty_by_group_.Insert(ZoneId(groups_->rank(id)));
  }
  if (zone.dead()) dead_.Insert(id);
  if (!zone.reusable()) return;
  IdleByClass& classes = zone.use == ZoneUse::kLog ? idle_log_ : idle_data_;
  classes[IdleIndex(zone.lifetime, zone.heat)].emplace(zone.room(), id);
}

void ZoneTable::Unindex(ZoneId id) {
  const ZoneRecord& zone = at(id);
  Count(zone, -1);
  if (IsFree(zone)) {
    empty_.Erase(id);
    empty_by_group_.Erase(ZoneId(groups_->rank(id)));
  }
  if (zone.dead()) dead_.Erase(id);
  if (!zone.reusable()) return;
  IdleByClass& classes = zone.use == ZoneUse::kLog ? idle_log_ : idle_data_;
  classes[IdleIndex(zone.lifetime, zone.heat)].erase({zone.room(), id});
}

void ZoneTable::Count(const ZoneRecord& zone, int sign) {
  // Unsigned sums: adding the two's complement takes away.
  const auto add = [sign](auto& sum, auto amount) {
    sum += static_cast<std::remove_reference_t<decltype(sum)>>(sign) * amount;
  };
  const bool offline = zone.phase == ZonePhase::kOffline;
  add(totals_.full, zone.phase == ZonePhase::kFull ? 1U : 0U);
  add(totals_.resetting, zone.phase == ZonePhase::kResetting ? 1U : 0U);
  add(totals_.finishing, zone.phase == ZonePhase::kFinishing ? 1U : 0U);
  add(totals_.unusable, offline || zone.phase == ZonePhase::kRetired ? 1U : 0U);
  add(totals_.at_device, zone.at_device ? 1U : 0U);
  add(totals_.dead_asked, zone.reset_asked && zone.dead() ? 1U : 0U);
  add(totals_.released, zone.released && zone.dead() ? 1U : 0U);
  const bool dead_idle = zone.reusable_dead();
  add(totals_.dead_idle, dead_idle ? 1U : 0U);
  add(totals_.dead_in_idle, dead_idle ? zone.write_pointer : 0);
  const bool usable = !offline && zone.phase != ZonePhase::kRetired;
  add(totals_.kept, zone.kept && usable ? 1U : 0U);
  add(totals_.lent, !zone.kept && zone.use == ZoneUse::kMetadata && usable && !zone.released ? 1U : 0U);
  if (offline) return;
  add(totals_.capacity, zone.capacity);
  if (zone.use == ZoneUse::kMetadata) {
    add(totals_.metadata, zone.capacity);
    return;
  }
  add(totals_.live, zone.live);
  add(totals_.dead, zone.write_pointer - std::min(zone.live, zone.write_pointer));
  const bool writable =
      zone.phase == ZonePhase::kEmpty || zone.phase == ZonePhase::kLeased || zone.phase == ZonePhase::kIdle;
  add(totals_.free, writable ? zone.room() : 0);
}

}  // namespace isozone
