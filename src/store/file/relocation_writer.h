// RelocationWriter: the zones that GC writes to. Blocks are cut into units, which go to the lanes of a stripe
// set (stripe_set.h). The first lane is of the collector's reserve; more are opened only where nobody else needs the
// zones.
//
// Lanes are of one data class at a time. Another class begins new lanes. But if no zone is empty except those that are
// reserved, it goes on in the same lanes: mixed classes are better than a victim that is left half moved.
//
// A confined writer has a single lane, in zones that are partly written already (GcFiles::MakeWriter).
//
// Failures: what a zone has failed to take goes to another one, as long as not kMaxAttempts writes in a row have
// failed.
//
// Space: what was written is claimed by Catalog::copies when Write returns.
//
// Thread safety: one thread at a time.
#pragma once

#include <deque>
#include <vector>

#include "store/file/catalog.h"
#include "store/file/data_path.h"
#include "store/file/stripe_set.h"
#include "store/gc/gc_store.h"

namespace isozone {

class RelocationWriter final : public GcWriter {
 public:
  RelocationWriter(DataPath& data_path, Catalog& catalog, bool confined);
  Status Write(std::span<const GcBlocks> blocks, DataClass data, std::vector<GcMove>& moves) override;

 private:
  // A number of blocks that go out with one write.
  struct Unit {
    const GcBlocks* blocks = nullptr;
    uint64_t offset = 0;  // bytes in blocks->blocks
    uint64_t length = 0;
    uint64_t end() const { return offset + length; }
  };
  struct Started {
    Unit unit;
    StripeSet::Write write;
  };

  void CutIntoUnits(std::span<const GcBlocks> blocks);
  // Starts the next unit, or as much of it as fits into a lane.
  Status StartNext();
  // Settles writes in the order of their starts: up to the first that is in flight, or, with `wait`, all. Each goes
  // from started_ to `moves`, or, if it is lost, back to units_. Returns the first error.
  Status Collect(bool wait, std::vector<GcMove>& moves);
  Status TakeOver(Started& started, std::vector<GcMove>& moves);

  DataPath& data_path_;
  Catalog& catalog_;
  const bool confined_;
  const uint64_t unit_size_;
  StripeSet lanes_;
  DataClass data_;
  std::vector<Unit> units_;      // to be written; the next one is the last
  std::deque<Started> started_;  // in the order of the starts; addresses stay
  SpaceClaim written_;           // on the moves of this Write
  int failures_ = 0;             // writes in a row that failed
};

}  // namespace isozone
