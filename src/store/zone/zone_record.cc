#include "store/zone/zone_record.h"

#include <cassert>

namespace isozone {
namespace {

// A dead zone of data is written further if at most 1 / kLittle of its capacity is written.
constexpr uint64_t kLittle = 4;
// A frame of a log, which lies in one zone, is at most this part of it, and in large zones less. So a dead zone of logs
// with less room than that may fit no frame: it would stay active for nothing.
constexpr uint64_t kLargestFrame = 8;

bool HoldsFiles(ZoneUse use) { return use == ZoneUse::kData || use == ZoneUse::kLog; }

}  // namespace

bool ZoneRecord::dead() const {
  const bool at_rest = phase == ZonePhase::kIdle || phase == ZonePhase::kFull || phase == ZonePhase::kFailed;
  return at_rest && live == 0 && !victim && !pinned && (released || use != ZoneUse::kMetadata);
}

bool ZoneRecord::reusable() const {
  const bool takes_any_frame = use == ZoneUse::kLog && room() >= capacity / kLargestFrame;
  const bool worth_it = live > 0 || pinned || takes_any_frame || write_pointer <= capacity / kLittle;
  return phase == ZonePhase::kIdle && HoldsFiles(use) && !victim && !released && worth_it;
}

void ZoneRecord::Lease(ZoneUse new_use, DataClass new_data, Cohort new_cohort) {
  assert(phase == ZonePhase::kEmpty || phase == ZonePhase::kIdle);
  if (phase == ZonePhase::kEmpty) use = new_use;
  if (phase == ZonePhase::kEmpty || dead() || pinned) {
    data = new_data;
    cohort = new_cohort;
    has_data = false;
    sealed = false;
  }
  phase = ZonePhase::kLeased;
  set_aside = false;
  reset_asked = false;
  pinned = false;
}

void ZoneRecord::Advance(uint64_t bytes) {
  assert(phase == ZonePhase::kLeased && bytes <= room());
  write_pointer += bytes;
}

void ZoneRecord::EndLease() {
  assert(phase == ZonePhase::kLeased);
  if (write_pointer == capacity) {
    phase = ZonePhase::kFull;
  } else if (write_pointer > 0 || live > 0) {
    phase = ZonePhase::kIdle;
  } else {
    MakeEmpty();
  }
}

void ZoneRecord::BeginFinish() {
  assert(phase == ZonePhase::kIdle || phase == ZonePhase::kFailed);
  phase = ZonePhase::kFinishing;
}

void ZoneRecord::EndFinish() {
  assert(phase == ZonePhase::kFinishing);
  phase = ZonePhase::kFull;
  at_device = false;
  finished_at = write_pointer;
  write_pointer = capacity;
}

void ZoneRecord::BeginReset() {
  assert(dead());
  before_reset = phase;
  phase = ZonePhase::kResetting;
}

void ZoneRecord::EndReset() {
  assert(phase == ZonePhase::kResetting && live == 0);
  MakeEmpty();
}

void ZoneRecord::Submit() {
  assert(phase == ZonePhase::kFinishing || phase == ZonePhase::kResetting);
  at_device = true;
}

void ZoneRecord::Cancel() {
  assert(phase == ZonePhase::kFinishing || phase == ZonePhase::kResetting);
  phase = phase == ZonePhase::kFinishing ? ZonePhase::kIdle : before_reset;
}

void ZoneRecord::Fail(uint64_t pointer) {
  assert(pointer <= capacity);
  phase = ZonePhase::kFailed;
  at_device = false;
  write_pointer = pointer;
}

void ZoneRecord::Retire(bool offline) {
  phase = offline ? ZonePhase::kOffline : ZonePhase::kRetired;
  at_device = false;
}

void ZoneRecord::AddLive(uint64_t bytes) {
  assert(phase != ZonePhase::kResetting && live + bytes <= capacity);
  live += bytes;
}

void ZoneRecord::RemoveLive(uint64_t bytes) {
  assert(bytes <= live);
  live -= bytes;
}

void ZoneRecord::KeepForMetadata() {
  kept = true;
  use = ZoneUse::kMetadata;
}

void ZoneRecord::SetAside() {
  assert(phase == ZonePhase::kEmpty);
  use = ZoneUse::kMetadata;
  set_aside = true;
}

void ZoneRecord::Release() {
  assert(live == 0);
  released = true;
  set_aside = false;
  if (phase == ZonePhase::kEmpty) MakeEmpty();  // reserved, never written
}

void ZoneRecord::MakeEmpty() {
  phase = ZonePhase::kEmpty;
  use = kept ? ZoneUse::kMetadata : ZoneUse::kFree;
  data = {};
  cohort = {};
  has_data = false;
  sealed = false;
  released = false;
  victim = false;
  pinned = false;
  set_aside = false;
  reset_asked = false;
  at_device = false;
  finished_at.reset();
  write_pointer = 0;
}

}  // namespace isozone
