// PutStream: the user, who puts the records of the load as fast as the database takes them. A put waits, as in RocksDB,
// while all memtables are full, level 0 has too many files, or too much is to be compacted. It is slowed down while
// level 0 has many files, or much is to be compacted. And it waits for the pace of those who make space where that is
// short (WritePace).
//
// Puts are made in slices: what is looked at before a slice holds for all of it.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/log_writer.h"
#include "simulator/sim_world.h"
#include "simulator/workload.h"

namespace isozone {

class PutStream final : public Actor {
 public:
  explicit PutStream(SimWorld& world);
  void Proceed() override;

  const Workload& workload() const { return workload_; }

 private:
  static constexpr uint64_t kSliceBytes = 512 * kKiB;

  // Returns whether a slice may be put now. If not, the actor waits, and one of the stalls grows.
  bool MayPut();
  bool Logs();
  void StallOn(int64_t& stall_ns);
  void WaitForTree(int64_t& stall_ns);
  bool IsSlowed() const;
  bool PaysForSlice();
  void EndStall();
  // Puts a slice. Returns false if nothing is left to put.
  bool PutSlice();
  void SealMemtable();

  SimWorld& world_;
  Workload workload_;
  LogWriter log_;
  const uint64_t memtable_records_;
  const uint64_t slice_records_;
  std::vector<ModelRecord> memtable_;
  int64_t* stall_ns_ = nullptr;  // the stall that grows while it waits
  int64_t stalled_since_ns_ = 0;
  int64_t pays_since_ns_ = -1;
  bool paced_ = false;
};

}  // namespace isozone
