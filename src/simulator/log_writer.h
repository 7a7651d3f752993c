// LogWriter: the write-ahead log in virtual time. Each memtable has a log, which is written as it is filled, and
// removed when it is a table of level 0. Puts do not wait for the log to be durable, as with RocksDB's defaults. With
// policies that stripe they wait only while every lane of the log is busy, or for a zone. With others they wait for the
// device to have taken each part of the log, as in ZenFS.
//
// Thread safety: none.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "simulator/lane_writer.h"
#include "simulator/sim_world.h"

namespace isozone {

class LogWriter {
 public:
  explicit LogWriter(SimWorld& world);

  // Takes bytes of the memtable that is being filled. GoOn writes them, and must have returned true before the next
  // Take.
  void Take(uint64_t bytes);
  // Starts to write what was taken. Returns false if some of that has to wait for a lane or a zone, or if the policy
  // waits for the device; `actor` is then called when it may go on.
  Result<bool> GoOn(Actor& actor);

 private:
  SimWorld& world_;
  LaneWriter writer_;
  uint64_t log_ = 0;      // the file that is written; 0: none
  uint64_t pending_ = 0;  // bytes that were taken and not started
};

}  // namespace isozone
