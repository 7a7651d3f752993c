// FigureSources: what the parts of a mount count, under the names that figures.def has for its sources.
#pragma once

#include <cstdint>

#include "device/zoned_device.h"
#include "fs/file/mount_context.h"
#include "fs/file_system.h"
#include "fs/kept/kept_memory.h"
#include "fs/metadata/journal.h"
#include "fs/space/zone_statistics.h"
#include "gc/collector.h"
#include "io/patient_device.h"
#include "stats/figures.h"

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

// The figures that figures.def lists with a source; no others.
Figures FiguresOf(const FigureSources& sources);
// These, and those of the classes of I/O.
Figures FiguresOf(const MountContext& context);

}  // namespace isozone
