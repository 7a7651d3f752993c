// MountedInodes: the InodeFiles of a mounted device. Names and attributes change by the operations of Namespace, with
// the times that POSIX asks for. Files are opened as OpenInodes does it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/inode_files.h"
#include "store/metadata/metadata.h"
#include "store/mount/namespace.h"
#include "store/mount/open_inodes.h"

namespace isozone {

class MountedInodes final : public InodeFiles {
 public:
  // `names` and `files` outlive this.
  MountedInodes(const std::shared_ptr<MountContext>& context, Namespace& names, FileOpener& files)
      : catalog_(context->catalog), names_(names), files_(files), open_(std::make_shared<OpenInodes>(context, files)) {}

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
  Status Unlink(uint64_t directory, std::string_view name) override {
    return names_.Unlink({name, InodeId(directory)}, Times::kChange);
  }
  Status RemoveDirectory(uint64_t directory, std::string_view name) override {
    return names_.RemoveDirectory({name, InodeId(directory)}, Times::kChange);
  }
  Status Rename(uint64_t from_directory, std::string_view from, uint64_t to_directory, std::string_view to,
                RenameMode mode) override {
    return names_.Rename({from, InodeId(from_directory)}, {to, InodeId(to_directory)}, mode, Times::kChange);
  }

  Result<std::string> GetXattr(uint64_t inode, std::string_view name) override;
  Result<std::vector<std::string>> ListXattrs(uint64_t inode) override;
  Status SetXattr(uint64_t inode, std::string_view name, std::string_view value, XattrMode mode) override;
  Status RemoveXattr(uint64_t inode, std::string_view name) override;

  Result<std::shared_ptr<PositionalFile>> Create(uint64_t directory, std::string_view name,
                                                 const CreateOptions& options, const InodeOwner& owner) override;
  Result<std::shared_ptr<PositionalFile>> Open(uint64_t inode) override;

  // Closes all open files; the mount ends. Returns the first error.
  Status DetachAll() { return open_->DetachAll(); }

 private:
  // Opens a log that must be opened before its size is known (FileOpener::MustBeOpened), and returns what keeps it
  // known as long as it lives; null where it is no such log.
  Result<std::unique_ptr<FileReader>> OpenToLook(InodeId id);
  // Makes `inode` with a name, and details that say who owns it and, for a symbolic link, its target.
  Result<FileAttributes> Make(uint64_t directory, std::string_view name, Inode inode, const InodeOwner& owner,
                              std::string_view target = {});

  Catalog& catalog_;
  Namespace& names_;
  FileOpener& files_;
  const std::shared_ptr<OpenInodes> open_;
};

}  // namespace isozone
