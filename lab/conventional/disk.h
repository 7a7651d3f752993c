// Disk: models what an ordinary file system on a conventional SSD costs: `isozone-conventional:///dir?size=8G&age=2`.
//
// What it models. The bytes of files lie below /dir/files, on the host's own file system. In addition, every file has
// extents of logical blocks of a ConventionalDevice, and reads and writes wait for that device, as they would for an
// SSD under ext4. Appended data is collected and written out in units of 1 MiB (delayed allocation). At most 16 MiB of
// a file are in flight. A Sync waits for its data, for a commit of the metadata journal if the file has grown, and for
// a flush. A full device returns kNoSpace. Deleted files give their blocks back; with discard=on the blocks are
// trimmed.
//
// What it does not model. It has timing and wear, but no crash consistency: appended data is in the host's file at
// once, synced or not, and a power cut loses only what the host loses. There is no cache for reads: every read of a
// block that was written out goes to the device, as under direct I/O, which Isozone uses as well.
//
// The state of the FTL lasts as long as the mount; age= and discard= say what it begins with. A device is aged first,
// then existing files get their blocks, in order of their names. So the measurements of one process do not depend on
// earlier processes, except through the files that these left.
//
// Only one process at a time can mount a directory, and only once.
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

#include "base/mutex.h"
#include "base/status.h"
#include "conventional/extent_allocator.h"
#include "device/emulated/conventional_device.h"
#include "rocksdb/adapter/adapter_uri.h"
#include "rocksdb/adapter/stats_file.h"

namespace isozone {

class Disk;

// The blocks of one file, whatever its names, and the I/O to them. Offsets and lengths are in bytes.
class DiskFile {
 public:
  // Makes a file that exists, `size` bytes long: takes its blocks, and fills them in no time. kNoSpace.
  static Result<std::shared_ptr<DiskFile>> LayOut(Disk& disk, uint64_t size);
  // Makes an empty file. `disk` must outlive it.
  explicit DiskFile(Disk& disk);
  // Gives the blocks back. The file must not be open any more.
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  // Reserves blocks for the bytes up to `end`, before they are written to the host. kNoSpace if there are not enough.
  Status Reserve(uint64_t end);
  // Reports that reserved bytes are in the host's file. Whole units of them are written out now, the rest later. Waits
  // while too much data is in flight.
  void Wrote(uint64_t offset, uint64_t length);
  // Starts writing out all data that is not in flight yet.
  void WriteOut();
  // Waits until all data written before is on the device, with its metadata.
  void Sync();
  // Truncates the file, or extends it by a hole.
  void Truncate(uint64_t size);

  // The extents for which a read of the range has to go to the device: those that have been written out.
  std::vector<Extent> Lookup(uint64_t offset, uint64_t length) const;

 private:
  void StartWrites(uint64_t from, uint64_t to) ISOZONE_REQUIRES(mu_);
  void WriteOutLocked() ISOZONE_REQUIRES(mu_);
  // Gives back all blocks behind the first `keep`, including reserved ones.
  void CutBlocks(uint64_t keep) ISOZONE_REQUIRES(mu_);
  std::vector<Extent> Find(uint64_t first_block, uint64_t end_block) const ISOZONE_REQUIRES(mu_);

  Disk& disk_;
  const std::shared_ptr<BytesInFlight> writes_ = std::make_shared<BytesInFlight>();

  mutable Mutex mu_;                                     // taken before the locks of the disk
  std::vector<Extent> extents_ ISOZONE_GUARDED_BY(mu_);  // in file order, without gaps
  uint64_t blocks_ ISOZONE_GUARDED_BY(mu_) = 0;          // in extents_
  uint64_t reserved_ ISOZONE_GUARDED_BY(mu_) = 0;        // blocks that are reserved in addition
  uint64_t size_ ISOZONE_GUARDED_BY(mu_) = 0;            // bytes
  uint64_t dirty_from_ ISOZONE_GUARDED_BY(mu_) = 0;      // bytes from here to size_ are not in flight yet
  uint64_t dirty_to_ ISOZONE_GUARDED_BY(mu_) = 0;
  bool metadata_changed_ ISOZONE_GUARDED_BY(mu_) = true;  // since the last commit
};

class Disk {
 public:
  // Mounts the directory of `uri`, which is created if its parent exists, or joins the mount of this process, whose
  // options must then be the same. kBusy if another process has mounted it.
  static Result<std::shared_ptr<Disk>> Open(const AdapterUri& uri);
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // The path of the host's file for `path`, which must be absolute and normal.
  std::string HostPath(const std::string& path) const { return files_directory_ + path; }

  // Names. `operation` changes the host's files in the same way; the table changes only if it succeeds.
  using HostOperation = std::function<rocksdb::IOStatus()>;
  // Creates the file `path`, empty. If it exists, it is truncated, and its other names still refer to it.
  rocksdb::IOStatus Create(const std::string& path, std::shared_ptr<DiskFile>* file, const HostOperation& operation);
  // Renames the file `from` to `to` and returns it with its content.
  rocksdb::IOStatus Reuse(const std::string& from, const std::string& to, std::shared_ptr<DiskFile>* file,
                          const HostOperation& operation);
  rocksdb::IOStatus Find(const std::string& path, std::shared_ptr<DiskFile>* file, const HostOperation& operation);
  // Like Find, but creates an empty file if there is none.
  rocksdb::IOStatus FindOrCreate(const std::string& path, std::shared_ptr<DiskFile>* file,
                                 const HostOperation& operation);
  rocksdb::IOStatus Link(const std::string& from, const std::string& to, const HostOperation& operation);
  // Renames a file, or a directory with its content. Does nothing if both names refer to one file.
  rocksdb::IOStatus Rename(const std::string& from, const std::string& to, const HostOperation& operation);
  rocksdb::IOStatus Remove(const std::string& path, const HostOperation& operation);

  // Waits for a read of `extents`.
  void Read(const std::vector<Extent>& extents);
  // Makes all metadata durable: with a write to the journal, if anything has changed, and a flush.
  void CommitMetadata(bool changed);

  uint64_t free_bytes() const;
  // Counters since the mount, as JSON (docs/schemas/stats-conventional.schema.json).
  std::string StatsJson() const;

 private:
  friend class DiskFile;

  Disk(std::string directory, std::string options, bool discard, const ConventionalOptions& device);
  ~Disk();
  // In a forked child, which has none of the disk's threads, the disk is leaked instead.
  static void Destroy(Disk* disk);
  Status Lock();
  // Gives existing files their blocks.
  Status LayOutFiles();
  static void WriteAllStats();
  void WriteStats();

  // For DiskFile.
  bool Reserve(uint64_t blocks);
  // Allocates blocks that were reserved.
  void Allocate(uint64_t blocks, std::vector<Extent>& extents);
  void Release(const std::vector<Extent>& extents, uint64_t reserved);
  void Submit(TimingOpKind kind, const std::vector<Extent>& extents, const std::shared_ptr<BytesInFlight>& transfers);
  std::shared_ptr<DiskFile>& Entry(const std::string& path) ISOZONE_REQUIRES(names_mu_);

  const std::string directory_;
  const std::string files_directory_;
  const std::string options_;  // in one line, for comparison
  const bool discard_;
  const pid_t owner_;  // the process that mounted
  const std::shared_ptr<rocksdb::FileSystem> host_ = rocksdb::FileSystem::Default();
  rocksdb::FileLock* lock_ = nullptr;
  const uint32_t block_size_;
  const uint64_t journal_blocks_;  // from block 0 on
  std::atomic<uint64_t> journal_next_{0};
  std::atomic<bool> names_changed_{false};  // since the last commit
  std::atomic<bool> unmounting_{false};
  const std::shared_ptr<BytesInFlight> trims_ = std::make_shared<BytesInFlight>();

  ConventionalDevice device_;

  mutable Mutex space_mu_;
  ExtentAllocator space_ ISOZONE_GUARDED_BY(space_mu_);
  uint64_t reserved_ ISOZONE_GUARDED_BY(space_mu_) = 0;  // of the free blocks

  Mutex names_mu_;  // taken before that of a file
  std::map<std::string, std::shared_ptr<DiskFile>> files_ ISOZONE_GUARDED_BY(names_mu_);

  std::optional<StatsFile> stats_file_;  // set by Open, never changed
};

}  // namespace isozone
