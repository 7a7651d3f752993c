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

// A name of an inode: a place in a directory.
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
  // Whether the region was not whole when it got its end: who reads on behind the payload meets what stopped the scan.
  bool damaged = false;
  bool open() const { return end == kOpen; }
  bool operator==(const LogRegion&) const = default;
};

// The part of an inode that exists only if it was made or changed through InodeFiles. A symbolic link always has it.
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

// The metadata of a file, a directory or a symbolic link.
struct Inode {
  InodeId id;
  bool is_directory = false;
  FileKind kind = FileKind::kData;
  Lifetime lifetime = Lifetime::kNotSet;
  int8_t level = DataClass::kNoLevel;  // of the LSM tree, when it was written
  uint64_t size = 0;                   // bytes; of a log: without what open regions hold
  // The bytes of the device that its extents take, each counted in whole blocks. MetadataTables keeps them up to date;
  // they are not on the device.
  uint64_t in_blocks = 0;
  uint64_t modified_s = 0;
  std::vector<InodeLink> links;
  ExtentList extents;                           // kData, kSmall
  std::vector<LogRegion> regions;               // kLog
  std::shared_ptr<const InodeDetails> details;  // null: none

  bool is_symlink() const { return details != nullptr && !details->target.empty(); }
  // Returns the bytes of the device that it takes, without what open regions hold.
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
// Creates an inode, the id of which must not exist, with its links.
struct PutInode {
  Inode inode;
};
// Gives an inode one more name, or takes one from it.
struct AddLink {
  InodeId inode;
  InodeLink link;
};
struct RemoveLink {
  InodeId inode;
  InodeLink link;
};
// Removes an inode, which has no links left; a directory is also empty.
struct RemoveInode {
  InodeId inode;
};
// Adds extents behind the `first_index` that the file has (which must match), and sets size and time.
struct AppendExtents {
  InodeId inode;
  uint64_t first_index = 0;
  ExtentList extents;
  uint64_t modified_s = 0;
};
// Says that GC has copied runs of a file elsewhere. Each run lies in one extent, and no two overlap. PlanEdits
// (extents.h) says what becomes of the list of extents.
struct MoveExtents {
  InodeId inode;
  std::vector<ExtentMove> moves;
};
// Cuts a file, which has at least `size` bytes, to its first `size` bytes.
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
// Replaces all regions of a log that is cut.
struct SetLogRegions {
  InodeId inode;
  std::vector<LogRegion> regions;
  uint64_t modified_s = 0;
};
// Says that runs of a file, which were data or holes before, were written anew and lie where `extents` say. PlanEdits
// (extents.h) says what becomes of the list of extents.
struct PlaceExtents {
  InodeId inode;
  ExtentList extents;  // within the file, without holes
  uint64_t modified_s = 0;
};
// Makes a log a file of kind kData, whose extents are the payloads of the log, where they lie.
struct LogToData {
  InodeId inode;
  ExtentList extents;
  uint64_t modified_s = 0;
};
// Replaces the details of an inode.
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
// Sets the lifetime, the level and the time of an inode.
struct SetAttributes {
  InodeId inode;
  Lifetime lifetime = Lifetime::kNotSet;
  uint64_t modified_s = 0;
  int8_t level = DataClass::kNoLevel;
};

// Replaces what is known of the zone groups; never null. It belongs to no inode.
struct SetZoneGroups {
  std::shared_ptr<const ZoneGroups> groups;
};

// The heat of each zone that holds survivors of GC; files have data in each of them.
using ZoneHeats = std::map<ZoneId, ZoneHeat>;
// Returns the heat of a zone: kNewDataHeat if it is not among `heats`, since it then has new data, or none.
ZoneHeat HeatOf(const ZoneHeats& heats, ZoneId zone);
// Sets the heats of zones. It belongs to no inode.
struct SetZoneHeats {
  ZoneHeats heats;
};

// Says that a mount for writing begins, and its number. What a process that was killed has left in memory
// (store/kept/kept_memory.h) is of this device only where it has the number of the last mount. It belongs to no inode.
struct BeginMount {
  uint64_t number = 0;  // random, never 0
};

// The part of the metadata that belongs to no inode.
struct DeviceRecords {
  std::shared_ptr<const ZoneGroups> groups;  // which zones share hardware; null: never measured
  ZoneHeats heats;                           // of the zones with survivors; every other zone has new data, or none
  uint64_t mount_number = 0;                 // of the last mount that has begun with one; 0: none
};

using MetadataOp = std::variant<PutInode, AddLink, RemoveLink, RemoveInode, AppendExtents, CutFile, SetLogRegion,
                                SetLogRegions, SetAttributes, SetZoneGroups, MoveExtents, SetZoneHeats, PlaceExtents,
                                LogToData, SetDetails, BeginMount, SetTimes>;

// Returns the inode that `op` changes; 0 if it belongs to no inode.
InodeId InodeOf(const MetadataOp& op);

struct MetadataTables;

class MetadataState {
 public:
  // Makes a state that has a root directory and nothing else.
  explicit MetadataState(const DeviceGeometry& geometry);
  // Returns the state that consists of `inodes` (the root among them; in any order), with ids given out from `next_id`
  // on, and of `device`. kCorruption saying which invariant does not hold.
  static Result<MetadataState> Restore(const DeviceGeometry& geometry, std::vector<Inode> inodes, InodeId next_id,
                                       DeviceRecords device);
  MetadataState(MetadataState&&) noexcept;
  MetadataState& operator=(MetadataState&&) noexcept;
  ~MetadataState();

  // Applies all of `ops` or, with kCorruption saying which invariant of which inode would break, none. If they make the
  // state larger, `admit`, if there is one, is asked first whether encoded_size may become so many bytes; an error that
  // it answers is returned, and none is applied.
  using Admit = std::function<Status(uint64_t encoded_size)>;
  Status Apply(std::span<const MetadataOp> ops, const Admit& admit = {});
  // Returns the exact number of bytes that the records of a checkpoint of this state take. Apply keeps it up to date.
  uint64_t encoded_size() const;

  const Inode* Find(InodeId id) const;                                 // null: none
  const Inode* Child(InodeId directory, std::string_view name) const;  // null: none
  // Returns the inode at an absolute path; kNotFound, kNotDirectory.
  Result<const Inode*> Lookup(std::string_view path) const;
  // Returns the extents that files have in `zone`, by file, and those of each in file order. They come from an index
  // that Apply keeps up to date (zone_index.h).
  struct OwnedExtent {
    InodeId inode;
    FileExtent extent;
  };
  std::vector<OwnedExtent> ExtentsIn(ZoneId zone) const;
  // Returns the extents that one file has in `zone`.
  std::vector<FileExtent> ExtentsIn(ZoneId zone, InodeId inode) const;
  // Returns the bytes that each file and log has in `zone`, of which `write_pointer` bytes are written, frames of logs
  // with their headers and padding. Extents are counted packed: it takes time by how many files there are and how wide
  // their stripes are, not by how many extents they have.
  std::map<InodeId, uint64_t> BytesIn(ZoneId zone, uint64_t write_pointer) const;
  // Returns the bytes of one region. An open one goes on up to the write pointer of its zone, or to where the next
  // region begins.
  uint64_t BytesOf(const LogRegion& region, uint64_t write_pointer) const;
  // Returns the bytes that the extents of all files in `zone` take, each counted in whole blocks.
  uint64_t BlocksIn(ZoneId zone) const;
  // Returns the children of a directory, by name.
  const DirectoryTable& Children(InodeId directory) const;
  std::vector<std::string> PathsOf(InodeId id) const;
  // Returns the id that the next inode gets. Ids are never used again.
  InodeId NextId() const;
  size_t size() const;  // number of inodes
  const DeviceRecords& device() const;

  // Returns the inode with the smallest id above `after`, or null: so all of them can be walked in order.
  const Inode* Next(InodeId after) const;

  Status CheckInvariants() const;

  // --- Snapshots, so that a checkpoint can be written while changes go on ---
  // Begins a snapshot, which fixes the state of this moment. There is one at a time.
  void BeginSnapshot();
  // Returns up to `max` inodes of the fixed state, in any order, each once; none when all were given. Changes made in
  // between do not show: an inode is saved before its first change.
  std::vector<Inode> NextOfSnapshot(size_t max);
  void EndSnapshot();

 private:
  std::unique_ptr<MetadataTables> tables_;
};

}  // namespace isozone
