#include "store/mount/mounted_file_system.h"

#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "store/file/truncate.h"
#include "store/mount/figure_sources.h"
#include "store/mount/statistics_at_rest.h"

namespace isozone {
namespace {

Status CheckCohort(const CreateOptions& options) {
  if (options.together_with != 0 || !options.own_zones) return Status::Ok();
  return Status::InvalidArgument("own_zones says nothing without together_with: name the files that share the zones");
}

}  // namespace

MountedFileSystem::~MountedFileSystem() {
  const Status status = Unmount();
  if (!status.ok()) Log().error("unmounting {} failed: {}", context_->data_path.device->name(), status.ToString());
}

// ---------------------------------------------------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------------------------------------------------

Result<const Inode*> MountedFileSystem::FindFile(std::string_view path) const {
  ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_->catalog.state.Lookup(path));
  if (inode->is_directory) return Status::IsDirectory(fmt::format("'{}' is a directory", path));
  if (inode->is_symlink()) {
    return Status::NotSupported(
        fmt::format("'{}' is a symbolic link to '{}', which paths do not follow", path, inode->details->target));
  }
  return inode;
}

Result<InodeId> MountedFileSystem::FileAt(std::string_view path) const {
  const MutexLock lock(mutex());
  ISOZONE_ASSIGN_OR_RETURN(const Inode* found, FindFile(path));
  return found->id;
}

Result<FileAttributes> MountedFileSystem::Stat(std::string_view path) {
  ISOZONE_RETURN_IF_ERROR(files_.Refresh());
  uint64_t log = 0;
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_->catalog.state.Lookup(path));
    if (!files_.MustBeOpened(*inode)) return context_->catalog.AttributesOf(*inode);
    log = inode->id.value();
  }
  return inodes_->GetAttributes(log);
}

Result<std::vector<DirectoryEntry>> MountedFileSystem::List(std::string_view directory) {
  ISOZONE_RETURN_IF_ERROR(files_.Refresh());
  InodeId id;
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Inode* inode, context_->catalog.state.Lookup(directory));
    if (!inode->is_directory) return Status::NotDirectory(fmt::format("'{}' is not a directory", directory));
    id = inode->id;
  }
  std::vector<DirectoryEntry> entries;
  std::vector<size_t> to_open;
  names_.VisitNames(id,
                    [&](std::string_view name, const Inode& inode) ISOZONE_REQUIRES(context_->catalog.namespace_mutex) {
                      if (files_.MustBeOpened(inode)) to_open.push_back(entries.size());
                      entries.push_back({std::string(name), context_->catalog.AttributesOf(inode)});
                    });
  for (const size_t i : to_open) {
    const auto now = inodes_->GetAttributes(entries[i].attributes.inode);
    if (now.ok()) entries[i].attributes = *now;
  }
  return entries;
}

Status MountedFileSystem::CreateDirectory(std::string_view path) {
  Inode inode;
  inode.is_directory = true;
  return names_.Make({path}, std::move(inode), Times::kStay).status();
}

Status MountedFileSystem::CreateDirectories(std::string_view path) {
  for (size_t end = 0; end != std::string_view::npos;) {
    end = path.find('/', end + 1);
    const std::string_view prefix = path.substr(0, end);
    if (prefix.find_first_not_of('/') == std::string_view::npos) continue;  // the root
    const Status status = CreateDirectory(prefix);
    if (!status.ok() && !status.Is(StatusCode::kAlreadyExists)) return status;
  }
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, Stat(path));
  if (!attributes.is_directory) return Status::NotDirectory(fmt::format("'{}' exists and is no directory", path));
  return Status::Ok();
}

Status MountedFileSystem::Link(std::string_view from, std::string_view to) {
  ISOZONE_ASSIGN_OR_RETURN(const InodeId file, FileAt(from));
  return names_.Link(file, {to}, Times::kStay);
}

// ---------------------------------------------------------------------------------------------------------------------
// Files
// ---------------------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<FileWriter>> MountedFileSystem::Create(std::string_view path, const CreateOptions& options) {
  ISOZONE_RETURN_IF_ERROR(CheckCohort(options));
  Inode inode;
  inode.kind = options.kind;
  inode.lifetime = options.lifetime;
  inode.level = options.level;
  ISOZONE_ASSIGN_OR_RETURN(auto file, names_.MakeOrReplace({path}, std::move(inode), Times::kStay));
  auto writer = files_.MakeWriter(std::move(file), options, {options.lifetime, options.level});
  ISOZONE_RETURN_IF_ERROR(context_->catalog.KeepNames());
  return writer;
}

Result<std::unique_ptr<FileWriter>> MountedFileSystem::OpenForAppend(std::string_view path,
                                                                     const CreateOptions& options) {
  if (context_->catalog.read_only()) return Status::ReadOnly("the file system is mounted read-only");
  ISOZONE_RETURN_IF_ERROR(CheckCohort(options));
  InodeId id;
  DataClass data{options.lifetime, options.level};
  {
    const MutexLock lock(mutex());
    const auto found = FindFile(path);
    if (!found.ok() && !found.status().Is(StatusCode::kNotFound)) return found.status();
    if (found.ok()) {
      id = (*found)->id;
      if (data.lifetime == Lifetime::kNotSet) data.lifetime = (*found)->lifetime;
      if (data.level == DataClass::kNoLevel) data.level = (*found)->level;
    }
  }
  if (id == InodeId()) return Create(path, options);
  ISOZONE_ASSIGN_OR_RETURN(auto file, files_.Open(id));
  auto writer = files_.WriterOf(std::move(file), options, data);
  return writer.ok() ? std::move(writer) : writer.status().WithContext(fmt::format("'{}'", path));
}

Result<std::unique_ptr<FileReader>> MountedFileSystem::OpenForRead(std::string_view path) {
  ISOZONE_RETURN_IF_ERROR(files_.Refresh());
  for (;;) {
    ISOZONE_ASSIGN_OR_RETURN(const InodeId id, FileAt(path));
    auto file = files_.Open(id);
    if (file.ok()) return files_.ReaderOf(*std::move(file));
    // Another file may have taken the name meanwhile.
    if (!file.status().Is(StatusCode::kNotFound)) return file.status();
  }
}

Status MountedFileSystem::SealCohort(uint64_t together_with) {
  if (together_with == 0) return Status::InvalidArgument("0 is the number of no cohort");
  if (context_->catalog.read_only()) return Status::ReadOnly("the file system is mounted read-only");
  context_->data_path.pool->Seal(together_with);
  return Status::Ok();
}

Status MountedFileSystem::Overwrite(std::string_view path, uint64_t offset, std::span<const std::byte> data) {
  InodeId id;
  {
    const MutexLock lock(mutex());
    ISOZONE_ASSIGN_OR_RETURN(const Inode* found, FindFile(path));
    id = found->id;
    const auto file = context_->catalog.FindOpen(id);
    if (file != nullptr && file->is_busy()) {
      return Status::Busy(fmt::format("'{}' is being written by another handle", path));
    }
    if (found->kind == FileKind::kLog) return Status::NotSupported(fmt::format("'{}' is a log: it only grows", path));
    ISOZONE_RETURN_IF_ERROR(CheckNoHole(found->size, offset));
  }
  return data.empty() ? Status::Ok() : OverwriteFile(context_->data_path, context_->catalog, id, offset, data);
}

Status MountedFileSystem::Truncate(std::string_view path, uint64_t size) {
  // A writer knows how to cut and how to extend a file, so this opens one.
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, Stat(path));
  if (attributes.is_directory) return Status::IsDirectory(fmt::format("'{}' is a directory", path));
  if (attributes.size == size && attributes.kind != FileKind::kLog) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(auto writer, OpenForAppend(path, {attributes.kind, IoClass::kOther, attributes.lifetime}));
  ISOZONE_RETURN_IF_ERROR(writer->Truncate(size));
  return writer->Close();
}

Result<Statistics> MountedFileSystem::Look() const {
  Statistics statistics;
  if (publisher_ != nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(statistics, publisher_->Look());
  } else {
    statistics = StatisticsAtRest(*this, context_->data_path.clock);
    statistics.life = PageLife::kMounted;
    statistics.process = PageProcess::Self();
    statistics.mounted_s = mounted_s_;
    static_cast<Figures&>(statistics.figures) = state_->Stats();
    const auto histograms = HistogramsOf(context_->data_path);
    for (size_t i = 0; i < kHistograms; ++i) statistics.latencies[i] = LatencyFigures::Of(histograms[i]);
  }
  statistics.gc_scheme = context_->collector->options().scheme;
  return statistics;
}

Status MountedFileSystem::Unmount() {
  if (unmounted_) return Status::Ok();
  unmounted_ = true;
  const Status detached = inodes_->DetachAll();
  if (context_->catalog.read_only()) return Status::Ok();
  context_->data_path.writers.Stop();
  context_->collector->Stop();
  Status status = context_->catalog.journal->Sync(context_->catalog.journal->last_sequence());
  if (status.ok()) status = detached;
  if (status.ok()) status = context_->data_path.engine.Flush(IoClass::kOther);
  context_->data_path.pool->Stop();
  publisher_->Stop();
  const Status closed = context_->catalog.journal->Close();
  context_->statistics_page->End();
  // What could not be written stays, for the next mount to try.
  if (status.ok() && closed.ok() && context_->data_path.kept != nullptr) context_->data_path.kept->Remove();
  return status.ok() ? closed : status;
}

}  // namespace isozone
