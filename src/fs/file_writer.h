// The writer behind FileWriter: two buffers in front of a WriteSink. Appends fill one; when it is full, or at a Sync,
// it goes to the sink while the other is filled. At most one buffer is being written out.
//
// What was appended is readable at once through every handle: OpenFile knows the buffers.
//
// Errors latch: after a failed write-out every call returns that error, and what was not written stays readable from
// memory until the writer goes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/mutex.h"
#include "fs/core.h"
#include "fs/file_system.h"
#include "fs/write_sink.h"

namespace isozone {

class BufferedWriter final : public FileWriter {
 public:
  // `file` has has_writer set by the caller, under the namespace lock. `buffer_size`: bytes, whole blocks.
  BufferedWriter(std::shared_ptr<FsCore> core, std::shared_ptr<OpenFile> file, std::unique_ptr<WriteSink> sink,
                 size_t buffer_size);
  ~BufferedWriter() override;

  Status Append(std::span<const std::byte> data) override;
  Status Flush() override;
  Status Sync() override;
  Status WriteOut() override;
  Status Truncate(uint64_t size) override;
  Status Close() override;
  uint64_t size() const override { return file_->size(); }
  void SetLifetime(Lifetime lifetime) override;
  void SetIoClass(IoClass io_class) override;

 private:
  struct Buffer {
    AlignedBuffer memory;
    uint64_t file_offset = 0;
    size_t used = 0;  // bytes, the header's place included
  };

  Status CheckUsable() const ISOZONE_REQUIRES(mu_);
  // Runs `use`, which uses sink_, without mu_, after whatever uses it now.
  Status WithSink(const std::function<Status()>& use) ISOZONE_REQUIRES(mu_);
  void WaitForSink() ISOZONE_REQUIRES(mu_);
  // Hands the filled buffer to the sink and waits for it; `durable` also if there is nothing in it.
  Status WriteOutLocked(bool durable) ISOZONE_REQUIRES(mu_);
  void Start(Buffer& buffer, uint64_t file_offset) ISOZONE_REQUIRES(mu_);
  Status Extend(uint64_t size);
  // `status`, which from now on every call returns if it is an error.
  Status Latched(Status status) ISOZONE_REQUIRES(mu_);
  OpenFile::MemoryPiece PieceOf(const Buffer& buffer) const {
    return {buffer.file_offset, buffer.memory.data() + header_size_};
  }

  const std::shared_ptr<FsCore> core_;
  std::shared_ptr<OpenFile> file_;
  const size_t header_size_;
  const size_t buffer_size_;

  Mutex mu_;
  CondVar sink_free_;
  bool sink_used_ ISOZONE_GUARDED_BY(mu_) = false;  // some thread uses sink_ without mu_
  bool closed_ ISOZONE_GUARDED_BY(mu_) = false;
  Status failure_ ISOZONE_GUARDED_BY(mu_);
  Buffer filling_ ISOZONE_GUARDED_BY(mu_);
  Buffer spare_ ISOZONE_GUARDED_BY(mu_);
  // Used by the thread that set sink_used_, or by one that holds mu_ while it is not set.
  std::unique_ptr<WriteSink> sink_;
};

}  // namespace isozone
