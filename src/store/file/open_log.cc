#include "store/file/open_log.h"

#include <algorithm>

#include <fmt/format.h>

#include "store/metadata/metadata_io.h"

namespace isozone {
namespace {

// Returns which of `regions` has `extent`: the one that begins last before it in its zone.
size_t RegionOf(const DeviceGeometry& geometry, std::span<const LogRegion> regions, const FileExtent& extent) {
  const ZoneId zone = geometry.ZoneOf(extent.device_offset);
  const uint64_t at = geometry.OffsetInZone(extent.device_offset);
  size_t best = regions.size();
  for (size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].zone != zone || regions[i].begin > at) continue;
    if (best == regions.size() || regions[best].begin < regions[i].begin) best = i;
  }
  return best;
}

Status Lost(InodeId inode, std::string_view what, uint64_t size) {
  return Status::Corruption(fmt::format("log inode {}: {}; its bytes from {} on are lost", inode.value(), what, size));
}

}  // namespace

LogContents JoinRegions(const Inode& inode, std::vector<LogScan> scans) {
  LogContents contents;
  for (const LogScan& scan : scans) {
    contents.extents.insert(contents.extents.end(), scan.extents.begin(), scan.extents.end());
  }
  std::sort(contents.extents.begin(), contents.extents.end(),
            [](const FileExtent& a, const FileExtent& b) { return a.file_offset < b.file_offset; });
  const auto missing = std::find_if(contents.extents.begin(), contents.extents.end(), [&](const FileExtent& extent) {
    if (extent.file_offset != contents.size) return true;
    contents.size += extent.length;
    return false;
  });
  const bool gap = missing != contents.extents.end();
  const bool twice = gap && missing->file_offset < contents.size;
  contents.extents.erase(missing, contents.extents.end());

  for (const LogScan& scan : scans) {
    // An I/O error takes precedence, since what could not be read may be readable later.
    if (scan.damage.ok() || contents.damage.Is(StatusCode::kIoError)) continue;
    if (scan.damage.Is(StatusCode::kIoError)) {
      contents.damage = scan.damage;
    } else if (contents.damage.ok()) {
      contents.damage = Lost(inode.id, scan.damage.message(), contents.size);
    }
  }
  if (contents.damage.ok() && twice) contents.damage = Lost(inode.id, "two frames hold the same bytes", contents.size);
  if (contents.damage.ok() && gap && !inode.has_open_region()) {
    contents.damage = Lost(inode.id, "a frame is missing", contents.size);
  }
  contents.scans = std::move(scans);
  return contents;
}

Result<LogContents> ReadLog(IoEngine& engine, uint32_t uuid_seed, const Inode& inode) {
  std::vector<LogScan> scans;
  for (const LogRegion& region : inode.regions) {
    ISOZONE_ASSIGN_OR_RETURN(const ZoneDescriptor zone, DescribeZone(engine.device(), region.zone));
    scans.push_back(ScanLogRegion(engine, uuid_seed, inode.id, region, zone));
  }
  return JoinRegions(inode, std::move(scans));
}

SealedLog SealLog(const DeviceGeometry& geometry, std::span<const LogRegion> regions,
                  std::span<const FileExtent> extents) {
  std::vector<LogRegion> sealed(regions.begin(), regions.end());
  for (LogRegion& region : sealed) region.payload = 0;
  for (const FileExtent& extent : extents) {
    const size_t i = RegionOf(geometry, regions, extent);
    if (i == regions.size()) continue;
    sealed[i].payload += extent.length;
    if (regions[i].open()) {
      sealed[i].end = RoundUp(geometry.OffsetInZone(extent.device_offset) + extent.length, geometry.block_size);
    }
  }
  SealedLog log;
  for (size_t i = 0; i < sealed.size(); ++i) {
    if (sealed[i].payload > 0) {
      log.regions.push_back(sealed[i]);
    } else {
      log.dropped.push_back(regions[i]);
    }
  }
  return log;
}

}  // namespace isozone
