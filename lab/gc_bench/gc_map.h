// GcMap: what the collector benchmark knows about its blocks. That is, where each logical block lies and in which
// version, which blocks of a zone are valid, and which heat a zone has. Bookkeeping only, no I/O.
//
// A zone is free, open (its blocks are handed out one after another), full, a victim, or being reset. Every written
// block is valid (the newest version of its logical block) or invalid. Only full zones become victims.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "store/zone/gc_scheme.h"
#include "store/zone/heat.h"

namespace isozone::cli {

class GcMap {
 public:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  // Begins with `zones` free zones of `blocks_per_zone` blocks each, and `logical_blocks` logical blocks that were
  // never written. The product must be below 2^32 - 1.
  GcMap(uint32_t zones, uint32_t blocks_per_zone, uint32_t logical_blocks);

  uint32_t zones() const { return static_cast<uint32_t>(zones_.size()); }
  uint32_t blocks_per_zone() const { return blocks_per_zone_; }
  uint32_t logical_blocks() const { return static_cast<uint32_t>(place_.size()); }

  bool HasFree() const { return free_ > 0; }
  // Opens the first free zone. There must be one.
  uint32_t Open(ZoneHeat heat);
  // Writes a new version of `logical` to the next block of the open zone `zone`. Returns the index of the block.
  uint32_t Write(uint32_t zone, uint32_t logical);
  // The same with the current version, whose old copy becomes invalid.
  uint32_t Move(uint32_t zone, uint32_t logical);
  void BeginReset(uint32_t zone);  // of a victim without valid blocks
  void EndReset(uint32_t zone);

  // The full zone with the fewest valid blocks; among equals, the one that was opened first. Nothing if no zone is
  // full.
  std::optional<uint32_t> LeastUtilised() const;
  // The full zones in which some block is invalid, as a GC scheme sees them, with a block as the unit of bytes.
  std::vector<GcCandidate> Candidates() const;
  // Makes a victim of a full zone.
  void TakeVictim(uint32_t zone);

  uint32_t written(uint32_t zone) const { return zones_[zone].written; }
  uint32_t valid(uint32_t zone) const { return zones_[zone].valid; }
  ZoneHeat heat(uint32_t zone) const { return zones_[zone].heat; }
  bool full(uint32_t zone) const { return zones_[zone].phase == Phase::kFull; }
  // A bit for each block of the zone; set where it is valid.
  std::span<const uint64_t> bitmap(uint32_t zone) const { return zones_[zone].bitmap; }
  bool IsValid(uint32_t zone, uint32_t block) const { return (zones_[zone].bitmap[block / 64] >> block % 64 & 1) != 0; }
  // The logical block that the block holds, or held when it became invalid.
  uint32_t logical(uint32_t zone, uint32_t block) const { return owner_[Index(zone, block)]; }
  // 0: never written.
  uint32_t version(uint32_t logical) const { return version_[logical]; }
  // Valid and invalid blocks of all zones.
  uint64_t written() const { return written_; }

 private:
  enum class Phase : uint8_t { kFree, kOpen, kFull, kVictim, kResetting };
  struct Zone {
    Phase phase = Phase::kFree;
    ZoneHeat heat = ZoneHeat::kC0;
    uint32_t written = 0;  // blocks
    uint32_t valid = 0;
    uint64_t opened = 0;      // rises with every zone opened
    uint64_t written_at = 0;  // its last write: blocks written to all zones up to it
    std::vector<uint64_t> bitmap = {};
  };

  size_t Index(uint32_t zone, uint32_t block) const { return size_t{zone} * blocks_per_zone_ + block; }
  void Invalidate(uint32_t logical);

  const uint32_t blocks_per_zone_;
  std::vector<Zone> zones_;
  std::vector<uint32_t> owner_;    // by block of the zones
  std::vector<uint32_t> place_;    // by logical block: which block of the zones; kNowhere
  std::vector<uint32_t> version_;  // by logical block
  uint32_t free_;
  uint64_t opened_ = 0;
  uint64_t written_ = 0;
  uint64_t written_ever_ = 0;  // blocks, those that are gone included
};

// The number of zones by utilisation (valid blocks of all blocks): 0-10 %, 10-20 %, ..., 90-100 %, without free zones.
inline constexpr int kUtilisationBuckets = 10;
using UtilisationHistogram = std::array<uint32_t, kUtilisationBuckets>;
UtilisationHistogram HistogramOf(const GcMap& map);

}  // namespace isozone::cli
