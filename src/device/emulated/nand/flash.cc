#include "device/emulated/nand/flash.h"

#include <algorithm>

#include "base/units.h"

namespace isozone {

Flash::Flash(const Profile& profile, EventQueue& events)
    : profile_(profile), events_(events), dies_(profile.dies), channels_(profile.channels) {}

void Flash::Start(int64_t now, Part& part) {
  now_ = now;
  part.state = Part::State::kQueued;
  switch (part.kind) {
    case PartKind::kWrite:
      return AddWrite(part);
    case PartKind::kProgram:
      return PadUnit(part.die, &part, part.bytes);
    case PartKind::kRead:
    case PartKind::kErase:
      return AddJob(part.die, {part.kind, &part, 0}, LeastDuration(part));
  }
}

void Flash::ProgramPadded(int64_t now, uint32_t die, uint32_t dummy) {
  now_ = now;
  PadUnit(die, nullptr, dummy);
}

Part* Flash::Handle(const Event& event) {
  now_ = event.time;
  switch (event.kind) {
    case EventKind::kArrayRead:
      SendPage(event.index);
      return nullptr;
    case EventKind::kArrayFree:
      return EndFront(event.index);
    case EventKind::kBuffered:
      return EndWrite(event.index);
    case EventKind::kStepEnds:
    case EventKind::kPadding:
      break;
  }
  return nullptr;
}

// The array.

void Flash::AddJob(uint32_t die, Job job, int64_t least_duration) {
  WorkQueue<Job>& array = dies_[die].array;
  const bool idle = array.empty();
  const int64_t mark = array.Push(now_, job, least_duration);
  if (job.part != nullptr) job.part->mark = mark;
  if (job.kind == PartKind::kProgram) dies_[die].programs.push_back(mark);
  if (idle) StartFront(die);
}

void Flash::AddProgram(uint32_t die, Part* part, uint32_t dummy) {
  AddJob(die, {PartKind::kProgram, part, dummy}, profile_.program_ns);
}

// Pads a unit and queues it for the array whether the write buffer has room or not, because it was in the controller.
void Flash::PadUnit(uint32_t die, Part* part, uint32_t dummy) {
  ++dies_[die].units_in_buffer;
  AddProgram(die, part, dummy);
}

void Flash::StartFront(uint32_t die) {
  const Job& job = dies_[die].array.front();
  switch (job.kind) {
    case PartKind::kRead:
      return events_.Schedule(now_ + ArrayNs(*job.part), EventKind::kArrayRead, die);
    case PartKind::kErase:
      return events_.Schedule(now_ + profile_.erase_ns, EventKind::kArrayFree, die);
    case PartKind::kProgram:
    case PartKind::kWrite:  // never here itself: its unit comes as kProgram
      return events_.Schedule(now_ + profile_.program_ns, EventKind::kArrayFree, die);
  }
}

void Flash::SendPage(uint32_t die) {
  WorkQueue<Job>& array = dies_[die].array;
  Part& part = *array.front().part;
  const int64_t end = ChannelOf(die).Serve(now_, ChannelNs(part));
  part.state = Part::State::kOnChannel;
  array.DelayFront(end);
  events_.Schedule(end, EventKind::kArrayFree, die);
}

Part* Flash::EndFront(uint32_t die) {
  Die& d = dies_[die];
  const Job job = d.array.front();
  d.array.Pop();
  if (!d.array.empty()) StartFront(die);
  if (job.kind == PartKind::kProgram) {
    media_.written += profile_.program_unit;
    media_.dummy += job.dummy;
    d.programs.pop_front();
    --d.units_in_buffer;
    AdmitWrites(die);
  }
  if (job.part != nullptr) job.part->state = Part::State::kEnded;
  return job.part;
}

// The intake.

void Flash::AddWrite(Part& part) {
  Die& d = dies_[part.die];
  if (part.fills_unit) part.unit_number = d.units_arrived++;
  part.mark = d.intake.Push(now_, &part, ChannelNs(part));
  AdmitWrites(part.die);
}

void Flash::AdmitWrites(uint32_t die) {
  Die& d = dies_[die];
  if (d.intake_busy || d.intake.empty()) return;
  Part& part = *d.intake.front();
  if (part.fills_unit) {
    if (d.units_in_buffer >= profile_.write_buffer_units) return;  // EndFront() calls again
    ++d.units_in_buffer;
    ++d.units_admitted;
  }
  const int64_t end = ChannelOf(die).Serve(now_, ChannelNs(part));
  part.state = Part::State::kOnChannel;
  d.intake_busy = true;
  d.intake.DelayFront(end);
  events_.Schedule(end, EventKind::kBuffered, die);
}

Part* Flash::EndWrite(uint32_t die) {
  Die& d = dies_[die];
  Part& part = *d.intake.front();
  d.intake.Pop();
  d.intake_busy = false;
  if (part.fills_unit) AddProgram(die, nullptr, 0);
  AdmitWrites(die);
  part.state = Part::State::kEnded;
  return &part;
}

// Durations and bounds.

int64_t Flash::ArrayNs(const Part& part) const {
  return part.bytes <= profile_.small_read_size ? profile_.small_read_ns : profile_.page_read_ns;
}

int64_t Flash::ChannelNs(const Part& part) const { return DurationOf(part.bytes, profile_.channel_bandwidth); }

int64_t Flash::LeastDuration(const Part& part) const {
  switch (part.kind) {
    case PartKind::kRead:
      return ArrayNs(part) + ChannelNs(part);
    case PartKind::kWrite:
      return ChannelNs(part);
    case PartKind::kProgram:
      return profile_.program_ns;
    case PartKind::kErase:
      return profile_.erase_ns;
  }
  return 0;
}

int64_t Flash::EarliestEnd(const Part& part) const {
  const Die& d = dies_[part.die];
  const int64_t crossed =
      ChannelOf(part.die).EarliestEnd(now_, ChannelNs(part));  // unless it is on the channel already
  const bool queued = part.state == Part::State::kQueued;
  if (part.kind == PartKind::kWrite) {
    int64_t end = EarliestEndOfIntake(d, part.mark);
    if (queued) end = std::max(end, crossed);
    if (queued && part.fills_unit) {
      end = std::max(end, EarliestRoom(d, part.unit_number - d.units_admitted) + ChannelNs(part));
    }
    return end;
  }
  const int64_t end = d.array.EarliestEnd(part.mark);
  return queued && part.kind == PartKind::kRead ? std::max(end, crossed) : end;
}

int64_t Flash::EarliestEndOfChain(std::span<const Part> chain, size_t stride, int64_t start) const {
  const Die& d = dies_[chain.front().die];
  const bool write = chain.front().kind == PartKind::kWrite;
  int64_t end = write ? d.intake.EarliestStart(start) : d.array.EarliestStart(start);
  uint64_t units_ahead = d.units_arrived - d.units_admitted;
  for (size_t i = 0; i < chain.size(); i += stride) {
    if (chain[i].fills_unit) end = std::max(end, EarliestRoom(d, units_ahead++));
    end += LeastDuration(chain[i]);
  }
  return end;
}

// The time at which there is room for a unit that has `units_ahead` before it in the intake: once enough programs have
// ended. Programs of the die that are not queued yet follow those that are, one after another.
int64_t Flash::EarliestRoom(const Die& die, uint64_t units_ahead) const {
  const uint64_t units = die.units_in_buffer + units_ahead;
  if (units < profile_.write_buffer_units) return now_;
  const uint64_t programs = units - profile_.write_buffer_units + 1;
  const size_t known = die.programs.size();
  if (programs <= known) return die.array.EarliestEnd(die.programs[programs - 1]);
  const int64_t last_known = known == 0 ? now_ : die.array.EarliestEnd(die.programs.back());
  return last_known + static_cast<int64_t>(programs - known) * profile_.program_ns;
}

// The front of the intake may be waiting for room, and then everything behind it waits as well.
int64_t Flash::EarliestEndOfIntake(const Die& die, int64_t mark) const {
  const Part& front = *die.intake.front();
  int64_t end = die.intake.EarliestEnd(mark);
  if (front.state == Part::State::kQueued) {
    end = std::max(end, EarliestRoom(die, 0) + (mark - front.mark) + ChannelNs(front));
  }
  return end;
}

}  // namespace isozone
