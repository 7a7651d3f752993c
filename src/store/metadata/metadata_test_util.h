// What the tests of the metadata share: states that can be compared, and records that change one at random.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/random.h"
#include "store/metadata/metadata.h"
#include "store/metadata/metadata_codec.h"
#include "testing/test_seed.h"

namespace isozone {

// Two inodes count as equal if these bytes are equal.
inline std::vector<std::byte> BytesOf(const Inode& inode) {
  std::vector<std::byte> bytes;
  EncodePutInode(inode, bytes);
  return bytes;
}

// Two states count as equal if their prints are equal.
inline uint32_t PrintOf(const MetadataState& state) {
  uint64_t next_id = state.NextId().value();
  uint32_t crc = Crc32c(&next_id, sizeof(next_id));
  for (const Inode* inode = state.Next(InodeId(0)); inode != nullptr; inode = state.Next(inode->id)) {
    crc = Crc32c(BytesOf(*inode), crc);
  }
  if (const auto groups = state.device().groups) {
    std::vector<std::byte> bytes;
    EncodeSetZoneGroups(*groups, bytes);
    crc = Crc32c(bytes, crc);
  }
  std::vector<std::byte> bytes;
  EncodeSetZoneHeats(state.device().heats, bytes);
  EncodeBeginMount({state.device().mount_number}, bytes);
  return Crc32c(bytes, crc);
}

// Returns some groups for the zones of a device.
inline std::shared_ptr<const ZoneGroups> RandomGroups(const DeviceGeometry& geometry, Random& random) {
  auto groups = std::make_shared<ZoneGroups>();
  groups->channel_of_group.resize(random.Between(1, 40));
  groups->zone_bandwidth = random.Below(uint64_t{1} << 32);
  for (uint16_t& channel : groups->channel_of_group) channel = static_cast<uint16_t>(random.Below(8));
  for (uint32_t zone = 0; zone < geometry.zone_count; ++zone) {
    const auto group = static_cast<uint16_t>(random.Below(groups->group_count()));
    groups->group_of_zone.push_back(random.Chance(0.1) ? ZoneGroups::kUnknown : group);
    groups->confidence_percent.push_back(static_cast<uint8_t>(random.Below(101)));
  }
  return groups;
}

// Makes valid records for a state: files come, grow, are renamed and go.
class RecordMaker {
 public:
  RecordMaker(const DeviceGeometry& geometry, uint64_t seed, size_t files)
      : geometry_(geometry), random_(seed), files_(files) {}

  std::vector<MetadataOp> Next(const MetadataState& state) {
    const size_t files = state.size() - 1;
    if (files == 0 || random_.Below(2 * files_) > files) return {Create(state)};
    const Inode* file = Pick(state);
    const InodeLink link = file->links.front();
    switch (random_.Below(8)) {
      case 6:
        return {BeginMount{random_.Next() | 1}};
      case 4:
        // The extents of these records may overlap, which those of no file system do. What a move means is clear for a
        // single extent only.
        if (file->extents.size() != 1) break;
        return {MoveExtents{file->id, {{file->extents.front().device_offset, Extent(0).device_offset, 1}}}};
      case 5:
        if (file->extents.empty()) break;
        return {SetZoneHeats{{{geometry_.ZoneOf(file->extents.front().device_offset),
                               static_cast<ZoneHeat>(random_.Below(kZoneHeatCount))}}}};
      case 0:
        return {RemoveLink{file->id, link}, RemoveInode{file->id}};
      case 1:
        return {RemoveLink{file->id, link}, AddLink{file->id, {kRootInode, NewName()}}};
      case 2:
        return {AppendExtents{file->id, file->extents.size(), {Extent(file->size)}, random_.Next()}};
      case 3:
        return {SetZoneGroups{RandomGroups(geometry_, random_)}};
      default:
        break;
    }
    return {SetAttributes{file->id, Lifetime::kLong, random_.Next()}};
  }

  // Removes a file. If there is none, the record changes only the time of the root.
  std::vector<MetadataOp> Remove(const MetadataState& state) {
    const Inode* file = state.size() > 1 ? Pick(state) : state.Find(kRootInode);
    if (file->id == kRootInode) return {SetAttributes{kRootInode, Lifetime::kNotSet, random_.Next()}};
    return {RemoveLink{file->id, file->links.front()}, RemoveInode{file->id}};
  }

 private:
  std::string NewName() { return "a-name-of-some-length-" + std::to_string(++names_) + ".sst"; }
  FileExtent Extent(uint64_t file_offset) {
    const auto zone = static_cast<uint32_t>(random_.Below(geometry_.zone_count));
    const uint64_t in_zone = random_.Between(1, geometry_.zone_capacity / 2);
    // The extents are so short that all files together have fewer bytes than the zones.
    const uint64_t length = in_zone % 100 + 1;
    return {file_offset, DeviceOffset(geometry_.ZoneStart(ZoneId(zone)).value() + in_zone), length};
  }
  PutInode Create(const MetadataState& state) {
    Inode inode;
    inode.id = state.NextId();
    inode.modified_s = random_.Next();
    inode.links = {{kRootInode, NewName()}};
    return {inode};
  }
  const Inode* Pick(const MetadataState& state) {
    const Inode* inode = state.Next(InodeId(1 + random_.Below(state.NextId().value())));
    return inode != nullptr ? inode : state.Next(kRootInode);
  }

  const DeviceGeometry geometry_;
  Random random_;
  const size_t files_;
  uint64_t names_ = 0;
};

}  // namespace isozone
