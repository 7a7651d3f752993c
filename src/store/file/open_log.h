// The contents of a log that is not being written. Its regions are scanned one by one, then their frames are put into
// file order:
//
//   region 0   [0 ... 100)            [300 ... 400)
//   region 1              [100 ... 300)            [500 ... 600)
//   the log    [0 ................................ 400)   its end, if a region is open: later frames were never synced
//
// The scan of a region finds every frame of it that was synced; otherwise it reports damage (log_frame.h). So a gap
// between frames is the end of a log with an open region, and damage in a log whose regions are all sealed.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "store/file/log_frame.h"
#include "store/io/io_engine.h"
#include "store/metadata/metadata.h"

namespace isozone {

struct LogContents {
  std::vector<FileExtent> extents;
  uint64_t size = 0;           // bytes
  Status damage;               // the damage behind these bytes, if they do not end normally
  std::vector<LogScan> scans;  // one for each region
};

// Scans the regions of `inode`, open ones up to the write pointer of their zone. Fails only if the device cannot be
// queried; damage is part of the contents.
Result<LogContents> ReadLog(IoEngine& engine, uint32_t uuid_seed, const Inode& inode);

// Joins the scans of all regions to a log. Moves them into LogContents::scans.
LogContents JoinRegions(const Inode& inode, std::vector<LogScan> scans);

struct SealedLog {
  std::vector<LogRegion> regions;  // with their payloads
  std::vector<LogRegion> dropped;  // the old regions of which nothing is left
};

// Returns the regions of a log that will consist of `extents`, the first bytes of what ReadLog found.
SealedLog SealLog(const DeviceGeometry& geometry, std::span<const LogRegion> regions,
                  std::span<const FileExtent> extents);

}  // namespace isozone
