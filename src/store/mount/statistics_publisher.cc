#include "store/mount/statistics_publisher.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/thread.h"
#include "store/mount/figure_sources.h"

namespace isozone {
namespace {

// The capacity of the device in units of age, at most: so ages are as fine, and they count 256 times as far.
constexpr uint64_t kAgesOfDevice = PageZone::kAges / 256;

template <size_t kSize>
void PutText(const std::string& text, std::array<char, kSize>& field) {
  std::memcpy(field.data(), text.data(), std::min(text.size(), kSize - 1));
}

PageHeader HeaderOf(const MountContext& context) {
  const DeviceGeometry& geometry = context.data_path.geometry();
  const PageProcess self = PageProcess::Self();
  PageHeader header{};
  header.pid = self.pid;
  header.process_started = self.started;
  header.pid_namespace = self.pid_namespace;
  header.mounted_s = context.data_path.clock.NowWallS();
  header.mounted_ns = context.data_path.clock.NowNs();
  header.zone_count = geometry.zone_count;
  header.group_count = context.data_path.groups->count();
  header.groups_measured = context.data_path.groups->kind() == GroupIndex::Kind::kNotMeasured ? 0 : 1;
  header.block_size = geometry.block_size;
  header.max_open_zones = geometry.max_open_zones;
  header.max_active_zones = geometry.max_active_zones;
  header.zone_size = geometry.zone_size;
  header.zone_capacity = geometry.zone_capacity;
  header.age_unit = std::bit_ceil(std::max(kMiB, geometry.zone_count * geometry.zone_capacity / kAgesOfDevice));
  PutText(context.data_path.device->name(), header.device);
  PutText(context.uuid, header.uuid);
  PutText(context.label, header.label);
  PutText(context.data_path.options.policy, header.policy);
  PutText(context.data_path.options.GcScheme(), header.gc_scheme);
  PutText(self.program, header.program);
  return header;
}

void PutQueues(const IoEngine& engine, StatisticsWriter& page) {
  for (uint32_t group = 0; group < engine.group_count(); ++group) {
    const IoEngine::Queue queue = engine.QueueOf(group);
    page.SetGroup(group, queue.at_device, queue.waiting);
  }
  for (size_t i = 0; i < RecentReads::kPlaces; ++i) page.SetRead(i, engine.recent_reads().At(i));
}

}  // namespace

Result<std::unique_ptr<PublishedPage>> MakeStatisticsPage(const MountContext& context) {
  const PageHeader header = HeaderOf(context);
  if (const auto owner = PageOwner::Of(context.data_path.device->name()); owner.ok()) {
    auto page = PublishedPage::Make(*owner, header);
    if (page.ok()) return page;
    Log().warn("{}; nobody else can see the statistics of this mount", page.status().message());
  }
  return PublishedPage::MakePrivate(header);
}

StatisticsPublisher::StatisticsPublisher(MountContext& context)
    : context_(context), page_(context.statistics_page->writer()) {
  {
    const MutexLock lock(publishing_);
    Publish();
  }
  const Status named = context_.statistics_page->Publish();
  if (!named.ok()) Log().warn("{}; nobody else can see the statistics of this mount", named.message());
  if (auto thread = StartThread("statistics", [this] { Run(); }); thread.ok()) {
    thread_ = std::move(thread).value();
  } else {
    Log().warn("{}; they stay as they are now", thread.status().message());
  }
}

void StatisticsPublisher::Stop() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  const MutexLock lock(publishing_);
  if (!finished_) Publish();
  finished_ = true;
}

Result<Statistics> StatisticsPublisher::Look() {
  const MutexLock lock(publishing_);
  if (!finished_) Publish();
  return context_.statistics_page->Read();
}

void StatisticsPublisher::Run() {
  const MutexLock lock(mu_);
  while (!stopping_) {
    const int64_t until_ns = context_.data_path.clock.NowNs() + kFiguresIntervalNs;
    context_.data_path.clock.WaitUntil(wake_, mu_, until_ns);
    if (stopping_ || context_.data_path.clock.NowNs() < until_ns) continue;
    const MutexUnlock unlock(mu_);
    const MutexLock lock(publishing_);
    Publish();
  }
}

void StatisticsPublisher::Publish() {
  PageFigures figures;
  figures.taken_ns = context_.data_path.clock.NowNs();
  figures.taken_s = context_.data_path.clock.NowWallS();
  static_cast<Figures&>(figures) = FiguresOf(context_.data_path, FigureSources(context_));
  PutQueues(context_.data_path.engine, page_);
  const auto histograms = HistogramsOf(context_.data_path);
  for (int i = 0; i < kHistograms; ++i) page_.SetLatency(i, histograms[static_cast<size_t>(i)]);
  page_.Publish(figures);
  TellEvents(figures);
}

void StatisticsPublisher::TellEvents(const PageFigures& figures) {
  const auto rise = [&](uint64_t Figures::*figure) { return figures.*figure - last_.*figure; };
  if (rise(&Figures::gc_rounds) > 0) {
    page_.AddEvent(PageEventKind::kCollection, ZoneId(0), figures.taken_ns, rise(&Figures::gc_zones),
                   rise(&Figures::gc_bytes_copied), rise(&Figures::gc_bytes_reclaimed));
  }
  if (rise(&Figures::checkpoints) > 0) {
    page_.AddEvent(PageEventKind::kCheckpoint, ZoneId(0), figures.taken_ns, figures.journal_bytes);
  }
  if (rise(&Figures::read_only) > 0) page_.AddMessage(context_.catalog.journal->status().message(), figures.taken_s);
  last_ = figures;
}

}  // namespace isozone
