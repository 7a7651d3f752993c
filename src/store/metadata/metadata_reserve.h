// MetadataReserve: the zones reserved for the copies of the metadata, so that every copy can be written again at
// any time, however full the device is. For each copy, and for one more that is being written, there are as many as its
// checkpoint and what is left behind that for the journal take (CopyZones).
//
//   what a change does          what it must leave of the rest behind a checkpoint (RestLeftBy)
//   adds something              all of it: more zones are reserved first, or it is refused
//   says where written data is  three quarters: names that take all others leave room for what was accepted before
//   renames, moves data         half
//   removes, cuts, closes logs  the least: so no device is ever too full to be emptied
//
// Invariant: a checkpoint of the state, with the least of a rest, fits into the zones that are reserved for a copy.
//
// Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "device/zoned_device.h"
#include "store/metadata/metadata.h"
#include "store/metadata/metadata_log.h"
#include "store/space/zone_pool.h"

namespace isozone {

// What a change must leave where it makes `state`, which does not have it yet, larger.
MetadataRest RestLeftBy(const MetadataState& state, std::span<const MetadataOp> ops);

class MetadataReserve {
 public:
  // Of `copies` copies, and a state that takes `bytes` in a checkpoint. `pool` outlives it.
  MetadataReserve(const DeviceGeometry& geometry, ZonePool& pool, uint32_t copies, uint64_t bytes);

  // At mount: a device may have been filled up to what is needed in the least.
  void Renew(uint64_t bytes);
  // The state may become so many bytes, by a change that leaves `rest`. kNoSpace: there are no zones for that.
  Status Admit(uint64_t bytes, MetadataRest rest);
  // Whether a state of so many bytes leaves the whole rest, so that something can be added.
  bool has_whole(uint64_t bytes) const { return ZonesOfCopy(bytes, MetadataRest::kWhole) <= zones_; }
  // The state has so many bytes now. Zones that it no longer needs are given back.
  void Shrink(uint64_t bytes);

  // Zones that are reserved for each copy.
  uint32_t zones() const { return zones_; }
  // Zones of a copy that is begun now, with a checkpoint of so many bytes: no more than are reserved, where what may
  // use the rest has made it larger than that.
  uint32_t ZonesOfNext(uint64_t bytes) const;

 private:
  uint32_t ZonesOfCopy(uint64_t bytes, MetadataRest rest) const { return CopyZones(geometry_, bytes, rest); }
  uint32_t InAll(uint32_t zones_of_a_copy) const { return zones_of_a_copy * (copies_ + 1); }

  const DeviceGeometry geometry_;
  ZonePool& pool_;
  const uint32_t copies_;
  uint32_t zones_;
};

}  // namespace isozone
