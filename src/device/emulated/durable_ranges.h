// Which bytes of a zone survive a power cut: a prefix, and up to ZoneEntry::kRangesBeyond ranges behind it. Such a
// range is a write with Force Unit Access that overtook earlier bytes of its zone, which are still in the volatile
// cache.
//
//   0 ........ durable | in the cache | range | in the cache | range | in the cache ........ written
//
// If more ranges are needed than the entry can hold, the bytes before the first range become durable: a device may
// write its cache to the medium at any time.
//
// Each change is a store of one word, or several stores in an order in which no durable byte is ever left out. So a
// process that is killed between them leaves an entry that is still correct.
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

// Makes the bytes below `end` durable.
void MakePrefixDurable(ZoneEntry& entry, uint64_t block_size, uint64_t end);
// Makes the bytes of `range` durable, and no others.
void MakeRangeDurable(ZoneEntry& entry, uint64_t block_size, ZoneRange range);
// Sets that the zone holds `end` bytes, all of them durable.
void ResetDurable(ZoneEntry& entry, uint64_t end);

// Returns the ranges behind the prefix, in order. Adjacent ranges may be reported as two.
std::vector<ZoneRange> DurableBeyond(const ZoneEntry& entry, uint64_t block_size);

}  // namespace isozone
