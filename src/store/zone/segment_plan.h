// SegmentPlan: how a collector reads a zone, either run by run, as Basic_ZGC does, or segment by segment, as LSM_ZGC
// does (LSM_ZGC paper, section 3).
//
//   runs      The blocks that hold valid bytes, adjacent ones joined, in requests of at most request_size.
//   segments  The zone is cut into segments of segment_size. A segment with fewer than group_blocks valid blocks is
//             read in runs; any other in *groups*: whole requests of request_size, on multiples of it, invalid blocks
//             included. So few requests get the data, and each request is spread over all dies. A segment whose
//             utilisation is above cold_utilisation is *cold* (heat.h says what that means for its data).
//
// What the paper leaves open:
//  * It reads all of a segment. Here, a group without a valid block is left out, since there is nothing to get from it.
//  * It does not say what the utilisation refers to in a segment that ends with the zone. Here, to the blocks that it
//    has.
//
// Valid data are ranges of bytes, so that extents of files can be used as they are. A block is valid if any byte of it
// is. Offsets are from the start of the zone. The reads include all valid blocks, and each block at most once.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
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

// Returns the whole blocks that `range` touches. Reading it takes these, and so does a copy that keeps its offset in a
// block.
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
  // Whether a group's read begins at its first valid block and ends with its last. The paper reads all of a group.
  bool trim_groups = false;
};

// Returns how many segments a collector reads together that has `memory` bytes for two windows and their copies; at
// least 1. More victims in a batch are not read any faster.
inline size_t SegmentsOfWindow(uint64_t memory, const SegmentRules& rules) {
  return std::max<size_t>(1, memory / (4 * rules.segment_size));
}

struct SegmentPlan {
  uint64_t offset = 0;  // where the segment begins
  uint64_t length = 0;  // bytes; segment_size, or less at the end of the zone
  uint64_t valid_blocks = 0;
  bool cold = false;
  bool grouped = false;
  std::vector<ByteRange> reads = {};  // rising, without overlap, in whole blocks
  std::vector<ByteRange> valid = {};  // the given ranges in this segment, which `reads` covers
};

// Returns the reads of Basic_ZGC. `valid` must be in rising order, without overlaps and without empty ranges.
std::vector<ByteRange> PlanRuns(std::span<const ByteRange> valid, const SegmentRules& rules);

// Returns the segments that hold valid data, in rising order. `valid` is as for PlanRuns, and lies below `written`: the
// bytes from the start of the zone to its write pointer, whole blocks. No read goes beyond that.
std::vector<SegmentPlan> PlanSegments(std::span<const ByteRange> valid, uint64_t written, const SegmentRules& rules);

// Returns the ranges of a bitmap that has a bit for each block of `block_size` bytes, from bit 0 of the first word on.
// Adjacent blocks are joined.
std::vector<ByteRange> RangesOf(std::span<const uint64_t> bitmap, uint64_t block_size);

}  // namespace isozone
