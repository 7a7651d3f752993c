#include "store/space/collected_zones.h"

#include "store/space/zone_executor.h"

namespace isozone {

GcSpace CollectedZones::Space() const {
  const MutexLock lock(executor_.mu);
  return executor_.allocator.collection().Space();
}

std::vector<GcCandidate> CollectedZones::Candidates() const {
  const MutexLock lock(executor_.mu);
  return executor_.allocator.collection().Candidates();
}

std::optional<GcCandidate> CollectedZones::Hold(ZoneId zone) {
  const MutexLock lock(executor_.mu);
  return executor_.allocator.collection().Begin(zone);
}

void CollectedZones::LetGo(ZoneId zone) {
  const MutexLock lock(executor_.mu);
  executor_.allocator.collection().End(zone);
  executor_.Announce();
}

void CollectedZones::Attach(bool attached) {
  const MutexLock lock(executor_.mu);
  executor_.allocator.ledger().rounds.Attach(attached);
  executor_.changed.SignalAll();
}

void CollectedZones::BeginRound() {
  const MutexLock lock(executor_.mu);
  executor_.allocator.ledger().rounds.Begin();
}

void CollectedZones::EndRound(bool gained) {
  const MutexLock lock(executor_.mu);
  executor_.allocator.ledger().rounds.End(gained);
  executor_.changed.SignalAll();
}

void CollectedZones::ResetAtOnce(bool at_once) {
  const MutexLock lock(executor_.mu);
  executor_.allocator.ledger().reset_at_once = at_once;
  executor_.WakeIfDue();
}

void CollectedZones::ResetDead() {
  const MutexLock lock(executor_.mu);
  executor_.allocator.upkeep().AskForDead();
  executor_.work.Signal();
}

void CollectedZones::ThrottleBelow(double percent) {
  const MutexLock lock(executor_.mu);
  executor_.allocator.collection().ThrottleBelow(percent);
  executor_.NoteSpace();
}

void CollectedZones::NoteHasData(ZoneId zone) {
  const MutexLock lock(executor_.mu);
  executor_.allocator.ledger().table.Edit(zone)->has_data = true;
}

uint64_t CollectedZones::Live(ZoneId zone) const {
  const MutexLock lock(executor_.mu);
  return executor_.allocator.ledger().table.at(zone).live;
}

ZoneHeat CollectedZones::Heat(ZoneId zone) const {
  const MutexLock lock(executor_.mu);
  return executor_.allocator.ledger().table.at(zone).data.heat;
}

}  // namespace isozone
