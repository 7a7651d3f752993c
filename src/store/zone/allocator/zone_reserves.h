// Zone reserves: which empty zones are reserved for whom, and what a device must have so that there are some.
//
// Metadata has the first zones for itself, one for each copy and one for the next: that is enough as long as a copy
// fits into a zone. Where copies are longer, it may have as many zones for each of them and for the next, and those
// that it does not have yet are kept empty for it (ZonePool::ReserveForMetadata).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "device/zoned_device.h"
#include "store/zone/allocator/active_budget.h"

namespace isozone {

inline constexpr uint32_t kMetadataCopiesMax = 2;

// Returns the number of zones, from 0 on, in which copies begin by preference: one for each, and one for the next one
// that is written.
constexpr uint32_t HomeZones(uint32_t copies) { return copies + 1; }
inline constexpr uint32_t kHomeZonesMax = HomeZones(kMetadataCopiesMax);

// Numbers of empty zones that are reserved.
inline constexpr uint32_t kEmptyForGc = 1;
inline constexpr uint32_t kEmptyForLogs = 1;

// Returns how many empty zones `c` may not have; it gets one if more are empty. `for_metadata` are reserved for
// metadata.
uint32_t EmptyKeptFrom(BudgetClass c, uint32_t for_metadata);

// Checks that a device has what an Isozone file system needs. kInvalidArgument says in words for people what is
// missing.
Status CheckDeviceFits(const DeviceGeometry& geometry);

}  // namespace isozone
