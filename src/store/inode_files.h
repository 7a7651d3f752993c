// InodeFiles: the file system by inode instead of by path, as a kernel sees it: names are looked up in a directory, and
// an open file stays what it is when its name changes or goes. Files that are opened here can be written anywhere
// (positional_file.h). Both views are of one file system, and may be used side by side: this is FileSystem::inodes().
//
// Durability is that of file_system.h: changes of names and attributes become durable in their order, with the next
// PositionalFile::Sync or FileSystem::SyncMetadata (fsync of a directory is SyncMetadata).
//
// Attributes. What was never given an owner and permissions (every file that RocksDB's adapter makes) belongs to user
// and group 0 with permissions 0644, or 0755 for a directory. Times have nanoseconds where they were set here; a time
// that only a path-based call has set has whole seconds. The time of the last access is not kept.
//
// Errors, beside those that each call names: kNotFound where an inode or a name is not there, kNotDirectory,
// kReadOnly, kNoSpace where the metadata has no room, kInvalidArgument for a name that is empty, longer than 255 bytes,
// '.' or '..', or contains '/' or NUL.
//
// Thread safety: any thread. Ownership: it belongs to its FileSystem and lives as long as that; handles must go before
// FileSystem::Unmount, and fail with kAborted after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/file_system.h"
#include "store/positional_file.h"

namespace isozone {

// The owner and the permissions of a new inode.
struct InodeOwner {
  uint32_t mode = 0644;  // permission bits, 0 to 07777
  uint32_t user = 0;
  uint32_t group = 0;
};

// The changes that SetAttributes makes; what is not set stays. The time of change becomes now.
struct AttributeChanges {
  std::optional<uint32_t> mode = {};  // permission bits, 0 to 07777
  std::optional<uint32_t> user = {};
  std::optional<uint32_t> group = {};
  std::optional<FileTime> modified = {};
};

// The way in which a rename treats a file that has the new name already.
enum class RenameMode : uint8_t {
  kReplace,    // a file by a file, an empty directory by a directory
  kNoReplace,  // kAlreadyExists where the new name is taken
  kExchange,   // both names must exist; they change places
};

// Whether an extended attribute may exist before it is set.
enum class XattrMode : uint8_t { kSet, kCreate, kReplace };  // kCreate: kAlreadyExists; kReplace: kNotFound

// The names of a directory at one moment. A cookie says behind which entry reading goes on; it is valid for this handle
// as long as that lives. What comes and goes meanwhile may be listed or not, all else is there once.
//
// Thread safety: any thread.
class DirectoryStream {
 public:
  struct Entry {
    std::string name;
    uint64_t inode = 0;
    InodeType type = InodeType::kRegular;
    uint64_t cookie = 0;  // of this entry: reading goes on behind it
  };
  virtual ~DirectoryStream() = default;
  // Returns up to `most` entries behind `cookie`, and none at the end; 0 is the beginning, and takes the names anew.
  virtual Result<std::vector<Entry>> Read(uint64_t cookie, size_t most) = 0;
};

class InodeFiles {
 public:
  static constexpr uint64_t kRoot = 1;             // the inode of the root directory
  static constexpr size_t kNameMax = 255;          // bytes
  static constexpr size_t kTargetMax = 4095;       // bytes of a symbolic link's target
  static constexpr size_t kXattrNameMax = 255;     // bytes
  static constexpr size_t kXattrBytesMax = 65536;  // bytes of all names and values of one inode

  virtual ~InodeFiles() = default;

  // --- Looking ---
  virtual Result<FileAttributes> Lookup(uint64_t directory, std::string_view name) = 0;
  // Returns the attributes of an inode, also those of a file without a name as long as a handle of it is open; `links`
  // is 0 then. Size and times of an open file are as of its last write.
  virtual Result<FileAttributes> GetAttributes(uint64_t inode) = 0;
  // Returns a path of the inode at this moment, from the root on: "/db/000012.sst". kNotFound if it has no name.
  virtual Result<std::string> PathOf(uint64_t inode) = 0;
  // Returns the bytes of the device that a file takes; they are less than its size where it has holes.
  virtual Result<uint64_t> AllocatedBytes(uint64_t inode) = 0;
  virtual Result<std::unique_ptr<DirectoryStream>> OpenDirectory(uint64_t directory) = 0;
  virtual Result<std::string> ReadLink(uint64_t inode) = 0;  // kInvalidArgument: not a symbolic link
  virtual uint64_t inode_count() const = 0;                  // files, directories and symbolic links

  // --- Changing. Parents get new times. kAlreadyExists where the name is taken. ---
  virtual Result<FileAttributes> SetAttributes(uint64_t inode, const AttributeChanges& changes) = 0;
  virtual Result<FileAttributes> MakeDirectory(uint64_t directory, std::string_view name, const InodeOwner& owner) = 0;
  // Makes a symbolic link to `target`, which has 1 to kTargetMax bytes and is taken literally.
  virtual Result<FileAttributes> MakeSymlink(uint64_t directory, std::string_view name, std::string_view target,
                                             const InodeOwner& owner) = 0;
  // Gives a file or symbolic link another name; kIsDirectory for a directory.
  virtual Result<FileAttributes> Link(uint64_t inode, uint64_t directory, std::string_view name) = 0;
  virtual Status Unlink(uint64_t directory, std::string_view name) = 0;           // kIsDirectory
  virtual Status RemoveDirectory(uint64_t directory, std::string_view name) = 0;  // kNotEmpty
  // Renames atomically. kIsDirectory, kNotDirectory, kNotEmpty; kInvalidArgument where a directory would come to lie in
  // itself.
  virtual Status Rename(uint64_t from_directory, std::string_view from, uint64_t to_directory, std::string_view to,
                        RenameMode mode) = 0;

  // --- Extended attributes: names and values are bytes, of no meaning here ---
  virtual Result<std::string> GetXattr(uint64_t inode, std::string_view name) = 0;  // kNotFound
  virtual Result<std::vector<std::string>> ListXattrs(uint64_t inode) = 0;          // in order of name
  // Sets an attribute. kInvalidArgument for a name of 0 or more than kXattrNameMax bytes; kNoSpace beyond
  // kXattrBytesMax.
  virtual Status SetXattr(uint64_t inode, std::string_view name, std::string_view value, XattrMode mode) = 0;
  virtual Status RemoveXattr(uint64_t inode, std::string_view name) = 0;  // kNotFound

  // --- Files ---
  // Creates a file and opens it. Of `options` it uses kind, class of I/O, lifetime and level.
  virtual Result<std::shared_ptr<PositionalFile>> Create(uint64_t directory, std::string_view name,
                                                         const CreateOptions& options, const InodeOwner& owner) = 0;
  // Opens a file. All opens of an inode at one time give the same object. kIsDirectory; kInvalidArgument for a symbolic
  // link. Where a FileWriter has the file open, the first change returns kBusy.
  virtual Result<std::shared_ptr<PositionalFile>> Open(uint64_t inode) = 0;
};

}  // namespace isozone
