#include "store/mount/statistics_at_rest.h"

#include "device/izg/group_index.h"
#include "store/mount/figure_sources.h"

namespace isozone {
namespace {

ZonePhase PhaseAtRest(ZoneState state) {
  switch (state) {
    case ZoneState::kEmpty:
      return ZonePhase::kEmpty;
    case ZoneState::kFull:
      return ZonePhase::kFull;
    case ZoneState::kReadOnly:
      return ZonePhase::kRetired;
    case ZoneState::kOffline:
      return ZonePhase::kOffline;
    default:
      return ZonePhase::kIdle;
  }
}

PageZone ZoneAtRest(const ZoneView& view, uint32_t group, uint32_t block_size) {
  ZoneRecord record;
  record.phase = PhaseAtRest(view.device.state);
  record.use = view.use;
  record.data = DataClass(view.lifetime, view.level, view.heat);
  record.live = view.live;
  record.write_pointer = view.device.write_pointer;
  return PageZoneOf(record, static_cast<uint16_t>(group), block_size, 1);
}

}  // namespace

Statistics StatisticsAtRest(const FileSystem& fs, const Clock& clock) {
  const FileSystemState& state = fs.state();
  const DeviceGeometry& geometry = state.device().geometry();
  Statistics statistics;
  statistics.life = PageLife::kUnmounted;
  statistics.read_ns = clock.NowNs();
  statistics.device = state.device().name();
  statistics.uuid = state.uuid();
  statistics.label = state.label();
  statistics.policy = state.options().policy;
  statistics.gc_scheme = state.options().GcScheme();
  statistics.block_size = geometry.block_size;
  statistics.zone_size = geometry.zone_size;
  statistics.zone_capacity = geometry.zone_capacity;
  statistics.max_open_zones = geometry.max_open_zones;
  statistics.max_active_zones = geometry.max_active_zones;
  statistics.age_unit = 1;
  const MetadataCopies copies = state.Metadata();
  const FileCounters none;
  FigureSources sources(none);
  sources.space = state.Space();
  sources.device = state.device().counters();
  sources.metadata = {copies.whole.size(), copies.wanted, /*failed=*/false};
  static_cast<Figures&>(statistics.figures) = FiguresOf(sources);
  statistics.figures.taken_ns = statistics.read_ns;
  statistics.figures.taken_s = clock.NowWallS();
  const auto groups = fs.groups().Get();
  const GroupIndex index(geometry.zone_count, groups.get());
  statistics.groups_measured = groups != nullptr;
  statistics.groups.resize(index.count());
  for (const ZoneView& view : state.Zones()) {
    statistics.zones.push_back(ZoneAtRest(view, index.of(view.device.zone), geometry.block_size));
  }
  return statistics;
}

}  // namespace isozone
