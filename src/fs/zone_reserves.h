// Zone reserves: which empty zones are kept for whom, and what a device must have so that there are some.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "device/zoned_device.h"
#include "zone/active_budget.h"

namespace isozone {

inline constexpr uint32_t kSuperblockZoneCount = 2;  // zones 0 and 1

// Empty zones that are kept.
inline constexpr uint32_t kEmptyForMetadata = 2;  // the next journal zone and the next checkpoint
inline constexpr uint32_t kEmptyForGc = 1;
inline constexpr uint32_t kEmptyForLogs = 1;
inline constexpr uint32_t kEmptyReserve = kEmptyForMetadata + kEmptyForGc + kEmptyForLogs;

// So many must be empty, and one more, for `c` to get one.
uint32_t EmptyKeptFrom(BudgetClass c);

// What an Isozone file system needs of a device, in words for people; OK or kInvalidArgument.
Status CheckDeviceFits(const DeviceGeometry& geometry);

}  // namespace isozone
