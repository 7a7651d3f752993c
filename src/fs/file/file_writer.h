// The writer behind FileWriter: units of memory in front of a WriteSink. Appends fill one; when it is full, or at a Sync,
// it is started on its way to the device, and another one is filled. How many may be on their way is the sink's to say;
// an Append waits only when that many are.
//
//   file    [ on the device ][ started | started | ... ][ filling )
//             extents          pieces of memory, until all before them are finished
//
// What was appended is readable at once through every handle: OpenFile knows the pieces.
//
// Everything is done by the threads that call: a completion only says that it came. Errors latch: after a failed write
// every call returns that error, and what was not written stays readable from memory until the writer goes.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/mutex.h"
#include "fs/file/mount_context.h"
#include "fs/file/write_sink.h"
#include "fs/file_system.h"

namespace isozone {

class BufferedWriter final : public FileWriter {
 public:
  // `file` has has_writer set by the caller, under the namespace lock. `data`: the sink's. `unit_size`: bytes, whole
  // blocks.
  BufferedWriter(std::shared_ptr<MountContext> context, std::shared_ptr<OpenFile> file, std::unique_ptr<WriteSink> sink,
                 DataClass data, size_t unit_size);
  ~BufferedWriter() override;

  Status Append(std::span<const std::byte> data) override;
  Status Flush() override;
  Status Sync() override;
  Status WriteOut() override;
  Status Truncate(uint64_t size) override;
  Status Close() override;
  uint64_t size() const override { return file_->size(); }
  void SetLifetime(Lifetime lifetime) override;
  void SetLevel(int8_t level) override;
  void SetIoClass(IoClass io_class) override;

 private:
  // How far a call waits for what it writes out.
  enum class Wait : uint8_t { kForPlace, kForDevice, kForDurability };

  Status CheckUsable() const ISOZONE_REQUIRES(mu_);
  // Runs `use`, which uses sink_, without mu_, after whatever uses it now.
  Status WithSink(const std::function<Status()>& use) ISOZONE_REQUIRES(mu_);
  void WaitForSink() ISOZONE_REQUIRES(mu_);
  // Starts the unit that is being filled, if there is anything in it.
  Status WriteOutLocked(Wait wait) ISOZONE_REQUIRES(mu_);
  void BeginUnit(uint64_t file_offset) ISOZONE_REQUIRES(mu_);
  Status Extend(uint64_t size);
  void SetDataClass(DataClass data) ISOZONE_REQUIRES(mu_);
  // `status`, which from now on every call returns if it is an error.
  Status Latched(Status status) ISOZONE_REQUIRES(mu_);

  // --- By the thread that uses the sink ---
  Status StartNewest(bool durable);
  Status FinishOldest();
  // Those in started_ and the one being filled.
  std::vector<OpenFile::MemoryPiece> Pieces() const;
  OpenFile::MemoryPiece PieceOf(const WriteUnit& unit) const {
    return {unit.file_offset, unit.memory.data() + header_size_};
  }

  const std::shared_ptr<MountContext> context_;
  std::shared_ptr<OpenFile> file_;
  const size_t header_size_;
  const size_t unit_size_;                // bytes
  std::atomic<bool> is_user_log_{false};  // what it takes is paced

  Mutex mu_;
  CondVar sink_free_;
  bool sink_used_ ISOZONE_GUARDED_BY(mu_) = false;  // some thread uses sink_ without mu_
  bool closed_ ISOZONE_GUARDED_BY(mu_) = false;
  Status failure_ ISOZONE_GUARDED_BY(mu_);
  WriteUnit filling_ ISOZONE_GUARDED_BY(mu_);
  DataClass data_ ISOZONE_GUARDED_BY(mu_);

  // Used by the thread that set sink_used_, or by one that holds mu_ while it is not set.
  std::deque<WriteUnit> started_;  // in file order; addresses stay
  OpenFile::MemoryPiece filling_piece_;
  std::unique_ptr<WriteSink> sink_;
};

}  // namespace isozone
