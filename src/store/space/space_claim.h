// SpaceClaim: live bytes in zones (ZonePool), as something that one holder has and that goes with its holder.
//
// A live byte belongs to the metadata, which names it, or to one claim. It goes through these hands:
//
//   OfWrite                          was written, and counts as live since the write has ended (ZoneLease::Settle)
//   Merge, Split                     whoever has written it passes it on with the place where it lies
//   ToMetadata                       a record that names it was committed
//   FromMetadata                     a record that names it no more was committed: somebody may still read it
//   ~SpaceClaim, Release             nobody refers to it: the pool may reset the zone once that record is durable
//
// So when space is given back is the question of who holds it last: a write that has ended, a file's pending extents or
// region of a log, a copy of the collector, a ReadPin, or an OpenFile for its handles. Until a write has ended, its
// zone is leased, and so not reset either.
//
// A claim goes before its pool. What durable metadata may name is never released without a commit in between: where
// that fails, the metadata keeps what it had, and the claim what was new.
//
// Thread safety: one thread at a time. It may go on any thread, with any lock but the pool's own held: short, no I/O.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "device/zoned_device.h"

namespace isozone {

class ZonePool;

// So many bytes in a zone. A zone may be named twice: what counts is the sum.
using ZoneBytes = std::pair<ZoneId, uint64_t>;

class SpaceClaim {
 public:
  SpaceClaim() = default;  // of nothing
  // Makes `bytes` of `zone` live. `pool` outlives this and what it is merged into.
  SpaceClaim(ZonePool& pool, ZoneId zone, uint64_t bytes);
  // `bytes` of `zone` are live, of a write that has just ended.
  static SpaceClaim OfWrite(ZonePool& pool, ZoneId zone, uint64_t bytes);
  // `space` is live, and the metadata has just ceased to name it.
  static SpaceClaim FromMetadata(ZonePool& pool, std::span<const ZoneBytes> space);

  SpaceClaim(SpaceClaim&& other) noexcept;
  // Releases what it had.
  SpaceClaim& operator=(SpaceClaim&& other) noexcept;
  ~SpaceClaim() { Release(); }

  // Of the same pool, if neither is empty.
  void Merge(SpaceClaim other);
  // Takes `part`, which it has, out of it.
  SpaceClaim Split(std::span<const ZoneBytes> part);
  // Takes out of it what it has beyond `space` in a zone.
  SpaceClaim TakeBeyond(std::span<const ZoneBytes> space);
  // Makes live what it has less of than `space` in a zone, so that Split(space) can be had of it.
  void Grow(ZonePool& pool, std::span<const ZoneBytes> space);
  // The metadata names all of it from here on: it stays live, and is no longer this claim's.
  void ToMetadata() { space_.clear(); }
  // Ends it early.
  void Release();

 private:
  ZonePool* pool_ = nullptr;      // null only where there is no space
  std::vector<ZoneBytes> space_;  // by zone, each once, none of 0 bytes
};

}  // namespace isozone
