// MountContext: the parts of one mount. They are its label and UUID, its data path (DataPath), what it knows of its
// files (Catalog), the collector, which works on both, and the page of statistics.
//
// Lifetime: as long as the file system or any of its handles. Thread safety: that of the parts.
#pragma once

#include <memory>
#include <string>

#include "insight/stats/published_page.h"
#include "store/file/catalog.h"
#include "store/file/data_path.h"
#include "store/gc/collector.h"
#include "store/gc/gc_store.h"

namespace isozone {

struct MountContext {
  // `parallel` is PlacementPolicy::parallel. `clock` outlives this.
  MountContext(std::unique_ptr<ZonedDevice> device, const MountOptions& options, std::string label, std::string uuid,
               MetadataState state, bool parallel, Clock& clock);

  const std::string label;
  const std::string uuid;
  // Outlives the parts below, which write to it. Set at mount, never changed. Null when read-only.
  std::unique_ptr<PublishedPage> statistics_page;
  DataPath data_path;
  Catalog catalog;

  // Set at mount, never changed: what the collector works on, and the collector, which runs by itself where the mount
  // is not read-only.
  std::unique_ptr<GcFiles> collected_files;
  std::unique_ptr<Collector> collector;
};

}  // namespace isozone
