// MountedInodes: the InodeFiles of a mounted device. Names change as in MountedFileSystem, by whose means; what it adds
// are the details of inodes (owner, times, targets, extended attributes), in the same records, and the open files.
//
// Open files. All opens of an inode share a SharedFile. The last of them gives what is in memory to the device, which
// takes time; whoever opens the inode meanwhile waits for that, so that a file never has two writers, and so does who
// asks for its attributes or sets them, since the size and the times are those of the last write.
//
// Locks: that of the registry is held for look-ups only, and never together with another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "store/file/shared_file.h"
#include "store/inode_files.h"
#include "store/metadata/metadata.h"

namespace isozone {

class MountedFileSystem;

// The SharedFiles of a mount, by inode.
//
// Thread safety: any thread.
class OpenInodes : public std::enable_shared_from_this<OpenInodes> {
 public:
  using Make = std::function<Result<std::unique_ptr<SharedFile>>()>;
  // The file of `id`, which `make` makes where it is not open.
  Result<std::shared_ptr<SharedFile>> Get(InodeId id, const Make& make) ISOZONE_EXCLUDES(mu_);
  // The file of `id`; null: it is not open. Waits while it is being opened or closed.
  std::shared_ptr<SharedFile> Find(InodeId id) ISOZONE_EXCLUDES(mu_);
  // The details of a file that is open and has lost its last name. Kept until it is closed; null: none.
  void KeepDetails(InodeId id, std::shared_ptr<const InodeDetails> details) ISOZONE_EXCLUDES(mu_);
  std::shared_ptr<const InodeDetails> KeptDetails(InodeId id) ISOZONE_EXCLUDES(mu_);
  std::vector<std::shared_ptr<SharedFile>> All() ISOZONE_EXCLUDES(mu_);

 private:
  void Remove(InodeId id) ISOZONE_EXCLUDES(mu_);

  Mutex mu_;
  CondVar removed_;
  struct Entry {
    std::weak_ptr<SharedFile> file;  // one that is expired is being made or closed
    std::shared_ptr<const InodeDetails> details;
  };
  std::unordered_map<InodeId, Entry> files_ ISOZONE_GUARDED_BY(mu_);
};

class MountedInodes final : public InodeFiles {
 public:
  // `fs` outlives this.
  explicit MountedInodes(MountedFileSystem& fs);

  Result<FileAttributes> Lookup(uint64_t directory, std::string_view name) override;
  Result<FileAttributes> GetAttributes(uint64_t inode) override;
  Result<std::string> PathOf(uint64_t inode) override;
  Result<uint64_t> AllocatedBytes(uint64_t inode) override;
  Result<std::unique_ptr<DirectoryStream>> OpenDirectory(uint64_t directory) override;
  Result<std::string> ReadLink(uint64_t inode) override;
  uint64_t inode_count() const override;

  Result<FileAttributes> SetAttributes(uint64_t inode, const AttributeChanges& changes) override;
  Result<FileAttributes> MakeDirectory(uint64_t directory, std::string_view name, const InodeOwner& owner) override;
  Result<FileAttributes> MakeSymlink(uint64_t directory, std::string_view name, std::string_view target,
                                     const InodeOwner& owner) override;
  Result<FileAttributes> Link(uint64_t inode, uint64_t directory, std::string_view name) override;
  Status Unlink(uint64_t directory, std::string_view name) override;
  Status RemoveDirectory(uint64_t directory, std::string_view name) override;
  Status Rename(uint64_t from_directory, std::string_view from, uint64_t to_directory, std::string_view to,
                RenameMode mode) override;

  Result<std::string> GetXattr(uint64_t inode, std::string_view name) override;
  Result<std::vector<std::string>> ListXattrs(uint64_t inode) override;
  Status SetXattr(uint64_t inode, std::string_view name, std::string_view value, XattrMode mode) override;
  Status RemoveXattr(uint64_t inode, std::string_view name) override;

  Result<std::shared_ptr<PositionalFile>> Create(uint64_t directory, std::string_view name,
                                                 const CreateOptions& options, const InodeOwner& owner) override;
  Result<std::shared_ptr<PositionalFile>> Open(uint64_t inode) override;

  // Closes all open files; the mount ends. The first error.
  Status DetachAll();
  // The names of a directory, in order; what OpenDirectory reads.
  Result<std::vector<DirectoryStream::Entry>> Names(InodeId directory) const;

 private:
  // The details of an inode that has none are those that are told of it.
  std::shared_ptr<InodeDetails> DetailsOf(const Inode& inode) const;
  FileTime Now() const;
  // Details of a new inode.
  std::shared_ptr<InodeDetails> NewDetails(const InodeOwner& owner) const;
  // The inode changes: its time of change becomes now; both times, where the names of a directory change.
  MetadataOp NewTimes(const Inode& inode, const FileTime& modified) const;
  MetadataOp Changed(const Inode& inode) const;
  MetadataOp NamesChanged(const Inode& directory) const;
  // Applies `change` to the details of an inode; an error of it changes nothing.
  Result<FileAttributes> ChangeDetails(uint64_t inode, const std::function<Status(InodeDetails&)>& change);
  Result<FileAttributes> ChangeNameless(InodeId id, const std::function<Status(InodeDetails&)>& change);
  // The details of an inode, also of an open one without a name; null: it has none.
  Result<std::shared_ptr<const InodeDetails>> FindDetails(InodeId id);
  // Brings the size of a log up to date that a writer in another process has open; null where it is no such log. The
  // size stays known as long as the reader lives.
  Result<std::unique_ptr<FileReader>> FollowLog(InodeId id);
  // Makes a new inode with a name.
  Result<FileAttributes> Put(uint64_t directory, std::string_view name, Inode inode);
  Result<std::shared_ptr<SharedFile>> OpenShared(InodeId id);

  MountedFileSystem& fs_;
  const std::shared_ptr<PositionalServices> services_;
  const std::shared_ptr<OpenInodes> open_;
};

}  // namespace isozone
