// The contents of a log that nobody is writing: all its regions, scanned.
#pragma once

#include <vector>

#include "base/status.h"
#include "fs/core.h"
#include "fs/log_frame.h"

namespace isozone {

struct LogContents {
  std::vector<FileExtent> extents;
  uint64_t size = 0;  // bytes
  Status damage;      // what lies behind them where that is not the end
};

// Scans the regions of `inode`, an open last one up to the write pointer of its zone. Fails only where the device
// cannot be asked; damage is part of the contents.
Result<LogContents> ReadLog(FsCore& core, const Inode& inode);

// The bytes from the start of the zone to its write pointer.
Result<uint64_t> WritePointerOf(const ZonedDevice& device, ZoneId zone);

}  // namespace isozone
