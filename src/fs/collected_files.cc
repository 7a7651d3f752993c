#include "fs/collected_files.h"

#include <algorithm>
#include <cassert>
#include <map>

#include "fs/survivor_writer.h"

namespace isozone {
namespace {

// All that is moved lies in one extent of the file as it is now.
bool Has(std::span<const FileExtent> by_device, const ExtentMove& move) {
  auto extent = std::upper_bound(by_device.begin(), by_device.end(), move.from,
                                 [](DeviceOffset offset, const FileExtent& e) { return offset < e.device_offset; });
  if (extent == by_device.begin()) return false;
  --extent;
  return move.from.value() + move.length <= extent->device_offset.value() + extent->length;
}

}  // namespace

bool CollectedFiles::Gains(GcCandidate& candidate) const {
  candidate.valid = std::max(candidate.valid, core_.state.BlocksIn(candidate.zone));
  return candidate.valid < candidate.written;
}

std::vector<GcCandidate> CollectedFiles::Candidates() const {
  std::vector<GcCandidate> candidates = core_.pool->GcCandidates();
  const MutexLock lock(core_.namespace_mutex);
  std::erase_if(candidates, [this](GcCandidate& c) ISOZONE_REQUIRES(core_.namespace_mutex) { return !Gains(c); });
  return candidates;
}

std::optional<GcCandidate> CollectedFiles::Hold(ZoneId zone) {
  auto held = core_.pool->BeginCollection(zone);
  if (!held) return held;
  {
    const MutexLock lock(core_.namespace_mutex);
    if (Gains(*held)) return held;
  }
  core_.pool->EndCollection(zone);
  return std::nullopt;
}

std::vector<GcRun> CollectedFiles::RunsIn(ZoneId zone) const {
  std::vector<GcRun> runs;
  uint64_t known = 0;
  const MutexLock lock(core_.namespace_mutex);
  for (const InodeId id : core_.state.FilesIn(zone)) {
    const Inode& inode = *core_.state.Find(id);
    for (const FileExtent& extent : inode.extents) {
      if (core_.geometry().ZoneOf(extent.device_offset) != zone) continue;
      runs.push_back({id.value(), extent.device_offset, extent.length, {inode.lifetime, inode.level}});
      known += extent.length;
    }
  }
  if (known != core_.pool->Live(zone)) return {};
  std::sort(runs.begin(), runs.end(), [](const GcRun& a, const GcRun& b) { return a.from < b.from; });
  return runs;
}

std::unique_ptr<GcWriter> CollectedFiles::MakeWriter() { return std::make_unique<SurvivorWriter>(core_); }

Result<GcStore::Outcome> CollectedFiles::Commit(std::span<const GcMove> moves) {
  Outcome outcome;
  if (moves.empty()) return outcome;
  Status status = core_.engine.Flush(IoClass::kGc);
  std::map<InodeId, std::vector<ExtentMove>> by_file;
  for (const GcMove& move : moves) by_file[InodeId(move.file)].push_back({move.from, move.to, move.length});

  const MutexLock lock(core_.namespace_mutex);
  std::vector<MetadataOp> ops;
  std::map<InodeId, std::vector<ExtentMove>> accepted;
  for (auto& [id, of_file] : by_file) {
    const Inode* inode = status.ok() ? core_.state.Find(id) : nullptr;
    std::vector<FileExtent> extents;
    if (inode != nullptr) extents = inode->extents;
    std::sort(extents.begin(), extents.end(),
              [](const FileExtent& a, const FileExtent& b) { return a.device_offset < b.device_offset; });
    std::vector<ExtentMove> dropped;
    for (const ExtentMove& move : of_file) (Has(extents, move) ? accepted[id] : dropped).push_back(move);
    Drop(dropped, outcome);
    if (accepted.contains(id)) ops.emplace_back(MoveExtents{id, accepted[id]});
  }
  if (!ops.empty()) status = core_.Commit(ops).status();
  for (const auto& [id, of_file] : accepted) {
    if (status.ok()) {
      Release(id, of_file);
      for (const ExtentMove& move : of_file) outcome.moved += move.length;
    } else {
      Drop(of_file, outcome);
    }
  }
  if (!status.ok()) return status;
  return outcome;
}

void CollectedFiles::Release(InodeId id, std::span<const ExtentMove> moves) {
  std::vector<std::pair<ZoneId, uint64_t>> space;
  for (const ExtentMove& move : moves) space.emplace_back(core_.geometry().ZoneOf(move.from), move.length);
  auto release = [pool = core_.pool.get(), space = std::move(space)] {
    for (const auto& [zone, bytes] : space) pool->RemoveLive(zone, bytes);
  };
  if (const auto file = core_.FindOpen(id)) {
    file->Move(moves, std::move(release));
  } else {
    release();
  }
}

void CollectedFiles::GiveUp(std::span<const GcMove> moves) {
  for (const GcMove& move : moves) core_.pool->RemoveLive(core_.geometry().ZoneOf(move.to), move.length);
}

void CollectedFiles::Drop(std::span<const ExtentMove> moves, Outcome& outcome) {
  for (const ExtentMove& move : moves) {
    core_.pool->RemoveLive(core_.geometry().ZoneOf(move.to), move.length);
    outcome.dropped += move.length;
  }
}

}  // namespace isozone
