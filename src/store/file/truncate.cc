#include "store/file/truncate.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "store/file/open_log.h"
#include "store/file/zone_stream.h"

namespace isozone {
namespace {

// Returns the space that is no longer the file's. Readers may be using it.
Result<SpaceClaim> CutData(MountContext& context, const Inode& inode, uint64_t size)
    ISOZONE_REQUIRES(context.namespace_mutex) {
  ExtentList kept = inode.extents;
  const ExtentList lost = kept.CutAt(size);
  const MetadataOp op = CutFile{inode.id, size, context.clock.NowWallS()};
  ISOZONE_RETURN_IF_ERROR(context.Commit({&op, 1}).status());
  return SpaceClaim::FromMetadata(*context.pool, SpaceOfList(context.geometry(), lost));
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

// From now on the file has `replacement`, which begins within it and may reach beyond its end, and which `space`
// claims. Returns the sequence to sync. After an error, nothing has changed.
Result<uint64_t> Replace(MountContext& context, const Inode& inode, const ExtentList& replacement, SpaceClaim& space)
    ISOZONE_REQUIRES(context.namespace_mutex) {
  ExtentList kept = inode.extents;
  ExtentList lost = kept.CutAt(replacement.begin_offset());
  lost.CutAt(replacement.end_offset());
  const uint64_t now_s = context.clock.NowWallS();
  std::vector<MetadataOp> ops = {PlaceExtents{inode.id, replacement, now_s}};
  if (replacement.end_offset() > inode.size) {
    ops = {CutFile{inode.id, kept.end_offset(), now_s}, AppendExtents{inode.id, kept.size(), replacement, now_s}};
  }
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, context.Commit(ops));
  space.ToMetadata();
  SpaceClaim old = SpaceClaim::FromMetadata(*context.pool, SpaceOfList(context.geometry(), lost));
  if (const auto file = context.FindOpen(inode.id)) {
    file->Reset(inode.extents, Status::Ok());
    file->Move({}, std::move(old));
  }
  return sequence;
}

}  // namespace

Status TruncateFile(MountContext& context, OpenFile& file, uint64_t size) {
  const MutexLock lock(context.namespace_mutex);  // held from here on, since the collector moves extents
  const auto kept = [&] {
    ExtentList extents = file.Extents();
    extents.CutAt(size);
    return extents;
  };
  SpaceClaim lost;
  const Inode* inode = context.state.Find(file.id());
  if (inode == nullptr) {
    lost = file.unnamed.TakeBeyond(SpaceOfList(context.geometry(), kept()));
  } else {
    ISOZONE_ASSIGN_OR_RETURN(lost, inode->kind == FileKind::kLog ? CutLog(context, *inode, kept().Expand())
                                                                 : CutData(context, *inode, size));
  }
  file.Resize(size);
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
