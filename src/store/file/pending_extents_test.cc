// Files that stay open and are never synced, such as RocksDB's info log: the collector publishes what they have
// written.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "store/file/collected_files_test_util.h"

namespace isozone {
namespace {

class PendingExtentsTest : public GcTest {
 protected:
  // Writes a little of /log to every zone without a sync, and files beside it, of which every second one is removed.
  void MixWithGarbage() {
    CreateOptions options;
    options.kind = FileKind::kSmall;
    log_ = fs().Create("/log", options).value();
    for (int i = 0; i < 24; ++i) {
      AppendToLog(70'000);
      ISOZONE_ASSERT_OK(log_->WriteOut());
      ISOZONE_ASSERT_OK(Write("/f" + std::to_string(i), 200'001));
    }
    for (int i = 0; i < 24; i += 2) Remove("/f" + std::to_string(i));
    ISOZONE_ASSERT_OK(fs().SyncMetadata());
  }
  void AppendToLog(size_t size) {
    const std::string bytes = RandomBytes(log_random_, size);
    ISOZONE_ASSERT_OK(log_->Append(Bytes(bytes)));
    written_ += bytes;
  }
  void CloseLog() {
    ISOZONE_ASSERT_OK(log_->Close());
    log_.reset();
    files_["/log"] = written_;
  }

  std::unique_ptr<FileWriter> log_;
  std::string written_;  // everything that was written to log_
  Random log_random_{TestSeed(kGcTestSeed) + 1};
};

TEST_F(PendingExtentsTest, AFileThatIsNeverSyncedKeepsTheCollectorOutOfNoZone) {
  Mount();
  MixWithGarbage();
  const size_t victims = fs().collection().Plan(/*all=*/true).victims.size();
  EXPECT_GE(victims, 4u);
  const CopyStats done = Collect();
  EXPECT_EQ(done.skipped_zones, 0u);
  EXPECT_GE(done.zones + 1, victims);  // survivors may have gone to one of them
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_LT(fs().state().Space().dead, 400'000u) << "padding, and what is in the zone that is being written";
  AppendToLog(100'000);
  EXPECT_EQ(volume_.ReadFile("/log").value(), written_);
  CloseLog();
  ExpectAll();
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  ExpectAll();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(PendingExtentsTest, APowerCutLeavesOfItWhatThereWasUpToSomePoint) {
  Mount();
  MixWithGarbage();
  EXPECT_GT(Collect().bytes_copied, 0u);
  ISOZONE_ASSERT_OK(fs().state().Settle());
  volume_.device().CutPower();
  log_.reset();
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  const std::string left = volume_.ReadFile("/log").value();
  EXPECT_GT(left.size(), 500'000u) << "most of it was published";
  EXPECT_EQ(left, written_.substr(0, left.size()));
  files_["/log"] = left;
  ExpectAll();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(PendingExtentsTest, ARemovedFileGivesItsSpaceBackWithItsWriter) {
  Mount();
  MixWithGarbage();
  ISOZONE_ASSERT_OK(fs().Unlink("/log"));
  EXPECT_GT(Collect().skipped_zones, 0u) << "its zones cannot be freed yet";
  log_.reset();
  Collect();
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_LT(fs().state().Space().dead, 100'000u);
  ExpectAll();
}

TEST_F(PendingExtentsTest, WhatIsWrittenMeanwhileIsKept) {
  Mount();
  MixWithGarbage();
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    // What is cut off keeps its space until the file is closed, so the device has room for only a few cuts.
    constexpr int kCutsMax = 4;
    int cuts = 0;
    for (size_t n = 0; !stop && cuts < kCutsMax; ++n) {
      AppendToLog(1'000 + n % 30'000);
      if (n % 3 == 0) ISOZONE_ASSERT_OK(log_->WriteOut());
      // The file is cut now and then, so that new pending extents lie where other extents were pending before.
      if (written_.size() < 2'000'000) continue;
      ISOZONE_ASSERT_OK(log_->Truncate(300'000));
      written_.resize(300'000);
      ++cuts;
    }
  });
  for (int round = 0; round < 40 && !testing::Test::HasFailure(); ++round) {
    ISOZONE_EXPECT_OK(Write("/f" + std::to_string(round % 8), 100'000));
    Collect();
  }
  stop = true;
  writer.join();
  CloseLog();
  ExpectAll();
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  ExpectAll();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

}  // namespace
}  // namespace isozone
