#include "store/metadata/metadata_reserve.h"

#include <algorithm>

#include <fmt/format.h>

#include "store/metadata/metadata_codec.h"

namespace isozone {
namespace {

// Returns whether an inode gets more details than it has. Times alone take the same bytes.
bool Grows(const MetadataState& state, const SetDetails& op) {
  const Inode* inode = state.Find(op.inode);
  return inode != nullptr && EncodedSize(op.details.get()) > EncodedSize(inode->details.get());
}

}  // namespace

// A file that is cut short can grow by a few bytes, where the cut parts extents that were alike; but only once.
MetadataRest RestLeftBy(const MetadataState& state, std::span<const MetadataOp> ops) {
  bool links = false;
  bool unlinks = false;
  bool moves = false;
  bool grows = false;
  bool places = false;
  for (const MetadataOp& op : ops) {
    if (std::holds_alternative<PutInode>(op) || std::holds_alternative<SetZoneGroups>(op)) return MetadataRest::kWhole;
    places |= std::holds_alternative<AppendExtents>(op) || std::holds_alternative<PlaceExtents>(op) ||
              std::holds_alternative<LogToData>(op);
    const auto* details = std::get_if<SetDetails>(&op);
    grows |= details != nullptr && Grows(state, *details);
    links |= std::holds_alternative<AddLink>(op);
    unlinks |= std::holds_alternative<RemoveLink>(op);
    moves |= std::holds_alternative<MoveExtents>(op);
  }
  // What is removed may give its directory details that it had not, once.
  if ((links || grows) && !unlinks) return MetadataRest::kWhole;
  if (places) return MetadataRest::kMost;
  return links || grows || moves ? MetadataRest::kHalf : MetadataRest::kLeast;
}

MetadataReserve::MetadataReserve(const DeviceGeometry& geometry, ZonePool& pool, uint32_t copies, uint64_t bytes)
    : geometry_(geometry), pool_(pool), copies_(copies), zones_(ZonesOfCopy(bytes, MetadataRest::kWhole)) {}

void MetadataReserve::Renew(uint64_t bytes) {
  if (pool_.ReserveForMetadata(InAll(zones_), MetadataClaim::kRenewed)) return;
  zones_ = ZonesOfCopy(bytes, MetadataRest::kLeast);
  pool_.ReserveForMetadata(InAll(zones_), MetadataClaim::kForced);
}

Status MetadataReserve::Admit(uint64_t bytes, MetadataRest rest) {
  if (rest != MetadataRest::kMost && ZonesOfCopy(bytes, rest) <= zones_) return {};
  const uint32_t zones = ZonesOfCopy(bytes, MetadataRest::kWhole);
  if (zones <= zones_) return {};
  if (!pool_.ReserveForMetadata(InAll(zones), MetadataClaim::kNew)) {
    if (ZonesOfCopy(bytes, rest) <= zones_) return {};
    return Status::NoSpace(
        fmt::format("the device is full: {} bytes of metadata would need {} zones in all, and no empty ones are left "
                    "for that; delete files",
                    bytes, InAll(zones)));
  }
  zones_ = zones;
  return {};
}

void MetadataReserve::Shrink(uint64_t bytes) {
  const uint32_t zones = ZonesOfCopy(bytes, MetadataRest::kWhole);
  if (zones >= zones_) return;
  zones_ = zones;
  pool_.ReserveForMetadata(InAll(zones), MetadataClaim::kForced);
}

uint32_t MetadataReserve::ZonesOfNext(uint64_t bytes) const {
  return std::max(ZonesOfCopy(bytes, MetadataRest::kLeast), std::min(zones_, ZonesOfCopy(bytes, MetadataRest::kWhole)));
}

}  // namespace isozone
