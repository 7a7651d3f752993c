#include "device/emulated/zone_state_machine.h"

#include <algorithm>
#include <cassert>

namespace isozone {

ZoneStateMachine::ZoneStateMachine(const DeviceGeometry& geometry, std::span<ZoneEntry> table)
    : capacity_(geometry.zone_capacity),
      max_open_(geometry.max_open_zones),
      max_active_(geometry.max_active_zones),
      table_(table) {
  for (uint32_t i = 0; i < table_.size(); ++i) {
    const ZoneState state = Content(ZoneId(i)).state;
    open_ += IsOpen(state) ? 1 : 0;
    active_ += IsActive(state) ? 1 : 0;
    if (max_open_ != 0 && state == ZoneState::kImplicitlyOpen) implicitly_open_.emplace_back(i);
  }
}

void ZoneStateMachine::Become(ZoneId zone, ZoneContent content) {
  const ZoneState before = Content(zone).state;
  const ZoneState after = content.state;
  open_ += (IsOpen(after) ? 1U : 0U) - (IsOpen(before) ? 1U : 0U);
  active_ += (IsActive(after) ? 1U : 0U) - (IsActive(before) ? 1U : 0U);
  if (max_open_ != 0 && before != after) {
    if (before == ZoneState::kImplicitlyOpen) std::erase(implicitly_open_, zone);
    if (after == ZoneState::kImplicitlyOpen) implicitly_open_.push_back(zone);
  }
  StoreContent(Entry(zone), content);
}

DeviceStatus ZoneStateMachine::TakeOpen(ZoneId zone, ZoneState target) {
  const ZoneContent content = Content(zone);
  if (!IsActive(content.state) && max_active_ != 0 && active_ + foreign_ >= max_active_) {
    return DeviceStatus::kTooManyActiveZones;
  }
  if (!IsOpen(content.state) && max_open_ != 0 && open_ + foreign_ >= max_open_) {
    if (implicitly_open_.empty()) return DeviceStatus::kTooManyOpenZones;
    const ZoneId victim = implicitly_open_.front();
    Become(victim, {ZoneState::kClosed, Content(victim).written});
  }
  Become(zone, {target, content.written});
  return DeviceStatus::kSuccess;
}

DeviceStatus ZoneStateMachine::CheckWritable(ZoneContent content, uint64_t offset, uint64_t length) const {
  switch (content.state) {
    case ZoneState::kFull:
      return DeviceStatus::kZoneIsFull;
    case ZoneState::kReadOnly:
      return DeviceStatus::kZoneIsReadOnly;
    case ZoneState::kOffline:
      return DeviceStatus::kZoneIsOffline;
    default:
      break;
  }
  if (offset != content.written) return DeviceStatus::kZoneInvalidWrite;
  if (length > capacity_ - offset) return DeviceStatus::kZoneBoundaryError;
  return DeviceStatus::kSuccess;
}

DeviceStatus ZoneStateMachine::BeginWrite(ZoneId zone, uint64_t offset, uint64_t length) {
  const ZoneContent content = Content(zone);
  const DeviceStatus status = CheckWritable(content, offset, length);
  if (status != DeviceStatus::kSuccess || IsOpen(content.state)) return status;
  return TakeOpen(zone, ZoneState::kImplicitlyOpen);
}

DeviceStatus ZoneStateMachine::BeginAppend(ZoneId zone, uint64_t length) {
  return BeginWrite(zone, Content(zone).written, length);
}

void ZoneStateMachine::EndWrite(ZoneId zone, uint64_t length) {
  ZoneContent content = Content(zone);
  content.written += length;
  assert(IsActive(content.state) && content.written <= capacity_);
  if (content.written == capacity_) content.state = ZoneState::kFull;
  Become(zone, content);
}

void ZoneStateMachine::AbandonWrite(ZoneId zone) {
  const ZoneContent content = Content(zone);
  if (content.state == ZoneState::kImplicitlyOpen && content.written == 0) Become(zone, {ZoneState::kEmpty, 0});
}

DeviceStatus ZoneStateMachine::Check(DeviceOp op, ZoneId zone) const {
  const ZoneState state = Content(zone).state;
  bool legal = false;
  switch (op) {
    case DeviceOp::kOpen:
      legal = state == ZoneState::kEmpty || IsActive(state);
      break;
    case DeviceOp::kClose:
      legal = IsActive(state);
      break;
    case DeviceOp::kFinish:
    case DeviceOp::kReset:
      legal = state == ZoneState::kEmpty || IsActive(state) || state == ZoneState::kFull;
      break;
    default:
      assert(false);
  }
  return legal ? DeviceStatus::kSuccess : DeviceStatus::kInvalidZoneStateTransition;
}

DeviceStatus ZoneStateMachine::Open(ZoneId zone) {
  const DeviceStatus status = Check(DeviceOp::kOpen, zone);
  return status == DeviceStatus::kSuccess ? TakeOpen(zone, ZoneState::kExplicitlyOpen) : status;
}

DeviceStatus ZoneStateMachine::Close(ZoneId zone) {
  const DeviceStatus status = Check(DeviceOp::kClose, zone);
  if (status == DeviceStatus::kSuccess) Become(zone, {ZoneState::kClosed, Content(zone).written});
  return status;
}

DeviceStatus ZoneStateMachine::Finish(ZoneId zone) {
  const DeviceStatus status = Check(DeviceOp::kFinish, zone);
  if (status == DeviceStatus::kSuccess) Become(zone, {ZoneState::kFull, Content(zone).written});
  return status;
}

DeviceStatus ZoneStateMachine::Reset(ZoneId zone) {
  const DeviceStatus status = Check(DeviceOp::kReset, zone);
  if (status == DeviceStatus::kSuccess) Become(zone, {ZoneState::kEmpty, 0});
  return status;
}

void ZoneStateMachine::Force(ZoneId zone, ZoneState state) {
  assert(state == ZoneState::kReadOnly || state == ZoneState::kOffline);
  Become(zone, {state, Content(zone).written});
}

void ZoneStateMachine::LosePower(ZoneId zone, uint64_t survived) {
  ZoneContent content = Content(zone);
  assert(survived <= content.written);
  const bool lost = survived < content.written;
  content.written = survived;
  if (IsOpen(content.state) || (IsActive(content.state) && lost)) {
    content.state = survived == 0 ? ZoneState::kEmpty : ZoneState::kClosed;
  } else if (content.state == ZoneState::kFull && lost) {
    const bool may_close = max_active_ == 0 || active_ + foreign_ < max_active_;
    content.state = survived == 0 ? ZoneState::kEmpty : may_close ? ZoneState::kClosed : ZoneState::kFull;
  }
  Become(zone, content);
}

}  // namespace isozone
