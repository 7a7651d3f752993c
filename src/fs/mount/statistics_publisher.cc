#include "fs/mount/statistics_publisher.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <system_error>

#include "base/log.h"

namespace isozone {
namespace {

// The capacity of the device in units of age, at most: so ages are as fine, and they count 256 times as far.
constexpr uint64_t kAgesOfDevice = PageZone::kAges / 256;

template <size_t kSize>
void PutText(const std::string& text, std::array<char, kSize>& field) {
  std::memcpy(field.data(), text.data(), std::min(text.size(), kSize - 1));
}

PageHeader HeaderOf(const MountContext& context) {
  const DeviceGeometry& geometry = context.geometry();
  const PageProcess self = PageProcess::Self();
  PageHeader header{};
  header.pid = self.pid;
  header.process_started = self.started;
  header.pid_namespace = self.pid_namespace;
  header.mounted_s = context.clock.NowWallS();
  header.mounted_ns = context.clock.NowNs();
  header.zone_count = geometry.zone_count;
  header.group_count = context.groups->count();
  header.groups_measured = context.groups->kind() == GroupIndex::Kind::kNotMeasured ? 0 : 1;
  header.block_size = geometry.block_size;
  header.max_open_zones = geometry.max_open_zones;
  header.max_active_zones = geometry.max_active_zones;
  header.zone_size = geometry.zone_size;
  header.zone_capacity = geometry.zone_capacity;
  header.age_unit = std::bit_ceil(std::max(kMiB, geometry.zone_count * geometry.zone_capacity / kAgesOfDevice));
  PutText(context.device->name(), header.device);
  PutText(context.uuid, header.uuid);
  PutText(context.label, header.label);
  PutText(context.options.policy, header.policy);
  PutText(context.options.GcScheme(), header.gc_scheme);
  PutText(self.program, header.program);
  return header;
}

// Copies `fine` to its place in the page; how many values it has.
uint64_t PutLatency(const Histogram& fine, int id, StatisticsWriter& page) {
  PageHistogram coarse;
  Coarsen(fine, coarse);
  page.SetLatency(id, coarse);
  uint64_t count = 0;
  for (const uint64_t in_bucket : coarse.buckets) count += in_bucket;
  return count;
}

void PutEngine(const IoEngine& engine, StatisticsWriter& page, PageFigures& figures) {
  for (int i = 0; i < kIoClassCount; ++i) {
    const IoClassCounters& counters = engine.counters(static_cast<IoClass>(i));
    PageClass& c = figures.by_class[static_cast<size_t>(i)];
    c.bytes_read = counters.bytes_read.load(std::memory_order_relaxed);
    c.bytes_written = counters.bytes_written.load(std::memory_order_relaxed);
    c.reads = PutLatency(counters.read_latency_ns, i, page);
    c.writes = PutLatency(counters.write_latency_ns, kIoClassCount + i, page);
  }
  PutLatency(engine.gap_waits(), static_cast<int>(PageHistogramId::kWriteGapWait), page);
  for (uint32_t group = 0; group < engine.group_count(); ++group) {
    const IoEngine::Queue queue = engine.QueueOf(group);
    page.SetGroup(group, queue.at_device, queue.waiting);
  }
  for (size_t i = 0; i < RecentReads::kPlaces; ++i) page.SetRead(i, engine.recent_reads().At(i));
}

void PutCollection(const GcStats& gc, PageFigures& figures) {
  figures.gc_rounds = gc.rounds;
  figures.gc_zones = gc.copies.zones;
  figures.gc_skipped = gc.copies.skipped_zones;
  figures.gc_failed = gc.copies.failed_zones;
  figures.gc_bytes_read = gc.copies.bytes_read;
  figures.gc_bytes_copied = gc.copies.bytes_copied;
  figures.gc_bytes_dropped = gc.copies.bytes_dropped;
  figures.gc_bytes_reclaimed = gc.copies.bytes_reclaimed;
  figures.gc_read_errors = gc.copies.read_errors;
  figures.gc_mismatches = gc.copies.mismatches;
  figures.gc_urgency_ppm = static_cast<uint64_t>(std::clamp(gc.urgency, 0.0, 1.0) * 1e6);
  figures.gc_working = gc.working ? 1 : 0;
  figures.gc_round_copied = gc.round_copied;
  figures.gc_round_to_copy = gc.round_to_copy;
}

void PutMetadata(const Journal& journal, PageFigures& figures) {
  const JournalStats stats = journal.Stats();
  figures.journal_commits = stats.commits;
  figures.journal_bytes = stats.bytes;
  figures.checkpoints = stats.checkpoints;
  figures.read_only = journal.status().ok() ? 0 : 1;
  figures.metadata_copies = journal.Copies().size();
  figures.metadata_copies_wanted = journal.copies_wanted();
}

void PutDevice(const PatientDevice& device, PageFigures& figures) {
  const DeviceCounters counters = device.counters();
  figures.host_bytes_read = counters.host_bytes_read;
  figures.host_bytes_written = counters.host_bytes_written;
  figures.media_bytes_written = counters.media_bytes_written;
  figures.device_resets = counters.resets;
  figures.device_finishes = counters.finishes;
  figures.refused_writes = device.stats().refusals;
}

}  // namespace

std::unique_ptr<PublishedPage> MakeStatisticsPage(const MountContext& context) {
  const auto owner = PageOwner::Of(context.device->name());
  if (!owner.ok()) return nullptr;
  auto page = PublishedPage::Make(*owner, HeaderOf(context));
  if (page.ok()) return std::move(page).value();
  Log().warn("{}; nobody can see the statistics of this mount", page.status().message());
  return nullptr;
}

StatisticsPublisher::StatisticsPublisher(MountContext& context)
    : context_(context), page_(context.statistics_page->writer()) {
  Publish();
  const Status named = context_.statistics_page->Publish();
  if (!named.ok()) Log().warn("{}; nobody can see the statistics of this mount", named.message());
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    Log().warn("no thread can be had that publishes statistics, which stay as they are now: {}", error.what());
  }
}

void StatisticsPublisher::Stop() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (!thread_.joinable()) return;
  thread_.join();
  Publish();
}

void StatisticsPublisher::Run() {
  const MutexLock lock(mu_);
  while (!stopping_) {
    const int64_t until_ns = context_.clock.NowNs() + kFiguresIntervalNs;
    context_.clock.WaitUntil(wake_, mu_, until_ns);
    if (stopping_ || context_.clock.NowNs() < until_ns) continue;
    const MutexUnlock unlock(mu_);
    Publish();
  }
}

void StatisticsPublisher::Publish() {
  PageFigures figures{};
  figures.taken_ns = context_.clock.NowNs();
  figures.taken_s = context_.clock.NowWallS();
  PutEngine(context_.engine, page_, figures);
  const ZoneStatistics& zones = context_.pool->statistics();
  zones.Fill(figures);
  PutLatency(zones.zone_waits(), static_cast<int>(PageHistogramId::kZoneWait), page_);
  PutLatency(zones.pace_waits(), static_cast<int>(PageHistogramId::kPaceWait), page_);
  PutCollection(context_.collector->Stats(), figures);
  PutMetadata(*context_.journal, figures);
  PutDevice(*context_.device, figures);
  figures.user_bytes_appended = context_.user_bytes_appended.load(std::memory_order_relaxed);
  figures.syncs = context_.syncs.load(std::memory_order_relaxed);
  figures.write_retries = context_.write_retries.load(std::memory_order_relaxed);
  page_.Publish(figures);
  TellEvents(figures);
}

void StatisticsPublisher::TellEvents(const PageFigures& figures) {
  const auto rise = [&](uint64_t PageFigures::*figure) { return figures.*figure - last_.*figure; };
  if (rise(&PageFigures::gc_rounds) > 0) {
    page_.AddEvent(PageEventKind::kCollection, ZoneId(0), figures.taken_ns, rise(&PageFigures::gc_zones),
                   rise(&PageFigures::gc_bytes_copied), rise(&PageFigures::gc_bytes_reclaimed));
  }
  if (rise(&PageFigures::checkpoints) > 0) {
    page_.AddEvent(PageEventKind::kCheckpoint, ZoneId(0), figures.taken_ns, figures.journal_bytes);
  }
  if (rise(&PageFigures::read_only) > 0) page_.AddMessage(context_.journal->status().message(), figures.taken_s);
  last_ = figures;
}

}  // namespace isozone
