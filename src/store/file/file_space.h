// The space of files: which zones they have, and how many bytes in each.
#pragma once

#include <span>
#include <vector>

#include "store/extent_list.h"
#include "store/extents.h"
#include "store/metadata/metadata.h"
#include "store/space/space_claim.h"

namespace isozone {

// Each returns the space by zone. A zone may be named more than once: what counts is the sum. Holes have no space, nor
// do open regions, whose end is not known.
std::vector<ZoneBytes> SpaceOf(const DeviceGeometry& geometry, std::span<const FileExtent> extents);
std::vector<ZoneBytes> SpaceOfList(const DeviceGeometry& geometry, const ExtentList& extents);
std::vector<ZoneBytes> SpaceOf(const DeviceGeometry& geometry, const Inode& inode);
std::vector<ZoneBytes> SpaceOf(std::span<const LogRegion> regions);
// Returns the zones of extents and of all regions, open ones too, in order, each once.
std::vector<ZoneId> ZonesOf(const DeviceGeometry& geometry, const Inode& inode);

}  // namespace isozone
