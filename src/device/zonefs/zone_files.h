// ZoneFiles: what ZonefsKernel asks of a mounted zonefs about the files of its sequential zones, and nothing else.
// MountedZoneFiles is the real one; FakeZonefs (testing) stands in for it on machines without such a mount.
//
// Files are numbered from 0, as in seq/0. Errors are values of errno.
//
// Thread safety: any thread may call any method.
#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.h"

namespace isozone {

struct ZoneFileStatus {
  uint64_t size = 0;      // bytes: the write pointer of the zone
  uint64_t capacity = 0;  // bytes: the most that it can hold
  uint32_t mode = 0;  // permissions. None at all on an empty file: the zone is offline. None to write: it is read-only
};

class ZoneFiles {
 public:
  virtual ~ZoneFiles() = default;

  // Returns the number of files. The other methods return 0 or an error.
  virtual uint32_t count() const = 0;
  virtual int Look(uint32_t file, ZoneFileStatus& status) const = 0;
  // Opens a file for direct I/O, to write or to read. To write may block: a mount with explicit-open opens the zone.
  virtual int Open(uint32_t file, bool writes, FileDescriptor& opened) = 0;
  // Truncates a file to 0, which resets the zone, or to its capacity, which finishes it. Blocks.
  virtual int Truncate(uint32_t file, uint64_t size) = 0;
  // Returns whether the device below has been taken away.
  virtual bool IsGone() const = 0;
  // Says to people how zonefs is mounted and used.
  virtual std::string Text() const = 0;
};

}  // namespace isozone
