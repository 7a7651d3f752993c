// Frames (log_frame.h): the journal learns of a region when it begins and when it ends, not of what is written in
// between.
//
// A region begins with its first frame, written before the journal knows of it: the zone is not held between writes, so
// a region without a frame might come to name bytes of another file.
#include <cstring>

#include "base/clock.h"
#include "fs/log_frame.h"
#include "fs/write_sink.h"

namespace isozone {
namespace {

class LogSink final : public WriteSink {
 public:
  LogSink(FsCore& core, InodeId id, Lifetime lifetime) : core_(core), id_(id), stream_(core, ZoneUse::kLog) {
    stream_.set_lifetime(lifetime);
  }

  size_t header_size() const override { return sizeof(LogFrameHeader); }

  Status Write(AlignedBuffer& buffer, size_t used, uint64_t file_offset, bool durable,
               std::vector<FileExtent>& written) override {
    const size_t padded = RoundUp(used, core_.geometry().block_size);
    std::memset(buffer.data() + used, 0, padded - used);
    SealLogFrame(buffer.span().first(used), core_.frame_seed, id_, file_offset);
    for (;;) {
      ISOZONE_RETURN_IF_ERROR(ReserveRoom(padded));
      const uint64_t at = stream_.write_pointer();
      const DeviceOffset where = stream_.next();
      ISOZONE_ASSIGN_OR_RETURN(const auto outcome, stream_.Write(buffer.span().first(padded), padded, durable));
      if (outcome == ZoneStream::Outcome::kLostZone) continue;
      const uint64_t payload = used - sizeof(LogFrameHeader);
      written.push_back({file_offset, DeviceOffset(where.value() + sizeof(LogFrameHeader)), payload});
      end_ = at + padded;
      if (!began_) return BeginRegion({stream_.zone(), at}, payload);
      payload_ += payload;
      return Status::Ok();
    }
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
    bool changed = false;
    return stream_.Reserve(bytes, changed);
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

  FsCore& core_;
  const InodeId id_;
  ZoneStream stream_;
  bool began_ = false;  // a region is open
  LogRegion region_;
  uint64_t index_ = 0;     // of the region in the inode
  uint64_t end_ = 0;       // bytes in the zone, behind the last frame
  uint64_t payload_ = 0;   // bytes in the region
  uint64_t sequence_ = 0;  // of the last change that the metadata needs for what was written
};

}  // namespace

std::unique_ptr<WriteSink> MakeLogSink(FsCore& core, InodeId id, Lifetime lifetime) {
  return std::make_unique<LogSink>(core, id, lifetime);
}

}  // namespace isozone
