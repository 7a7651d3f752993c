// What a mount answers to an image whose metadata lies. Mounting as such is tested in file_system_test.cc.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/metadata/journal_test_util.h"
#include "testing/assert_ok.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

using testing::HasSubstr;

class MountOfLiesTest : public testing::Test {
 protected:
  Inode File(uint64_t number, ZoneId zone, uint64_t bytes) const {
    Inode inode;
    inode.id = InodeId(kRootInode.value() + number);
    inode.links = {{kRootInode, std::to_string(number)}};
    inode.extents.push_back({0, geometry_.ZoneStart(zone), bytes});
    inode.size = bytes;
    return inode;
  }
  // Puts files into the metadata that nobody has written. `place` is told where the metadata is, and returns the files.
  template <typename Place>
  void Lie(Place place) {
    const auto device = volume_.OpenDevice();
    auto store = Store::Open(*device);
    ISOZONE_ASSERT_OK(store.status());
    std::vector<MetadataOp> ops;
    for (Inode& inode : place((*store)->journal().Copies())) ops.emplace_back(PutInode{std::move(inode)});
    ISOZONE_ASSERT_OK((*store)->Commit(ops).status());
    ISOZONE_ASSERT_OK((*store)->SyncAll());
    ISOZONE_ASSERT_OK((*store)->journal().Close());
  }
  void ExpectRefused(const std::string& why) {
    for (const bool read_only : {false, true}) {
      MountOptions options;
      options.read_only = read_only;
      const Status status = volume_.Mount(options);
      EXPECT_TRUE(status.Is(StatusCode::kCorruption)) << status.ToString();
      EXPECT_THAT(std::string(status.message()), HasSubstr(why));
      EXPECT_THAT(std::string(status.message()), HasSubstr("isozone fsck"));
    }
  }

  const DeviceGeometry geometry_ = SmallGeometry(64, kMiB);
  TestVolume volume_{geometry_};
};

// When such a file is removed, the zone would be reset, and the whole file system would be lost.
TEST_F(MountOfLiesTest, AFileInAZoneOfTheMetadataIsRefused) {
  ASSERT_NO_FATAL_FAILURE(
      Lie([this](const auto& copies) { return std::vector<Inode>{File(1, copies.back().front(), 8192)}; }));
  ExpectRefused("which holds metadata");
}

TEST_F(MountOfLiesTest, FilesOfMoreThanAZoneHoldsAreRefused) {
  const uint64_t all = geometry_.zone_capacity;
  ASSERT_NO_FATAL_FAILURE(Lie([&](const auto&) {
    return std::vector<Inode>{File(1, ZoneId(10), all), File(2, ZoneId(10), all)};
  }));
  ExpectRefused("in zone 10");
}

}  // namespace
}  // namespace isozone
