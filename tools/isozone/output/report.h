// Figures as JSON, the same in every command that writes them: info, df, zones, dump.
#pragma once

#include "isozone/output/console.h"
#include "store/file_system.h"

namespace isozone::cli {

Json GeometryJson(const DeviceGeometry& geometry);
Json CountersJson(const DeviceCounters& counters);
Json SpaceJson(const SpaceInfo& space);
Json MetadataJson(const MetadataCopies& metadata);
// Returns null if the groups were never measured.
Json ZoneGroupsJson(const ZoneGroups* groups);
Json ZoneJson(const ZoneView& zone);
Json FileInZoneJson(const FileInZone& file);
Json ZoneOfFileJson(const ZoneOfFile& zone);
// `allocated` is how many bytes the file has on the device (FileSystem::AllocatedBytes).
Json AttributesJson(const FileAttributes& attributes, uint64_t allocated);
std::string_view TypeName(InodeType type);  // "file", "directory", "symlink"
// Includes the zone that holds the extent.
Json ExtentJson(const FileExtent& extent, const DeviceGeometry& geometry);

// Returns "0 and 1"; "0, 5 and 1" if a copy takes several zones; "none".
std::string CopiesText(const std::vector<std::vector<ZoneId>>& copies);
// Returns "2026-11-21 19:40:02", in UTC.
std::string FormatTime(uint64_t seconds_since_1970);
// Returns "12.3 %"; 0 of 0 is 0 %.
std::string FormatShare(uint64_t part, uint64_t whole);

}  // namespace isozone::cli
