#include "fuse/new_file.h"

#include <sys/stat.h>

#include "store/file_type.h"

namespace isozone {
namespace {

IoClass WriteClassOf(FileType type, ThreadJob job) {
  switch (type) {
    case FileType::kWal:
      return IoClass::kWal;
    case FileType::kManifest:
    case FileType::kCurrent:
      return IoClass::kMetadata;
    case FileType::kTable:
      if (job == ThreadJob::kFlush) return IoClass::kFlush;
      if (job == ThreadJob::kCompaction) return IoClass::kCompactionWrite;
      break;
    case FileType::kSmall:
    case FileType::kOther:
      break;
  }
  return IoClass::kOther;
}

// As RocksDB's hints are for the same jobs.
Lifetime LifetimeOfJob(ThreadJob job) {
  if (job == ThreadJob::kFlush) return Lifetime::kMedium;
  if (job == ThreadJob::kCompaction) return Lifetime::kLong;
  return Lifetime::kNotSet;
}

}  // namespace

Result<InodeOwner> OwnerOfNew(FuseView& view, fuse_req_t request, uint64_t directory, mode_t mode) {
  const fuse_ctx* asking = ::fuse_req_ctx(request);
  InodeOwner owner{mode & 07777, asking->uid, asking->gid};
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes parent, view.inodes().GetAttributes(directory));
  if ((parent.mode & S_ISGID) != 0) {
    owner.group = parent.group;
    if (S_ISDIR(mode)) owner.mode |= S_ISGID;
  }
  return owner;
}

bool MayHaveHint(std::string_view name) { return FileTypeOf(name) == FileType::kTable; }

std::optional<Lifetime> LifetimeByHint(uint64_t hint) {
  if (hint >= kLifetimeCount) return {};
  const Lifetime lifetime = LifetimeOf(FileType::kTable, static_cast<Lifetime>(hint));
  return lifetime == Lifetime::kNotSet ? std::nullopt : std::optional(lifetime);
}

CreateOptions OptionsOfNew(std::string_view name, ThreadJob job) {
  const FileType type = FileTypeOf(name);
  CreateOptions options;
  options.kind = FileKindOf(type);
  options.io_class = WriteClassOf(type, job);
  options.lifetime = LifetimeOf(type, type == FileType::kTable ? LifetimeOfJob(job) : Lifetime::kNotSet);
  return options;
}

Result<std::shared_ptr<PositionalFile>> CreateFile(FuseView& view, fuse_req_t request, uint64_t directory,
                                                   std::string_view name, mode_t mode) {
  ISOZONE_ASSIGN_OR_RETURN(const InodeOwner owner, OwnerOfNew(view, request, directory, mode));
  // Only of tables does the thread tell more than the name.
  const ThreadJob job = MayHaveHint(name) ? JobOf(ThreadName(::fuse_req_ctx(request)->pid)) : ThreadJob::kUnknown;
  return view.inodes().Create(directory, name, OptionsOfNew(name, job), owner);
}

}  // namespace isozone
