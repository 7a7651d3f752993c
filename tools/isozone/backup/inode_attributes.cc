#include "isozone/backup/inode_attributes.h"

#include "store/inode_files.h"

namespace isozone::cli {
namespace {

bool AreEqual(const FileAttributes& there, const BackupAttributes& wanted) {
  return there.mode == wanted.mode && there.user == wanted.user && there.group == wanted.group &&
         there.modified == wanted.modified;
}

Status WriteXattrs(InodeFiles& inodes, uint64_t inode, const std::map<std::string, std::string>& wanted) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::string> there, inodes.ListXattrs(inode));
  for (const std::string& name : there) {
    if (!wanted.contains(name)) ISOZONE_RETURN_IF_ERROR(inodes.RemoveXattr(inode, name));
  }
  for (const auto& [name, value] : wanted) {
    const auto held = inodes.GetXattr(inode, name);
    if (held.ok() && *held == value) continue;
    ISOZONE_RETURN_IF_ERROR(inodes.SetXattr(inode, name, value, XattrMode::kSet));
  }
  return Status::Ok();
}

}  // namespace

Result<BackupAttributes> ReadAttributes(const FileSystem& file_system, const FileAttributes& attributes) {
  BackupAttributes read;
  read.mode = attributes.mode;
  read.user = attributes.user;
  read.group = attributes.group;
  read.modified = attributes.modified;
  InodeFiles& inodes = file_system.inodes();
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, inodes.ListXattrs(attributes.inode));
  for (const std::string& name : names) {
    ISOZONE_ASSIGN_OR_RETURN(read.xattrs[name], inodes.GetXattr(attributes.inode, name));
  }
  return read;
}

Status WriteAttributes(FileSystem& file_system, const std::string& path, const BackupAttributes& attributes) {
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes there, file_system.Stat(path));
  InodeFiles& inodes = file_system.inodes();
  ISOZONE_RETURN_IF_ERROR(WriteXattrs(inodes, there.inode, attributes.xattrs));
  if (AreEqual(there, attributes)) return Status::Ok();
  ISOZONE_RETURN_IF_ERROR(file_system.SetModified(path, attributes.modified.s));
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes timed, inodes.GetAttributes(there.inode));
  if (AreEqual(timed, attributes)) return Status::Ok();
  return inodes.SetAttributes(there.inode, {attributes.mode, attributes.user, attributes.group, attributes.modified})
      .status();
}

}  // namespace isozone::cli
