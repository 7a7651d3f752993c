#include "store/file/file_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "store/extents.h"
#include "store/file/truncate.h"

namespace isozone {

namespace {

constexpr size_t kSumStep = 4 * kKiB;  // small enough for the first cache

}  // namespace

BufferedWriter::BufferedWriter(std::shared_ptr<DataPath> data_path, std::shared_ptr<Catalog> catalog,
                               std::shared_ptr<OpenFile> file, std::unique_ptr<WriteSink> sink, DataClass data,
                               const Options& options)
    : data_path_(std::move(data_path)),
      catalog_(std::move(catalog)),
      file_(std::move(file)),
      header_size_(sink->header_size()),
      options_(options),
      unit_size_(sink->UnitSize(options.unit_size)),
      data_(data),
      sink_(std::move(sink)) {
  const OpenWriters::Order order{options.directory.value_or(InodeId()), data.lifetime};
  const bool is_log = options.directory.has_value();
  if (is_log || options.kept) place_ = data_path_->writers.Add(*this, file_->id(), is_log ? &order : nullptr);
}

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
  catalog_->Release(std::move(file_));
}

Status BufferedWriter::CheckUsable() const {
  if (closed_) return Status::InvalidArgument("the file is closed");
  return failure_;
}

// ---------------------------------------------------------------------------------------------------------------------
// Units
// ---------------------------------------------------------------------------------------------------------------------

Status BufferedWriter::TakeKeptMemory() {
  // What the unit gets is kept only if the file itself is.
  const Status names = catalog_->journal->Keep(catalog_->last_name_change);
  if (!names.ok()) return WithSink([&] { return names; });
  const uint64_t inode = file_->id().value();
  const uint64_t offset = file_->size();
  const size_t most = unit_size_;
  if (!place_) place_ = data_path_->writers.Add(*this, file_->id(), nullptr);
  auto memory = data_path_->kept->TryTake(inode, offset, header_size_, most);
  if (!memory && !options_.kept) return Status::Ok();
  if (!memory) {
    // The thread that writes out what is here needs the lock for that.
    const MutexUnlock unlock(mu_);
    memory = data_path_->kept->Take(inode, offset, header_size_, most);
  }
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  filling_.kept = *std::move(memory);
  filling_.memory = filling_.kept.span();
  filling_.checksum = KeptSeed(data_path_->frame_seed, inode, offset);
  return Status::Ok();
}

Status BufferedWriter::BeginUnit(size_t bytes) {
  const uint64_t offset = file_->size();
  if (IsKept(bytes)) ISOZONE_RETURN_IF_ERROR(TakeKeptMemory());
  if (filling_.memory.empty()) {
    filling_.own = data_path_->buffers.Take(unit_size_);
    filling_.memory = filling_.own.span();
    filling_.checksum = sink_->ChecksumSeed(offset);
  }
  filling_.file_offset = offset;
  filling_.used = filling_.summed = header_size_;
  ShowPieces({});
  return Status::Ok();
}

void BufferedWriter::ShowPieces(std::span<const FileExtent> written) {
  std::vector<OpenFile::MemoryPiece> pieces;
  pieces.reserve(units_.size() + 1);
  const auto add = [&](const WriteUnit& unit) { pieces.push_back({unit.file_offset, &unit.memory[header_size_]}); };
  for (const WriteUnit& unit : units_) add(unit);
  if (!filling_.memory.empty()) add(filling_);
  file_->SetMemory(written, pieces);
}

void BufferedWriter::EndUnit() {
  if (filling_.used <= header_size_) return;
  filling_.kept.NoteFull();
  units_.push_back(std::move(filling_));
  filling_ = WriteUnit();
}

void BufferedWriter::GiveUpKept() {
  for (size_t i = 0; i <= units_.size(); ++i) {
    WriteUnit& unit = i < units_.size() ? units_[i] : filling_;
    if (!unit.kept.has_memory()) continue;
    unit.own = AlignedBuffer(unit.memory.size());
    std::memcpy(unit.own.data(), unit.memory.data(), unit.used);
    unit.memory = unit.own.span();
  }
  ShowPieces({});
  for (WriteUnit& unit : units_) unit.kept = KeptUnitMemory();
  filling_.kept = KeptUnitMemory();
  finished_.clear();
}

Status BufferedWriter::Append(std::span<const std::byte> data) {
  if (is_user_log_.load(std::memory_order_relaxed)) data_path_->pool->PaceLog(data.size());
  if (IsKept(data.size())) data_path_->kept->Pace(data.size());
  const MutexLock lock(mu_);
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  data_path_->user_bytes_appended.fetch_add(data.size(), std::memory_order_relaxed);
  const size_t bytes = data.size();
  while (!data.empty()) {
    if (filling_.memory.empty()) ISOZONE_RETURN_IF_ERROR(BeginUnit(bytes));
    const size_t piece = std::min(data.size(), filling_.memory.size() - filling_.used);
    Fill(data.first(piece));
    data = data.subspan(piece);
    if (filling_.used < filling_.memory.size()) continue;
    if (filling_.kept.has_memory()) {
      EndUnit();
      data_path_->writers.Wake();
    } else {
      ISOZONE_RETURN_IF_ERROR(WriteOutLocked(Wait::kForPlace));
    }
  }
  return Status::Ok();
}

void BufferedWriter::Fill(std::span<const std::byte> data) {
  std::memcpy(&filling_.memory[filling_.used], data.data(), data.size());
  filling_.used += data.size();
  if (filling_.kept.has_memory()) {
    filling_.SumUp();
    filling_.kept.Publish(filling_.used - header_size_, *filling_.checksum);
  } else if (filling_.used - filling_.summed >= kSumStep) {
    filling_.SumUp();
  }
  if (file_->keeps_time.load(std::memory_order_relaxed)) file_->keeps_time = false;
  file_->PublishSize(file_->size() + data.size());
}

// ---------------------------------------------------------------------------------------------------------------------
// The sink
// ---------------------------------------------------------------------------------------------------------------------

void BufferedWriter::WaitForSink() {
  while (sink_used_) sink_free_.Wait(mu_);
}

Status BufferedWriter::WithSink(const std::function<Status()>& use) {
  WaitForSink();
  sink_used_ = true;
  sink_->SetDataClass(data_);
  sink_->SetIoClass(io_class_);
  Status status;
  {
    const MutexUnlock unlock(mu_);
    status = use();
    if (!status.ok()) sink_->Drop();  // before Latched gives the memory of the units to others
  }
  unit_size_ = sink_->UnitSize(options_.unit_size);
  sink_used_ = false;
  sink_free_.SignalAll();
  return Latched(std::move(status));
}

Status BufferedWriter::WriteOutLocked(Wait wait) {
  WaitForSink();
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  EndUnit();
  const uint64_t end = file_->size();
  const size_t units = units_.size() - given_;
  const Status status = WithSink([&] { return GiveAll(units, wait); });
  // The thread of the mount passes by a sink that is used: it looks again.
  if (place_ && (!units_.empty() || (data_path_->kept != nullptr && data_path_->kept->is_awaited()))) {
    data_path_->writers.Wake();
  }
  if (status.ok() && wait == Wait::kForDurability) durable_size_.store(end, std::memory_order_release);
  return status;
}

Status BufferedWriter::GiveAll(size_t units, Wait wait) {
  const bool durable = wait == Wait::kForDurability;
  for (; units > 0; --units) ISOZONE_RETURN_IF_ERROR(GiveNext(durable && units == 1));
  if (wait != Wait::kForPlace) ISOZONE_RETURN_IF_ERROR(sink_->StartAll(durable));
  const bool all = wait > Wait::kForStart || sink_->depth() == 0;
  while (given_ > 0 && (all || sink_->OldestIsDone())) ISOZONE_RETURN_IF_ERROR(FinishOldest());
  if (durable) ISOZONE_RETURN_IF_ERROR(sink_->MakeDurable());
  return MakeKnown();
}

Status BufferedWriter::GiveSome(bool start) {
  const size_t depth = sink_->depth();
  for (;;) {
    while (given_ > 0 && (depth == 0 || sink_->OldestIsDone())) ISOZONE_RETURN_IF_ERROR(FinishOldest());
    if (given_ >= std::max<size_t>(depth, 1) || !HasToGive()) break;
    ISOZONE_RETURN_IF_ERROR(GiveNext(/*durable=*/false));
  }
  if (start) ISOZONE_RETURN_IF_ERROR(sink_->StartAll(/*durable=*/false));
  return MakeKnown();
}

Status BufferedWriter::GiveNext(bool durable) {
  if (options_.directory) ISOZONE_RETURN_IF_ERROR(data_path_->writers.SaveEarlier(place_));
  WriteUnit* unit = nullptr;
  {
    const MutexLock lock(mu_);
    unit = &units_[given_++];
  }
  while (given_ > std::max<size_t>(sink_->depth(), 1)) ISOZONE_RETURN_IF_ERROR(FinishOldest());
  return sink_->Take(*unit, durable);
}

bool BufferedWriter::HasToGive() {
  const MutexLock lock(mu_);
  return given_ < units_.size();
}

Status BufferedWriter::FinishOldest() {
  std::vector<FileExtent> written;
  const Status status = sink_->Finish(written);
  {
    const MutexLock lock(mu_);
    // After a failure, everything that is not on the device stays readable from memory until Close.
    if (status.ok()) {
      finished_.push_back(std::move(units_.front()));
      units_.pop_front();
      --given_;
    }
    ShowPieces(written);
  }
  sink_->NoteReadable(written);
  ISOZONE_RETURN_IF_ERROR(status);
  // The frames of a log are found without the metadata.
  return options_.directory ? MakeKnown() : Status::Ok();
}

Status BufferedWriter::MakeKnown() {
  if (finished_.empty()) return Status::Ok();
  const bool was_kept = std::ranges::any_of(finished_, [](const WriteUnit& unit) { return unit.kept.has_memory(); });
  if (was_kept) ISOZONE_RETURN_IF_ERROR(sink_->MakeKnown());
  for (WriteUnit& unit : finished_) data_path_->buffers.Give(std::move(unit.own));
  finished_.clear();
  return Status::Ok();
}

Status BufferedWriter::Latched(Status status) {
  if (status.ok()) return status;
  if (failure_.ok()) failure_ = status;
  if (data_path_->kept != nullptr) GiveUpKept();
  return status;
}

// ---------------------------------------------------------------------------------------------------------------------
// OpenWriter
// ---------------------------------------------------------------------------------------------------------------------

bool BufferedWriter::is_durable() const { return durable_size_.load(std::memory_order_acquire) == file_->size(); }

Status BufferedWriter::SaveAll() {
  const MutexLock lock(mu_);
  WaitForSink();  // it may be closing
  return closed_ ? Status::Ok() : WriteOutLocked(Wait::kForDurability);
}

void BufferedWriter::Advance(bool all) {
  const MutexLock lock(mu_);
  if (closed_ || !failure_.ok() || sink_used_) return;
  if (all) EndUnit();
  // The end of a write to a log wakes the thread; it need not wait for it, unless memory is short.
  const bool is_woken = options_.directory && !all;
  const bool takes_more = given_ < units_.size() && given_ < std::max<size_t>(sink_->depth(), 1);
  if (!takes_more && (given_ == 0 || (is_woken && !sink_->OldestIsDone()))) return;
  // What no end of a write wakes the thread for is waited for. An error latches.
  const size_t units = units_.size() - given_;
  (void)WithSink([&] { return options_.directory ? GiveSome(all) : GiveAll(units, Wait::kForDevice); });
}

// ---------------------------------------------------------------------------------------------------------------------
// FileWriter
// ---------------------------------------------------------------------------------------------------------------------

Status BufferedWriter::Flush() {
  const MutexLock lock(mu_);
  ISOZONE_RETURN_IF_ERROR(CheckUsable());
  const bool through = data_path_->writes_through && options_.directory;
  return through ? WriteOutLocked(Wait::kForDevice) : Status::Ok();
}

Status BufferedWriter::Sync() {
  const MutexLock lock(mu_);
  data_path_->syncs.fetch_add(1, std::memory_order_relaxed);
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
  file_->SetMemory({}, {});  // the next Append begins a unit at the new end
  durable_size_.store(0, std::memory_order_release);
  return TruncateFile(*catalog_, *file_, size);
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
    // Once it is closed, nobody makes it durable before a log goes on that comes after it.
    const bool is_awaited = options_.directory && !is_durable() && data_path_->writers.HasLater(place_);
    status = WriteOutLocked(is_awaited ? Wait::kForDurability : Wait::kForDevice);
    const Status sealed = WithSink([this] { return sink_->Seal(); });
    if (status.ok()) status = sealed;
    // What could not be written is lost with its memory: the file ends where the device has it.
    file_->DropMemory();
    closed_ = true;
    sink_.reset();
    units_.clear();
    given_ = 0;
    filling_ = WriteUnit();
  }
  data_path_->writers.Remove(place_);
  const MutexLock lock(catalog_->namespace_mutex);
  DropUnknown();
  file_->has_writer = false;
  return status;
}

void BufferedWriter::DropUnknown() {
  const Inode* inode = catalog_->state.Find(file_->id());
  const bool unknown = inode != nullptr && inode->kind != FileKind::kLog && file_->size() > inode->size;
  if (!unknown) return;
  ExtentList known = file_->Extents();
  known.CutAt(inode->size);
  file_->Reset(std::move(known), file_->damage());
}

void BufferedWriter::SetLifetime(Lifetime lifetime) {
  const MutexLock lock(mu_);
  data_.lifetime = lifetime;
}

void BufferedWriter::SetLevel(int8_t level) {
  const MutexLock lock(mu_);
  data_.level = level;
}

void BufferedWriter::SetIoClass(IoClass io_class) {
  is_user_log_.store(io_class == IoClass::kWal, std::memory_order_relaxed);
  const MutexLock lock(mu_);
  io_class_ = io_class;
}

}  // namespace isozone
