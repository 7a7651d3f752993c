#include "store/metadata/metadata_rules.h"

#include <fmt/format.h>

namespace isozone {

Status Broken(InodeId inode, std::string_view what) {
  return Status::Corruption(fmt::format("inode {}: {}", inode.value(), what));
}

bool IsValidName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

Status CheckLinkCount(const Inode& inode) {
  const size_t links = inode.links.size();
  const bool right = inode.id == kRootInode ? links == 0 : inode.is_directory ? links == 1 : links > 0;
  return right ? Status::Ok() : Broken(inode.id, fmt::format("has {} links", links));
}

bool MetadataRules::LiesInZones(const ExtentRun& run) const {
  if (run.is_hole()) return run.count == 1 && run.length > 0;
  const uint64_t begin = run.device_offset.value();
  const uint64_t in_zone = geometry_.OffsetInZone(run.device_offset);
  if (begin / geometry_.zone_size >= geometry_.zone_count || run.length == 0) return false;
  if (in_zone > geometry_.zone_capacity || run.length > geometry_.zone_capacity - in_zone) return false;
  if (run.count == 1 || run.count <= (geometry_.zone_capacity - in_zone) / run.length) return true;
  // The run goes on in the zones behind, so no extent may reach across the end of a zone.
  const uint64_t to_the_end = geometry_.zone_size * geometry_.zone_count - begin;
  if (geometry_.zone_capacity != geometry_.zone_size || run.count > to_the_end / run.length) return false;
  if ((geometry_.zone_size - in_zone) % run.length != 0) return false;
  const bool one_more = run.count * run.length - (geometry_.zone_size - in_zone) <= geometry_.zone_size;
  return one_more || geometry_.zone_size % run.length == 0;
}

Status MetadataRules::CheckPlace(InodeId inode, const ExtentRun& run) const {
  if (LiesInZones(run)) return {};
  return Broken(inode, fmt::format("an extent of {} bytes at device offset {} is not inside a zone's capacity",
                                   run.length, run.device_offset.value()));
}

Status MetadataRules::CheckExtents(InodeId inode, uint64_t offset, const ExtentList& extents) const {
  if (!extents.empty() && extents.begin_offset() != offset) {
    return Broken(inode, fmt::format("an extent begins at {}, not at {}", extents.begin_offset(), offset));
  }
  Status status;
  extents.VisitRuns([&](const ExtentRun& run) {
    if (status.ok()) status = CheckPlace(inode, run);
  });
  if (!status.ok()) return status;
  if (extents.StoredBytes() > capacity()) return Broken(inode, "its extents are more than the device holds");
  if (extents.end_offset() > kFileSizeMax) return Broken(inode, "it is larger than files can be");
  return {};
}

Status MetadataRules::CheckRegion(InodeId inode, const LogRegion& region) const {
  const uint64_t end = region.open() ? geometry_.zone_capacity : region.end;
  if (region.zone.value() >= geometry_.zone_count || region.begin > end || end > geometry_.zone_capacity ||
      !IsAligned(region.begin, geometry_.block_size)) {
    return Broken(inode, fmt::format("log region {}..{} of zone {} is not inside a zone's capacity", region.begin, end,
                                     region.zone.value()));
  }
  if (region.payload > (region.open() ? 0 : end - region.begin)) {
    return Broken(inode, fmt::format("log region of zone {} at {} claims a payload of {} bytes", region.zone.value(),
                                     region.begin, region.payload));
  }
  return {};
}

Result<uint64_t> MetadataRules::CheckRegions(InodeId inode, std::span<const LogRegion> regions) const {
  uint64_t size = 0;
  for (const LogRegion& region : regions) {
    ISOZONE_RETURN_IF_ERROR(CheckRegion(inode, region));
    size += region.payload;
  }
  return size;
}

Status MetadataRules::CheckClass(InodeId inode, Lifetime lifetime, int8_t level) {
  if (static_cast<int>(lifetime) >= kLifetimeCount) return Broken(inode, "has a lifetime that is none");
  if (level < DataClass::kNoLevel) return Broken(inode, fmt::format("is said to be in level {} of the tree", level));
  return {};
}

Status MetadataRules::CheckContent(const Inode& inode) const {
  if (inode.id == InodeId(0) || inode.id > InodeId(kInodeIdMax)) return Broken(inode.id, "is not an inode number");
  if (inode.kind > FileKind::kSmall) return Broken(inode.id, "is of no kind");
  ISOZONE_RETURN_IF_ERROR(CheckClass(inode.id, inode.lifetime, inode.level));
  if (!inode.extents.empty() && (inode.is_directory || inode.kind == FileKind::kLog)) {
    return Broken(inode.id, "a directory or log has extents");
  }
  if (!inode.regions.empty() && (inode.is_directory || inode.kind != FileKind::kLog)) {
    return Broken(inode.id, "has log regions, but is not a log");
  }
  ISOZONE_RETURN_IF_ERROR(CheckExtents(inode.id, 0, inode.extents));
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t in_regions, CheckRegions(inode.id, inode.regions));
  const uint64_t holds = inode.extents.end_offset() + in_regions;
  if (inode.size != holds) return Broken(inode.id, fmt::format("is {} bytes long but holds {}", inode.size, holds));
  return inode.details == nullptr ? Status::Ok() : CheckDetails(inode, *inode.details);
}

Status MetadataRules::CheckDetails(const Inode& inode, const InodeDetails& details) {
  constexpr uint32_t kNsMax = 1'000'000'000;
  if (details.mode > InodeDetails::kModeMax) return Broken(inode.id, fmt::format("has mode {:o}", details.mode));
  if (details.modified.ns >= kNsMax || details.changed.ns >= kNsMax) return Broken(inode.id, "has a time that is none");
  if (details.target.size() > InodeDetails::kTargetMax) return Broken(inode.id, "its target is too long");
  const bool has_data = inode.is_directory || inode.size > 0 || !inode.regions.empty();
  if (!details.target.empty() && has_data) return Broken(inode.id, "is a symbolic link and has data");
  size_t bytes = 0;
  for (const auto& [name, value] : details.xattrs) {
    if (name.empty() || name.size() > InodeDetails::kXattrNameMax) return Broken(inode.id, "bad name of an attribute");
    bytes += name.size() + value.size();
  }
  return bytes <= InodeDetails::kXattrBytesMax ? Status::Ok() : Broken(inode.id, "its attributes are too many");
}

Status MetadataRules::CheckZoneGroups(const ZoneGroups& groups) const {
  if (groups.group_of_zone.size() != geometry_.zone_count || groups.confidence_percent.size() != geometry_.zone_count) {
    return Status::Corruption(fmt::format("the zone groups are of {} zones, the device has {}",
                                          groups.group_of_zone.size(), geometry_.zone_count));
  }
  if (groups.group_count() > ZoneGroups::kMostGroups) {
    return Status::Corruption(fmt::format("{} zone groups", groups.group_count()));
  }
  for (const uint16_t group : groups.group_of_zone) {
    if (group != ZoneGroups::kUnknown && group >= groups.group_count()) {
      return Status::Corruption(fmt::format("zone group {} of {}", group, groups.group_count()));
    }
  }
  return {};
}

}  // namespace isozone
