#include "store/file/mount_context.h"

#include <algorithm>
#include <variant>

#include "store/file/log_frame.h"

namespace isozone {
namespace {

bool IsOfNames(const MetadataOp& op) {
  return std::holds_alternative<PutInode>(op) || std::holds_alternative<AddLink>(op) ||
         std::holds_alternative<RemoveLink>(op) || std::holds_alternative<RemoveInode>(op) ||
         std::holds_alternative<SetAttributes>(op) || std::holds_alternative<SetDetails>(op) ||
         std::holds_alternative<SetTimes>(op);
}

}  // namespace

MountContext::MountContext(std::unique_ptr<ZonedDevice> device, MountOptions options, std::string label,
                           std::string uuid, MetadataState state, bool parallel, Clock& clock)
    : device(std::make_unique<PatientDevice>(std::move(device))),
      options(std::move(options)),
      label(std::move(label)),
      uuid(std::move(uuid)),
      frame_seed(LogFrameSeed(this->uuid)),
      parallel(parallel),
      groups(std::make_shared<GroupIndex>(geometry().zone_count, parallel ? state.device().groups.get() : nullptr)),
      clock(clock),
      engine(*this->device, groups,
             {.isolation = parallel && this->options.isolation, .write_gap = this->options.write_gap}),
      buffers(2 * this->options.writer_memory),
      read_ahead(this->options.read_ahead_memory),
      state(std::move(state)) {}

MountContext::~MountContext() {
  // The metadata names an open region, though not its end.
  for (auto& [id, space] : unread_logs) space.ToMetadata();
}

Result<uint64_t> MountContext::Commit(std::span<const MetadataOp> ops) {
  if (journal == nullptr) return Status::ReadOnly("the file system is mounted read-only");
  ISOZONE_RETURN_IF_ERROR(journal->status());
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, journal->Commit(ops));
  if (std::ranges::any_of(ops, IsOfNames)) last_name_change.store(sequence, std::memory_order_release);
  return sequence;
}

uint64_t MountContext::TimeOf(const Inode& inode) {
  const auto file = FindOpen(inode.id);
  return file != nullptr && file->keeps_time ? inode.modified_s : clock.NowWallS();
}

std::shared_ptr<OpenFile> MountContext::FindOpen(InodeId id) {
  const auto it = open_files.find(id);
  return it == open_files.end() ? nullptr : it->second.lock();
}

void MountContext::Release(std::shared_ptr<OpenFile> file) {
  if (file == nullptr) return;
  const MutexLock lock(namespace_mutex);
  if (file.use_count() == 1) open_files.erase(file->id());
  file.reset();  // handles are made under the lock, so the count is exact
}

void MountContext::LeaveToHandles(InodeId id, SpaceClaim space) {
  if (const auto file = FindOpen(id)) file->unnamed.Merge(std::move(space));
}

std::vector<ZoneBytes> SpaceOf(const DeviceGeometry& geometry, std::span<const FileExtent> extents) {
  std::vector<ZoneBytes> space;
  space.reserve(extents.size());
  for (const FileExtent& e : extents) {
    if (!e.is_hole()) space.emplace_back(geometry.ZoneOf(e.device_offset), e.length);
  }
  return space;
}

std::vector<ZoneBytes> SpaceOfList(const DeviceGeometry& geometry, const ExtentList& extents) {
  std::vector<ZoneBytes> space;
  extents.VisitRuns([&](const ExtentRun& column) {
    VisitByZone(geometry, column,
                [&](ZoneId zone, const ExtentRun& run) { space.emplace_back(zone, run.length * run.count); });
  });
  return space;
}

std::vector<ZoneBytes> SpaceOf(const DeviceGeometry& geometry, const Inode& inode) {
  return inode.kind == FileKind::kLog ? SpaceOf(inode.regions) : SpaceOfList(geometry, inode.extents);
}

std::vector<ZoneId> ZonesOf(const DeviceGeometry& geometry, const Inode& inode) {
  std::vector<ZoneId> zones;
  inode.extents.VisitRuns([&](const ExtentRun& column) {
    VisitByZone(geometry, column, [&](ZoneId zone, const ExtentRun&) { zones.push_back(zone); });
  });
  for (const LogRegion& region : inode.regions) zones.push_back(region.zone);
  std::ranges::sort(zones);
  zones.erase(std::unique(zones.begin(), zones.end()), zones.end());
  return zones;
}

std::vector<ZoneBytes> SpaceOf(std::span<const LogRegion> regions) {
  std::vector<ZoneBytes> space;
  for (const LogRegion& r : regions) {
    if (!r.open() && r.end > r.begin) space.emplace_back(r.zone, r.end - r.begin);
  }
  return space;
}

}  // namespace isozone
