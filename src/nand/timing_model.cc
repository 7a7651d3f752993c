#include "nand/timing_model.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <span>
#include <vector>

#include "base/units.h"
#include "nand/completions.h"
#include "nand/event_queue.h"
#include "nand/flash.h"
#include "nand/servers.h"
#include "nand/zone_map.h"

namespace isozone {

namespace {

bool IsWrite(TimingOpKind kind) { return kind == TimingOpKind::kWrite || kind == TimingOpKind::kAppend; }

}  // namespace

// The model with timing = off.
class TimingModel::Instant : public CommandModel {
 public:
  void Submit(int64_t now, const TimingOp& op, uint64_t ticket) override {
    if (IsWrite(op.kind)) media_bytes_written_ += op.length;
    completed_.push_back({ticket, now});
  }
  void AdvanceTo(int64_t /*now*/, std::vector<TimingCompletion>& completed) override {
    completed.insert(completed.end(), completed_.begin(), completed_.end());
    completed_.clear();
  }
  int64_t NextCompletionBound() override { return completed_.empty() ? kNever : completed_.front().time_ns; }
  uint64_t MediaBytesWritten() const override { return media_bytes_written_; }

 private:
  std::vector<TimingCompletion> completed_;
  uint64_t media_bytes_written_ = 0;
};

// The model with timing = on: moves commands through the controller, to and from Flash.
class TimingModel::Simulation : public CommandModel {
 public:
  explicit Simulation(const Profile& profile)
      : profile_(profile),
        map_(profile_),
        write_cache_ns_(DurationOf(profile_.write_cache, profile_.write_bandwidth)),
        flash_(profile_, events_) {}

  void Submit(int64_t now, const TimingOp& op, uint64_t ticket) override;
  void AdvanceTo(int64_t now, std::vector<TimingCompletion>& completed) override;
  int64_t NextCompletionBound() override;
  uint64_t MediaBytesWritten() const override { return flash_.media_bytes_written() + padding_written_; }

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
  };

  void Run(int64_t until);

  // Commands.
  Slot TakeSlot();
  int64_t ArrivalOf(const TimingOp& op);
  void EndStep(Slot slot, int64_t now);
  int64_t NextStep(Command& command, int64_t now);
  void EnterFlash(Slot slot, int64_t now);
  void EndPart(const Part& part, int64_t now);
  void Complete(Slot slot, int64_t now);

  // Parts.
  void Cut(Command& command, Slot slot) const;
  void CutPages(Command& command, Slot slot) const;
  void CutErases(Command& command, Slot slot) const;
  void CutPadding(Command& command, Slot slot) const;
  bool HasOpenUnit(uint32_t zone_slot, uint64_t written) const {
    return map_.BytesOnSlot(zone_slot, written) % profile_.program_unit != 0;
  }
  int64_t PadRest(const Command& command);

  // Bounds.
  int64_t EarliestCompletion(const Command& command) const;
  int64_t EarliestOnFlash(const Command& command) const;
  int64_t EarliestFromFlash(const Command& command, int64_t start) const;
  int64_t EarliestAtHost(const Part& part, int64_t end) const;

  int64_t LinkTime(uint64_t bytes) const { return DurationOf(bytes, profile_.link_bandwidth); }

  const Profile profile_;
  const ZoneMap map_;
  const int64_t write_cache_ns_;  // how long write_bandwidth takes for the bytes of write_cache

  int64_t now_ = 0;
  EventQueue events_;
  FifoServer link_to_device_;
  FifoServer link_to_host_;
  FifoServer appends_;
  FifoServer all_writes_;  // write_bandwidth
  Flash flash_;

  std::deque<Command> commands_;  // by slot
  std::vector<Slot> free_slots_;
  uint64_t commands_submitted_ = 0;
  Completions completions_;
  uint64_t padding_written_ = 0;  // bytes that finish padded at finish_bandwidth
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
    } else if (const Part* part = flash_.Handle(event)) {
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
  command.ends_at = now;
  if (command.op.kind == TimingOpKind::kReset) command.ends_at = now + ResetDuration(profile_, command.op.written);
  if (command.op.kind == TimingOpKind::kFinish) command.ends_at = now + PadRest(command);
  command.parts_pending = command.parts.size();
  for (Part& part : command.parts) flash_.Start(now, part);
  if (command.parts.empty()) Complete(slot, now);
}

void TimingModel::Simulation::EndPart(const Part& part, int64_t now) {
  Command& command = commands_[part.command];
  const int64_t end = part.kind == PartKind::kRead ? link_to_host_.Serve(now, LinkTime(part.bytes)) : now;
  command.ends_at = std::max(command.ends_at, end);
  if (--command.parts_pending == 0) Complete(part.command, now);
}

void TimingModel::Simulation::Complete(Slot slot, int64_t now) {
  Command& command = commands_[slot];
  const TimingOp& op = command.op;
  if (IsWrite(op.kind) && op.offset + op.length == profile_.zone_capacity) {
    for (uint32_t i = 0; i < map_.width(); ++i) {
      if (HasOpenUnit(i, profile_.zone_capacity)) flash_.ProgramPadded(now, map_.DieOf(op.zone, i));
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

void TimingModel::Simulation::CutErases(Command& command, Slot slot) const {
  for (uint32_t i = 0; i < map_.width(); ++i) {
    if (map_.BytesOnSlot(i, command.op.written) == 0 || profile_.erase_ns == 0) continue;
    Part part;
    part.kind = PartKind::kErase;
    part.command = slot;
    part.die = map_.DieOf(command.op.zone, i);
    command.parts.push_back(part);
  }
}

void TimingModel::Simulation::CutPadding(Command& command, Slot slot) const {
  // If the zone was written to its end, the last write has padded the open units.
  if (command.op.written >= profile_.zone_capacity) return;
  for (uint32_t i = 0; i < map_.width(); ++i) {
    if (!HasOpenUnit(i, command.op.written)) continue;
    Part part;
    part.kind = PartKind::kProgram;
    part.command = slot;
    part.die = map_.DieOf(command.op.zone, i);
    command.parts.push_back(part);
  }
}

// The duration of the padding at finish_bandwidth. It includes the padding of the open units.
int64_t TimingModel::Simulation::PadRest(const Command& command) {
  if (profile_.finish_bandwidth == 0 || command.op.written >= profile_.zone_capacity) return 0;
  const uint64_t rest = profile_.zone_capacity - command.op.written;
  uint64_t in_open_units = 0;
  for (uint32_t i = 0; i < map_.width(); ++i) {
    if (!HasOpenUnit(i, command.op.written)) continue;
    const uint64_t bytes = map_.BytesOnSlot(i, command.op.written);
    in_open_units += RoundUp(bytes, profile_.program_unit) - bytes;
  }
  padding_written_ += rest - std::min(rest, in_open_units);
  return DurationOf(rest, profile_.finish_bandwidth);
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
  int64_t end = start;
  if (command.op.kind == TimingOpKind::kReset) end += ResetDuration(profile_, command.op.written);
  if (command.op.kind == TimingOpKind::kFinish && command.op.written < profile_.zone_capacity) {
    end += DurationOf(profile_.zone_capacity - command.op.written, profile_.finish_bandwidth);
  }
  const std::span<const Part> parts = command.parts;
  const size_t width = map_.width();
  for (size_t first = 0; first < std::min(width, parts.size()); ++first) {
    const std::span<const Part> chain = parts.subspan(first);
    const Part& last = chain[(chain.size() - 1) / width * width];
    end = std::max(end, EarliestAtHost(last, flash_.EarliestEndOfChain(chain, width, start)));
  }
  return end;
}

int64_t TimingModel::Simulation::EarliestOnFlash(const Command& command) const {
  int64_t end = command.ends_at;
  for (const Part& part : command.parts) {
    if (part.state != Part::State::kEnded) end = std::max(end, EarliestAtHost(part, flash_.EarliestEnd(part)));
  }
  return end;
}

// The time at which a part that ends on flash at `end` has ended for the host.
int64_t TimingModel::Simulation::EarliestAtHost(const Part& part, int64_t end) const {
  return part.kind == PartKind::kRead ? link_to_host_.EarliestEnd(end, LinkTime(part.bytes)) : end;
}

TimingModel::TimingModel(const Profile& profile) {
  if (profile.timing) {
    impl_ = std::make_unique<Simulation>(profile);
  } else {
    impl_ = std::make_unique<Instant>();
  }
}

TimingModel::~TimingModel() = default;

void TimingModel::Submit(int64_t now_ns, const TimingOp& op, uint64_t ticket) { impl_->Submit(now_ns, op, ticket); }

void TimingModel::AdvanceTo(int64_t now_ns, std::vector<TimingCompletion>& completed) {
  impl_->AdvanceTo(now_ns, completed);
}

int64_t TimingModel::NextCompletionBound() { return impl_->NextCompletionBound(); }

uint64_t TimingModel::MediaBytesWritten() const { return impl_->MediaBytesWritten(); }

}  // namespace isozone
