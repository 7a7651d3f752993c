// Frames (log_frame.h): the journal learns of a region when it begins and when it ends, not of what is written in
// between.
//
//   frames   0   1   2   3   4   5   ...    in file order, each whole in one zone
//   lanes    a   a   a   b   c   a          each writes one region, one frame at a time, in a group of its own
//
// A frame that fills its unit (3, 4, 5) comes from a log that is written fast: it goes to the lane that was used longest
// ago, or to a new one, up to the width, where nobody else needs the zone. Any other (0, 1, 2: somebody waits for it to
// be durable) goes to the lane that was used last, so that such a log stays in one zone, unless it is written faster than
// the flash of one zone programs: then it goes on in another lane at the end of what is programmed at once (log_pace.h).
// Within a region frames are in file order, as the scan expects; so a frame whose write failed is never written behind
// later ones: its lane seals its region and begins another for it.
//
// A region begins with its first frame, written before the journal knows of it: the zone is not held between writes, so
// a region without a frame might come to name bytes of another file. It is sealed once all its frames are finished,
// which is before the journal learns of any region that begins behind it in the file.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "fs/file/log_frame.h"
#include "fs/file/log_pace.h"
#include "fs/file/write_sink.h"

namespace isozone {
namespace {

class LogSink final : public WriteSink {
 public:
  LogSink(MountContext& context, const OpenFile& file, Lifetime lifetime, const SinkOptions& options)
      : context_(context),
        file_(file),
        id_(file.id()),
        options_(options),
        pace_(context.geometry().optimal_write, context.groups->zone_bandwidth()),
        lifetime_(lifetime) {}

  ~LogSink() override { DropStarted(); }

  size_t header_size() const override { return sizeof(LogFrameHeader); }
  std::optional<uint32_t> ChecksumSeed(uint64_t file_offset) const override {
    return LogPayloadSeed(context_.frame_seed, id_, file_offset);
  }
  size_t depth() const override { return options_.depth; }

  Status Start(WriteUnit& unit, bool durable) override {
    const size_t padded = RoundUp(unit.used, context_.geometry().block_size);
    std::memset(unit.memory.data() + unit.used, 0, padded - unit.used);
    Frame& frame = frames_.emplace_back();
    frame.blocks = unit.memory.span().first(padded);
    frame.file_offset = unit.file_offset;
    frame.payload = unit.used - sizeof(LogFrameHeader);
    frame.durable = durable;
    unit.SumUp();
    frame.checksum = *unit.checksum;
    const bool full = unit.used == unit.memory.size();
    for (;;) {
      ISOZONE_ASSIGN_OR_RETURN(Lane * lane, NextLane(padded, full ? Wanted::kAnother : WantedByPace()));
      if (StartIn(*lane, frame)) return Status::Ok();
      ISOZONE_RETURN_IF_ERROR(Retire(*lane));
    }
  }

  bool OldestIsDone() override {
    const Frame& frame = frames_.front();
    return !frame.in_flight || frame.lane->stream.done();
  }

  Status Finish(std::vector<FileExtent>& written) override {
    if (frames_.front().in_flight) Settle(frames_.front());
    Frame frame = frames_.front();
    frames_.pop_front();
    const Status status = TakeOver(frame);
    if (!status.ok()) {
      DropStarted();
      return status;
    }
    written.push_back({frame.file_offset, DeviceOffset(frame.at.value() + sizeof(LogFrameHeader)), frame.payload});
    return Status::Ok();
  }

  Status MakeDurable() override {
    ISOZONE_RETURN_IF_ERROR(FlushDevice());
    // Where nothing was written since, the file's name is all there is to make durable; where it was removed, that is.
    // This is on the way of every synced write: it takes no lock that those who change names hold.
    const bool began = std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->began; });
    if (!began || file_.removed()) sequence_ = context_.journal->last_sequence();
    return context_.journal->Sync(sequence_);
  }

  Status Seal() override {
    DropStarted();
    Status status;
    for (const auto& lane : lanes_) {
      lane->stream.Release();
      const Status closed = CloseRegion(*lane);
      if (!closed.ok()) LeaveOpen(*lane);
      if (status.ok()) status = closed;
    }
    lanes_.clear();
    return status;
  }

  void SetDataClass(DataClass data) override {
    lifetime_ = data.lifetime;
    for (const auto& lane : lanes_) lane->stream.set_data_class(lifetime_);
  }
  void SetIoClass(IoClass io_class) override {
    io_class_ = io_class;
    for (const auto& lane : lanes_) lane->stream.set_io_class(io_class);
  }

 private:
  struct Lane;
  struct Frame {
    std::span<std::byte> blocks;
    uint64_t file_offset = 0;
    uint64_t payload = 0;   // bytes
    uint32_t checksum = 0;  // of the payload
    bool durable = false;
    DeviceOffset at;  // of the header
    Lane* lane = nullptr;
    bool in_flight = false;
    bool lost = false;  // not written
    Status status;      // why it need not be tried elsewhere
  };
  struct Lane {
    explicit Lane(MountContext& context) : stream(context, ZoneUse::kLog) {}
    ZoneStream stream;
    Frame* frame = nullptr;                // the one in flight, or lost and not yet finished
    size_t unfinished = 0;                 // frames
    bool retired = false;                  // takes no more frames; goes with the last unfinished one
    std::optional<uint64_t> region_begin;  // bytes in the zone: of the first frame that was started
    LogPace::Zone pace;
    bool unit_ended = false;  // with the last frame that was started

    // The region of the frames that are finished.
    bool began = false;
    LogRegion region;
    uint64_t index = 0;    // of the region in the inode
    uint64_t end = 0;      // bytes in the zone, behind its last frame
    uint64_t payload = 0;  // bytes
  };

  // --- Lanes ---
  enum class Wanted : uint8_t {
    kSame,       // the one that was used last
    kAnother,    // the one that was used longest ago, or a new one
    kLeastBusy,  // one whose flash keeps up with the log, or a new one
  };

  Wanted WantedByPace() const {
    if (lanes_.empty()) return Wanted::kSame;
    const Lane& last = *lanes_.front();
    return last.unit_ended && !pace_.HasRoom(last.pace, MonotonicNs()) ? Wanted::kLeastBusy : Wanted::kSame;
  }

  // A lane with room for `bytes` that writes nothing.
  Result<Lane*> NextLane(uint64_t bytes, Wanted wanted) {
    for (;;) {
      for (const auto& lane : lanes_) {
        if (lane->frame != nullptr && lane->frame->in_flight && lane->stream.done()) Settle(*lane->frame);
      }
      ISOZONE_RETURN_IF_ERROR(RetireFull(bytes));
      Lane* lane = wanted == Wanted::kLeastBusy ? LeastBusy() : NextFree(wanted == Wanted::kAnother);
      const bool good = wanted == Wanted::kSame ||
                        (wanted == Wanted::kLeastBusy && lane != nullptr && pace_.HasRoom(lane->pace, MonotonicNs()));
      if (lane != nullptr && good) return lane;
      if (Lane* wider = Widen(bytes)) lane = wider;
      if (lane != nullptr) return lane;
      // The frame that was started first is done first, or nearly.
      const auto oldest = std::find_if(frames_.begin(), frames_.end(), [](const Frame& f) { return f.in_flight; });
      if (oldest == frames_.end()) {
        lane = AddLane(MakeLane());
        ISOZONE_RETURN_IF_ERROR(lane->stream.Reserve(bytes));
        return lane;
      }
      Settle(*oldest);
    }
  }

  Status RetireFull(uint64_t bytes) {
    for (size_t i = lanes_.size(); i-- > 0;) {
      Lane& lane = *lanes_[i];
      if (!lane.retired && lane.frame == nullptr && lane.stream.room() < bytes) ISOZONE_RETURN_IF_ERROR(Retire(lane));
    }
    return Status::Ok();
  }

  // The one that was used last, or longest ago.
  Lane* NextFree(bool longest_ago) {
    Lane* found = nullptr;
    for (const auto& lane : lanes_) {
      if (lane->frame != nullptr || lane->retired) continue;
      found = lane.get();
      if (!longest_ago) break;
    }
    return found;
  }

  Lane* LeastBusy() {
    const int64_t now_ns = MonotonicNs();
    Lane* found = nullptr;
    for (const auto& lane : lanes_) {
      if (lane->frame != nullptr || lane->retired) continue;
      const bool less = found == nullptr || pace_.BacklogNs(lane->pace, now_ns) < pace_.BacklogNs(found->pace, now_ns);
      if (less) found = lane.get();
    }
    return found;
  }

  // One more zone, of a group that this log is not in. Null: there is none that nobody else needs.
  Lane* Widen(uint64_t bytes) {
    std::vector<uint32_t> taken;
    for (const auto& lane : lanes_) {
      if (lane->stream.held()) taken.push_back(context_.groups->of(lane->stream.zone()));
    }
    if (taken.empty() || taken.size() >= options_.width) return nullptr;
    auto lane = MakeLane();
    return lane->stream.Widen(bytes, taken) ? AddLane(std::move(lane)) : nullptr;
  }

  std::unique_ptr<Lane> MakeLane() {
    auto lane = std::make_unique<Lane>(context_);
    lane->stream.set_data_class(lifetime_);
    lane->stream.set_io_class(io_class_);
    return lane;
  }
  Lane* AddLane(std::unique_ptr<Lane> lane) { return lanes_.insert(lanes_.begin(), std::move(lane))->get(); }

  // Ends the lane, and its region, as soon as all its frames are finished.
  Status Retire(Lane& lane) {
    lane.retired = true;
    if (lane.unfinished > 0) return Status::Ok();
    lane.stream.Release();
    ISOZONE_RETURN_IF_ERROR(CloseRegion(lane));
    std::erase_if(lanes_, [&](const auto& other) { return other.get() == &lane; });
    return Status::Ok();
  }

  // --- Frames ---
  // False: the lane has lost its zone.
  bool StartIn(Lane& lane, Frame& frame) {
    frame.at = lane.stream.held() ? lane.stream.next() : DeviceOffset(0);
    const uint64_t at = context_.geometry().OffsetInZone(frame.at);
    SealLogFrame(frame.blocks.first(sizeof(LogFrameHeader) + frame.payload), context_.frame_seed, id_,
                 frame.file_offset, lane.region_begin.value_or(at), frame.checksum);
    if (!lane.stream.Start(frame.blocks, frame.blocks.size(), frame.durable)) return false;
    if (!lane.region_begin) lane.region_begin = at;
    frame.lane = &lane;
    frame.in_flight = true;
    frame.lost = false;
    lane.frame = &frame;
    ++lane.unfinished;
    lane.unit_ended = pace_.OnWrite(lane.pace, frame.blocks.size(), MonotonicNs());
    const auto used =
        std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& other) { return other.get() == &lane; });
    std::rotate(lanes_.begin(), used, used + 1);
    return true;
  }

  // Takes note of how the write of a frame in flight ended; waits for it.
  void Settle(Frame& frame) {
    const auto outcome = frame.lane->stream.Finish();
    frame.in_flight = false;
    frame.lost = !outcome.ok() || *outcome == ZoneStream::Outcome::kLostZone;
    frame.status = outcome.status();
    if (!frame.lost) frame.lane->frame = nullptr;
  }

  // The oldest frame, written, becomes part of its lane's region.
  Status TakeOver(Frame& frame) {
    while (frame.lost) {
      ISOZONE_RETURN_IF_ERROR(frame.status);
      ISOZONE_RETURN_IF_ERROR(WriteAgain(frame));
    }
    Lane& lane = *frame.lane;
    --lane.unfinished;
    lane.payload += frame.payload;
    lane.end = context_.geometry().OffsetInZone(frame.at) + frame.blocks.size();
    if (!lane.began) ISOZONE_RETURN_IF_ERROR(BeginRegion(lane, frame));
    return lane.retired && lane.unfinished == 0 ? Retire(lane) : Status::Ok();
  }

  // All other frames of its lane are finished.
  Status WriteAgain(Frame& frame) {
    Lane& lane = *frame.lane;
    lane.frame = nullptr;
    --lane.unfinished;
    ISOZONE_RETURN_IF_ERROR(CloseRegion(lane));
    lane.region_begin.reset();
    do {
      ISOZONE_RETURN_IF_ERROR(lane.stream.Reserve(frame.blocks.size()));
    } while (!StartIn(lane, frame));
    Settle(frame);
    return Status::Ok();
  }

  // What was started and not finished never becomes part of the file.
  void DropStarted() {
    for (Frame& frame : frames_) {
      if (frame.lane == nullptr) continue;  // it did not get that far
      if (frame.in_flight) Settle(frame);
      if (!frame.lost) context_.pool->RemoveLive(context_.geometry().ZoneOf(frame.at), frame.blocks.size());
    }
    for (const auto& lane : lanes_) {
      lane->frame = nullptr;
      lane->unfinished = 0;
    }
    frames_.clear();
  }

  // --- Regions ---
  Status BeginRegion(Lane& lane, const Frame& frame) {
    lane.region = {context_.geometry().ZoneOf(frame.at), context_.geometry().OffsetInZone(frame.at)};
    lane.began = true;
    {
      const MutexLock lock(context_.namespace_mutex);
      const Inode* inode = context_.state.Find(id_);
      if (inode == nullptr) return Status::Ok();
      lane.index = inode->regions.size();
      const MetadataOp op = SetLogRegion{id_, lane.index, lane.region, WallSeconds()};
      ISOZONE_ASSIGN_OR_RETURN(sequence_, context_.Commit({&op, 1}));
    }
    // When the process is killed, what was written is found: soon, and what is written through at once.
    if (context_.options.log_write_through) return context_.journal->Sync(sequence_);
    context_.journal->SyncSoon(sequence_);
    return Status::Ok();
  }

  Status CloseRegion(Lane& lane) {
    if (!lane.began) return Status::Ok();
    // The record says that all of the region is there, and with it all of the file before its end.
    if (lane.stream.is_volatile()) ISOZONE_RETURN_IF_ERROR(FlushDevice());
    const MutexLock lock(context_.namespace_mutex);
    lane.region.end = lane.end;
    lane.region.payload = lane.payload;
    if (context_.state.Find(id_) == nullptr) {
      context_.ReleaseSpace(id_, SpaceOf({&lane.region, 1}));
    } else {
      const MetadataOp op = SetLogRegion{id_, lane.index, lane.region, WallSeconds()};
      ISOZONE_ASSIGN_OR_RETURN(sequence_, context_.Commit({&op, 1}));
    }
    lane.began = false;
    lane.payload = 0;
    return Status::Ok();
  }

  // Nobody writes the region any more, and it has no end: what it holds is live until it gets one, or the log goes.
  void LeaveOpen(const Lane& lane) {
    const MutexLock lock(context_.namespace_mutex);
    const std::pair<ZoneId, uint64_t> space(lane.region.zone, lane.end - lane.region.begin);
    if (context_.state.Find(id_) == nullptr) {
      context_.ReleaseSpace(id_, {&space, 1});
    } else {
      context_.unread_logs[id_].push_back(space);
    }
  }

  Status FlushDevice() {
    const bool is_volatile =
        std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->stream.is_volatile(); });
    if (!is_volatile) return Status::Ok();
    ISOZONE_RETURN_IF_ERROR(context_.engine.Flush(io_class_));
    // What is in flight meanwhile says itself, when it is settled, that it is volatile.
    for (const auto& lane : lanes_) lane->stream.MarkDurable();
    return Status::Ok();
  }

  MountContext& context_;
  const OpenFile& file_;
  const InodeId id_;
  const SinkOptions options_;
  const LogPace pace_;
  Lifetime lifetime_;
  IoClass io_class_ = IoClass::kOther;

  std::deque<Frame> frames_;                  // started and not finished, in file order; addresses stay
  std::vector<std::unique_ptr<Lane>> lanes_;  // the one that was used last in front
  uint64_t sequence_ = 0;                     // of the last change that the metadata needs for what was written
};

}  // namespace

std::unique_ptr<WriteSink> MakeLogSink(MountContext& context, const OpenFile& file, Lifetime lifetime,
                                       const SinkOptions& options) {
  return std::make_unique<LogSink>(context, file, lifetime, options);
}

}  // namespace isozone
