#include "store/gc/zone_copier.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "base/crc32c.h"
#include "base/latch.h"
#include "base/log.h"

namespace isozone {

CopyStats& CopyStats::operator+=(const CopyStats& other) {
  zones += other.zones;
  skipped_zones += other.skipped_zones;
  failed_zones += other.failed_zones;
  bytes_read += other.bytes_read;
  bytes_copied += other.bytes_copied;
  bytes_dropped += other.bytes_dropped;
  bytes_reclaimed += other.bytes_reclaimed;
  read_errors += other.read_errors;
  mismatches += other.mismatches;
  return *this;
}

// A segment of a victim, which is read into one piece of memory.
struct ZoneCopier::Segment {
  Victim* victim = nullptr;
  uint64_t offset = 0;  // bytes in the zone
  uint64_t length = 0;
  bool cold = false;
  std::vector<ByteRange> reads;  // places in the zone
  std::vector<GcRun> runs;       // in rising order
  std::vector<uint32_t> crcs;    // of the runs, as they were read

  AlignedBuffer memory;
  std::list<IoRequest> requests;  // a list, since their addresses must not change
  // Returns the bytes of a run in memory.
  std::span<std::byte> BytesOf(const GcRun& run, uint64_t zone_start) {
    return memory.span().subspan(run.from.value() - zone_start - offset, run.length);
  }
};

struct ZoneCopier::Victim {
  GcCandidate zone;
  uint64_t start = 0;           // device offset
  std::list<Segment> segments;  // the segments that were not read yet
  std::vector<GcMove> copies;   // of the segments that were read
  bool failed = false;
  bool Has(DeviceOffset offset) const { return offset.value() - start < zone.written; }  // wraps round below `start`
};

struct ZoneCopier::Window {
  std::vector<std::unique_ptr<Segment>> segments;
  Latch latch;  // counts all reads
};

namespace {

// Runs, and the memory from which they are written. There is one piece of memory for each segment.
struct Packed {
  AlignedBuffer memory;
  std::vector<GcBlocks::Piece> pieces;
};

ByteRange RangeOf(const GcRun& run, uint64_t zone_start) { return {run.from.value() - zone_start, run.length}; }

// Returns the part of `run` in [begin, end) of the zone. Its length is 0 if there is none.
GcRun Clip(const GcRun& run, uint64_t zone_start, uint64_t begin, uint64_t end) {
  const uint64_t from = std::max(run.from.value() - zone_start, begin);
  const uint64_t to = std::min(run.from.value() - zone_start + run.length, end);
  GcRun clipped = run;
  clipped.from = DeviceOffset(zone_start + from);
  clipped.length = to > from ? to - from : 0;
  return clipped;
}

// Returns the bytes of the whole blocks that a run takes if it is written by itself.
uint64_t FootprintOf(const GcRun& run, uint64_t block) {
  return InBlocks({run.from.value(), run.length}, block).length;
}

}  // namespace

bool ZoneCopier::Plan(const GcScheme& scheme, Victim& victim) const {
  const std::vector<GcRun> runs = files_.RunsIn(victim.zone.zone);
  if (runs.empty()) return false;
  if (options_.confined && !std::ranges::all_of(runs, &GcRun::table)) return false;
  std::vector<ByteRange> valid;
  for (const GcRun& run : runs) valid.push_back(RangeOf(run, victim.start));

  SegmentRules rules = options_.rules;
  rules.block_size = engine_.device().geometry().block_size;
  if (!scheme.reads_segments()) rules.group_blocks = UINT32_MAX;
  size_t first = 0;  // the first run that does not end before this segment
  for (SegmentPlan& plan : PlanSegments(valid, victim.zone.written, rules)) {
    Segment& segment = victim.segments.emplace_back();
    segment.victim = &victim;
    segment.offset = plan.offset;
    segment.length = plan.length;
    segment.cold = plan.cold;
    segment.reads = std::move(plan.reads);
    const uint64_t end = plan.offset + plan.length;
    while (first < runs.size() && RangeOf(runs[first], victim.start).end() <= plan.offset) ++first;
    for (size_t i = first; i < runs.size() && RangeOf(runs[i], victim.start).offset < end; ++i) {
      const GcRun clipped = Clip(runs[i], victim.start, plan.offset, end);
      if (clipped.length > 0) segment.runs.push_back(clipped);
    }
  }
  return true;
}

// Starts to read the next segment of each victim in turn, as many as a window takes. Returns null if there is none
// left.
std::unique_ptr<ZoneCopier::Window> ZoneCopier::StartReading(std::span<Victim> victims) {
  const size_t most = SegmentsOfWindow(options_.memory, options_.rules);
  auto window = std::make_unique<Window>();
  for (bool more = true; more && window->segments.size() < most;) {
    more = false;
    for (Victim& victim : victims) {
      if (victim.segments.empty() || victim.failed || window->segments.size() >= most) continue;
      window->segments.push_back(std::make_unique<Segment>(std::move(victim.segments.front())));
      victim.segments.pop_front();
      more = true;
    }
  }
  if (window->segments.empty()) return nullptr;

  for (const auto& segment : window->segments) {
    segment->memory = AlignedBuffer(segment->length);
    for (const ByteRange& range : segment->reads) {
      IoRequest& request = segment->requests.emplace_back();
      request.io_class = IoClass::kGc;
      window->latch.Expect(request);
      request.device.op = DeviceOp::kRead;
      request.device.offset = DeviceOffset(segment->victim->start + range.offset);
      request.device.data = segment->memory.data() + (range.offset - segment->offset);
      request.device.length = range.length;
    }
  }
  for (const auto& segment : window->segments) {
    for (IoRequest& request : segment->requests) engine_.Submit(request);
  }
  return window;
}

Status ZoneCopier::CopyWindow(Window& window, CopyStats& stats) {
  std::map<DataClass, std::vector<Segment*>> by_class;
  for (const auto& segment : window.segments) {
    Victim& victim = *segment->victim;
    for (IoRequest& request : segment->requests) {
      stats.bytes_read += request.device.length;
      const Status status = ToStatus(engine_.device().geometry(), request.device);
      if (status.ok()) continue;
      ++stats.read_errors;
      if (std::exchange(victim.failed, true)) continue;
      Log().warn("zone {} cannot be collected: {}", victim.zone.zone.value(), status.message());
    }
    if (victim.failed) continue;
    for (const GcRun& run : segment->runs) {
      segment->crcs.push_back(Crc32c(segment->BytesOf(run, victim.start)));
      auto& segments = by_class[run.data];
      if (segments.empty() || segments.back() != segment.get()) segments.push_back(segment.get());
    }
  }
  for (auto& [data, segments] : by_class) ISOZONE_RETURN_IF_ERROR(CopyClass(data, segments, stats));
  return Status::Ok();
}

Status ZoneCopier::CopyClass(DataClass data, std::span<Segment*> segments, CopyStats& stats) {
  const uint64_t block = engine_.device().geometry().block_size;
  std::list<Packed> packed;
  std::vector<GcBlocks> blocks;
  for (Segment* segment : segments) {
    uint64_t size = 0;
    for (const GcRun& run : segment->runs) size += run.data == data ? FootprintOf(run, block) : 0;
    Packed& chunk = packed.emplace_back();
    chunk.memory = AlignedBuffer(size);
    std::memset(chunk.memory.data(), 0, size);
    uint64_t at = 0;
    for (size_t i = 0; i < segment->runs.size(); ++i) {
      const GcRun& run = segment->runs[i];
      if (run.data != data) continue;
      // A run keeps its place in its block.
      const uint64_t offset = at + run.from.value() % block;
      const std::span<std::byte> copy = chunk.memory.span().subspan(offset, run.length);
      std::memcpy(copy.data(), segment->BytesOf(run, segment->victim->start).data(), run.length);
      at += FootprintOf(run, block);
      if (Crc32c(copy) != segment->crcs[i]) {
        Log().error("{} bytes of zone {} changed in memory while they were copied; they stay where they are",
                    run.length, segment->victim->zone.zone.value());
        ++stats.mismatches;
        segment->victim->failed = true;
        continue;
      }
      chunk.pieces.push_back({offset, run.length, run.file, run.from});
    }
    blocks.push_back({chunk.memory.span().first(size), chunk.pieces});
  }
  std::vector<GcMove> moves;
  const Status written = writer_->Write(blocks, data, moves);
  const std::vector<GcMove> bad = options_.verify ? Verify(blocks, moves, stats) : std::vector<GcMove>();
  std::set<Victim*> victims;
  for (Segment* segment : segments) victims.insert(segment->victim);
  for (Victim* victim : victims) {
    const auto of_it = [victim](const GcMove& move) { return victim->Has(move.from); };
    std::ranges::copy_if(moves, std::back_inserter(victim->copies), of_it);
    victim->failed |= std::ranges::any_of(bad, of_it);
  }
  return written;
}

std::vector<GcMove> ZoneCopier::Verify(std::span<const GcBlocks> written, std::span<const GcMove> moves,
                                       CopyStats& stats) {
  const uint64_t block = engine_.device().geometry().block_size;
  struct Check {
    AlignedBuffer memory;
    IoRequest request;
  };
  std::list<Check> checks;
  Latch latch;
  for (const GcMove& move : moves) {
    Check& check = checks.emplace_back();
    const ByteRange blocks = InBlocks({move.to.value(), move.length}, block);
    check.memory = AlignedBuffer(blocks.length);
    check.request.io_class = IoClass::kGc;
    latch.Expect(check.request);
    check.request.device.op = DeviceOp::kRead;
    check.request.device.offset = DeviceOffset(blocks.offset);
    check.request.device.data = check.memory.data();
    check.request.device.length = blocks.length;
    engine_.Submit(check.request);
  }
  latch.Wait();

  std::map<DeviceOffset, std::pair<const GcBlocks*, const GcBlocks::Piece*>> sources;
  for (const GcBlocks& blocks : written) {
    for (const GcBlocks::Piece& piece : blocks.pieces) sources[piece.from] = {&blocks, &piece};
  }
  std::vector<GcMove> bad;
  auto check = checks.begin();
  for (const GcMove& move : moves) {
    const auto& [blocks, piece] = std::prev(sources.upper_bound(move.from))->second;
    const std::byte* wanted = blocks->blocks.data() + piece->offset + (move.from.value() - piece->from.value());
    const bool same = check->request.device.status == DeviceStatus::kSuccess &&
                      std::memcmp(check->memory.data() + move.to.value() % block, wanted, move.length) == 0;
    ++check;
    if (same) continue;
    Log().error("a copy of {} bytes at device offset {} does not read back as it was written; it is given up",
                move.length, move.to.value());
    bad.push_back(move);
  }
  stats.mismatches += bad.size();
  return bad;
}

Status ZoneCopier::Settle(Victim& victim, const Status& so_far, CopyStats& stats, Left& left) {
  const bool whole = so_far.ok() && !victim.failed && victim.segments.empty();
  const bool in_part = options_.confined && so_far.Is(StatusCode::kNoSpace) && !victim.failed;
  Status status;
  GcFiles::Outcome outcome;
  if (!whole && !in_part) {
    files_.GiveUp(victim.copies);
  } else if (Result<GcFiles::Outcome> committed = files_.Commit(victim.copies); committed.ok()) {
    outcome = *committed;
  } else if (committed.status().Is(StatusCode::kNoSpace)) {
    // Metadata has no room to say where the data of this victim would lie. Other victims may need less.
    victim.failed = true;
  } else {
    status = committed.status();
  }
  stats.bytes_copied += outcome.moved;
  stats.bytes_dropped += outcome.dropped;
  if (victim.failed) {
    ++stats.failed_zones;
    left.failed.push_back(victim.zone.zone);
  } else if (whole && outcome.kept > 0) {
    ++stats.skipped_zones;
    left.skipped.push_back(victim.zone.zone);
  } else if (whole && status.ok()) {
    ++stats.zones;
    stats.bytes_reclaimed += victim.zone.written - victim.zone.valid;
  }
  zones_.LetGo(victim.zone.zone);
  return status;
}

std::vector<ZoneCopier::Victim> ZoneCopier::Take(std::span<const ZoneId> zones, const GcScheme& scheme,
                                                 CopyStats& stats, Left& left) {
  std::list<Victim> planned;
  for (const ZoneId zone : zones) {
    auto held = zones_.Hold(zone);
    if (held) {
      files_.CountBlocks({&*held, 1});
      if (held->valid >= held->written) {
        zones_.LetGo(zone);
        held.reset();
      }
    }
    if (!held) {
      left.skipped.push_back(zone);
      continue;
    }
    Victim& victim = planned.emplace_back();
    victim.zone = *held;
    victim.start = engine_.device().geometry().ZoneStart(zone).value();
    if (victim.zone.valid == 0 || Plan(scheme, victim)) continue;
    ++stats.skipped_zones;
    left.skipped.push_back(zone);
    zones_.LetGo(zone);
    planned.pop_back();
  }
  return {std::make_move_iterator(planned.begin()), std::make_move_iterator(planned.end())};
}

Status ZoneCopier::Copy(std::span<const ZoneId> zones, const GcScheme& scheme, const std::function<bool()>& pause,
                        CopyStats& stats, Left& left) {
  if (writer_ == nullptr) writer_ = files_.MakeWriter(options_.confined);
  std::vector<Victim> victims = Take(zones, scheme, stats, left);
  for (Victim& victim : victims) {
    for (Segment& segment : victim.segments) {
      segment.victim = &victim;
      for (GcRun& run : segment.runs) run.data.heat = scheme.Survivor(victim.zone.data.heat, segment.cold);
    }
  }
  bool ceased = false;
  Status status = CopyWindows(victims, pause, ceased, stats);
  for (Victim& victim : victims) {
    const Status settled = Settle(victim, status, stats, left);
    if (status.ok()) status = settled;
  }
  if (status.ok() && !ceased && !victims.empty()) pause();
  return status;
}

Status ZoneCopier::CopyWindows(std::span<Victim> victims, const std::function<bool()>& pause, bool& ceased,
                               CopyStats& stats) {
  Status status;
  std::unique_ptr<Window> window = StartReading(victims);
  while (window != nullptr) {
    window->latch.Wait();
    std::unique_ptr<Window> ahead = status.ok() && !ceased ? StartReading(victims) : nullptr;
    if (status.ok()) status = CopyWindow(*window, stats);
    if (status.ok() && !ceased) ceased = !pause();
    window = std::move(ahead);
  }
  return status;
}

}  // namespace isozone
