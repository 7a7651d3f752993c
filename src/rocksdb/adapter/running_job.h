// What the calling thread does for RocksDB now: a flush, a compaction or, mostly, neither. RocksDB tells its listeners
// and partitioners on the thread that does the work (lsm_level.h, rocksdb/steering); the files that this thread opens,
// reads and writes look here. Whoever has told of a job clears it at its end, so that the next job of the thread does
// not inherit it.
//
// Thread safety: each thread has its own.
#pragma once

#include <cstdint>
#include <utility>

#include <rocksdb/db.h>

#include "store/zone/data_class.h"

namespace isozone {

class OutputGuide;

struct FlushJob {
  const rocksdb::DB* db = nullptr;  // the innermost of wrapped ones; null: the thread does no flush
  int number = 0;                   // of the job; an atomic flush has one for all its column families
  uint32_t column_family = 0;
};

struct RunningJob {
  static RunningJob& OfThread() {
    static thread_local RunningJob job;
    return job;
  }

  // The level of the LSM tree for which tables are written: 0 in a flush, any other in a compaction; kNoLevel: not
  // told.
  int8_t level = DataClass::kNoLevel;
  const void* level_teller = nullptr;  // a partitioner, which may be destroyed after the thread was told something else
  FlushJob flush;                      // of an atomic flush, the part that began last
  OutputGuide* guide = nullptr;        // of the steered compaction; null: the thread does none
  // Tables that are opened now are of this cohort and have its zones to themselves; 0: they are of none.
  uint64_t cohort = 0;
  uint64_t expected_bytes = 0;  // of such a table

  void TellLevel(int its_level, const void* teller = nullptr) {
    level = its_level >= 0 && std::in_range<int8_t>(its_level) ? static_cast<int8_t>(its_level) : DataClass::kNoLevel;
    level_teller = teller;
  }
  void ForgetLevel() { TellLevel(DataClass::kNoLevel); }
};

}  // namespace isozone
