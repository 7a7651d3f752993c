// Files that are striped, moved and cut at random, compared with a naive map of where every sector of every file is.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/metadata/metadata.h"
#include "store/metadata/metadata_test_util.h"

namespace isozone {
namespace {

constexpr uint64_t kSector = 512;  // bytes; no extent begins or ends within one
constexpr uint64_t kUnit = 4096;
constexpr uint64_t kUnitsInZone = 24;

DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.block_size = 4096;
  geometry.zone_count = 40;
  geometry.zone_size = geometry.zone_capacity = kUnitsInZone * kUnit;
  return geometry;
}

class StripedFiles {
 public:
  explicit StripedFiles(uint64_t seed) : random_(seed), used_(Geometry().zone_count) {}

  void Step() {
    ResetDeadZones();
    const uint64_t what = random_.Below(20);
    if (files_.empty() || what < 3) return Create();
    const auto file = std::next(files_.begin(), static_cast<ptrdiff_t>(random_.Below(files_.size())));
    if (what < 11) return Append(file->first);
    if (what < 16) return Collect();
    if (what < 18) return Cut(file->first);
    Remove(file->first);
  }

  void CheckFiles() const {
    for (const auto& [id, sectors] : files_) {
      const Inode* inode = state_.Find(id);
      ASSERT_NE(inode, nullptr);
      ASSERT_EQ(SectorsOf(inode->extents.Expand()), sectors) << id.value();
    }
    ASSERT_EQ(state_.size(), files_.size() + 1);
  }
  void CheckZones() const {
    std::map<ZoneId, std::map<InodeId, std::map<uint64_t, uint64_t>>> expected;  // sector of the file, and its place
    for (const auto& [id, sectors] : files_) {
      for (size_t i = 0; i < sectors.size(); ++i) {
        expected[Geometry().ZoneOf(DeviceOffset(sectors[i]))][id].emplace(i, sectors[i]);
      }
    }
    for (uint32_t i = 0; i < Geometry().zone_count; ++i) {
      std::map<InodeId, std::map<uint64_t, uint64_t>> found;
      uint64_t blocks = 0;
      for (const auto& [id, extent] : state_.ExtentsIn(ZoneId(i))) {
        const uint64_t begin = extent.device_offset.value();
        blocks += RoundUp(begin + extent.length, 4096) - RoundDown(begin, 4096);
        for (uint64_t at = 0; at < extent.length; at += kSector) {
          ASSERT_TRUE(found[id].emplace((extent.file_offset + at) / kSector, begin + at).second);
        }
      }
      ASSERT_EQ(found, expected[ZoneId(i)]) << "zone " << i;
      ASSERT_EQ(state_.BlocksIn(ZoneId(i)), blocks) << "zone " << i;
      const std::map<InodeId, uint64_t> bytes = state_.BytesIn(ZoneId(i), 0);
      ASSERT_EQ(bytes.size(), found.size()) << "zone " << i;
      for (const auto& [id, sectors] : found) ASSERT_EQ(bytes.at(id), sectors.size() * kSector) << "zone " << i;
    }
  }
  // Checks that a checkpoint is as long as was said, and that it brings the same state back.
  void CheckCheckpoint() const {
    ASSERT_TRUE(state_.CheckInvariants().ok()) << state_.CheckInvariants().ToString();
    std::vector<Inode> inodes;
    uint64_t bytes = kEncodedFooter;
    for (const Inode* inode = state_.Next(InodeId(0)); inode != nullptr; inode = state_.Next(inode->id)) {
      const std::vector<std::byte> record = BytesOf(*inode);
      bytes += 4 + record.size();
      inodes.push_back(std::get<PutInode>(DecodeRecord(record).value().front()).inode);
    }
    ASSERT_EQ(bytes, state_.encoded_size());
    const auto restored = MetadataState::Restore(Geometry(), std::move(inodes), state_.NextId(), {});
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    ASSERT_EQ(PrintOf(*restored), PrintOf(state_));
  }
  uint64_t moved() const { return moved_; }
  uint64_t appended() const { return appended_; }

 private:
  using Sectors = std::vector<uint64_t>;  // where each is on the device

  static Sectors SectorsOf(const std::vector<FileExtent>& extents) {
    Sectors sectors;
    for (const FileExtent& extent : extents) {
      for (uint64_t at = 0; at < extent.length; at += kSector) sectors.push_back(extent.device_offset.value() + at);
    }
    return sectors;
  }

  // Applies a record. Now and then it is tried first with an operation at its end that is refused, and must leave
  // nothing behind.
  void Apply(std::vector<MetadataOp> ops) {
    if (random_.Chance(0.2)) {
      const uint32_t before = PrintOf(state_);
      std::vector<MetadataOp> refused = ops;
      refused.emplace_back(RemoveInode{InodeId(999'999'999)});
      ASSERT_FALSE(state_.Apply(refused).ok());
      ASSERT_EQ(PrintOf(state_), before);
    }
    const Status status = state_.Apply(ops);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  // Returns some zones with room, in any order.
  std::vector<ZoneId> ZonesWithRoom(size_t most) {
    std::vector<ZoneId> zones;
    for (uint32_t i = 0; i < used_.size(); ++i) {
      if (used_[i] + kUnit <= Geometry().zone_capacity) zones.emplace_back(i);
    }
    for (size_t i = zones.size(); i > 1; --i) std::swap(zones[i - 1], zones[random_.Below(i)]);
    zones.resize(std::min(zones.size(), most));
    return zones;
  }
  // Takes space at the write pointer of `zone`.
  DeviceOffset Take(ZoneId zone, uint64_t bytes) {
    const uint64_t at = Geometry().ZoneStart(zone).value() + used_[zone.value()];
    used_[zone.value()] += bytes;
    return DeviceOffset(at);
  }
  void ResetDeadZones() {
    for (uint32_t i = 0; i < used_.size(); ++i) {
      if (state_.BlocksIn(ZoneId(i)) == 0) used_[i] = 0;
    }
  }

  void Create() {
    Inode inode;
    inode.id = state_.NextId();
    inode.links = {{kRootInode, std::to_string(inode.id.value())}};
    files_[inode.id];
    Apply({PutInode{inode}});
  }
  // Appends units that go round some zones, to each zone for as long as it has room. The last unit may be short.
  void Append(InodeId id) {
    const Inode& inode = *state_.Find(id);
    std::vector<ZoneId> zones = ZonesWithRoom(random_.Between(1, 8));
    if (zones.empty()) return Remove(id);
    std::vector<FileExtent> extents;
    uint64_t offset = inode.size;
    uint64_t units = random_.Between(1, 60);
    for (size_t turn = 0; units > 0 && !zones.empty(); --units, ++turn) {
      const ZoneId zone = zones[turn % zones.size()];
      if (used_[zone.value()] + kUnit > Geometry().zone_capacity) {
        std::erase(zones, zone);
        continue;
      }
      const uint64_t length = units == 1 && random_.Chance(0.5) ? kSector * random_.Between(1, 7) : kUnit;
      AppendExtent(extents, {offset, Take(zone, length), length}, Geometry().zone_size);
      used_[zone.value()] = RoundUp(used_[zone.value()], kUnit);
      offset += length;
    }
    const Sectors more = SectorsOf(extents);
    files_[id].insert(files_[id].end(), more.begin(), more.end());
    appended_ += extents.size();
    Apply({AppendExtents{id, inode.extents.size(), extents, 1}});
  }
  // Empties a zone or a part of it, as the collector does.
  void Collect() {
    const ZoneId victim(static_cast<uint32_t>(random_.Below(used_.size())));
    std::map<InodeId, std::vector<ExtentMove>> moves;
    std::map<uint64_t, uint64_t> places;
    ZoneId to = victim;
    for (const auto& [id, extent] : state_.ExtentsIn(victim)) {
      uint64_t skip = random_.Chance(0.2) ? RoundDown(random_.Below(extent.length), kSector) : 0;
      uint64_t length = extent.length - skip;
      if (random_.Chance(0.2)) length = kSector * random_.Between(1, length / kSector);
      if (to == victim || used_[to.value()] + length > Geometry().zone_capacity) {
        const std::vector<ZoneId> zones = ZonesWithRoom(used_.size());
        const auto roomy = std::ranges::find_if(zones, [&](ZoneId zone) {
          return zone != victim && used_[zone.value()] + length <= Geometry().zone_capacity;
        });
        if (roomy == zones.end()) break;
        to = *roomy;
      }
      const DeviceOffset from(extent.device_offset.value() + skip);
      moves[id].push_back({from, Take(to, length), length});
      for (uint64_t at = 0; at < length; at += kSector) {
        places[from.value() + at] = moves[id].back().to.value() + at;
      }
    }
    if (to != victim) used_[to.value()] = RoundUp(used_[to.value()], kUnit);
    std::vector<MetadataOp> ops;
    for (auto& [id, of_file] : moves) {
      moved_ += of_file.size();
      ops.emplace_back(MoveExtents{id, of_file});
      for (uint64_t& sector : files_[id]) {
        const auto place = places.find(sector);
        if (place != places.end()) sector = place->second;
      }
    }
    Apply(std::move(ops));
  }
  void Cut(InodeId id) {
    const Inode& inode = *state_.Find(id);
    const uint64_t size = kSector * random_.Below(inode.size / kSector + 1);
    files_[id].resize(size / kSector);
    Apply({CutFile{id, size, 2}});
  }
  void Remove(InodeId id) {
    files_.erase(id);
    Apply({RemoveLink{id, state_.Find(id)->links.front()}, RemoveInode{id}});
  }

  Random random_;
  MetadataState state_{Geometry()};
  std::map<InodeId, Sectors> files_;
  std::vector<uint64_t> used_;  // bytes of each zone that are written
  uint64_t moved_ = 0;
  uint64_t appended_ = 0;
};

TEST(StripedFilesModelTest, EverySectorIsWhereTheNaiveMapHasIt) {
  const uint64_t seed = TestSeed(20261126);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  StripedFiles files(seed);
  for (int i = 0; i < 20'000; ++i) {
    SCOPED_TRACE(i);
    files.Step();
    if (i % 5 == 0) files.CheckFiles();
    if (i % 20 == 0) files.CheckZones();
    if (i % 100 == 0) files.CheckCheckpoint();
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(files.moved(), 10'000U);
  EXPECT_GT(files.appended(), 20'000U);
}

// Windows of files of more than a GiB, and inodes with numbers beyond 32 bits, are found as others are.
TEST(ZoneIndexTest, LargeFilesAndLargeNumbersAreFoundInEveryZone) {
  DeviceGeometry geometry;
  geometry.zone_count = 64;
  geometry.zone_size = geometry.zone_capacity = 256 * kMiB;
  MetadataState state(geometry);
  constexpr uint64_t kLargeUnit = 16 * kMiB;
  for (const uint64_t id : {uint64_t{7}, uint64_t{5'000'000'000}}) {
    Inode inode;
    inode.id = InodeId(id);
    inode.links = {{kRootInode, std::to_string(id)}};
    std::vector<FileExtent> extents;  // 4 GiB in zones 0 to 15, or 16 to 31
    for (uint64_t i = 0; i < 256; ++i) {
      const uint64_t zone = (id == 7 ? 0 : 16) + i % 16;
      extents.push_back({i * kLargeUnit, DeviceOffset(zone * geometry.zone_size + i / 16 * kLargeUnit), kLargeUnit});
    }
    inode.extents = extents;
    inode.size = inode.extents.end_offset();
    ASSERT_TRUE(state.Apply(std::vector<MetadataOp>{PutInode{inode}}).ok());
  }
  for (uint32_t zone = 0; zone < 32; ++zone) {
    const auto in_zone = state.ExtentsIn(ZoneId(zone));
    ASSERT_EQ(in_zone.size(), 16U);
    EXPECT_EQ(in_zone.front().inode, InodeId(zone < 16 ? 7 : 5'000'000'000));
    EXPECT_EQ(state.ExtentsIn(ZoneId(zone), in_zone.front().inode).size(), 16U);
    for (size_t i = 1; i < 16; ++i) EXPECT_LT(in_zone[i - 1].extent.file_offset, in_zone[i].extent.file_offset);
  }
  // Half of the file is cut off. What is left of it in each zone stays known.
  ASSERT_TRUE(state.Apply(std::vector<MetadataOp>{CutFile{InodeId(7), 2 * kGiB, 1}}).ok());
  EXPECT_EQ(state.ExtentsIn(ZoneId(3)).size(), 8U);
  EXPECT_TRUE(state.CheckInvariants().ok());
}

// A file that claims more than the device has is not counted unit by unit.
TEST(StripedFilesTest, MoreThanTheZonesHoldIsRefused) {
  MetadataState state(Geometry());
  const auto file = [](uint64_t id, uint64_t units) {
    Inode inode;
    inode.id = InodeId(id);
    inode.links = {{kRootInode, std::to_string(id)}};
    for (uint64_t i = 0; i < units; ++i) inode.extents.push_back({i * kUnit, DeviceOffset(i * kUnit), kUnit});
    inode.size = inode.extents.end_offset();
    return std::vector<MetadataOp>{PutInode{inode}};
  };
  const uint64_t all = Geometry().zone_count * kUnitsInZone;
  EXPECT_FALSE(state.Apply(file(2, all + 1)).ok());
  EXPECT_TRUE(state.Apply(file(2, all)).ok());
  EXPECT_FALSE(state.Apply(file(3, 1)).ok());
}

}  // namespace
}  // namespace isozone
