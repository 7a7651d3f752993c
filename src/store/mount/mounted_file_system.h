// The FileSystem of a mounted device: names and files over MountContext. The rest of its face is in
// store/mount/mounted_state.h.
//
// Names change under the namespace mutex: the new state is decided, committed to state and journal as one record, and
// only then is space given back. Files are opened by making or finding their OpenFile, which all handles of an inode
// share.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/file/mount_context.h"
#include "store/file/write_sink.h"
#include "store/file_system.h"
#include "store/kept/kept_reader.h"
#include "store/mount/mounted_inodes.h"
#include "store/mount/mounted_state.h"
#include "store/mount/read_only_refresh.h"
#include "store/mount/statistics_publisher.h"

namespace isozone {

class MountedFileSystem final : public FileSystem {
 public:
  // `refresh`: null where this process is the writer. `context` is ready, and the pool and the collector run in it.
  MountedFileSystem(std::shared_ptr<MountContext> context, std::unique_ptr<ReadOnlyRefresh> refresh)
      : context_(std::move(context)),
        refresh_(std::move(refresh)),
        state_(std::make_unique<MountedState>(*context_, refresh_.get())),
        collection_(std::make_unique<MountedCollection>(*context_)),
        groups_(std::make_unique<MountedGroups>(*context_)),
        inodes_(std::make_unique<MountedInodes>(*this)),
        publisher_(context_->read_only() ? nullptr : std::make_unique<StatisticsPublisher>(*context_)) {}

  ~MountedFileSystem() override;

  Result<Statistics> Look() const override;
  Status Unmount() override;

  Result<FileAttributes> Stat(std::string_view path) override;
  Result<std::vector<DirectoryEntry>> List(std::string_view directory) override;
  Status CreateDirectory(std::string_view path) override;
  Status CreateDirectories(std::string_view path) override;
  Status RemoveDirectory(std::string_view path) override;
  Status Unlink(std::string_view path) override;
  Status Rename(std::string_view from, std::string_view to) override;
  Status Link(std::string_view from, std::string_view to) override;
  Status SetModified(std::string_view path, uint64_t modified_s) override;
  Status SyncMetadata() override;

  Result<std::unique_ptr<FileWriter>> Create(std::string_view path, const CreateOptions& options) override;
  Result<std::unique_ptr<FileWriter>> OpenForAppend(std::string_view path, const CreateOptions& options) override;
  Result<std::unique_ptr<FileReader>> OpenForRead(std::string_view path) override;
  Status SealCohort(uint64_t together_with) override;
  Status Overwrite(std::string_view path, uint64_t offset, std::span<const std::byte> data) override;
  Status Truncate(std::string_view path, uint64_t size) override;

  FileSystemState& state() const override { return *state_; }
  GarbageCollection& collection() const override { return *collection_; }
  ZoneGroupRecord& groups() const override { return *groups_; }
  InodeFiles& inodes() const override { return *inodes_; }

  // Names that List takes under the namespace mutex at a time.
  static constexpr size_t kListBatch = 1000;
  // Appends to a file what a process that was killed has left of it in memory, as far as the device does not have it,
  // and makes it durable. Returns how many bytes that was.
  Result<uint64_t> TakeOver(InodeId id, std::span<const KeptPiece> pieces);
  // What it works on; for tests that hold a lock.
  MountContext& context() const { return *context_; }

 private:
  friend class MountedInodes;  // the same names and files, by inode

  Mutex& mutex() const ISOZONE_RETURN_CAPABILITY(context_->namespace_mutex) { return context_->namespace_mutex; }

  // Where a writer in another process may have changed names, what is there now.
  Status Refresh() const { return refresh_ == nullptr ? Status::Ok() : refresh_->Refresh(); }

  // The existing directory that `path` is to be made in, and its name there.
  struct Place {
    InodeId parent;
    std::string name;
    const Inode* existing = nullptr;  // what has that name now
  };
  Result<Place> FindPlace(std::string_view path) const ISOZONE_REQUIRES(context_->namespace_mutex);
  Result<Place> FindPlaceIn(InodeId directory, std::string_view name) const ISOZONE_REQUIRES(context_->namespace_mutex);
  Result<const Inode*> FindFile(std::string_view path) const ISOZONE_REQUIRES(context_->namespace_mutex);
  // Moves the name of what is at `source` to `target`. `ops`: what else belongs into the record.
  Status RenameTo(const Place& source, const Place& target, std::vector<MetadataOp> ops)
      ISOZONE_REQUIRES(context_->namespace_mutex);
  // Whether directory `above` is `directory`, or above it.
  bool IsAbove(InodeId above, InodeId directory) const ISOZONE_REQUIRES(context_->namespace_mutex);
  // Up to kListBatch children of `directory` with names behind `after` (null: from the first on).
  std::vector<DirectoryEntry> ListBehind(InodeId directory, const std::string* after) const
      ISOZONE_EXCLUDES(context_->namespace_mutex);

  // What removing one name of `inode` takes: the link, and with the last one the inode.
  static void AddUnlinkOps(const Inode& inode, const InodeLink& link, std::vector<MetadataOp>& ops);
  // For the statistics: a file that lay in `space` is gone.
  void NoteDeletion(Lifetime lifetime, std::span<const ZoneBytes> space);
  // Commits `ops`, which take away a link of `replaced`, and leaves its space to its handles if that was its last.
  Status CommitUnlink(const Inode& replaced, std::span<const MetadataOp> ops)
      ISOZONE_REQUIRES(context_->namespace_mutex);

  Status PutNew(const Place& place, Inode inode, const Inode* replaced) ISOZONE_REQUIRES(context_->namespace_mutex);
  // The open file of an existing inode; `open` gets it.
  Result<std::shared_ptr<OpenFile>> Open(Inode inode) ISOZONE_EXCLUDES(context_->namespace_mutex);
  // The same where another process may be writing.
  Result<std::shared_ptr<OpenFile>> OpenFollowed(InodeId id) ISOZONE_EXCLUDES(context_->namespace_mutex);
  std::shared_ptr<OpenFile> Register(InodeId id, FileKind kind, ExtentList extents, Status damage)
      ISOZONE_REQUIRES(context_->namespace_mutex);
  bool HasWriter(InodeId id) const ISOZONE_REQUIRES(context_->namespace_mutex) {
    const auto file = context_->FindOpen(id);
    return file != nullptr && file->is_busy();
  }
  // The last region of a log that nobody writes is open where it could not be read when mounting. It ends where `file`,
  // read since, does.
  Status SealLeftOpen(const OpenFile& file) ISOZONE_REQUIRES(context_->namespace_mutex);
  // What is claimed of the regions of a log that nobody writes and that have no end.
  SpaceClaim TakeUnread(InodeId id) ISOZONE_REQUIRES(context_->namespace_mutex);
  // Of a file that nobody writes; kBusy. The writer becomes the only one. `claimed`: the caller has claimed the file.
  Result<std::unique_ptr<FileWriter>> WriterOf(std::shared_ptr<OpenFile> file, const CreateOptions& options,
                                               DataClass data, bool claimed = false)
      ISOZONE_EXCLUDES(context_->namespace_mutex);
  // Of an existing file; kBusy while its log cannot be read, and as Open.
  Result<std::shared_ptr<OpenFile>> OpenById(InodeId id) ISOZONE_EXCLUDES(context_->namespace_mutex);
  std::unique_ptr<FileReader> ReaderOf(std::shared_ptr<OpenFile> file);
  // Of `options` it takes what says nothing of the class.
  std::unique_ptr<FileWriter> MakeWriter(std::shared_ptr<OpenFile> file, const CreateOptions& options, DataClass data);
  InodeId DirectoryOf(InodeId id) const ISOZONE_EXCLUDES(context_->namespace_mutex);
  size_t BufferSize(FileKind kind) const;
  SinkOptions StripeOptions(size_t unit, uint64_t expected_size) const;
  SinkOptions LogOptions(size_t unit) const;

  const std::shared_ptr<MountContext> context_;
  const std::unique_ptr<ReadOnlyRefresh> refresh_;  // null where this process is the writer
  const std::unique_ptr<MountedState> state_;
  const std::unique_ptr<MountedCollection> collection_;
  const std::unique_ptr<MountedGroups> groups_;
  const std::unique_ptr<MountedInodes> inodes_;
  const std::unique_ptr<StatisticsPublisher> publisher_;  // null when read-only
  bool unmounted_ = false;                                // used by the owner's thread only
};

}  // namespace isozone
