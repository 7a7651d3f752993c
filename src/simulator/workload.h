// Workload: which records are put, one after another. Deterministic from the seed.
//
// The hot records of a skewed phase are those whose hash is low, so that they lie anywhere.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/key_distributions.h"
#include "base/random.h"
#include "rocksdb/lsm/merge_model.h"
#include "simulator/sim_options.h"

namespace isozone {

class Workload {
 public:
  explicit Workload(const SimLoad& load);

  // Gets the next record. Returns false if everything has been put.
  bool Next(ModelRecord& record);
  // Returns the number of records of all phases.
  uint64_t total_records() const { return total_; }
  uint64_t done_records() const { return puts_; }
  // Returns the number of distinct records that were put and not deleted since.
  uint64_t live_records() const { return live_; }

 private:
  uint32_t NextKey(const SimPhase& phase);
  uint32_t NextShuffled();
  uint32_t NextSkewed(const SimPhase& phase);
  uint64_t RecordsOf(const SimPhase& phase) const;
  void Note(const ModelRecord& record);

  const SimLoad load_;
  const uint32_t records_;
  Random random_;
  const ScrambledZipfian zipfian_;
  uint64_t total_ = 0;
  size_t phase_ = 0;
  uint64_t done_in_phase_ = 0;
  uint32_t puts_ = 0;
  uint64_t live_ = 0;
  std::vector<bool> exists_;        // by number of record
  std::vector<uint32_t> permuted_;  // the permutation of a shuffled phase
};

}  // namespace isozone
