#include "fs/file/file_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "fs/extents.h"
#include "fs/file/truncate.h"

namespace isozone {

namespace {

constexpr size_t kSumStep = 4 * kKiB;  // small enough for the first cache

}  // namespace

BufferedWriter::BufferedWriter(std::shared_ptr<MountContext> context, std::shared_ptr<OpenFile> file,
                               std::unique_ptr<WriteSink> sink, DataClass data, size_t unit_size)
    : context_(std::move(context)),
      file_(std::move(file)),
      header_size_(sink->header_size()),
      unit_size_(unit_size),
      data_(data),
      sink_(std::move(sink)) {}

BufferedWriter::~BufferedWriter() {
  bool open = false, failed_before = false;
  {
    const MutexLock lock(mu_);
    open = !closed_;
    failed_before = !failure_.ok();  // the caller knows of it already
  }
  if (open) {
    const Status status = Close();
    if (!status.ok() && !failed_before) {
      Log().error("closing inode {} failed: {}", file_->id().value(), status.ToString());
    }
  }
  context_->Release(std::move(file_));
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

void BufferedWriter::BeginUnit(uint64_t file_offset) {
  filling_.memory = context_->buffers.Take(sink_->UnitSize(unit_size_));
  filling_.file_offset = file_offset;
  filling_.used = filling_.summed = header_size_;
  filling_.checksum = sink_->ChecksumSeed(file_offset);
  filling_piece_ = PieceOf(filling_);
}

std::vector<OpenFile::MemoryPiece> BufferedWriter::Pieces() const {
  std::vector<OpenFile::MemoryPiece> pieces;
  pieces.reserve(taken_.size() + 1);
  for (const WriteUnit& unit : taken_) pieces.push_back(PieceOf(unit));
  pieces.push_back(filling_piece_);
  return pieces;
}

Status BufferedWriter::Append(std::span<const std::byte> data) {
  if (is_user_log_.load(std::memory_order_relaxed)) context_->pool->PaceLog(data.size());
  const MutexLock lock(mu_);
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  context_->user_bytes_appended.fetch_add(data.size(), std::memory_order_relaxed);
  while (!data.empty()) {
    if (filling_.memory.size() == 0) {
      WaitForSink();
      BeginUnit(file_->size());
      file_->SetMemory({}, Pieces());
    }
    const size_t piece = std::min(data.size(), filling_.memory.size() - filling_.used);
    std::memcpy(filling_.memory.data() + filling_.used, data.data(), piece);
    filling_.used += piece;
    if (filling_.used - filling_.summed >= kSumStep) filling_.SumUp();
    file_->PublishSize(file_->size() + piece);
    data = data.subspan(piece);
    if (filling_.used == filling_.memory.size()) ISOZONE_RETURN_IF_ERROR(WriteOutLocked(Wait::kForPlace));
  }
  return Status::Ok();
}

Status BufferedWriter::WriteOutLocked(Wait wait) {
  WaitForSink();
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  const bool durable = wait == Wait::kForDurability;
  const bool starts = filling_.used > header_size_;
  if (starts) {
    const uint64_t end = filling_.file_offset + filling_.used - header_size_;
    taken_.push_back(std::move(filling_));
    BeginUnit(end);
    file_->SetMemory({}, Pieces());
  }
  return Latched(WithSink([&]() -> Status {
    if (starts) ISOZONE_RETURN_IF_ERROR(TakeNewest(durable));
    if (wait != Wait::kForPlace) ISOZONE_RETURN_IF_ERROR(sink_->StartAll(durable));
    const bool all = wait > Wait::kForStart || sink_->depth() == 0;
    while (!taken_.empty() && (all || sink_->OldestIsDone())) ISOZONE_RETURN_IF_ERROR(FinishOldest());
    return durable ? sink_->MakeDurable() : Status::Ok();
  }));
}

Status BufferedWriter::TakeNewest(bool durable) {
  while (taken_.size() > std::max<size_t>(sink_->depth(), 1)) ISOZONE_RETURN_IF_ERROR(FinishOldest());
  return sink_->Take(taken_.back(), durable);
}

Status BufferedWriter::FinishOldest() {
  std::vector<FileExtent> written;
  const Status status = sink_->Finish(written);
  WriteUnit unit;
  // After a failure, everything that is not on the device stays readable from memory until Close.
  if (status.ok()) {
    unit = std::move(taken_.front());
    taken_.pop_front();
  }
  file_->SetMemory(written, Pieces());
  sink_->NoteReadable(written);
  ISOZONE_RETURN_IF_ERROR(status);
  context_->buffers.Give(std::move(unit.memory));
  return Status::Ok();
}

Status BufferedWriter::Latched(Status status) {
  if (failure_.ok()) failure_ = status;
  return status;
}

Status BufferedWriter::Flush() {
  const MutexLock lock(mu_);
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  if (context_->options.log_write_through && file_->kind() == FileKind::kLog) return WriteOutLocked(Wait::kForDevice);
  return Status::Ok();
}

Status BufferedWriter::Sync() {
  const MutexLock lock(mu_);
  context_->syncs.fetch_add(1, std::memory_order_relaxed);
  return WriteOutLocked(Wait::kForDurability);
}

Status BufferedWriter::WriteOut() {
  const MutexLock lock(mu_);
  return WriteOutLocked(Wait::kForStart);
}

Status BufferedWriter::Truncate(uint64_t size) {
  if (size >= this->size()) return Extend(size);
  const MutexLock lock(mu_);
  ISOZONE_RETURN_IF_ERROR(WriteOutLocked(Wait::kForDevice));
  ISOZONE_RETURN_IF_ERROR(WithSink([this] { return sink_->Seal(); }));
  context_->buffers.Give(std::move(filling_.memory));
  filling_.used = 0;  // the next Append begins a unit at the new end
  file_->SetMemory({}, {});
  return TruncateFile(*context_, *file_, size);
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
    status = WriteOutLocked(Wait::kForDevice);
    const Status sealed = WithSink([this] { return sink_->Seal(); });
    if (status.ok()) status = sealed;
    // What could not be written is lost with its memory: the file ends where the device has it.
    file_->DropMemory();
    closed_ = true;
    sink_.reset();
    taken_.clear();
    context_->buffers.Give(std::move(filling_.memory));
  }
  const MutexLock lock(context_->namespace_mutex);
  DropUnknown();
  file_->has_writer = false;
  return status;
}

void BufferedWriter::DropUnknown() {
  const Inode* inode = context_->state.Find(file_->id());
  const bool unknown = inode != nullptr && inode->kind != FileKind::kLog && file_->size() > inode->size;
  if (unknown) file_->Reset(CutExtents(file_->Extents(), inode->size), file_->damage());
}

void BufferedWriter::SetLifetime(Lifetime lifetime) {
  const MutexLock lock(mu_);
  SetDataClass({lifetime, data_.level});
}

void BufferedWriter::SetLevel(int8_t level) {
  const MutexLock lock(mu_);
  SetDataClass({data_.lifetime, level});
}

void BufferedWriter::SetDataClass(DataClass data) {
  WaitForSink();
  data_ = data;
  if (sink_) sink_->SetDataClass(data);
}

void BufferedWriter::SetIoClass(IoClass io_class) {
  is_user_log_.store(io_class == IoClass::kWal, std::memory_order_relaxed);
  const MutexLock lock(mu_);
  WaitForSink();
  if (sink_) sink_->SetIoClass(io_class);
}

}  // namespace isozone
