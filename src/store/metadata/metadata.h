// The metadata of a file system, as a pure state machine: MetadataState is what the journal says, MetadataOp one
// change. The same code runs in a mounted file system, at recovery, in fsck and in the fuzzer. No I/O, no locks. What
// it holds is in MetadataTables, how a record is applied in MetadataChange, what holds of one inode in MetadataRules.
//
// Objects are inodes only. A directory is an inode without data; a name is a Link kept in the inode it leads to, and
// the directory tables are derived from the links. One journal record is a list of operations that happen together or
// not.
//
// Invariants (CheckInvariants verifies them; Apply refuses what would break one):
//  * Inode 1 is the root directory, without a link. Every other inode has at least one link, but for a file between its
//    last RemoveLink and its RemoveInode, which belong into one record.
//  * A link's parent is an existing directory; names are unique in a directory, 1..255 bytes, without '/' and NUL, and
//    neither "." nor "..". A directory has exactly one link, and is not its own ancestor; moving one is RemoveLink,
//    then AddLink, in one record.
//  * Extents are in file order, without gaps or overlaps, from offset 0 to the file's size, each inside one zone's
//    capacity or a hole. No two extents or log regions overlap on the device (checked by fsck, not at every Apply); but
//    files together have at most as many bytes in extents as the zones hold.
//  * Zone groups, where they are known, name a group of every zone of the device, or that it is unknown.
//  * A zone in which files have data may be said to hold survivors of GC (heat.h). What is said of it is
//    forgotten at the end of the record that leaves it without data: what comes there next is new.
//  * A log has regions instead of extents, any of which may be open; its frames say where in the file they belong.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/status.h"
#include "device/izg/zone_groups.h"
#include "device/zoned_device.h"
#include "store/extent_list.h"
#include "store/extents.h"
#include "store/file_system.h"
#include "store/metadata/directory_table.h"
#include "store/metadata/inode_id.h"
#include "store/zone/data_class.h"
#include "store/zone/heat.h"
#include "store/zone/lifetime.h"

namespace isozone {

struct InodeLink {
  InodeId parent;
  std::string name;
  bool operator==(const InodeLink&) const = default;
};

// A run of log frames (store/file/log_frame.h) in one zone.
struct LogRegion {
  static constexpr uint64_t kOpen = UINT64_MAX;
  ZoneId zone;
  uint64_t begin = 0;    // bytes in the zone, block-aligned: the first frame
  uint64_t end = kOpen;  // bytes in the zone: behind the last frame; kOpen while it may still grow: recovery scans
  uint64_t payload = 0;  // bytes of file in it; of an open region not valid (0)
  // Was not whole when it got its end: whoever reads on behind the payload is to meet what stopped the scan then.
  bool damaged = false;
  bool open() const { return end == kOpen; }
  bool operator==(const LogRegion&) const = default;
};

// What an inode has only if it was made or changed through InodeFiles. A symbolic link always has it.
struct InodeDetails {
  static constexpr size_t kTargetMax = 4095;       // bytes
  static constexpr size_t kXattrNameMax = 255;     // bytes
  static constexpr size_t kXattrBytesMax = 65536;  // bytes of all names and values
  static constexpr uint32_t kModeMax = 07777;

  uint32_t mode = 0644;  // permission bits
  uint32_t user = 0;
  uint32_t group = 0;
  // Counts as long as its seconds are those of Inode::modified_s; a later change of the data has only seconds.
  FileTime modified;
  FileTime changed;    // of the inode itself
  std::string target;  // not empty: the inode is a symbolic link, without data
  std::map<std::string, std::string, std::less<>> xattrs;
  bool operator==(const InodeDetails&) const = default;
};

struct Inode {
  InodeId id;
  bool is_directory = false;
  FileKind kind = FileKind::kData;
  Lifetime lifetime = Lifetime::kNotSet;
  int8_t level = DataClass::kNoLevel;  // of the LSM tree, when it was written
  uint64_t size = 0;                   // bytes; of a log: without what open regions hold
  // Of the device that its extents take, each by itself in whole blocks. MetadataTables keeps it up to date; it is not
  // on the device.
  uint64_t in_blocks = 0;
  uint64_t modified_s = 0;
  std::vector<InodeLink> links;
  ExtentList extents;                           // kData, kSmall
  std::vector<LogRegion> regions;               // kLog
  std::shared_ptr<const InodeDetails> details;  // null: none

  bool is_symlink() const { return details != nullptr && !details->target.empty(); }
  // Bytes of the device that it takes, without what open regions hold.
  uint64_t allocated() const {
    uint64_t bytes = in_blocks;
    for (const LogRegion& region : regions) bytes += region.open() ? 0 : region.end - region.begin;
    return bytes;
  }
  bool has_open_region() const {
    return std::any_of(regions.begin(), regions.end(), [](const LogRegion& region) { return region.open(); });
  }
};

// --- Operations ---
struct PutInode {
  Inode inode;
};  // creates (the id must not exist); its links come with it
struct AddLink {
  InodeId inode;
  InodeLink link;
};
struct RemoveLink {
  InodeId inode;
  InodeLink link;
};
struct RemoveInode {
  InodeId inode;
};  // no links left, a directory also empty
// Adds extents behind the `first_index` that the file has (which must match), and sets size and time.
struct AppendExtents {
  InodeId inode;
  uint64_t first_index = 0;
  ExtentList extents;
  uint64_t modified_s = 0;
};
// Runs of the file were copied elsewhere: garbage collection. Each run lies in one extent, and no two overlap. What
// becomes of the list: extents.h, PlanEdits.
struct MoveExtents {
  InodeId inode;
  std::vector<ExtentMove> moves;
};
// The file keeps its first `size` bytes, of at least as many: truncation.
struct CutFile {
  InodeId inode;
  uint64_t size = 0;
  uint64_t modified_s = 0;
};
// Replaces region `index` or, if it equals their number, adds one.
struct SetLogRegion {
  InodeId inode;
  uint64_t index = 0;
  LogRegion region;
  uint64_t modified_s = 0;
};
// Replaces all regions: truncation.
struct SetLogRegions {
  InodeId inode;
  std::vector<LogRegion> regions;
  uint64_t modified_s = 0;
};
// The runs of the file that these extents are, which have data or holes now, lie there from now on: written anew. What
// becomes of the list: extents.h, PlanEdits.
struct PlaceExtents {
  InodeId inode;
  ExtentList extents;  // within the file, without holes
  uint64_t modified_s = 0;
};
// A log becomes a file of kind kData: its payloads, where they lie, are its extents.
struct LogToData {
  InodeId inode;
  ExtentList extents;
  uint64_t modified_s = 0;
};
struct SetDetails {
  InodeId inode;
  std::shared_ptr<const InodeDetails> details;  // never null
};
// Sets the times of an inode that has details, whatever else these hold.
struct SetTimes {
  InodeId inode;
  FileTime modified;
  FileTime changed;
};
struct SetAttributes {
  InodeId inode;
  Lifetime lifetime = Lifetime::kNotSet;
  uint64_t modified_s = 0;
  int8_t level = DataClass::kNoLevel;
};

// Replaces what is known of the independent zone groups; never null. Belongs to no inode.
struct SetZoneGroups {
  std::shared_ptr<const ZoneGroups> groups;
};

// Survivors of GC are in these zones, in which files have data. Belongs to no inode.
using ZoneHeats = std::map<ZoneId, ZoneHeat>;
// Of a zone that is not among them: it has new data, or none.
ZoneHeat HeatOf(const ZoneHeats& heats, ZoneId zone);
struct SetZoneHeats {
  ZoneHeats heats;
};

// A mount for writing begins. What a process that was killed has left in memory (store/kept/kept_memory.h) is of this
// device only where it has the number of the last mount. Belongs to no inode.
struct BeginMount {
  uint64_t number = 0;  // random, never 0
};

// What belongs to no inode.
struct DeviceRecords {
  std::shared_ptr<const ZoneGroups> groups;  // which zones share hardware; null: never measured
  ZoneHeats heats;                           // of the zones with survivors; every other zone has new data, or none
  uint64_t mount_number = 0;                 // of the last mount that has begun with one; 0: none
};

using MetadataOp = std::variant<PutInode, AddLink, RemoveLink, RemoveInode, AppendExtents, CutFile, SetLogRegion,
                                SetLogRegions, SetAttributes, SetZoneGroups, MoveExtents, SetZoneHeats, PlaceExtents,
                                LogToData, SetDetails, BeginMount, SetTimes>;

// The inode that it changes; 0 where it is of none.
InodeId InodeOf(const MetadataOp& op);

struct MetadataTables;

class MetadataState {
 public:
  // A root directory and nothing else.
  explicit MetadataState(const DeviceGeometry& geometry);
  // The state that consists of `inodes` (the root among them; in any order), with ids given out from `next_id` on, and
  // of `device`. kCorruption saying which invariant does not hold.
  static Result<MetadataState> Restore(const DeviceGeometry& geometry, std::vector<Inode> inodes, InodeId next_id,
                                       DeviceRecords device);
  MetadataState(MetadataState&&) noexcept;
  MetadataState& operator=(MetadataState&&) noexcept;
  ~MetadataState();

  // All of `ops` or, with kCorruption saying which invariant of which inode would break, none. Where they make the
  // state larger, `admit` is asked first, if there is one, whether encoded_size may become so many bytes; what it
  // answers is returned.
  using Admit = std::function<Status(uint64_t encoded_size)>;
  Status Apply(std::span<const MetadataOp> ops, const Admit& admit = {});
  // Bytes that the records of a checkpoint of this state take, exactly. Kept up to date by Apply.
  uint64_t encoded_size() const;

  const Inode* Find(InodeId id) const;                                 // null: none
  const Inode* Child(InodeId directory, std::string_view name) const;  // null: none
  // The inode at an absolute path; kNotFound, kNotDirectory.
  Result<const Inode*> Lookup(std::string_view path) const;
  // What files have in `zone`, by file, and of each in file order. From an index that Apply keeps up to date
  // (zone_index.h).
  struct OwnedExtent {
    InodeId inode;
    FileExtent extent;
  };
  std::vector<OwnedExtent> ExtentsIn(ZoneId zone) const;
  // Those of one file.
  std::vector<FileExtent> ExtentsIn(ZoneId zone, InodeId inode) const;
  // Bytes that each file and log has in `zone`, of which `write_pointer` bytes are written, frames of logs with their
  // headers and padding. Extents are counted packed: it takes time by how many files there are and how wide their
  // stripes are, not by how many extents they have.
  std::map<InodeId, uint64_t> BytesIn(ZoneId zone, uint64_t write_pointer) const;
  // Of one region: an open one goes on up to the write pointer of its zone, or to where the next region begins.
  uint64_t BytesOf(const LogRegion& region, uint64_t write_pointer) const;
  // Bytes that their extents in `zone` take, each by itself in whole blocks.
  uint64_t BlocksIn(ZoneId zone) const;
  // The children of a directory, by name.
  const DirectoryTable& Children(InodeId directory) const;
  std::vector<std::string> PathsOf(InodeId id) const;
  // Ids are never used again.
  InodeId NextId() const;
  size_t size() const;  // number of inodes
  const DeviceRecords& device() const;

  // The inode with the smallest id above `after`, or null: walks all of them in order.
  const Inode* Next(InodeId after) const;

  Status CheckInvariants() const;

  // --- Snapshots, so that a checkpoint can be written while changes go on ---
  // Fixes the state of this moment. One at a time.
  void BeginSnapshot();
  // Up to `max` inodes of the fixed state, in any order, each once; empty when all were given. Changes made in between
  // do not show: an inode is copied aside before its first change.
  std::vector<Inode> NextOfSnapshot(size_t max);
  void EndSnapshot();

 private:
  std::unique_ptr<MetadataTables> tables_;
};

}  // namespace isozone
