// Devices that are full to the last zone, with metadata that takes many zones: whatever was done, they can be changed,
// mounted, emptied and used again.
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "testing/test_volume.h"

namespace isozone {
namespace {

class FullDeviceTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr int kNames = 1500;

  void SetUp() override {
    DeviceGeometry geometry = SmallGeometry(/*zones=*/64, /*zone_size=*/128 * kKiB, /*max_active=*/14);
    image_.emplace(EmulatedDevice::CreateInMemory(geometry).value());
    ISOZONE_ASSERT_OK(FormatDevice(*Open(), {"full", false, GetParam()}));
    Mount();
  }
  std::unique_ptr<EmulatedDevice> Open() {
    return std::move(*EmulatedDevice::Open(image_->path(), OpenMode::kReadWrite, {}));
  }
  void Mount() {
    auto device = Open();
    device_ = device.get();
    MountOptions options;
    options.checkpoint_after = 512 * kKiB;
    auto mounted = FileSystem::Mount(std::move(device), options);
    ISOZONE_ASSERT_OK(mounted.status());
    fs_ = std::move(*mounted);
  }
  void Remount() {
    ISOZONE_ASSERT_OK(fs_->Unmount());
    fs_.reset();
    ASSERT_NO_FATAL_FAILURE(Mount());
  }
  Status Write(const std::string& path, size_t bytes) {
    ISOZONE_ASSIGN_OR_RETURN(auto writer, fs_->Create(path, {}));
    const std::string content(bytes, 'x');
    Status status = writer->Append(Bytes(content));
    if (status.ok()) status = writer->Sync();
    const Status closed = writer->Close();
    return status.ok() ? closed : status;
  }
  static std::string Name(int i) { return fmt::format("/{}{}", i, std::string(200, 'n')); }
  void CreateNames() {
    for (int i = 0; i < kNames; ++i) {
      auto writer = fs_->Create(Name(i), {.kind = FileKind::kSmall});
      ISOZONE_ASSERT_OK(writer.status());
      ISOZONE_ASSERT_OK((*writer)->Close());
    }
    ISOZONE_ASSERT_OK(fs_->SyncMetadata());
  }
  // Writes files of data until there is no space for another one. Returns how many names it has used.
  int Fill() {
    for (int files = 0;; ++files) {
      const Status status = Write(fmt::format("/data{}", files), 16 * kKiB);
      if (status.ok()) continue;
      EXPECT_EQ(status.code(), StatusCode::kNoSpace) << status.ToString();
      return files + 1;  // the last file may exist
    }
  }
  void RenameAndSync(int times) {
    for (int i = 0; i < times; ++i) {
      ISOZONE_ASSERT_OK(i % 2 == 0 ? fs_->Rename("/data0", "/moved0") : fs_->Rename("/moved0", "/data0"));
      ISOZONE_ASSERT_OK(fs_->SyncMetadata());
    }
  }
  void RemoveData(int files) {
    for (int i = 0; i < files; ++i) {
      const Status status = fs_->Unlink(fmt::format("/data{}", i));
      ASSERT_TRUE(status.ok() || status.Is(StatusCode::kNotFound)) << status.ToString();
    }
    ISOZONE_ASSERT_OK(fs_->SyncMetadata());
    ISOZONE_ASSERT_OK(fs_->state().Settle());
  }
  void ExpectClean() {
    fs_.reset();
    const auto report = Fsck(*Open(), {true, {}});
    ISOZONE_ASSERT_OK(report.status());
    for (const FsckFinding& finding : report->findings) {
      EXPECT_NE(finding.severity, FsckSeverity::kError) << finding.text;
    }
    EXPECT_EQ(report->copies.size(), GetParam());
  }

  std::optional<MemoryImage> image_;
  EmulatedDevice* device_ = nullptr;
  std::unique_ptr<FileSystem> fs_;
};

INSTANTIATE_TEST_SUITE_P(Copies, FullDeviceTest, testing::Values(1U, 2U),
                         [](const auto& info) { return fmt::format("{}", info.param); });

TEST_P(FullDeviceTest, WithManyNamesIsChangedEmptiedAndUsedAgain) {
  ASSERT_NO_FATAL_FAILURE(CreateNames());
  const int files = Fill();
  EXPECT_GT(fs_->state().Metadata().whole.front().size(), 3U);
  ASSERT_NO_FATAL_FAILURE(RenameAndSync(300));
  ASSERT_NO_FATAL_FAILURE(Remount());
  ASSERT_NO_FATAL_FAILURE(RenameAndSync(300));
  ASSERT_NO_FATAL_FAILURE(RemoveData(files));
  ISOZONE_ASSERT_OK(Write("/again", 64 * kKiB));
  ASSERT_NO_FATAL_FAILURE(Remount());
  for (int i = 0; i < kNames; ++i) ISOZONE_ASSERT_OK(fs_->Unlink(Name(i)));
  ISOZONE_ASSERT_OK(fs_->SyncMetadata());
  const int more = Fill();
  EXPECT_GT(more, files);
  ASSERT_NO_FATAL_FAILURE(RenameAndSync(50));
  ASSERT_NO_FATAL_FAILURE(RemoveData(more));
  ISOZONE_ASSERT_OK(fs_->Unmount());
  ASSERT_NO_FATAL_FAILURE(ExpectClean());
}

TEST_P(FullDeviceTest, TakesNamesUntilThereIsNoSpaceForThemAndCanBeEmptied) {
  int names = 0;
  Status status;
  for (; status.ok(); ++names) {
    auto writer = fs_->Create(Name(names), {.kind = FileKind::kSmall});
    status = writer.status();
    if (status.ok()) status = (*writer)->Close();
  }
  EXPECT_EQ(status.code(), StatusCode::kNoSpace) << status.ToString();
  EXPECT_GT(names, 3 * kNames);
  ISOZONE_ASSERT_OK(fs_->SyncMetadata());
  ASSERT_NO_FATAL_FAILURE(Remount());
  EXPECT_EQ(fs_->List("/")->size(), static_cast<size_t>(names - 1));
  for (int i = 0; i < names - 1; ++i) ISOZONE_ASSERT_OK(fs_->Unlink(Name(i)));
  ISOZONE_ASSERT_OK(fs_->SyncMetadata());
  ISOZONE_ASSERT_OK(Write("/again", 1 * kMiB));
  ISOZONE_ASSERT_OK(fs_->Unmount());
  ASSERT_NO_FATAL_FAILURE(ExpectClean());
}

TEST_P(FullDeviceTest, WithAnOpenLogMountsAfterAPowerCut) {
  for (const bool full : {false, true}) {
    SCOPED_TRACE(full ? "full" : "not full");
    ASSERT_NO_FATAL_FAILURE(SetUp());
    auto log = fs_->Create("/wal", {.kind = FileKind::kLog, .io_class = IoClass::kWal}).value();
    ISOZONE_ASSERT_OK(log->Append(Bytes("hello")));
    ISOZONE_ASSERT_OK(log->Sync());
    ASSERT_NO_FATAL_FAILURE(CreateNames());
    const int files = full ? Fill() : 1;
    if (!full) ISOZONE_ASSERT_OK(Write("/data0", 4 * kKiB));
    ASSERT_NO_FATAL_FAILURE(RenameAndSync(101));
    device_->CutPower();
    (void)log->Close();
    log.reset();
    fs_.reset();
    for (int mount = 0; mount < 2; ++mount) {
      ASSERT_NO_FATAL_FAILURE(Mount());
      EXPECT_EQ(fs_->state().read_only_reason(), "");
      EXPECT_EQ(fs_->Stat("/wal")->size, 5U);
      ISOZONE_ASSERT_OK(fs_->Unmount());
      fs_.reset();
    }
    ASSERT_NO_FATAL_FAILURE(Mount());
    ASSERT_NO_FATAL_FAILURE(RemoveData(files));
    ISOZONE_ASSERT_OK(Write("/again", 64 * kKiB));
    ISOZONE_ASSERT_OK(fs_->Unmount());
    ASSERT_NO_FATAL_FAILURE(ExpectClean());
  }
}

TEST_P(FullDeviceTest, KeepsAtMostEightPercentFromSixtyFourZonesOn) {
  const SpaceInfo space = fs_->state().Space();
  EXPECT_LE(space.metadata + space.reserved, space.capacity * 8 / 100);
}

// --- A reader in another process ---

TEST(ReadOnlyRefreshTest, ReadsOnlyWhatWasAddedUntilTheCopyIsReplaced) {
  TestVolume volume(SmallGeometry(/*zones=*/64, /*zone_size=*/4 * kMiB));
  ISOZONE_ASSERT_OK(volume.Mount());
  for (int i = 0; i < 3000; ++i) {
    ISOZONE_ASSERT_OK(volume.fs().CreateDirectory(fmt::format("/{}{}", i, std::string(100, 'd'))));
  }
  ISOZONE_ASSERT_OK(volume.fs().SyncMetadata());
  auto device = volume.OpenDevice(OpenMode::kReadOnly);
  const EmulatedDevice& read = *device;
  MountOptions options;
  options.read_only = true;
  auto follower = FileSystem::Mount(std::move(device), options);
  ISOZONE_ASSERT_OK(follower.status());
  ISOZONE_ASSERT_OK((*follower)->Stat("/0" + std::string(100, 'd')).status());
  const uint64_t before = read.counters().host_bytes_read;
  for (int i = 0; i < 50; ++i) {
    const std::string name = fmt::format("/new{}", i);
    ISOZONE_ASSERT_OK(volume.fs().CreateDirectory(name));
    ISOZONE_ASSERT_OK(volume.fs().SyncMetadata());
    ISOZONE_ASSERT_OK((*follower)->Stat(name).status());
    ISOZONE_ASSERT_OK((*follower)->Stat(name).status());
  }
  // Each time, the superblocks and the new batch are read. All of the metadata would be more than 400 KiB.
  EXPECT_LT(read.counters().host_bytes_read - before, 50 * 8 * 4 * kKiB);
  // When both copies were replaced, the reader goes on with the new ones.
  MountOptions small;
  small.checkpoint_after = 64 * kKiB;
  ISOZONE_ASSERT_OK(volume.Remount(small));
  while (volume.fs().state().Stats().checkpoints < 3) {
    ISOZONE_ASSERT_OK(volume.fs().SetModified("/new0", 1));
    ISOZONE_ASSERT_OK(volume.fs().SyncMetadata());
  }
  ISOZONE_ASSERT_OK(volume.fs().CreateDirectory("/after"));
  ISOZONE_ASSERT_OK(volume.fs().SyncMetadata());
  ISOZONE_ASSERT_OK((*follower)->Stat("/after").status());
}

}  // namespace
}  // namespace isozone
