// Namespace: the names and attributes of a mounted file system, and the only operations that change them. A name is
// given by its path (MountedFileSystem, for RocksDB) or by its directory and what it is called there (MountedInodes,
// for a kernel). From there on both go the same way:
//
//   1  the place of the name is found: its directory, its link, and the inode that has the name now
//   2  the change is checked: the name can be one, what it replaces may go, no directory comes to lie in itself
//   3  all that changes is committed to the state and the journal as one record
//   4  a file that has lost its last name leaves its space and its details to its open handles
//
// An operation holds the namespace mutex from the first step to the last. It returns when the change survives the end
// of the process (Catalog::KeepNames); a Sync makes it durable.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/file/catalog.h"
#include "store/file_system.h"
#include "store/inode_files.h"
#include "store/metadata/metadata.h"

namespace isozone {

// Where a name is, or is to be.
struct Where {
  std::string_view name;                  // what it is called in `directory`, or an absolute path
  std::optional<InodeId> directory = {};  // none: `name` is a path
};

// Whether a change of names gives new times to those that it concerns: both times to the directories, and to an inode
// whose names change its time of change. POSIX asks for it. RocksDB does not need it, and each record would grow.
enum class Times : uint8_t { kStay, kChange };

// Returns kNotFound that says that there is no such inode.
Status NoInode(InodeId id);

class Namespace {
 public:
  // The names that VisitNames takes before it lets others have the namespace mutex.
  static constexpr size_t kNamesAtOnce = 1000;

  // `catalog` outlives this.
  explicit Namespace(Catalog& catalog) : catalog_(catalog) {}

  // Returns the time that a change gives now.
  FileTime Now() const;
  // Returns the inode that has a name. kNotFound.
  Result<InodeId> Find(const Where& where) const;
  // Calls `visit` under the namespace mutex for each name in a directory, in order of name. What comes and goes
  // meanwhile may be visited or not; all else is visited once.
  using Visit = std::function<void(std::string_view name, const Inode& inode)>;
  void VisitNames(InodeId directory, const Visit& visit) const;

  // Makes an inode, of which `inode` has everything but number, name and time, and returns what it is.
  // kAlreadyExists where the name is taken.
  Result<FileAttributes> Make(const Where& where, Inode inode, Times times);
  // Does the same for a file, which replaces one of this name, and returns it as one that has a writer. The caller
  // makes that writer, and only then calls Catalog::KeepNames. kIsDirectory.
  Result<std::shared_ptr<OpenFile>> MakeOrReplace(const Where& where, Inode inode, Times times);
  // Gives a file or a symbolic link another name. kIsDirectory for a directory; kAlreadyExists.
  Status Link(InodeId id, const Where& to, Times times);
  // Removes a name that is not of a directory. kIsDirectory.
  Status Unlink(const Where& where, Times times) { return Remove(where, /*is_directory=*/false, times); }
  // Removes an empty directory. kNotDirectory, kNotEmpty.
  Status RemoveDirectory(const Where& where, Times times) { return Remove(where, /*is_directory=*/true, times); }
  // Renames as FileSystem::Rename and InodeFiles::Rename say.
  Status Rename(const Where& from, const Where& to, RenameMode mode, Times times);

  // Sets the time at which the data of what is at `path` was changed.
  Status SetModified(std::string_view path, uint64_t modified_s);
  // Applies `change` to the details of an inode, and sets its time of change; an error of `change` changes nothing. A
  // file without a name has details as long as it is open.
  Status ChangeDetails(InodeId id, const std::function<Status(InodeDetails&)>& change);
  // Returns the details of an inode, also those of a file without a name; null where it has none.
  Result<std::shared_ptr<const InodeDetails>> Details(InodeId id) const;

 private:
  struct Place {
    const Inode* directory = nullptr;
    InodeLink link;
    const Inode* existing = nullptr;  // the inode that has the name now; null: none
  };
  Result<Place> FindPlace(const Where& where) const ISOZONE_REQUIRES(catalog_.namespace_mutex);
  // The place of a name that exists.
  Result<Place> FindExisting(const Where& where) const ISOZONE_REQUIRES(catalog_.namespace_mutex);
  // The place of a name that may be made.
  Result<Place> FindNew(const Where& where) const ISOZONE_REQUIRES(catalog_.namespace_mutex);
  // The same, where the name is not taken.
  Result<Place> FindFree(const Where& where) const ISOZONE_REQUIRES(catalog_.namespace_mutex);
  // Whether `inode` is a directory that is `directory`, or above it.
  bool IsAbove(const Inode& inode, const Inode& directory) const ISOZONE_REQUIRES(catalog_.namespace_mutex);
  Status CheckEmpty(const Inode& inode, const Where& where) const ISOZONE_REQUIRES(catalog_.namespace_mutex);

  // The details of an inode; those that AttributesOf tells of it where it has none.
  static std::shared_ptr<InodeDetails> DetailsOf(const Inode& inode);
  // The operation that gives an inode these times: the one at which its data was modified, and now as time of change.
  MetadataOp NewTimes(const Inode& inode, const FileTime& modified) const;
  // The inode itself changes.
  MetadataOp Changed(const Inode& inode) const;
  // The names in a directory change.
  MetadataOp NamesChanged(const Inode& directory) const { return NewTimes(directory, Now()); }
  // Adds to `ops` what removes one name of an inode, and with the last one the inode.
  void AddUnlink(const Inode& inode, const InodeLink& link, Times times, std::vector<MetadataOp>& ops) const;

  Result<InodeId> Put(const Place& place, Inode inode, Times times) ISOZONE_REQUIRES(catalog_.namespace_mutex);
  Status Remove(const Where& where, bool is_directory, Times times);
  // Commits `ops` as one record. `unlinked` is the inode that loses a name by them; null: none does.
  Status Commit(std::span<const MetadataOp> ops, const Inode* unlinked) ISOZONE_REQUIRES(catalog_.namespace_mutex);

  Catalog& catalog_;
};

}  // namespace isozone
