// Fsck: checks every invariant of a file system on a device, without changing it: see docs/format.md, "Invariants".
// Kept memory (store/kept) that is of no use to the device is removed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"
#include "insight/stats/page_file.h"

namespace isozone {

enum class FsckSeverity : uint8_t {
  kNote,   // normal after a power cut: a torn tail, dead space
  kError,  // an invariant is broken
};

struct FsckFinding {
  FsckSeverity severity = FsckSeverity::kError;
  std::string text;         // one line: what, where, and what is affected
  bool repairable = false;  // mounting for writing mends it
};

struct FsckOptions {
  bool read_data = false;                                       // also read every block of every file
  std::function<void(uint64_t done, uint64_t total)> progress;  // bytes; may be empty
  std::string kept_memory_directory = kPageDirectory;           // MountOptions::kept_memory_directory
};

struct FsckReport {
  std::vector<FsckFinding> findings;
  uint64_t files = 0;
  uint64_t directories = 0;
  uint64_t extents = 0;
  uint64_t file_bytes = 0;  // sizes of all files
  uint64_t checkpoint_inodes = 0;
  uint64_t journal_records = 0;
  uint32_t copies_wanted = 0;               // of the metadata
  std::vector<std::vector<ZoneId>> copies;  // the zones of each complete copy
  bool clean() const;                       // no kError
};

// Fails only if nothing could be checked (not formatted, the superblock unreadable); damage is in the report.
Result<FsckReport> Fsck(ZonedDevice& device, const FsckOptions& options);

}  // namespace isozone
