// Which bytes of a zone survive a power cut: a prefix, and behind it up to ZoneEntry::kRangesBeyond ranges. A range stands
// for a write with Force Unit Access that overtook earlier bytes of its zone, which are still in the volatile cache.
//
//   0 ........ durable | in the cache | range | in the cache | range | in the cache ........ written
//
// Where a range more is needed than the entry can hold, the bytes before the first one become durable: a device may
// write its cache to the medium at any time.
//
// Each change is a store of one word, or several in an order that leaves no durable byte out meanwhile, so that a process
// killed in between leaves an entry that says the truth.
//
// Thread safety: the owner serialises calls for one entry.
#pragma once

#include <cstdint>
#include <vector>

#include "device/emulated/image_format.h"

namespace isozone {

// Bytes of a zone, in whole blocks.
struct ZoneRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const ZoneRange&) const = default;
};

// The bytes below `end`.
void MakePrefixDurable(ZoneEntry& entry, uint64_t block_size, uint64_t end);
// The bytes of `range` only.
void MakeRangeDurable(ZoneEntry& entry, uint64_t block_size, ZoneRange range);
// The zone holds `end` bytes, all of them durable.
void ResetDurable(ZoneEntry& entry, uint64_t end);

// The ranges behind the prefix, in order; ranges that lie one behind the other may be reported as two.
std::vector<ZoneRange> DurableBeyond(const ZoneEntry& entry, uint64_t block_size);

}  // namespace isozone
