// The disk under a device is full: the device has zones, and no room to write them. No zone is at fault, and the file
// system goes on once there is room.
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "device/passing_device.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

// Has room for so many bytes more, and counts the writes that it has none for. Short writes, those of metadata, can be
// let through.
class FullHost final : public PassingDevice {
 public:
  using PassingDevice::PassingDevice;

  void Submit(DeviceRequest& request) override {
    const auto length = static_cast<int64_t>(request.length);
    const bool counts = request.op == DeviceOp::kWrite && length >= shortest_;
    if (!counts || room_.fetch_sub(length) >= length) return PassingDevice::Submit(request);
    room_ = 0;
    ++refused_;
    request.status = DeviceStatus::kCapacityExceeded;
    request.done(request);
  }

  void SetRoom(int64_t bytes, int64_t shortest = 0) {
    shortest_ = shortest;
    room_ = bytes;
  }
  uint64_t refused() const { return refused_; }

 private:
  std::atomic<int64_t> room_ = INT64_MAX;
  std::atomic<int64_t> shortest_ = 0;
  std::atomic<uint64_t> refused_ = 0;
};

class FullHostTest : public testing::Test {
 protected:
  void SetUp() override { Mount(); }
  void Mount() {
    fs_.reset();
    device_.reset();
    device_ = volume_.OpenDevice();
    auto host = std::make_unique<FullHost>(*device_);
    host_ = host.get();
    auto mounted = FileSystem::Mount(std::move(host), {});
    ISOZONE_ASSERT_OK(mounted.status());
    fs_ = std::move(*mounted);
  }
  Status Write(std::string_view path, std::string_view content, FileKind kind = FileKind::kData) {
    ISOZONE_ASSIGN_OR_RETURN(const auto writer, fs_->Create(path, {.kind = kind}));
    Status status = writer->Append(Bytes(content));
    if (status.ok()) status = writer->Sync();
    const Status closed = writer->Close();
    return status.ok() ? closed : status;
  }
  std::string Read(std::string_view path) {
    const auto reader = fs_->OpenForRead(path).value();
    std::string content(reader->size(), '\0');
    EXPECT_EQ(reader->Read(0, std::as_writable_bytes(std::span(content)), IoClass::kUserRead).value(), content.size());
    return content;
  }
  void ExpectWholeAndClean() {
    EXPECT_EQ(Read("/before"), "before");
    ISOZONE_EXPECT_OK(fs_->Unmount());
    fs_.reset();
    device_.reset();
    volume_.ExpectFsckClean();
  }

  TestVolume volume_;
  std::unique_ptr<EmulatedDevice> device_;
  FullHost* host_ = nullptr;
  std::unique_ptr<FileSystem> fs_;
};

TEST_F(FullHostTest, AWriteFailsOnceAndLosesNoZone) {
  ISOZONE_ASSERT_OK(Write("/before", "before"));
  const std::string large(3 * kMiB, 'x');
  for (const FileKind kind : {FileKind::kData, FileKind::kLog}) {
    for (const int64_t room : {int64_t{0}, int64_t{700 * kKiB}}) {
      const auto writer = fs_->Create("/file", {.kind = kind}).value();
      const uint64_t refused = host_->refused();
      host_->SetRoom(room, /*shortest=*/64 * kKiB);
      Status status = writer->Append(Bytes(large));
      if (status.ok()) status = writer->WriteOut();
      EXPECT_EQ(status.code(), StatusCode::kNoSpace) << status.ToString();
      EXPECT_NE(status.message().find("the disk under the device is full"), std::string::npos) << status.message();
      EXPECT_LE(host_->refused() - refused, 8U) << "no more than were under way";
      host_->SetRoom(INT64_MAX);
      const Status closed = writer->Close();
      EXPECT_TRUE(closed.ok() || closed.Is(StatusCode::kNoSpace)) << closed.ToString();
      ISOZONE_EXPECT_OK(Write("/file", large, kind));
      EXPECT_EQ(Read("/file"), large);
      ISOZONE_EXPECT_OK(fs_->Unlink("/file"));
    }
  }
  EXPECT_EQ(fs_->state().Stats().write_retries, 0U);
  ExpectWholeAndClean();
}

TEST_F(FullHostTest, WithoutRoomForTheMetadataItIsReadOnlyForLackOfSpaceUntilTheNextMount) {
  ISOZONE_ASSERT_OK(Write("/before", "before"));
  host_->SetRoom(0);
  ISOZONE_ASSERT_OK(fs_->CreateDirectory("/lost"));
  const Status status = fs_->SyncMetadata();
  EXPECT_EQ(status.code(), StatusCode::kNoSpace) << status.ToString();
  EXPECT_EQ(fs_->CreateDirectory("/more").code(), StatusCode::kNoSpace);
  EXPECT_EQ(Read("/before"), "before");
  EXPECT_LE(host_->refused(), 4U);
  EXPECT_EQ(fs_->Unmount().code(), StatusCode::kNoSpace);
  ASSERT_NO_FATAL_FAILURE(Mount());
  ISOZONE_EXPECT_OK(Write("/after", "after"));
  ExpectWholeAndClean();
}

}  // namespace
}  // namespace isozone
