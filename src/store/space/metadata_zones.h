// MetadataZones: the zones of a pool that the copies of the metadata are written to.
//
// Thread safety: any thread. Acquire may be called inside `make_durable`, and never waits for it.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "device/zoned_device.h"
#include "store/space/zone_lease.h"
#include "store/zone/allocator/zone_allocator.h"

namespace isozone {

class ZoneExecutor;

class MetadataZones {
 public:
  // `executor` outlives this.
  explicit MetadataZones(ZoneExecutor& executor) : executor_(executor) {}

  // An empty zone for a copy of the metadata to begin in: one of the first, if there is one or one of them is about to
  // be reset; of another group than `apart_from`, where that can be had. It stays the metadata's, leased or not, until
  // Release; one that is given back unwritten is free again.
  Result<ZoneLease> Acquire(std::span<const ZoneId> apart_from);
  // An empty zone for a copy to go on in, of another group likewise. It is set aside without being active.
  Result<ZoneId> SetAside(std::span<const ZoneId> apart_from);
  // The lease on a zone of metadata that is not full and that nobody holds, to write it; any other is kInvalidArgument.
  Result<ZoneLease> Reopen(ZoneId zone);
  // The metadata in `zone` is no longer needed, durably: reset in the background, once it is not leased, and free
  // again.
  void Release(ZoneId zone);
  // Keeps so many zones for metadata in all: those that it has and, beyond these, empty ones. False where there are too
  // few empty ones for `claim`; the reserve then stays as it was.
  bool Reserve(uint32_t zones, MetadataClaim claim);

 private:
  ZoneExecutor& executor_;
};

}  // namespace isozone
