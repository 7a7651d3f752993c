// FileOpener: opens the files of a mount, for those who know them by path and for those who know them by inode. All
// handles of an inode share one OpenFile, which is found or made here.
//
// Where this process is the writer, a file of data is where its inode says, and a log has to be scanned once, which is
// I/O, and done without the namespace mutex. Where another process may be the writer, ReadOnlyRefresh opens the file,
// and readers ask it whether the file has grown, or was removed or moved.
//
// A log whose last region has no end, because it could not be read when mounting, gets one from its first writer.
//
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"
#include "store/file/write_sink.h"
#include "store/file_system.h"
#include "store/metadata/metadata.h"
#include "store/mount/mount_context.h"
#include "store/mount/read_only_refresh.h"

namespace isozone {

class FileOpener {
 public:
  // `refresh` outlives this; it is null where this process is the writer.
  FileOpener(std::shared_ptr<MountContext> context, ReadOnlyRefresh* refresh)
      : context_(std::move(context)), data_path_(context_->data_path), catalog_(context_->catalog), refresh_(refresh) {}

  // Brings names and files up to date that a writer in another process may have changed.
  Status Refresh() const { return refresh_ == nullptr ? Status::Ok() : refresh_->Refresh(); }
  // Returns whether only opening a log tells its size: a writer in another process may make it longer, or it could not
  // be closed, and nobody has it open. The caller holds the namespace mutex.
  bool MustBeOpened(const Inode& inode) const {
    catalog_.namespace_mutex.AssertHeld();
    if (refresh_ != nullptr) return refresh_->MayGrow(inode);
    return inode.kind == FileKind::kLog && inode.has_open_region() && catalog_.FindOpen(inode.id) == nullptr;
  }
  // Returns the open file of the inode of a file. kNotFound where it was removed. A log of which a part is damaged can
  // be opened: its OpenFile has the damage.
  Result<std::shared_ptr<OpenFile>> Open(InodeId id) ISOZONE_EXCLUDES(catalog_.namespace_mutex);
  // Returns a reader of an open file.
  std::unique_ptr<FileReader> ReaderOf(std::shared_ptr<OpenFile> file);
  // Returns a writer of an open file, which becomes its only one. `data` is the class of what it writes, whatever
  // `options` say of that. kBusy where the file has a writer, or is claimed (OpenFile::is_claimed) by anyone but the
  // caller, which says so by `claimed`. Where a log is damaged, returns that damage.
  Result<std::unique_ptr<FileWriter>> WriterOf(std::shared_ptr<OpenFile> file, const CreateOptions& options,
                                               DataClass data, bool claimed = false)
      ISOZONE_EXCLUDES(catalog_.namespace_mutex);
  // Returns the writer of a file whose OpenFile::has_writer the caller has set.
  std::unique_ptr<FileWriter> MakeWriter(std::shared_ptr<OpenFile> file, const CreateOptions& options, DataClass data)
      ISOZONE_EXCLUDES(catalog_.namespace_mutex);

 private:
  // Opens a file that a writer in another process may change.
  Result<std::shared_ptr<OpenFile>> Follow(InodeId id) ISOZONE_EXCLUDES(catalog_.namespace_mutex);
  // Finds the open file of `id`, or makes it of what is given.
  std::shared_ptr<OpenFile> Register(InodeId id, FileKind kind, ExtentList extents, Status damage)
      ISOZONE_REQUIRES(catalog_.namespace_mutex);
  // Gives the last region of a log an end, if it has none and nobody writes it. It ends where `file` does.
  Status SealLeftOpen(const OpenFile& file) ISOZONE_REQUIRES(catalog_.namespace_mutex);
  // Returns the bytes of a unit of a writer.
  size_t UnitSize(FileKind kind) const;
  // Return over how many zones a writer stripes, and how many units it may hold.
  SinkOptions StripeOptions(size_t unit, uint64_t expected_size) const;
  SinkOptions LogOptions(size_t unit) const;

  // Returns a pointer to a part of the mount. The whole mount lives as long as that pointer.
  template <typename Part>
  std::shared_ptr<Part> Share(Part& part) const {
    return std::shared_ptr<Part>(context_, &part);
  }

  const std::shared_ptr<MountContext> context_;
  DataPath& data_path_;
  Catalog& catalog_;
  ReadOnlyRefresh* const refresh_;
};

}  // namespace isozone
