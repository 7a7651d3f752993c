// An ordinary file system on a conventional SSD, in what it costs: `isozone://conventional:/dir?size=8G&age=2`.
//
// What it is. The bytes lie in files below /dir/files, on the host's own file system. Beside them, every file has
// extents of logical blocks of a ConventionalDevice, and what is read and written waits for that device, as it would for
// an SSD under ext4: appended data is collected and written out in units of 1 MiB (delayed allocation), at most 16 MiB
// of a file are on their way, a Sync waits for its data, for a commit of the metadata journal if the file has grown, and
// for a flush. A full device is full. Deleted files give their blocks back, and with discard=on they are trimmed.
//
// What it is not. It gives timing and wear, not crash consistency: what is appended is in the host's file at once,
// synced or not, and nothing is lost when power fails but what the host loses. There is no cache for reads: every read
// of a block that was written out goes to the device, as under direct I/O, which is what Isozone does too.
//
// The state of the FTL is that of the mount: age= and discard= say what a mount begins with. A device is aged first,
// and then the files that there are get their blocks, in order of their names. So what one process measures does not
// depend on what others did before, but for the files that they left.
//
// One process at a time, one mount of a directory in it.
//
// Thread safety: every method of Disk and DiskFile may be called from any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rocksdb/file_system.h>

#include "adapter/adapter_uri.h"
#include "adapter/stats_file.h"
#include "base/mutex.h"
#include "base/status.h"
#include "conventional/adapter/extent_allocator.h"
#include "conventional/device/conventional_device.h"

namespace isozone {

class Disk;

// The blocks of one file, whatever its names, and the traffic to them. Offsets and lengths are in bytes.
class DiskFile {
 public:
  // Of a file that exists, `size` bytes long: its blocks are taken, and filled without time. kNoSpace.
  static Result<std::shared_ptr<DiskFile>> LayOut(Disk& disk, uint64_t size);
  // Empty. `disk` outlives it.
  explicit DiskFile(Disk& disk);
  // Gives the blocks back. Nobody has the file open any more.
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  // Sets blocks aside for the bytes up to `end`, before they are written to the host. kNoSpace where there are none.
  Status Reserve(uint64_t end);
  // Bytes that were set aside are in the host's file: they are to be written out, in whole units now, and the rest
  // later. Waits while too much is on its way.
  void Wrote(uint64_t offset, uint64_t length);
  // Starts writing out what is not on its way yet.
  void WriteOut();
  // Until what was written before is on the device, with its metadata.
  void Sync();
  // Cuts it off, or grows it by a hole.
  void Truncate(uint64_t size);

  // The extents that a read of the range has to go to the device for: those that have been written out.
  std::vector<Extent> Lookup(uint64_t offset, uint64_t length) const;

 private:
  void StartWrites(uint64_t from, uint64_t to) ISOZONE_REQUIRES(mu_);
  void WriteOutLocked() ISOZONE_REQUIRES(mu_);
  // All behind the first `keep`, also of what is set aside.
  void CutBlocks(uint64_t keep) ISOZONE_REQUIRES(mu_);
  std::vector<Extent> Find(uint64_t first_block, uint64_t end_block) const ISOZONE_REQUIRES(mu_);

  Disk& disk_;
  const std::shared_ptr<Transfers> writes_ = std::make_shared<Transfers>();

  mutable Mutex mu_;                                     // before that of the disk
  std::vector<Extent> extents_ ISOZONE_GUARDED_BY(mu_);  // in file order, without gaps
  uint64_t blocks_ ISOZONE_GUARDED_BY(mu_) = 0;          // in them
  uint64_t reserved_ ISOZONE_GUARDED_BY(mu_) = 0;        // blocks set aside beside them
  uint64_t size_ ISOZONE_GUARDED_BY(mu_) = 0;            // bytes
  uint64_t dirty_from_ ISOZONE_GUARDED_BY(mu_) = 0;      // bytes that are not on their way; none if equal
  uint64_t dirty_to_ ISOZONE_GUARDED_BY(mu_) = 0;
  bool metadata_changed_ ISOZONE_GUARDED_BY(mu_) = true;  // since the last commit
};

class Disk {
 public:
  // Mounts the directory of `uri`, which is made if its parent exists, or joins the mount of this process; the options
  // must then be the same. kBusy where another process has it.
  static Result<std::shared_ptr<Disk>> Open(const AdapterUri& uri);
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // Where the host has the file `path`, which is absolute and normal.
  std::string HostPath(const std::string& path) const { return files_directory_ + path; }

  // Names. `operation` does to the host's files what the function does to the table, which changes only if it succeeds.
  using HostOperation = std::function<rocksdb::IOStatus()>;
  // The file `path`, made empty; if it is there it is cut to nothing, and stays the file of its other names.
  rocksdb::IOStatus Create(const std::string& path, std::shared_ptr<DiskFile>* file, const HostOperation& operation);
  // The file that was called `from`, with its content.
  rocksdb::IOStatus Reuse(const std::string& from, const std::string& to, std::shared_ptr<DiskFile>* file,
                          const HostOperation& operation);
  rocksdb::IOStatus Find(const std::string& path, std::shared_ptr<DiskFile>* file, const HostOperation& operation);
  // As Find; where there is none, an empty one.
  rocksdb::IOStatus FindOrCreate(const std::string& path, std::shared_ptr<DiskFile>* file,
                                 const HostOperation& operation);
  rocksdb::IOStatus Link(const std::string& from, const std::string& to, const HostOperation& operation);
  // Of a file, or of a directory and all in it. Nothing where both are names of one file.
  rocksdb::IOStatus Rename(const std::string& from, const std::string& to, const HostOperation& operation);
  rocksdb::IOStatus Remove(const std::string& path, const HostOperation& operation);

  // Waits for a read of `extents`.
  void Read(const std::vector<Extent>& extents);
  // Makes all metadata durable: a write to the journal, if anything has changed, and a flush.
  void CommitMetadata(bool changed);

  uint64_t free_bytes() const;
  // Counters as JSON; the schema is in <isozone/isozone.h>.
  std::string StatsJson() const;

 private:
  friend class DiskFile;

  Disk(std::string directory, std::string options, bool discard, const ConventionalOptions& device);
  ~Disk();
  // Leaks it in a forked child, which has none of its threads.
  static void Destroy(Disk* disk);
  Status Lock();
  // Gives the files that there are their blocks.
  Status LayOutFiles();
  static void WriteAllStats();
  void WriteStats();

  // For DiskFile.
  bool Reserve(uint64_t blocks);
  // Of blocks that were set aside.
  void Allocate(uint64_t blocks, std::vector<Extent>& extents);
  void Release(const std::vector<Extent>& extents, uint64_t reserved);
  void Submit(TimingOpKind kind, const std::vector<Extent>& extents, const std::shared_ptr<Transfers>& transfers);
  std::shared_ptr<DiskFile>& Entry(const std::string& path) ISOZONE_REQUIRES(names_mu_);

  const std::string directory_;
  const std::string files_directory_;
  const std::string options_;  // in one line that can be compared
  const bool discard_;
  const pid_t owner_;  // the process that mounted
  const std::shared_ptr<rocksdb::FileSystem> host_ = rocksdb::FileSystem::Default();
  rocksdb::FileLock* lock_ = nullptr;
  const uint32_t block_size_;
  const uint64_t journal_blocks_;  // from block 0 on
  std::atomic<uint64_t> journal_next_{0};
  std::atomic<bool> names_changed_{false};  // since the last commit
  std::atomic<bool> unmounting_{false};
  const std::shared_ptr<Transfers> trims_ = std::make_shared<Transfers>();

  ConventionalDevice device_;

  mutable Mutex space_mu_;
  ExtentAllocator space_ ISOZONE_GUARDED_BY(space_mu_);
  uint64_t reserved_ ISOZONE_GUARDED_BY(space_mu_) = 0;  // of what is free

  Mutex names_mu_;  // before that of a file
  std::map<std::string, std::shared_ptr<DiskFile>> files_ ISOZONE_GUARDED_BY(names_mu_);

  std::optional<StatsFile> stats_file_;  // set by Open, never changed
};

}  // namespace isozone
