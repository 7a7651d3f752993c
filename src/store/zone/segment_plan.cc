#include "store/zone/segment_plan.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace isozone {
namespace {

void Join(std::vector<ByteRange>& ranges, ByteRange next) {
  if (ranges.empty() || ranges.back().end() < next.offset) return ranges.push_back(next);
  ranges.back().length = std::max(ranges.back().end(), next.end()) - ranges.back().offset;
}

// The blocks that `valid` touches.
std::vector<ByteRange> BlockRuns(std::span<const ByteRange> valid, uint64_t block_size) {
  std::vector<ByteRange> runs;
  for (const ByteRange& range : valid) Join(runs, InBlocks(range, block_size));
  return runs;
}

// Cuts each run into pieces of `size`, counted from its own beginning.
std::vector<ByteRange> Cut(std::span<const ByteRange> runs, uint64_t size) {
  std::vector<ByteRange> pieces;
  for (const ByteRange& run : runs) {
    for (uint64_t at = run.offset; at < run.end(); at += size) pieces.push_back({at, std::min(size, run.end() - at)});
  }
  return pieces;
}

// The groups of `segment` that touch any of `runs`.
std::vector<ByteRange> Groups(std::span<const ByteRange> runs, const SegmentPlan& segment, const SegmentRules& rules) {
  std::vector<ByteRange> groups;
  const uint64_t segment_end = segment.offset + segment.length;
  uint64_t taken = segment.offset;  // groups up to here are in the list
  for (const ByteRange& run : runs) {
    for (uint64_t at = run.offset; at < run.end();) {
      const uint64_t group = segment.offset + RoundDown(at - segment.offset, rules.request_size);
      const uint64_t group_end = std::min(group + rules.request_size, segment_end);
      const uint64_t end = std::min(group_end, run.end());
      if (group_end > taken) {
        groups.push_back(rules.trim_groups ? ByteRange{at, end - at} : ByteRange{group, group_end - group});
        taken = group_end;
      } else if (rules.trim_groups) {
        groups.back().length = end - groups.back().offset;
      }
      at = end;
    }
  }
  return groups;
}

void Decide(SegmentPlan& segment, const SegmentRules& rules) {
  const std::vector<ByteRange> runs = BlockRuns(segment.valid, rules.block_size);
  uint64_t bytes = 0;
  for (const ByteRange& run : runs) bytes += run.length;
  segment.valid_blocks = bytes / rules.block_size;
  segment.cold = static_cast<double>(bytes) > rules.cold_utilisation * static_cast<double>(segment.length);
  segment.grouped = segment.valid_blocks >= rules.group_blocks;
  segment.reads = segment.grouped ? Groups(runs, segment, rules) : Cut(runs, rules.request_size);
}

}  // namespace

std::vector<ByteRange> PlanRuns(std::span<const ByteRange> valid, const SegmentRules& rules) {
  return Cut(BlockRuns(valid, rules.block_size), rules.request_size);
}

std::vector<SegmentPlan> PlanSegments(std::span<const ByteRange> valid, uint64_t written, const SegmentRules& rules) {
  assert(IsAligned(rules.segment_size, rules.block_size) && IsAligned(rules.request_size, rules.block_size));
  std::vector<SegmentPlan> segments;
  for (const ByteRange& range : valid) {
    assert(range.length > 0 && range.end() <= written);
    for (uint64_t at = range.offset; at < range.end();) {
      const uint64_t begin = RoundDown(at, rules.segment_size);
      const uint64_t end = std::min(begin + rules.segment_size, range.end());
      if (segments.empty() || segments.back().offset != begin) {
        segments.push_back({.offset = begin, .length = std::min(rules.segment_size, written - begin)});
      }
      segments.back().valid.push_back({at, end - at});
      at = end;
    }
  }
  for (SegmentPlan& segment : segments) Decide(segment, rules);
  return segments;
}

std::vector<ByteRange> RangesOf(std::span<const uint64_t> bitmap, uint64_t block_size) {
  constexpr uint64_t kBits = 64;
  std::vector<ByteRange> ranges;
  for (size_t word = 0; word < bitmap.size(); ++word) {
    for (uint64_t left = bitmap[word]; left != 0;) {
      const auto first = static_cast<uint64_t>(std::countr_zero(left));
      const auto count = static_cast<uint64_t>(std::countr_one(left >> first));
      Join(ranges, {(word * kBits + first) * block_size, count * block_size});
      if (first + count == kBits) break;
      left &= ~uint64_t{0} << (first + count);
    }
  }
  return ranges;
}

}  // namespace isozone
