// What calls cost other callers that use the namespace at the same time.

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fs/mount/mounted_file_system.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

constexpr CreateOptions kLogFile{FileKind::kLog, IoClass::kWal, Lifetime::kShort, 0};

class NamespaceCostTest : public testing::Test {
 protected:
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
    const MutexLock names(fs().context().namespace_mutex);
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
  for (size_t count : {size_t{0}, size_t{1}, MountedFileSystem::kListBatch - 1, MountedFileSystem::kListBatch,
                       MountedFileSystem::kListBatch + 1, 2 * MountedFileSystem::kListBatch}) {
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
  for (size_t i = 0; i < 2 * MountedFileSystem::kListBatch; ++i) {
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
  const uint64_t before = fs().context().journal->Stats().bytes;
  for (uint64_t i = 0; i < kNames; ++i) {
    const std::string name = std::to_string(i);
    ISOZONE_ASSERT_OK(inodes.Link(file, directory, name).status());
    ISOZONE_ASSERT_OK(inodes.Rename(directory, name, directory, "renamed", RenameMode::kReplace));
    ISOZONE_ASSERT_OK((*inodes.Open(file))->Write(0, Bytes(name)));
    ISOZONE_ASSERT_OK(inodes.Unlink(directory, "renamed"));
    ISOZONE_ASSERT_OK(fs().SyncMetadata());
  }
  EXPECT_LT(fs().context().journal->Stats().bytes - before, kNames * kBytes);
  EXPECT_EQ(inodes.GetXattr(directory, "user.big")->size(), kBytes);
}

TEST_F(NamespaceCostTest, AllocatedBytesCountWholeBlocks) {
  const uint64_t block = fs().context().geometry().block_size;
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", std::string(block + 1, 'x')));
  EXPECT_EQ(fs().Stat("/f")->size, block + 1);
  EXPECT_EQ(fs().state().AllocatedBytes("/f").value(), 2 * block);
  EXPECT_EQ(fs().state().AllocatedBytes("/").value(), 0u);
  EXPECT_TRUE(fs().state().AllocatedBytes("/none").status().Is(StatusCode::kNotFound));
}

}  // namespace
}  // namespace isozone
