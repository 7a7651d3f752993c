#include "device/emulated/nand/timing_model.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <span>
#include <vector>

#include "base/units.h"
#include "device/emulated/nand/completions.h"
#include "device/emulated/nand/event_queue.h"
#include "device/emulated/nand/flash.h"
#include "device/emulated/nand/servers.h"
#include "device/emulated/nand/zone_map.h"

namespace isozone {

namespace {

bool IsWrite(TimingOpKind kind) { return kind == TimingOpKind::kWrite || kind == TimingOpKind::kAppend; }
bool PadsOrErases(TimingOpKind kind) { return kind == TimingOpKind::kReset || kind == TimingOpKind::kFinish; }

}  // namespace

// To which byte of its zone a command pads it, program units that are not full apart. A full zone is padded already.
uint64_t PaddedEnd(const Profile& profile, const TimingOp& op) {
  if (op.full || op.written >= profile.zone_capacity) return op.written;
  if (op.kind == TimingOpKind::kFinish) return PaddedByFinish(profile, op.written);
  return op.kind == TimingOpKind::kReset ? PaddedByReset(profile, op.written) : op.written;
}

// The model with timing = off.
class TimingModel::Instant : public CommandModel {
 public:
  explicit Instant(const Profile& profile) : profile_(profile) {}
  void Submit(int64_t now, const TimingOp& op, uint64_t ticket) override {
    const uint64_t dummy = PaddedEnd(profile_, op) - op.written;
    media_.dummy += dummy;
    media_.written += IsWrite(op.kind) ? op.length : dummy;
    completed_.push_back({ticket, now});
  }
  void AdvanceTo(int64_t /*now*/, std::vector<TimingCompletion>& completed) override {
    completed.insert(completed.end(), completed_.begin(), completed_.end());
    completed_.clear();
  }
  int64_t NextCompletionBound() override { return completed_.empty() ? kNever : completed_.front().time_ns; }
  MediaCounts Media() const override { return media_; }

 private:
  const Profile profile_;
  std::vector<TimingCompletion> completed_;
  MediaCounts media_;
};

// The model with timing = on: moves commands through the controller, to and from Flash.
class TimingModel::Simulation : public CommandModel {
 public:
  explicit Simulation(const Profile& profile)
      : profile_(profile),
        map_(profile_),
        write_cache_ns_(DurationOf(profile_.write_cache, profile_.write_bandwidth)),
        pad_write_ns_(DurationOf(profile_.program_unit, profile_.write_bandwidth)),
        pad_pace_ns_(std::max(pad_write_ns_, DurationOf(profile_.program_unit, profile_.finish_bandwidth))),
        flash_(profile_, events_) {}

  void Submit(int64_t now, const TimingOp& op, uint64_t ticket) override;
  void AdvanceTo(int64_t now, std::vector<TimingCompletion>& completed) override;
  int64_t NextCompletionBound() override;
  MediaCounts Media() const override { return flash_.media(); }

 private:
  using Slot = uint32_t;

  // The step that a command is in. Each step except the last ends with an event.
  enum class Step : uint8_t {
    kArriving,   // on the link and in the firmware
    kAppending,  // in the server that serves appends one after another
    kThrottled,  // held back by write_bandwidth
    kOnFlash,
  };
  struct Command {
    TimingOp op;
    uint64_t ticket = 0;
    uint64_t number = 0;  // counts submissions; 0: the slot is free
    Step step = Step::kArriving;
    int64_t step_ends_at = 0;
    int64_t ends_at = 0;       // the latest end known so far; the end of the command if nothing is pending
    size_t parts_pending = 0;  // that have not ended
    std::vector<Part> parts;
    // Padding.
    int64_t next_pad_at = 0;  // the next unit is not padded before
    size_t next_to_pad = 0;   // the index of the part whose turn it is
    bool pad_waits = false;   // for next_pad_at: there is an event
  };

  void Run(int64_t until);

  // Commands.
  Slot TakeSlot();
  int64_t ArrivalOf(const TimingOp& op);
  void EndStep(Slot slot, int64_t now);
  int64_t NextStep(Command& command, int64_t now);
  void EnterFlash(Slot slot, int64_t now);
  void EndPart(Part& part, int64_t now);
  void Complete(Slot slot, int64_t now);

  // Parts.
  void Cut(Command& command, Slot slot) const;
  void CutPages(Command& command, Slot slot) const;
  void CutErases(Command& command, Slot slot) const;
  void CutPadding(Command& command, Slot slot) const;
  void StartParts(Slot slot, int64_t now);
  void PadUnits(Slot slot, int64_t now);
  static Part* NextToPad(Command& command);
  bool ErasesAfter(const Part& part) const;
  bool HasOpenUnit(uint32_t zone_slot, uint64_t written) const {
    return map_.BytesOnSlot(zone_slot, written) % profile_.program_unit != 0;
  }
  int64_t LeastOfZone(const TimingOp& op) const;

  // Bounds.
  int64_t EarliestCompletion(const Command& command) const;
  int64_t EarliestOnFlash(const Command& command) const;
  int64_t EarliestFromFlash(const Command& command, int64_t start) const;
  int64_t EarliestAtHost(const Part& part, int64_t end) const;
  int64_t EarliestPadded(const Command& command, int64_t start) const;
  int64_t UnstartedNs(const Part& part) const;

  int64_t LinkTime(uint64_t bytes) const { return DurationOf(bytes, profile_.link_bandwidth); }

  const Profile profile_;
  const ZoneMap map_;
  const int64_t write_cache_ns_;  // how long write_bandwidth takes for the bytes of write_cache
  const int64_t pad_write_ns_;    // the same for a program unit
  const int64_t pad_pace_ns_;     // the least time between two units that a command pads

  int64_t now_ = 0;
  EventQueue events_;
  FifoServer link_to_device_;
  FifoServer link_to_host_;
  FifoServer appends_;
  FifoServer all_writes_;  // write_bandwidth, also of padding
  Flash flash_;

  std::deque<Command> commands_;  // by slot
  std::vector<Slot> free_slots_;
  uint64_t commands_submitted_ = 0;
  Completions completions_;
};

// Running.

void TimingModel::Simulation::Submit(int64_t now, const TimingOp& op, uint64_t ticket) {
  Run(now);
  const Slot slot = TakeSlot();
  Command& command = commands_[slot];
  command.op = op;
  command.ticket = ticket;
  command.number = ++commands_submitted_;
  command.step = Step::kArriving;
  command.step_ends_at = ArrivalOf(op);
  command.ends_at = command.step_ends_at;
  Cut(command, slot);
  events_.Schedule(command.step_ends_at, EventKind::kStepEnds, slot);
  completions_.Begin(EarliestCompletion(command), command.number, slot);
}

void TimingModel::Simulation::AdvanceTo(int64_t now, std::vector<TimingCompletion>& completed) {
  Run(now);
  completions_.Take(now, completed);
}

void TimingModel::Simulation::Run(int64_t until) {
  assert(until >= now_);
  while (events_.NextTime() <= until) {
    const Event event = events_.Pop();
    now_ = event.time;
    if (event.kind == EventKind::kStepEnds) {
      EndStep(event.index, now_);
    } else if (event.kind == EventKind::kPadding) {
      commands_[event.index].pad_waits = false;
      PadUnits(event.index, now_);
    } else if (Part* part = flash_.Handle(event)) {
      EndPart(*part, now_);
    }
  }
  now_ = until;
}

// Commands.

TimingModel::Simulation::Slot TimingModel::Simulation::TakeSlot() {
  if (free_slots_.empty()) {
    commands_.emplace_back();
    return static_cast<Slot>(commands_.size() - 1);
  }
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

int64_t TimingModel::Simulation::ArrivalOf(const TimingOp& op) {
  switch (op.kind) {
    case TimingOpKind::kRead:
      return now_ + profile_.read_latency_ns;
    case TimingOpKind::kWrite:
    case TimingOpKind::kAppend:
      return link_to_device_.Serve(now_, LinkTime(op.length)) + profile_.write_latency_ns;
    case TimingOpKind::kReset:
    case TimingOpKind::kFinish:
    case TimingOpKind::kOpen:
    case TimingOpKind::kClose:
    case TimingOpKind::kTrim:
      return now_ + profile_.management_latency_ns;
    case TimingOpKind::kFlush:
      return now_ + profile_.flush_latency_ns;
  }
  return now_;
}

void TimingModel::Simulation::EndStep(Slot slot, int64_t now) {
  Command& command = commands_[slot];
  while (command.step != Step::kOnFlash) {
    command.step_ends_at = NextStep(command, now);
    if (command.step_ends_at > now) return events_.Schedule(command.step_ends_at, EventKind::kStepEnds, slot);
  }
  EnterFlash(slot, now);
}

// Enters the next step and returns the time at which it ends.
int64_t TimingModel::Simulation::NextStep(Command& command, int64_t now) {
  if (command.step == Step::kArriving) {
    command.step = Step::kAppending;
    return command.op.kind == TimingOpKind::kAppend ? appends_.Serve(now, profile_.append_ns) : now;
  }
  if (command.step == Step::kAppending) {
    command.step = Step::kThrottled;
    if (!IsWrite(command.op.kind)) return now;
    // The step ends when all bytes up to the end of this command, except write_cache of them, have been written.
    return all_writes_.Serve(now, DurationOf(command.op.length, profile_.write_bandwidth)) - write_cache_ns_;
  }
  command.step = Step::kOnFlash;
  return now;
}

void TimingModel::Simulation::EnterFlash(Slot slot, int64_t now) {
  Command& command = commands_[slot];
  command.ends_at = now + LeastOfZone(command.op);
  command.parts_pending = command.parts.size();
  StartParts(slot, now);
  if (command.parts.empty()) Complete(slot, now);
}

void TimingModel::Simulation::StartParts(Slot slot, int64_t now) {
  Command& command = commands_[slot];
  command.next_pad_at = now;
  command.next_to_pad = 0;
  command.pad_waits = false;
  for (Part& part : command.parts) {
    if (part.kind != PartKind::kProgram) flash_.Start(now, part);
  }
  PadUnits(slot, now);
}

void TimingModel::Simulation::EndPart(Part& part, int64_t now) {
  Command& command = commands_[part.command];
  if (part.units_left > 0) {
    part.bytes = static_cast<uint32_t>(profile_.program_unit);
    return PadUnits(part.command, now);
  }
  if (ErasesAfter(part)) {
    part.kind = PartKind::kErase;
    return flash_.Start(now, part);
  }
  const int64_t end = part.kind == PartKind::kRead ? link_to_host_.Serve(now, LinkTime(part.bytes)) : now;
  command.ends_at = std::max(command.ends_at, end);
  if (--command.parts_pending == 0) Complete(part.command, now);
}

void TimingModel::Simulation::Complete(Slot slot, int64_t now) {
  Command& command = commands_[slot];
  const TimingOp& op = command.op;
  if (IsWrite(op.kind) && op.offset + op.length == profile_.zone_capacity) {
    for (uint32_t i = 0; i < map_.width(); ++i) {
      if (!HasOpenUnit(i, profile_.zone_capacity)) continue;
      const uint64_t open = map_.BytesOnSlot(i, profile_.zone_capacity) % profile_.program_unit;
      flash_.ProgramPadded(now, map_.DieOf(op.zone, i), static_cast<uint32_t>(profile_.program_unit - open));
    }
  }
  completions_.End(command.ends_at, command.number, command.ticket);
  command.number = 0;
  free_slots_.push_back(slot);
}

// Parts.

void TimingModel::Simulation::Cut(Command& command, Slot slot) const {
  command.parts.clear();
  switch (command.op.kind) {
    case TimingOpKind::kRead:
    case TimingOpKind::kWrite:
    case TimingOpKind::kAppend:
      return CutPages(command, slot);
    case TimingOpKind::kReset:
      if (profile_.reset_padding != 0) CutPadding(command, slot);
      return CutErases(command, slot);
    case TimingOpKind::kFinish:
      return CutPadding(command, slot);
    case TimingOpKind::kOpen:
    case TimingOpKind::kClose:
    case TimingOpKind::kFlush:
    case TimingOpKind::kTrim:
      return;
  }
}

void TimingModel::Simulation::CutPages(Command& command, Slot slot) const {
  const TimingOp& op = command.op;
  const uint64_t pages_per_unit = profile_.program_unit / profile_.page_size;
  const uint64_t end = op.offset + op.length;
  assert(end <= profile_.zone_capacity);
  for (uint64_t at = op.offset; at < end;) {
    const uint64_t page = at / profile_.page_size;
    const uint64_t page_end = (page + 1) * profile_.page_size;
    const uint64_t part_end = std::min(page_end, end);
    Part part;
    part.kind = op.kind == TimingOpKind::kRead ? PartKind::kRead : PartKind::kWrite;
    part.command = slot;
    part.die = map_.DieOf(op.zone, static_cast<uint32_t>(page % map_.width()));
    part.bytes = static_cast<uint32_t>(part_end - at);
    const bool last_page_of_unit = page / map_.width() % pages_per_unit == pages_per_unit - 1;
    part.fills_unit = part.kind == PartKind::kWrite && part_end == page_end && last_page_of_unit;
    command.parts.push_back(part);
    at = part_end;
  }
}

// Erases on the dies that hold anything of the zone, but for those that pad it first and erase then.
void TimingModel::Simulation::CutErases(Command& command, Slot slot) const {
  if (profile_.erase_ns == 0) return;
  const TimingOp& op = command.op;
  const uint64_t end = op.full ? PaddedByFinish(profile_, op.written) : op.written;
  const size_t padding = command.parts.size();
  size_t next_padding = 0;  // by slot, as these parts are
  for (uint32_t i = 0; i < map_.width(); ++i) {
    Part part;
    part.kind = PartKind::kErase;
    part.command = slot;
    part.die = map_.DieOf(op.zone, i);
    const bool pads = next_padding < padding && command.parts[next_padding].die == part.die;
    if (pads) {
      ++next_padding;
    } else if (map_.BytesOnSlot(i, end) > 0) {
      command.parts.push_back(part);
    }
  }
}

// A part for each die that pads units: those that are not full, and those up to PaddedEnd.
void TimingModel::Simulation::CutPadding(Command& command, Slot slot) const {
  const TimingOp& op = command.op;
  // If the zone is full, its open units are padded: by its last write, or by the finish before.
  if (op.full || op.written >= profile_.zone_capacity) return;
  const uint64_t end = PaddedEnd(profile_, op);
  const uint64_t unit = profile_.program_unit;
  for (uint32_t i = 0; i < map_.width(); ++i) {
    const uint64_t data = map_.BytesOnSlot(i, op.written);
    const uint64_t units = RoundUp(map_.BytesOnSlot(i, end), unit) / unit - data / unit;
    if (units == 0) continue;
    Part part;
    part.kind = PartKind::kProgram;
    part.command = slot;
    part.die = map_.DieOf(op.zone, i);
    part.bytes = static_cast<uint32_t>(unit - data % unit);
    part.units_left = units;
    command.parts.push_back(part);
  }
}

// Padding.

// Starts the units whose turn it is. Every die that has some left, and programs none, is ready.
void TimingModel::Simulation::PadUnits(Slot slot, int64_t now) {
  Command& command = commands_[slot];
  if (command.pad_waits) return;
  while (Part* part = NextToPad(command)) {
    if (command.next_pad_at > now) {
      command.pad_waits = true;
      return events_.Schedule(command.next_pad_at, EventKind::kPadding, slot);
    }
    --part->units_left;
    command.next_to_pad = static_cast<size_t>(part - command.parts.data()) + 1;
    command.next_pad_at = std::max(now + pad_pace_ns_, all_writes_.Serve(now, pad_write_ns_) - write_cache_ns_);
    flash_.Start(now, *part);
  }
}

// The next part that is ready, dies in turn; null if there is none.
Part* TimingModel::Simulation::NextToPad(Command& command) {
  const size_t count = command.parts.size();
  for (size_t i = 0; i < count; ++i) {
    Part& part = command.parts[(command.next_to_pad + i) % count];
    if (part.units_left > 0 && part.state != Part::State::kQueued) return &part;
  }
  return nullptr;
}

bool TimingModel::Simulation::ErasesAfter(const Part& part) const {
  return part.kind == PartKind::kProgram && commands_[part.command].op.kind == TimingOpKind::kReset &&
         profile_.erase_ns != 0;
}

// The least duration of a reset or finish in all, as it was measured of the whole zone.
int64_t TimingModel::Simulation::LeastOfZone(const TimingOp& op) const {
  const int64_t padding = DurationOf(PaddedEnd(profile_, op) - op.written, profile_.finish_bandwidth);
  return op.kind == TimingOpKind::kReset ? padding + ResetDuration(profile_, op.written) : padding;
}

// Bounds.

int64_t TimingModel::Simulation::NextCompletionBound() {
  return completions_.NextBound(events_.NextTime(), [this](Slot slot, uint64_t number) {
    return commands_[slot].number == number ? EarliestCompletion(commands_[slot]) : kNever;
  });
}

int64_t TimingModel::Simulation::EarliestCompletion(const Command& command) const {
  if (command.step == Step::kOnFlash) return EarliestOnFlash(command);
  int64_t start = command.step_ends_at;
  if (command.step == Step::kArriving && command.op.kind == TimingOpKind::kAppend) {
    start = appends_.EarliestEnd(start, profile_.append_ns);
  }
  if (command.step < Step::kThrottled && IsWrite(command.op.kind)) {
    const int64_t duration = DurationOf(command.op.length, profile_.write_bandwidth);
    start = std::max(start, all_writes_.EarliestEnd(start, duration) - write_cache_ns_);
  }
  return EarliestFromFlash(command, start);
}

// The earliest completion of a command that enters the flash at `start` or later.
int64_t TimingModel::Simulation::EarliestFromFlash(const Command& command, int64_t start) const {
  int64_t end = std::max(start + LeastOfZone(command.op), EarliestPadded(command, start));
  const std::span<const Part> parts = command.parts;
  if (PadsOrErases(command.op.kind)) {  // dies without anything to do have no part
    for (const Part& part : parts) {
      const int64_t counted = part.units_left > 0 ? profile_.program_ns : 0;  // by the chain, which is one job
      end = std::max(end, flash_.EarliestEndOfChain({&part, 1}, 1, start) - counted + UnstartedNs(part));
    }
    return end;
  }
  const size_t width = map_.width();
  for (size_t first = 0; first < std::min(width, parts.size()); ++first) {
    const std::span<const Part> chain = parts.subspan(first);
    const Part& last = chain[(chain.size() - 1) / width * width];
    end = std::max(end, EarliestAtHost(last, flash_.EarliestEndOfChain(chain, width, start)));
  }
  return end;
}

int64_t TimingModel::Simulation::EarliestOnFlash(const Command& command) const {
  const int64_t next_pad = std::max(now_, command.next_pad_at);
  int64_t end = std::max(command.ends_at, EarliestPadded(command, next_pad));
  for (const Part& part : command.parts) {
    if (part.state == Part::State::kQueued || part.state == Part::State::kOnChannel) {
      end = std::max(end, EarliestAtHost(part, flash_.EarliestEnd(part)) + UnstartedNs(part));
    } else if (part.units_left > 0) {
      end = std::max(end, next_pad + UnstartedNs(part));
    }
  }
  return end;
}

// The earliest end of the last unit that the command pads, if it pads the next one at `start` or later; 0 if none is
// left.
int64_t TimingModel::Simulation::EarliestPadded(const Command& command, int64_t start) const {
  if (!PadsOrErases(command.op.kind)) return 0;
  uint64_t units = 0;
  for (const Part& part : command.parts) units += part.units_left;
  return units == 0 ? 0 : start + static_cast<int64_t>(units - 1) * pad_pace_ns_ + profile_.program_ns;
}

// How long the die of a part takes for what it has not started: units, and then to erase.
int64_t TimingModel::Simulation::UnstartedNs(const Part& part) const {
  const int64_t padding = static_cast<int64_t>(part.units_left) * profile_.program_ns;
  return ErasesAfter(part) ? padding + profile_.erase_ns : padding;
}

// The time at which a part that ends on flash at `end` has ended for the host.
int64_t TimingModel::Simulation::EarliestAtHost(const Part& part, int64_t end) const {
  return part.kind == PartKind::kRead ? link_to_host_.EarliestEnd(end, LinkTime(part.bytes)) : end;
}

TimingModel::TimingModel(const Profile& profile) {
  if (profile.timing) {
    impl_ = std::make_unique<Simulation>(profile);
  } else {
    impl_ = std::make_unique<Instant>(profile);
  }
}

TimingModel::~TimingModel() = default;

void TimingModel::Submit(int64_t now_ns, const TimingOp& op, uint64_t ticket) { impl_->Submit(now_ns, op, ticket); }

void TimingModel::AdvanceTo(int64_t now_ns, std::vector<TimingCompletion>& completed) {
  impl_->AdvanceTo(now_ns, completed);
}

int64_t TimingModel::NextCompletionBound() { return impl_->NextCompletionBound(); }

MediaCounts TimingModel::Media() const { return impl_->Media(); }

}  // namespace isozone
