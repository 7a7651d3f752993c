#include "store/mount/figure_sources.h"

#include <algorithm>

#include "insight/stats/page_writer.h"

namespace isozone {
namespace {

// A figure as a word of the page.
template <typename Count>
uint64_t Word(const Count& count) {
  return static_cast<uint64_t>(count);
}
uint64_t Word(const double& share) { return static_cast<uint64_t>(std::clamp(share, 0.0, 1.0) * 1e6); }

}  // namespace

FigureSources::FigureSources(const MountContext& context) : files(context.data_path) {
  if (context.catalog.journal != nullptr) {
    journal = context.catalog.journal->Stats();
    metadata = {context.catalog.journal->Copies().size(), context.catalog.journal->copies_wanted(),
                !context.catalog.journal->status().ok()};
  }
  const ZonePoolStats pool = context.data_path.pool->Stats();
  zones = pool;
  space = pool.space;
  active = pool.active;
  gc = context.collector->Stats();
  device = context.data_path.device->counters();
  patience = context.data_path.device->stats();
  if (context.data_path.kept != nullptr) kept = context.data_path.kept->Stats();
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

Figures FiguresOf(const DataPath& data_path, const FigureSources& sources) {
  Figures figures = FiguresOf(sources);
  for (int i = 0; i < kIoClassCount; ++i) {
    const IoClassCounters& counters = data_path.engine.counters(static_cast<IoClass>(i));
    figures.by_class[static_cast<size_t>(i)] = {Word(counters.bytes_read), Word(counters.bytes_written),
                                                counters.read_latency_ns.Count(), counters.write_latency_ns.Count()};
  }
  return figures;
}

std::array<PageHistogram, kHistograms> HistogramsOf(const DataPath& data_path) {
  std::array<PageHistogram, kHistograms> histograms;
  const auto put = [&](const Histogram& fine, PageHistogramId first, int behind = 0) {
    Coarsen(fine, histograms[static_cast<size_t>(first) + static_cast<size_t>(behind)]);
  };
  for (int i = 0; i < kIoClassCount; ++i) {
    const IoClassCounters& counters = data_path.engine.counters(static_cast<IoClass>(i));
    put(counters.read_latency_ns, PageHistogramId::kReads, i);
    put(counters.write_latency_ns, PageHistogramId::kWrites, i);
  }
  const ZonePoolHistograms& zones = data_path.pool->histograms();
  put(zones.wait_ns, PageHistogramId::kZoneWait);
  put(data_path.engine.gap_waits(), PageHistogramId::kWriteGapWait);
  put(zones.pace_ns, PageHistogramId::kPaceWait);
  for (int i = 0; i < kLifetimeCount; ++i) {
    put(zones.deletion_delays.Of(static_cast<Lifetime>(i)), PageHistogramId::kDeletionDelay, i);
  }
  return histograms;
}

}  // namespace isozone
