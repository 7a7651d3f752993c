// CollectedFiles: the files of a file system as its collector sees them (store/gc/gc_store.h). Runs are parts of
// extents that the journal knows. A file that is being written has others, which are published first
// (pending_extents.h). A zone is left alone only while it has live bytes that no run accounts for even so: of writes
// that have not ended, and of files that were removed while they are open.
//
// Locks: the namespace mutex while runs are looked up and while moves are committed, never across device I/O.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "store/file/mount_context.h"
#include "store/gc/gc_store.h"

namespace isozone {

class CollectedFiles final : public GcFiles {
 public:
  // `context` outlives this.
  explicit CollectedFiles(MountContext& context) : context_(context) {}

  void CountBlocks(std::span<GcCandidate> zones) const override;
  std::vector<GcRun> RunsIn(ZoneId zone) override;
  std::unique_ptr<GcWriter> MakeWriter(bool confined) override;
  Result<Outcome> Commit(std::span<const GcMove> moves) override;
  void GiveUp(std::span<const GcMove> moves) override;

 private:
  // Runs of all files that the journal knows. Empty where they are not all that lives in the zone.
  std::vector<GcRun> KnownRunsIn(ZoneId zone) const;
  // What of the moves of a file, in order of where they come from, it still has.
  struct Accepted {
    std::vector<ExtentMove> moves;
    std::vector<OpenFile::Relocation> placed;  // the same, as ranges of the file
  };
  Accepted StillThere(InodeId id, std::span<const GcMove> moves) const ISOZONE_REQUIRES(context_.namespace_mutex);
  // Of the zones that survivors have come to, what the metadata does not say yet.
  ZoneHeats NewHeats(const std::map<InodeId, Accepted>& accepted) const ISOZONE_REQUIRES(context_.namespace_mutex);
  // The claim on the copies of `moves`, which are no longer the collector's.
  SpaceClaim TakeCopies(std::span<const GcMove> moves) ISOZONE_REQUIRES(context_.namespace_mutex);
  // The metadata has the moves of the file, whose copies `copies` has: what it had before goes with the last read of
  // it.
  void Move(InodeId id, const Accepted& accepted, SpaceClaim& copies) ISOZONE_REQUIRES(context_.namespace_mutex);

  MountContext& context_;
};

}  // namespace isozone
