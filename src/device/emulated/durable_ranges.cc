#include "device/emulated/durable_ranges.h"

#include <algorithm>

namespace isozone {
namespace {

// A range as a word: (first block << 32) | block behind the last one. No zone has 2^32 blocks.
uint64_t Encode(ZoneRange range, uint64_t block_size) {
  return (range.begin / block_size) << 32 | range.end / block_size;
}

ZoneRange Decode(uint64_t word, uint64_t block_size) {
  return {(word >> 32) * block_size, (word & UINT32_MAX) * block_size};
}

bool ByBegin(const ZoneRange& a, const ZoneRange& b) { return a.begin < b.begin; }

}  // namespace

std::vector<ZoneRange> DurableBeyond(const ZoneEntry& entry, uint64_t block_size) {
  const uint64_t durable = entry.durable.load(std::memory_order_relaxed);
  const uint64_t written = LoadContent(entry).written;
  std::vector<ZoneRange> ranges;
  for (const auto& word : entry.durable_beyond) {
    const ZoneRange range = Decode(word.load(std::memory_order_relaxed), block_size);
    // Ignores a range that a process killed during a reset, or damage to the image, may have left.
    if (range.begin >= durable && range.begin < range.end && range.end <= written) ranges.push_back(range);
  }
  std::sort(ranges.begin(), ranges.end(), ByBegin);
  const auto overlap = std::adjacent_find(ranges.begin(), ranges.end(),
                                          [](const ZoneRange& a, const ZoneRange& b) { return a.end > b.begin; });
  if (overlap != ranges.end()) ranges.erase(overlap + 1, ranges.end());
  return ranges;
}

void MakePrefixDurable(ZoneEntry& entry, uint64_t block_size, uint64_t end) {
  uint64_t durable = std::max(entry.durable.load(std::memory_order_relaxed), end);
  for (const ZoneRange& range : DurableBeyond(entry, block_size)) {
    if (range.begin <= durable) durable = std::max(durable, range.end);
  }
  entry.durable.store(durable, std::memory_order_relaxed);
  for (auto& word : entry.durable_beyond) {
    if (Decode(word.load(std::memory_order_relaxed), block_size).end <= durable)
      word.store(0, std::memory_order_relaxed);
  }
}

void MakeRangeDurable(ZoneEntry& entry, uint64_t block_size, ZoneRange range) {
  const auto place = [&](auto&& fits) {
    return std::find_if(entry.durable_beyond.begin(), entry.durable_beyond.end(),
                        [&](const auto& word) { return fits(word.load(std::memory_order_relaxed)); });
  };
  if (range.begin <= entry.durable.load(std::memory_order_relaxed)) {
    return MakePrefixDurable(entry, block_size, range.end);
  }
  auto slot = place([&](uint64_t word) { return word != 0 && Decode(word, block_size).end == range.begin; });
  if (slot != entry.durable_beyond.end()) {
    range.begin = Decode(slot->load(std::memory_order_relaxed), block_size).begin;
  } else {
    slot = place([](uint64_t word) { return word == 0; });
  }
  if (slot != entry.durable_beyond.end()) return slot->store(Encode(range, block_size), std::memory_order_relaxed);
  const std::vector<ZoneRange> ranges = DurableBeyond(entry, block_size);
  MakePrefixDurable(entry, block_size, ranges.empty() ? range.end : ranges.front().end);
  MakeRangeDurable(entry, block_size, range);
}

void ResetDurable(ZoneEntry& entry, uint64_t end) {
  entry.durable.store(end, std::memory_order_relaxed);
  for (auto& word : entry.durable_beyond) word.store(0, std::memory_order_relaxed);
}

}  // namespace isozone
