//   frames   0   1   2   3   4   5   ...    in file order, each whole in one zone
//   lanes    a   a   a   b   c   a          each takes the frames of one region
//
// A frame that is as long as it may be (3, 4, 5) comes from a log that is written fast. It goes to another lane, or to
// a new one, up to the width, where nobody else needs the zone. For any other frame (0, 1, 2) somebody waits. It goes
// to the lane that was used last, so that such a log stays in one zone. Only if the log is written faster than the
// flash of one zone programs does it go on in another lane, at the end of what is programmed at once (log_pace.h).
//
// While users read, the frames of a fast log are short, and some of them wait and are started together (log_burst.h).
//
// Within a region, frames are in file order, as the scan expects. So a frame whose write failed is never written behind
// later ones: its region is sealed, and the frame begins another region in another zone.
//
// A region begins with its first frame, which is written before the journal knows of the region. The zone is not held
// between writes, so a region without a frame could come to name bytes of another file. A region is sealed once its
// lane takes no more frames and all frames that it has taken are finished. This is before the journal learns of any
// region that begins behind it in the file.
#include "store/file/log_sink.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "store/file/log_burst.h"
#include "store/file/log_frame.h"
#include "store/file/log_pace.h"
#include "store/file/stripe_set.h"

namespace isozone {
namespace {

class LogSink final : public WriteSink {
 public:
  LogSink(DataPath& data_path, Catalog& catalog, const OpenFile& file, Lifetime lifetime, const SinkOptions& options)
      : data_path_(data_path),
        catalog_(catalog),
        file_(file),
        id_(file.id()),
        options_(options),
        lanes_(data_path, {.use = ZoneUse::kLog,
                           .width = options.width,
                           .pace = LogPace(data_path.geometry().optimal_write, data_path.groups->zone_bandwidth()),
                           .keep_retired = true,
                           .wakes = options.wakes}) {
    lanes_.SetDataClass(lifetime);
  }

  ~LogSink() override { Drop(); }

  size_t header_size() const override { return sizeof(LogFrameHeader); }
  std::optional<uint32_t> ChecksumSeed(uint64_t file_offset) const override {
    return LogPayloadSeed(data_path_.frame_seed, id_, file_offset);
  }
  size_t depth() const override { return options_.depth; }

  // A unit begins just before the one that was filled is taken, so a change of what is known here shows one unit later.
  size_t UnitSize(size_t most) const override {
    const bool goes_on = waiting_ > 0;
    const bool may_begin = last_was_full_ && io_class_ == IoClass::kWal;
    const bool burst = goes_on || (may_begin && data_path_.engine.users_read());
    return LogBurst::FrameLength(most, data_path_.engine.slice(), options_.width, burst);
  }

  Status Take(WriteUnit& unit, bool durable) override {
    const size_t padded = RoundUp(unit.used, data_path_.geometry().block_size);
    std::memset(unit.memory.data() + unit.used, 0, padded - unit.used);
    unit.SumUp();
    Frame& frame = frames_.emplace_back();
    frame.file_offset = unit.file_offset;
    frame.payload = unit.used - sizeof(LogFrameHeader);
    frame.checksum = *unit.checksum;
    frame.write.blocks = unit.memory.first(padded);
    frame.write.live = padded;
    last_was_full_ = unit.used == unit.memory.size() && !durable;
    frame.wish = last_was_full_ ? LaneWish::kSpread : LaneWish::kKeep;
    ++waiting_;
    const bool wait =
        last_was_full_ && LogBurst::WaitForMore(waiting_, unit.memory.size(), options_.unit, lanes_.OpenLanes());
    return wait ? Status::Ok() : StartAll(durable);
  }

  // After an error, the frames that were not started are gone.
  Status StartAll(bool durable) override {
    for (; waiting_ > 0; --waiting_) {
      Frame& frame = frames_[frames_.size() - waiting_];
      frame.write.durable = durable;
      const Status started = StartInNext(frame);
      if (started.ok()) continue;
      frames_.resize(frames_.size() - std::exchange(waiting_, 0));
      return started;
    }
    return Status::Ok();
  }

  bool OldestIsDone() override { return waiting_ < frames_.size() && StripeSet::IsDone(frames_.front().write); }

  Status Finish(std::vector<FileExtent>& written) override {
    if (waiting_ == frames_.size()) ISOZONE_RETURN_IF_ERROR(StartAll(/*durable=*/false));
    const Status status = TakeOver(frames_.front());
    const Frame frame = std::move(frames_.front());
    frames_.pop_front();
    if (!status.ok()) {
      Drop();
      return status;
    }
    const DeviceOffset payload(frame.write.at.value() + sizeof(LogFrameHeader));
    written.push_back({frame.file_offset, payload, frame.payload});
    return Status::Ok();
  }

  void Drop() override {
    for (Frame& frame : frames_) lanes_.Settle(frame.write);
    for (const auto& region : regions_) region->unfinished = 0;
    frames_.clear();
    waiting_ = 0;
  }

  Status MakeDurable() override {
    ISOZONE_RETURN_IF_ERROR(lanes_.MakeDurable());
    // Where nothing was written since, the name of the file is all that is to be made durable. Where the file was
    // removed, its removal is. Every synced write comes along here, so it takes no lock that calls hold which change
    // names.
    const bool began = std::ranges::any_of(regions_, [](const auto& region) { return region->began; });
    if (!began || file_.removed()) sequence_ = catalog_.journal->last_sequence();
    return catalog_.journal->Sync(sequence_);
  }

  Status Seal() override {
    Drop();
    Status status;
    for (const auto& region : regions_) {
      const Status closed = Close(*region);
      if (!closed.ok()) LeaveOpen(*region);
      if (status.ok()) status = closed;
    }
    regions_.clear();
    lanes_.Clear();
    return status;
  }

  void SetDataClass(DataClass data) override { lanes_.SetDataClass(data.lifetime); }
  void SetIoClass(IoClass io_class) override {
    io_class_ = io_class;
    lanes_.SetIoClass(io_class);
  }

 private:
  // The frames that one lane takes.
  struct Region {
    StripeSet::Lane* lane = nullptr;  // null: it was given back
    std::optional<uint64_t> begin;    // of the first frame that was started, in bytes in the zone
    size_t unfinished = 0;            // frames

    // These fields are about the frames that are finished.
    bool began = false;
    LogRegion record;
    uint64_t index = 0;        // of the record in the inode
    uint64_t end = 0;          // bytes in the zone, behind the last frame
    uint64_t payload = 0;      // bytes
    SpaceClaim space;          // until its end is in the journal
    bool is_volatile = false;  // as it was when the lane was given back
  };
  struct Frame {
    StripeSet::Write write;
    uint64_t file_offset = 0;
    uint64_t payload = 0;   // bytes
    uint32_t checksum = 0;  // of the payload
    LaneWish wish = LaneWish::kKeep;
    Region* region = nullptr;  // the region that it was started in
  };

  // --- Frames ---
  Status StartInNext(Frame& frame) {
    for (;;) {
      ISOZONE_ASSIGN_OR_RETURN(StripeSet::Lane * lane, lanes_.Next(frame.write.blocks.size(), frame.wish));
      if (lane != nullptr && StartIn(RegionOf(*lane), frame)) return Status::Ok();
      ISOZONE_RETURN_IF_ERROR(CloseRetired());
    }
  }

  // Returns false if the lane has lost its zone.
  bool StartIn(Region& region, Frame& frame) {
    const uint64_t at = data_path_.geometry().OffsetInZone(region.lane->next());
    SealLogFrame(frame.write.blocks.first(sizeof(LogFrameHeader) + frame.payload), data_path_.frame_seed, id_,
                 frame.file_offset, region.begin.value_or(at), frame.checksum);
    if (!lanes_.Start(*region.lane, frame.write)) return false;
    if (!region.begin) region.begin = at;
    ++region.unfinished;
    frame.region = &region;
    return true;
  }

  // Waits until the oldest frame is written, and makes it part of its region.
  Status TakeOver(Frame& frame) {
    lanes_.Settle(frame.write);
    while (frame.write.lost) {
      ISOZONE_RETURN_IF_ERROR(frame.write.status);
      ISOZONE_RETURN_IF_ERROR(WriteAgain(frame));
    }
    Region& region = *frame.region;
    region.end = data_path_.geometry().OffsetInZone(frame.write.at) + frame.write.blocks.size();
    region.payload += frame.payload;
    region.space.Merge(std::move(frame.write.space));
    --region.unfinished;
    if (!region.began) ISOZONE_RETURN_IF_ERROR(Begin(region, frame));
    return CloseRetired();
  }

  // Writes a frame anew whose write failed. It was the only frame of its region that was not finished.
  Status WriteAgain(Frame& frame) {
    --frame.region->unfinished;
    for (bool started = false; !started;) {
      ISOZONE_RETURN_IF_ERROR(CloseRetired());
      ISOZONE_ASSIGN_OR_RETURN(StripeSet::Lane * lane, lanes_.Open(frame.write.blocks.size()));
      started = StartIn(RegionOf(*lane), frame);
    }
    lanes_.Settle(frame.write);
    return Status::Ok();
  }

  // --- Regions ---
  Region& RegionOf(StripeSet::Lane& lane) {
    const auto it = std::ranges::find_if(regions_, [&](const auto& region) { return region->lane == &lane; });
    if (it != regions_.end()) return **it;
    regions_.push_back(std::make_unique<Region>());
    regions_.back()->lane = &lane;
    return *regions_.back();
  }

  // Closes the regions whose lanes take no more frames and have no frame left to finish.
  Status CloseRetired() {
    for (size_t i = regions_.size(); i-- > 0;) {
      Region& region = *regions_[i];
      const bool in_use = region.unfinished > 0 || (region.lane != nullptr && !region.lane->retired());
      if (in_use) continue;
      ISOZONE_RETURN_IF_ERROR(Close(region));
      regions_.erase(regions_.begin() + static_cast<ptrdiff_t>(i));
    }
    return Status::Ok();
  }

  Status Begin(Region& region, const Frame& frame) {
    region.record = {data_path_.geometry().ZoneOf(frame.write.at), data_path_.geometry().OffsetInZone(frame.write.at)};
    region.began = true;
    {
      const MutexLock lock(catalog_.namespace_mutex);
      const Inode* inode = catalog_.state.Find(id_);
      if (inode == nullptr) return Status::Ok();
      region.index = inode->regions.size();
      const MetadataOp op = SetLogRegion{id_, region.index, region.record, catalog_.TimeOf(*inode)};
      ISOZONE_ASSIGN_OR_RETURN(sequence_, catalog_.Commit({&op, 1}));
    }
    // The memory of the frame is given up next. From here on a kill leaves no other trace of it than this.
    if (data_path_.writes_through) return catalog_.journal->Sync(sequence_);
    catalog_.journal->SyncSoon(sequence_);
    return catalog_.journal->Keep(sequence_);
  }

  // Gives the lane of the region back. If the journal knows where the region begins, it learns where it ends.
  Status Close(Region& region) {
    if (region.lane != nullptr) {
      region.is_volatile = region.lane->is_volatile();
      lanes_.Remove(*std::exchange(region.lane, nullptr));
    }
    if (!region.began) return Status::Ok();
    // The record says that the whole region is there, and with it the whole file before the end of the region.
    if (region.is_volatile) ISOZONE_RETURN_IF_ERROR(lanes_.MakeDurable());
    const MutexLock lock(catalog_.namespace_mutex);
    region.record.end = region.end;
    region.record.payload = region.payload;
    if (const Inode* inode = catalog_.state.Find(id_); inode == nullptr) {
      catalog_.LeaveToHandles(id_, std::move(region.space));
    } else {
      const MetadataOp op = SetLogRegion{id_, region.index, region.record, catalog_.TimeOf(*inode)};
      ISOZONE_ASSIGN_OR_RETURN(sequence_, catalog_.Commit({&op, 1}));
      region.space.ToMetadata();
    }
    region.began = false;
    return Status::Ok();
  }

  // The region has no end, though nobody writes it any more. What it holds stays live until it gets an end or the log
  // is removed.
  void LeaveOpen(Region& region) {
    const MutexLock lock(catalog_.namespace_mutex);
    if (catalog_.state.Find(id_) == nullptr) {
      catalog_.LeaveToHandles(id_, std::move(region.space));
    } else {
      catalog_.unread_logs[id_].Merge(std::move(region.space));
    }
  }

  DataPath& data_path_;
  Catalog& catalog_;
  const OpenFile& file_;
  const InodeId id_;
  const SinkOptions options_;
  std::deque<Frame> frames_;    // not finished, in file order; addresses stay
  size_t waiting_ = 0;          // of these, at the end, frames that are not started
  bool last_was_full_ = false;  // the frame that was taken last, and nobody waited for it
  IoClass io_class_ = IoClass::kOther;
  StripeSet lanes_;
  std::vector<std::unique_ptr<Region>> regions_;  // one for each lane that was used
  uint64_t sequence_ = 0;                         // of the last metadata change that what was written needs
};

}  // namespace

std::unique_ptr<WriteSink> MakeLogSink(DataPath& data_path, Catalog& catalog, const OpenFile& file, Lifetime lifetime,
                                       const SinkOptions& options) {
  return std::make_unique<LogSink>(data_path, catalog, file, lifetime, options);
}

}  // namespace isozone
