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

// Zones from 0 on in which copies begin by preference: one for each, and one for the next one that is written.
constexpr uint32_t HomeZones(uint32_t copies) { return copies + 1; }
inline constexpr uint32_t kHomeZonesMax = HomeZones(kMetadataCopiesMax);

// Empty zones that are reserved.
inline constexpr uint32_t kEmptyForGc = 1;
inline constexpr uint32_t kEmptyForLogs = 1;

// So many must be empty, and one more, for `c` to get one, where `for_metadata` are reserved for metadata.
uint32_t EmptyKeptFrom(BudgetClass c, uint32_t for_metadata);

// What an Isozone file system needs of a device, in words for people; OK or kInvalidArgument.
Status CheckDeviceFits(const DeviceGeometry& geometry);

}  // namespace isozone
