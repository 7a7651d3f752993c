// Of a file, what was appended and what was written in place without a Sync is published by the collector, which
// flushes the device once for both.
#include "store/file/unpublished.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "device/passing_device.h"
#include "store/file/collected_files_test_util.h"
#include "store/inode_files.h"
#include "store/positional_file.h"

namespace isozone {
namespace {

class CountingDevice final : public PassingDevice {
 public:
  using PassingDevice::PassingDevice;
  void Submit(DeviceRequest& request) override {
    if (request.op == DeviceOp::kFlush) ++flushes;
    PassingDevice::Submit(request);
  }
  std::atomic<uint64_t> flushes = 0;
};

// On a device on which data has two active zones.
class UnpublishedTest : public testing::Test {
 protected:
  static constexpr size_t kSize = 64 * kKiB;

  UnpublishedTest() : volume_(SmallGeometry(40, kMiB, /*max_active=*/9)), device_(volume_.OpenDevice()) {
    auto counted = std::make_unique<CountingDevice>(*device_);
    counted_ = counted.get();
    MountOptions options = WithGc("none");
    options.stripe_width = 1;
    fs_ = FileSystem::Mount(std::move(counted), options).value();
  }
  std::string Content() { return RandomBytes(random_, kSize); }
  std::unique_ptr<FileWriter> Begin(const std::string& path, const CreateOptions& options = {}) {
    return fs_->Create(path, options).value();
  }
  void AppendAndSync(FileWriter& writer) {
    ISOZONE_ASSERT_OK(writer.Append(Bytes(Content())));
    ISOZONE_ASSERT_OK(writer.Sync());
  }
  void WriteFile(const std::string& path) {
    const auto writer = Begin(path);
    AppendAndSync(*writer);
    ISOZONE_ASSERT_OK(writer->Close());
  }
  // What the metadata knows of the file.
  std::vector<FileExtent> ExtentsOf(const std::string& path) {
    std::vector<FileExtent> extents;
    ISOZONE_EXPECT_OK(fs_->state().VisitFiles([&](const FileDetails& file) {
      if (file.paths == std::vector<std::string>{path}) extents = file.extents.Expand();
    }));
    return extents;
  }

  TestVolume volume_;
  std::unique_ptr<EmulatedDevice> device_;
  CountingDevice* counted_ = nullptr;
  Random random_{TestSeed(kGcTestSeed)};
  std::unique_ptr<FileSystem> fs_;
};

TEST_F(UnpublishedTest, AVictimWithBothKindsIsFlushedOnceForThem) {
  // Idle writers lose their zones here: each of these ends in the zone in which the first two files lie.
  WriteFile("/dead");
  WriteFile("/old");
  const auto inode = fs_->inodes().Lookup(InodeFiles::kRoot, "old").value().inode;
  const auto old = fs_->inodes().Open(inode).value();
  const std::string overwritten = Content();
  ISOZONE_ASSERT_OK(old->Write(0, Bytes(overwritten.substr(0, kSize / 2))));
  const auto elsewhere = Begin("/elsewhere");
  AppendAndSync(*elsewhere);
  WriteFile("/takes the zone of the first");
  const auto log = Begin("/log", {.kind = FileKind::kSmall});
  const std::string logged = Content();
  ISOZONE_ASSERT_OK(log->Append(Bytes(logged)));
  ISOZONE_ASSERT_OK(log->WriteOut());
  AppendAndSync(*elsewhere);
  WriteFile("/takes the zone of the second");

  ISOZONE_ASSERT_OK(fs_->Unlink("/dead"));
  ISOZONE_ASSERT_OK(fs_->SyncMetadata());
  ASSERT_EQ(fs_->collection().Plan(/*all=*/true).victims.size(), 1U);
  const std::vector<FileExtent> before = ExtentsOf("/old");
  ASSERT_EQ(before.size(), 1U);
  ASSERT_TRUE(ExtentsOf("/log").empty());
  const uint64_t flushes = counted_->flushes;
  const CopyStats done = fs_->collection().Run(100, {}).value();
  EXPECT_EQ(done.zones, 1U);
  EXPECT_EQ(done.skipped_zones, 0U);
  EXPECT_EQ(counted_->flushes - flushes, 2U) << "for what was not published, and for the copies";
  EXPECT_FALSE(ExtentsOf("/log").empty());
  const std::vector<FileExtent> after = ExtentsOf("/old");
  ASSERT_FALSE(after.empty());
  EXPECT_EQ(after.front().length, kSize / 2) << "the other half lies elsewhere";
  ISOZONE_ASSERT_OK(log->Close());
  ISOZONE_ASSERT_OK(elsewhere->Close());
}

}  // namespace
}  // namespace isozone
