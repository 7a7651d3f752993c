// ZoneLayout: which zones of a block device Isozone uses, and as which zones of the seam (ZonedDevice).
//
//   * Only sequential zones are used. Conventional zones, which have no write pointer, are left alone: the seam counts
//     the sequential ones from 0, so that metadata is found where it always is, at the first zones that it may lie in.
//   * The seam has one capacity. It is the one with which most bytes can be used. A zone that holds less, or is shorter
//     than the others, as the last one of a disk may be, is left alone. A zone that holds more is full when it has this
//     many bytes: LinuxDevice then finishes it, so that it holds no active resource.
//   * A zone that dies (read-only, offline) keeps its place: it is used, or left alone, for the capacity that it
//     reports, as before. If it reports none any more, it counts as used.
//
// So the numbers of zones are the same each time, as long as the device keeps the types and capacities of its zones.
//
// Thread safety: const methods only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/linux/block_kernel.h"
#include "device/linux/queue_facts.h"
#include "device/zoned_device.h"

namespace isozone {

class ZoneLayout {
 public:
  // Lays out `zones`, which are all zones of the device, in order. kNotSupported if none can be used, or if zones do
  // not lie one behind the other in equal distances.
  static Result<ZoneLayout> Of(const QueueFacts& facts, std::span<const KernelZone> zones);

  const DeviceGeometry& geometry() const { return geometry_; }
  uint32_t conventional() const { return conventional_; }  // zones without a write pointer, which are left alone
  uint32_t small() const { return small_; }                // zones of less capacity, which are left alone
  uint32_t large() const { return large_; }                // zones of more capacity, of which a part is used

  // Returns bytes from the start of the device.
  uint64_t PositionOf(ZoneId zone) const { return uint64_t{kernel_zone_[zone.value()]} * geometry_.zone_size; }
  uint64_t PositionOf(DeviceOffset offset) const {
    return PositionOf(geometry_.ZoneOf(offset)) + geometry_.OffsetInZone(offset);
  }
  // Returns whether the zone has a larger capacity on the device.
  bool IsLarge(ZoneId zone) const { return is_large_[zone.value()]; }
  // Returns how many zones from `zone` on lie next to each other on the device, at most `limit`.
  uint32_t RunOf(ZoneId zone, uint32_t limit) const;

  // Returns what the seam says of `zone`, which the kernel reports as `reported`.
  ZoneDescriptor Describe(ZoneId zone, const KernelZone& reported) const;
  // Returns whether the zone has all that the seam can write, and still holds an active resource of the device.
  bool NeedsFinish(const KernelZone& reported) const;

 private:
  DeviceGeometry geometry_;
  std::vector<uint32_t> kernel_zone_;  // by zone of the seam
  std::vector<bool> is_large_;         // likewise
  uint32_t conventional_ = 0;
  uint32_t small_ = 0;
  uint32_t large_ = 0;
};

// Converts the kernel's descriptor to bytes. Without `has_capacity` (BLK_ZONE_REP_CAPACITY) the capacity is the length.
KernelZone ToKernelZone(const blk_zone& zone, bool has_capacity);

}  // namespace isozone
