#include "store/space/adopted_zones.h"

#include <fmt/format.h>

#include "store/space/zone_executor.h"

namespace isozone {

Status AdoptedZones::SetMetadata(ZoneId zone) {
  if (zone.value() >= executor_.device.geometry().zone_count) {
    return Status::InvalidArgument(fmt::format("the device has no zone {}, which should hold metadata", zone.value()));
  }
  const MutexLock lock(executor_.mu);
  executor_.allocator.ledger().Adopt(zone, ZoneUse::kMetadata);
  return Status::Ok();
}

void AdoptedZones::SetDataClass(ZoneId zone, DataClass data) {
  const MutexLock lock(executor_.mu);
  executor_.allocator.ledger().table.Edit(zone)->data = data;
}

void AdoptedZones::ResetBeforeUse(ZoneId zone) {
  const MutexLock lock(executor_.mu);
  // A zone in which a write has failed is in this state, too: it is reset before it is written again.
  ZoneTable& table = executor_.allocator.ledger().table;
  if (table.at(zone).phase == ZonePhase::kEmpty) table.Edit(zone)->Fail(0);
}

void AdoptedZones::KeepAsItIs(ZoneId zone) {
  const MutexLock lock(executor_.mu);
  if (executor_.options.read_only) return;  // nothing is written here, but another process may append
  ZoneTable& table = executor_.allocator.ledger().table;
  const ZoneRecord& record = table.at(zone);
  if (record.phase == ZonePhase::kIdle) table.Edit(zone)->Fail(record.write_pointer);
}

void AdoptedZones::SetUse(ZoneId zone, ZoneUse use) {
  const MutexLock lock(executor_.mu);
  executor_.allocator.ledger().Adopt(zone, use);
}

void AdoptedZones::ReleaseUnnamed(const std::function<bool(ZoneId)>& is_named) {
  const MutexLock lock(executor_.mu);
  ZoneTable& table = executor_.allocator.ledger().table;
  for (uint32_t i = 0; i < table.size(); ++i) {
    const ZoneId zone(i);
    const ZoneRecord& record = table.at(zone);
    const bool given_up = record.kept && record.phase != ZonePhase::kEmpty;
    if ((record.dead() || given_up) && !is_named(zone)) table.Edit(zone)->Release();
  }
}

}  // namespace isozone
