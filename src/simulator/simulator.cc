#include "simulator/simulator.h"

#include <algorithm>
#include <utility>

#include "device/emulated/device_options.h"

namespace isozone {
namespace {

constexpr uint64_t kEventsBetweenLooks = 4'096;

// All that takes space or ends it.
uint64_t BytesMoved(const SimReport& report, const MergeModel& model) {
  return report.put_bytes + report.gc_read_bytes + report.compaction_read_bytes + model.flushed_bytes() +
         model.compacted_bytes();
}

}  // namespace

Result<std::unique_ptr<Simulator>> Simulator::Create(SimOptions options) {
  ISOZONE_RETURN_IF_ERROR(CheckSimOptions(options));
  ISOZONE_ASSIGN_OR_RETURN(auto picker, MakeCompactionPicker(options.tree.picker));
  ISOZONE_ASSIGN_OR_RETURN(auto scheme, MakeGcScheme(options.device.gc, options.device.gc_start));
  const bool collects = scheme->automatic() && scheme->writers_wait();
  std::unique_ptr<Simulator> simulator(new Simulator(std::move(options), std::move(picker), std::move(scheme)));
  ISOZONE_RETURN_IF_ERROR(simulator->MakeZones(collects));
  return simulator;
}

Simulator::Simulator(SimOptions options, std::unique_ptr<CompactionPicker> picker,
                     std::shared_ptr<const GcScheme> scheme)
    : world_(std::move(options), std::move(picker)), collector_(world_, std::move(scheme)) {}

Status Simulator::MakeZones(bool collects) {
  const SimDevice& device = world_.options.device;
  VirtualZones::Options zones;
  zones.policy = device.policy;
  zones.geometry = GeometryOf(device.profile);
  zones.stripe_width = device.stripe_width;
  zones.collects = collects;
  zones.want_space = [this] { collector_.Wake(); };
  zones.want_pace = [this] { collector_.Hurry(); };
  ISOZONE_ASSIGN_OR_RETURN(world_.zones, VirtualZones::Create(world_.loop, world_.times, std::move(zones)));
  world_.model.Observe({}, [this](const LsmFile& file) { world_.zones->RemoveFile(file.number); });
  return {};
}

Result<SimReport> Simulator::Run(const Progress& progress) {
  puts_ = std::make_unique<PutStream>(world_);
  const SimTree& tree = world_.options.tree;
  for (uint32_t i = 0; i < tree.flush_workers; ++i) workers_.push_back(std::make_unique<FlushWorker>(world_));
  for (uint32_t i = 0; i < tree.compaction_workers; ++i) workers_.push_back(std::make_unique<CompactionWorker>(world_));
  for (const auto& worker : workers_) world_.loop.CallAt(0, *worker);
  world_.loop.CallAt(0, *puts_);
  collector_.Start();
  for (uint64_t events = 0; !IsOver(); ++events) {
    if (!world_.loop.RunNext()) return Status::NoSpace("nothing goes on: every writer waits for another");
    if (!world_.error.ok()) return world_.error;
    SampleIfDue();
    if (events % kEventsBetweenLooks != 0) continue;
    ISOZONE_RETURN_IF_ERROR(CheckStandstill());
    const uint64_t total = puts_->workload().total_records() * world_.options.load.record_bytes;
    if (progress) progress(world_.report.put_bytes, total);
  }
  Complete();
  return world_.report;
}

bool Simulator::IsOver() const { return world_.puts_ended && world_.is_idle(); }

Status Simulator::CheckStandstill() {
  const uint64_t moved_bytes = BytesMoved(world_.report, world_.model);
  const int64_t now_ns = world_.loop.now_ns();
  if (std::exchange(moved_bytes_, moved_bytes) != moved_bytes) moved_at_ns_ = now_ns;
  if (now_ns - moved_at_ns_ < kStandstillNs) return {};
  return Status::NoSpace(
      "nothing was written for an hour of virtual time: compaction and writers wait for each other; "
      "simulate a larger device or higher triggers of level 0");
}

void Simulator::SampleIfDue() {
  const Workload& load = puts_->workload();
  const uint64_t due = (world_.report.samples.size() + 1) * load.total_records() / kSamples;
  if (load.done_records() < due || world_.report.samples.size() == kSamples) return;
  world_.report.samples.push_back(Sample());
}

SimSample Simulator::Sample() const {
  const ZoneTable& table = world_.zones->ledger().table;
  SimSample sample;
  sample.time_ns = world_.loop.now_ns();
  sample.put_bytes = world_.report.put_bytes;
  sample.copied_bytes = world_.report.copied_bytes;
  sample.compaction_bytes = world_.model.compacted_bytes();
  sample.free_percent = world_.zones->allocator().collection().Space().free_percent();
  for (uint32_t i = 0; i < table.size(); ++i) {
    const ZoneRecord& zone = table.at(ZoneId(i));
    if (zone.write_pointer == 0) continue;
    ++sample.zones_in_use;
    const uint64_t tenth = zone.live * sample.zones.size() / zone.capacity;
    ++sample.zones[std::min<uint64_t>(tenth, sample.zones.size() - 1)];
  }
  return sample;
}

void Simulator::Complete() {
  SimReport& report = world_.report;
  const MergeModel& model = world_.model;
  report.settled_ns = world_.loop.now_ns();
  report.live_bytes = puts_->workload().live_records() * world_.options.load.record_bytes;
  report.flush_bytes = model.flushed_bytes();
  report.compaction_bytes = model.compacted_bytes();
  report.short_lived_bytes = model.short_lived_bytes();
  report.moved_files = model.trivial_moves();
  report.media_bytes = world_.times.media().written;
  report.dummy_bytes = world_.times.media().dummy;
  report.resets = world_.zones->ledger().stats.resets;
  report.finishes = world_.zones->ledger().stats.finishes;
  for (int level = 0; level < model.tree().limits().levels(); ++level) {
    report.files += model.tree().files(level).size();
    report.file_bytes += model.tree().bytes(level);
  }
  report.zones = world_.zones->geometry().zone_count;
  report.zone_capacity = world_.zones->geometry().zone_capacity;
  report.end = Sample();
  report.zones_in_use_most = report.end.zones_in_use;
  for (const SimSample& sample : report.samples) {
    report.zones_in_use_most = std::max(report.zones_in_use_most, sample.zones_in_use);
  }
}

}  // namespace isozone
