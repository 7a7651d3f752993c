// FigureSources: what the parts of a mount count, under the names by which figures.def refers to them.
#pragma once

#include <array>
#include <cstdint>

#include "device/zoned_device.h"
#include "insight/stats/figures.h"
#include "insight/stats/page_layout.h"
#include "store/file_system.h"
#include "store/gc/collector.h"
#include "store/io/patient_device.h"
#include "store/kept/kept_memory.h"
#include "store/metadata/journal.h"
#include "store/mount/mount_context.h"
#include "store/space/zone_pool.h"

namespace isozone {

struct MetadataHealth {
  uint64_t whole = 0;  // copies
  uint64_t wanted = 0;
  bool failed = false;  // a failed write has ended all writing
};

struct FigureSources {
  explicit FigureSources(const FileCounters& counters) : files(counters) {}
  explicit FigureSources(const MountContext& context);

  const FileCounters& files;
  JournalStats journal;
  MetadataHealth metadata;
  AllocatorStats zones;
  SpaceInfo space;
  ActiveZones active;
  GcStats gc;
  DeviceCounters device;
  RefusalStats patience;
  KeptMemoryStats kept;
};

// Returns the figures that figures.def lists with a source, and no others.
Figures FiguresOf(const FigureSources& sources);
// Returns these, and the figures of the classes of I/O of `data_path`.
Figures FiguresOf(const DataPath& data_path, const FigureSources& sources);

// Returns the histograms of a mount, by PageHistogramId, in the buckets of a page.
std::array<PageHistogram, kHistograms> HistogramsOf(const DataPath& data_path);

}  // namespace isozone
