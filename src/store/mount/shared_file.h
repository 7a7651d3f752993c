// SharedFile: the PositionalFile behind all opens of an inode. It decides what a write is:
//
//   0 ........... append_from_ ........... size
//   on the device, known     of the writer:
//   to the metadata          in memory, or not yet known
//
//   at `size`                 goes to the writer, which is opened when it is needed (file_writer.h)
//   before `size`             if it only repeats the end of the file, what is behind that is appended. Otherwise it is
//                             written in place (in_place_writes.h). If it touches what is the writer's, the writer is
//                             closed first, so that an in-place write never meets bytes that are in memory.
//   behind `size`             a hole is recorded first
//
// Space is asked for (space_promises.h) before a write is accepted: in steps, so that small appends do not ask each
// time; exactly, and after writing out what is in memory, where a step is not to be had.
//
// From its first change until the metadata knows of everything, the file is claimed (OpenFile::is_claimed), so that no
// FileWriter and no FileSystem::Overwrite comes in between.
//
// Locks: mu_ before that of the writer, before the namespace mutex. mu_ is held across device I/O, since changes of one
// file run one after another; reads do not take it. The collector never takes it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "store/file/in_place_writes.h"
#include "store/mount/file_opener.h"
#include "store/mount/mount_context.h"
#include "store/positional_file.h"
#include "store/space/space_promises.h"

namespace isozone {

// The services that all positional files of a mount share. `files` must outlive the mount; files that outlive the mount
// do not use it.
struct PositionalServices {
  PositionalServices(std::shared_ptr<MountContext> mount, FileOpener& files)
      : context(std::move(mount)),
        files(files),
        zones(context->data_path),
        promises(*context->data_path.pool, context->data_path.geometry().zone_capacity) {}

  const std::shared_ptr<MountContext> context;
  FileOpener& files;
  InPlaceZones zones;
  SpacePromises promises;
};

class SharedFile final : public PositionalFile {
 public:
  // `services` outlive this. `attributes` are those of `file` now.
  SharedFile(PositionalServices& services, std::shared_ptr<OpenFile> file, const FileAttributes& attributes);
  ~SharedFile() override;

  uint64_t inode() const override { return file_->id().value(); }
  uint64_t size() const override { return file_->size(); }
  Result<size_t> Read(uint64_t offset, std::span<std::byte> buffer, IoClass io_class) override;
  Status Write(uint64_t offset, std::span<const std::byte> data) override;
  Result<uint64_t> Append(std::span<const std::byte> data) override;
  Status Truncate(uint64_t size) override;
  Status Allocate(uint64_t offset, uint64_t length, bool keep_size) override;
  Result<uint64_t> FindData(uint64_t offset) const override { return Find(offset, /*hole=*/false); }
  Result<uint64_t> FindHole(uint64_t offset) const override { return Find(offset, /*hole=*/true); }
  Status Flush() override;
  Status Sync() override;
  void SetLifetime(Lifetime lifetime) override;
  void SetIoClass(IoClass io_class) override;

  // Gives everything to the device, and tells the metadata.
  Status WriteBack();
  // Gives everything to the device, and closes; later changes fail with kAborted. Called when the mount ends.
  Status Detach();
  // Returns when its data was last changed by this object, or what SetModified said later; 0: never.
  FileTime modified() const {
    const uint64_t ns = modified_ns_.load(std::memory_order_relaxed);
    return {ns / kSecondNs, static_cast<uint32_t>(ns % kSecondNs)};
  }
  // Sets the file's time, which it keeps when bytes that were written before are given to the device.
  void SetModified(const FileTime& time) {
    const bool fits = time.s < UINT64_MAX / kSecondNs;
    modified_ns_.store(fits ? time.s * kSecondNs + time.ns : 0, std::memory_order_relaxed);
  }
  // Returns the attributes of a file that has lost its last name. The caller holds the namespace mutex.
  FileAttributes NamelessAttributes() const;

 private:
  Status CheckUsable() const ISOZONE_REQUIRES(mu_);
  // Makes sure that nobody else changes the file from here on. kBusy if somebody does.
  Status Claim() ISOZONE_REQUIRES(mu_);
  // Ends a call: if the metadata knows of everything, others may change the file again. Returns `status`.
  Status Ended(Status status) ISOZONE_REQUIRES(mu_);
  Status WriteLocked(uint64_t offset, std::span<const std::byte> data) ISOZONE_REQUIRES(mu_);
  // Records the hole in front of the write, then writes. The caller undoes half of it after an error.
  Status WriteAdmitted(uint64_t offset, std::span<const std::byte> data) ISOZONE_REQUIRES(mu_);
  void CutBack(uint64_t size) ISOZONE_REQUIRES(mu_);
  Status AppendLocked(std::span<const std::byte> data) ISOZONE_REQUIRES(mu_);
  Status WriteInPlace(uint64_t offset, std::span<const std::byte> data) ISOZONE_REQUIRES(mu_);
  Status TruncateLocked(uint64_t size) ISOZONE_REQUIRES(mu_);
  Status Grow(uint64_t size) ISOZONE_REQUIRES(mu_);
  Status BecomeData() ISOZONE_REQUIRES(mu_);
  // Returns whether `data` is what the file has at `offset`, near its end.
  bool RepeatsEnd(uint64_t offset, std::span<const std::byte> data) ISOZONE_REQUIRES(mu_);
  void NoteEnd(std::span<const std::byte> appended) ISOZONE_REQUIRES(mu_);
  Status OpenWriter() ISOZONE_REQUIRES(mu_);
  // Closes the writer. After that everything is on the device and known to the metadata.
  Status CloseWriter() ISOZONE_REQUIRES(mu_);
  Status PublishPending(bool durable) ISOZONE_REQUIRES(mu_);
  Status SyncLocked() ISOZONE_REQUIRES(mu_);
  // Notes that nothing is in memory any more.
  void NoteWrittenOut() ISOZONE_REQUIRES(mu_);
  // Asks for the space of a write.
  Status Admit(uint64_t offset, uint64_t bytes) ISOZONE_REQUIRES(mu_);
  // Closes the writer, publishes, and records the times if the inode has details.
  Status Settle() ISOZONE_REQUIRES(mu_);
  Status RecordTimes();
  void Touch() { modified_ns_.store(catalog_.clock.NowWallNs(), std::memory_order_relaxed); }
  Result<uint64_t> Find(uint64_t offset, bool hole) const;
  // Returns how many bytes of [offset, end) take no space.
  uint64_t HoleBytes(uint64_t offset, uint64_t end) const;

  PositionalServices& services_;
  Catalog& catalog_;
  std::shared_ptr<OpenFile> file_;
  const std::unique_ptr<FileReader> reader_;
  const FileAttributes attributes_;  // when it was opened
  std::atomic<uint64_t> modified_ns_{0};

  Mutex mu_;  // one change at a time
  CreateOptions options_ ISOZONE_GUARDED_BY(mu_);
  std::unique_ptr<FileWriter> writer_ ISOZONE_GUARDED_BY(mu_);  // null: nothing is in memory
  uint64_t append_from_ ISOZONE_GUARDED_BY(mu_) = 0;            // the size when writer_ was opened
  std::string end_ ISOZONE_GUARDED_BY(mu_);                     // the last bytes of the file, as far as they are known
  InPlaceWrites in_place_ ISOZONE_GUARDED_BY(mu_);
  SpacePromises::Promise buffered_ ISOZONE_GUARDED_BY(mu_);   // for what is in memory, and for credit_
  SpacePromises::Promise allocated_ ISOZONE_GUARDED_BY(mu_);  // made by Allocate
  uint64_t in_memory_ ISOZONE_GUARDED_BY(mu_) = 0;            // bytes that were accepted and may be in memory, at most
  uint64_t credit_ ISOZONE_GUARDED_BY(mu_) = 0;               // bytes of buffered_ that the next writes may take
  bool claimed_ ISOZONE_GUARDED_BY(mu_) = false;
  bool detached_ ISOZONE_GUARDED_BY(mu_) = false;
};

}  // namespace isozone
