// DataPath: what the bytes of files pass on their way to the device and back. It has the device and the queue in front
// of it, the memory of writers and readers, and the pool of zones in which the bytes come to lie. It does not interpret
// names or metadata: these are the catalog's (catalog.h).
//
// Lifetime: the data path outlives the catalog, whose claims are on zones of the pool, and whose journal uses the
// device, the pool and the kept memory. The threads of the writers and of the pool call the journal and the collector.
// So they are stopped before these go (MountedFileSystem::Unmount).
//
// Thread safety: any thread. The fields that are set at mount do not change once FileSystem::Mount has returned, and no
// handle reads them before.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "store/file/open_writers.h"
#include "store/file/read_ahead_memory.h"
#include "store/io/buffer_pool.h"
#include "store/io/io_engine.h"
#include "store/io/patient_device.h"
#include "store/kept/kept_memory.h"
#include "store/mount_options.h"
#include "store/space/zone_pool.h"

namespace isozone {

// What files count, for statistics.
struct FileCounters {
  std::atomic<uint64_t> user_bytes_appended{0};
  std::atomic<uint64_t> syncs{0};
  std::atomic<uint64_t> write_retries{0};
  std::atomic<uint64_t> in_place_writes{0};
  std::atomic<uint64_t> in_place_bytes{0};
};

struct DataPath : FileCounters {
  // The checksums of frames of logs and of units of kept memory start from `frame_seed`. `parallel` is
  // PlacementPolicy::parallel. `groups` are the zone groups of the device, null where they are not known; they are used
  // only if `parallel`. `clock` outlives this.
  DataPath(std::unique_ptr<ZonedDevice> device, const MountOptions& options, uint32_t frame_seed, bool parallel,
           const ZoneGroups* groups, Clock& clock);

  const DeviceGeometry& geometry() const { return device->geometry(); }

  // Outlives the device, whose threads wake the thread of the writers.
  OpenWriters writers;
  const std::unique_ptr<PatientDevice> device;
  const MountOptions options;
  const uint32_t frame_seed;
  const bool parallel;
  const std::shared_ptr<const GroupIndex> groups;
  Clock& clock;
  // What the device does not have yet, in memory that outlives the process. Set at mount, never changed. Null: there is
  // none.
  std::unique_ptr<KeptMemory> kept;
  // Kept memory was asked for, and no later mount would find any: a flush of a log writes to the device instead. Set at
  // mount.
  bool writes_through = false;
  IoEngine engine;
  BufferPool buffers;
  ReadAheadMemory read_ahead;
  std::unique_ptr<ZonePool> pool;  // set at mount, never changed
};

}  // namespace isozone
