// MountedFileSystem: the FileSystem of a mounted device, by path. Names and attributes change by the operations of
// Namespace, and without new times for directories, which RocksDB does not need. FileOpener opens the files. What is no
// name and no file is in store/mount/mounted_state.h.
//
// Thread safety: any thread, but for Unmount and the destructor.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "store/file_system.h"
#include "store/mount/file_opener.h"
#include "store/mount/mount_context.h"
#include "store/mount/mounted_inodes.h"
#include "store/mount/mounted_state.h"
#include "store/mount/namespace.h"
#include "store/mount/read_only_refresh.h"
#include "store/mount/statistics_publisher.h"

namespace isozone {

class MountedFileSystem final : public FileSystem {
 public:
  // `refresh` is null where this process is the writer. `context` is ready, and the pool and the collector run in it.
  MountedFileSystem(std::shared_ptr<MountContext> context, std::unique_ptr<ReadOnlyRefresh> refresh)
      : context_(std::move(context)),
        refresh_(std::move(refresh)),
        names_(context_->catalog),
        files_(context_, refresh_.get()),
        state_(std::make_unique<MountedState>(*context_, refresh_.get())),
        collection_(std::make_unique<MountedCollection>(*context_)),
        groups_(std::make_unique<MountedGroups>(context_->catalog)),
        inodes_(std::make_unique<MountedInodes>(context_, names_, files_)),
        publisher_(context_->catalog.read_only() ? nullptr : std::make_unique<StatisticsPublisher>(*context_)) {}

  ~MountedFileSystem() override;

  Result<Statistics> Look() const override;
  Status Unmount() override;

  Result<FileAttributes> Stat(std::string_view path) override;
  Result<std::vector<DirectoryEntry>> List(std::string_view directory) override;
  Status CreateDirectory(std::string_view path) override;
  Status CreateDirectories(std::string_view path) override;
  Status RemoveDirectory(std::string_view path) override { return names_.RemoveDirectory({path}, Times::kStay); }
  Status Unlink(std::string_view path) override { return names_.Unlink({path}, Times::kStay); }
  Status Rename(std::string_view from, std::string_view to) override {
    return names_.Rename({from}, {to}, RenameMode::kReplace, Times::kStay);
  }
  Status Link(std::string_view from, std::string_view to) override;
  Status SetModified(std::string_view path, uint64_t modified_s) override {
    return names_.SetModified(path, modified_s);
  }
  Status SyncMetadata() override { return context_->catalog.SyncMetadata(); }

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

  // Returns what the mount works on, for tests that hold a lock or look at what is inside.
  MountContext& context() const { return *context_; }

 private:
  Mutex& mutex() const ISOZONE_RETURN_CAPABILITY(context_->catalog.namespace_mutex) {
    return context_->catalog.namespace_mutex;
  }

  // Returns the file at `path`. kIsDirectory; kNotSupported for a symbolic link.
  Result<const Inode*> FindFile(std::string_view path) const ISOZONE_REQUIRES(context_->catalog.namespace_mutex);
  Result<InodeId> FileAt(std::string_view path) const ISOZONE_EXCLUDES(context_->catalog.namespace_mutex);

  const std::shared_ptr<MountContext> context_;
  const std::unique_ptr<ReadOnlyRefresh> refresh_;  // null where this process is the writer
  Namespace names_;
  FileOpener files_;
  const std::unique_ptr<MountedState> state_;
  const std::unique_ptr<MountedCollection> collection_;
  const std::unique_ptr<MountedGroups> groups_;
  const std::unique_ptr<MountedInodes> inodes_;
  const std::unique_ptr<StatisticsPublisher> publisher_;             // null when read-only
  const uint64_t mounted_s_ = context_->data_path.clock.NowWallS();  // seconds since 1970
  bool unmounted_ = false;                                           // used by the owner's thread only
};

}  // namespace isozone
