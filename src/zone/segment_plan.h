// How a collector reads a zone: run by run, as Basic_ZGC does, or segment by segment, as LSM_ZGC does (LSM_ZGC paper,
// section 3).
//
//   runs      The blocks that hold valid bytes, adjacent ones joined, in requests of at most request_size.
//   segments  The zone is cut into segments of segment_size. A segment with fewer than group_blocks valid blocks is read
//             in runs; any other in *groups*: whole requests of request_size, on multiples of it, invalid blocks
//             included, so that few requests get the data and each is spread over all dies. A segment whose utilisation
//             is above cold_utilisation is *cold* (what becomes of it: heat.h).
//
// Where the paper leaves it open:
//  * It reads all of a segment. Here a group without a valid block is left out; there is nothing to get from it.
//  * It does not say what "above" is of a segment that ends with the zone: the share of the blocks it has.
//
// Valid data are ranges of bytes, so that extents of files fit as they are; a block is valid where any byte of it is.
// Offsets are from the start of the zone. What is valid is never left out of the reads, and each block is read once.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace isozone {

struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;

  uint64_t end() const { return offset + length; }
  bool operator==(const ByteRange&) const = default;
};

// The whole blocks that `range` touches: what reading it takes, and a copy of it that keeps its place in its first block.
inline ByteRange InBlocks(ByteRange range, uint64_t block_size) {
  const uint64_t begin = RoundDown(range.offset, block_size);
  return {begin, RoundUp(range.end(), block_size) - begin};
}

// The defaults are the paper's.
struct SegmentRules {
  uint64_t block_size = 4 * kKiB;      // bytes; reads are whole blocks
  uint64_t segment_size = 2 * kMiB;    // bytes; whole blocks, more than 0
  uint64_t request_size = 128 * kKiB;  // bytes of a read at most; whole blocks, more than 0
  uint32_t group_blocks = 16;          // valid blocks; 0: every segment is read in groups
  double cold_utilisation = 0.4;       // 0..1
  // A group's read begins at its first valid block and ends with its last; not in the paper, which reads all of it.
  bool trim_groups = false;
};

struct SegmentPlan {
  uint64_t offset = 0;  // where the segment begins
  uint64_t length = 0;  // bytes; segment_size, or less at the end of the zone
  uint64_t valid_blocks = 0;
  bool cold = false;
  bool grouped = false;
  std::vector<ByteRange> reads = {};  // rising, apart, in whole blocks
  std::vector<ByteRange> valid = {};  // what was given of this segment, within `reads`
};

// The reads of Basic_ZGC. `valid`: rising, none overlapping the next, no length 0.
std::vector<ByteRange> PlanRuns(std::span<const ByteRange> valid, const SegmentRules& rules);

// The segments that hold valid data, in rising order. `valid` as above, below `written`: bytes from the start of the
// zone to its write pointer, which no read passes; whole blocks.
std::vector<SegmentPlan> PlanSegments(std::span<const ByteRange> valid, uint64_t written, const SegmentRules& rules);

// The ranges of a bitmap with a bit for each block of `block_size` bytes, from bit 0 of the first word on; joined.
std::vector<ByteRange> RangesOf(std::span<const uint64_t> bitmap, uint64_t block_size);

}  // namespace isozone
