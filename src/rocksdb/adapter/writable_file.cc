#include "rocksdb/adapter/writable_file.h"

#include <span>
#include <utility>

#include "base/log.h"
#include "rocksdb/adapter/lsm_level.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/adapter/status_mapping.h"
#include "store/zone/data_class.h"

namespace isozone {
namespace {

std::span<const std::byte> BytesOf(const rocksdb::Slice& data) {
  return std::as_bytes(std::span(data.data(), data.size()));
}

}  // namespace

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

WritableFile::WritableFile(std::string path, const rocksdb::FileOptions& options, std::unique_ptr<FileWriter> writer,
                           int8_t level, std::shared_ptr<MountedSystem> system)
    : FSWritableFile(options),
      path_(std::move(path)),
      type_(FileTypeOf(path_)),
      is_info_log_(IsInfoLog(path_)),
      job_level_(RunningJob::OfThread().level),
      level_(level),
      writer_(std::move(writer)),
      open_(std::move(system), writer_.get()) {}

// The writer is destroyed first. With the last open file, the file system and all data not yet written may be gone.
WritableFile::~WritableFile() {
  open_.ForgetWriter();
  open_.Destroy(std::move(writer_));
}

template <typename Operation>
IOStatus WritableFile::Run(Operation&& operation) {
  return WithoutExceptions([&] {
    const Status usable = open_.Check();
    return ToIoStatus(usable.ok() ? operation() : usable, path_);
  });
}

IOStatus WritableFile::Forgive(IOStatus status) {
  if (status.ok() || !is_info_log_) return status;
  if (!std::exchange(forgiven_, true)) Log().warn("lines are missing in {}: {}", path_, status.ToString());
  return IOStatus::OK();
}

void WritableFile::Classify(const IOOptions& options) {
  // With parallel compression, a thread other than the job's own may write, and its level is not known.
  if (const int8_t level = RunningJob::OfThread().level; level != DataClass::kNoLevel) job_level_ = level;
  const bool own = options.rate_limiter_priority != rocksdb::Env::IO_TOTAL;
  const Intent intent{ActivityOf(options), own ? options.rate_limiter_priority : io_priority_, write_hint_, job_level_};
  if (intent != intent_) {
    intent_ = intent;
    writer_->SetIoClass(WriteClassOf(type_, intent));
  }
  UpdateLevel();
}

void WritableFile::UpdateLevel() {
  if (type_ != FileType::kTable) return;
  const int8_t level = TableLevel(job_level_, WriteClassOf(type_, intent_), LifetimeOf(type_, write_hint_));
  if (level == level_) return;
  level_ = level;
  writer_->SetLevel(level);
}

IOStatus WritableFile::Append(const Slice& data, const IOOptions& options, IODebugContext*) {
  return Forgive(Run([&] {
    Classify(options);
    return writer_->Append(BytesOf(data));
  }));
}

IOStatus WritableFile::PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options, IODebugContext*) {
  return Run([&] {
    Classify(options);
    if (offset > writer_->size()) return Status::InvalidArgument("write beyond the end of the file");
    if (offset < writer_->size()) ISOZONE_RETURN_IF_ERROR(writer_->Truncate(offset));
    return writer_->Append(BytesOf(data));
  });
}

IOStatus WritableFile::PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                                        const rocksdb::DataVerificationInfo&, IODebugContext* debug) {
  return PositionedAppend(data, offset, options, debug);
}

IOStatus WritableFile::Truncate(uint64_t size, const IOOptions&, IODebugContext*) {
  return Run([&] { return size == writer_->size() ? Status() : writer_->Truncate(size); });
}

IOStatus WritableFile::Flush(const IOOptions&, IODebugContext*) {
  return Forgive(Run([&] { return writer_->Flush(); }));
}

IOStatus WritableFile::Sync(const IOOptions&, IODebugContext*) {
  return Run([&] { return writer_->Sync(); });
}

IOStatus WritableFile::RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) {
  return Run([&] { return strict_bytes_per_sync_ ? writer_->Sync() : writer_->WriteOut(); });
}

IOStatus WritableFile::Close(const IOOptions&, IODebugContext*) {
  return Run([&] {
    open_.ForgetWriter();
    return writer_->Close();
  });
}

uint64_t WritableFile::GetFileSize(const IOOptions&, IODebugContext*) { return writer_->size(); }

void WritableFile::SetWriteLifeTimeHint(rocksdb::Env::WriteLifeTimeHint hint) {
  write_hint_ = hint;
  writer_->SetLifetime(LifetimeOf(type_, hint));
  UpdateLevel();
}

}  // namespace isozone
