// BufferedWriter: the writer behind FileWriter, with units of memory in front of a WriteSink. Appends fill a unit. When
// it is full, or at a Sync, the sink takes it and writes it to the device, and another unit is filled. The sink limits
// how many units it takes before they are finished; an Append waits only if that limit is reached.
//
//   file    [ on the device ][ taken | taken | ... ][ filling )
//             extents          pieces of memory, until all before them are finished
//
// Appended data is readable at once through every handle, because OpenFile knows the pieces of memory.
//
// The calling threads do all the work; a completion only reports that it came. Errors latch: after a failed write,
// every call returns that error, and data that was not written stays readable from memory until the writer is
// destroyed.
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
  // The caller has set has_writer of `file`, under the namespace lock. `data` is that of the sink. `unit_size`: bytes,
  // whole blocks.
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
  // How far a call waits for the data that it writes out: until the sink has taken it, has started to write it, has
  // written it, or has made it durable.
  enum class Wait : uint8_t { kForPlace, kForStart, kForDevice, kForDurability };

  Status CheckUsable() const ISOZONE_REQUIRES(mu_);
  // Runs `use`, which uses sink_, without mu_, after all earlier uses have ended.
  Status WithSink(const std::function<Status()>& use) ISOZONE_REQUIRES(mu_);
  void WaitForSink() ISOZONE_REQUIRES(mu_);
  // Starts the unit that is being filled, if it is not empty.
  Status WriteOutLocked(Wait wait) ISOZONE_REQUIRES(mu_);
  void BeginUnit(uint64_t file_offset) ISOZONE_REQUIRES(mu_);
  Status Extend(uint64_t size);
  // What is on the device, and could not be told to the metadata, is no longer part of the file: it would not be there
  // after a mount. (The end of a log is found in its frames.)
  void DropUnknown() ISOZONE_REQUIRES(context_->namespace_mutex);
  void SetDataClass(DataClass data) ISOZONE_REQUIRES(mu_);
  // Returns `status`. If it is an error, every later call returns it.
  Status Latched(Status status) ISOZONE_REQUIRES(mu_);

  // --- Called by the thread that uses the sink ---
  Status TakeNewest(bool durable);
  Status FinishOldest();
  // The pieces in taken_ and the one being filled.
  std::vector<OpenFile::MemoryPiece> Pieces() const;
  OpenFile::MemoryPiece PieceOf(const WriteUnit& unit) const {
    return {unit.file_offset, unit.memory.data() + header_size_};
  }

  const std::shared_ptr<MountContext> context_;
  std::shared_ptr<OpenFile> file_;
  const size_t header_size_;
  const size_t unit_size_;                // bytes
  std::atomic<bool> is_user_log_{false};  // its appends are paced

  Mutex mu_;
  CondVar sink_free_;
  bool sink_used_ ISOZONE_GUARDED_BY(mu_) = false;  // a thread uses sink_ without mu_
  bool closed_ ISOZONE_GUARDED_BY(mu_) = false;
  Status failure_ ISOZONE_GUARDED_BY(mu_);
  WriteUnit filling_ ISOZONE_GUARDED_BY(mu_);
  DataClass data_ ISOZONE_GUARDED_BY(mu_);

  // Used by the thread that set sink_used_, or by one that holds mu_ while it is not set.
  std::deque<WriteUnit> taken_;  // in file order; addresses stay
  OpenFile::MemoryPiece filling_piece_;
  std::unique_ptr<WriteSink> sink_;
};

}  // namespace isozone
