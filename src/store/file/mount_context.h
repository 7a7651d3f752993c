// MountContext: what the parts of a mounted file system share, the device and its queue, zones, metadata and journal.
//
// Locks, in the order in which they may be taken: a writer's own mutex, then namespace_mutex, then those inside the
// pool, the journal and the open files. None of them is held across device I/O but a writer's "one write at a time".
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "insight/stats/published_page.h"
#include "store/file/open_file.h"
#include "store/file/open_writers.h"
#include "store/file/read_ahead_memory.h"
#include "store/file_system.h"
#include "store/gc/collector.h"
#include "store/io/buffer_pool.h"
#include "store/io/io_engine.h"
#include "store/io/patient_device.h"
#include "store/kept/kept_memory.h"
#include "store/metadata/journal.h"
#include "store/metadata/metadata.h"
#include "store/space/space_claim.h"
#include "store/space/zone_pool.h"

namespace isozone {

class Unpublished;

// What files count, for statistics.
struct FileCounters {
  std::atomic<uint64_t> user_bytes_appended{0};
  std::atomic<uint64_t> syncs{0};
  std::atomic<uint64_t> write_retries{0};
  std::atomic<uint64_t> in_place_writes{0};
  std::atomic<uint64_t> in_place_bytes{0};
};

struct MountContext : FileCounters {
  // `parallel`: of the placement policy. `clock` outlives this.
  MountContext(std::unique_ptr<ZonedDevice> device, MountOptions options, std::string label, std::string uuid,
               MetadataState state, bool parallel, Clock& clock);
  ~MountContext();

  // Applies `ops` to the state and puts them into the journal, as one: all of them survive a power cut, or none.
  // Returns the sequence to Sync. kReadOnly with the reason where nothing can be changed; kNoSpace where there is none
  // for the metadata.
  Result<uint64_t> Commit(std::span<const MetadataOp> ops) ISOZONE_REQUIRES(namespace_mutex);

  // The time that a record of `inode` gives it, which is written in the background perhaps: now, unless somebody has
  // set it meanwhile.
  uint64_t TimeOf(const Inode& inode) ISOZONE_REQUIRES(namespace_mutex);

  // The open file of `id`, or null.
  std::shared_ptr<OpenFile> FindOpen(InodeId id) ISOZONE_REQUIRES(namespace_mutex);

  // A handle has let go of `file` (moved in); with the last one goes the file's claim on what only handles referred to.
  void Release(std::shared_ptr<OpenFile> file) ISOZONE_EXCLUDES(namespace_mutex);

  // `space` is of the file `id`, and the metadata does not name it. While handles are open, which may be reading it, it
  // is theirs; else it goes.
  void LeaveToHandles(InodeId id, SpaceClaim space) ISOZONE_REQUIRES(namespace_mutex);

  bool read_only() const { return journal == nullptr; }
  // Makes every change of the metadata that was made before durable.
  Status SyncMetadata() ISOZONE_EXCLUDES(namespace_mutex) {
    return read_only() ? Status::Ok() : journal->Sync(journal->last_sequence());
  }

  // A kill takes no change of a name or of attributes any more that was made before. Waits for the device only where
  // there is no room for their records in kept memory.
  Status KeepNames() ISOZONE_EXCLUDES(namespace_mutex) {
    return read_only() ? Status::Ok() : journal->Keep(last_name_change.load(std::memory_order_acquire));
  }

  const DeviceGeometry& geometry() const { return device->geometry(); }

  // Goes after the device, whose threads wake it.
  OpenWriters writers;
  const std::unique_ptr<PatientDevice> device;
  const MountOptions options;
  const std::string label;
  const std::string uuid;
  const uint32_t frame_seed;
  const bool parallel;  // the placement policy's
  const std::shared_ptr<const GroupIndex> groups;
  Clock& clock;
  // Set at mount, never changed; above all that tell it something. Null when read-only.
  std::unique_ptr<PublishedPage> statistics_page;
  // What the device does not have yet, in memory that outlives the process. Set at mount, never changed. Null: there is
  // none.
  std::unique_ptr<KeptMemory> kept;
  // There should be kept memory and is none: a flush of a log writes to the device instead.
  bool writes_through = false;
  IoEngine engine;
  BufferPool buffers;
  ReadAheadMemory read_ahead;

  Mutex namespace_mutex;
  MetadataState state ISOZONE_GUARDED_BY(namespace_mutex);
  std::unordered_map<InodeId, std::weak_ptr<OpenFile>> open_files ISOZONE_GUARDED_BY(namespace_mutex);

  // What open files have on the device and the journal does not know yet, by serial number. They come and go under the
  // lock; each has its own for what it holds.
  std::map<uint64_t, Unpublished*> unpublished ISOZONE_GUARDED_BY(namespace_mutex);
  uint64_t next_unpublished ISOZONE_GUARDED_BY(namespace_mutex) = 0;

  std::unique_ptr<ZonePool> pool;  // set at mount, never changed; above all claims, which go before it

  // Logs of which regions are open though nobody writes them: they could not be read when mounting, or not be closed.
  // Until they are, or the log is removed, what is claimed here keeps the zones from being reset.
  std::unordered_map<InodeId, SpaceClaim> unread_logs ISOZONE_GUARDED_BY(namespace_mutex);
  // What the collector has copied: until the metadata names it, or it is given up.
  SpaceClaim copies ISOZONE_GUARDED_BY(namespace_mutex);

  std::unique_ptr<Journal> journal;  // set at mount, never changed; null when read-only

  // Set at mount, never changed: what the collector works on, and the collector, which runs by itself where the mount
  std::unique_ptr<GcFiles> collected_files;
  std::unique_ptr<Collector> collector;

  // The sequence of the last change of a name or of attributes: what a Sync makes durable beside the data.
  std::atomic<uint64_t> last_name_change{0};
};

// Of each extent or sealed region.
std::vector<ZoneBytes> SpaceOf(const DeviceGeometry& geometry, std::span<const FileExtent> extents);
std::vector<ZoneBytes> SpaceOfList(const DeviceGeometry& geometry, const ExtentList& extents);
std::vector<ZoneBytes> SpaceOf(const DeviceGeometry& geometry, const Inode& inode);
std::vector<ZoneBytes> SpaceOf(std::span<const LogRegion> regions);
// The zones of extents and of all regions, in order, each once.
std::vector<ZoneId> ZonesOf(const DeviceGeometry& geometry, const Inode& inode);

}  // namespace isozone
