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

// Returns what a change must leave if it makes `state`, to which it was not applied yet, larger.
MetadataRest RestLeftBy(const MetadataState& state, std::span<const MetadataOp> ops);

class MetadataReserve {
 public:
  // Reserves zones for `copies` copies of a state that takes `bytes` in a checkpoint. `pool` must outlive this.
  MetadataReserve(const DeviceGeometry& geometry, ZonePool& pool, uint32_t copies, uint64_t bytes);

  // Reserves them anew at mount. The device may have been filled up to the least that is needed.
  void Renew(uint64_t bytes);
  // Makes sure that the state may grow to so many bytes by a change that leaves `rest`. kNoSpace if there are no zones
  // for that.
  Status Admit(uint64_t bytes, MetadataRest rest);
  // Returns whether a state of so many bytes leaves the whole rest, so that something can be added.
  bool has_whole(uint64_t bytes) const { return ZonesOfCopy(bytes, MetadataRest::kWhole) <= zones_; }
  // Notes that the state has so many bytes now, and gives back zones that it no longer needs.
  void Shrink(uint64_t bytes);

  // Returns how many zones are reserved for each copy.
  uint32_t zones() const { return zones_; }
  // Returns the zones of a copy that is begun now, with a checkpoint of so many bytes: no more than are reserved, but
  // always enough for the least rest.
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
