// A unit is cut into parts, each of which goes to a lane of the stripe set with one write:
//
//   units    0   1   2   3   4   5   ...        in file order; a unit is cut in two where a zone ends
//   lanes    a   b   c   a   b   c
//
// The stripe set grows with the speed of the writer: a part for which no lane is free gets a new lane, if the pool has
// a zone that nobody else needs. So small files take few zones, and so do writers that are slower than one zone.
//
// A part whose write failed is written elsewhere when its turn to be finished comes, while the others go on.
#include "store/file/data_sink.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "store/file/pending_extents.h"
#include "store/file/stripe_set.h"

namespace isozone {
namespace {

class DataSink final : public WriteSink {
 public:
  DataSink(DataPath& data_path, Catalog& catalog, InodeId id, DataClass data, const SinkOptions& options)
      : data_path_(data_path),
        catalog_(catalog),
        depth_(options.depth),
        lanes_(data_path, {.use = ZoneUse::kData,
                           .width = options.width,
                           .cohort = options.cohort,
                           .expected_size = options.expected_size,
                           .unit = options.unit,
                           .wakes = options.wakes}),
        pending_(catalog, id, data) {
    lanes_.SetDataClass(data);
  }

  ~DataSink() override { Drop(); }

  size_t header_size() const override { return 0; }
  size_t depth() const override { return depth_; }

  Status Take(WriteUnit& unit, bool durable) override {
    const size_t padded = RoundUp(unit.used, data_path_.geometry().block_size);
    std::memset(unit.memory.data() + unit.used, 0, padded - unit.used);
    size_t parts = 0;
    for (size_t at = 0; at < padded; ++parts) {
      ISOZONE_ASSIGN_OR_RETURN(const size_t length, StartPart(unit, at, padded, durable));
      at += length;
    }
    units_.push_back(parts);
    return Status::Ok();
  }

  bool OldestIsDone() override {
    for (size_t i = 0; i < units_.front(); ++i) {
      if (!StripeSet::IsDone(parts_[i].write)) return false;
    }
    return true;
  }

  Status Finish(std::vector<FileExtent>& written) override {
    const size_t parts = units_.front();
    units_.pop_front();
    for (size_t i = 0; i < parts; ++i) {
      const Status status = TakeOver(parts_.front(), written);
      parts_.pop_front();
      if (status.ok()) continue;
      Drop();
      return status;
    }
    return Status::Ok();
  }

  void NoteReadable(std::span<const FileExtent> written) override {
    pending_.Add(written, std::exchange(finished_, {}));
  }

  void Drop() override {
    for (Part& part : parts_) lanes_.Settle(part.write);
    parts_.clear();
    units_.clear();
  }

  Status MakeKnown() override {
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, Publish());
    return catalog_.journal->Keep(sequence);
  }

  Status MakeDurable() override {
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, Publish());
    return catalog_.journal->Sync(sequence);
  }

  Status Seal() override {
    Drop();
    lanes_.Clear();
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, Publish());
    return catalog_.journal->Keep(sequence);
  }

  void SetDataClass(DataClass data) override {
    lanes_.SetDataClass(data);
    pending_.SetDataClass(data);
  }
  void SetIoClass(IoClass io_class) override { lanes_.SetIoClass(io_class); }

 private:
  // The part of a unit that goes into one zone with one write.
  struct Part {
    StripeSet::Write write;
    uint64_t file_offset = 0;
  };

  // Starts as much of [at, padded) of `unit` as the next lane has room for, and returns how many bytes that is.
  Result<size_t> StartPart(WriteUnit& unit, size_t at, size_t padded, bool durable) {
    const uint64_t block = data_path_.geometry().block_size;
    Part& part = parts_.emplace_back();
    part.file_offset = unit.file_offset + at;
    part.write.durable = durable;
    for (;;) {
      const Result<StripeSet::Lane*> lane = lanes_.Next(block, LaneWish::kInTurn);
      if (!lane.ok()) {
        parts_.pop_back();
        return lane.status();
      }
      const size_t length = std::min<uint64_t>(padded - at, RoundDown((*lane)->room(), block));
      part.write.blocks = unit.memory.subspan(at, length);
      part.write.live = std::min(length, unit.used - at);
      if (lanes_.Start(**lane, part.write)) return length;
    }
  }

  // Waits for `part`, and appends the extents where it lies to `written`, also when it fails half-way. finished_ claims
  // them.
  Status TakeOver(Part& part, std::vector<FileExtent>& written) {
    StripeSet::Write& write = part.write;
    lanes_.Settle(write);
    ISOZONE_RETURN_IF_ERROR(write.status);
    if (write.lost) {
      return lanes_.WriteExtents(write.blocks, write.live, part.file_offset, write.durable, written, finished_);
    }
    finished_.Merge(std::move(write.space));
    AppendExtent(written, {part.file_offset, write.at, write.live}, data_path_.geometry().zone_size);
    return Status::Ok();
  }

  Result<uint64_t> Publish() {
    ISOZONE_RETURN_IF_ERROR(lanes_.MakeDurable());
    return pending_.Publish();
  }

  DataPath& data_path_;
  Catalog& catalog_;
  const size_t depth_;
  std::deque<Part> parts_;    // started and not finished, in file order; addresses stay
  std::deque<size_t> units_;  // the number of parts of each unit
  StripeSet lanes_;
  SpaceClaim finished_;  // of the parts that are finished and not yet readable
  PendingExtents pending_;
};

}  // namespace

std::unique_ptr<WriteSink> MakeDataSink(DataPath& data_path, Catalog& catalog, InodeId id, DataClass data,
                                        const SinkOptions& options) {
  return std::make_unique<DataSink>(data_path, catalog, id, data, options);
}

}  // namespace isozone
