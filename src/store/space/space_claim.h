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

// A number of bytes in a zone. A list may name a zone twice: what counts is the sum.
using ZoneBytes = std::pair<ZoneId, uint64_t>;

class SpaceClaim {
 public:
  SpaceClaim() = default;  // of nothing
  // Makes `bytes` of `zone` live. `pool` must outlive this and what it is merged into.
  SpaceClaim(ZonePool& pool, ZoneId zone, uint64_t bytes);
  // Returns the claim on `bytes` of `zone`, which a write that has just ended has made live.
  static SpaceClaim OfWrite(ZonePool& pool, ZoneId zone, uint64_t bytes);
  // Returns the claim on `space`, which is live, and which the metadata has just ceased to name.
  static SpaceClaim FromMetadata(ZonePool& pool, std::span<const ZoneBytes> space);

  SpaceClaim(SpaceClaim&& other) noexcept;
  // Releases what this claim had.
  SpaceClaim& operator=(SpaceClaim&& other) noexcept;
  ~SpaceClaim() { Release(); }

  // Adds `other` to this claim. Both are of the same pool, if neither is empty.
  void Merge(SpaceClaim other);
  // Takes `part`, which this claim has, out of it, and returns the claim on that.
  SpaceClaim Split(std::span<const ZoneBytes> part);
  // Takes what this claim has in each zone beyond `space`, and returns the claim on that.
  SpaceClaim TakeBeyond(std::span<const ZoneBytes> space);
  // Makes live what this claim lacks of `space` in each zone, and adds it to this claim, so that it can Split off
  // `space`.
  void Grow(ZonePool& pool, std::span<const ZoneBytes> space);
  // Ends this claim, because the metadata names all of it from here on: the bytes stay live.
  void ToMetadata() { space_.clear(); }
  // Ends this claim early: nobody refers to its bytes any more.
  void Release();

 private:
  ZonePool* pool_ = nullptr;      // null only where there is no space
  std::vector<ZoneBytes> space_;  // by zone, each once, none of 0 bytes
};

}  // namespace isozone
