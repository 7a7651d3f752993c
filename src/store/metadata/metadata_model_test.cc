// The metadata does what a naive model of it does, which keeps all inodes in a map and copies it for each record.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/metadata/metadata.h"
#include "store/metadata/naive_metadata_test_util.h"

namespace isozone {
namespace {

std::map<uint64_t, std::vector<std::byte>> Encoded(const std::map<uint64_t, Inode>& inodes) {
  std::map<uint64_t, std::vector<std::byte>> encoded;
  for (const auto& [id, inode] : inodes) encoded[id] = BytesOf(inode);
  return encoded;
}

TEST(MetadataModelTest, DoesWhatTheNaiveModelDoesAndSnapshotsItsState) {
  const uint64_t seed = TestSeed(20240611);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  WildRecords records(seed);
  Random& random = records.random;
  MetadataState state(Geometry());
  NaiveModel model;
  bool in_snapshot = false;
  std::map<uint64_t, Inode> fixed;  // the inodes when the snapshot began
  std::map<uint64_t, Inode> given;
  int accepted = 0;
  int snapshots = 0;
  for (int i = 0; i < 30000; ++i) {
    const std::vector<MetadataOp> ops = records.Next(model);
    const bool expected = model.Apply(ops);
    const Status status = state.Apply(ops);
    ASSERT_EQ(status.ok(), expected) << "record " << i << ": " << status.ToString();
    accepted += expected ? 1 : 0;
    if (i % 50 == 0) {
      std::map<uint64_t, Inode> found;
      for (const Inode* inode = state.Next(InodeId(0)); inode != nullptr; inode = state.Next(inode->id)) {
        found[inode->id.value()] = *inode;
      }
      ASSERT_EQ(Encoded(found), Encoded(model.inodes)) << "record " << i;
      ASSERT_EQ(state.device().heats, model.zone_heats) << "record " << i;
      ASSERT_EQ(state.device().mount_number, model.mount_number) << "record " << i;
      const Status invariants = state.CheckInvariants();
      ASSERT_TRUE(invariants.ok()) << invariants.ToString();
    }
    if (!in_snapshot && random.Chance(0.1)) {
      state.BeginSnapshot();
      in_snapshot = true;
      fixed = model.inodes;
      given.clear();
    } else if (in_snapshot && random.Chance(0.2)) {
      const std::vector<Inode> part = state.NextOfSnapshot(random.Between(1, 4));
      for (const Inode& inode : part) ASSERT_TRUE(given.emplace(inode.id.value(), inode).second) << "given twice";
      if (part.empty()) {
        ASSERT_EQ(Encoded(given), Encoded(fixed)) << "record " << i;
        state.EndSnapshot();
        in_snapshot = false;
        ++snapshots;
      }
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(snapshots, 100);
}

}  // namespace
}  // namespace isozone
