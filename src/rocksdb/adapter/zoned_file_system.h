// ZonedFileSystem: RocksDB's FileSystem on a mounted Isozone file system. It names and opens files. In addition to
// those in uri_file_system.h, it fulfils these expectations of RocksDB beyond its header (which POSIX fulfils):
//   * CreateDirIfMissing creates parents too, because a new device has none of the directories in the path of a
//     database
//   * a file keeps its content for those who have it open, whatever happens to its name
//   * LOCK files exist on the device. Locks hold within the process; the device keeps other writing processes out
//   * on a read-only mount, RocksDB's info log is dropped, unless log_dir= names a place for it, or it is that of a
//     secondary instance whose path is not on the device: that one is written to the machine
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <rocksdb/file_system.h>

#include "base/mutex.h"
#include "rocksdb/adapter/mounted_system.h"
#include "rocksdb/adapter/rocksdb_version.h"
#include "rocksdb/adapter/status_mapping.h"
#include "rocksdb/adapter/uri_file_system.h"

namespace isozone {

class ZonedFileSystem : public UriFileSystem {
 public:
  static const char* kClassName() { return "isozone"; }

  // Mounts the device of `uri`. The message of an error is for users.
  static Result<std::unique_ptr<ZonedFileSystem>> Open(const std::string& uri);
  // The ZonedFileSystem that `file_system` is or wraps; null if there is none.
  static const ZonedFileSystem* From(const rocksdb::FileSystem& file_system);

  const char* Name() const override { return kClassName(); }
  MountedSystem& system() const { return *system_; }

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
  // Renames the old file and empties it: zones are not written in place, so recycling saves nothing here.
  rocksdb::IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* result,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override;
  // Drops the log on a read-only mount without log_dir=.
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

  // Waits for all of `io_handles`, each from ReadAsync, and calls their callbacks on this thread.
  rocksdb::IOStatus Poll(std::vector<void*>& io_handles, size_t min_completions) override;
  rocksdb::IOStatus AbortIO(std::vector<void*>& io_handles) override;
#if ISOZONE_ROCKSDB_HAS_SUPPORTED_OPS
  void SupportedOps(int64_t& supported_ops) override;
#endif

 private:
  ZonedFileSystem(std::string uri, std::string log_dir, std::shared_ptr<MountedSystem> system);

  // Returns operation(fs, path) for the file `name`. The message of an error begins with the path.
  template <typename Operation>
  rocksdb::IOStatus Run(const std::string& name, Operation&& operation);
  rocksdb::IOStatus OpenWritable(const std::string& name, const rocksdb::FileOptions& options, bool append,
                                 std::unique_ptr<rocksdb::FSWritableFile>* result);
  bool read_only() const { return system_->fs().state().options().read_only; }
  // Returns the file system of the machine if `name` is one of local_directories_ or lies in one, else null.
  std::shared_ptr<rocksdb::FileSystem> LocalOf(const std::string& name);

  const std::shared_ptr<MountedSystem> system_;
  Mutex local_mu_;
  // The directories that hold the info logs of secondary instances. A secondary instance reads a device that it may not
  // write, so a directory that it makes, and that the device does not have, is made on the machine.
  std::set<std::filesystem::path> local_directories_ ISOZONE_GUARDED_BY(local_mu_);
};

}  // namespace isozone
