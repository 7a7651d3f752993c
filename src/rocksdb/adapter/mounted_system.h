// MountedSystem: a mounted file system, and what RocksDB holds of it: locks, open files, writers. There is one for each
// mounted device. All rocksdb::FileSystem objects on it and their files share it, so files may outlive their
// FileSystem.
//
// End of the process. A program may end with open databases, or with Envs that it never destroys (as db_bench does),
// while threads of RocksDB still run. A handler registered at the first mount then ends every mounted system. If no
// file is open, the system is unmounted, and later calls fail. Otherwise everything written is synced and the system
// stays mounted, since its owner may still close it. In a forked child, which owns no mount, none of this happens.
//
// Forks. A child that is forked after a mount has neither its threads nor the locks that they held, but shares its
// device with the parent. So every use of the mount and of its files fails there, before it takes a lock, and nothing
// is closed: files and mounts are leaked.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "rocksdb/adapter/adapter_uri.h"
#include "rocksdb/adapter/stats_file.h"
#include "store/file_system.h"

namespace isozone {

class MountedSystem {
 public:
  // Mounts, or joins an existing mount. The `stats_file` of the first caller counts.
  static Result<std::shared_ptr<MountedSystem>> Open(const AdapterUri& uri);
  MountedSystem(const MountedSystem&) = delete;
  MountedSystem& operator=(const MountedSystem&) = delete;

  // Returns use(FileSystem&), a Status or Result; kIoError if the system was unmounted at the end of the process, or
  // mounted before this process was forked.
  template <typename Use>
  auto With(Use&& use) -> decltype(use(std::declval<FileSystem&>())) {
    if (IsInherited()) return Inherited();
    SharedLock lock(gate_);
    if (ended_) return Status::IoError("unmounted, because the process ends");
    return std::forward<Use>(use)(*fs_);
  }

  // Whether this process was forked after the mount, and so may not use it.
  bool IsInherited() const { return generation_ != forks_.load(std::memory_order_relaxed); }
  static Status Inherited();  // the error of every use in such a process

  // Like GarbageCollection::Run, but stops when the process ends, which does not wait for it.
  Status CollectGarbage(double free_percent, const GcProgress& progress);

  // Keeps the system mounted while it exists. A file makes one, under With, when it is opened.
  class OpenFile {
   public:
    // `writer` (may be null) is synced if the process ends while this object exists. It must outlive this object.
    OpenFile(std::shared_ptr<MountedSystem> system, FileWriter* writer);
    ~OpenFile();
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    // Tells that the writer was closed, or is about to be, and can no longer be synced.
    void ForgetWriter();
    // Returns OK, or why the file must not be used.
    Status Check() const { return system_->IsInherited() ? Inherited() : Status(); }
    // Destroys the reader or writer of the file; leaks it in a process that was forked after the mount.
    template <typename File>
    void Destroy(std::unique_ptr<File> file) const {
      if (system_->IsInherited()) static_cast<void>(file.release());
    }
    MountedSystem& system() const { return *system_; }

   private:
    const std::shared_ptr<MountedSystem> system_;
    FileWriter* const writer_;
  };

  // Locks a path within this process. kBusy: it is locked already. Other processes are kept out by the device, which
  // allows only one writer.
  Status Lock(const std::string& path);
  Status Unlock(const std::string& path);

  // Returns the statistics of the mount (insight/stats/statistics_json.h), as text.
  Result<std::string> StatisticsText() const;

  // The file system, for identity only. Must not be used after the end of the process has begun.
  const FileSystem& fs() const { return *fs_; }
  // Writes an id of the file `inode` to id[0, max_size). It is unique on this device for as long as the file exists.
  // Returns the length of the id; 0 if it does not fit.
  size_t WriteUniqueId(uint64_t inode, char* id, size_t max_size) const;

 private:
  MountedSystem(std::shared_ptr<FileSystem> fs, const AdapterUri& uri);
  ~MountedSystem();
  // Deletes the system, except in a forked child, where it is leaked.
  static void Destroy(MountedSystem* system);
  static void EndAll();
  void End() ISOZONE_EXCLUDES(gate_, mu_);
  Status UnmountOrSync() ISOZONE_REQUIRES(gate_) ISOZONE_EXCLUDES(mu_);

  const std::shared_ptr<FileSystem> fs_;
  const uint32_t identity_;    // differs between file systems
  const pid_t owner_;          // the process that mounted
  const uint32_t generation_;  // forks_ at the mount

  static inline std::atomic<uint32_t> forks_ = 0;  // from the first ancestor that mounted to this process

  std::atomic<bool> ending_ = false;  // the process is about to end

  SharedMutex gate_;  // taken before mu_
  bool ended_ ISOZONE_GUARDED_BY(gate_) = false;

  Mutex mu_;
  size_t open_files_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::set<FileWriter*> writers_ ISOZONE_GUARDED_BY(mu_);
  std::set<std::string> locked_ ISOZONE_GUARDED_BY(mu_);

  StatsFile stats_file_;
};

}  // namespace isozone
