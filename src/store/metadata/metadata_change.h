// MetadataChange: one record on its way into the tables. It happens as a whole, or not at all.
//
// Each operation checks what it is about to do, does it, and pushes its inverse. Unless all of the record was kept, the
// destructor runs the inverses backwards: after an operation that was refused, a link count that is wrong at the end of
// the record, or a caller that changes its mind. So an operation costs what it changes: adding an extent to a file of
// 100,000 does not touch the others.
//
// The bytes of a checkpoint are the one thing that inverses leave alone: they are set back at once.
//
// Thread safety: that of the tables.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "store/metadata/metadata.h"
#include "store/metadata/metadata_tables.h"

namespace isozone {

class MetadataChange {
 public:
  // `tables` must outlive this, and nobody else may change them meanwhile.
  explicit MetadataChange(MetadataTables& tables) : tables_(tables), size_before_(tables.encoded_size) {}
  MetadataChange(const MetadataChange&) = delete;
  MetadataChange& operator=(const MetadataChange&) = delete;
  // Undoes what was done, unless it was kept.
  ~MetadataChange();

  // Does all of a record. May be called once. kCorruption says which invariant of which inode would break.
  Status Do(std::span<const MetadataOp> ops);
  // Returns whether a checkpoint takes more bytes than before.
  bool grows() const { return tables_.encoded_size > size_before_; }
  void Keep() {
    undo_.clear();
    kept_ = true;
  }

 private:
  Status Do(const PutInode& op);
  Status Do(const AddLink& op);
  Status Do(const RemoveLink& op);
  Status Do(const RemoveInode& op);
  Status Do(const AppendExtents& op);
  Status Do(const CutFile& op);
  Status Do(const SetLogRegion& op);
  Status Do(const SetLogRegions& op);
  Status Do(const SetAttributes& op);
  Status Do(const SetZoneGroups& op);
  Status Do(const MoveExtents& op);
  Status Do(const SetZoneHeats& op);
  Status Do(const PlaceExtents& op);
  Status Do(const LogToData& op);
  Status Do(const SetDetails& op);
  Status Do(const BeginMount& op);
  Status Do(const SetTimes& op);

  // Returns the inode, which is about to change; null if there is none.
  Inode* Change(InodeId id);
  Result<Inode*> ChangeFile(InodeId id, bool log);
  void SaveForSnapshot(InodeId id, const Inode* before);
  Status CheckNewLink(const Inode& inode, const InodeLink& link) const;
  // Checks the link counts of all inodes whose links the record has changed.
  Status CheckLinkCounts() const;

  // Returns where the moved runs of a file lie from now on, in file order.
  Result<std::vector<FileExtent>> Place(const Inode& inode, std::span<const ExtentMove> moves) const;
  // Places the ranges `placed`, which are in file order and do not overlap, where they say.
  void PlaceAt(Inode& inode, std::span<const FileExtent> placed);
  // Replaces what the file has behind its first `size` bytes by `more`; it must have at least so many. Returns the
  // extents that it had there, from the beginning of an extent on.
  ExtentList ReplaceEnd(Inode& inode, uint64_t size, const ExtentList& more);
  // Replaces what the file has in the range of `now`, where extents begin and end, by `now`.
  void ReplacePart(Inode& inode, std::span<const FileExtent> now);
  // Brings the tables up to date: the extents of `inode` that begin in [from, to) of the file were `before`.
  void NoteReplaced(Inode& inode, const ExtentList& before, uint64_t from, uint64_t to);
  // Add what the inode, which is new, has to the index of zones; and remove it before the inode goes.
  void LearnPlaces(Inode& inode);
  void ForgetPlaces(const Inode& inode);

  void SetHeat(ZoneId zone, ZoneHeat heat);
  // Forgets the heats of zones that the record has left without data.
  void ForgetHeats();

  MetadataTables& tables_;
  const uint64_t size_before_;  // bytes of a checkpoint
  bool kept_ = false;
  std::vector<std::function<void()>> undo_;
  std::vector<InodeId> relinked_;  // inodes whose links changed
  std::vector<ZoneId> emptied_;    // zones that were without data at some time
};

}  // namespace isozone
