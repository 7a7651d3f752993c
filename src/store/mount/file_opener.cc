#include "store/mount/file_opener.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "store/file/data_sink.h"
#include "store/file/file_reader.h"
#include "store/file/file_space.h"
#include "store/file/file_writer.h"
#include "store/file/log_sink.h"
#include "store/file/open_log.h"
#include "store/zone/lane_choice.h"

namespace isozone {
namespace {

// Small files are written a little at a time, so their unit need not hold a stripe.
constexpr size_t kSmallUnit = 64 * kKiB;

Status Removed(InodeId id) { return Status::NotFound(fmt::format("inode {} was removed", id.value())); }

}  // namespace

Result<std::shared_ptr<OpenFile>> FileOpener::Open(InodeId id) {
  if (refresh_ != nullptr) return Follow(id);
  std::optional<Inode> scanned;
  LogContents log;
  for (;;) {
    {
      const MutexLock lock(catalog_.namespace_mutex);
      const Inode* inode = catalog_.state.Find(id);
      if (inode == nullptr) return Removed(id);
      auto file = catalog_.FindOpen(id);
      // A log that could not be read when it was opened before is tried again.
      if (file != nullptr && (file->is_busy() || !file->damage().Is(StatusCode::kIoError))) return file;
      if (inode->kind != FileKind::kLog) return Register(id, inode->kind, inode->extents, Status::Ok());
      // A log that was written to and closed again meanwhile is scanned again.
      if (scanned && scanned->regions == inode->regions) {
        return Register(id, inode->kind, log.extents, std::move(log.damage));
      }
      scanned = *inode;
    }
    ISOZONE_ASSIGN_OR_RETURN(log, ReadLog(data_path_.engine, data_path_.frame_seed, *scanned));
  }
}

std::shared_ptr<OpenFile> FileOpener::Register(InodeId id, FileKind kind, ExtentList extents, Status damage) {
  if (auto file = catalog_.FindOpen(id)) {
    // A log that could not be read when it was opened before may be readable now.
    if (!file->is_busy() && file->damage().Is(StatusCode::kIoError)) file->Reset(std::move(extents), std::move(damage));
    return file;
  }
  auto file =
      std::make_shared<OpenFile>(id, kind, data_path_.geometry().zone_size, std::move(extents), std::move(damage));
  catalog_.open_files[id] = file;
  return file;
}

Result<std::shared_ptr<OpenFile>> FileOpener::Follow(InodeId id) {
  ISOZONE_ASSIGN_OR_RETURN(auto file, refresh_->Open(id));
  if (file->kind() != FileKind::kLog) return file;
  Status grown = refresh_->GrowLog(*file);
  if (grown.ok()) return file;
  catalog_.Release(std::move(file));
  const MutexLock lock(catalog_.namespace_mutex);
  return catalog_.state.Find(id) == nullptr ? Removed(id) : grown;
}

std::unique_ptr<FileReader> FileOpener::ReaderOf(std::shared_ptr<OpenFile> file) {
  PiecewiseReader::Hooks hooks;
  if (refresh_ != nullptr) {
    const std::weak_ptr<OpenFile> weak = file;
    hooks.after_read = [refresh = refresh_, weak] { return refresh->CheckRead(*weak.lock()); };
    if (file->kind() == FileKind::kLog) {
      hooks.before_end = [refresh = refresh_, weak] { return refresh->GrowLog(*weak.lock()); };
    }
  }
  return std::make_unique<PiecewiseReader>(Share(data_path_), Share(catalog_), std::move(file), std::move(hooks));
}

Result<std::unique_ptr<FileWriter>> FileOpener::WriterOf(std::shared_ptr<OpenFile> file, const CreateOptions& options,
                                                         DataClass data, bool claimed) {
  Status status = file->damage();
  bool left_open = false;
  if (status.ok() && file->kind() == FileKind::kLog) {
    const MutexLock lock(catalog_.namespace_mutex);
    const Inode* inode = catalog_.state.Find(file->id());
    left_open = inode != nullptr && inode->has_open_region() && !file->has_writer;
  }
  // The log is given an end below, which says that everything before it is there.
  if (status.ok() && left_open) status = data_path_.engine.Flush(options.io_class);
  if (status.ok()) {
    const MutexLock lock(catalog_.namespace_mutex);
    if (file->has_writer || (file->is_claimed && !claimed)) {
      status = Status::Busy("the file is being written by another handle");
    }
    if (status.ok()) status = SealLeftOpen(*file);
    if (status.ok()) file->has_writer = true;
  }
  if (!status.ok()) {
    catalog_.Release(std::move(file));
    return status;
  }
  return MakeWriter(std::move(file), options, data);
}

Status FileOpener::SealLeftOpen(const OpenFile& file) {
  const Inode* inode = catalog_.state.Find(file.id());
  if (inode == nullptr || !inode->has_open_region()) return Status::Ok();
  SealedLog log = SealLog(data_path_.geometry(), inode->regions, file.Extents().Expand());
  const std::vector<ZoneBytes> before = SpaceOf(inode->regions);
  const std::vector<ZoneBytes> after = SpaceOf(log.regions);
  const MetadataOp op = SetLogRegions{file.id(), std::move(log.regions), inode->modified_s};
  ISOZONE_RETURN_IF_ERROR(catalog_.Commit({&op, 1}).status());
  SpaceClaim space = SpaceClaim::FromMetadata(*data_path_.pool, before);
  if (auto unread = catalog_.unread_logs.extract(file.id())) space.Merge(std::move(unread.mapped()));
  space.Grow(*data_path_.pool, after);
  space.Split(after).ToMetadata();
  return Status::Ok();
}

std::unique_ptr<FileWriter> FileOpener::MakeWriter(std::shared_ptr<OpenFile> file, const CreateOptions& options,
                                                   DataClass data) {
  const FileKind kind = file->kind();
  const size_t unit = UnitSize(kind);
  BufferedWriter::Options how{unit, data_path_.kept != nullptr && kind != FileKind::kData, {}};
  std::unique_ptr<WriteSink> sink;
  if (kind == FileKind::kLog) {
    SinkOptions with = data_path_.parallel ? LogOptions(unit) : SinkOptions();
    with.wakes = how.kept;
    sink = MakeLogSink(data_path_, catalog_, *file, data.lifetime, with);
    const MutexLock lock(catalog_.namespace_mutex);
    const Inode* inode = catalog_.state.Find(file->id());
    how.directory = inode == nullptr || inode->links.empty() ? InodeId() : inode->links.front().parent;
  } else {
    const bool striped = kind == FileKind::kData && data_path_.parallel;
    SinkOptions with = striped ? StripeOptions(unit, options.expected_size) : SinkOptions();
    with.unit = unit;
    with.expected_size = options.expected_size;
    with.cohort = {options.together_with, options.own_zones};
    sink = MakeDataSink(data_path_, catalog_, file->id(), data, with);
  }
  auto writer =
      std::make_unique<BufferedWriter>(Share(data_path_), Share(catalog_), std::move(file), std::move(sink), data, how);
  writer->SetIoClass(options.io_class);
  return writer;
}

size_t FileOpener::UnitSize(FileKind kind) const {
  const DeviceGeometry& geometry = data_path_.geometry();
  uint64_t wanted = data_path_.options.write_buffer;
  if (kind == FileKind::kSmall) wanted = kSmallUnit;
  if (kind == FileKind::kData && data_path_.parallel) {
    wanted = RoundUp(data_path_.options.stripe_unit, std::max<uint64_t>(geometry.optimal_write, 1));
  }
  // A frame lies in one zone, so it must be small compared with a zone.
  const uint64_t limit =
      std::max<uint64_t>(RoundDown(geometry.zone_capacity / 8, geometry.block_size), 2ULL * geometry.block_size);
  return RoundUp(std::min(wanted, limit), geometry.block_size);
}

SinkOptions FileOpener::StripeOptions(size_t unit, uint64_t expected_size) const {
  const MountOptions& options = data_path_.options;
  SinkOptions sink;
  sink.depth = std::clamp<uint64_t>(options.writer_memory / unit, 2, 1024) - 1;
  sink.width =
      static_cast<uint32_t>(std::min<uint64_t>({options.stripe_width, data_path_.groups->count(), sink.depth}));
  sink.width = LanesOf(expected_size, unit, sink.width);
  return sink;
}

// A log leaves at least half of the groups to others: to flushes, which keep out of the groups of a log, and to
// compactions.
SinkOptions FileOpener::LogOptions(size_t unit) const {
  SinkOptions sink;
  sink.unit = unit;
  sink.width = std::min(data_path_.options.log_width, std::max(1U, data_path_.groups->count() / 2));
  sink.depth = sink.width;
  return sink;
}

}  // namespace isozone
