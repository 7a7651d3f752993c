#include "store/space/metadata_zones.h"

#include <fmt/format.h>

#include "store/space/zone_executor.h"

namespace isozone {

Result<ZoneLease> MetadataZones::Acquire(std::span<const ZoneId> apart_from) {
  const MutexLock lock(executor_.mu);
  ZoneAllocator::Inquiry inquiry(executor_.allocator, ZoneAllocator::Inquiry::Purpose::kBegin, apart_from);
  ISOZONE_ASSIGN_OR_RETURN(const ZoneGrant grant, executor_.Grant(inquiry));
  return executor_.LeaseOf(grant);
}

Result<ZoneId> MetadataZones::SetAside(std::span<const ZoneId> apart_from) {
  const MutexLock lock(executor_.mu);
  ZoneAllocator::Inquiry inquiry(executor_.allocator, ZoneAllocator::Inquiry::Purpose::kSetAside, apart_from);
  ISOZONE_ASSIGN_OR_RETURN(const ZoneGrant grant, executor_.Grant(inquiry));
  return grant.zone;
}

Result<ZoneLease> MetadataZones::Reopen(ZoneId zone) {
  const MutexLock lock(executor_.mu);
  const ZoneRecord& record = executor_.allocator.ledger().table.at(zone);
  const bool set_aside = record.phase == ZonePhase::kEmpty && record.set_aside;
  const bool reopenable = record.phase == ZonePhase::kIdle || set_aside;
  if (record.use != ZoneUse::kMetadata || !reopenable || record.released) {
    return Status::InvalidArgument(fmt::format("zone {} ({}) cannot be written on: it is full, leased or broken",
                                               zone.value(), ZoneUseName(record.use)));
  }
  ZoneAllocator::Inquiry inquiry(executor_.allocator, zone);
  ISOZONE_ASSIGN_OR_RETURN(const ZoneGrant grant, executor_.Grant(inquiry));
  return executor_.LeaseOf(grant);
}

void MetadataZones::Release(ZoneId zone) {
  const MutexLock lock(executor_.mu);
  executor_.allocator.ReleaseMetadata(zone);
  executor_.Announce();
}

bool MetadataZones::Reserve(uint32_t zones, MetadataClaim claim) {
  const MutexLock lock(executor_.mu);
  const bool fits = executor_.allocator.ReserveForMetadata(zones, claim);
  executor_.changed.SignalAll();  // where the reserve has become smaller, waiting writers may have a zone
  return fits;
}

}  // namespace isozone
