// Frames (log_frame.h), one on its way at a time: the journal learns of a region when it begins and when it ends, not of
// what is written in between.
//
// A region begins with its first frame, written before the journal knows of it: the zone is not held between writes, so
// a region without a frame might come to name bytes of another file.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "fs/log_frame.h"
#include "fs/write_sink.h"

namespace isozone {
namespace {

class LogSink final : public WriteSink {
 public:
  LogSink(FsCore& core, InodeId id, Lifetime lifetime, size_t depth)
      : core_(core), id_(id), depth_(depth), stream_(core, ZoneUse::kLog) {
    stream_.set_lifetime(lifetime);
  }

  size_t header_size() const override { return sizeof(LogFrameHeader); }
  size_t depth() const override { return depth_; }

  Status Start(WriteUnit& unit, bool durable) override {
    const size_t padded = RoundUp(unit.used, core_.geometry().block_size);
    std::memset(unit.memory.data() + unit.used, 0, padded - unit.used);
    SealLogFrame(unit.memory.span().first(unit.used), core_.frame_seed, id_, unit.file_offset);
    frame_ = {unit.memory.span().first(padded), unit.file_offset, unit.used - sizeof(LogFrameHeader), durable};
    return StartFrame();
  }

  bool OldestIsDone() override { return stream_.done(); }

  Status Finish(std::vector<FileExtent>& written) override {
    for (;;) {
      ISOZONE_ASSIGN_OR_RETURN(const auto outcome, stream_.Finish());
      if (outcome == ZoneStream::Outcome::kWritten) break;
      ISOZONE_RETURN_IF_ERROR(StartFrame());
    }
    written.push_back({frame_.file_offset, DeviceOffset(frame_at_.value() + sizeof(LogFrameHeader)), frame_.payload});
    const uint64_t begin = core_.geometry().OffsetInZone(frame_at_);
    end_ = begin + frame_.blocks.size();
    if (!began_) return BeginRegion({core_.geometry().ZoneOf(frame_at_), begin}, frame_.payload);
    payload_ += frame_.payload;
    return Status::Ok();
  }

  Status MakeDurable() override {
    ISOZONE_RETURN_IF_ERROR(stream_.MakeDurable());
    {
      // Where nothing was written since, the file's name is all there is to make durable; where it was removed, that is.
      const MutexLock lock(core_.namespace_mutex);
      if (!began_ || core_.state.Find(id_) == nullptr) sequence_ = core_.journal->last_sequence();
    }
    return core_.journal->Sync(sequence_);
  }

  Status Seal() override {
    stream_.Release();
    return CloseRegion();
  }

  void SetLifetime(Lifetime lifetime) override { stream_.set_lifetime(lifetime); }
  void SetIoClass(IoClass io_class) override { stream_.set_io_class(io_class); }

 private:
  // A zone with room for `bytes` is held. The region ends where that is another zone.
  Status ReserveRoom(uint64_t bytes) {
    if (stream_.held() && stream_.room() >= bytes) return Status::Ok();
    stream_.Release();
    ISOZONE_RETURN_IF_ERROR(CloseRegion());
    return stream_.Reserve(bytes);
  }

  Status StartFrame() {
    for (;;) {
      ISOZONE_RETURN_IF_ERROR(ReserveRoom(frame_.blocks.size()));
      frame_at_ = stream_.next();
      if (stream_.Start(frame_.blocks, frame_.blocks.size(), frame_.durable)) return Status::Ok();
    }
  }

  // `payload`: bytes in its first frame.
  Status BeginRegion(const LogRegion& region, uint64_t payload) {
    region_ = region;
    payload_ = payload;
    began_ = true;
    {
      const MutexLock lock(core_.namespace_mutex);
      const Inode* inode = core_.state.Find(id_);
      if (inode == nullptr) return Status::Ok();
      index_ = inode->regions.size();
      const MetadataOp op = SetLogRegion{id_, index_, region_, WallSeconds()};
      ISOZONE_ASSIGN_OR_RETURN(sequence_, core_.Commit({&op, 1}));
    }
    // What is written through must be found when the process is killed.
    return core_.options.log_write_through ? core_.journal->Sync(sequence_) : Status::Ok();
  }

  Status CloseRegion() {
    if (!began_) return Status::Ok();
    ISOZONE_RETURN_IF_ERROR(stream_.MakeDurable());
    const MutexLock lock(core_.namespace_mutex);
    region_.end = end_;
    region_.payload = payload_;
    began_ = false;
    if (core_.state.Find(id_) == nullptr) {
      core_.ReleaseSpace(id_, SpaceOf({&region_, 1}));
      return Status::Ok();
    }
    const MetadataOp op = SetLogRegion{id_, index_, region_, WallSeconds()};
    ISOZONE_ASSIGN_OR_RETURN(sequence_, core_.Commit({&op, 1}));
    return Status::Ok();
  }

  struct Frame {
    std::span<std::byte> blocks;
    uint64_t file_offset = 0;
    uint64_t payload = 0;  // bytes
    bool durable = false;
  };

  FsCore& core_;
  const InodeId id_;
  const size_t depth_;
  Frame frame_;            // in flight
  DeviceOffset frame_at_;  // where
  ZoneStream stream_;      // waits for the frame when it goes, so it goes first
  bool began_ = false;     // a region is open
  LogRegion region_;
  uint64_t index_ = 0;     // of the region in the inode
  uint64_t end_ = 0;       // bytes in the zone, behind the last frame
  uint64_t payload_ = 0;   // bytes in the region
  uint64_t sequence_ = 0;  // of the last change that the metadata needs for what was written
};

}  // namespace

std::unique_ptr<WriteSink> MakeLogSink(FsCore& core, InodeId id, Lifetime lifetime, size_t depth) {
  return std::make_unique<LogSink>(core, id, lifetime, std::min<size_t>(depth, 1));
}

}  // namespace isozone
