// BlockKernel: what LinuxDevice asks of the kernel about one open zoned block device, and nothing else.
// OpenedBlockDevice asks the device itself, and ZonefsKernel the file system zonefs on it; FakeZonedDisk (testing)
// stands in for a device on machines without one.
//
// Positions and lengths are bytes on the block device, in whole logical blocks. Errors are values of errno.
//
// Thread safety: any thread may call any method at any time, except the destructor: all transfers must have completed.
#pragma once

#include <linux/blkzoned.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace isozone {

// Bytes: the unit of sizes in sysfs and of zones in system calls, whatever the blocks of the device are.
inline constexpr uint64_t kKernelSector = 512;

// One read, write or flush. Its owner keeps it and its memory until `done` is called, which happens exactly once: on
// the thread that started it, before Start returns, or on a thread of the kernel's side. `done` is short and does not
// block; it may free the transfer, or start it again.
struct KernelTransfer {
  enum class Kind : uint8_t { kRead, kWrite, kFlush };

  Kind kind = Kind::kRead;
  bool durable = false;       // kWrite: with RWF_DSYNC
  std::byte* data = nullptr;  // aligned to QueueFacts::memory_alignment
  uint64_t length = 0;        // bytes
  uint64_t position = 0;      // bytes from the start of the device; once `file` is set, of the file
  int file = -1;              // the open file that is read, written or flushed; BlockKernel sets it
  bool may_block = false;     // Start may take as long as the device
  bool resent = false;        // kRead, kFlush: the host has not carried it out before
  bool is_probe = false;      // kRead: `result` is an error only if the device was not reached

  void (*done)(KernelTransfer& transfer) = nullptr;
  void* context = nullptr;  // for the owner's use

  // Set before `done` is called: the bytes that were moved, which may be fewer than `length`; 0 for a flush; or -errno.
  int64_t result = 0;
};

enum class ZoneCommand : uint8_t { kReset, kFinish, kOpen, kClose };

// A zone as the kernel reports it, in bytes.
struct KernelZone {
  uint64_t start = 0;          // from the start of the device
  uint64_t length = 0;         // up to the next zone
  uint64_t capacity = 0;       // bytes that can be written
  uint64_t write_pointer = 0;  // from the start of the zone; up to here a read-only zone can be read
  blk_zone_type type = BLK_ZONE_TYPE_CONVENTIONAL;
  blk_zone_cond condition = BLK_ZONE_COND_NOT_WP;
};

class BlockKernel {
 public:
  virtual ~BlockKernel() = default;

  // Starts `transfer`. Waits for the device only if the transfer may block; may block shortly if the queue of the
  // device is full.
  virtual void Start(KernelTransfer& transfer) = 0;

  // Fills `out` with the zones from the one at `position` on. Returns 0 or an error: ENODEV if there are fewer zones,
  // which is how the kernel reports those of a device that was removed. Blocks.
  virtual int ReportZones(uint64_t position, std::span<KernelZone> out) const = 0;

  // Does `command` to every zone in [position, position + length). Returns 0 or an error, after which some of the zones
  // may have changed. Blocks.
  virtual int Manage(ZoneCommand command, uint64_t position, uint64_t length) = 0;

  // Returns a path that opens this block device once more, even if its name has come to name another one. Empty if that
  // is not possible.
  virtual std::string path() const = 0;

  // Returns whether the kernel may refuse a write with EIO because its own write pointer is wrong. On Linux 7.3, a
  // report puts that pointer right once the kernel has refused a write that blocks.
  virtual bool may_err_about_pointers() const = 0;

  // Says to people how transfers reach the device: "io_uring", or "32 threads (io_uring: Operation not permitted)".
  virtual std::string transfer_path() const = 0;
};

}  // namespace isozone
