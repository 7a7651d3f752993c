// CollectedFiles: the files of a file system as its collector sees them (gc/gc_store.h). Runs are parts of extents that the
// journal knows; a file that is being written has others, which only its writer and its zones know of, so a zone is left
// alone while it has live bytes that no run accounts for.
//
// Locks: the namespace mutex while runs are looked up and while moves are committed, never across device I/O.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fs/core.h"
#include "gc/gc_store.h"

namespace isozone {

class CollectedFiles final : public GcStore {
 public:
  // `core` outlives this.
  explicit CollectedFiles(FsCore& core) : core_(core) {}

  GcSpace Space() const override { return core_.pool->SpaceForGc(); }
  std::vector<GcCandidate> Candidates() const override;
  std::optional<GcCandidate> Hold(ZoneId zone) override;
  void LetGo(ZoneId zone) override { core_.pool->EndCollection(zone); }
  std::vector<GcRun> RunsIn(ZoneId zone) const override;
  std::unique_ptr<GcWriter> MakeWriter() override;
  Result<Outcome> Commit(std::span<const GcMove> moves) override;
  void GiveUp(std::span<const GcMove> moves) override;
  void Attach(bool attached) override { core_.pool->AttachCollector(attached); }
  void BeginRound() override { core_.pool->BeginRound(); }
  void EndRound(bool gained) override { core_.pool->EndRound(gained); }
  void ResetAtOnce(bool at_once) override { core_.pool->ResetAtOnce(at_once); }
  void ResetDead() override { core_.pool->ResetDeadNow(); }
  void ThrottleBelow(double percent) override { core_.pool->ThrottleBelow(percent); }

 private:
  // Counts what is valid in whole blocks. False: copying would gain nothing.
  bool Gains(GcCandidate& candidate) const ISOZONE_REQUIRES(core_.namespace_mutex);
  // The file has its moves: what it had before goes with the last read of it.
  void Release(InodeId id, std::span<const ExtentMove> moves) ISOZONE_REQUIRES(core_.namespace_mutex);
  // Nobody has them: gives up the copies.
  void Drop(std::span<const ExtentMove> moves, Outcome& outcome);

  FsCore& core_;
};

}  // namespace isozone
