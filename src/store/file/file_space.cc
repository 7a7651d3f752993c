#include "store/file/file_space.h"

#include <algorithm>

namespace isozone {

std::vector<ZoneBytes> SpaceOf(const DeviceGeometry& geometry, std::span<const FileExtent> extents) {
  std::vector<ZoneBytes> space;
  space.reserve(extents.size());
  for (const FileExtent& e : extents) {
    if (!e.is_hole()) space.emplace_back(geometry.ZoneOf(e.device_offset), e.length);
  }
  return space;
}

std::vector<ZoneBytes> SpaceOfList(const DeviceGeometry& geometry, const ExtentList& extents) {
  std::vector<ZoneBytes> space;
  extents.VisitRuns([&](const ExtentRun& column) {
    VisitByZone(geometry, column,
                [&](ZoneId zone, const ExtentRun& run) { space.emplace_back(zone, run.length * run.count); });
  });
  return space;
}

std::vector<ZoneBytes> SpaceOf(const DeviceGeometry& geometry, const Inode& inode) {
  return inode.kind == FileKind::kLog ? SpaceOf(inode.regions) : SpaceOfList(geometry, inode.extents);
}

std::vector<ZoneId> ZonesOf(const DeviceGeometry& geometry, const Inode& inode) {
  std::vector<ZoneId> zones;
  inode.extents.VisitRuns([&](const ExtentRun& column) {
    VisitByZone(geometry, column, [&](ZoneId zone, const ExtentRun&) { zones.push_back(zone); });
  });
  for (const LogRegion& region : inode.regions) zones.push_back(region.zone);
  std::ranges::sort(zones);
  zones.erase(std::unique(zones.begin(), zones.end()), zones.end());
  return zones;
}

std::vector<ZoneBytes> SpaceOf(std::span<const LogRegion> regions) {
  std::vector<ZoneBytes> space;
  for (const LogRegion& r : regions) {
    if (!r.open() && r.end > r.begin) space.emplace_back(r.zone, r.end - r.begin);
  }
  return space;
}

}  // namespace isozone
