// CollectedZones: the zones of a pool as its collector sees them (store/gc/gc_store.h).
//
// Thread safety: any thread.
#pragma once

#include <optional>
#include <vector>

#include "store/gc/gc_store.h"

namespace isozone {

class ZoneExecutor;

class CollectedZones final : public GcZones {
 public:
  // `executor` outlives this.
  explicit CollectedZones(ZoneExecutor& executor) : executor_(executor) {}

  GcSpace Space() const override;
  std::vector<GcCandidate> Candidates() const override;
  std::optional<GcCandidate> Hold(ZoneId zone) override;
  void LetGo(ZoneId zone) override;
  void Attach(bool attached) override;
  void BeginRound() override;
  void EndRound(bool gained) override;
  void ResetAtOnce(bool at_once) override;
  void ResetDead() override;
  void ThrottleBelow(double percent) override;

  // A log that lies in `zone`, which is of logs, has become data there. The zone is a candidate from now on.
  void NoteHasData(ZoneId zone);
  // Bytes of file data in a zone.
  uint64_t Live(ZoneId zone) const;
  // What a zone holds; of one that is being written, what it is opened for.
  ZoneHeat Heat(ZoneId zone) const;

 private:
  ZoneExecutor& executor_;
};

}  // namespace isozone
