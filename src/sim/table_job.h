// TableJob: writes the tables of a flush or a compaction in virtual time, piece by piece: what a piece is made of is
// read, then merged by the processor, then written to a lane.
//
//   policies that stripe     the next piece is read while one is merged, and one is merged while others are written
//   others                   one after another: each read and each write is waited for
//
// A table is closed when all of it is written; then the next one begins. Of each level of the inputs as much is read as
// corresponds to what is written.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "sim/lane_writer.h"
#include "sim/sim_world.h"

namespace isozone {

struct TableOutput {
  uint64_t file = 0;
  uint64_t bytes = 0;
  DataClass data;
  Cohort cohort = {};
};

// The files of one level, which are read in their order.
class InputStream {
 public:
  void Add(const StoredFile& file);
  uint64_t bytes() const { return bytes_; }
  // Reads the next `bytes`, or what is left; the time at which that ends. What was read is added to `read_bytes`.
  int64_t Read(DeviceTimes& times, int64_t now_ns, uint64_t bytes, uint64_t& read_bytes);

 private:
  struct File {
    std::vector<FilePlace> places;
    uint64_t bytes = 0;
  };
  std::vector<File> files_;
  uint64_t bytes_ = 0;
  size_t next_ = 0;
  uint64_t done_ = 0;  // of the next one
};

class TableJob {
 public:
  TableJob(SimWorld& world, const ZoneRequest& request);

  // A job that is done.
  void Begin(std::vector<TableOutput> outputs, std::vector<InputStream> inputs);
  // Goes on. True: all is written. False: `actor` will be called when there is more to do.
  Result<bool> Proceed(Actor& actor);

 private:
  enum class Step : uint8_t { kOpen, kPrepare, kWrite, kClose };

  void Open();
  LaneWriter::Expected ExpectedOf(const TableOutput& output) const;
  void Prepare();
  // False: it waits.
  Result<bool> Write(Actor& actor);
  // Whether that is in the future; the actor is called then.
  bool WaitUntil(int64_t time_ns, Actor& actor);
  int64_t ReadFor(uint64_t output_bytes);
  int64_t ReadAhead();

  SimWorld& world_;
  LaneWriter writer_;
  std::vector<TableOutput> outputs_;
  std::vector<InputStream> inputs_;
  uint64_t input_bytes_ = 0;
  uint64_t output_bytes_ = 0;
  Step step_ = Step::kOpen;
  size_t next_ = 0;            // output
  uint64_t left_ = 0;          // bytes of it
  uint64_t piece_ = 0;         // bytes that were merged and are not written yet
  int64_t ready_ns_ = 0;       // when they are merged
  int64_t read_ahead_ns_ = 0;  // when what comes next is read
  int64_t waits_since_ns_ = -1;
};

}  // namespace isozone
