// How much work it is to say which files lie in a zone, counted and not timed.
#include "store/metadata/zone_index.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/metadata/metadata.h"
#include "testing/assert_ok.h"

namespace isozone {
namespace {

constexpr uint64_t kUnit = 64 * kKiB;
constexpr uint64_t kWidth = 16;
constexpr uint64_t kUnits = 1024;        // of a file: 64 MiB
constexpr uint64_t kFiles = 2000;        // so there are two million extents
constexpr uint64_t kFilesOfAZone = 18;   // each has 64 units in it
constexpr uint64_t kUnitsInZone = 1152;  // 72 MiB

DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.block_size = 4096;
  geometry.zone_size = geometry.zone_capacity = kUnitsInZone * kUnit;
  geometry.zone_count = static_cast<uint32_t>((kFiles / kFilesOfAZone + 2) * kWidth);
  return geometry;
}

// Returns the extents of file `number`, which is striped over zones that it shares with its neighbours.
ExtentList Striped(uint64_t number) {
  const uint64_t first_zone = number / kFilesOfAZone * kWidth;
  const uint64_t first_unit = number % kFilesOfAZone * (kUnits / kWidth);
  std::vector<FileExtent> extents;
  for (uint64_t unit = 0; unit < kUnits; ++unit) {
    const uint64_t zone = first_zone + unit % kWidth;
    const uint64_t at = (zone * kUnitsInZone + first_unit + unit / kWidth) * kUnit;
    extents.push_back({unit * kUnit, DeviceOffset(at), kUnit});
  }
  return extents;
}

TEST(ZoneIndexTest, AZoneIsToldWithoutItsExtentsWhateverElseThereIs) {
  MetadataState state(Geometry());
  ZoneIndex index(Geometry());
  uint64_t extents = 0;
  for (uint64_t i = 0; i < kFiles; ++i) {
    Inode inode;
    inode.id = state.NextId();
    inode.links = {{kRootInode, std::to_string(i)}};
    inode.extents = Striped(i);
    inode.size = kUnits * kUnit;
    extents += inode.extents.size();
    index.Add(inode.id, inode.extents);
    const MetadataOp op = PutInode{std::move(inode)};
    ISOZONE_ASSERT_OK(state.Apply({&op, 1}));
  }
  ASSERT_GT(extents, 2'000'000U);
  const uint64_t last_zone = (kFiles - 1) / kFilesOfAZone * kWidth;
  for (const uint64_t zone : {uint64_t{0}, uint64_t{17}, uint64_t{777}, last_zone}) {
    const ZoneId id(static_cast<uint32_t>(zone));
    const std::map<InodeId, uint64_t> bytes = state.BytesIn(id, 0);
    ASSERT_EQ(bytes.size(), zone == last_zone ? kFiles % kFilesOfAZone : kFilesOfAZone);
    for (const auto& [inode, in_zone] : bytes) EXPECT_EQ(in_zone, kUnits / kWidth * kUnit);
    // The index looks at the files of the zone, and for each file at a run for each zone that it is striped over.
    const std::vector<ZoneIndex::Entry> entries = index.In(id);
    EXPECT_EQ(entries.size(), bytes.size());
    uint64_t runs = 0;
    uint64_t found = 0;
    for (const ZoneIndex::Entry& entry : entries) {
      const ExtentList& of_file = state.Find(entry.inode)->extents;
      of_file.VisitRuns(entry.window * ZoneIndex::kWindow, (entry.window + 1) * ZoneIndex::kWindow,
                        [&](const ExtentRun&) { ++runs; });
      index.VisitRuns(id, entry, of_file, [&](const ExtentRun&) { ++found; });
    }
    EXPECT_EQ(found, bytes.size());
    EXPECT_EQ(runs, bytes.size() * kWidth);
  }
  EXPECT_TRUE(state.BytesIn(ZoneId(Geometry().zone_count - 1), 0).empty());
}

}  // namespace
}  // namespace isozone
