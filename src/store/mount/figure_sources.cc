#include "store/mount/figure_sources.h"

#include <algorithm>

namespace isozone {
namespace {

// A figure as a word of the page.
template <typename Count>
uint64_t Word(const Count& count) {
  return static_cast<uint64_t>(count);
}
uint64_t Word(const double& share) { return static_cast<uint64_t>(std::clamp(share, 0.0, 1.0) * 1e6); }

}  // namespace

FigureSources::FigureSources(const MountContext& context) : files(context) {
  if (context.journal != nullptr) {
    journal = context.journal->Stats();
    metadata = {context.journal->Copies().size(), context.journal->copies_wanted(), !context.journal->status().ok()};
  }
  const ZonePoolStats pool = context.pool->Stats();
  zones = pool;
  space = pool.space;
  active = pool.active;
  gc = context.collector->Stats();
  device = context.device->counters();
  patience = context.device->stats();
  if (context.kept != nullptr) kept = context.kept->Stats();
}

Figures FiguresOf(const FigureSources& sources) {
  Figures figures;
#define ISOZONE_FIGURE(name, source, ...) figures.name = Word(sources.source);
#define ISOZONE_PAGE_FIGURE(...)
#include "insight/stats/figures.def"
#undef ISOZONE_FIGURE
#undef ISOZONE_PAGE_FIGURE
  return figures;
}

Figures FiguresOf(const MountContext& context, const FigureSources& sources) {
  Figures figures = FiguresOf(sources);
  for (int i = 0; i < kIoClassCount; ++i) {
    const IoClassCounters& counters = context.engine.counters(static_cast<IoClass>(i));
    figures.by_class[static_cast<size_t>(i)] = {Word(counters.bytes_read), Word(counters.bytes_written),
                                                counters.read_latency_ns.Count(), counters.write_latency_ns.Count()};
  }
  return figures;
}

}  // namespace isozone
