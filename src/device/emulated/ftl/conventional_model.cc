#include "device/emulated/ftl/conventional_model.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <utility>

#include "device/emulated/nand/completions.h"
#include "device/emulated/nand/event_queue.h"
#include "device/emulated/nand/flash.h"
#include "device/emulated/nand/servers.h"

namespace isozone {

class ConventionalModel::Simulation {
 public:
  Simulation(const Profile& profile, bool timing)
      : profile_(profile),
        timing_(timing),
        map_(FlashLayout::Of(profile_)),
        flash_(profile_, events_),
        superblocks_(layout().superblocks),
        slots_in_unit_(size_t{layout().superblocks} * layout().superblock_slots() / layout().unit_slots) {}

  PageMap& map() { return map_; }
  const Profile& profile() const { return profile_; }

  void Submit(int64_t now, const TimingOp& op, uint64_t ticket);
  void AdvanceTo(int64_t now, std::vector<TimingCompletion>& completed);
  int64_t NextCompletionBound();
  MediaCounts Media() const;

 private:
  using Slot = uint32_t;

  enum class Role : uint8_t { kHost, kCopy, kErase };
  // A part of a command, with its place on flash.
  struct Piece {
    Part part;
    uint32_t first_slot = 0;  // unused for an erase
    uint32_t slots = 0;
  };
  // A command of the host, or work of the collector: the copies of one flash page, or the erase of a superblock.
  struct Command {
    Role role = Role::kHost;
    TimingOp op;
    uint64_t ticket = 0;
    uint64_t number = 0;      // counts the commands of the host; 0: done
    uint32_t superblock = 0;  // kCopy, kErase: the victim
    bool on_flash = false;
    int64_t arrives_at = 0;     // kHost
    int64_t ends_at = 0;        // the latest end known so far
    size_t pieces_pending = 0;  // that have not ended
    std::vector<Piece> pieces;
    std::vector<Piece> writes;  // kCopy: started when `pieces`, the reads, have ended
  };
  struct Waiting {
    Slot slot = 0;
    size_t piece = 0;
  };
  struct Superblock {
    bool erased = true;
    bool erase_due = false;  // it is erased once no command copies from it any more
    uint32_t copies = 0;     // commands that copy from it
    std::vector<Waiting> waiting;
  };

  const FlashLayout& layout() const { return map_.layout(); }
  void Run(int64_t until);

  // Commands of the host.
  Slot TakeSlot(Role role);
  int64_t ArrivalOf(const TimingOp& op);
  void Map(Command& command, Slot slot);
  void CutRead(Command& command, Slot slot) const;
  void EnterFlash(Slot slot);
  void EndPart(const Part& part);
  void EndLastPart(Slot slot);
  void Complete(Slot slot);

  // GC.
  void Collect();
  size_t StartCopy(size_t first_step);
  void StartWrites(Slot slot);
  void EndCopy(Slot slot);
  void EraseWhenDue(uint32_t superblock);
  void EndErase(Slot slot);

  // Pieces.
  void AddSlots(std::vector<Piece>& pieces, PartKind kind, Slot command, uint32_t slot) const;
  void StartPiece(Slot slot, size_t piece);

  // Bounds.
  int64_t EarliestCompletion(const Command& command) const;
  int64_t EarliestAtHost(const Part& part, int64_t end) const;
  int64_t LinkTime(uint64_t bytes) const { return DurationOf(bytes, profile_.link_bandwidth); }

  const Profile profile_;
  const bool timing_;
  PageMap map_;

  int64_t now_ = 0;
  EventQueue events_;
  FifoServer link_to_device_;
  FifoServer link_to_host_;
  Flash flash_;
  std::vector<Superblock> superblocks_;
  std::vector<uint32_t> slots_in_unit_;  // by unit: slots sent to the die's buffer; 0 again once all were sent
  std::vector<FlashStep> steps_;         // of the command being submitted

  std::deque<Command> commands_;  // by slot
  std::vector<Slot> free_slots_;
  uint64_t commands_submitted_ = 0;
  Completions completions_;
};

// Running.

void ConventionalModel::Simulation::Submit(int64_t now, const TimingOp& op, uint64_t ticket) {
  assert(op.offset + op.length <= profile_.capacity && IsAligned(op.offset | op.length, profile_.block_size));
  Run(now);
  const Slot slot = TakeSlot(Role::kHost);
  Command& command = commands_[slot];
  command.op = op;
  command.ticket = ticket;
  command.number = ++commands_submitted_;
  Map(command, slot);
  if (!timing_) {
    command.ends_at = now_;
    return Complete(slot);
  }
  command.arrives_at = command.ends_at = ArrivalOf(op);
  events_.Schedule(command.arrives_at, EventKind::kStepEnds, slot);
  Collect();
  completions_.Begin(EarliestCompletion(command), command.number, slot);
}

void ConventionalModel::Simulation::AdvanceTo(int64_t now, std::vector<TimingCompletion>& completed) {
  Run(now);
  completions_.Take(now, completed);
}

void ConventionalModel::Simulation::Run(int64_t until) {
  assert(until >= now_);
  while (events_.NextTime() <= until) {
    const Event event = events_.Pop();
    now_ = event.time;
    if (event.kind == EventKind::kStepEnds) {
      EnterFlash(event.index);
    } else if (const Part* part = flash_.Handle(event)) {
      EndPart(*part);
    }
  }
  now_ = until;
}

MediaCounts ConventionalModel::Simulation::Media() const {
  if (timing_) return flash_.media();
  return {.written = (map_.counters().host_pages + map_.counters().copied_pages) * profile_.block_size};
}

// Commands of the host.

ConventionalModel::Simulation::Slot ConventionalModel::Simulation::TakeSlot(Role role) {
  if (free_slots_.empty()) {
    commands_.emplace_back();
    free_slots_.push_back(static_cast<Slot>(commands_.size() - 1));
  }
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  Command& command = commands_[slot];
  command.role = role;
  command.on_flash = false;
  command.pieces.clear();
  command.writes.clear();
  return slot;
}

int64_t ConventionalModel::Simulation::ArrivalOf(const TimingOp& op) {
  switch (op.kind) {
    case TimingOpKind::kRead:
      return now_ + profile_.read_latency_ns;
    case TimingOpKind::kWrite:
      return link_to_device_.Serve(now_, LinkTime(op.length)) + profile_.write_latency_ns;
    case TimingOpKind::kFlush:
      return now_ + profile_.flush_latency_ns;
    default:
      return now_ + profile_.management_latency_ns;
  }
}

// Changes the map for the command, and cuts the command into pieces. The resulting work of GC is in steps_.
void ConventionalModel::Simulation::Map(Command& command, Slot slot) {
  steps_.clear();
  if (command.op.kind == TimingOpKind::kRead) return CutRead(command, slot);
  const auto first = static_cast<uint32_t>(command.op.offset / profile_.block_size);
  const auto end = static_cast<uint32_t>(first + command.op.length / profile_.block_size);
  for (uint32_t page = first; page < end; ++page) {
    if (command.op.kind == TimingOpKind::kWrite) map_.Write(page, steps_);
    if (command.op.kind == TimingOpKind::kTrim) map_.Trim(page);
  }
  for (const FlashStep& step : steps_) {
    if (step.kind == FlashStep::Kind::kWrite) AddSlots(command.pieces, PartKind::kWrite, slot, step.to);
  }
}

void ConventionalModel::Simulation::CutRead(Command& command, Slot slot) const {
  const auto first = static_cast<uint32_t>(command.op.offset / profile_.block_size);
  const auto end = static_cast<uint32_t>(first + command.op.length / profile_.block_size);
  for (uint32_t page = first; page < end; ++page) {
    const uint32_t at = map_.SlotOf(page);
    if (at != PageMap::kNone) AddSlots(command.pieces, PartKind::kRead, slot, at);
  }
}

void ConventionalModel::Simulation::EnterFlash(Slot slot) {
  Command& command = commands_[slot];
  command.on_flash = true;
  command.pieces_pending = command.pieces.size();
  for (size_t i = 0; i < command.pieces.size(); ++i) StartPiece(slot, i);
  if (command.pieces.empty()) Complete(slot);
}

void ConventionalModel::Simulation::EndPart(const Part& part) {
  Command& command = commands_[part.command];
  int64_t end = now_;
  if (command.role == Role::kHost && part.kind == PartKind::kRead) {
    end = link_to_host_.Serve(now_, LinkTime(part.bytes));
  }
  command.ends_at = std::max(command.ends_at, end);
  if (--command.pieces_pending == 0) EndLastPart(part.command);
}

void ConventionalModel::Simulation::EndLastPart(Slot slot) {
  switch (commands_[slot].role) {
    case Role::kHost:
      return Complete(slot);
    case Role::kCopy:
      return commands_[slot].writes.empty() ? EndCopy(slot) : StartWrites(slot);
    case Role::kErase:
      return EndErase(slot);
  }
}

void ConventionalModel::Simulation::Complete(Slot slot) {
  Command& command = commands_[slot];
  completions_.End(command.ends_at, command.number, command.ticket);
  command.number = 0;
  free_slots_.push_back(slot);
}

// GC.

// Starts the work of GC that is in steps_.
void ConventionalModel::Simulation::Collect() {
  for (size_t i = 0; i < steps_.size();) {
    if (steps_[i].kind == FlashStep::Kind::kCopy) {
      i = StartCopy(i);
      continue;
    }
    if (steps_[i].kind == FlashStep::Kind::kErase) {
      superblocks_[steps_[i].from].erased = false;
      superblocks_[steps_[i].from].erase_due = true;
      EraseWhenDue(steps_[i].from);
    }
    ++i;
  }
}

// Starts the copies of one flash page, which begin with the step at `first_step`; returns the index behind them.
size_t ConventionalModel::Simulation::StartCopy(size_t first_step) {
  const Slot slot = TakeSlot(Role::kCopy);
  Command& command = commands_[slot];
  const uint32_t page = layout().PageOf(steps_[first_step].from);
  command.superblock = layout().SuperblockOf(steps_[first_step].from);
  Piece read;
  read.part.command = slot;
  read.part.die = layout().DieOf(steps_[first_step].from);
  read.first_slot = steps_[first_step].from;
  size_t i = first_step;
  for (; i < steps_.size(); ++i) {
    const FlashStep& step = steps_[i];
    if (step.kind != FlashStep::Kind::kCopy || layout().PageOf(step.from) != page) break;
    ++read.slots;
    AddSlots(command.writes, PartKind::kWrite, slot, step.to);
  }
  read.part.bytes = read.slots * profile_.block_size;
  command.pieces.push_back(read);
  ++superblocks_[command.superblock].copies;
  EnterFlash(slot);
  return i;
}

void ConventionalModel::Simulation::StartWrites(Slot slot) {
  Command& command = commands_[slot];
  command.pieces = std::move(command.writes);
  command.writes.clear();
  EnterFlash(slot);
}

void ConventionalModel::Simulation::EndCopy(Slot slot) {
  const uint32_t superblock = commands_[slot].superblock;
  free_slots_.push_back(slot);
  --superblocks_[superblock].copies;
  EraseWhenDue(superblock);
}

void ConventionalModel::Simulation::EraseWhenDue(uint32_t superblock) {
  Superblock& victim = superblocks_[superblock];
  if (!victim.erase_due || victim.copies > 0) return;
  victim.erase_due = false;
  const Slot slot = TakeSlot(Role::kErase);
  Command& command = commands_[slot];
  command.superblock = superblock;
  command.pieces.resize(layout().dies);
  for (uint32_t die = 0; die < layout().dies; ++die) {
    command.pieces[die].part.kind = PartKind::kErase;
    command.pieces[die].part.command = slot;
    command.pieces[die].part.die = die;
  }
  EnterFlash(slot);
}

void ConventionalModel::Simulation::EndErase(Slot slot) {
  Superblock& superblock = superblocks_[commands_[slot].superblock];
  free_slots_.push_back(slot);
  superblock.erased = true;
  const std::vector<Waiting> waiting = std::exchange(superblock.waiting, {});
  for (const Waiting& w : waiting) StartPiece(w.slot, w.piece);
}

// Pieces.

// Adds a slot to the last piece if it follows that in the same flash page; otherwise adds it as a new piece.
void ConventionalModel::Simulation::AddSlots(std::vector<Piece>& pieces, PartKind kind, Slot command,
                                             uint32_t slot) const {
  const bool follows = !pieces.empty() && pieces.back().first_slot + pieces.back().slots == slot &&
                       layout().PageOf(pieces.back().first_slot) == layout().PageOf(slot);
  if (!follows) {
    pieces.emplace_back();
    pieces.back().part.kind = kind;
    pieces.back().part.command = command;
    pieces.back().part.die = layout().DieOf(slot);
    pieces.back().first_slot = slot;
  }
  ++pieces.back().slots;
  pieces.back().part.bytes += profile_.block_size;
}

void ConventionalModel::Simulation::StartPiece(Slot slot, size_t piece) {
  Piece& p = commands_[slot].pieces[piece];
  if (p.part.kind == PartKind::kWrite) {
    Superblock& superblock = superblocks_[layout().SuperblockOf(p.first_slot)];
    if (!superblock.erased) {
      superblock.waiting.push_back({slot, piece});
      return;
    }
    uint32_t& sent = slots_in_unit_[layout().UnitOf(p.first_slot)];
    sent += p.slots;
    p.part.fills_unit = sent >= layout().unit_slots;
    if (p.part.fills_unit) sent = 0;
  }
  flash_.Start(now_, p.part);
}

// Bounds.

int64_t ConventionalModel::Simulation::NextCompletionBound() {
  return completions_.NextBound(events_.NextTime(), [this](Slot slot, uint64_t number) {
    return commands_[slot].number == number ? EarliestCompletion(commands_[slot]) : kNever;
  });
}

int64_t ConventionalModel::Simulation::EarliestCompletion(const Command& command) const {
  int64_t end = command.ends_at;
  for (const Piece& piece : command.pieces) {
    const Part& part = piece.part;
    if (!command.on_flash) {
      const int64_t on_flash = flash_.EarliestEndOfChain({&part, 1}, 1, command.arrives_at);
      end = std::max(end, EarliestAtHost(part, on_flash));
    } else if (part.state == Part::State::kQueued || part.state == Part::State::kOnChannel) {
      end = std::max(end, EarliestAtHost(part, flash_.EarliestEnd(part)));
    }
  }
  return end;
}

int64_t ConventionalModel::Simulation::EarliestAtHost(const Part& part, int64_t end) const {
  return part.kind == PartKind::kRead ? link_to_host_.EarliestEnd(end, LinkTime(part.bytes)) : end;
}

ConventionalModel::ConventionalModel(const Profile& profile, bool timing)
    : impl_(std::make_unique<Simulation>(profile, timing)) {}

ConventionalModel::~ConventionalModel() = default;

void ConventionalModel::Age(double times, uint64_t seed) {
  impl_->map().Age(times, seed);
  impl_->map().ResetCounters();
}

void ConventionalModel::Fill(uint64_t offset, uint64_t length) {
  std::vector<FlashStep> steps;
  for (uint64_t at = offset; at < offset + length; at += block_size()) {
    steps.clear();
    impl_->map().Write(static_cast<uint32_t>(at / block_size()), steps);
  }
  impl_->map().ResetCounters();
}

void ConventionalModel::Submit(int64_t now_ns, const TimingOp& op, uint64_t ticket) {
  impl_->Submit(now_ns, op, ticket);
}

void ConventionalModel::AdvanceTo(int64_t now_ns, std::vector<TimingCompletion>& completed) {
  impl_->AdvanceTo(now_ns, completed);
}

int64_t ConventionalModel::NextCompletionBound() { return impl_->NextCompletionBound(); }

MediaCounts ConventionalModel::Media() const { return impl_->Media(); }

const FtlCounters& ConventionalModel::counters() const { return impl_->map().counters(); }

uint32_t ConventionalModel::block_size() const { return impl_->profile().block_size; }

}  // namespace isozone
