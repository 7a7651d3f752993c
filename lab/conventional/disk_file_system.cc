#include "conventional/disk_file_system.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <rocksdb/env.h>

#include "base/uri.h"
#include "conventional/disk_files.h"
#include "rocksdb/adapter/file_class.h"
#include "rocksdb/adapter/opening_database.h"
#include "rocksdb/adapter/status_mapping.h"

namespace isozone {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// The options for opening the host's file, whose page cache is not part of the measurement.
FileOptions HostOptions(const FileOptions& options) {
  FileOptions host = options;
  host.use_direct_reads = false;
  host.use_direct_writes = false;
  host.use_mmap_writes = false;
  return host;
}

}  // namespace

Result<std::unique_ptr<DiskFileSystem>> DiskFileSystem::Open(const std::string& uri) {
  const std::string prefix = std::string(kClassName()) + "://";
  if (!uri.starts_with(prefix)) {
    return Status::InvalidArgument(uri + ": write " + prefix + "DIRECTORY?OPTION=VALUE&...");
  }
  ISOZONE_ASSIGN_OR_RETURN(AdapterUri parsed, AdapterUri::Parse("isozone://conventional:" + uri.substr(prefix.size())));
  ISOZONE_ASSIGN_OR_RETURN(std::shared_ptr<Disk> disk, Disk::Open(parsed));
  return std::unique_ptr<DiskFileSystem>(new DiskFileSystem(uri, std::move(parsed.log_dir), std::move(disk)));
}

DiskFileSystem::DiskFileSystem(std::string uri, std::string log_dir, std::shared_ptr<Disk> disk)
    : UriFileSystem(std::move(uri), std::move(log_dir)), disk_(std::move(disk)) {}

const DiskFileSystem* DiskFileSystem::From(const rocksdb::FileSystem& file_system) {
  return file_system.CheckedCast<DiskFileSystem>();
}

std::string DiskFileSystem::HostPath(const std::string& name) const {
  return name.empty() ? name : disk_->HostPath(AbsolutePath(name));  // the host refuses the empty name
}

// --- Files ---

IOStatus DiskFileSystem::NewSequentialFile(const std::string& name, const FileOptions& options,
                                           std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* debug) {
  result->reset();
  return WithoutExceptions([&] {
    std::unique_ptr<rocksdb::FSSequentialFile> host;
    OpenDiskFile open{disk_, nullptr};
    IOStatus status = disk_->Find(AbsolutePath(name), &open.file, [&] {
      return host_->NewSequentialFile(HostPath(name), HostOptions(options), &host, debug);
    });
    if (status.ok()) *result = std::make_unique<DiskSequentialFile>(std::move(host), std::move(open));
    return status;
  });
}

IOStatus DiskFileSystem::NewRandomAccessFile(const std::string& name, const FileOptions& options,
                                             std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                             IODebugContext* debug) {
  result->reset();
  return WithoutExceptions([&] {
    std::unique_ptr<rocksdb::FSRandomAccessFile> host;
    OpenDiskFile open{disk_, nullptr};
    IOStatus status = disk_->Find(AbsolutePath(name), &open.file, [&] {
      return host_->NewRandomAccessFile(HostPath(name), HostOptions(options), &host, debug);
    });
    if (status.ok()) *result = std::make_unique<DiskRandomAccessFile>(std::move(host), std::move(open));
    return status;
  });
}

IOStatus DiskFileSystem::NewWritableFile(const std::string& name, const FileOptions& options,
                                         std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  result->reset();
  return WithoutExceptions([&] {
    std::unique_ptr<rocksdb::FSWritableFile> host;
    OpenDiskFile open{disk_, nullptr};
    IOStatus status = disk_->Create(AbsolutePath(name), &open.file, [&] {
      return host_->NewWritableFile(HostPath(name), HostOptions(options), &host, debug);
    });
    if (status.ok()) *result = std::make_unique<DiskWritableFile>(std::move(host), std::move(open), 0, options);
    if (status.ok()) OpeningDatabase::FileOpened(AbsolutePath(name));
    return status;
  });
}

IOStatus DiskFileSystem::ReopenWritableFile(const std::string& name, const FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  result->reset();
  return WithoutExceptions([&] {
    std::unique_ptr<rocksdb::FSWritableFile> host;
    OpenDiskFile open{disk_, nullptr};
    uint64_t size = 0;
    IOStatus status = disk_->FindOrCreate(AbsolutePath(name), &open.file, [&] {
      IOStatus opened = host_->ReopenWritableFile(HostPath(name), HostOptions(options), &host, debug);
      return opened.ok() ? host_->GetFileSize(HostPath(name), options.io_options, &size, debug) : opened;
    });
    if (status.ok()) *result = std::make_unique<DiskWritableFile>(std::move(host), std::move(open), size, options);
    if (status.ok()) OpeningDatabase::FileOpened(AbsolutePath(name));
    return status;
  });
}

IOStatus DiskFileSystem::ReuseWritableFile(const std::string& name, const std::string& old_name,
                                           const FileOptions& options, std::unique_ptr<rocksdb::FSWritableFile>* result,
                                           IODebugContext* debug) {
  result->reset();
  return WithoutExceptions([&] {
    std::unique_ptr<rocksdb::FSWritableFile> host;
    OpenDiskFile open{disk_, nullptr};
    IOStatus status = disk_->Reuse(AbsolutePath(old_name), AbsolutePath(name), &open.file, [&] {
      return host_->ReuseWritableFile(HostPath(name), HostPath(old_name), HostOptions(options), &host, debug);
    });
    if (status.ok()) *result = std::make_unique<DiskWritableFile>(std::move(host), std::move(open), 0, options);
    return status;
  });
}

IOStatus DiskFileSystem::NewRandomRWFile(const std::string& name, const FileOptions& options,
                                         std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* debug) {
  result->reset();
  return WithoutExceptions([&] {
    std::unique_ptr<rocksdb::FSRandomRWFile> host;
    OpenDiskFile open{disk_, nullptr};
    IOStatus status = disk_->Find(AbsolutePath(name), &open.file, [&] {
      return host_->NewRandomRWFile(HostPath(name), HostOptions(options), &host, debug);
    });
    if (status.ok()) *result = std::make_unique<DiskRandomRWFile>(std::move(host), std::move(open));
    return status;
  });
}

IOStatus DiskFileSystem::NewDirectory(const std::string& name, const IOOptions& options,
                                      std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* debug) {
  result->reset();
  return WithoutExceptions([&] {
    std::unique_ptr<rocksdb::FSDirectory> host;
    IOStatus status = host_->NewDirectory(HostPath(name), options, &host, debug);
    if (status.ok()) *result = std::make_unique<DiskDirectory>(std::move(host), disk_);
    return status;
  });
}

// --- Names ---

IOStatus DiskFileSystem::FileExists(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] { return host_->FileExists(HostPath(name), options, debug); });
}

IOStatus DiskFileSystem::GetChildren(const std::string& directory, const IOOptions& options,
                                     std::vector<std::string>* result, IODebugContext* debug) {
  return WithoutExceptions([&] { return host_->GetChildren(HostPath(directory), options, result, debug); });
}

IOStatus DiskFileSystem::GetChildrenFileAttributes(const std::string& directory, const IOOptions& options,
                                                   std::vector<rocksdb::FileAttributes>* result,
                                                   IODebugContext* debug) {
  return WithoutExceptions(
      [&] { return host_->GetChildrenFileAttributes(HostPath(directory), options, result, debug); });
}

IOStatus DiskFileSystem::DeleteFile(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] {
    return disk_->Remove(AbsolutePath(name), [&] { return host_->DeleteFile(HostPath(name), options, debug); });
  });
}

IOStatus DiskFileSystem::Truncate(const std::string& name, size_t size, const IOOptions&, IODebugContext*) {
  return WithoutExceptions([&] {
    std::shared_ptr<DiskFile> file;
    IOStatus status = disk_->Find(AbsolutePath(name), &file, [&] {
      std::error_code error;
      std::filesystem::resize_file(HostPath(name), size, error);
      return error ? ToIoStatus(Status::FromErrno(error.value(), "cannot truncate"), name) : IOStatus::OK();
    });
    if (status.ok()) file->Truncate(size);
    return status;
  });
}

IOStatus DiskFileSystem::CreateDir(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] { return host_->CreateDir(HostPath(name), options, debug); });
}

IOStatus DiskFileSystem::CreateDirIfMissing(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] {
    std::error_code error;
    const std::string path = HostPath(name);
    std::filesystem::create_directories(path, error);
    // On an error, calls the host again, whose status says what is wrong.
    return error ? host_->CreateDirIfMissing(path, options, debug) : IOStatus::OK();
  });
}

IOStatus DiskFileSystem::DeleteDir(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] { return host_->DeleteDir(HostPath(name), options, debug); });
}

IOStatus DiskFileSystem::GetFileSize(const std::string& name, const IOOptions& options, uint64_t* size,
                                     IODebugContext* debug) {
  return WithoutExceptions([&] { return host_->GetFileSize(HostPath(name), options, size, debug); });
}

IOStatus DiskFileSystem::GetFileModificationTime(const std::string& name, const IOOptions& options,
                                                 uint64_t* modified_s, IODebugContext* debug) {
  return WithoutExceptions([&] { return host_->GetFileModificationTime(HostPath(name), options, modified_s, debug); });
}

IOStatus DiskFileSystem::RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                                    IODebugContext* debug) {
  return WithoutExceptions([&] {
    return disk_->Rename(AbsolutePath(from), AbsolutePath(to),
                         [&] { return host_->RenameFile(HostPath(from), HostPath(to), options, debug); });
  });
}

IOStatus DiskFileSystem::LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                                  IODebugContext* debug) {
  return WithoutExceptions([&] {
    return disk_->Link(AbsolutePath(from), AbsolutePath(to),
                       [&] { return host_->LinkFile(HostPath(from), HostPath(to), options, debug); });
  });
}

IOStatus DiskFileSystem::NumFileLinks(const std::string& name, const IOOptions& options, uint64_t* count,
                                      IODebugContext* debug) {
  return WithoutExceptions([&] { return host_->NumFileLinks(HostPath(name), options, count, debug); });
}

IOStatus DiskFileSystem::AreFilesSame(const std::string& first, const std::string& second, const IOOptions& options,
                                      bool* same, IODebugContext* debug) {
  return WithoutExceptions(
      [&] { return host_->AreFilesSame(HostPath(first), HostPath(second), options, same, debug); });
}

IOStatus DiskFileSystem::LockFile(const std::string& name, const IOOptions& options, rocksdb::FileLock** lock,
                                  IODebugContext* debug) {
  return WithoutExceptions([&] { return host_->LockFile(HostPath(name), options, lock, debug); });
}

IOStatus DiskFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions& options, IODebugContext* debug) {
  return WithoutExceptions([&] { return host_->UnlockFile(lock, options, debug); });
}

IOStatus DiskFileSystem::IsDirectory(const std::string& name, const IOOptions& options, bool* is_directory,
                                     IODebugContext* debug) {
  return WithoutExceptions([&] { return host_->IsDirectory(HostPath(name), options, is_directory, debug); });
}

IOStatus DiskFileSystem::GetFreeSpace(const std::string&, const IOOptions&, uint64_t* free, IODebugContext*) {
  *free = disk_->free_bytes();
  return IOStatus::OK();
}

}  // namespace isozone
