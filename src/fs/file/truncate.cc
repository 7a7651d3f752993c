#include "fs/file/truncate.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "fs/extents.h"
#include "fs/file/open_log.h"
#include "fs/file/zone_stream.h"

namespace isozone {
namespace {

// Returns the space that `before` has and that `after`, which is made of parts of it, no longer has.
std::vector<ZoneBytes> SpaceLost(const DeviceGeometry& geometry, std::span<const FileExtent> before,
                                 std::span<const FileExtent> after) {
  std::map<ZoneId, uint64_t> bytes;
  for (const auto& [zone, length] : SpaceOf(geometry, before)) bytes[zone] += length;
  for (const auto& [zone, length] : SpaceOf(geometry, after)) {
    if (auto it = bytes.find(zone); it != bytes.end()) it->second -= std::min(it->second, length);
  }
  return {bytes.begin(), bytes.end()};
}

// Returns the space that is no longer the file's. Readers may be using it.
Result<SpaceClaim> CutData(MountContext& context, const Inode& inode, uint64_t size)
    ISOZONE_REQUIRES(context.namespace_mutex) {
  const std::vector<FileExtent> touched = inode.extents.Expand(size);
  const auto lost = SpaceLost(context.geometry(), touched, CutExtents(touched, size));
  ExtentList kept = inode.extents;
  kept.CutAt(size);
  const MetadataOp op = SetExtents{inode.id, std::move(kept), context.clock.NowWallS()};
  ISOZONE_RETURN_IF_ERROR(context.Commit({&op, 1}).status());
  return SpaceClaim::FromMetadata(*context.pool, lost);
}

// The regions keep all of their frames. The scan of each region stops at its payload. `kept` is what is left of the
// log, and all of it is sealed. Returns what CutData does.
Result<SpaceClaim> CutLog(MountContext& context, const Inode& inode, std::span<const FileExtent> kept)
    ISOZONE_REQUIRES(context.namespace_mutex) {
  SealedLog log = SealLog(context.geometry(), inode.regions, kept);
  const MetadataOp op = SetLogRegions{inode.id, std::move(log.regions), context.clock.NowWallS()};
  ISOZONE_RETURN_IF_ERROR(context.Commit({&op, 1}).status());
  return SpaceClaim::FromMetadata(*context.pool, SpaceOf(log.dropped));
}

// From now on the file has `replacement`, which `space` claims. Returns the sequence to sync. After an error, nothing
// has changed.
Result<uint64_t> Replace(MountContext& context, const Inode& inode, std::span<const FileExtent> replacement,
                         SpaceClaim& space) ISOZONE_REQUIRES(context.namespace_mutex) {
  const InodeId id = inode.id;
  std::vector<FileExtent> before = inode.extents.Expand();
  std::vector<FileExtent> spliced = SpliceExtents(before, replacement);
  // Of the old and the new extents together, those that the splice did not take over were replaced.
  before.insert(before.end(), replacement.begin(), replacement.end());
  const auto lost = SpaceLost(context.geometry(), before, spliced);
  const MetadataOp op = SetExtents{id, spliced, context.clock.NowWallS()};
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, context.Commit({&op, 1}));
  space.ToMetadata();
  SpaceClaim old = SpaceClaim::FromMetadata(*context.pool, lost);
  if (const auto file = context.FindOpen(id)) {
    file->Reset(spliced, Status::Ok());
    file->Move({}, std::move(old));
  }
  return sequence;
}

}  // namespace

Status TruncateFile(MountContext& context, OpenFile& file, uint64_t size) {
  const MutexLock lock(context.namespace_mutex);  // held from here on, since the collector moves extents
  ExtentList kept = file.Extents();
  kept.CutAt(size);
  SpaceClaim lost;
  const Inode* inode = context.state.Find(file.id());
  if (inode == nullptr) {
    lost = file.unnamed.TakeBeyond(SpaceOf(context.geometry(), kept.Expand()));
  } else {
    ISOZONE_ASSIGN_OR_RETURN(
        lost, inode->kind == FileKind::kLog ? CutLog(context, *inode, kept.Expand()) : CutData(context, *inode, size));
  }
  file.Reset(std::move(kept), file.damage());
  file.Move({}, std::move(lost));
  return Status::Ok();
}

Status CheckNoHole(uint64_t size, uint64_t offset) {
  if (offset <= size) return Status::Ok();
  return Status::InvalidArgument(fmt::format("the file has {} bytes; writing at {} would leave a hole", size, offset));
}

Status OverwriteFile(MountContext& context, InodeId id, uint64_t offset, std::span<const std::byte> data) {
  // The new bytes are written before anything of the file changes. `space` claims them until the record below names
  // them.
  ZoneStream stream(context, ZoneUse::kData);
  AlignedBuffer buffer(RoundUp(data.size(), context.geometry().block_size));
  std::memcpy(buffer.data(), data.data(), data.size());
  std::memset(buffer.data() + data.size(), 0, buffer.size() - data.size());
  std::vector<FileExtent> replacement;
  SpaceClaim space;
  Status status = stream.WriteExtents(buffer.span(), data.size(), offset, false, replacement, space);
  if (status.ok()) status = stream.MakeDurable();
  ISOZONE_RETURN_IF_ERROR(status);

  uint64_t sequence = 0;
  {
    const MutexLock lock(context.namespace_mutex);
    const Inode* inode = context.state.Find(id);
    const auto file = context.FindOpen(id);
    if (inode == nullptr) return Status::NotFound("the file was removed while it was overwritten");
    if (file != nullptr && file->is_busy()) return Status::Busy("the file is being written by another handle");
    // The file may have been cut while the new bytes were written.
    ISOZONE_RETURN_IF_ERROR(CheckNoHole(inode->size, offset));
    ISOZONE_ASSIGN_OR_RETURN(sequence, Replace(context, *inode, replacement, space));
  }
  return context.journal->Sync(sequence);
}

}  // namespace isozone
