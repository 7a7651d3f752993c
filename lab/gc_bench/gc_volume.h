// GcVolume: the store that the collector benchmark works on, with logical blocks in zones of a device, written out of
// place. Stages 1 and 2 of the tool of the LSM_ZGC paper (section 4.1) are here; stage 3 is in gc_collector.h.
//
// Blocks have 4 KiB, as in the paper, or the size of a block of the device if that is larger. Each holds its logical
// number and version and bytes derived from both, so that Verify can check whether the content of the device matches
// the map.
//
// Zones: stages 1 and 2 fill `zones` zones. There are kSpareZones more: survivors of each heat have an open zone of
// their own, and two victims may wait for their last survivors to be written. At most kOpenZones are active.
//
// Thread safety: none; one thread uses a volume. Other threads may use other zones of the device at the same time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "device/zoned_device.h"
#include "gc_bench/gc_io.h"
#include "gc_bench/gc_map.h"
#include "gc_bench/gc_pattern.h"

namespace isozone::cli {

inline constexpr uint64_t kGcBlock = 4 * kKiB;
// Fills a block according to its logical number and version. `block` must be whole words.
void FillGcBlock(std::span<std::byte> block, uint32_t logical, uint32_t version);
bool IsGcBlock(std::span<const std::byte> block, uint32_t logical, uint32_t version);

class GcVolume {
 public:
  static constexpr uint32_t kOpenZones = kZoneHeatCount;  // new data, and survivors of three heats
  static constexpr uint32_t kSpareZones = kOpenZones + 3;
  static constexpr uint32_t kPendingVictims = 2;

  struct Shape {
    uint32_t zones = 0;      // zones that hold data
    double utilisation = 0;  // above 0, below 1
  };
  using ProgressFunction = std::function<void(uint64_t blocks)>;

  // `zones`: shape.zones + kSpareZones empty zones. kInvalidArgument if the utilisation leaves no valid or no invalid
  // block, kNotSupported if blocks do not fit the device. `device` must outlive the volume.
  static Result<std::unique_ptr<GcVolume>> Create(ZonedDevice& device, std::vector<ZoneId> zones, const Shape& shape);
  // How many logical blocks a volume of that shape has.
  static Result<uint32_t> LogicalBlocks(const DeviceGeometry& geometry, const Shape& shape);
  static uint64_t BlockSize(const DeviceGeometry& geometry) {
    return std::max<uint64_t>(kGcBlock, geometry.block_size);
  }

  // Stage 1: writes every logical block once, in order.
  Status Fill(const ProgressFunction& progress);
  // Stage 2: new versions of the blocks that `pattern` names, until all blocks of shape.zones zones are valid or
  // invalid.
  Status Update(UpdatePattern& pattern, const ProgressFunction& progress);
  // Reads every valid block back. kCorruption, with the first block that is not as it was written.
  Status Verify(const ProgressFunction& progress);

  const GcMap& map() const { return map_; }
  GcMap& map() { return map_; }
  ZonedDevice& device() { return device_; }
  uint64_t block_size() const { return block_size_; }
  // The number of blocks in shape.zones zones.
  uint64_t budget() const { return uint64_t{shape_zones_} * map_.blocks_per_zone(); }
  DeviceOffset OffsetOf(uint32_t zone, uint64_t block) const {
    return DeviceOffset(device_.geometry().ZoneStart(zones_[zone]).value() + block * block_size_);
  }
  // The most bytes of one command, up to `wanted`.
  uint64_t MaxTransfer(uint64_t wanted) const;
  // The open zone of that heat; GcMap::kNowhere if there is none.
  uint32_t& open_zone(ZoneHeat heat) { return open_zones_[static_cast<size_t>(heat)]; }

 private:
  GcVolume(ZonedDevice& device, std::vector<ZoneId> zones, const Shape& shape, uint32_t logical_blocks);
  Status WriteNew(const std::function<std::optional<uint32_t>()>& next, const ProgressFunction& progress);
  Status CheckRead(uint32_t zone, uint32_t first, std::span<const std::byte> data) const;

  ZonedDevice& device_;
  const std::vector<ZoneId> zones_;
  const uint32_t shape_zones_;
  const uint64_t block_size_;
  GcMap map_;
  std::array<uint32_t, kZoneHeatCount> open_zones_;
};

// A zone that is being emptied. It is reset when all of it was read and its survivors are written.
struct GcVictim {
  uint32_t zone = 0;
  uint64_t unwritten = 0;  // survivors in buffers
  bool all_read = false;
};

// Writes blocks of one heat, one after another. They gather in a buffer, which is written while the next one fills.
// There is one write at a time, so one zone is active.
class StreamWriter {
 public:
  using WrittenFunction = std::function<void(GcVictim&)>;

  // The buffers have `buffer_bytes`, whole blocks. `written` is called for a victim when its last survivor in buffers
  // was written.
  StreamWriter(GcVolume& volume, IoQueue& io, ZoneHeat heat, uint64_t buffer_bytes, WrittenFunction written);

  // False if a write must complete first, or a zone become free.
  bool CanAdd();
  // The place of the next block, to which the caller must copy its bytes at once. CanAdd() must hold. `victim` is the
  // victim that it survives from; null for new data, which is a new version.
  std::span<std::byte> Add(uint32_t logical, GcVictim* victim);
  // Requests that added blocks are written even if their buffer is not full.
  void Flush();
  // Starts the next write, if there is one and no other is in flight.
  bool SubmitWrite();

 private:
  struct Buffer {
    AlignedBuffer data;
    uint32_t zone = 0;
    uint32_t first = 0;   // block of the zone
    uint64_t blocks = 0;  // added
    uint64_t room = 0;    // blocks that fit the buffer and the zone; 0: idle
    bool ready = false;
    std::vector<std::pair<GcVictim*, uint64_t>> victims = {};  // each with the number of its survivors in the buffer
  };

  bool BeginBuffer();
  void EndWrite(Buffer& buffer);

  GcVolume& volume_;
  IoQueue& io_;
  const ZoneHeat heat_;
  const WrittenFunction written_;
  std::array<Buffer, 2> buffers_;
  size_t filling_ = 0;  // index in buffers_
  size_t writing_ = 0;  // the next to write, or in flight
  bool in_flight_ = false;
};

}  // namespace isozone::cli
