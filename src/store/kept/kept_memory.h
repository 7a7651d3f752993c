// KeptMemory: the shared memory in which a mount keeps what the device does not have yet, so that the death of the
// process takes nothing (kept_layout.h has the format, kept_reader.h reads it).
//
//   units     memory of the writers of logs and small files: taken when a unit begins, published with each append, and
//             given up when the device has it
//   records   of the journal, from the moment they are appended until every copy of the metadata has them
//
// Pace. As long as at most half of the unit memory holds full units, which wait for the device, nobody else waits.
// Beyond that, those who append are slowed down, the more the less is left, towards the pace at which the device takes
// it. When nothing is left they wait.
//
// Thread safety: any thread may call any method; a KeptUnitMemory belongs to its writer.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "insight/stats/page_file.h"
#include "store/kept/kept_layout.h"

namespace isozone {

class KeptMemory;

// The memory of one unit, given up by the destructor.
class KeptUnitMemory {
 public:
  KeptUnitMemory() = default;
  KeptUnitMemory(KeptUnitMemory&& other) noexcept;
  KeptUnitMemory& operator=(KeptUnitMemory&& other) noexcept;
  ~KeptUnitMemory();

  bool has_memory() const { return memory_ != nullptr; }
  std::span<std::byte> span() const { return span_; }
  // Says that the unit has `length` bytes of the file, which are there already. `crc` is their CRC, which starts from
  // KeptSeed.
  void Publish(uint64_t length, uint32_t crc);
  // Says that the unit is full, and waits for the device from now on.
  void NoteFull();

 private:
  friend class KeptMemory;
  KeptMemory* memory_ = nullptr;
  size_t granule_ = 0;  // the first granule
  bool full_ = false;
  std::span<std::byte> span_;
};

struct KeptMemoryStats {
  uint64_t bytes = 0;  // bytes of the unit memory
  uint64_t used = 0;   // bytes of units that are in use
  uint64_t waits = 0;  // times that a writer waited, because memory was short
};

class KeptMemory {
 public:
  // Makes the memory of the mount with this number, without a name yet. It gets the rights of `device`. kNoSpace,
  // kPermissionDenied or another error if there is no such memory.
  static Result<std::unique_ptr<KeptMemory>> Make(const PageOwner& device, const std::string& directory, uint64_t bytes,
                                                  const std::string& uuid, uint64_t mount_number, Clock& clock);
  // Leaves the file, if it has a name, as it is: the next mount takes over whatever it holds.
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  // Maps some of the memory that is not mapped yet, so that no append meets a page fault. Returns false if all of it is
  // mapped, or if the kernel cannot do that (before Linux 5.14). One thread.
  bool Prepare();

  // Gives the memory its name, in place of what an earlier mount has left: that was taken over, or is of no use.
  Status Publish() { return file_->Publish(); }
  // Removes the file. To be called when the device has everything; nothing may be taken any more.
  void Remove() { file_->Remove(); }

  // --- Units ---
  // Takes memory for a unit of `inode` that begins at `file_offset`: at most `most` bytes, less if memory is short;
  // `header` bytes are left free in front of its payload. Returns nothing if there is no memory now.
  std::optional<KeptUnitMemory> TryTake(uint64_t inode, uint64_t file_offset, size_t header, size_t most)
      ISOZONE_EXCLUDES(mu_);
  // Does what TryTake does, but waits until there is memory.
  KeptUnitMemory Take(uint64_t inode, uint64_t file_offset, size_t header, size_t most) ISOZONE_EXCLUDES(mu_);
  // Returns whether somebody waits in Take, so that units that are not full yet should be written out, too.
  bool is_awaited() const { return awaiting_.load(std::memory_order_relaxed) > 0; }
  // Sets `wake`, which is called whenever somebody begins to wait in Take, and again if what was given up was not
  // enough. To be called before the first unit is taken.
  void OnAwaited(std::function<void()> wake) { on_awaited_ = std::move(wake); }
  // Slows down the thread that is about to append `bytes`, if memory is short.
  void Pace(uint64_t bytes) {
    if (full_.load(std::memory_order_relaxed) > free_of_pace_) SlowDown(bytes);
  }

  // --- Records, in the order of their sequences ---
  // Keeps a record of the journal. Returns false if there is no room for it, or was none for one before it.
  bool KeepRecord(uint64_t sequence, std::span<const std::byte> body) ISOZONE_EXCLUDES(ring_mu_);
  // Gives up the records up to `sequence`, which are durable.
  void ForgetRecords(uint64_t sequence) ISOZONE_EXCLUDES(ring_mu_);
  // Returns whether half of the room for records is used, so that they should be made durable.
  bool wants_records_durable() const { return wants_records_durable_.load(std::memory_order_relaxed); }
  // Returns the sequence up to which every record is kept or durable.
  uint64_t kept_sequence() const { return kept_sequence_.load(std::memory_order_acquire); }

  KeptMemoryStats Stats() const;

 private:
  friend class KeptUnitMemory;
  struct RingRecord {
    uint64_t sequence = 0;
    uint64_t end = 0;  // position
  };

  KeptMemory(std::unique_ptr<PageFile> file, const KeptHeader& header, Clock& clock);
  std::span<std::byte> MemoryOf(size_t granule, size_t bytes) const;
  KeptUnit& UnitAt(size_t granule) const;
  std::optional<KeptUnitMemory> TakeLocked(uint64_t inode, uint64_t file_offset, size_t header, size_t most)
      ISOZONE_REQUIRES(mu_);
  // Returns the beginning of the first run of `granules` free granules; nothing if there is none.
  std::optional<size_t> FindFree(size_t granules) const ISOZONE_REQUIRES(mu_);
  uint64_t memory_bytes() const { return layout_.granules * kKeptGranule; }
  void NoteFull(size_t bytes) ISOZONE_EXCLUDES(mu_);
  void GiveUp(size_t granule, size_t bytes, bool full) ISOZONE_EXCLUDES(mu_);
  void SlowDown(uint64_t bytes) ISOZONE_EXCLUDES(mu_);
  void CopyIntoRing(uint64_t position, std::span<const std::byte> bytes);

  const std::unique_ptr<PageFile> file_;
  std::byte* const bytes_;  // of the file
  const KeptLayout layout_;
  const uint64_t mount_number_;
  const uint64_t free_of_pace_;  // bytes of units
  Clock& clock_;
  std::function<void()> on_awaited_;
  uint64_t prepared_ = 0;  // bytes, of the file

  std::atomic<uint64_t> used_{0};  // bytes of units
  std::atomic<uint64_t> full_{0};  // bytes of full units among them
  std::atomic<uint32_t> awaiting_{0};
  std::atomic<uint64_t> waits_{0};
  mutable Mutex mu_;
  CondVar given_up_;
  uint64_t given_up_count_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::vector<bool> taken_ ISOZONE_GUARDED_BY(mu_);  // granules
  // How fast the device takes full units, while these are more than free_of_pace_.
  int64_t short_since_ns_ ISOZONE_GUARDED_BY(mu_) = 0;
  uint64_t given_up_since_ ISOZONE_GUARDED_BY(mu_) = 0;  // bytes
  int64_t owed_ns_ ISOZONE_GUARDED_BY(mu_) = 0;          // that writers still have to wait

  mutable Mutex ring_mu_;
  std::deque<RingRecord> records_ ISOZONE_GUARDED_BY(ring_mu_);
  uint64_t ring_end_ ISOZONE_GUARDED_BY(ring_mu_) = 0;
  std::atomic<uint64_t> kept_sequence_{0};
  std::atomic<bool> wants_records_durable_{false};
};

// Returns the owner of the kept memory of a device: its file has this name, beside the statistics page.
PageOwner KeptMemoryOwner(PageOwner device);
// Returns what the CRC of the bytes of a unit starts from. It is the same for the frame of a log. `uuid_seed` is
// LogFrameSeed.
uint32_t KeptSeed(uint32_t uuid_seed, uint64_t inode, uint64_t file_offset);
// Returns what the CRC of a record in the ring starts from.
uint32_t KeptRecordSeed(uint64_t mount_number, uint64_t sequence);

}  // namespace isozone
