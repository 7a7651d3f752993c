// The background jobs of the database in virtual time: each worker does one flush, or one compaction, at a time.
//
// A compaction merges when it begins, since what it merges does not change meanwhile; its outputs are in the tree when
// they are written.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/sim_world.h"
#include "simulator/table_job.h"

namespace isozone {

class FlushWorker final : public Actor {
 public:
  explicit FlushWorker(SimWorld& world);
  void Proceed() override;

 private:
  bool Begin();
  // Returns whether the next memtable may be flushed. In a steered tree it may have to wait.
  bool MayBegin();
  void End();

  SimWorld& world_;
  TableJob job_;
  bool busy_ = false;
  uint64_t memtable_ = 0;
  LsmFile table_;
  int64_t began_ns_ = 0;
};

class CompactionWorker final : public Actor {
 public:
  explicit CompactionWorker(SimWorld& world);
  void Proceed() override;

 private:
  bool Begin();
  Status BeginMerge(const CompactionPick& pick);
  // Tells the world how far the compaction has come.
  void NoteWritten();
  Status End();

  SimWorld& world_;
  TableJob job_;
  bool busy_ = false;
  CompactionJob running_ = 0;
  uint64_t input_bytes_ = 0;  // bytes of the inputs of the compaction that runs
  uint64_t noted_bytes_ = 0;  // what it has written, as far as the world knows
  std::vector<LsmFile> outputs_;
};

}  // namespace isozone
