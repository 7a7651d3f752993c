#include "store/file/catalog.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace isozone {
namespace {

bool IsOfNames(const MetadataOp& op) {
  return std::holds_alternative<PutInode>(op) || std::holds_alternative<AddLink>(op) ||
         std::holds_alternative<RemoveLink>(op) || std::holds_alternative<RemoveInode>(op) ||
         std::holds_alternative<SetAttributes>(op) || std::holds_alternative<SetDetails>(op) ||
         std::holds_alternative<SetTimes>(op);
}

void TakeDetails(const InodeDetails& details, FileAttributes& a) {
  a.mode = details.mode;
  a.user = details.user;
  a.group = details.group;
  if (details.modified.s == a.modified_s) a.modified = details.modified;
  a.changed = std::max(details.changed, a.modified);
  if (details.target.empty()) return;
  a.type = InodeType::kSymlink;
  a.size = details.target.size();
}

}  // namespace

Catalog::Catalog(const DeviceGeometry& geometry, MetadataState state, Clock& clock)
    : geometry(geometry), clock(clock), state(std::move(state)) {}

Catalog::~Catalog() {
  // The metadata names an open region, though not its end.
  for (auto& [id, space] : unread_logs) space.ToMetadata();
}

Result<uint64_t> Catalog::Commit(std::span<const MetadataOp> ops) {
  if (journal == nullptr) return Status::ReadOnly("the file system is mounted read-only");
  ISOZONE_RETURN_IF_ERROR(journal->status());
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t sequence, journal->Commit(ops));
  if (std::ranges::any_of(ops, IsOfNames)) last_name_change.store(sequence, std::memory_order_release);
  return sequence;
}

uint64_t Catalog::TimeOf(const Inode& inode) {
  const auto file = FindOpen(inode.id);
  return file != nullptr && file->keeps_time ? inode.modified_s : clock.NowWallS();
}

std::shared_ptr<OpenFile> Catalog::FindOpen(InodeId id) {
  const auto it = open_files.find(id);
  return it == open_files.end() ? nullptr : it->second.lock();
}

FileAttributes Catalog::AttributesOf(const Inode& inode) {
  FileAttributes a;
  a.inode = inode.id.value();
  a.is_directory = inode.is_directory;
  a.kind = inode.kind;
  a.lifetime = inode.lifetime;
  a.level = inode.level;
  a.size = inode.size;
  a.modified_s = inode.modified_s;
  a.links = static_cast<uint32_t>(inode.links.size());
  a.modified = a.changed = {inode.modified_s, 0};
  a.type = inode.is_directory ? InodeType::kDirectory : InodeType::kRegular;
  a.mode = inode.is_directory ? 0755 : 0644;
  if (inode.details != nullptr) TakeDetails(*inode.details, a);
  if (const auto file = FindOpen(inode.id)) a.size = file->size();
  return a;
}

void Catalog::Release(std::shared_ptr<OpenFile> file) {
  if (file == nullptr) return;
  const MutexLock lock(namespace_mutex);
  if (file.use_count() == 1) open_files.erase(file->id());
  file.reset();  // handles are made under the lock, so the count is exact
}

void Catalog::LeaveToHandles(InodeId id, SpaceClaim space) {
  if (const auto file = FindOpen(id)) file->unnamed.Merge(std::move(space));
}

}  // namespace isozone
