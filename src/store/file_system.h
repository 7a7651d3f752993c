// The file system on a zoned device: names, files, durability. This is the public face of the store; the RocksDB
// adapter, the command line and the tests use little else of it than what store/mount has.
//
// Durability. Nothing is durable before Sync: FileWriter::Sync makes the file's data, size and name durable (the
// creation of its name included), FileSystem::SyncMetadata every namespace change made before. Metadata changes become
// durable in the order in which they were made. After a power cut the file system is as of some moment not before the
// last of these calls that returned OK; a file that was never synced may be missing, shorter, or empty.
//
// Failure. A failed data write moves the tail of the file to another zone. A copy of the metadata of which a write
// fails is written anew elsewhere. Once the last copy has failed, the file system is read-only (kReadOnly, with the
// cause) until it is mounted again. Read errors are returned, and never latch.
//
// Paths are absolute, '/'-separated, and taken literally: no "." or "..", and repeated or trailing slashes are ignored.
//
// Thread safety: FileSystem and FileReader may be used from any thread. A FileWriter belongs to one thread at a time;
// Sync and size() may run beside its Append.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "device/izg/zone_groups.h"
#include "device/zoned_device.h"
#include "insight/stats/statistics.h"
#include "store/extent_list.h"
#include "store/gc/gc_round.h"
#include "store/io/io_class.h"
#include "store/mount_options.h"
#include "store/zone/cohort.h"
#include "store/zone/data_class.h"
#include "store/zone/heat.h"
#include "store/zone/lifetime.h"
#include "store/zone/zone_use.h"

namespace isozone {

// The way in which a file is written.
enum class FileKind : uint8_t {
  kData,   // in bulk and then closed: SSTables, blobs, backups. Holds a zone while it is written.
  kLog,    // appended and synced in small pieces: WAL, MANIFEST. Framed in-band: a Sync takes no metadata write, and
           // as a rule one device write. Holds a zone of its own while it is open for writing.
  kSmall,  // a few bytes, or trickling: CURRENT, OPTIONS, the info log. As kData, with a small buffer.
};
// Returns "data", "log" or "small".
std::string_view FileKindName(FileKind kind);

// The options of a new file: how it is written, counted and placed.
struct CreateOptions {
  FileKind kind = FileKind::kData;
  IoClass io_class = IoClass::kOther;
  Lifetime lifetime = Lifetime::kNotSet;
  int8_t level = DataClass::kNoLevel;  // of the LSM tree
  // What steered compaction knows of its output. For kData and kSmall; only the policy `isozone` heeds it.
  uint64_t expected_size = 0;  // bytes, roughly, that will be written; 0: unknown
  uint64_t together_with = 0;  // number of the cohort, files that will die together (store/zone/cohort.h); 0: none
  bool own_zones = false;      // the zones of the cohort take no other data as long as there is another zone
};

enum class InodeType : uint8_t { kRegular = 0, kDirectory = 1, kSymlink = 2 };

// A point in time, UTC.
struct FileTime {
  uint64_t s = 0;   // seconds since 1970
  uint32_t ns = 0;  // and nanoseconds, below 1,000,000,000
  auto operator<=>(const FileTime&) const = default;
};

struct FileAttributes {
  uint64_t inode = 0;
  bool is_directory = false;
  InodeType type = InodeType::kRegular;
  FileKind kind = FileKind::kData;
  Lifetime lifetime = Lifetime::kNotSet;
  int8_t level = DataClass::kNoLevel;  // of the LSM tree, when it was written
  uint64_t size = 0;                   // bytes, what a reader can read: synced or not
  uint64_t modified_s = 0;             // seconds since 1970
  uint32_t links = 0;
  // Owner, permissions and times, as inode_files.h describes them.
  uint32_t mode = 0644;  // permission bits
  uint32_t user = 0;
  uint32_t group = 0;
  FileTime modified;  // when the data was changed; its seconds are modified_s
  FileTime changed;   // when the inode itself was changed
};

struct DirectoryEntry {
  std::string name;
  FileAttributes attributes;
};

class FileWriter {
 public:
  // Closes the file, if Close was not called; an error is then only logged.
  virtual ~FileWriter() = default;

  // Adds to the end of the file. Returns when the bytes are in the writer's buffer; the error of an earlier background
  // write comes back here, from Sync or from Close, and stays.
  virtual Status Append(std::span<const std::byte> data) = 0;
  // Makes everything appended readable through other handles. It does no I/O, and makes nothing durable.
  virtual Status Flush() = 0;
  // Makes everything appended before durable: it is when this returns OK.
  virtual Status Sync() = 0;
  // Starts writing out what is buffered, without waiting for durability.
  virtual Status WriteOut() = 0;
  // Cuts the file to `size` bytes, or extends it with zeros.
  virtual Status Truncate(uint64_t size) = 0;
  // Writes out what is buffered and gives the zone back; the data is durable only if Sync was called. Further calls are
  // errors.
  virtual Status Close() = 0;

  virtual uint64_t size() const = 0;
  // These functions change how data that is written from now on is placed and counted.
  virtual void SetLifetime(Lifetime lifetime) = 0;
  virtual void SetLevel(int8_t level) = 0;  // of the LSM tree; DataClass::kNoLevel: not known
  virtual void SetIoClass(IoClass io_class) = 0;
};

// One read in flight. The submitter owns it and keeps it until `done` was called (exactly once; possibly before Submit
// returns, or on a device thread; short, never blocking). It then calls Take on a thread of its own.
struct FileRead {
  // Bytes that lie in other memory, because the device could not read them into `buffer`.
  class Bounced {
   public:
    virtual ~Bounced() = default;
    virtual void Copy() = 0;  // brings them into the read's `buffer`
  };

  uint64_t offset = 0;          // bytes in the file
  std::span<std::byte> buffer;  // where to
  IoClass io_class = IoClass::kUserRead;
  bool may_block = false;  // Submit may take as long as the device: the caller would wait for it next anyway
  void (*done)(FileRead& read) = nullptr;
  void* context = nullptr;

  size_t bytes_read = 0;  // less than asked for only at the end of the file
  Status status;
  std::unique_ptr<Bounced> bounced;

  // Brings into `buffer` what does not lie there yet. A thread of the device must not do that: it has the completions
  // of others to deliver.
  void Take() {
    if (const std::unique_ptr<Bounced> taken = std::move(bounced)) taken->Copy();
  }
};

class FileReader {
 public:
  virtual ~FileReader() = default;

  // Reads up to buffer.size() bytes at `offset`; fewer only at the end of the file, 0 beyond it.
  virtual Result<size_t> Read(uint64_t offset, std::span<std::byte> buffer, IoClass io_class) = 0;
  // Starts `read`; all pieces go to the device together.
  virtual void Submit(FileRead& read) = 0;
  // The size as of now; grows while a writer appends and flushes.
  virtual uint64_t size() const = 0;
  // Identifies the file for as long as it exists: equal for all handles of one file.
  virtual uint64_t inode() const = 0;
};

// How much of the space of a device is used, and for what.
struct SpaceInfo {
  uint64_t capacity = 0;         // bytes: the capacity of all zones that can be written or read
  uint64_t live = 0;             // bytes of files
  uint64_t dead = 0;             // bytes written and no longer needed, not yet reclaimed
  uint64_t held_by_readers = 0;  // bytes of `dead` in zones that readers in other processes keep from being reset
  uint64_t metadata = 0;         // bytes of the zones that hold Isozone's metadata
  uint64_t free = 0;  // bytes that can be written now: empty zones and the rest of partly written ones, less reserves
  uint64_t free_for_data = 0;  // bytes of `free` that files of data can take: not what is left in the zones of logs
  uint64_t reserved = 0;       // bytes of empty zones reserved for metadata, logs and GC (zone_reserves.h)
  uint32_t zones = 0;
  uint32_t empty_zones = 0;
  uint32_t active_zones = 0;
  uint32_t full_zones = 0;
  uint32_t unusable_zones = 0;  // read-only or offline
};

// The copies of the metadata.
struct MetadataCopies {
  uint32_t wanted = 0;                     // how many there should be
  std::vector<std::vector<ZoneId>> whole;  // the zones of each copy that is whole
};

// One zone as the file system sees it.
struct ZoneView {
  ZoneDescriptor device;
  ZoneUse use = ZoneUse::kFree;
  uint64_t live = 0;  // bytes of files in it
  Lifetime lifetime = Lifetime::kNotSet;
  int8_t level = DataClass::kNoLevel;  // of the LSM tree, of the first file in it
  ZoneHeat heat = kNewDataHeat;
  bool writing = false;  // held by a writer now
};

// A file, with all of its names and places.
struct FileDetails {
  std::vector<std::string> paths;  // all of its names
  FileAttributes attributes;
  uint64_t allocated = 0;  // bytes on the device, as of AllocatedBytes
  ExtentList extents;      // where its bytes lie; for a log, the payloads of its frames
};

// The bytes that a file has in one zone: its data, or a log's frames with headers and padding. ZoneView::live counts
// the same bytes.
struct FileInZone {
  uint64_t inode = 0;
  std::vector<std::string> paths;  // all of its names
  FileKind kind = FileKind::kData;
  uint64_t bytes = 0;
};
// The number of bytes that a file has in one zone.
struct ZoneOfFile {
  ZoneId zone;
  uint64_t bytes = 0;
};

// What a mounted file system is and holds, for people and monitors.
//
// Thread safety: any thread.
class FileSystemState {
 public:
  virtual ~FileSystemState() = default;

  virtual SpaceInfo Space() const = 0;
  // Returns all that the mount counts, as of now.
  virtual Figures Stats() const = 0;
  virtual std::vector<ZoneView> Zones() const = 0;
  // Calls `visit` for every file and directory, in order of inode.
  virtual Status VisitFiles(const std::function<void(const FileDetails&)>& visit) const = 0;
  // Returns the bytes that a file takes on the device, frames and padding included; those of a log that is being
  // written go up to the write pointers of its zones.
  virtual Result<uint64_t> AllocatedBytes(std::string_view path) const = 0;
  // FilesIn returns the files that have bytes in `zone`, in order of inode; ZonesOf the zones in which a file has
  // bytes, in ascending order. They take time by the size of the answer and the width of stripes, not by the number of
  // extents. They do not count data that its writer has not made known by Sync or Close, nor what open handles keep of
  // a file without a name; ZoneView::live counts both. An open log counts up to the write pointer of its zone.
  // kInvalidArgument: no such zone. kNotFound: no such file. A directory lies in no zone.
  virtual Result<std::vector<FileInZone>> FilesIn(ZoneId zone) const = 0;
  virtual Result<std::vector<ZoneOfFile>> ZonesOf(std::string_view path) const = 0;
  // Returns the room in partly written zones that no writer holds: in those that cohort `together_with` has begun and
  // that are not sealed, or, if it is 0, in those that data of this lifetime and level continues in. More data than
  // that needs new zones. Takes time by the number of partly written zones.
  virtual ZoneRoom RoomOf(const DataClass& data, uint64_t together_with) const = 0;
  virtual std::string label() const = 0;
  virtual std::string uuid() const = 0;
  virtual const MountOptions& options() const = 0;
  virtual const ZonedDevice& device() const = 0;
  // Returns which copies of the metadata are whole, and how many there should be.
  virtual MetadataCopies Metadata() const = 0;
  // Waits until there are as many copies as there should be: lost and damaged ones are written anew in the background.
  // Returns why that cannot be.
  virtual Status RestoreMetadataCopies() = 0;
  // Returns why the file system is read-only; empty while it is writable.
  virtual std::string read_only_reason() const = 0;
  // Waits until zones that hold nothing live have been reset. Tests and tools call it that want a settled state.
  virtual Status Settle() = 0;
};

// The requests that callers can make of GC, beside what the collector does by itself (store/gc/collector.h).
//
// Thread safety: any thread.
class GarbageCollection {
 public:
  virtual ~GarbageCollection() = default;

  // Collects now, in this thread, whatever the space, until `free_percent` of it is free; 100: all there is to gain.
  virtual Result<CopyStats> Run(double free_percent, const GcProgress& progress) = 0;
  // Returns what the scheme would do now; with `all`, what Run would do.
  virtual GcPlan Plan(bool all) const = 0;
  // Changes the scheme, or its tuning, until the file system is unmounted. kInvalidArgument if there is no such scheme.
  virtual Status SetOptions(const GcOptions& options) = 0;
};

// The record that the file system keeps of the zones that share hardware.
//
// Thread safety: any thread.
class ZoneGroupRecord {
 public:
  virtual ~ZoneGroupRecord() = default;

  // Returns the zone groups as they were measured last (device/izg/identify.h) and given to Set; null if they never
  // were.
  virtual std::shared_ptr<const ZoneGroups> Get() const = 0;
  // Remembers `groups`; durable when it returns. kCorruption if they are not of this device's zones.
  virtual Status Set(const ZoneGroups& groups) = 0;
};

class InodeFiles;

// What a mounted file system offers beside names and files. Each part lives as long as the file system.
class FileSystemParts {
 public:
  virtual ~FileSystemParts() = default;

  virtual FileSystemState& state() const = 0;
  virtual GarbageCollection& collection() const = 0;
  virtual ZoneGroupRecord& groups() const = 0;
  virtual InodeFiles& inodes() const = 0;  // inode_files.h
};

// A mounted file system: its names and files, and its other parts.
class FileSystem : public FileSystemParts {
 public:
  // Reads the superblock, checkpoint and journal, finds the ends of logs and starts the background work. kNotFound if
  // the device is not formatted ("run isozone mkfs"), kNotSupported if ZenFS or another version has formatted it,
  // kCorruption with place and effect. A read-only mount follows a writer in another process: names are refreshed where
  // a look-up misses. The file system gets the time from `clock`, which outlives it, but for the queue of the device.
  static Result<std::unique_ptr<FileSystem>> Mount(std::unique_ptr<ZonedDevice> device, const MountOptions& options,
                                                   Clock& clock = Clock::Real());

  // Unmounts the file system, if Unmount was not called; an error is then only logged.
  ~FileSystem() override = default;

  // Takes a look at all that monitors are shown of this mount (docs/statistics.md), as of now.
  virtual Result<Statistics> Look() const = 0;

  // Makes everything that was written durable, and ends the background work. All handles must be closed.
  virtual Status Unmount() = 0;

  // --- Names ---
  virtual Result<FileAttributes> Stat(std::string_view path) = 0;
  // Lists a directory in order of name. As with readdir(3), what comes and goes meanwhile may be listed or not; all
  // else is listed once.
  virtual Result<std::vector<DirectoryEntry>> List(std::string_view directory) = 0;
  virtual Status CreateDirectory(std::string_view path) = 0;    // parents must exist; kAlreadyExists
  virtual Status CreateDirectories(std::string_view path) = 0;  // with parents; fine if it exists
  virtual Status RemoveDirectory(std::string_view path) = 0;    // kNotEmpty
  virtual Status Unlink(std::string_view path) = 0;             // open handles go on working
  // Renames atomically. A file may take the place of a file, and a directory that of an empty directory; otherwise
  // kNotDirectory, kIsDirectory or kNotEmpty.
  virtual Status Rename(std::string_view from, std::string_view to) = 0;
  virtual Status Link(std::string_view from, std::string_view to) = 0;  // kAlreadyExists
  virtual Status SetModified(std::string_view path, uint64_t modified_s) = 0;
  virtual Status SyncMetadata() = 0;

  // --- Files ---
  // Creates a file, or replaces one by an empty file; handles of the old one go on working, as after Unlink. (RocksDB
  // re-uses a log before it has closed the writer of old.) The parent directory must exist.
  virtual Result<std::unique_ptr<FileWriter>> Create(std::string_view path, const CreateOptions& options) = 0;
  // Opens a file for appending, and never truncates it; creates it with `options` where it does not exist.
  virtual Result<std::unique_ptr<FileWriter>> OpenForAppend(std::string_view path, const CreateOptions& options) = 0;
  virtual Result<std::unique_ptr<FileReader>> OpenForRead(std::string_view path) = 0;
  // Seals a cohort (store/zone/cohort.h): its zones take no more data, because what comes later would live longer.
  // Files that are being written keep their zones. Later files with this number begin new zones. No I/O. This is a
  // call, and not an option of the last file, because nobody knows which output of a compaction is the last one before
  // its inputs end, and a compaction that fails has none. kInvalidArgument for 0; kReadOnly.
  virtual Status SealCohort(uint64_t together_with) = 0;
  // Writes `data` at `offset` <= size of an existing, closed kData or kSmall file: new space, then one metadata change,
  // durable when it returns. For the rare in-place update (RocksDB's global sequence number of ingested files).
  virtual Status Overwrite(std::string_view path, uint64_t offset, std::span<const std::byte> data) = 0;
  virtual Status Truncate(std::string_view path, uint64_t size) = 0;
};

}  // namespace isozone
