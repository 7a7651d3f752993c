// The contents of a log that nobody is writing. Its regions are scanned one by one, then their frames are put in file
// order:
//
//   region 0   [0 ... 100)            [300 ... 400)
//   region 1              [100 ... 300)            [500 ... 600)
//   the log    [0 ................................ 400)   its end, if a region is open: what is missing was never synced
//
// A frame that was synced is found by the scan of its region, or its absence there is damage (log_frame.h). So a gap
// between frames is the end of a log of which a region is open, and damage in one whose regions are all sealed.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "fs/file/log_frame.h"
#include "fs/metadata/metadata.h"
#include "io/io_engine.h"

namespace isozone {

struct LogContents {
  std::vector<FileExtent> extents;
  uint64_t size = 0;           // bytes
  Status damage;               // what lies behind them where that is not the end
  std::vector<LogScan> scans;  // of the regions
};

// Scans the regions of `inode`, open ones up to the write pointer of their zone. Fails only where the device cannot be
// asked; damage is part of the contents.
Result<LogContents> ReadLog(IoEngine& engine, uint32_t uuid_seed, const Inode& inode);

// The log that the scans of its regions make: all members but `scans`, which it moves in.
LogContents JoinRegions(const Inode& inode, std::vector<LogScan> scans);

struct SealedLog {
  std::vector<LogRegion> regions;  // with their payloads
  std::vector<LogRegion> dropped;  // those of which nothing is left, as they were
};

// The regions of a log that is to consist of `extents`, the first bytes of what ReadLog found.
SealedLog SealLog(const DeviceGeometry& geometry, std::span<const LogRegion> regions,
                  std::span<const FileExtent> extents);

}  // namespace isozone
