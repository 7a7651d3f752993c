// MappedFileSystem: a FileSystem for programs that name no device (`isozone run`). Files below mapped directories lie
// on devices, and all others where they were, on the file system below, RocksDB's default one.
//
//   * A mapped directory is the root of its device: with /var/lib/app mapped, /var/lib/app/db/CURRENT is /db/CURRENT on
//     the device. Relative paths begin at the working directory of the process. A path is looked up as it is written,
//     and then with its links resolved, among the directories as they were given and with theirs resolved.
//   * A device is mounted when the first file of it is used, so that a process that never does so takes no device. If
//     that fails, each use tries again and returns the error.
//   * Directories are made in both places, because programs put other files beside a database without RocksDB. Those
//     lie below the directory on the local file system, and RocksDB does not see them.
//   * A file cannot be renamed from one side to the other. A link to the other side is refused as not supported, and
//     RocksDB then copies.
//   * A file on the local file system is read at once where an asynchronous read is asked for.
//     So all handles that come to Poll and AbortIO are an AsyncRead, whichever device it reads.
//
// Thread safety: any thread may call any method.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rocksdb/file_system.h>

#include "base/mutex.h"
#include "base/status.h"
#include "rocksdb/adapter/rocksdb_version.h"
#include "rocksdb/adapter/static_env.h"

namespace isozone {

// A directory and the URI of the device that holds its files.
struct DirectoryMapping {
  std::string directory;  // absolute and normal, without a slash at the end
  std::string resolved;   // `directory` without symbolic links
  std::string uri;        // isozone://...

  // Parses lines of the form DIRECTORY=isozone://..., at least one. kInvalidArgument: a line has another form, a
  // directory is not absolute or is the root, or one lies in another.
  static Result<std::vector<DirectoryMapping>> Parse(std::string_view lines);
};

class MappedFileSystem : public rocksdb::FileSystemWrapper {
 public:
  // `local` is the file system for all paths that are not mapped. `open` mounts a device.
  MappedFileSystem(const std::vector<DirectoryMapping>& mappings, const std::shared_ptr<rocksdb::FileSystem>& local,
                   FileSystemOpener open);
  ~MappedFileSystem() override;

  static const char* kClassName() { return "isozone-mapped"; }
  const char* Name() const override { return kClassName(); }

  rocksdb::IOStatus NewSequentialFile(const std::string& name, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& name, const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* result,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewMemoryMappedFileBuffer(const std::string& name,
                                              std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* result) override;
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewLogger(const std::string& name, const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* result, rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus FileExists(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetChildren(const std::string& directory, const rocksdb::IOOptions& options,
                                std::vector<std::string>* result, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetChildrenFileAttributes(const std::string& directory, const rocksdb::IOOptions& options,
                                              std::vector<rocksdb::FileAttributes>* result,
                                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Truncate(const std::string& name, size_t size, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDir(const std::string& name, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& name, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteDir(const std::string& name, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetFileSize(const std::string& name, const rocksdb::IOOptions& options, uint64_t* size,
                                rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetFileModificationTime(const std::string& name, const rocksdb::IOOptions& options,
                                            uint64_t* modified_s, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;
#if ISOZONE_ROCKSDB_HAS_SYNC_FILE
  rocksdb::IOStatus SyncFile(const std::string& name, const rocksdb::FileOptions& file_options,
                             const rocksdb::IOOptions& options, bool use_fsync,
                             rocksdb::IODebugContext* debug) override;
#endif
  rocksdb::IOStatus NumFileLinks(const std::string& name, const rocksdb::IOOptions& options, uint64_t* count,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus AreFilesSame(const std::string& first, const std::string& second, const rocksdb::IOOptions& options,
                                 bool* same, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus LockFile(const std::string& name, const rocksdb::IOOptions& options, rocksdb::FileLock** lock,
                             rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus UnlockFile(rocksdb::FileLock* lock, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus IsDirectory(const std::string& name, const rocksdb::IOOptions& options, bool* is_directory,
                                rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options, uint64_t* free,
                                 rocksdb::IODebugContext* debug) override;

  // Compactions read ahead as on the devices, which have no page cache.
  rocksdb::FileOptions OptimizeForCompactionTableRead(const rocksdb::FileOptions& options,
                                                      const rocksdb::ImmutableDBOptions& db_options) const override;
  rocksdb::IOStatus Poll(std::vector<void*>& io_handles, size_t min_completions) override;
  rocksdb::IOStatus AbortIO(std::vector<void*>& io_handles) override;
#if ISOZONE_ROCKSDB_HAS_SUPPORTED_OPS
  void SupportedOps(int64_t& supported_ops) override;
#endif

 private:
  // A mapped device, which is mounted at its first use.
  class Device {
   public:
    Device(DirectoryMapping mapping, FileSystemOpener open) : mapping_(std::move(mapping)), open_(open) {}
    // Returns the path on the device for `local_path`, or an empty string if that is not on this device.
    std::string PathOf(const std::string& local_path) const;
    // Returns the file system of the device, mounted if necessary. It lives as long as this object.
    rocksdb::IOStatus Get(rocksdb::FileSystem** result);

   private:
    const DirectoryMapping mapping_;
    const FileSystemOpener open_;
    Mutex mu_;
    std::shared_ptr<rocksdb::FileSystem> file_system_ ISOZONE_GUARDED_BY(mu_);  // set once
  };

  // The file system that has a file, and its path there.
  struct Place {
    rocksdb::FileSystem* fs = nullptr;
    std::string path;
    std::string local_path;  // the absolute path of the same name on the local file system
  };

  rocksdb::IOStatus Find(const std::string& name, Place* place);
  // Returns operation(place), for the file `name`, or for both names, which must be on one side.
  template <typename Operation>
  rocksdb::IOStatus Run(const std::string& name, Operation&& operation);
  template <typename Operation>
  rocksdb::IOStatus RunTwo(const std::string& from, const std::string& to, rocksdb::IOStatus apart,
                           Operation&& operation);
  // Renames what a directory of a device has on the local file system.
  void RenameCompanion(const std::string& from, const std::string& to);

  std::vector<std::unique_ptr<Device>> devices_;  // none is added or removed
};

}  // namespace isozone
