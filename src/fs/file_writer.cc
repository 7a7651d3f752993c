#include "fs/file_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "fs/truncate.h"

namespace isozone {

BufferedWriter::BufferedWriter(std::shared_ptr<FsCore> core, std::shared_ptr<OpenFile> file,
                               std::unique_ptr<WriteSink> sink, size_t buffer_size)
    : core_(std::move(core)),
      file_(std::move(file)),
      header_size_(sink->header_size()),
      buffer_size_(buffer_size),
      sink_(std::move(sink)) {}

BufferedWriter::~BufferedWriter() {
  bool open = false, failed_before = false;
  {
    const MutexLock lock(mu_);
    open = !closed_;
    failed_before = !failure_.ok();  // and the caller was told
  }
  if (open) {
    const Status status = Close();
    if (!status.ok() && !failed_before) {
      Log().error("closing inode {} failed: {}", file_->id().value(), status.ToString());
    }
  }
  core_->Release(std::move(file_));
}

Status BufferedWriter::CheckUsable() const {
  if (closed_) return Status::InvalidArgument("the file is closed");
  return failure_;
}

void BufferedWriter::WaitForSink() {
  while (sink_used_) sink_free_.Wait(mu_);
}

Status BufferedWriter::WithSink(const std::function<Status()>& use) {
  WaitForSink();
  sink_used_ = true;
  Status status;
  {
    const MutexUnlock unlock(mu_);
    status = use();
  }
  sink_used_ = false;
  sink_free_.SignalAll();
  return status;
}

void BufferedWriter::Start(Buffer& buffer, uint64_t file_offset) {
  if (buffer.memory.size() == 0) buffer.memory = AlignedBuffer(buffer_size_);
  buffer.file_offset = file_offset;
  buffer.used = header_size_;
}

Status BufferedWriter::Append(std::span<const std::byte> data) {
  const MutexLock lock(mu_);
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  core_->user_bytes_appended.fetch_add(data.size(), std::memory_order_relaxed);
  while (!data.empty()) {
    if (filling_.used == 0) {
      Start(filling_, file_->size());
      // Here nothing else is in memory: a buffer being written out always leaves a started one behind.
      const OpenFile::MemoryPiece piece = PieceOf(filling_);
      file_->SetMemory({}, {&piece, 1});
    }
    const size_t piece = std::min(data.size(), buffer_size_ - filling_.used);
    std::memcpy(filling_.memory.data() + filling_.used, data.data(), piece);
    filling_.used += piece;
    file_->PublishSize(file_->size() + piece);
    data = data.subspan(piece);
    if (filling_.used == buffer_size_) ISOZONE_RETURN_IF_ERROR(WriteOutLocked(false));
  }
  return Status::Ok();
}

Status BufferedWriter::WriteOutLocked(bool durable) {
  WaitForSink();
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  if (filling_.used <= header_size_) {
    if (!durable) return Status::Ok();
    return Latched(WithSink([this] { return sink_->MakeDurable(); }));
  }
  Buffer full = std::exchange(filling_, std::move(spare_));
  Start(filling_, full.file_offset + full.used - header_size_);
  const std::array<OpenFile::MemoryPiece, 2> pieces = {PieceOf(full), PieceOf(filling_)};
  file_->SetMemory({}, pieces);
  std::vector<FileExtent> written;
  const Status status = WithSink([&]() -> Status {
    ISOZONE_RETURN_IF_ERROR(sink_->Write(full.memory, full.used, full.file_offset, durable, written));
    return durable ? sink_->MakeDurable() : Status::Ok();
  });
  // After a failure everything stays readable from memory, until Close.
  file_->SetMemory(written, status.ok() ? std::span(pieces).last(1) : std::span(pieces));
  spare_ = std::move(full);
  return Latched(status);
}

Status BufferedWriter::Latched(Status status) {
  if (failure_.ok()) failure_ = status;
  return status;
}

Status BufferedWriter::Flush() {
  const MutexLock lock(mu_);
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  if (core_->options.log_write_through && file_->kind() == FileKind::kLog) return WriteOutLocked(false);
  return Status::Ok();
}

Status BufferedWriter::Sync() {
  const MutexLock lock(mu_);
  core_->syncs.fetch_add(1, std::memory_order_relaxed);
  return WriteOutLocked(true);
}

Status BufferedWriter::WriteOut() {
  const MutexLock lock(mu_);
  return WriteOutLocked(false);
}

Status BufferedWriter::Truncate(uint64_t size) {
  if (size >= this->size()) return Extend(size);
  const MutexLock lock(mu_);
  ISOZONE_RETURN_IF_ERROR(WriteOutLocked(false));
  ISOZONE_RETURN_IF_ERROR(WithSink([this] { return sink_->Seal(); }));
  filling_.used = 0;  // the next Append starts a buffer at the new end
  file_->SetMemory({}, {});
  return TruncateFile(*core_, *file_, size);
}

Status BufferedWriter::Extend(uint64_t size) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (file_->size() < size) {
    ISOZONE_RETURN_IF_ERROR(Append(std::span(kZeros).first(std::min<uint64_t>(kZeros.size(), size - file_->size()))));
  }
  return Status::Ok();
}

Status BufferedWriter::Close() {
  Status status;
  {
    const MutexLock lock(mu_);
    if (closed_) return Status::InvalidArgument("the file is closed");
    status = WriteOutLocked(false);
    const Status sealed = WithSink([this] { return sink_->Seal(); });
    if (status.ok()) status = sealed;
    // What could not be written goes with its memory: the file ends where the device has it.
    file_->Reset(file_->Extents(), file_->damage());
    closed_ = true;
    sink_.reset();
  }
  const MutexLock lock(core_->namespace_mutex);
  file_->has_writer = false;
  return status;
}

void BufferedWriter::SetLifetime(Lifetime lifetime) {
  const MutexLock lock(mu_);
  WaitForSink();
  if (sink_) sink_->SetLifetime(lifetime);
}

void BufferedWriter::SetIoClass(IoClass io_class) {
  const MutexLock lock(mu_);
  WaitForSink();
  if (sink_) sink_->SetIoClass(io_class);
}

}  // namespace isozone
