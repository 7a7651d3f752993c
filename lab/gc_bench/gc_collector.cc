#include "gc_bench/gc_collector.h"

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "store/zone/gc_scheme.h"

namespace isozone::cli {
namespace {

struct PlannedRead {
  ByteRange range;  // of the victim
  ZoneHeat heat = ZoneHeat::kC0;
};

class Collection {
 public:
  Collection(GcVolume& volume, const CollectOptions& options, const std::function<void(uint64_t)>& progress)
      : volume_(volume), options_(options), progress_(progress), io_(volume.device()) {
    rules_ = options.rules;
    rules_.block_size = volume.block_size();
    rules_.request_size = volume.MaxTransfer(rules_.request_size);
  }

  Result<CollectResult> Run() {
    result_.before = HistogramOf(volume_.map());
    const int64_t start_ns = MonotonicNs();
    while (true) {
      ISOZONE_RETURN_IF_ERROR(StartWhatCan());
      if (io_.in_flight() == 0) break;
      ISOZONE_RETURN_IF_ERROR(io_.RunOne());
    }
    if (!victims_.empty()) return Status::NoSpace("no zone is free for survivors");
    result_.seconds = static_cast<double>(MonotonicNs() - start_ns) / kSecondNs;
    result_.depth_max = io_.in_flight_max();
    result_.after = HistogramOf(volume_.map());
    return result_;
  }

 private:
  struct Read {
    AlignedBuffer data;
    GcVictim* victim = nullptr;
    PlannedRead planned;
    uint64_t consumed = 0;  // bytes
    bool completed = false;
  };

  // Starts writes first, because they make room.
  Status StartWhatCan() {
    bool progress = true;
    while (progress) {
      progress = SubmitWrites();
      progress = SubmitResets() || progress;
      progress = Consume() || progress;
      progress = SubmitRead() || progress;
      if (!progress && WantsVictim()) {
        ISOZONE_RETURN_IF_ERROR(BeginVictim());
        progress = true;
      }
    }
    return Status::Ok();
  }

  bool MayStart() const { return io_.in_flight() < options_.depth; }

  // Victims.

  bool WantsVictim() const {
    return next_read_ == plan_.size() && result_.blocks_reclaimed < options_.reclaim_blocks &&
           victims_.size() < GcVolume::kPendingVictims;
  }

  Status BeginVictim() {
    GcMap& map = volume_.map();
    const auto zone = ChooseVictim();
    if (!zone || map.valid(*zone) == map.blocks_per_zone()) {
      return Status::NoSpace(fmt::format("only {} of {} blocks can be reclaimed: every full zone is valid throughout",
                                         result_.blocks_reclaimed, options_.reclaim_blocks));
    }
    map.TakeVictim(*zone);
    GcVictim& victim = *victims_.emplace_back(std::make_unique<GcVictim>());
    victim.zone = *zone;
    result_.blocks_reclaimed += map.blocks_per_zone() - map.valid(*zone);
    result_.blocks_copied += map.valid(*zone);
    plan_ = PlanOf(*zone);
    next_read_ = 0;
    if (plan_.empty()) EndReads(victim);
    if (progress_) progress_(result_.blocks_reclaimed);
    return Status::Ok();
  }

  std::optional<uint32_t> ChooseVictim() const {
    if (options_.scheme != CollectScheme::kIsozone) return volume_.map().LeastUtilised();
    const std::vector<ZoneId> order = isozone_->Order(volume_.map().Candidates());
    return order.empty() ? std::nullopt : std::optional(order.front().value());
  }

  std::vector<PlannedRead> PlanOf(uint32_t zone) const {
    const GcMap& map = volume_.map();
    const std::vector<ByteRange> valid = RangesOf(map.bitmap(zone), volume_.block_size());
    std::vector<PlannedRead> plan;
    if (options_.scheme != CollectScheme::kLsmZgc) {
      const ZoneHeat heat = HeatOfSurvivors(map.heat(zone));
      for (const ByteRange& range : PlanRuns(valid, rules_)) plan.push_back({range, heat});
      return plan;
    }
    const uint64_t written = map.written(zone) * volume_.block_size();
    for (const SegmentPlan& segment : PlanSegments(valid, written, rules_)) {
      const ZoneHeat heat = SurvivorHeat(map.heat(zone), segment.cold);
      for (const ByteRange& range : segment.reads) plan.push_back({range, heat});
    }
    return plan;
  }

  // Of a victim whose survivors all go to one zone.
  ZoneHeat HeatOfSurvivors(ZoneHeat victim) const {
    if (options_.scheme == CollectScheme::kIsozone) return isozone_->Survivor(victim, /*cold_segment=*/true);
    return options_.mix_survivors ? kNewDataHeat : ZoneHeat::kC2;
  }

  // All reads of `victim` are consumed, so its last survivors in buffers are written.
  void EndReads(GcVictim& victim) {
    victim.all_read = true;
    for (const auto& writer : writers_) {
      if (writer) writer->Flush();
    }
    if (victim.unwritten == 0) NoteEmpty(victim);
  }

  void NoteEmpty(GcVictim& victim) {
    if (victim.all_read) empty_.push_back(&victim);
  }

  bool SubmitResets() {
    if (empty_.empty() || !MayStart()) return false;
    GcVictim& victim = *empty_.front();
    empty_.pop_front();
    volume_.map().BeginReset(victim.zone);
    io_.Submit(DeviceOp::kReset, volume_.OffsetOf(victim.zone, 0), nullptr, 0, [this, &victim] {
      volume_.map().EndReset(victim.zone);
      ++result_.zones_reset;
      std::erase_if(victims_, [&](const auto& one) { return one.get() == &victim; });
    });
    return true;
  }

  // Reads.

  bool SubmitRead() {
    if (next_read_ == plan_.size() || reads_.size() >= options_.depth || !MayStart()) return false;
    Read& read = *reads_.emplace_back(TakeRead());
    read.victim = victims_.back().get();
    read.planned = plan_[next_read_++];
    read.consumed = 0;
    read.completed = false;
    const uint64_t first = read.planned.range.offset / volume_.block_size();
    const uint64_t length = read.planned.range.length;
    io_.Submit(DeviceOp::kRead, volume_.OffsetOf(read.victim->zone, first), read.data.data(), length,
               [&read] { read.completed = true; });
    ++result_.reads;
    result_.bytes_read += length;
    return true;
  }

  std::unique_ptr<Read> TakeRead() {
    if (idle_reads_.empty()) {
      idle_reads_.push_back(std::make_unique<Read>());
      idle_reads_.back()->data = AlignedBuffer(rules_.request_size);
    }
    std::unique_ptr<Read> read = std::move(idle_reads_.back());
    idle_reads_.pop_back();
    return read;
  }

  // Merges: moves the valid blocks of completed reads to their destinations, in order.
  bool Consume() {
    bool any = false;
    while (!reads_.empty() && reads_.front()->completed && ConsumeRead(*reads_.front())) {
      any = true;
      GcVictim& victim = *reads_.front()->victim;
      idle_reads_.push_back(std::move(reads_.front()));
      reads_.pop_front();
      const bool more_of_it = !reads_.empty() && reads_.front()->victim == &victim;
      const bool more_planned = next_read_ < plan_.size() && victims_.back().get() == &victim;
      if (!more_of_it && !more_planned) EndReads(victim);
    }
    return any;
  }

  // Returns false if a destination has no room yet.
  bool ConsumeRead(Read& read) {
    const uint64_t size = volume_.block_size();
    StreamWriter& writer = WriterOf(read.planned.heat);
    const uint32_t zone = read.victim->zone;
    for (; read.consumed < read.planned.range.length; read.consumed += size) {
      const auto block = static_cast<uint32_t>((read.planned.range.offset + read.consumed) / size);
      if (!volume_.map().IsValid(zone, block)) continue;
      while (!writer.CanAdd()) {
        if (!SubmitWrites()) return false;
      }
      const std::span<std::byte> place = writer.Add(volume_.map().logical(zone, block), read.victim);
      std::memcpy(place.data(), read.data.data() + read.consumed, size);
    }
    return true;
  }

  // Writes.

  StreamWriter& WriterOf(ZoneHeat heat) {
    std::unique_ptr<StreamWriter>& writer = writers_[static_cast<size_t>(heat)];
    if (!writer) {
      writer = std::make_unique<StreamWriter>(volume_, io_, heat, rules_.request_size,
                                              [this](GcVictim& victim) { NoteEmpty(victim); });
    }
    return *writer;
  }

  bool SubmitWrites() {
    bool any = false;
    for (const auto& writer : writers_) {
      if (!writer || !MayStart() || !writer->SubmitWrite()) continue;
      ++result_.writes;
      any = true;
    }
    return any;
  }

  GcVolume& volume_;
  const CollectOptions& options_;
  const std::function<void(uint64_t)>& progress_;
  const std::unique_ptr<GcScheme> isozone_ = std::move(*MakeGcScheme("isozone", {}));
  SegmentRules rules_;
  CollectResult result_;

  std::vector<std::unique_ptr<GcVictim>> victims_;  // not reset yet; plan_ belongs to the last one
  std::deque<GcVictim*> empty_;                     // to be reset
  std::vector<PlannedRead> plan_;
  size_t next_read_ = 0;                                                    // in plan_
  std::deque<std::unique_ptr<Read>> reads_;                                 // submitted and not consumed, in order
  std::vector<std::unique_ptr<Read>> idle_reads_;                           // kept for their buffers
  std::array<std::unique_ptr<StreamWriter>, kZoneHeatCount> writers_ = {};  // by heat
  IoQueue io_;  // last: its destructor waits for commands that use all of the above
};

}  // namespace

std::string_view CollectSchemeName(CollectScheme scheme) {
  constexpr std::array<std::string_view, 3> kNames = {"basic", "lsm-zgc", "isozone"};
  return kNames[static_cast<size_t>(scheme)];
}

Result<CollectResult> Collect(GcVolume& volume, const CollectOptions& options,
                              const std::function<void(uint64_t)>& progress) {
  return Collection(volume, options, progress).Run();
}

}  // namespace isozone::cli
