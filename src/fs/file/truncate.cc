#include "fs/file/truncate.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/clock.h"
#include "fs/extents.h"
#include "fs/file/open_log.h"
#include "fs/file/zone_stream.h"

namespace isozone {
namespace {

// Zone and bytes that `before` has and `after`, made of parts of it, has not.
std::vector<std::pair<ZoneId, uint64_t>> SpaceLost(const DeviceGeometry& geometry, std::span<const FileExtent> before,
                                                   std::span<const FileExtent> after) {
  std::map<ZoneId, uint64_t> bytes;
  for (const auto& [zone, length] : SpaceOf(geometry, before)) bytes[zone] += length;
  for (const auto& [zone, length] : SpaceOf(geometry, after)) {
    if (auto it = bytes.find(zone); it != bytes.end()) it->second -= std::min(it->second, length);
  }
  return {bytes.begin(), bytes.end()};
}

Status CutData(FsCore& core, const Inode& inode, uint64_t size) ISOZONE_REQUIRES(core.namespace_mutex) {
  std::vector<FileExtent> kept = CutExtents(inode.extents, size);
  const auto lost = SpaceLost(core.geometry(), inode.extents, kept);
  const InodeId id = inode.id;
  const MetadataOp op = SetExtents{id, std::move(kept), WallSeconds()};
  ISOZONE_RETURN_IF_ERROR(core.Commit({&op, 1}).status());
  core.ReleaseSpace(id, lost);
  return Status::Ok();
}

// Regions keep all their frames; the scan of each stops at its payload. `kept`: what is left of the log, all of which is
// sealed.
Status CutLog(FsCore& core, const Inode& inode, std::span<const FileExtent> kept)
    ISOZONE_REQUIRES(core.namespace_mutex) {
  const InodeId id = inode.id;
  SealedLog log = SealLog(core.geometry(), inode.regions, kept);
  const MetadataOp op = SetLogRegions{id, std::move(log.regions), WallSeconds()};
  ISOZONE_RETURN_IF_ERROR(core.Commit({&op, 1}).status());
  core.ReleaseSpace(id, SpaceOf(log.dropped));
  return Status::Ok();
}

// The file has `replacement` from now on. Returns what to sync. An error: nothing has changed.
Result<uint64_t> Replace(FsCore& core, const Inode& inode, std::span<const FileExtent> replacement)
    ISOZONE_REQUIRES(core.namespace_mutex) {
  const InodeId id = inode.id;
  std::vector<FileExtent> spliced = SpliceExtents(inode.extents, replacement);
  // What the splice did not take over of old and new together is what was replaced.
  std::vector<FileExtent> before = inode.extents;
  before.insert(before.end(), replacement.begin(), replacement.end());
  const auto lost = SpaceLost(core.geometry(), before, spliced);
  const MetadataOp op = SetExtents{id, spliced, WallSeconds()};
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, core.Commit({&op, 1}));
  core.ReleaseSpace(id, lost);
  if (const auto file = core.FindOpen(id)) file->Reset(std::move(spliced), Status::Ok());
  return sequence;
}

}  // namespace

Status TruncateFile(FsCore& core, OpenFile& file, uint64_t size) {
  const MutexLock lock(core.namespace_mutex);  // from here on: the collector moves extents
  std::vector<FileExtent> kept = CutExtents(file.Extents(), size);
  if (const Inode* inode = core.state.Find(file.id())) {
    ISOZONE_RETURN_IF_ERROR(inode->kind == FileKind::kLog ? CutLog(core, *inode, kept) : CutData(core, *inode, size));
  }
  file.Reset(std::move(kept), file.damage());
  return Status::Ok();
}

Status CheckNoHole(uint64_t size, uint64_t offset) {
  if (offset <= size) return Status::Ok();
  return Status::InvalidArgument(fmt::format("the file has {} bytes; writing at {} would leave a hole", size, offset));
}

Status OverwriteFile(FsCore& core, InodeId id, uint64_t offset, std::span<const std::byte> data) {
  // The new bytes are written before anything of the file changes; they are the sink's until the record below names
  // them.
  ZoneStream stream(core, ZoneUse::kData);
  AlignedBuffer buffer(RoundUp(data.size(), core.geometry().block_size));
  std::memcpy(buffer.data(), data.data(), data.size());
  std::memset(buffer.data() + data.size(), 0, buffer.size() - data.size());
  std::vector<FileExtent> replacement;
  Status status = stream.WriteExtents(buffer.span(), data.size(), offset, false, replacement);
  if (status.ok()) status = stream.MakeDurable();

  uint64_t sequence = 0;
  {
    const MutexLock lock(core.namespace_mutex);
    const Inode* inode = core.state.Find(id);
    const auto file = core.FindOpen(id);
    if (status.ok() && inode == nullptr) status = Status::NotFound("the file was removed while it was overwritten");
    if (status.ok() && file != nullptr && file->has_writer)
      status = Status::Busy("the file is being written by another handle");
    // Nothing kept it from being cut while the new bytes were written.
    if (status.ok()) status = CheckNoHole(inode->size, offset);
    if (status.ok()) {
      const Result<uint64_t> replaced = Replace(core, *inode, replacement);
      status = replaced.status();
      if (status.ok()) sequence = *replaced;
    }
    if (!status.ok()) {
      for (const auto& [zone, bytes] : SpaceOf(core.geometry(), replacement)) core.pool->RemoveLive(zone, bytes);
      return status;
    }
  }
  return core.journal->Sync(sequence);
}

}  // namespace isozone
