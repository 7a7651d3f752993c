// TableJob: writes the tables of a flush or a compaction in virtual time, piece by piece: what a piece is made of is
// read, then merged by the processor, then written to a lane.
//
//   policies that stripe     a piece is merged while others are written, and while more is read (input_stream.h)
//   others                   one after another: each read and each write is waited for
//
// A table is closed when all of it is written, and opened, as RocksDB does before it is used; then the next one begins.
// Of each level of the inputs as much is read as corresponds to what is written.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "simulator/input_stream.h"
#include "simulator/lane_writer.h"
#include "simulator/sim_world.h"

namespace isozone {

struct TableOutput {
  uint64_t file = 0;
  uint64_t bytes = 0;
  DataClass data;
  Cohort cohort = {};
};

class TableJob {
 public:
  TableJob(SimWorld& world, const ZoneRequest& request);

  // Begins the next job. The one before must be done.
  void Begin(std::vector<TableOutput> outputs, std::vector<InputStream> inputs);
  // Goes on with the job. Returns true when everything is written. Otherwise `actor` is called when there is more to
  // do.
  Result<bool> Proceed(Actor& actor);
  // Returns how many bytes of the outputs are written, or being written.
  uint64_t written_bytes() const { return written_bytes_; }

 private:
  enum class Step : uint8_t { kOpen, kPrepare, kWrite, kClose };

  void Open();
  LaneWriter::Expected ExpectedOf(const TableOutput& output) const;
  void Prepare();
  // Starts to write the piece that is ready. Returns false if it has to wait.
  Result<bool> Write(Actor& actor);
  // Returns whether `time_ns` is in the future. If so, `actor` is called then.
  bool WaitUntil(int64_t time_ns, Actor& actor);
  // Reads the inputs of the next `output_bytes`, or all inputs if there are no outputs. Returns the time at which they
  // are read.
  int64_t ReadFor(uint64_t output_bytes);
  // Reads the end of the table that was written. Returns the time at which it is read.
  int64_t ReadTail();

  SimWorld& world_;
  LaneWriter writer_;
  std::vector<TableOutput> outputs_;
  std::vector<InputStream> inputs_;
  uint64_t input_bytes_ = 0;
  uint64_t output_bytes_ = 0;
  uint64_t written_bytes_ = 0;
  Step step_ = Step::kOpen;
  size_t next_ = 0;       // index of the output that is written
  uint64_t left_ = 0;     // bytes of that output that are left
  uint64_t piece_ = 0;    // bytes that were merged and are not written yet
  int64_t ready_ns_ = 0;  // when the piece is merged; before a table, when the one before is open
  ZoneId last_zone_{0};   // the zone that was written to last
  int64_t waits_since_ns_ = -1;
};

}  // namespace isozone
