#include "rocksdb/adapter/zoned_file_system.h"

#include <cstdarg>
#include <utility>

#include <rocksdb/env.h>

#include "rocksdb/adapter/async_read.h"
#include "rocksdb/adapter/file_class.h"
#include "rocksdb/adapter/lsm_level.h"
#include "rocksdb/adapter/opening_database.h"
#include "rocksdb/adapter/random_access_file.h"
#include "rocksdb/adapter/random_rw_file.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/adapter/sequential_file.h"
#include "rocksdb/adapter/writable_file.h"

namespace isozone {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class Directory : public rocksdb::FSDirectory {
 public:
  Directory(std::string path, uint64_t inode, std::shared_ptr<MountedSystem> system)
      : path_(std::move(path)), inode_(inode), system_(std::move(system)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return WithoutExceptions(
        [&] { return ToIoStatus(system_->With([](isozone::FileSystem& fs) { return fs.SyncMetadata(); }), path_); });
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  size_t GetUniqueId(char* id, size_t max_size) const override { return system_->WriteUniqueId(inode_, id, max_size); }

 private:
  const std::string path_;
  const uint64_t inode_;
  const std::shared_ptr<MountedSystem> system_;
};

class Lock : public rocksdb::FileLock {
 public:
  explicit Lock(std::string path) : path(std::move(path)) {}
  const std::string path;
};

// The path of the file that RocksDB calls `name`. As in POSIX, no file has the empty name.
Result<std::string> PathOf(const std::string& name) {
  if (name.empty()) return Status::NotFound("the empty name names no file");
  return AbsolutePath(name);
}

// Converts the error for a path below a file, where POSIX says that there is nothing of that name.
Status MissingBelowFile(const Status& status) {
  return status.Is(StatusCode::kNotDirectory) ? Status::NotFound(std::string(status.message())) : status;
}

// For a read-only file system without log_dir.
class DroppingLogger : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

}  // namespace

Result<std::unique_ptr<ZonedFileSystem>> ZonedFileSystem::Open(const std::string& uri) {
  ISOZONE_ASSIGN_OR_RETURN(AdapterUri parsed, AdapterUri::Parse(uri));
  ISOZONE_ASSIGN_OR_RETURN(std::shared_ptr<MountedSystem> system, MountedSystem::Open(parsed));
  return std::unique_ptr<ZonedFileSystem>(new ZonedFileSystem(uri, std::move(parsed.log_dir), std::move(system)));
}

ZonedFileSystem::ZonedFileSystem(std::string uri, std::string log_dir, std::shared_ptr<MountedSystem> system)
    : UriFileSystem(std::move(uri), std::move(log_dir)), system_(std::move(system)) {}

const ZonedFileSystem* ZonedFileSystem::From(const rocksdb::FileSystem& file_system) {
  return file_system.CheckedCast<ZonedFileSystem>();
}

template <typename Operation>
IOStatus ZonedFileSystem::Run(const std::string& name, Operation&& operation) {
  return WithoutExceptions([&] {
    const Status status = system_->With([&](isozone::FileSystem& fs) -> Status {
      ISOZONE_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
      return operation(fs, path);
    });
    return ToIoStatusOfName(status, name);
  });
}

// --- Files ---

IOStatus ZonedFileSystem::NewSequentialFile(const std::string& name, const FileOptions&,
                                            std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext*) {
  result->reset();
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<FileReader> reader, fs.OpenForRead(path));
    *result = std::make_unique<SequentialFile>(path, std::move(reader), system_);
    return Status();
  });
}

IOStatus ZonedFileSystem::NewRandomAccessFile(const std::string& name, const FileOptions& options,
                                              std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext*) {
  result->reset();
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<FileReader> reader, fs.OpenForRead(path));
    *result = std::make_unique<RandomAccessFile>(path, options, std::move(reader), system_);
    return Status();
  });
}

IOStatus ZonedFileSystem::OpenWritable(const std::string& name, const FileOptions& options, bool append,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result) {
  result->reset();
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    const FileType type = FileTypeOf(path);
    const rocksdb::Env::WriteLifeTimeHint hint = OpeningHint(options);
    const RunningJob& job = RunningJob::OfThread();
    CreateOptions create;
    create.kind = FileKindOf(type);
    create.io_class =
        WriteClassOf(type, {ActivityOf(options.io_options), options.io_options.rate_limiter_priority, hint, job.level});
    create.lifetime = LifetimeOf(type, hint);
    if (type == FileType::kTable) {
      create.level = TableLevel(job.level, create.io_class, create.lifetime);
      create.together_with = job.cohort;
      create.own_zones = job.cohort != 0;
      create.expected_size = job.expected_bytes;
    }
    ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> writer,
                             append ? fs.OpenForAppend(path, create) : fs.Create(path, create));
    *result = std::make_unique<WritableFile>(path, options, std::move(writer), create.level, system_);
    OpeningDatabase::FileOpened(path);
    return Status();
  });
}

IOStatus ZonedFileSystem::NewWritableFile(const std::string& name, const FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext*) {
  return OpenWritable(name, options, /*append=*/false, result);
}

IOStatus ZonedFileSystem::ReopenWritableFile(const std::string& name, const FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext*) {
  return OpenWritable(name, options, /*append=*/true, result);
}

IOStatus ZonedFileSystem::ReuseWritableFile(const std::string& name, const std::string& old_name,
                                            const FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  result->reset();
  const IOStatus renamed = RenameFile(old_name, name, options.io_options, debug);
  return renamed.ok() ? OpenWritable(name, options, /*append=*/false, result) : renamed;
}

IOStatus ZonedFileSystem::NewRandomRWFile(const std::string& name, const FileOptions&,
                                          std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext*) {
  result->reset();
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<FileReader> reader, fs.OpenForRead(path));
    *result = std::make_unique<RandomRWFile>(path, std::move(reader), system_);
    return Status();
  });
}

IOStatus ZonedFileSystem::NewDirectory(const std::string& name, const IOOptions&,
                                       std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) {
  result->reset();
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const isozone::FileAttributes attributes, fs.Stat(path));
    if (!attributes.is_directory) return Status::NotDirectory("not a directory");
    *result = std::make_unique<Directory>(path, attributes.inode, system_);
    return Status();
  });
}

IOStatus ZonedFileSystem::NewLogger(const std::string& name, const IOOptions& options,
                                    std::shared_ptr<rocksdb::Logger>* result, IODebugContext* debug) {
  if (!read_only() || has_log_dir()) return UriFileSystem::NewLogger(name, options, result, debug);
  if (const auto local = LocalOf(name)) return local->NewLogger(name, options, result, debug);
  return WithoutExceptions([&] {
    *result = std::make_shared<DroppingLogger>();
    return IOStatus::OK();
  });
}

// --- Names ---

std::shared_ptr<rocksdb::FileSystem> ZonedFileSystem::LocalOf(const std::string& name) {
  std::filesystem::path directory = AbsolutePath(name);
  {
    const MutexLock lock(local_mu_);
    if (!local_directories_.contains(directory)) directory = directory.parent_path();
    if (!local_directories_.contains(directory)) return nullptr;
  }
  // What the writer has made on the device meanwhile goes first.
  const IOStatus on_device =
      Run(directory.string(), [](isozone::FileSystem& fs, const std::string& path) { return fs.Stat(path).status(); });
  if (!on_device.ok()) return rocksdb::FileSystem::Default();
  const MutexLock lock(local_mu_);
  local_directories_.erase(directory);
  return nullptr;
}

IOStatus ZonedFileSystem::FileExists(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  if (const auto local = LocalOf(name)) return local->FileExists(name, options, debug);
  const IOStatus status = Run(
      name, [](isozone::FileSystem& fs, const std::string& path) { return MissingBelowFile(fs.Stat(path).status()); });
  return status.IsPathNotFound() ? IOStatus::NotFound(name) : status;
}

IOStatus ZonedFileSystem::GetChildren(const std::string& directory, const IOOptions& options,
                                      std::vector<std::string>* result, IODebugContext* debug) {
  if (const auto local = LocalOf(directory)) return local->GetChildren(directory, options, result, debug);
  result->clear();
  const IOStatus status = Run(directory, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    Result<std::vector<DirectoryEntry>> entries = fs.List(path);
    if (!entries.ok()) return MissingBelowFile(entries.status());
    for (DirectoryEntry& entry : *entries) result->push_back(std::move(entry.name));
    return Status();
  });
  return status.IsPathNotFound() ? IOStatus::NotFound(directory) : status;
}

IOStatus ZonedFileSystem::GetChildrenFileAttributes(const std::string& directory, const IOOptions&,
                                                    std::vector<rocksdb::FileAttributes>* result, IODebugContext*) {
  result->clear();
  const IOStatus status = Run(directory, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    Result<std::vector<DirectoryEntry>> entries = fs.List(path);
    if (!entries.ok()) return MissingBelowFile(entries.status());
    for (DirectoryEntry& entry : *entries) result->push_back({std::move(entry.name), entry.attributes.size});
    return Status();
  });
  return status.IsPathNotFound() ? IOStatus::NotFound(directory) : status;
}

IOStatus ZonedFileSystem::DeleteFile(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  if (const auto local = LocalOf(name)) return local->DeleteFile(name, options, debug);
  return Run(name, [](isozone::FileSystem& fs, const std::string& path) { return fs.Unlink(path); });
}

IOStatus ZonedFileSystem::Truncate(const std::string& name, size_t size, const IOOptions&, IODebugContext*) {
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) { return fs.Truncate(path, size); });
}

IOStatus ZonedFileSystem::CreateDir(const std::string& name, const IOOptions&, IODebugContext*) {
  return Run(name, [](isozone::FileSystem& fs, const std::string& path) { return fs.CreateDirectory(path); });
}

IOStatus ZonedFileSystem::CreateDirIfMissing(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  bool is_local = false;
  const IOStatus status = Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    const Result<isozone::FileAttributes> there = fs.Stat(path);
    is_local = read_only() && there.status().Is(StatusCode::kNotFound);
    if (!there.ok()) return is_local ? Status() : fs.CreateDirectories(path);
    return there->is_directory ? Status() : Status::NotDirectory("exists and is not a directory");
  });
  if (!is_local) return status;
  const std::shared_ptr<rocksdb::FileSystem> local = rocksdb::FileSystem::Default();
  const IOStatus made = local->CreateDirIfMissing(name, options, debug);
  const MutexLock lock(local_mu_);
  if (made.ok()) local_directories_.insert(AbsolutePath(name));
  return made;
}

IOStatus ZonedFileSystem::DeleteDir(const std::string& name, const IOOptions&, IODebugContext*) {
  return Run(name, [](isozone::FileSystem& fs, const std::string& path) { return fs.RemoveDirectory(path); });
}

IOStatus ZonedFileSystem::GetFileSize(const std::string& name, const IOOptions&, uint64_t* size, IODebugContext*) {
  *size = 0;
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const isozone::FileAttributes attributes, fs.Stat(path));
    *size = attributes.size;
    return Status();
  });
}

IOStatus ZonedFileSystem::GetFileModificationTime(const std::string& name, const IOOptions&, uint64_t* modified_s,
                                                  IODebugContext*) {
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const isozone::FileAttributes attributes, fs.Stat(path));
    *modified_s = attributes.modified_s;
    return Status();
  });
}

IOStatus ZonedFileSystem::RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                                     IODebugContext* debug) {
  if (const auto local = LocalOf(from)) return local->RenameFile(from, to, options, debug);
  return Run(from, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const std::string target, PathOf(to));
    return fs.Rename(path, target);
  });
}

IOStatus ZonedFileSystem::LinkFile(const std::string& from, const std::string& to, const IOOptions&, IODebugContext*) {
  return Run(from, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const std::string target, PathOf(to));
    return fs.Link(path, target);
  });
}

IOStatus ZonedFileSystem::NumFileLinks(const std::string& name, const IOOptions&, uint64_t* count, IODebugContext*) {
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const isozone::FileAttributes attributes, fs.Stat(path));
    *count = attributes.links;
    return Status();
  });
}

IOStatus ZonedFileSystem::AreFilesSame(const std::string& first, const std::string& second, const IOOptions&,
                                       bool* same, IODebugContext*) {
  return Run(first, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const isozone::FileAttributes one, fs.Stat(path));
    ISOZONE_ASSIGN_OR_RETURN(const std::string second_path, PathOf(second));
    ISOZONE_ASSIGN_OR_RETURN(const isozone::FileAttributes other, fs.Stat(second_path));
    *same = one.inode == other.inode;
    return Status();
  });
}

IOStatus ZonedFileSystem::LockFile(const std::string& name, const IOOptions&, rocksdb::FileLock** lock,
                                   IODebugContext*) {
  *lock = nullptr;
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    auto held = std::make_unique<Lock>(path);
    ISOZONE_RETURN_IF_ERROR(system_->Lock(path));
    const auto touch = [&]() -> Status {
      const Result<isozone::FileAttributes> there = fs.Stat(path);
      if (there.ok()) return there->is_directory ? Status::IsDirectory("a directory cannot be locked") : Status();
      ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> writer,
                               fs.Create(path, {.kind = FileKind::kSmall, .lifetime = Lifetime::kNone}));
      return writer->Close();
    };
    if (Status touched = touch(); !touched.ok()) {
      ISOZONE_RETURN_IF_ERROR(system_->Unlock(path));
      return touched;
    }
    *lock = held.release();
    return Status();
  });
}

IOStatus ZonedFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) {
  return WithoutExceptions([&] {
    const std::unique_ptr<Lock> held(static_cast<Lock*>(lock));
    return ToIoStatus(system_->Unlock(held->path), held->path);
  });
}

IOStatus ZonedFileSystem::IsDirectory(const std::string& name, const IOOptions&, bool* is_directory, IODebugContext*) {
  return Run(name, [&](isozone::FileSystem& fs, const std::string& path) -> Status {
    ISOZONE_ASSIGN_OR_RETURN(const isozone::FileAttributes attributes, fs.Stat(path));
    *is_directory = attributes.is_directory;
    return Status();
  });
}

IOStatus ZonedFileSystem::GetFreeSpace(const std::string& path, const IOOptions&, uint64_t* free, IODebugContext*) {
  return Run(path, [&](isozone::FileSystem& fs, const std::string&) {
    *free = fs.state().Space().free;
    return Status();
  });
}

// --- Reading ---

IOStatus ZonedFileSystem::Poll(std::vector<void*>& io_handles, size_t) { return DeliverReads(io_handles); }

IOStatus ZonedFileSystem::AbortIO(std::vector<void*>& io_handles) { return AbortReads(io_handles); }

#if ISOZONE_ROCKSDB_HAS_SUPPORTED_OPS
void ZonedFileSystem::SupportedOps(int64_t& supported_ops) {
  supported_ops = int64_t{1} << rocksdb::FSSupportedOps::kAsyncIO;
}
#endif

}  // namespace isozone
