#include "simulator/virtual_collector.h"

#include <algorithm>
#include <utility>

namespace isozone {
namespace {

using StepKind = CollectorStep::Kind;

SegmentRules RulesOf(const SimDevice& device, const GcScheme& scheme) {
  SegmentRules rules;
  rules.block_size = device.profile.block_size;
  if (!scheme.reads_segments()) rules.group_blocks = UINT32_MAX;
  return rules;
}

}  // namespace

VirtualCollector::VirtualCollector(SimWorld& world, std::shared_ptr<const GcScheme> scheme)
    : world_(world),
      scheme_(std::move(scheme)),
      rules_(RulesOf(world.options.device, *scheme_)),
      window_segments_(SegmentsOfWindow(world.options.device.gc_memory, rules_)),
      state_(scheme_, window_segments_) {}

void VirtualCollector::Start() {
  state_.Start();
  ZoneAllocator& allocator = world_.zones->allocator();
  allocator.ledger().reset_at_once = scheme_->resets_at_once();
  allocator.collection().ThrottleBelow([this](const GcSpace& space) { return scheme_->ThrottleBelow(space); });
  allocator.ledger().rounds.Attach(state_.attached());
  Proceed();
}

void VirtualCollector::Wake() {
  state_.Wake();
  world_.loop.CallAt(world_.loop.now_ns(), *this);
}

void VirtualCollector::Hurry() {
  state_.Hurry();
  world_.loop.CallAt(world_.loop.now_ns(), *this);
}

bool VirtualCollector::WaitUntil(int64_t time_ns) {
  if (time_ns <= world_.loop.now_ns()) return false;
  world_.loop.CallAt(time_ns, *this);
  return true;
}

void VirtualCollector::Proceed() {
  bool goes_on = true;
  while (goes_on) {
    switch (mode_) {
      case Mode::kBetweenRounds:
        goes_on = BetweenRounds();
        break;
      case Mode::kInRound:
        goes_on = InRound();
        break;
      case Mode::kReading:
        goes_on = Read();
        break;
      case Mode::kWriting:
        goes_on = Write();
        break;
      case Mode::kVerifying:
        goes_on = Verify();
        break;
    }
  }
}

// --- Rounds ---

bool VirtualCollector::BetweenRounds() {
  const CollectorStep step = state_.Next(world_.loop.now_ns());
  if (step.kind == StepKind::kWait) {
    world_.loop.CallAt(step.until_ns, *this);
    return false;
  }
  if (step.kind == StepKind::kLook) {
    state_.Consider(world_.zones->allocator().collection().Space());
  } else {
    world_.zones->allocator().ledger().rounds.Begin();
    mode_ = Mode::kInRound;
  }
  return true;
}

bool VirtualCollector::InRound() {
  ZoneAllocator& allocator = world_.zones->allocator();
  const CollectorStep step = state_.NextInRound(world_.loop.now_ns());
  switch (step.kind) {
    case StepKind::kLook:
      state_.SpaceIs(allocator.collection().Space(), world_.loop.now_ns());
      break;
    case StepKind::kList:
      state_.CandidatesAre(allocator.collection().Candidates());
      break;
    case StepKind::kResetDead:
      allocator.upkeep().AskForDead();
      world_.zones->NoteWork();
      break;
    case StepKind::kCopy:
      BeginBatch(step.victims);
      break;
    case StepKind::kRest:
      world_.loop.CallAt(step.until_ns, *this);
      return false;
    case StepKind::kGoOn:
      GoOn();
      break;
    case StepKind::kCease:
      EndBatch();
      break;
    case StepKind::kEnd:
    case StepKind::kWait:
    case StepKind::kBegin:
    case StepKind::kQuit:
      EndRound(step.gained);
      break;
  }
  return true;
}

void VirtualCollector::EndRound(bool gained) {
  writer_.reset();
  world_.zones->allocator().ledger().rounds.End(gained);
  state_.EndRound();
  mode_ = Mode::kBetweenRounds;
  world_.zones->NoteWork();
  world_.loop.Ring(world_.zones->changed());
}

// --- Batches ---

void VirtualCollector::BeginBatch(std::span<const ZoneId> zones) {
  ZoneCollection& collection = world_.zones->allocator().collection();
  victims_.clear();
  skipped_.clear();
  reclaimed_ = 0;
  settled_ = false;
  error_ = false;
  for (const ZoneId zone : zones) {
    const auto held = collection.Begin(zone);
    if (!held) {
      skipped_.push_back(zone);
      continue;
    }
    victims_.push_back({.zone = *held});
    Plan(victims_.back(), victims_.size() - 1);
  }
  window_ = StartReading();
  if (victims_.empty()) {
    EndBatch();
  } else {
    GoOn();
  }
}

void VirtualCollector::Plan(Victim& victim, size_t index) {
  const ZoneId zone = victim.zone.zone;
  const auto pieces = world_.zones->pieces(zone);
  std::vector<ByteRange> valid;
  for (const ZonePiece& piece : pieces) valid.push_back({piece.offset, piece.length});
  auto piece = pieces.begin();
  for (const SegmentPlan& plan : PlanSegments(valid, victim.zone.written, rules_)) {
    Segment& segment = victim.segments.emplace_back();
    for (const ByteRange& range : plan.reads) segment.read_bytes += range.length;
    for (const ByteRange& range : plan.valid) {
      while (piece->end() <= range.offset) ++piece;
      DataClass data = world_.zones->file(piece->file).data;
      data.heat = scheme_->Survivor(victim.zone.data.heat, plan.cold);
      segment.copies.push_back({index, piece->file, {zone, range.offset, range.length}, data});
    }
  }
}

// The next segment of each victim in turn, as many as a window takes. None: all was read.
std::optional<VirtualCollector::Window> VirtualCollector::StartReading() {
  Window window;
  size_t segments = 0;
  for (bool more = true; more && segments < window_segments_;) {
    more = false;
    for (Victim& victim : victims_) {
      if (victim.segments.empty() || segments >= window_segments_) continue;
      const Segment segment = std::move(victim.segments.front());
      victim.segments.pop_front();
      ++segments;
      more = true;
      world_.report.gc_read_bytes += segment.read_bytes;
      const int64_t ends_ns = world_.times.Read(world_.loop.now_ns(), victim.zone.zone, segment.read_bytes);
      window.read_ns = std::max(window.read_ns, ends_ns);
      window.copies.insert(window.copies.end(), segment.copies.begin(), segment.copies.end());
    }
  }
  if (segments == 0) return std::nullopt;
  // Data of one class is written together.
  std::ranges::stable_sort(window.copies, [](const Copy& a, const Copy& b) { return a.data < b.data; });
  return window;
}

// With the next window, or, when all are written, with the end of the victims.
void VirtualCollector::GoOn() {
  if (window_) {
    mode_ = Mode::kReading;
    return;
  }
  if (std::exchange(settled_, true)) return EndBatch();
  for (Victim& victim : victims_) Settle(victim, true);
  victims_.clear();
  state_.WindowEnded(world_.loop.now_ns(), false);
  mode_ = Mode::kInRound;
}

void VirtualCollector::EndBatch() {
  for (Victim& victim : victims_) Settle(victim, false);
  victims_.clear();
  window_.reset();
  ahead_.reset();
  CollectorState::Batch batch;
  batch.bytes_reclaimed = reclaimed_;
  batch.skipped = skipped_;
  batch.error = error_;
  state_.BatchEnded(batch);
  mode_ = Mode::kInRound;
}

void VirtualCollector::Settle(Victim& victim, bool whole) {
  SimReport& report = world_.report;
  for (const Victim::Moved& moved : victim.moved) {
    if (!world_.zones->has_file(moved.file)) {
      report.dropped_bytes += moved.to.length;
      continue;
    }
    const bool keeps = whole || (error_ && scheme_->confined());
    world_.zones->Remove(moved.file, keeps ? moved.from : moved.to);
    (keeps ? report.copied_bytes : report.dropped_bytes) += moved.to.length;
  }
  if (whole) {
    ++report.collected_zones;
    reclaimed_ += victim.zone.written - victim.zone.valid;
  }
  world_.zones->allocator().collection().End(victim.zone.zone);
  world_.zones->NoteWork();
  world_.loop.Ring(world_.zones->changed());
}

// --- Windows ---

bool VirtualCollector::Read() {
  if (WaitUntil(window_->read_ns)) return false;
  ahead_ = StartReading();
  next_copy_ = 0;
  written_.clear();
  mode_ = Mode::kWriting;
  return true;
}

bool VirtualCollector::Write() {
  while (next_copy_ < window_->copies.size()) {
    Copy& copy = window_->copies[next_copy_];
    if (copy.from.length == 0 || !world_.zones->has_file(copy.file)) {
      ++next_copy_;
      continue;
    }
    const auto started = error_ ? Result<bool>(true) : StartCopy(copy);
    error_ = error_ || !started.ok();
    if (error_) return GiveUp();
    if (!*started) return false;
  }
  if (WaitUntil(writer_ == nullptr ? 0 : writer_->ends_ns())) return false;
  int64_t verified_ns = world_.loop.now_ns();
  for (const FilePlace& place : written_) {
    verified_ns = std::max(verified_ns, world_.times.Read(world_.loop.now_ns(), place.zone, place.length));
    world_.report.gc_read_bytes += place.length;
  }
  window_->read_ns = verified_ns;
  mode_ = Mode::kVerifying;
  return true;
}

// There is no space. What is in flight ends first.
bool VirtualCollector::GiveUp() {
  if (WaitUntil(writer_->ends_ns())) return false;
  EndBatch();
  return true;
}

void VirtualCollector::TakeWriter(DataClass data) {
  if (writer_ == nullptr) {
    ZoneRequest request;
    request.gc = true;
    request.confined = scheme_->confined();
    const bool striped = world_.zones->parallel() && !scheme_->confined();
    writer_ = std::make_unique<LaneWriter>(*world_.zones, world_.loop, request,
                                           striped ? world_.options.device.stripe_width : 1);
  } else if (data != data_) {
    // A zone that is let go half full may be another writer's at once, and the collector without any.
    const bool plenty = world_.zones->allocator().collection().Space().empty_zones > 0;
    if (scheme_->confined() || plenty) writer_->Clear();
  }
  data_ = data;
  writer_->SetDataClass(data);
}

Result<bool> VirtualCollector::StartCopy(Copy& copy) {
  // Lanes are left only when what is in flight in them has ended.
  if (writer_ != nullptr && copy.data != data_ && WaitUntil(writer_->ends_ns())) return false;
  TakeWriter(copy.data);
  const uint64_t unit = std::min(copy.from.length, RoundDown(world_.options.device.stripe_unit, rules_.block_size));
  ISOZONE_ASSIGN_OR_RETURN(const LaneWriter::Started started, writer_->Start(copy.file, unit, LaneWish::kSpread));
  if (started.bytes == 0) {
    world_.loop.CallAt(started.until_ns, *this);
    if (started.for_zone) world_.loop.CallOn(world_.zones->changed(), *this);
    return false;
  }
  const FilePlace from = {copy.from.zone, copy.from.offset, started.bytes};
  victims_[copy.victim].moved.push_back({copy.file, from, started.place});
  written_.push_back(started.place);
  copy.from.offset += started.bytes;
  copy.from.length -= started.bytes;
  return true;
}

bool VirtualCollector::Verify() {
  if (WaitUntil(window_->read_ns)) return false;
  window_ = std::exchange(ahead_, {});
  state_.WindowEnded(world_.loop.now_ns(), false);
  mode_ = Mode::kInRound;
  return true;
}

}  // namespace isozone
