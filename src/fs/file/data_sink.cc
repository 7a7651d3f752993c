// Extents: payload lies in zones as it is, each piece from a block boundary on. Pieces that the journal does not know
// yet are collected in `pending_` and go into one record, at Sync or Seal, or when the collector asks for them.
//
//   units    0   1   2   3   4   5   ...        in file order; a unit is cut in two where a zone ends
//   lanes    a   b   c   a   b   c              each writes one zone, of another group than the others', one part at a
//                                               time; lane by lane in turn, leaving out those that are still busy
//
// The stripe set grows with the speed of the writer: a part for which no lane is free gets a new one, while there are fewer
// than the width allows, and the pool has a zone for it that nobody else needs (ZonePool::TryAcquire). So small files, and
// writers that are slower than one zone, take few zones.
//
// A failed part is rewritten by another zone when its turn to be finished comes (`rescue_`), while the others go on.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>

#include "fs/file/pending_extents.h"
#include "fs/file/write_sink.h"

namespace isozone {
namespace {

class DataSink final : public WriteSink {
 public:
  DataSink(MountContext& context, InodeId id, DataClass data, const SinkOptions& options)
      : context_(context),
        options_(options),
        data_(data),
        rescue_(context, ZoneUse::kData),
        pending_(context, id, data) {
    rescue_.set_data_class(data);
  }

  ~DataSink() override { DropStarted(); }

  size_t header_size() const override { return 0; }
  size_t depth() const override { return options_.depth; }

  Status Start(WriteUnit& unit, bool durable) override {
    const uint64_t block = context_.geometry().block_size;
    const size_t padded = RoundUp(unit.used, block);
    std::memset(unit.memory.data() + unit.used, 0, padded - unit.used);
    const std::span<std::byte> blocks = unit.memory.span().first(padded);
    size_t parts = 0;
    for (size_t at = 0; at < padded;) {
      ISOZONE_ASSIGN_OR_RETURN(Lane * lane, NextLane());
      const size_t length = std::min<uint64_t>(padded - at, RoundDown(lane->stream.room(), block));
      const size_t live = std::min(length, unit.used - at);
      const DeviceOffset where = lane->stream.next();
      if (!lane->stream.Start(blocks.subspan(at, length), live, durable)) {
        Remove(*lane);
        continue;
      }
      Part& part = parts_.emplace_back();
      part.blocks = blocks.subspan(at, length);
      part.extent = {unit.file_offset + at, where, live};
      part.durable = durable;
      part.lane = lane;
      lane->part = &part;
      ++parts;
      at += length;
    }
    units_.push_back(parts);
    return Status::Ok();
  }

  bool OldestIsDone() override {
    for (size_t i = 0; i < units_.front(); ++i) {
      if (parts_[i].lane != nullptr && !parts_[i].lane->stream.done()) return false;
    }
    return true;
  }

  Status Finish(std::vector<FileExtent>& written) override {
    const size_t parts = units_.front();
    units_.pop_front();
    for (size_t i = 0; i < parts; ++i) {
      Part& part = parts_.front();
      if (part.lane != nullptr) Settle(*part.lane);
      const Status status = TakeOver(part, written);
      parts_.pop_front();
      if (status.ok()) continue;
      DropStarted();
      return status;
    }
    return Status::Ok();
  }

  void NoteReadable(std::span<const FileExtent> written) override { pending_.Add(written); }

  Status MakeDurable() override {
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, Publish());
    return context_.journal->Sync(sequence);
  }

  Status Seal() override {
    DropStarted();
    for (const auto& lane : lanes_) volatile_elsewhere_ |= lane->stream.is_volatile();
    lanes_.clear();
    rescue_.Release();
    return Publish().status();
  }

  void SetDataClass(DataClass data) override {
    data_ = data;
    rescue_.set_data_class(data);
    pending_.SetDataClass(data);
  }
  void SetIoClass(IoClass io_class) override {
    io_class_ = io_class;
    rescue_.set_io_class(io_class);
    for (const auto& lane : lanes_) lane->stream.set_io_class(io_class);
  }

 private:
  struct Lane;
  // What of a unit goes into one zone with one write.
  struct Part {
    std::span<std::byte> blocks;
    FileExtent extent;
    bool durable = false;
    Lane* lane = nullptr;  // whose stream it is in; null: settled
    bool lost = false;     // not written
    Status status;         // why it need not be tried elsewhere
  };
  struct Lane {
    explicit Lane(MountContext& context) : stream(context, ZoneUse::kData) {}
    ZoneStream stream;
    uint32_t group = 0;
    Part* part = nullptr;  // in flight
  };

  // A lane that has room and writes nothing.
  Result<Lane*> NextLane() {
    for (;;) {
      RemoveFull();
      if (lanes_.empty()) {
        ISOZONE_RETURN_IF_ERROR(OpenFirst());
      } else if (Lane* lane = NextFree()) {
        return lane;
      } else if (lanes_.size() >= options_.width || !Widen()) {
        // All are busy: the part that was started first is done first, or nearly.
        const auto oldest =
            std::find_if(parts_.begin(), parts_.end(), [](const Part& part) { return part.lane != nullptr; });
        Settle(*oldest->lane);
        continue;
      }
      turn_ = lanes_.size() - 1;
      return lanes_.back().get();
    }
  }

  void RemoveFull() {
    for (const auto& lane : lanes_) {
      if (lane->stream.done()) Settle(*lane);
    }
    std::erase_if(lanes_, [this](const auto& lane) {
      if (lane->part != nullptr || HasRoom(*lane)) return false;
      volatile_elsewhere_ |= lane->stream.is_volatile();
      return true;
    });
  }

  Lane* NextFree() {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      turn_ = (turn_ + 1) % lanes_.size();
      if (lanes_[turn_]->part == nullptr) return lanes_[turn_].get();
    }
    return nullptr;
  }

  bool HasRoom(const Lane& lane) const { return lane.stream.room() >= context_.geometry().block_size; }

  std::unique_ptr<Lane> MakeLane() const {
    auto lane = std::make_unique<Lane>(context_);
    lane->stream.set_data_class(data_);
    lane->stream.set_io_class(io_class_);
    return lane;
  }

  Status OpenFirst() {
    auto lane = MakeLane();
    ISOZONE_RETURN_IF_ERROR(lane->stream.Reserve(context_.geometry().block_size));
    Add(std::move(lane));
    return Status::Ok();
  }

  // One more zone, of a group that this file is not in. False: there is none that nobody else needs.
  bool Widen() {
    std::vector<uint32_t> taken;
    for (const auto& lane : lanes_) taken.push_back(lane->group);
    auto lane = MakeLane();
    if (!lane->stream.Widen(context_.geometry().block_size, taken)) return false;
    Add(std::move(lane));
    return true;
  }

  void Add(std::unique_ptr<Lane> lane) {
    lane->group = context_.groups->of(lane->stream.zone());
    lanes_.push_back(std::move(lane));
  }

  void Remove(const Lane& lane) {
    volatile_elsewhere_ |= lane.stream.is_volatile();
    std::erase_if(lanes_, [&](const auto& other) { return other.get() == &lane; });
  }

  // Takes note of how the lane's write ended; waits for it.
  void Settle(Lane& lane) {
    if (lane.part == nullptr) return;
    Part& part = *std::exchange(lane.part, nullptr);
    part.lane = nullptr;
    const auto outcome = lane.stream.Finish();
    part.lost = !outcome.ok() || *outcome == ZoneStream::Outcome::kLostZone;
    part.status = outcome.status();
  }

  // Appends where the part lies to `written`; also when it fails half-way.
  Status TakeOver(Part& part, std::vector<FileExtent>& written) {
    ISOZONE_RETURN_IF_ERROR(part.status);
    if (part.lost) {
      return rescue_.WriteExtents(part.blocks, part.extent.length, part.extent.file_offset, part.durable, written);
    }
    AppendExtent(written, part.extent, context_.geometry().zone_size);
    return Status::Ok();
  }

  // What was started and not finished never becomes part of the file.
  void DropStarted() {
    for (Part& part : parts_) {
      if (part.lane != nullptr) Settle(*part.lane);
      if (!part.lost)
        context_.pool->RemoveLive(context_.geometry().ZoneOf(part.extent.device_offset), part.extent.length);
    }
    parts_.clear();
    units_.clear();
  }

  Status FlushDevice() {
    bool is_volatile = volatile_elsewhere_ || rescue_.is_volatile();
    for (const auto& lane : lanes_) is_volatile |= lane->stream.is_volatile();
    if (!is_volatile) return Status::Ok();
    ISOZONE_RETURN_IF_ERROR(context_.engine.Flush(io_class_));
    volatile_elsewhere_ = false;
    rescue_.MarkDurable();
    for (const auto& lane : lanes_) lane->stream.MarkDurable();
    return Status::Ok();
  }

  Result<uint64_t> Publish() {
    ISOZONE_RETURN_IF_ERROR(FlushDevice());
    return pending_.Publish();
  }

  MountContext& context_;
  const SinkOptions options_;
  DataClass data_;
  IoClass io_class_ = IoClass::kOther;

  std::deque<Part> parts_;    // started and not finished, in file order; addresses stay
  std::deque<size_t> units_;  // of how many parts each is
  std::vector<std::unique_ptr<Lane>> lanes_;
  size_t turn_ = 0;  // the lane that was used last
  ZoneStream rescue_;
  bool volatile_elsewhere_ = false;  // a zone left behind has bytes that a power cut could take
  PendingExtents pending_;
};

}  // namespace

std::unique_ptr<WriteSink> MakeDataSink(MountContext& context, InodeId id, DataClass data, const SinkOptions& options) {
  return std::make_unique<DataSink>(context, id, data, options);
}

}  // namespace isozone
