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
  // `tables` outlives it, and nobody else changes them meanwhile.
  explicit MetadataChange(MetadataTables& tables) : tables_(tables), size_before_(tables.encoded_size) {}
  MetadataChange(const MetadataChange&) = delete;
  MetadataChange& operator=(const MetadataChange&) = delete;
  // Takes back what was done, unless it was kept.
  ~MetadataChange();

  // Does all of a record, once. kCorruption saying which invariant of which inode would break.
  Status Do(std::span<const MetadataOp> ops);
  // A checkpoint takes more bytes than before.
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

  // The inode, about to change; null: none.
  Inode* Change(InodeId id);
  Result<Inode*> ChangeFile(InodeId id, bool log);
  void SetAside(InodeId id, const Inode* before);
  Status CheckNewLink(const Inode& inode, const InodeLink& link) const;
  // Of all inodes whose links the record has changed.
  Status CheckLinkCounts() const;

  // Where the moved runs of a file are from now on, in file order.
  Result<std::vector<FileExtent>> Place(const Inode& inode, std::span<const ExtentMove> moves) const;
  // The ranges `placed`, in file order and apart, lie there from now on.
  void PlaceAt(Inode& inode, std::span<const FileExtent> placed);
  // Behind its first `size` bytes, of which it has as many, it has `more` and nothing else. Returns what it had there,
  // from the beginning of an extent on.
  ExtentList ReplaceEnd(Inode& inode, uint64_t size, const ExtentList& more);
  // What it has in the range of `now`, where extents begin and end, becomes `now`.
  void ReplacePart(Inode& inode, std::span<const FileExtent> now);
  // The tables learn that the extents of `inode` that begin in [from, to) of the file were `before`.
  void NoteReplaced(Inode& inode, const ExtentList& before, uint64_t from, uint64_t to);
  // The zones learn what the inode has, which is new; and forget it, before the inode goes.
  void LearnPlaces(Inode& inode);
  void ForgetPlaces(const Inode& inode);

  void SetHeat(ZoneId zone, ZoneHeat heat);
  // Of the zones that the record has left without data.
  void ForgetHeats();

  MetadataTables& tables_;
  const uint64_t size_before_;  // bytes of a checkpoint
  bool kept_ = false;
  std::vector<std::function<void()>> undo_;
  std::vector<InodeId> relinked_;  // inodes whose links changed
  std::vector<ZoneId> emptied_;    // zones that were without data at some time
};

}  // namespace isozone
