// Catalog: what a mount knows of its files. The metadata state has their names, attributes and places, and the journal
// makes each change of it survive. The catalog also has the open files, and these claims on space that the metadata
// does not name (space_claim.h lists all holders of claims):
//
//   Unpublished::space_   extents that were appended or written in place, and that the journal does not know yet
//   OpenFile::unnamed     what only handles refer to: the file has lost its last name, or the journal never learnt of
//                         these bytes
//   unread_logs           what an open region of a log holds that nobody writes any more
//   copies                what the collector has copied, until the metadata names it or the copies are given up
//
// Locks, in the order in which they may be taken: a writer's own mutex, then namespace_mutex, then those inside the
// pool, the journal and the open files. None of them is held across device I/O but a writer's "one write at a time".
//
// Thread safety: any thread. `pool` and `journal` are set at mount, before a handle exists.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "store/file/open_file.h"
#include "store/file_system.h"
#include "store/metadata/journal.h"
#include "store/metadata/metadata.h"
#include "store/space/space_claim.h"

namespace isozone {

class Unpublished;
class ZonePool;

struct Catalog {
  // `geometry` is of the device, which does not change while it is open. `clock` outlives this.
  Catalog(const DeviceGeometry& geometry, MetadataState state, Clock& clock);
  ~Catalog();

  // Applies `ops` to the state and puts them into the journal, as one: all of them survive a power cut, or none.
  // Returns the sequence to Sync. kReadOnly with the reason where nothing can be changed; kNoSpace where there is none
  // for the metadata.
  Result<uint64_t> Commit(std::span<const MetadataOp> ops) ISOZONE_REQUIRES(namespace_mutex);

  // Returns the time of modification that goes into a record of `inode`, which may be written long after the data:
  // now, unless somebody has set the time since the last write.
  uint64_t TimeOf(const Inode& inode) ISOZONE_REQUIRES(namespace_mutex);

  // Returns the attributes of an inode as of now: the size of an open file is what a reader can read.
  FileAttributes AttributesOf(const Inode& inode) ISOZONE_REQUIRES(namespace_mutex);

  // Returns the open file of `id`, or null.
  std::shared_ptr<OpenFile> FindOpen(InodeId id) ISOZONE_REQUIRES(namespace_mutex);

  // Notes that a handle has let go of `file` (moved in). With the last handle goes the file's claim on what only
  // handles referred to.
  void Release(std::shared_ptr<OpenFile> file) ISOZONE_EXCLUDES(namespace_mutex);

  // Gives `space` of the file `id`, which the metadata does not name, to the open handles of the file, since they may
  // be reading it. Frees it where there are none.
  void LeaveToHandles(InodeId id, SpaceClaim space) ISOZONE_REQUIRES(namespace_mutex);

  // Returns whether the mount is read-only.
  bool read_only() const { return journal == nullptr; }
  // Makes every change of the metadata that was made before durable.
  Status SyncMetadata() ISOZONE_EXCLUDES(namespace_mutex) {
    return read_only() ? Status::Ok() : journal->Sync(journal->last_sequence());
  }

  // Makes every change of names and attributes that was made before survive the end of the process. Waits for the
  // device only where there is no room for the records in kept memory.
  Status KeepNames() ISOZONE_EXCLUDES(namespace_mutex) {
    return read_only() ? Status::Ok() : journal->Keep(last_name_change.load(std::memory_order_acquire));
  }

  const DeviceGeometry geometry;
  Clock& clock;
  ZonePool* pool = nullptr;  // of the data path; set at mount, never changed

  Mutex namespace_mutex;
  MetadataState state ISOZONE_GUARDED_BY(namespace_mutex);
  std::unordered_map<InodeId, std::weak_ptr<OpenFile>> open_files ISOZONE_GUARDED_BY(namespace_mutex);

  // The Unpublished of open files, by serial number. They are added and removed under namespace_mutex; each has a mutex
  // of its own for what it holds.
  std::map<uint64_t, Unpublished*> unpublished ISOZONE_GUARDED_BY(namespace_mutex);
  uint64_t next_unpublished ISOZONE_GUARDED_BY(namespace_mutex) = 0;
  // Logs of which regions are open though nobody writes them: they could not be read when mounting, or not be closed.
  // Until they are, or the log is removed, what is claimed here keeps the zones from being reset.
  std::unordered_map<InodeId, SpaceClaim> unread_logs ISOZONE_GUARDED_BY(namespace_mutex);
  // The claim on what the collector has copied.
  SpaceClaim copies ISOZONE_GUARDED_BY(namespace_mutex);

  std::unique_ptr<Journal> journal;  // set at mount, never changed; null when read-only

  // The sequence of the last change of a name or of attributes: what a Sync makes durable beside the data.
  std::atomic<uint64_t> last_name_change{0};
};

}  // namespace isozone
