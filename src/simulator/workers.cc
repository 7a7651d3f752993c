#include "simulator/workers.h"

#include <algorithm>
#include <utility>

namespace isozone {
namespace {

ZoneRequest FlushRequest() {
  ZoneRequest request;
  request.urgent = true;
  return request;
}

ZoneRequest CompactionRequest() {
  ZoneRequest request;
  request.compaction = true;
  return request;
}

void SetZones(const SimWorld& world, LsmFile& table) {
  for (const FilePlace& place : world.zones->file(table.number).places) {
    if (std::ranges::find(table.zones, place.zone) == table.zones.end()) table.zones.push_back(place.zone);
  }
}

// Something may have to be done when the tree changes. Where it is steered, it may also wait for room.
void AwaitWork(SimWorld& world, Actor& worker) {
  world.loop.CallOn(world.tree_changed, worker);
  const bool waits_for_room = world.options.tree.steering && !world.is_idle();
  if (waits_for_room) world.loop.CallAt(world.loop.now_ns() + kLookForRoomNs, worker);
}

}  // namespace

FlushWorker::FlushWorker(SimWorld& world) : world_(world), job_(world, FlushRequest()) {}

void FlushWorker::Proceed() {
  for (;;) {
    if (!busy_ && !Begin()) return AwaitWork(world_, *this);
    const auto done = job_.Proceed(*this);
    if (!done.ok()) return world_.Fail(done.status());
    if (!*done) return;
    End();
  }
}

bool FlushWorker::MayBegin() {
  if (!world_.options.tree.steering) return true;
  if (!world_.held_flush) {
    const SimWorld::Compactions& done = world_.compactions;
    world_.held_flush = {done.written_bytes, done.ended, world_.loop.now_ns() + kLongestHoldNs};
  }
  if (!world_.FlushGoesFirst()) return false;
  world_.held_flush.reset();
  return true;
}

bool FlushWorker::Begin() {
  if (!world_.memtables.any_waits() || !MayBegin()) return false;
  FullMemtables::Memtable memtable = world_.memtables.Take();
  memtable_ = memtable.number;
  table_ = world_.model.NewTable(std::move(memtable.records));
  job_.Begin({{table_.number, table_.bytes, world_.ClassOf(0)}}, {});
  busy_ = true;
  ++world_.busy_workers;
  began_ns_ = world_.loop.now_ns();
  world_.flushes_since_ns.insert(began_ns_);
  world_.loop.Ring(world_.tree_changed);  // compactions waited for it to begin
  return true;
}

void FlushWorker::End() {
  SetZones(world_, table_);
  world_.memtables.NoteWritten(memtable_, std::move(table_));
  while (auto table = world_.memtables.TakeWritten()) {
    const Status added = world_.model.AddTable(std::move(*table));
    if (!added.ok()) world_.Fail(added);
    const uint64_t log = FullMemtables::LogOf(world_.memtables.installed());
    if (world_.zones->has_file(log)) world_.zones->RemoveFile(log);
  }
  busy_ = false;
  --world_.busy_workers;
  world_.flushes_since_ns.erase(world_.flushes_since_ns.find(began_ns_));
  world_.KeepInShape();
  world_.loop.Ring(world_.tree_changed);
}

CompactionWorker::CompactionWorker(SimWorld& world) : world_(world), job_(world, CompactionRequest()) {}

void CompactionWorker::Proceed() {
  for (;;) {
    if (!busy_ && !Begin()) return AwaitWork(world_, *this);
    const auto done = job_.Proceed(*this);
    if (!done.ok()) return world_.Fail(done.status());
    NoteWritten();
    if (!*done) return;
    const Status ended = End();
    if (!ended.ok()) return world_.Fail(ended);
  }
}

// Moves what can be moved, and begins a compaction if one is due.
bool CompactionWorker::Begin() {
  for (;;) {
    if (world_.FlushGoesFirst()) {
      world_.loop.Ring(world_.tree_changed);  // it may have waited for room, of which nobody tells
      break;
    }
    world_.KeepInShape();
    auto pick = world_.picker->Pick(world_.model.tree());
    if (!pick) break;
    if (world_.options.tree.steering && !SteeredShape::MayCompact(world_.RoomFor(pick))) break;
    Status status;
    pick->trivial_move = pick->trivial_move && world_.options.tree.moves;
    if (pick->trivial_move) {
      status = world_.model.Run(*pick);
      if (status.ok()) world_.loop.Ring(world_.tree_changed);
    } else {
      status = BeginMerge(*pick);
      if (status.ok()) return true;
    }
    if (status.ok()) continue;
    world_.Fail(status);
    break;
  }
  return false;
}

Status CompactionWorker::BeginMerge(const CompactionPick& pick) {
  input_bytes_ = world_.model.tree().bytes(pick);
  ISOZONE_ASSIGN_OR_RETURN(running_, world_.model.Begin(pick));
  ++world_.compactions.running;
  world_.compactions.running_bytes += input_bytes_;
  std::vector<InputStream> inputs;
  inputs.reserve(pick.inputs.size());
  uint64_t files = 0;
  for (const CompactionPick::Input& input : pick.inputs) {
    InputStream& stream = inputs.emplace_back(world_.InputWindows());
    for (const uint64_t file : input.files) stream.Add(world_.zones->file(file));
    files += input.files.size();
  }
  ISOZONE_ASSIGN_OR_RETURN(outputs_, world_.model.Merge(running_));
  std::vector<TableOutput> tables;
  for (const LsmFile& output : outputs_) {
    tables.push_back(
        {output.number, output.bytes, world_.ClassOf(pick.output_level), world_.CohortOf(output.short_lived)});
  }
  job_.Begin(std::move(tables), std::move(inputs));
  noted_bytes_ = 0;
  busy_ = true;
  ++world_.busy_workers;
  SimReport& report = world_.report;
  ++report.compactions;
  report.largest_compaction_files = std::max(report.largest_compaction_files, files);
  return {};
}

void CompactionWorker::NoteWritten() {
  const uint64_t more = job_.written_bytes() - std::exchange(noted_bytes_, job_.written_bytes());
  world_.compactions.running_written_bytes += more;
  world_.compactions.written_bytes += more;
}

Status CompactionWorker::End() {
  for (LsmFile& output : outputs_) SetZones(world_, output);
  busy_ = false;
  --world_.busy_workers;
  --world_.compactions.running;
  world_.compactions.running_bytes -= input_bytes_;
  world_.compactions.running_written_bytes -= noted_bytes_;
  ++world_.compactions.ended;
  ISOZONE_RETURN_IF_ERROR(world_.model.Install(running_, std::exchange(outputs_, {})));
  world_.KeepInShape();
  world_.loop.Ring(world_.tree_changed);
  return {};
}

}  // namespace isozone
