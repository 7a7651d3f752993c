#include "store/mount/shared_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "store/file/file_space.h"
#include "store/file/log_frame.h"
#include "store/file/truncate.h"

namespace isozone {
namespace {

constexpr size_t kEndMax = 16 * kKiB;      // bytes of the end of a file that are kept in memory
constexpr uint64_t kStepMax = 256 * kKiB;  // bytes of space that are asked for in advance

}  // namespace

SharedFile::SharedFile(PositionalServices& services, std::shared_ptr<OpenFile> file, const FileAttributes& attributes)
    : services_(services),
      catalog_(services_.context->catalog),
      file_(std::move(file)),
      reader_(services_.files.ReaderOf(file_)),
      attributes_(attributes),
      options_{attributes.kind, IoClass::kOther, attributes.lifetime, attributes.level},
      in_place_(catalog_, services_.zones, *file_),
      buffered_(services_.promises),
      allocated_(services_.promises) {}

SharedFile::~SharedFile() {
  const Status status = Detach();
  if (!status.ok()) Log().error("closing inode {} failed: {}", file_->id().value(), status.ToString());
  in_place_.Abandon();
  if (claimed_) {
    const MutexLock lock(catalog_.namespace_mutex);
    file_->is_claimed = false;
  }
  catalog_.Release(std::move(file_));  // reader_ goes later, and is the last of these handles
}

Status SharedFile::Detach() {
  const MutexLock lock(mu_);
  if (std::exchange(detached_, true)) return Status::Ok();
  return catalog_.read_only() ? Status::Ok() : Ended(Settle());
}

Status SharedFile::WriteBack() {
  const MutexLock lock(mu_);
  if (detached_ || catalog_.read_only()) return Status::Ok();
  const Status closed = CloseWriter();
  const Status published = PublishPending(/*durable=*/false);
  return Ended(closed.ok() ? published : closed);
}

Status SharedFile::CheckUsable() const {
  if (detached_) return Status::Aborted("the file system was unmounted");
  if (catalog_.read_only()) return Status::ReadOnly("the file system is mounted read-only");
  return catalog_.journal->status();
}

Status SharedFile::Claim() {
  if (claimed_) return Status::Ok();
  const MutexLock lock(catalog_.namespace_mutex);
  if (file_->is_busy()) return Status::Busy("the file is being written by another handle");
  file_->is_claimed = claimed_ = true;
  end_.clear();  // another may have changed it meanwhile
  return Status::Ok();
}

Status SharedFile::Ended(Status status) {
  if (!claimed_ || writer_ != nullptr || !in_place_.empty()) return status;
  const MutexLock lock(catalog_.namespace_mutex);
  file_->is_claimed = claimed_ = false;
  return status;
}

FileAttributes SharedFile::NamelessAttributes() const {
  FileAttributes a = attributes_;
  a.size = size();
  a.links = 0;
  if (const auto& details = file_->details) {
    a.mode = details->mode;
    a.user = details->user;
    a.group = details->group;
    a.modified = details->modified;
    a.modified_s = details->modified.s;
    a.changed = details->changed;
  }
  return a;
}

// ---------------------------------------------------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------------------------------------------------

Result<size_t> SharedFile::Read(uint64_t offset, std::span<std::byte> buffer, IoClass io_class) {
  return reader_->Read(offset, buffer, io_class);
}

Status SharedFile::Write(uint64_t offset, std::span<const std::byte> data) {
  const MutexLock lock(mu_);
  return Ended(WriteLocked(offset, data));
}

Result<uint64_t> SharedFile::Append(std::span<const std::byte> data) {
  const MutexLock lock(mu_);
  const uint64_t offset = file_->size();
  ISOZONE_RETURN_IF_ERROR(Ended(WriteLocked(offset, data)));
  return offset;
}

Status SharedFile::WriteLocked(uint64_t offset, std::span<const std::byte> data) {
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  if (data.empty()) return Status::Ok();
  if (offset > kSizeMax || data.size() > kSizeMax - offset) {
    return Status::InvalidArgument(fmt::format("{} bytes at {}: files have at most {}", data.size(), offset, kSizeMax));
  }
  ISOZONE_RETURN_IF_ERROR(Claim());
  if (!catalog_.journal->has_room() && !file_->removed()) {
    const MutexLock names(catalog_.namespace_mutex);
    ISOZONE_RETURN_IF_ERROR(catalog_.journal->AdmitMore());
  }
  ISOZONE_RETURN_IF_ERROR(Admit(offset, data.size()));
  const uint64_t before = file_->size();
  Status status = WriteAdmitted(offset, data);
  if (!status.ok()) CutBack(before);
  if (writer_ == nullptr) NoteWrittenOut();
  return status;
}

Status SharedFile::WriteAdmitted(uint64_t offset, std::span<const std::byte> data) {
  if (offset > file_->size()) ISOZONE_RETURN_IF_ERROR(Grow(offset));
  Touch();
  const uint64_t size = file_->size();
  const auto there = data.first(std::min<uint64_t>(data.size(), size - offset));
  const bool repeats = offset + there.size() == size && RepeatsEnd(offset, there);
  // What is appended first can be cut off again, if the rest fails.
  if (there.size() < data.size()) ISOZONE_RETURN_IF_ERROR(AppendLocked(data.subspan(there.size())));
  return there.empty() || repeats ? Status::Ok() : WriteInPlace(offset, there);
}

void SharedFile::CutBack(uint64_t size) {
  if (file_->size() <= size) return;
  Status status = CloseWriter();
  end_.clear();
  if (file_->size() > size) status = TruncateFile(catalog_, *file_, size);
  if (!status.ok()) Log().warn("inode {}: {}", inode(), status.message());
}

Status SharedFile::AppendLocked(std::span<const std::byte> data) {
  const uint64_t before = file_->size();
  ISOZONE_RETURN_IF_ERROR(OpenWriter());
  Status status = writer_->Append(data);
  if (status.ok()) {
    NoteEnd(data);
    return status;
  }
  // What the writer could not write is lost with it. Of this write nothing is to stay.
  const Status closed = CloseWriter();
  if (!closed.ok()) Log().warn("inode {}: {}", inode(), closed.message());
  if (file_->size() > before) ISOZONE_RETURN_IF_ERROR(TruncateFile(catalog_, *file_, before));
  return status;
}

Status SharedFile::WriteInPlace(uint64_t offset, std::span<const std::byte> data) {
  if (file_->kind() == FileKind::kLog) ISOZONE_RETURN_IF_ERROR(BecomeData());
  if (offset + data.size() > append_from_) ISOZONE_RETURN_IF_ERROR(CloseWriter());
  if (offset + data.size() + end_.size() > file_->size()) end_.clear();
  ISOZONE_RETURN_IF_ERROR(in_place_.Write(offset, data, {options_.lifetime, options_.level}, options_.io_class));
  if (!in_place_.is_large()) return Status::Ok();
  // Where this fails, all is pending still, and Sync reports it.
  const Status published = PublishPending(/*durable=*/false);
  if (!published.ok()) Log().debug("inode {}: {}", inode(), published.message());
  return Status::Ok();
}

Status SharedFile::BecomeData() {
  ISOZONE_RETURN_IF_ERROR(OpenWriter());  // which gives an end to what was left open
  ISOZONE_RETURN_IF_ERROR(CloseWriter());
  const std::vector<FileExtent> extents = file_->Extents().Expand();
  const std::vector<ZoneBytes> payloads = SpaceOf(catalog_.geometry, extents);
  const MutexLock lock(catalog_.namespace_mutex);
  if (const Inode* inode = catalog_.state.Find(file_->id())) {
    const std::vector<ZoneBytes> frames = SpaceOf(inode->regions);
    const MetadataOp op = LogToData{inode->id, extents, catalog_.clock.NowWallS()};
    ISOZONE_RETURN_IF_ERROR(catalog_.Commit({&op, 1}).status());
    SpaceClaim space = SpaceClaim::FromMetadata(*catalog_.pool, frames);
    space.Split(payloads).ToMetadata();
    for (const auto& [zone, bytes] : payloads) catalog_.pool->NoteHasData(zone);
    file_->Move({}, std::move(space));
  }
  file_->NoteIsData();
  options_.kind = FileKind::kData;
  return Status::Ok();
}

bool SharedFile::RepeatsEnd(uint64_t offset, std::span<const std::byte> data) {
  if (data.size() > kEndMax) return false;
  if (data.size() <= end_.size()) {
    return std::memcmp(end_.data() + (end_.size() - data.size()), data.data(), data.size()) == 0;
  }
  std::string there(data.size(), '\0');
  const auto read = reader_->Read(offset, std::as_writable_bytes(std::span(there)), options_.io_class);
  if (!read.ok() || *read != data.size()) return false;
  end_ = std::move(there);
  return std::memcmp(end_.data(), data.data(), data.size()) == 0;
}

void SharedFile::NoteEnd(std::span<const std::byte> appended) {
  const auto last = appended.last(std::min(appended.size(), kEndMax));
  if (last.size() == kEndMax) end_.clear();
  end_.append(reinterpret_cast<const char*>(last.data()), last.size());
  if (end_.size() > 2 * kEndMax) end_.erase(0, end_.size() - kEndMax);
}

// ---------------------------------------------------------------------------------------------------------------------
// The size
// ---------------------------------------------------------------------------------------------------------------------

Status SharedFile::Truncate(uint64_t size) {
  const MutexLock lock(mu_);
  return Ended(TruncateLocked(size));
}

Status SharedFile::TruncateLocked(uint64_t size) {
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  if (size > kSizeMax) return Status::InvalidArgument(fmt::format("files have at most {} bytes", kSizeMax));
  ISOZONE_RETURN_IF_ERROR(Claim());
  Touch();
  if (size == file_->size()) return Status::Ok();
  if (size > file_->size()) return Grow(size);
  if (file_->kind() == FileKind::kLog) ISOZONE_RETURN_IF_ERROR(OpenWriter());  // gives an end to what was left open
  const Status closed = CloseWriter();
  // Where the metadata has no room for what was appended, that is no longer part of the file: so much was cut off.
  const bool was_cut = file_->kind() != FileKind::kLog && closed.Is(StatusCode::kNoSpace) && size <= file_->size();
  if (!closed.ok() && !was_cut) return closed;
  end_.clear();
  if (size < file_->size()) ISOZONE_RETURN_IF_ERROR(TruncateFile(catalog_, *file_, size));
  in_place_.Cut(size);
  if (allocated_.bytes() > 0) allocated_.Shrink(HoleBytes(0, size));
  return Status::Ok();
}

Status SharedFile::Grow(uint64_t size) {
  if (file_->kind() == FileKind::kLog) ISOZONE_RETURN_IF_ERROR(BecomeData());
  ISOZONE_RETURN_IF_ERROR(CloseWriter());
  end_.clear();
  const MutexLock lock(catalog_.namespace_mutex);
  if (const Inode* inode = catalog_.state.Find(file_->id())) {
    const FileExtent hole{inode->size, FileExtent::kHole, size - inode->size};
    const MetadataOp op = AppendExtents{inode->id, inode->extents.size(), {hole}, catalog_.clock.NowWallS()};
    ISOZONE_RETURN_IF_ERROR(catalog_.Commit({&op, 1}).status());
  }
  file_->Resize(size);
  return Status::Ok();
}

Status SharedFile::Allocate(uint64_t offset, uint64_t length, bool keep_size) {
  const MutexLock lock(mu_);
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  if (length == 0 || offset > kSizeMax || length > kSizeMax - offset) {
    return Status::InvalidArgument(fmt::format("{} bytes at {} cannot be allocated", length, offset));
  }
  const uint64_t end = offset + length;
  const uint64_t missing = HoleBytes(offset, end);
  // The same range may be allocated twice.
  const uint64_t most = HoleBytes(0, std::max(end, file_->size()));
  const uint64_t wanted = std::min(allocated_.bytes() + missing, most);
  const uint64_t before = allocated_.bytes();
  if (wanted > before) ISOZONE_RETURN_IF_ERROR(allocated_.Await(wanted));
  if (keep_size || end <= file_->size()) return Status::Ok();
  const Status grown = Ended(TruncateLocked(end));
  if (!grown.ok()) allocated_.Shrink(before);
  return grown;
}

uint64_t SharedFile::HoleBytes(uint64_t offset, uint64_t end) const {
  const uint64_t size = file_->size();
  uint64_t bytes = end > size ? end - std::max(offset, size) : 0;
  ExtentList extents = file_->Extents(offset, std::min(end, size));
  extents.CutAt(end);
  extents = extents.CutAt(std::max(offset, extents.begin_offset()));
  return bytes + extents.end_offset() - extents.begin_offset() - extents.StoredBytes();
}

Result<uint64_t> SharedFile::Find(uint64_t offset, bool hole) const {
  const uint64_t size = file_->size();
  if (offset >= size) return Status::NotFound(fmt::format("the file ends at {}", size));
  // Most often the answer is near. What is behind the extents is in memory: data.
  uint64_t on_device = offset;
  for (uint64_t step = kStepMax;; step *= 2) {
    const ExtentList extents = file_->Extents(on_device, std::min(on_device + step, size));
    for (const FileExtent& extent : extents) {
      if (extent.is_hole() == hole) return std::max(offset, extent.file_offset);
    }
    if (extents.empty()) break;
    on_device = extents.end_offset();
  }
  if (hole) return size;
  if (on_device < size) return on_device;
  return Status::NotFound(fmt::format("there is no data behind {}", offset));
}

// ---------------------------------------------------------------------------------------------------------------------
// To the device
// ---------------------------------------------------------------------------------------------------------------------

Status SharedFile::OpenWriter() {
  if (writer_ != nullptr) return Status::Ok();
  const DataClass data{options_.lifetime, options_.level};
  ISOZONE_ASSIGN_OR_RETURN(writer_, services_.files.WriterOf(file_, options_, data, /*claimed=*/true));
  append_from_ = file_->size();
  return Status::Ok();
}

Status SharedFile::CloseWriter() {
  append_from_ = UINT64_MAX;
  if (writer_ == nullptr) return Status::Ok();
  const Status status = writer_->Close();
  writer_.reset();
  if (!status.ok()) end_.clear();
  NoteWrittenOut();
  return status;
}

void SharedFile::NoteWrittenOut() {
  in_memory_ = 0;
  buffered_.Shrink(credit_);
}

Status SharedFile::PublishPending(bool durable) {
  if (in_place_.empty()) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, in_place_.Publish());
  return durable ? catalog_.journal->Sync(sequence) : Status::Ok();
}

Status SharedFile::Flush() {
  const MutexLock lock(mu_);
  if (detached_) return Status::Aborted("the file system was unmounted");
  return writer_ == nullptr ? Status::Ok() : writer_->WriteOut();
}

Status SharedFile::Sync() {
  const MutexLock lock(mu_);
  return catalog_.read_only() ? Status::Ok() : Ended(SyncLocked());
}

Status SharedFile::SyncLocked() {
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  ISOZONE_RETURN_IF_ERROR(PublishPending(/*durable=*/writer_ == nullptr));
  if (writer_ == nullptr) return catalog_.SyncMetadata();
  const Status status = writer_->Sync();
  if (status.ok()) {
    const bool is_log = file_->kind() == FileKind::kLog;
    if (!is_log) append_from_ = file_->size();
    if (!is_log) credit_ = 0;  // a log is written again soon
    NoteWrittenOut();
    // The sink of a log syncs its frames only.
    return is_log ? catalog_.journal->Sync(catalog_.last_name_change.load(std::memory_order_acquire)) : status;
  }
  const Status closed = CloseWriter();  // its error stays
  return closed.ok() ? status : closed;
}

Status SharedFile::Admit(uint64_t offset, uint64_t bytes) {
  const MountOptions& options = services_.context->data_path.options;
  const uint64_t header = file_->kind() == FileKind::kLog ? sizeof(LogFrameHeader) : 0;
  const uint64_t need = RoundUp(bytes + header, catalog_.geometry.block_size);
  const uint64_t memory = options.writer_memory + 2 * std::max<uint64_t>(options.write_buffer, options.stripe_unit);
  // Of what was allocated, as much as the write fills of holes is used up.
  const uint64_t used = allocated_.bytes() == 0 ? 0 : std::min(allocated_.bytes(), HoleBytes(offset, offset + bytes));
  in_memory_ = std::min(in_memory_ + need, std::max(memory, need));
  if (need <= credit_) {
    credit_ -= need;
    allocated_.Shrink(allocated_.bytes() - used);
    return Status::Ok();
  }
  const uint64_t step = std::min(kStepMax, catalog_.geometry.zone_capacity / 4);
  if (buffered_.SetFrom(allocated_, used, in_memory_ + step)) {
    credit_ = step;
    return Status::Ok();
  }
  credit_ = 0;
  if (writer_ != nullptr) ISOZONE_RETURN_IF_ERROR(CloseWriter());
  in_memory_ = need;
  const Status admitted = buffered_.AwaitFrom(allocated_, used, need);
  if (admitted.ok()) return admitted;
  in_memory_ = 0;
  buffered_.Shrink(0);
  return admitted;
}

Status SharedFile::Settle() {
  Status status = CloseWriter();
  const Status published = PublishPending(/*durable=*/false);
  if (status.ok()) status = published;
  credit_ = 0;
  buffered_.Shrink(0);
  allocated_.Shrink(0);
  const Status times = RecordTimes();
  return status.ok() ? times : status;
}

Status SharedFile::RecordTimes() {
  const FileTime time = modified();
  if (time == FileTime()) return Status::Ok();
  const MutexLock lock(catalog_.namespace_mutex);
  const Inode* inode = catalog_.state.Find(file_->id());
  if (inode == nullptr || inode->details == nullptr) return Status::Ok();
  const MetadataOp op = SetTimes{inode->id, time, std::max(inode->details->changed, time)};
  return catalog_.Commit({&op, 1}).status();
}

void SharedFile::SetLifetime(Lifetime lifetime) {
  const MutexLock lock(mu_);
  options_.lifetime = lifetime;
  if (writer_ != nullptr) writer_->SetLifetime(lifetime);
}

void SharedFile::SetIoClass(IoClass io_class) {
  const MutexLock lock(mu_);
  options_.io_class = io_class;
  if (writer_ != nullptr) writer_->SetIoClass(io_class);
}

}  // namespace isozone
