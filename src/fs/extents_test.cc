#include "fs/extents.h"

#include <gtest/gtest.h>

namespace isozone {

namespace {

constexpr uint64_t kZone = 1000;

using Extents = std::vector<FileExtent>;

FileExtent Extent(uint64_t file_offset, uint64_t device_offset, uint64_t length) {
  return {file_offset, DeviceOffset(device_offset), length};
}
ExtentMove Move(uint64_t from, uint64_t to, uint64_t length) { return {DeviceOffset(from), DeviceOffset(to), length}; }

const Extents kFile = {Extent(0, 100, 50), Extent(50, 2000, 30), Extent(80, 500, 20)};

TEST(MoveRunsTest, MovesWholeExtents) {
  EXPECT_EQ(*MoveRuns(kFile, {}, kZone), kFile);
  const ExtentMove moves[] = {Move(2000, 4000, 30), Move(100, 3000, 50)};
  EXPECT_EQ(*MoveRuns(kFile, moves, kZone), (Extents{Extent(0, 3000, 50), Extent(50, 4000, 30), Extent(80, 500, 20)}));
}

TEST(MoveRunsTest, CutsWhatIsMovedInPart) {
  const ExtentMove moves[] = {Move(110, 3000, 5), Move(130, 5000, 20)};
  EXPECT_EQ(*MoveRuns(std::span(kFile).first(1), moves, kZone),
            (Extents{Extent(0, 100, 10), Extent(10, 3000, 5), Extent(15, 115, 15), Extent(30, 5000, 20)}));
}

TEST(MoveRunsTest, JoinsWhatBecomesNeighbours) {
  const ExtentMove moves[] = {Move(100, 3000, 50), Move(2000, 3050, 30), Move(500, 3080, 20)};
  EXPECT_EQ(*MoveRuns(kFile, moves, kZone), (Extents{Extent(0, 3000, 100)}));
  // But not across the end of a zone.
  const ExtentMove across[] = {Move(100, 3950, 50), Move(2000, 4000, 30)};
  EXPECT_EQ(MoveRuns(kFile, across, kZone)->size(), 3u);
}

TEST(MoveRunsTest, RefusesWhatIsNotTheFiles) {
  const ExtentMove wrong[][2] = {{Move(0, 3000, 10), Move(500, 4000, 20)},    // nobody's
                                 {Move(140, 3000, 20), Move(500, 4000, 20)},  // reaches beyond the extent
                                 {Move(90, 3000, 20), Move(500, 4000, 20)},   // begins before it
                                 {Move(100, 3000, 20), Move(110, 4000, 20)},  // overlap
                                 {Move(100, 3000, 20), Move(100, 4000, 20)},  // twice
                                 {Move(100, 3000, 0), Move(500, 4000, 20)}};  // nothing
  for (const auto& moves : wrong) EXPECT_FALSE(MoveRuns(kFile, moves, kZone)) << moves[0].from.value();
}

}  // namespace
}  // namespace isozone
