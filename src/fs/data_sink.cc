// Extents: payload lies in zones as it is, each piece from a block boundary on. Pieces that the journal does not know
// yet are collected in `pending_` and go into one record, at Sync or Seal.
#include "base/clock.h"
#include "fs/write_sink.h"

namespace isozone {
namespace {

class DataSink final : public WriteSink {
 public:
  DataSink(FsCore& core, InodeId id, Lifetime lifetime) : core_(core), id_(id), stream_(core, ZoneUse::kData) {
    stream_.set_lifetime(lifetime);
  }

  ~DataSink() override {
    // What the journal never learnt of goes with the last handle.
    const MutexLock lock(core_.namespace_mutex);
    Forget();
  }

  size_t header_size() const override { return 0; }

  Status Write(AlignedBuffer& buffer, size_t used, uint64_t file_offset, bool durable,
               std::vector<FileExtent>& written) override {
    const size_t known = written.size();
    Status status = stream_.WriteExtents(buffer, used, file_offset, durable, written);
    for (size_t i = known; i < written.size(); ++i) AppendExtent(pending_, written[i], core_.geometry().zone_size);
    return status;
  }

  Status MakeDurable() override {
    ISOZONE_RETURN_IF_ERROR(Publish());
    return core_.journal->Sync(sequence_);
  }

  Status Seal() override {
    stream_.Release();
    return Publish();
  }

  void SetLifetime(Lifetime lifetime) override { stream_.set_lifetime(lifetime); }
  void SetIoClass(IoClass io_class) override { stream_.set_io_class(io_class); }

 private:
  // Tells the journal of the pending extents.
  Status Publish() {
    ISOZONE_RETURN_IF_ERROR(stream_.MakeDurable());
    const MutexLock lock(core_.namespace_mutex);
    const Inode* inode = core_.state.Find(id_);
    if (inode == nullptr) {
      Forget();
      sequence_ = core_.journal->last_sequence();  // that of its removal is not later
      return Status::Ok();
    }
    std::vector<MetadataOp> ops;
    if (!pending_.empty()) {
      if (inode->lifetime != stream_.lifetime())
        ops.emplace_back(SetAttributes{id_, stream_.lifetime(), WallSeconds()});
      ops.emplace_back(AppendExtents{id_, inode->extents.size(), pending_, WallSeconds()});
      ISOZONE_ASSIGN_OR_RETURN(sequence_, core_.Commit(ops));
      pending_.clear();
    } else {
      sequence_ = core_.journal->last_sequence();
    }
    return Status::Ok();
  }

  // The file was removed, or can no longer be written: its new extents live as long as its handles.
  void Forget() ISOZONE_REQUIRES(core_.namespace_mutex) {
    core_.ReleaseSpace(id_, SpaceOf(core_.geometry(), pending_));
    pending_.clear();
  }

  FsCore& core_;
  const InodeId id_;
  ZoneStream stream_;
  std::vector<FileExtent> pending_;
  uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<WriteSink> MakeDataSink(FsCore& core, InodeId id, Lifetime lifetime) {
  return std::make_unique<DataSink>(core, id, lifetime);
}

}  // namespace isozone
