// What calls cost other callers that use the namespace at the same time.

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "store/extent_list.h"
#include "store/inode_files.h"
#include "store/mount/mounted_file_system.h"
#include "store/mount/namespace.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

constexpr CreateOptions kLogFile{FileKind::kLog, IoClass::kWal, Lifetime::kShort, 0};

class NamespaceCostTest : public testing::Test {
 protected:
  explicit NamespaceCostTest(const DeviceGeometry& geometry = SmallGeometry()) : volume_(geometry) {}

  void SetUp() override { ISOZONE_ASSERT_OK(volume_.Mount()); }
  MountedFileSystem& fs() { return static_cast<MountedFileSystem&>(volume_.fs()); }
  std::vector<std::string> Names(std::string_view directory) {
    std::vector<std::string> names;
    const auto entries = fs().List(directory);
    EXPECT_TRUE(entries.ok()) << entries.status().ToString();
    for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
    return names;
  }

  TestVolume volume_;
};

TEST_F(NamespaceCostTest, ASyncOfALogDoesNotWaitForWhoHoldsTheNamespace) {
  const auto log = fs().Create("/000001.log", kLogFile).value();
  ISOZONE_ASSERT_OK(log->Append(Bytes("the first frame begins a region")));
  ISOZONE_ASSERT_OK(log->Sync());
  std::future<Status> synced;
  {
    const MutexLock names(fs().context().catalog.namespace_mutex);
    synced = std::async(std::launch::async, [&] {
      ISOZONE_RETURN_IF_ERROR(log->Append(Bytes("the second goes where the first went")));
      return log->Sync();
    });
    // This is long enough for any machine. If it is not, the test fails, but does not hang.
    EXPECT_EQ(synced.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  }
  ISOZONE_EXPECT_OK(synced.get());
  ISOZONE_EXPECT_OK(log->Close());
}

TEST_F(NamespaceCostTest, ASyncOfALogThatWasRemovedMakesTheRemovalDurable) {
  ISOZONE_ASSERT_OK(fs().SyncMetadata());
  {
    const auto log = fs().Create("/000001.log", kLogFile).value();
    ISOZONE_ASSERT_OK(log->Append(Bytes("the first frame begins a region")));
    ISOZONE_ASSERT_OK(log->Sync());
    ISOZONE_ASSERT_OK(fs().Unlink("/000001.log"));
    ISOZONE_ASSERT_OK(log->Append(Bytes("nobody can read this after a power cut")));
    ISOZONE_ASSERT_OK(log->Sync());
    volume_.device().CutPower();
  }
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  EXPECT_TRUE(fs().Stat("/000001.log").status().Is(StatusCode::kNotFound));
}

TEST_F(NamespaceCostTest, AListInBatchesHasEveryNameOnceAndInOrder) {
  ISOZONE_ASSERT_OK(fs().CreateDirectory("/db"));
  std::vector<std::string> expected;
  for (size_t count : {size_t{0}, size_t{1}, Namespace::kNamesAtOnce - 1, Namespace::kNamesAtOnce,
                       Namespace::kNamesAtOnce + 1, 2 * Namespace::kNamesAtOnce}) {
    while (expected.size() < count) {
      expected.push_back(fmt::format("{:06}", expected.size()));
      ISOZONE_ASSERT_OK(fs().CreateDirectory("/db/" + expected.back()));
    }
    EXPECT_EQ(Names("/db"), expected);
  }
}

TEST_F(NamespaceCostTest, AListBesideChangesHasEveryNameThatStaysOnce) {
  ISOZONE_ASSERT_OK(fs().CreateDirectory("/db"));
  std::vector<std::string> staying;
  for (size_t i = 0; i < 2 * Namespace::kNamesAtOnce; ++i) {
    staying.push_back(fmt::format("{:06}", i));
    ISOZONE_ASSERT_OK(fs().CreateDirectory("/db/" + staying.back()));
  }
  std::atomic<bool> stop = false;
  std::thread changes([&] {
    for (size_t i = 0; !stop; i = (i + 397) % staying.size()) {
      const std::string passing = fmt::format("/db/{:06}-passing", i);
      ISOZONE_EXPECT_OK(fs().CreateDirectory(passing));
      ISOZONE_EXPECT_OK(fs().Rename(passing, passing + "-on"));
      ISOZONE_EXPECT_OK(fs().RemoveDirectory(passing + "-on"));
    }
  });
  for (int i = 0; i < 50; ++i) {
    std::vector<std::string> names = Names("/db");
    std::erase_if(names, [](const std::string& name) { return name.size() > 6; });
    EXPECT_EQ(names, staying);
  }
  stop = true;
  changes.join();
}

// What a directory has besides its times is not written again with every name in it.
TEST_F(NamespaceCostTest, ANameCostsTheSameWhateverAttributesItsDirectoryHas) {
  constexpr uint64_t kNames = 20;
  constexpr uint64_t kBytes = 60'000;
  InodeFiles& inodes = fs().inodes();
  const uint64_t directory = inodes.MakeDirectory(InodeFiles::kRoot, "d", {0755, 0, 0})->inode;
  const uint64_t file = (*inodes.Create(directory, "file", {}, {}))->inode();
  for (const uint64_t inode : {directory, file}) {
    ISOZONE_ASSERT_OK(inodes.SetXattr(inode, "user.big", std::string(kBytes, 'x'), XattrMode::kSet));
  }
  ISOZONE_ASSERT_OK(fs().SyncMetadata());
  const uint64_t before = fs().context().catalog.journal->Stats().bytes;
  for (uint64_t i = 0; i < kNames; ++i) {
    const std::string name = std::to_string(i);
    ISOZONE_ASSERT_OK(inodes.Link(file, directory, name).status());
    ISOZONE_ASSERT_OK(inodes.Rename(directory, name, directory, "renamed", RenameMode::kReplace));
    ISOZONE_ASSERT_OK((*inodes.Open(file))->Write(0, Bytes(name)));
    ISOZONE_ASSERT_OK(inodes.Unlink(directory, "renamed"));
    ISOZONE_ASSERT_OK(fs().SyncMetadata());
  }
  EXPECT_LT(fs().context().catalog.journal->Stats().bytes - before, kNames * kBytes);
  EXPECT_EQ(inodes.GetXattr(directory, "user.big")->size(), kBytes);
}

TEST_F(NamespaceCostTest, AllocatedBytesCountWholeBlocks) {
  const uint64_t block = fs().context().data_path.geometry().block_size;
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", std::string(block + 1, 'x')));
  EXPECT_EQ(fs().Stat("/f")->size, block + 1);
  EXPECT_EQ(fs().state().AllocatedBytes("/f").value(), 2 * block);
  EXPECT_EQ(fs().state().AllocatedBytes("/").value(), 0u);
  EXPECT_TRUE(fs().state().AllocatedBytes("/none").status().Is(StatusCode::kNotFound));
}

// A file of so many extents, which the metadata has in memory only.
class FragmentedFileTest : public NamespaceCostTest, public testing::WithParamInterface<uint64_t> {
 protected:
  FragmentedFileTest() : NamespaceCostTest(SmallGeometry(/*zones=*/64, /*zone_size=*/128 * kMiB)) {}

  void SetUp() override {
    NamespaceCostTest::SetUp();
    const DeviceGeometry& geometry = fs().context().data_path.geometry();
    Random random(3);
    std::vector<FileExtent> extents;
    for (uint64_t i = 0; i < GetParam(); ++i) {
      const ZoneId zone(static_cast<uint32_t>(random.Below(geometry.zone_count)));
      const uint64_t place = random.Below(geometry.zone_capacity / kBlock) * kBlock;
      extents.push_back({i * kBlock, DeviceOffset(geometry.ZoneStart(zone).value() + place), kBlock});
    }
    Inode inode;
    inode.links = {{kRootInode, "fragmented"}};
    inode.size = bytes();
    inode.extents = extents;
    const MutexLock lock(fs().context().catalog.namespace_mutex);
    inode.id = id_ = fs().context().catalog.state.NextId();
    const std::vector<MetadataOp> ops = {PutInode{std::move(inode)}};
    ISOZONE_ASSERT_OK(fs().context().catalog.state.Apply(ops));
  }
  void TearDown() override {
    const MutexLock lock(fs().context().catalog.namespace_mutex);
    const std::vector<MetadataOp> ops = {RemoveLink{id_, {kRootInode, "fragmented"}}, RemoveInode{id_}};
    ISOZONE_EXPECT_OK(fs().context().catalog.state.Apply(ops));
  }
  uint64_t bytes() const { return GetParam() * kBlock; }
  template <typename Work>
  static uint64_t StepsOf(Work work) {
    const uint64_t before = ExtentList::steps();
    work();
    return ExtentList::steps() - before;
  }

  static constexpr uint64_t kBlock = 4096;
  InodeId id_;
};

// What a kernel asks for in a lookup, a getattr and a readdirplus (src/fuse) takes no extent of the file.
TEST_P(FragmentedFileTest, ALookTakesNoExtent) {
  InodeFiles& inodes = fs().inodes();
  EXPECT_EQ(StepsOf([&] {
              EXPECT_EQ(inodes.Lookup(InodeFiles::kRoot, "fragmented")->size, bytes());
              EXPECT_EQ(inodes.GetAttributes(id_.value())->size, bytes());
              EXPECT_EQ(inodes.AllocatedBytes(id_.value()).value(), bytes());
            }),
            0U);
  EXPECT_EQ(StepsOf([&] {
              const auto names = (*inodes.OpenDirectory(InodeFiles::kRoot))->Read(0, 10);
              ASSERT_EQ(names->size(), 1U);
              EXPECT_EQ(inodes.Lookup(InodeFiles::kRoot, names->front().name)->inode, id_.value());
            }),
            0U);
  EXPECT_EQ(StepsOf([&] {
              EXPECT_EQ(fs().Stat("/fragmented")->size, bytes());
              EXPECT_EQ(fs().List("/")->front().attributes.size, bytes());
              EXPECT_EQ(fs().state().AllocatedBytes("/fragmented").value(), bytes());
            }),
            0U);
}

// Nor does an open, and what is asked of an open file.
TEST_P(FragmentedFileTest, AnOpenTakesNoExtent) {
  InodeFiles& inodes = fs().inodes();
  EXPECT_EQ(StepsOf([&] {
              const auto file = inodes.Open(id_.value()).value();
              EXPECT_EQ(file->size(), bytes());
              EXPECT_EQ(inodes.GetAttributes(id_.value())->size, bytes());
              EXPECT_EQ(inodes.AllocatedBytes(id_.value()).value(), bytes());
            }),
            0U);
  EXPECT_EQ(StepsOf([&] { EXPECT_EQ(fs().OpenForRead("/fragmented").value()->size(), bytes()); }), 0U);
}

INSTANTIATE_TEST_SUITE_P(Extents, FragmentedFileTest, testing::Values(10, 10'000, 1'000'000));

}  // namespace
}  // namespace isozone
