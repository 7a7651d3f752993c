// Unpublished: extents of a file that are on the device and that the journal does not know yet. They were either
// appended (pending_extents.h) or written in place (in_place_writes.h), and the file publishes them at Sync and Close.
// A file that is neither synced nor closed for a long time, such as RocksDB's info log, would keep zones that nobody
// can account for. So the collector publishes those extents of such files that lie in the zone that it wants to empty.
//
//   added      [ published: in the inode | flushed | not flushed ]
//                                         ^ PublishZone takes no more than what was there before its flush
//
// Invariant: no metadata record refers to bytes that a power cut could take. So whoever publishes has flushed the
// device after the extents were added.
//
// Locks: the namespace mutex before the one in here. Neither is held across device I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/status.h"
#include "store/file/catalog.h"
#include "store/io/io_engine.h"

namespace isozone {

class Unpublished {
 public:
  Unpublished(const Unpublished&) = delete;
  Unpublished& operator=(const Unpublished&) = delete;

  // Publishes, for all open files, what they had in `zone` when this was called, after one flush of the device
  // by `engine`.
  static Status PublishZone(Catalog& catalog, IoEngine& engine, ZoneId zone);

 protected:
  // `id` is the file. `catalog` must outlive this.
  Unpublished(Catalog& catalog, InodeId id) : catalog_(catalog), id_(id) {}
  ~Unpublished() = default;

  // Shows this to the collector until Unregister, which must come before anything of this goes.
  void Register() ISOZONE_EXCLUDES(catalog_.namespace_mutex);
  void Unregister() ISOZONE_REQUIRES(catalog_.namespace_mutex);

  Catalog& catalog_;
  const InodeId id_;

  mutable Mutex mu_;
  SpaceClaim space_ ISOZONE_GUARDED_BY(mu_);    // on what is not published
  uint64_t added_ ISOZONE_GUARDED_BY(mu_) = 0;  // bytes ever appended, or number of writes in place

 private:
  // Returns whether anything that is not published lies in `zone`.
  virtual bool LiesIn(ZoneId zone) const ISOZONE_REQUIRES(mu_) = 0;
  // Publishes what is not published yet of the first `flushed` that were added. The file must have a name. `catalog` is
  // catalog_.
  virtual Status PublishFlushed(Catalog& catalog, uint64_t flushed) ISOZONE_REQUIRES(catalog.namespace_mutex, mu_) = 0;

  std::optional<uint64_t> serial_;  // in Catalog::unpublished
};

}  // namespace isozone
