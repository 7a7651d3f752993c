#include "store/file/collected_files.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/log.h"
#include "store/file/relocation_writer.h"
#include "store/file/unpublished.h"

namespace isozone {
namespace {

// `moves`: GcMove or ExtentMove.
template <typename Moves>
uint64_t LengthOf(const Moves& moves) {
  uint64_t bytes = 0;
  for (const auto& move : moves) bytes += move.length;
  return bytes;
}

// Returns the space that the copies of `moves` take.
template <typename Moves>
std::vector<ZoneBytes> SpaceBehind(const DeviceGeometry& geometry, const Moves& moves) {
  std::vector<ZoneBytes> space;
  space.reserve(moves.size());
  for (const auto& move : moves) space.emplace_back(geometry.ZoneOf(move.to), move.length);
  return space;
}

}  // namespace

void CollectedFiles::CountBlocks(std::span<GcCandidate> zones) const {
  const MutexLock lock(catalog_.namespace_mutex);
  for (GcCandidate& zone : zones) zone.valid = std::max(zone.valid, catalog_.state.BlocksIn(zone.zone));
}

std::vector<GcRun> CollectedFiles::RunsIn(ZoneId zone) {
  std::vector<GcRun> runs = KnownRunsIn(zone);
  if (!runs.empty()) return runs;
  if (const Status published = Unpublished::PublishZone(catalog_, data_path_.engine, zone); !published.ok()) {
    Log().warn("zone {} cannot be collected: {}", zone.value(), published.message());
    return {};
  }
  return KnownRunsIn(zone);
}

std::vector<GcRun> CollectedFiles::KnownRunsIn(ZoneId zone) const {
  std::vector<GcRun> runs;
  uint64_t known = 0;
  const MutexLock lock(catalog_.namespace_mutex);
  for (const auto& [id, extent] : catalog_.state.ExtentsIn(zone)) {
    const Inode& inode = *catalog_.state.Find(id);
    const bool table = inode.kind == FileKind::kData;
    runs.push_back({id.value(), extent.device_offset, extent.length, {inode.lifetime, inode.level}, table});
    known += extent.length;
  }
  if (known != data_path_.pool->Live(zone)) return {};
  std::sort(runs.begin(), runs.end(), [](const GcRun& a, const GcRun& b) { return a.from < b.from; });
  return runs;
}

std::unique_ptr<GcWriter> CollectedFiles::MakeWriter(bool confined) {
  return std::make_unique<RelocationWriter>(data_path_, catalog_, confined);
}

Result<GcFiles::Outcome> CollectedFiles::Commit(std::span<const GcMove> moves) {
  Outcome outcome;
  if (moves.empty()) return outcome;
  Status status = data_path_.engine.Flush(IoClass::kGc);
  std::map<InodeId, std::vector<GcMove>> by_file;
  for (const GcMove& move : moves) by_file[InodeId(move.file)].push_back(move);
  for (auto& [id, of_file] : by_file) std::ranges::sort(of_file, {}, &GcMove::from);

  const MutexLock lock(catalog_.namespace_mutex);
  SpaceClaim copies = TakeCopies(moves);  // the copies that no file gets are given up
  std::vector<MetadataOp> ops;
  std::map<InodeId, Accepted> accepted;
  for (const auto& [id, of_file] : by_file) {
    Accepted& of_it = accepted[id] = StillThere(id, of_file);
    if (!of_it.moves.empty()) ops.emplace_back(MoveExtents{id, of_it.moves});
  }
  if (ZoneHeats heats = NewHeats(accepted); !heats.empty()) ops.emplace_back(SetZoneHeats{std::move(heats)});
  if (status.ok() && !ops.empty()) status = catalog_.Commit(ops).status();
  ISOZONE_RETURN_IF_ERROR(status);
  for (const auto& [id, of_file] : by_file) {
    const Accepted& of_it = accepted[id];
    const uint64_t moved = LengthOf(of_it.moves);
    const uint64_t dropped = LengthOf(of_file) - moved;
    outcome.moved += moved;
    outcome.dropped += dropped;
    if (catalog_.FindOpen(id) != nullptr) outcome.kept += dropped;
    if (moved > 0) Move(id, of_it, copies);
  }
  return outcome;
}

ZoneHeats CollectedFiles::NewHeats(const std::map<InodeId, Accepted>& accepted) const {
  ZoneHeats heats;
  for (const auto& [id, of_file] : accepted) {
    for (const ExtentMove& move : of_file.moves) {
      const ZoneId zone = data_path_.geometry().ZoneOf(move.to);
      if (heats.contains(zone)) continue;
      const ZoneHeat heat = data_path_.pool->Heat(zone);
      if (heat != HeatOf(catalog_.state.device().heats, zone)) heats.emplace(zone, heat);
    }
  }
  return heats;
}

CollectedFiles::Accepted CollectedFiles::StillThere(InodeId id, std::span<const GcMove> moves) const {
  Accepted accepted;
  if (catalog_.state.Find(id) == nullptr) return accepted;
  std::optional<ZoneId> zone;
  std::vector<FileExtent> extents;  // of the file in `zone`, by place
  for (const GcMove& move : moves) {
    if (zone != data_path_.geometry().ZoneOf(move.from)) {
      zone = data_path_.geometry().ZoneOf(move.from);
      extents = catalog_.state.ExtentsIn(*zone, id);
      SortByPlace(extents);
    }
    auto extent = std::ranges::upper_bound(extents, move.from, {}, &FileExtent::device_offset);
    if (extent != extents.begin()) --extent;
    for (; extent != extents.end(); ++extent) {
      const uint64_t begin = std::max(move.from, extent->device_offset).value();
      const uint64_t end = std::min(move.from.value() + move.length, extent->device_offset.value() + extent->length);
      if (extent->device_offset.value() >= move.from.value() + move.length) break;
      if (begin >= end) continue;
      const DeviceOffset to(move.to.value() + (begin - move.from.value()));
      accepted.moves.push_back({DeviceOffset(begin), to, end - begin});
      const uint64_t file_offset = extent->file_offset + (begin - extent->device_offset.value());
      accepted.placed.push_back({{file_offset, to, end - begin}, DeviceOffset(begin)});
    }
  }
  return accepted;
}

SpaceClaim CollectedFiles::TakeCopies(std::span<const GcMove> moves) {
  return catalog_.copies.Split(SpaceBehind(data_path_.geometry(), moves));
}

void CollectedFiles::Move(InodeId id, const Accepted& accepted, SpaceClaim& copies) {
  std::vector<ZoneBytes> before;
  for (const ExtentMove& move : accepted.moves) {
    before.emplace_back(data_path_.geometry().ZoneOf(move.from), move.length);
  }
  copies.Split(SpaceBehind(data_path_.geometry(), accepted.moves)).ToMetadata();
  SpaceClaim old = SpaceClaim::FromMetadata(*data_path_.pool, before);
  if (const auto file = catalog_.FindOpen(id)) file->Relocate(accepted.placed, std::move(old));
}

void CollectedFiles::GiveUp(std::span<const GcMove> moves) {
  const MutexLock lock(catalog_.namespace_mutex);
  TakeCopies(moves).Release();
}

}  // namespace isozone
