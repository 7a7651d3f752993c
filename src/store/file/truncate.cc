#include "store/file/truncate.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "store/file/file_space.h"
#include "store/file/open_log.h"
#include "store/file/zone_stream.h"

namespace isozone {
namespace {

// Returns the space that is no longer the file's. Readers may be using it.
Result<SpaceClaim> CutData(Catalog& catalog, const Inode& inode, uint64_t size)
    ISOZONE_REQUIRES(catalog.namespace_mutex) {
  ExtentList kept = inode.extents;
  const ExtentList lost = kept.CutAt(size);
  const MetadataOp op = CutFile{inode.id, size, catalog.clock.NowWallS()};
  ISOZONE_RETURN_IF_ERROR(catalog.Commit({&op, 1}).status());
  return SpaceClaim::FromMetadata(*catalog.pool, SpaceOfList(catalog.geometry, lost));
}

// The regions keep all of their frames. The scan of each region stops at its payload. `kept` is what is left of the
// log, and all of it is sealed. Returns what CutData does.
Result<SpaceClaim> CutLog(Catalog& catalog, const Inode& inode, std::span<const FileExtent> kept)
    ISOZONE_REQUIRES(catalog.namespace_mutex) {
  SealedLog log = SealLog(catalog.geometry, inode.regions, kept);
  const MetadataOp op = SetLogRegions{inode.id, std::move(log.regions), catalog.clock.NowWallS()};
  ISOZONE_RETURN_IF_ERROR(catalog.Commit({&op, 1}).status());
  return SpaceClaim::FromMetadata(*catalog.pool, SpaceOf(log.dropped));
}

// From now on the file has `replacement`, which begins within it and may reach beyond its end, and which `space`
// claims. Returns the sequence to sync. After an error, nothing has changed.
Result<uint64_t> Replace(Catalog& catalog, const Inode& inode, const ExtentList& replacement, SpaceClaim& space)
    ISOZONE_REQUIRES(catalog.namespace_mutex) {
  ExtentList kept = inode.extents;
  ExtentList lost = kept.CutAt(replacement.begin_offset());
  lost.CutAt(replacement.end_offset());
  const uint64_t now_s = catalog.clock.NowWallS();
  std::vector<MetadataOp> ops = {PlaceExtents{inode.id, replacement, now_s}};
  if (replacement.end_offset() > inode.size) {
    ops = {CutFile{inode.id, kept.end_offset(), now_s}, AppendExtents{inode.id, kept.size(), replacement, now_s}};
  }
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, catalog.Commit(ops));
  space.ToMetadata();
  SpaceClaim old = SpaceClaim::FromMetadata(*catalog.pool, SpaceOfList(catalog.geometry, lost));
  if (const auto file = catalog.FindOpen(inode.id)) {
    file->Reset(inode.extents, Status::Ok());
    file->Move({}, std::move(old));
  }
  return sequence;
}

}  // namespace

Status TruncateFile(Catalog& catalog, OpenFile& file, uint64_t size) {
  const MutexLock lock(catalog.namespace_mutex);  // held from here on, since the collector moves extents
  const auto kept = [&] {
    ExtentList extents = file.Extents();
    extents.CutAt(size);
    return extents;
  };
  SpaceClaim lost;
  const Inode* inode = catalog.state.Find(file.id());
  if (inode == nullptr) {
    lost = file.unnamed.TakeBeyond(SpaceOfList(catalog.geometry, kept()));
  } else {
    ISOZONE_ASSIGN_OR_RETURN(lost, inode->kind == FileKind::kLog ? CutLog(catalog, *inode, kept().Expand())
                                                                 : CutData(catalog, *inode, size));
  }
  file.Resize(size);
  file.Move({}, std::move(lost));
  return Status::Ok();
}

Status CheckNoHole(uint64_t size, uint64_t offset) {
  if (offset <= size) return Status::Ok();
  return Status::InvalidArgument(fmt::format("the file has {} bytes; writing at {} would leave a hole", size, offset));
}

Status OverwriteFile(DataPath& data_path, Catalog& catalog, InodeId id, uint64_t offset,
                     std::span<const std::byte> data) {
  // The new bytes are written before anything of the file changes. `space` claims them until the record below names
  // them.
  ZoneStream stream(data_path, ZoneUse::kData);
  AlignedBuffer buffer(RoundUp(data.size(), data_path.geometry().block_size));
  std::memcpy(buffer.data(), data.data(), data.size());
  std::memset(buffer.data() + data.size(), 0, buffer.size() - data.size());
  std::vector<FileExtent> replacement;
  SpaceClaim space;
  Status status = stream.WriteExtents(buffer.span(), data.size(), offset, false, replacement, space);
  if (status.ok()) status = stream.MakeDurable();
  ISOZONE_RETURN_IF_ERROR(status);

  uint64_t sequence = 0;
  {
    const MutexLock lock(catalog.namespace_mutex);
    const Inode* inode = catalog.state.Find(id);
    const auto file = catalog.FindOpen(id);
    if (inode == nullptr) return Status::NotFound("the file was removed while it was overwritten");
    if (file != nullptr && file->is_busy()) return Status::Busy("the file is being written by another handle");
    // The file may have been cut while the new bytes were written.
    ISOZONE_RETURN_IF_ERROR(CheckNoHole(inode->size, offset));
    ISOZONE_ASSIGN_OR_RETURN(sequence, Replace(catalog, *inode, replacement, space));
  }
  return catalog.journal->Sync(sequence);
}

}  // namespace isozone
