// PendingExtents: what a file has on the device and the journal does not know yet. A file's sink adds to it as its
// writes end, and publishes it at Sync and Close. A file that is neither synced nor closed for a long time, as
// RocksDB's info log, would keep zones that nobody can account for; so the collector publishes for such files what lies
// in the zone that it wants to empty.
//
//   added      [ published: in the inode | flushed | not flushed ]
//                                         ^ PublishFlushed takes no more than what was there before its flush
//
// Invariant: no metadata record refers to bytes that a power cut could take. So whoever publishes has flushed the
// device since what he publishes was added.
//
// Locks: the namespace mutex before the one in here. Neither is held across device I/O.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "store/file/mount_context.h"

namespace isozone {

class PendingExtents {
 public:
  // Known to the collector from here on. `context` outlives this.
  PendingExtents(MountContext& context, InodeId id, DataClass data);
  // Space that the journal never learnt of is left to the handles of the file.
  ~PendingExtents();
  PendingExtents(const PendingExtents&) = delete;
  PendingExtents& operator=(const PendingExtents&) = delete;

  // The file goes on in `extents`, which are written; `space` is the claim on them.
  void Add(std::span<const FileExtent> extents, SpaceClaim space);
  // Of what is published from here on.
  void SetDataClass(DataClass data);
  // Tells the journal of all that was added; the caller has flushed it. Returns what to sync so that it is durable.
  // Where the file was removed, its space is left to its handles.
  Result<uint64_t> Publish();

  // Publishes, for all open files, what they had in `zone` when this was called, after a flush of the device.
  static Status PublishZone(MountContext& context, ZoneId zone);

 private:
  // The first `bytes` of what is pending. `context` is context_.
  Status PublishFirst(MountContext& context, uint64_t bytes) ISOZONE_REQUIRES(context.namespace_mutex, mu_);
  bool LiesIn(ZoneId zone) const ISOZONE_REQUIRES(mu_);

  MountContext& context_;
  const InodeId id_;
  uint64_t serial_ = 0;  // in MountContext::pending; set by the constructor

  Mutex mu_;
  DataClass data_ ISOZONE_GUARDED_BY(mu_);
  std::vector<FileExtent> extents_ ISOZONE_GUARDED_BY(mu_);  // in file order
  SpaceClaim space_ ISOZONE_GUARDED_BY(mu_);                 // of extents_
  uint64_t added_ ISOZONE_GUARDED_BY(mu_) = 0;               // bytes, ever
  uint64_t taken_ ISOZONE_GUARDED_BY(mu_) = 0;               // bytes of these that are no longer in extents_
};

}  // namespace isozone
