// ReadOnlyRefresh: keeps a read-only mount up to date with a writer in another process. When the writer has added
// records to the metadata, they are read and applied. Only if the copy that is read was replaced, all of it is read
// again. Then open files are brought up to date: logs grow, and removed files are marked.
//
// What the writer keeps in memory (store/kept) counts as if the device had it: records that are not durable yet, and
// the ends of logs. These records are applied behind those of the device, and skipped when they come from there later.
// For a log, the memory is read first, then the metadata, and then the frames: what has left the memory by then is
// found in one of these.
//
// The write pointers of the zones that copies are in, or begin in, show whether anything has changed. The superblocks
// show whether a copy was replaced, or is about to be.
//
// The writer does not reset the zones that this process pins (store/pins/reader_pins.h), which are those of its open
// files. So a file that was removed can still be read where it was, and a log to its end. A file that was moved is read
// where it was until its new places are pinned and the metadata has been looked at once more. A thread, which starts
// when the first file is opened, does that for files that nobody reads, so that the writer gets back the zones that
// they have left. A file that was removed may lose its zone to a reset while it is read if nothing can be pinned, if
// the writer does not see the pins (its kept memory lies elsewhere), or if it has given this process up. So after each
// read the reader checks, and fails rather than return the bytes of another file.
//
// Thread safety: any thread may call any method.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/units.h"
#include "store/kept/kept_reader.h"
#include "store/metadata/recovery.h"
#include "store/mount/mount_context.h"
#include "store/pins/reader_pins.h"

namespace isozone {

class ReadOnlyRefresh {
 public:
  // `reading` is what the mount has read, and its state that of `context`. `find_space` reads the metadata anew.
  ReadOnlyRefresh(MountContext& context, MetadataReading reading,
                  std::function<Result<SpaceInfo>(MountContext&)> find_space);
  ~ReadOnlyRefresh();
  ReadOnlyRefresh(const ReadOnlyRefresh&) = delete;
  ReadOnlyRefresh& operator=(const ReadOnlyRefresh&) = delete;

  // Brings state and open files up to date, if the writer has changed anything.
  Status Refresh();

  // Returns the open file of an inode, which can be read from now on, whatever the writer does. kNotFound if it was
  // removed.
  Result<std::shared_ptr<OpenFile>> Open(InodeId id);

  // Refreshes. Fails with kIoError if what was read of the file before may be something else.
  Status CheckRead(const OpenFile& file);

  // Refreshes, and finds what was added to a log since it was last looked at.
  Status GrowLog(OpenFile& file);
  // Returns whether somebody may be writing this log, so that only GrowLog finds its size. The caller holds the
  // namespace mutex.
  bool MayGrow(const Inode& inode) const {
    return inode.kind == FileKind::kLog && (inode.has_open_region() || has_kept_.load(std::memory_order_relaxed));
  }

  // Returns the space as the writer has it, at most a second old.
  SpaceInfo Space();

  // Returns the copies of the metadata, as of the last time that all of it was read.
  MetadataCopies Metadata() const;

 private:
  // The interval at which the metadata is looked at for files that nobody reads.
  static constexpr int64_t kFollowNs = 250 * kMillisecondNs;
  // The number of times that a refresh looks at the metadata in a row, while files move on.
  static constexpr int kMostLooks = 8;
  using Pointers = std::vector<std::pair<ZoneId, uint64_t>>;     // of zones
  using Generations = std::vector<std::pair<ZoneId, uint64_t>>;  // of the copies that begin there
  using Tails = std::map<uint64_t, std::vector<KeptPiece>>;      // by inode

  void Take(MetadataReading reading) ISOZONE_REQUIRES(mu_);
  Result<Pointers> ReadPointers() const ISOZONE_REQUIRES(mu_);
  // Returns whether no copy was replaced since all of the metadata was read.
  Result<bool> SameCopies() ISOZONE_REQUIRES(mu_);
  // The open files that are brought up to date. To let logs grow costs reading them.
  enum class Files : uint8_t { kAll, kButLogs };
  Status RefreshLocked(Files files = Files::kAll) ISOZONE_REQUIRES(mu_);
  // Brings the state up to date, but not the open files. Reads the `tails` of open logs before that, unless null.
  // Returns false, and does nothing, if nothing has changed and it is not `in_any_case`.
  Result<bool> Look(Tails* tails, bool in_any_case) ISOZONE_REQUIRES(mu_);
  // Applies what the device has by now, at least up to `durable`. Returns false if the copies may lie in other zones
  // now.
  Result<bool> ReadDevice(uint64_t durable) ISOZONE_REQUIRES(mu_);
  // Clears `seen` if the copies lie in other zones now, so that the next look finds a change.
  Status ForgetIfElsewhere(Pointers& seen) const ISOZONE_REQUIRES(mu_);
  // Returns the sequence of a record that the device has; 0 if it is not known.
  Result<uint64_t> DurableSequence() const ISOZONE_REQUIRES(mu_);
  void MakePins() ISOZONE_REQUIRES(mu_);
  // Pins the places where the state has open files now. Returns false if all of them were pinned already.
  bool PinPlaces() ISOZONE_REQUIRES(mu_);
  // Exchanges the pins of the file for those of `zones`, where it is now. Returns false if these are not pinned yet;
  // the file then stays where it was.
  bool TakePins(OpenFile& file, std::span<const ZoneId> zones) ISOZONE_REQUIRES(mu_, catalog_.namespace_mutex);
  // Applies the records that were added on the device.
  Status GoOn() ISOZONE_REQUIRES(mu_);
  // Applies a record of the device, unless it was applied from memory before. kBusy if it shows that another mount has
  // begun instead of what was applied from memory.
  Status ApplyFromDevice(const MetadataReader::Record& record) ISOZONE_REQUIRES(mu_, catalog_.namespace_mutex);
  Status Apply(std::span<const MetadataOp> ops, uint64_t sequence) ISOZONE_REQUIRES(mu_, catalog_.namespace_mutex);
  // Finds the kept memory of the last mount, if there is one that this process may read.
  Status FindKept() ISOZONE_REQUIRES(mu_);
  // Applies the records that only the kept memory has.
  Status ApplyKept() ISOZONE_REQUIRES(mu_);
  // Reads the kept ends of the logs, if any log is open.
  Result<Tails> ReadTails() ISOZONE_REQUIRES(mu_);
  // Reads a log anew, with its kept end `tail`. `at_end`: somebody has read all that is known, and gets an error if
  // that is not the end of a removed log.
  Status GrowLogLocked(OpenFile& file, std::span<const KeptPiece> tail, bool at_end) ISOZONE_REQUIRES(mu_);
  Status ReadAll() ISOZONE_REQUIRES(mu_);
  bool HasOpenLog() const ISOZONE_EXCLUDES(catalog_.namespace_mutex);
  // Returns whether the bytes of an inode may be elsewhere since open files were brought up to date. Logs grow without
  // a record. `inode` is null if it was removed.
  bool MayHaveMoved(InodeId id, const Inode* inode) const ISOZONE_REQUIRES(mu_);
  // Brings open files up to date that may have moved, as far as they are pinned where they are now. Returns the first
  // error, after all of them.
  Status RefreshOpenFiles(const Tails& tails, Files files) ISOZONE_REQUIRES(mu_);
  // Is called before an inode goes from the state. Keeps the inode of an open log: what the log has to its end is known
  // from that, unless there may have been `later` records of it that nobody has seen, while it was written.
  void NoteRemoved(InodeId id, bool later) ISOZONE_REQUIRES(mu_, catalog_.namespace_mutex);
  // Returns whether the file is pinned, and the writer sees that: its own memory lies in the same directory.
  bool IsHeld(const OpenFile& file) const { return !file.pins.IsOf(nullptr) && has_kept_; }
  // The thread that follows the writer.
  void StartToFollow() ISOZONE_REQUIRES(mu_);
  void FollowInBackground() ISOZONE_EXCLUDES(follow_mu_, mu_);
  Status FollowOnce() ISOZONE_EXCLUDES(mu_);

  MountContext& context_;
  DataPath& data_path_;
  Catalog& catalog_;
  mutable Mutex mu_;  // one refresh at a time; taken before the namespace mutex
  std::unique_ptr<MetadataReader> reader_ ISOZONE_GUARDED_BY(mu_);
  std::vector<MetadataCopy> copies_ ISOZONE_GUARDED_BY(mu_);
  uint32_t copies_wanted_ ISOZONE_GUARDED_BY(mu_) = 0;
  Pointers seen_ ISOZONE_GUARDED_BY(mu_);
  // The inodes that records have changed and open files do not show yet; none: any may have changed.
  std::optional<std::set<InodeId>> changed_ ISOZONE_GUARDED_BY(mu_){std::in_place};
  uint64_t applied_ ISOZONE_GUARDED_BY(mu_) = 0;       // the sequence of the last record in the state
  uint64_t mount_number_ ISOZONE_GUARDED_BY(mu_) = 0;  // the mount whose memory `kept_` is, or would be
  std::unique_ptr<KeptReader> kept_ ISOZONE_GUARDED_BY(mu_);
  uint64_t kept_seen_ ISOZONE_GUARDED_BY(mu_) = 0;  // KeptReader::Version
  std::atomic<bool> has_kept_{false};
  struct RemovedLog {
    Inode inode;           // as it was last
    bool has_end = false;  // it is known to its end
  };
  std::map<InodeId, RemovedLog> removed_logs_ ISOZONE_GUARDED_BY(mu_);  // those that are open
  std::shared_ptr<ReaderPins> pins_ ISOZONE_GUARDED_BY(mu_);            // null: nothing can be pinned
  bool unsettled_ ISOZONE_GUARDED_BY(mu_) = false;  // open files are not where the state has them, or not pinned there
  const std::function<Result<SpaceInfo>(MountContext&)> find_space_;
  Mutex space_mu_;  // held while space is looked for
  SpaceInfo space_ ISOZONE_GUARDED_BY(space_mu_);
  int64_t space_found_ns_ ISOZONE_GUARDED_BY(space_mu_);
  Mutex follow_mu_;
  CondVar stop_following_;
  bool stopping_ ISOZONE_GUARDED_BY(follow_mu_) = false;
  std::thread follower_;  // started under mu_, and joined by the destructor
};

}  // namespace isozone
