#include "store/mount/take_over.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <utility>

#include "base/log.h"
#include "store/metadata/metadata_codec.h"
#include "store/mount/file_opener.h"

namespace isozone {
namespace {

Result<KeptLegacy> ReadLegacy(const MountContext& context, uint64_t sequence)
    ISOZONE_REQUIRES(context.catalog.namespace_mutex) {
  KeptLegacy legacy;
  const auto reader =
      KeptReader::Open(context.data_path.device->name(), context.data_path.options.kept_memory_directory, context.uuid,
                       context.catalog.state.device().mount_number);
  if (reader.status().Is(StatusCode::kNotFound)) return legacy;
  ISOZONE_RETURN_IF_ERROR(reader.status());
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t durable, (*reader)->DurableSequence());
  if (durable > sequence) {
    Log().warn("the device is older than what a killed process has left in memory, which is not used");
    return legacy;
  }
  ISOZONE_ASSIGN_OR_RETURN(legacy.pieces, (*reader)->Pieces(context.data_path.frame_seed));
  ISOZONE_ASSIGN_OR_RETURN(const auto records, (*reader)->RecordsAfter(sequence));
  for (const KeptRecordBytes& record : records) {
    auto ops = DecodeRecord(record.body);
    if (!ops.ok()) break;
    legacy.records.push_back(*std::move(ops));
  }
  return legacy;
}

// Which logs have an order among them (OpenWriters); nothing: the inode is of no log, or has gone.
std::optional<OpenWriters::Order> OrderOf(Catalog& catalog, uint64_t inode) {
  const MutexLock lock(catalog.namespace_mutex);
  const Inode* found = catalog.state.Find(InodeId(inode));
  if (found == nullptr || found->kind != FileKind::kLog || found->links.empty()) return std::nullopt;
  return OpenWriters::Order{found->links.front().parent, found->lifetime};
}

// Appends to a file what of `pieces` the device does not have, and makes it durable. Returns how many bytes that was.
Result<uint64_t> TakeOverFile(Catalog& catalog, FileOpener& files, InodeId id, std::span<const KeptPiece> pieces) {
  DataClass data;
  {
    const MutexLock lock(catalog.namespace_mutex);
    const Inode* inode = catalog.state.Find(id);
    if (inode == nullptr || inode->is_directory || inode->is_symlink()) return uint64_t{0};
    data = {inode->lifetime, inode->level};
  }
  ISOZONE_ASSIGN_OR_RETURN(auto file, files.Open(id));
  const std::vector<std::byte> missing = JoinKept(pieces, file->size());
  const uint64_t end = file->size() + missing.size();
  Status status = file->damage();
  // Of data, only what is appended in small pieces is kept.
  const bool has_gap = pieces.back().file_offset > end && file->kind() != FileKind::kData;
  if (status.ok() && has_gap) status = Status::Corruption("a piece in the middle is missing");
  if (!status.ok() || missing.empty()) {
    catalog.Release(std::move(file));
    if (!status.ok()) return status;
    return uint64_t{0};
  }
  ISOZONE_ASSIGN_OR_RETURN(const auto writer, files.WriterOf(std::move(file), {}, data));
  ISOZONE_RETURN_IF_ERROR(writer->Append(missing));
  ISOZONE_RETURN_IF_ERROR(writer->Sync());
  ISOZONE_RETURN_IF_ERROR(writer->Close());
  return missing.size();
}

// Returns how many bytes were appended to how many files. Where the end of a log is lost, so are the logs behind it:
// what is left of them all is a prefix of what was appended.
std::pair<uint64_t, size_t> TakeOverPieces(const std::shared_ptr<MountContext>& context,
                                           std::span<const KeptPiece> pieces) {
  FileOpener files(context, nullptr);
  uint64_t bytes = 0;
  size_t taken_over = 0;
  std::set<OpenWriters::Order> ended;
  while (!pieces.empty()) {
    const uint64_t inode = pieces.front().inode;
    const auto end = std::ranges::find_if(pieces, [&](const KeptPiece& piece) { return piece.inode != inode; });
    const auto own = pieces.first(static_cast<size_t>(end - pieces.begin()));
    pieces = pieces.subspan(own.size());
    const auto order = OrderOf(context->catalog, inode);
    Result<uint64_t> taken = Status::Corruption("a log that was made before it has lost its end");
    if (!order || !ended.contains(*order)) taken = TakeOverFile(context->catalog, files, InodeId(inode), own);
    if (taken.ok()) {
      taken_over += *taken > 0 ? 1 : 0;
      bytes += *taken;
      continue;
    }
    Log().error("what a killed process has left of inode {} in memory is lost: {}", inode, taken.status().message());
    if (order) ended.insert(*order);
  }
  return {bytes, taken_over};
}

uint64_t RandomMountNumber() {
  std::random_device random;
  return (uint64_t{random()} << 32U | random()) | 1U;
}

// What a killed process has left may take the room for now: less memory is better than none.
Result<std::unique_ptr<KeptMemory>> MakeAsLargeAsFits(const MountContext& context, const PageOwner& owner,
                                                      uint64_t mount_number) {
  const MountOptions& options = context.data_path.options;
  for (uint64_t bytes = options.kept_memory;; bytes /= 2) {
    auto kept = KeptMemory::Make(owner, options.kept_memory_directory, bytes, context.uuid, mount_number,
                                 context.data_path.clock);
    if (kept.ok() && bytes < options.kept_memory) {
      Log().info("{} has room for {} bytes of kept memory, not for {}", options.kept_memory_directory, bytes,
                 options.kept_memory);
    }
    if (kept.ok() || !kept.status().Is(StatusCode::kNoSpace) || bytes / 2 < kKeptMemoryMin) return kept;
  }
}

// The mount has a number from here on, and its kept memory a name.
Status BeginWithNumber(MountContext& context, uint64_t mount_number) {
  uint64_t sequence = 0;
  {
    const MutexLock lock(context.catalog.namespace_mutex);
    if (context.data_path.kept == nullptr && context.catalog.state.device().mount_number == 0) return Status::Ok();
    const MetadataOp begin = BeginMount{mount_number};
    ISOZONE_ASSIGN_OR_RETURN(sequence, context.catalog.Commit({&begin, 1}));
  }
  ISOZONE_RETURN_IF_ERROR(context.catalog.journal->Sync(sequence));
  if (context.data_path.kept != nullptr) ISOZONE_RETURN_IF_ERROR(context.data_path.kept->Publish());
  RemoveUselessKeptMemory(context.data_path.device->name(), context.data_path.options.kept_memory_directory,
                          context.uuid, mount_number);
  return Status::Ok();
}

}  // namespace

uint64_t MakeKeptMemory(MountContext& context) {
  const uint64_t mount_number = RandomMountNumber();
  // A device that has no name in the file system of the machine, as those of tests, dies with the process.
  const auto owner = PageOwner::Of(context.data_path.device->name());
  if (!owner.ok() || !owner->has_name) return mount_number;
  auto kept = MakeAsLargeAsFits(context, *owner, mount_number);
  if (kept.ok()) {
    context.data_path.kept = *std::move(kept);
    return mount_number;
  }
  context.data_path.writes_through = true;
  Log().warn(
      "each flush of a log writes to the device, which is slow: there is no memory that outlives the process ({}); "
      "set kept_memory or kept_memory_directory",
      kept.status().message());
  return mount_number;
}

Result<KeptLegacy> ApplyLegacy(MountContext& context, uint64_t sequence) {
  ISOZONE_ASSIGN_OR_RETURN(KeptLegacy legacy, ReadLegacy(context, sequence));
  for (size_t i = 0; i < legacy.records.size(); ++i) {
    const Status applied = context.catalog.state.Apply(legacy.records[i]);
    if (applied.ok()) continue;
    Log().error("what a killed process has left in memory is damaged, and lost from there on: {}", applied.message());
    legacy.records.resize(i);
    legacy.pieces.clear();
  }
  return legacy;
}

void TakeOver(const std::shared_ptr<MountContext>& context, const KeptLegacy& legacy) {
  const auto [bytes, files] = TakeOverPieces(context, legacy.pieces);
  if (bytes == 0 && legacy.records.empty()) return;
  Log().info("took over from a process that was killed: {} bytes of {} files, and {} changes of the metadata", bytes,
             files, legacy.records.size());
}

void BeginMountOf(MountContext& context, uint64_t mount_number) {
  const Status begun = BeginWithNumber(context, mount_number);
  if (begun.ok() || context.data_path.kept == nullptr) return;
  context.data_path.writes_through = true;
  Log().warn("each flush of a log writes to the device, which is slow: no memory outlives the process: {}",
             begun.message());
}

}  // namespace isozone
