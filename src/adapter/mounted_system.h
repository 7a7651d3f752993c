// A mounted file system and what RocksDB holds of it: locks, open files, writers. One for each mounted device, shared
// by all rocksdb::FileSystem objects on it and by their files, so that files may outlive their FileSystem.
//
// End of the process. Programs may end with databases open or with Envs they never destroy (db_bench does), while
// threads of RocksDB still run. A handler registered at the first mount then ends every mounted system: where no file
// is open it is unmounted, and later calls fail; else everything written is synced and it stays mounted, since its
// owner may still close it. Nothing of this happens in a forked child: it owns no mount.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "adapter/adapter_uri.h"
#include "adapter/stats_file.h"
#include "base/mutex.h"
#include "base/status.h"
#include "fs/file_system.h"

namespace isozone {

class MountedSystem {
 public:
  // Mounts, or joins what is mounted. The first caller's `stats_file` and `stats_interval` count.
  static Result<std::shared_ptr<MountedSystem>> Open(const AdapterUri& uri);
  MountedSystem(const MountedSystem&) = delete;
  MountedSystem& operator=(const MountedSystem&) = delete;

  // use(FileSystem&), a Status or Result; kIoError where the system was unmounted at the end of the process.
  template <typename Use>
  auto With(Use&& use) -> decltype(use(std::declval<FileSystem&>())) {
    SharedLock lock(gate_);
    if (ended_) return Status::IoError("unmounted, because the process ends");
    return std::forward<Use>(use)(*fs_);
  }

  // As GarbageCollection::Run, but not longer than the process lives: its end is not kept waiting.
  Status CollectGarbage(double free_percent, const Collector::Progress& progress);

  // While one exists, the system stays mounted. Made under With, when a file is opened.
  class OpenFile {
   public:
    // `writer` (may be null) is synced if the process ends while this exists; it must live longer than this.
    OpenFile(std::shared_ptr<MountedSystem> system, FileWriter* writer);
    ~OpenFile();
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    // The writer was, or will now be, closed: it can no longer be synced.
    void ForgetWriter();
    MountedSystem& system() const { return *system_; }

   private:
    const std::shared_ptr<MountedSystem> system_;
    FileWriter* const writer_;
  };

  // kBusy where it is locked. Locks are of this process: other processes are kept out by the device, which has one
  // writer.
  Status Lock(const std::string& path);
  Status Unlock(const std::string& path);

  // For counters and identity; not for use after the end.
  const FileSystem& fs() const { return *fs_; }
  // Writes what identifies the file `inode`, on this device and for as long as it exists, to id[0, max_size). Returns
  // its length; 0 where it does not fit.
  size_t WriteUniqueId(uint64_t inode, char* id, size_t max_size) const;

 private:
  MountedSystem(std::shared_ptr<FileSystem> fs, const AdapterUri& uri);
  ~MountedSystem();
  // Leaks it in a forked child.
  static void Destroy(MountedSystem* system);
  static void EndAll();
  void End() ISOZONE_EXCLUDES(gate_, mu_);
  Status UnmountOrSync() ISOZONE_REQUIRES(gate_) ISOZONE_EXCLUDES(mu_);

  const std::shared_ptr<FileSystem> fs_;
  const uint32_t identity_;  // differs between file systems
  const pid_t owner_;        // the process that mounted

  std::atomic<bool> ending_ = false;  // the process is about to end

  SharedMutex gate_;  // before mu_
  bool ended_ ISOZONE_GUARDED_BY(gate_) = false;

  Mutex mu_;
  size_t open_files_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::set<FileWriter*> writers_ ISOZONE_GUARDED_BY(mu_);
  std::set<std::string> locked_ ISOZONE_GUARDED_BY(mu_);

  StatsFile stats_file_;
};

}  // namespace isozone
