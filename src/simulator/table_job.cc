#include "simulator/table_job.h"

#include <algorithm>
#include <utility>

#include "base/units.h"

namespace isozone {
namespace {

constexpr uint64_t kTailBytes = 24 * kKiB;  // of a table: its footer, index and properties

}  // namespace

TableJob::TableJob(SimWorld& world, const ZoneRequest& request)
    : world_(world),
      writer_(*world.zones, world.loop, request, world.zones->parallel() ? world.options.device.stripe_width : 1) {}

void TableJob::Begin(std::vector<TableOutput> outputs, std::vector<InputStream> inputs) {
  outputs_ = std::move(outputs);
  inputs_ = std::move(inputs);
  input_bytes_ = 0;
  for (const InputStream& input : inputs_) input_bytes_ += input.bytes();
  output_bytes_ = 0;
  for (const TableOutput& output : outputs_) output_bytes_ += output.bytes;
  written_bytes_ = 0;
  next_ = 0;
  step_ = Step::kOpen;
  ready_ns_ = outputs_.empty() ? ReadFor(0) : world_.loop.now_ns();
}

// What the next `output_bytes` are made of; of no outputs, everything. RocksDB reads one input after another where the
// file system does not read ahead.
int64_t TableJob::ReadFor(uint64_t output_bytes) {
  const double share = output_bytes_ == 0 ? 1 : static_cast<double>(output_bytes) / static_cast<double>(output_bytes_);
  const int64_t now_ns = world_.loop.now_ns();
  int64_t ends_ns = now_ns;
  for (InputStream& input : inputs_) {
    const auto bytes = static_cast<uint64_t>(share * static_cast<double>(input.bytes()));
    const int64_t begin_ns = world_.zones->parallel() ? now_ns : ends_ns;
    ends_ns = std::max(ends_ns, input.Read(world_.times, begin_ns, bytes, world_.report.compaction_read_bytes));
  }
  return ends_ns;
}

int64_t TableJob::ReadTail() { return world_.times.Read(world_.loop.now_ns(), last_zone_, kTailBytes); }

bool TableJob::WaitUntil(int64_t time_ns, Actor& actor) {
  if (time_ns <= world_.loop.now_ns()) return false;
  world_.loop.CallAt(time_ns, actor);
  return true;
}

Result<bool> TableJob::Proceed(Actor& actor) {
  for (;;) {
    switch (step_) {
      case Step::kOpen:
        if (WaitUntil(ready_ns_, actor)) return false;
        if (next_ == outputs_.size()) return true;
        Open();
        break;
      case Step::kPrepare:
        if (!world_.zones->parallel() && WaitUntil(writer_.ends_ns(), actor)) return false;
        Prepare();
        break;
      case Step::kWrite: {
        if (WaitUntil(ready_ns_, actor)) return false;
        ISOZONE_ASSIGN_OR_RETURN(const bool started, Write(actor));
        if (!started) return false;
        break;
      }
      case Step::kClose:
        if (WaitUntil(writer_.ends_ns(), actor)) return false;
        writer_.Clear();
        ready_ns_ = ReadTail();
        ++next_;
        step_ = Step::kOpen;
        break;
    }
  }
}

void TableJob::Open() {
  const TableOutput& output = outputs_[next_];
  world_.zones->AddFile(output.file, output.data);
  writer_.SetDataClass(output.data);
  writer_.Expect(ExpectedOf(output));
  left_ = output.bytes;
  step_ = Step::kPrepare;
}

LaneWriter::Expected TableJob::ExpectedOf(const TableOutput& output) const {
  LaneWriter::Expected expected;
  expected.cohort = output.cohort;
  // What the file system is told of a short-lived table (rocksdb/steering/output_guide.h): half of one, on average.
  if (!output.cohort.none()) expected.bytes = world_.options.tree.limits.table_bytes / 2;
  expected.unit_bytes = world_.PieceBytes();
  expected.width = LanesOf(expected.bytes, world_.options.device.stripe_unit, world_.options.device.stripe_width);
  return expected;
}

void TableJob::Prepare() {
  piece_ = std::min(world_.PieceBytes(), left_);
  // The processor goes over the inputs of the piece, or, of a flush, over the piece.
  const double inputs_per_output = static_cast<double>(input_bytes_) / static_cast<double>(output_bytes_);
  const double work = static_cast<double>(piece_) * std::max(1.0, inputs_per_output);
  const int64_t merging_ns =
      static_cast<int64_t>(work * kSecondNs / static_cast<double>(world_.options.rates.compaction));
  ready_ns_ = ReadFor(piece_) + merging_ns;
  step_ = Step::kWrite;
}

Result<bool> TableJob::Write(Actor& actor) {
  const int64_t now_ns = world_.loop.now_ns();
  ISOZONE_ASSIGN_OR_RETURN(const LaneWriter::Started started,
                           writer_.Start(outputs_[next_].file, piece_, LaneWish::kInTurn));
  if (started.bytes == 0) {
    world_.loop.CallAt(started.until_ns, actor);
    if (!started.for_zone) return false;
    if (waits_since_ns_ < 0) waits_since_ns_ = now_ns;
    world_.loop.CallOn(world_.zones->changed(), actor);
    return false;
  }
  if (waits_since_ns_ >= 0) world_.report.space_wait_ns += now_ns - std::exchange(waits_since_ns_, -1);
  piece_ -= started.bytes;
  left_ -= started.bytes;
  written_bytes_ += started.bytes;
  last_zone_ = started.place.zone;
  if (piece_ == 0) step_ = left_ == 0 ? Step::kClose : Step::kPrepare;
  return true;
}

}  // namespace isozone
