// CollectedFiles: the files of a file system as its collector sees them (store/gc/gc_store.h). Runs are parts of
// extents that the journal knows. A file that is being written has other extents, which are published first
// (pending_extents.h). If a zone still has live bytes that are in no run, it is left alone: these are of writes that
// have not ended, and of files that were removed while they are open.
//
// Locks: the namespace mutex while runs are looked up and while moves are committed, never across device I/O.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "store/file/catalog.h"
#include "store/file/data_path.h"
#include "store/gc/gc_store.h"

namespace isozone {

class CollectedFiles final : public GcFiles {
 public:
  // Both must outlive this.
  CollectedFiles(DataPath& data_path, Catalog& catalog) : data_path_(data_path), catalog_(catalog) {}

  void CountBlocks(std::span<GcCandidate> zones) const override;
  std::vector<GcRun> RunsIn(ZoneId zone) override;
  std::unique_ptr<GcWriter> MakeWriter(bool confined) override;
  Result<Outcome> Commit(std::span<const GcMove> moves) override;
  void GiveUp(std::span<const GcMove> moves) override;

 private:
  // Returns the runs of all files that the journal knows. Empty if they are not all that is live in the zone.
  std::vector<GcRun> KnownRunsIn(ZoneId zone) const;
  // The moves of a file, sorted by where they come from, as far as the file still has these bytes.
  struct Accepted {
    std::vector<ExtentMove> moves;
    std::vector<OpenFile::Relocation> placed;  // the same moves, as ranges of the file
  };
  Accepted StillThere(InodeId id, std::span<const GcMove> moves) const ISOZONE_REQUIRES(catalog_.namespace_mutex);
  // Returns the heats of zones that survivors have come to, as far as the metadata does not have them yet.
  ZoneHeats NewHeats(const std::map<InodeId, Accepted>& accepted) const ISOZONE_REQUIRES(catalog_.namespace_mutex);
  // Takes the claim on the copies of `moves` from the collector.
  SpaceClaim TakeCopies(std::span<const GcMove> moves) ISOZONE_REQUIRES(catalog_.namespace_mutex);
  // Lets the open file follow once the metadata has its moves. Of `copies`, the metadata owns those of the file from
  // now on. The places before go with the last read that uses them.
  void Move(InodeId id, const Accepted& accepted, SpaceClaim& copies) ISOZONE_REQUIRES(catalog_.namespace_mutex);

  DataPath& data_path_;
  Catalog& catalog_;
};

}  // namespace isozone
