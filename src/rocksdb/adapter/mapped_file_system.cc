#include "rocksdb/adapter/mapped_file_system.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "rocksdb/adapter/async_read.h"
#include "rocksdb/adapter/file_class.h"
#include "rocksdb/adapter/status_mapping.h"

namespace isozone {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

namespace {

constexpr std::string_view kUriBegins = "=isozone://";
constexpr size_t kCompactionReadahead = 2 * kMiB;

// Whether `path` is `directory` or below it.
bool IsIn(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string AbsoluteLocalPath(const std::string& name) {
  return AbsolutePath(name.starts_with('/') ? name : (std::filesystem::current_path() / name).string());
}

// `path`, absolute, without symbolic links, where they can be followed; what is not there has none.
std::string Resolve(const std::string& path) {
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, error);
  return error ? path : AbsolutePath(resolved.string());
}

// A local file, of which asynchronous reads are done at once.
class LocalFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  explicit LocalFile(std::unique_ptr<rocksdb::FSRandomAccessFile>&& file)
      : rocksdb::FSRandomAccessFileOwnerWrapper(std::move(file)) {}

  IOStatus ReadAsync(rocksdb::FSReadRequest& request, const IOOptions& options, ReadAsyncCallback callback,
                     void* callback_argument, void** io_handle, rocksdb::IOHandleDeleter* deleter,
                     IODebugContext* debug) override {
    // NOLINTNEXTLINE(bugprone-parent-virtual-call): that of the wrapper would pass the request on
    return FSRandomAccessFile::ReadAsync(request, options, std::move(callback), callback_argument, io_handle, deleter,
                                         debug);
  }
};

// A lock, and the file system that it goes back to.
struct MappedLock : rocksdb::FileLock {
  MappedLock(rocksdb::FileSystem* owner_in, rocksdb::FileLock* lock_in) : owner(owner_in), lock(lock_in) {}
  rocksdb::FileSystem* const owner;
  rocksdb::FileLock* const lock;
};

}  // namespace

Result<std::vector<DirectoryMapping>> DirectoryMapping::Parse(std::string_view lines) {
  std::vector<DirectoryMapping> result;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const size_t end = line.find(kUriBegins);
    if (!line.starts_with('/') || end == std::string_view::npos) {
      return Status::InvalidArgument(fmt::format(
          "'{}' maps no directory; write /DIRECTORY=isozone://DEVICE, as /var/lib/app=isozone://emu:/ssd.img", line));
    }
    DirectoryMapping mapping{AbsolutePath(std::string(line.substr(0, end))), "", std::string(line.substr(end + 1))};
    mapping.resolved = Resolve(mapping.directory);
    if (mapping.resolved == "/") return Status::InvalidArgument("the root directory cannot be mapped");
    for (const DirectoryMapping& other : result) {
      if (IsIn(mapping.resolved, other.resolved) || IsIn(other.resolved, mapping.resolved)) {
        return Status::InvalidArgument(
            fmt::format("{} and {} lie in each other; map one of them", other.directory, mapping.directory));
      }
    }
    result.push_back(std::move(mapping));
  }
  if (result.empty()) return Status::InvalidArgument("no directory is mapped");
  return result;
}

std::string MappedFileSystem::Device::PathOf(const std::string& local_path) const {
  for (const std::string& directory : {mapping_.directory, mapping_.resolved}) {
    if (IsIn(local_path, directory)) return AbsolutePath(local_path.substr(directory.size()));
  }
  return {};
}

IOStatus MappedFileSystem::Device::Get(rocksdb::FileSystem** result) {
  const MutexLock lock(mu_);
  if (file_system_ == nullptr) {
    auto opened = open_(mapping_.uri);
    if (!opened.ok()) return ToIoStatus(opened.status(), mapping_.directory);
    file_system_ = *std::move(opened);
  }
  *result = file_system_.get();
  return IOStatus::OK();
}

MappedFileSystem::MappedFileSystem(const std::vector<DirectoryMapping>& mappings,
                                   const std::shared_ptr<rocksdb::FileSystem>& local, FileSystemOpener open)
    : rocksdb::FileSystemWrapper(local) {
  for (const DirectoryMapping& mapping : mappings) devices_.push_back(std::make_unique<Device>(mapping, open));
}

MappedFileSystem::~MappedFileSystem() = default;

IOStatus MappedFileSystem::Find(const std::string& name, Place* place) {
  place->local_path = AbsoluteLocalPath(name);
  const auto find_as = [&](const std::string& local_path) {
    return std::ranges::find_if(devices_, [&](const auto& device) {
      place->path = device->PathOf(local_path);
      return !place->path.empty();
    });
  };
  auto found = find_as(place->local_path);
  if (found == devices_.end()) found = find_as(Resolve(place->local_path));
  if (found != devices_.end()) return (*found)->Get(&place->fs);
  place->fs = target();
  place->path = name;
  return IOStatus::OK();
}

template <typename Operation>
IOStatus MappedFileSystem::Run(const std::string& name, Operation&& operation) {
  return WithoutExceptions([&] {
    Place place;
    IOStatus status = Find(name, &place);
    return status.ok() ? operation(place) : status;
  });
}

template <typename Operation>
IOStatus MappedFileSystem::RunTwo(const std::string& from, const std::string& to, IOStatus apart,
                                  Operation&& operation) {
  return Run(from, [&](const Place& first) {
    return Run(to, [&](const Place& second) {
      return first.fs == second.fs ? operation(*first.fs, first.path, second.path) : apart;
    });
  });
}

IOStatus MappedFileSystem::NewSequentialFile(const std::string& name, const FileOptions& options,
                                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                             IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->NewSequentialFile(at.path, options, result, debug); });
}

IOStatus MappedFileSystem::NewRandomAccessFile(const std::string& name, const FileOptions& options,
                                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                               IODebugContext* debug) {
  return Run(name, [&](const Place& at) {
    IOStatus status = at.fs->NewRandomAccessFile(at.path, options, result, debug);
    if (status.ok() && at.fs == target()) *result = std::make_unique<LocalFile>(std::move(*result));
    return status;
  });
}

IOStatus MappedFileSystem::NewWritableFile(const std::string& name, const FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->NewWritableFile(at.path, options, result, debug); });
}

IOStatus MappedFileSystem::ReopenWritableFile(const std::string& name, const FileOptions& options,
                                              std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->ReopenWritableFile(at.path, options, result, debug); });
}

IOStatus MappedFileSystem::ReuseWritableFile(const std::string& name, const std::string& old_name,
                                             const FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  return RunTwo(name, old_name, IOStatus::IOError(old_name + " lies on another device than " + name),
                [&](rocksdb::FileSystem& fs, const std::string& path, const std::string& old_path) {
                  return fs.ReuseWritableFile(path, old_path, options, result, debug);
                });
}

IOStatus MappedFileSystem::NewRandomRWFile(const std::string& name, const FileOptions& options,
                                           std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->NewRandomRWFile(at.path, options, result, debug); });
}

IOStatus MappedFileSystem::NewMemoryMappedFileBuffer(const std::string& name,
                                                     std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* result) {
  return Run(name, [&](const Place& at) { return at.fs->NewMemoryMappedFileBuffer(at.path, result); });
}

IOStatus MappedFileSystem::NewDirectory(const std::string& name, const IOOptions& options,
                                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->NewDirectory(at.path, options, result, debug); });
}

IOStatus MappedFileSystem::NewLogger(const std::string& name, const IOOptions& options,
                                     std::shared_ptr<rocksdb::Logger>* result, IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->NewLogger(at.path, options, result, debug); });
}

IOStatus MappedFileSystem::FileExists(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->FileExists(at.path, options, debug); });
}

IOStatus MappedFileSystem::GetChildren(const std::string& directory, const IOOptions& options,
                                       std::vector<std::string>* result, IODebugContext* debug) {
  return Run(directory, [&](const Place& at) { return at.fs->GetChildren(at.path, options, result, debug); });
}

IOStatus MappedFileSystem::GetChildrenFileAttributes(const std::string& directory, const IOOptions& options,
                                                     std::vector<rocksdb::FileAttributes>* result,
                                                     IODebugContext* debug) {
  return Run(directory,
             [&](const Place& at) { return at.fs->GetChildrenFileAttributes(at.path, options, result, debug); });
}

IOStatus MappedFileSystem::DeleteFile(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->DeleteFile(at.path, options, debug); });
}

IOStatus MappedFileSystem::Truncate(const std::string& name, size_t size, const IOOptions& options,
                                    IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->Truncate(at.path, size, options, debug); });
}

// The result of a change to a directory is that of the device. What becomes of its local companion matters to nobody
// where, for example, it is there already or not empty.
IOStatus MappedFileSystem::CreateDir(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  return Run(name, [&](const Place& at) {
    IOStatus status = at.fs->CreateDir(at.path, options, debug);
    if (status.ok() && at.fs != target()) {
      target()->CreateDirIfMissing(at.local_path, options, debug).PermitUncheckedError();
    }
    return status;
  });
}

IOStatus MappedFileSystem::CreateDirIfMissing(const std::string& name, const IOOptions& options,
                                              IODebugContext* debug) {
  return Run(name, [&](const Place& at) {
    IOStatus status = at.fs->CreateDirIfMissing(at.path, options, debug);
    if (status.ok() && at.fs != target()) {
      target()->CreateDirIfMissing(at.local_path, options, debug).PermitUncheckedError();
    }
    return status;
  });
}

IOStatus MappedFileSystem::DeleteDir(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  return Run(name, [&](const Place& at) {
    IOStatus status = at.fs->DeleteDir(at.path, options, debug);
    if (status.ok() && at.fs != target()) target()->DeleteDir(at.local_path, options, debug).PermitUncheckedError();
    return status;
  });
}

IOStatus MappedFileSystem::GetFileSize(const std::string& name, const IOOptions& options, uint64_t* size,
                                       IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->GetFileSize(at.path, options, size, debug); });
}

IOStatus MappedFileSystem::GetFileModificationTime(const std::string& name, const IOOptions& options,
                                                   uint64_t* modified_s, IODebugContext* debug) {
  return Run(name,
             [&](const Place& at) { return at.fs->GetFileModificationTime(at.path, options, modified_s, debug); });
}

IOStatus MappedFileSystem::RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                                      IODebugContext* debug) {
  return RunTwo(from, to, IOStatus::IOError(from + " cannot be renamed to " + to + ", which lies on another device"),
                [&](rocksdb::FileSystem& fs, const std::string& old_path, const std::string& new_path) {
                  IOStatus status = fs.RenameFile(old_path, new_path, options, debug);
                  if (status.ok() && &fs != target()) RenameCompanion(from, to);
                  return status;
                });
}

void MappedFileSystem::RenameCompanion(const std::string& from, const std::string& to) {
  const std::string old_path = AbsoluteLocalPath(from);
  bool is_directory = false;
  IOStatus status = target()->IsDirectory(old_path, IOOptions(), &is_directory, nullptr);
  if (status.ok() && is_directory) status = target()->RenameFile(old_path, AbsoluteLocalPath(to), IOOptions(), nullptr);
  status.PermitUncheckedError();
}

IOStatus MappedFileSystem::LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                                    IODebugContext* debug) {
  return RunTwo(from, to, IOStatus::NotSupported(from + " lies on another device than " + to),
                [&](rocksdb::FileSystem& fs, const std::string& old_path, const std::string& new_path) {
                  return fs.LinkFile(old_path, new_path, options, debug);
                });
}

#if ISOZONE_ROCKSDB_HAS_SYNC_FILE
IOStatus MappedFileSystem::SyncFile(const std::string& name, const FileOptions& file_options, const IOOptions& options,
                                    bool use_fsync, IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->SyncFile(at.path, file_options, options, use_fsync, debug); });
}
#endif

IOStatus MappedFileSystem::NumFileLinks(const std::string& name, const IOOptions& options, uint64_t* count,
                                        IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->NumFileLinks(at.path, options, count, debug); });
}

IOStatus MappedFileSystem::AreFilesSame(const std::string& first, const std::string& second, const IOOptions& options,
                                        bool* same, IODebugContext* debug) {
  *same = false;
  return RunTwo(first, second, IOStatus::OK(),
                [&](rocksdb::FileSystem& fs, const std::string& first_path, const std::string& second_path) {
                  return fs.AreFilesSame(first_path, second_path, options, same, debug);
                });
}

IOStatus MappedFileSystem::LockFile(const std::string& name, const IOOptions& options, rocksdb::FileLock** lock,
                                    IODebugContext* debug) {
  return Run(name, [&](const Place& at) {
    rocksdb::FileLock* taken = nullptr;
    IOStatus status = at.fs->LockFile(at.path, options, &taken, debug);
    if (status.ok()) *lock = std::make_unique<MappedLock>(at.fs, taken).release();  // RocksDB gives it to UnlockFile
    return status;
  });
}

IOStatus MappedFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions& options, IODebugContext* debug) {
  const std::unique_ptr<MappedLock> ours(static_cast<MappedLock*>(lock));
  return ours->owner->UnlockFile(ours->lock, options, debug);
}

IOStatus MappedFileSystem::IsDirectory(const std::string& name, const IOOptions& options, bool* is_directory,
                                       IODebugContext* debug) {
  return Run(name, [&](const Place& at) { return at.fs->IsDirectory(at.path, options, is_directory, debug); });
}

IOStatus MappedFileSystem::GetFreeSpace(const std::string& path, const IOOptions& options, uint64_t* free,
                                        IODebugContext* debug) {
  return Run(path, [&](const Place& at) { return at.fs->GetFreeSpace(at.path, options, free, debug); });
}

FileOptions MappedFileSystem::OptimizeForCompactionTableRead(const FileOptions& options,
                                                             const rocksdb::ImmutableDBOptions& db_options) const {
  FileOptions optimized = FileSystemWrapper::OptimizeForCompactionTableRead(options, db_options);
  if (optimized.compaction_readahead_size == 0) optimized.compaction_readahead_size = kCompactionReadahead;
  return optimized;
}

IOStatus MappedFileSystem::Poll(std::vector<void*>& io_handles, size_t) { return DeliverReads(io_handles); }

IOStatus MappedFileSystem::AbortIO(std::vector<void*>& io_handles) { return AbortReads(io_handles); }

#if ISOZONE_ROCKSDB_HAS_SUPPORTED_OPS
void MappedFileSystem::SupportedOps(int64_t& supported_ops) {
  supported_ops = int64_t{1} << rocksdb::FSSupportedOps::kAsyncIO;
}
#endif

}  // namespace isozone
