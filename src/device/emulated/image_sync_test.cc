// The image of an emulated SSD whose host cannot make it durable. fdatasync() and pwrite() of this program are those
// below.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "device/emulated/device_test_util.h"
#include "device/emulated/image_file.h"
#include "device/emulated/image_format.h"

namespace {
std::atomic<int> sync_error{0};  // of the next syncs; 0: they reach the host
std::atomic<int> syncs{0};
std::atomic<int> write_error{0};

// What is written to images while this exists: where and how much. One at a time; other tests of this program write
// from many threads, and are not recorded.
class RecordedWrites {
 public:
  using Pieces = std::vector<std::pair<off_t, size_t>>;

  RecordedWrites() { current = this; }
  ~RecordedWrites() { current = nullptr; }
  RecordedWrites(const RecordedWrites&) = delete;
  RecordedWrites& operator=(const RecordedWrites&) = delete;

  static void Note(off_t position, size_t size) {
    if (RecordedWrites* const recorded = current) recorded->Add(position, size);
  }
  Pieces pieces() const {
    const isozone::MutexLock lock(mu_);
    return pieces_;
  }

 private:
  void Add(off_t position, size_t size) {
    const isozone::MutexLock lock(mu_);
    pieces_.emplace_back(position, size);
  }

  static std::atomic<RecordedWrites*> current;
  mutable isozone::Mutex mu_;
  Pieces pieces_ ISOZONE_GUARDED_BY(mu_);
};
std::atomic<RecordedWrites*> RecordedWrites::current{nullptr};
}  // namespace

extern "C" int InjectedSync(int fd) __asm__("fdatasync");

int InjectedSync(int fd) {
  ++syncs;
  errno = sync_error;
  return sync_error != 0 ? -1 : static_cast<int>(::syscall(SYS_fdatasync, fd));
}

extern "C" ssize_t RecordedWrite(int fd, const void* bytes, size_t size, off_t position) __asm__("pwrite");

ssize_t RecordedWrite(int fd, const void* bytes, size_t size, off_t position) {
  RecordedWrites::Note(position, size);
  if (write_error != 0) {
    errno = write_error;
    return -1;
  }
  return ::syscall(SYS_pwrite64, fd, bytes, size, position);
}

namespace isozone {
namespace {

using testing::HasSubstr;
using Dev = DeviceStatus;

class ImageSyncTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Open()); }
  void TearDown() override { sync_error = 0; }

  void Open() {
    device_.reset();
    sync_error = 0;
    EmulatedOptions options;
    options.timing = false;
    options.sync = ImageSync::kDisk;
    device_ = OpenForTest(image_.path(), OpenMode::kReadWrite, options);
    ASSERT_NE(device_, nullptr);
  }
  Host host() { return Host(*device_); }
  // Boots the host, as far as the image can tell: if a writer has not closed it in order, that was in another boot.
  void Reboot() {
    const auto at = static_cast<std::streamoff>(kLiveBlockOffset + offsetof(LiveBlock, boot_id));
    std::fstream file(image_.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    if (file.get() == 0) return;
    file.seekp(at);
    file << "an earlier boot";
  }

  const MemoryImage image_ = NewMemoryImage();
  std::unique_ptr<EmulatedDevice> device_;
};

TEST_F(ImageSyncTest, AfterAFailedSyncOnlyReadsSucceedUntilTheDeviceIsOpenedAgain) {
  const auto data = Pattern(1, 0, 2);
  ASSERT_EQ(host().Write(0, 0, data), Dev::kSuccess);
  ASSERT_EQ(host().Flush(), Dev::kSuccess);
  sync_error = EIO;
  EXPECT_EQ(host().Flush(), Dev::kInternalError);
  EXPECT_THAT(device_->host_error().ToString(), HasSubstr("cannot sync image"));
  sync_error = 0;  // the host tells of it only once
  const int before = syncs;
  EXPECT_EQ(host().Flush(), Dev::kInternalError);
  EXPECT_EQ(host().Write(0, 2, data), Dev::kInternalError);
  EXPECT_EQ(host().Append(1, data), Dev::kInternalError);
  EXPECT_EQ(host().Reset(0), Dev::kInternalError);
  EXPECT_EQ(host().Finish(0), Dev::kInternalError);
  EXPECT_EQ(syncs, before);
  EXPECT_EQ(host().Read(0, 0, 2), data);
  EXPECT_EQ(host().WritePointer(0), 2U);

  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_TRUE(device_->host_error().ok());
  EXPECT_EQ(host().Read(0, 0, 2), data);
  EXPECT_EQ(host().Write(0, 2, data), Dev::kSuccess);
  EXPECT_EQ(host().Flush(), Dev::kSuccess);
}

TEST_F(ImageSyncTest, AWriteWhoseSyncFailedCountsAsWrittenAndNotAsDurable) {
  sync_error = ENOSPC;
  EXPECT_EQ(host().Write(0, 0, Pattern(1, 0, 3), /*fua=*/true), Dev::kInternalError);
  EXPECT_EQ(host().WritePointer(0), 3U);
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(host().WritePointer(0), 3U);
  EXPECT_EQ(host().Read(0, 0, 3), Pattern(1, 0, 3));
  ASSERT_EQ(host().Write(0, 3, Pattern(1, 3, 1), /*fua=*/true), Dev::kSuccess);
}

TEST_F(ImageSyncTest, WhereTheDiskIsFullNothingIsWrittenAndTheZoneIsAsItWas) {
  ASSERT_EQ(host().Write(1, 0, Pattern(1, 0, 2)), Dev::kSuccess);
  write_error = ENOSPC;
  EXPECT_EQ(host().Write(0, 0, Pattern(1, 0, 3)), Dev::kCapacityExceeded);
  EXPECT_EQ(host().Append(1, Pattern(1, 2, 1)), Dev::kCapacityExceeded);
  write_error = 0;
  EXPECT_TRUE(device_->host_error().ok()) << "whoever wrote is told";
  EXPECT_EQ(host().State(0), ZoneState::kEmpty);
  EXPECT_EQ(host().WritePointer(1), 2U);
  EXPECT_EQ(host().Append(1, Pattern(1, 2, 1)), Dev::kSuccess);
  EXPECT_EQ(host().Read(1, 0, 3), Pattern(1, 0, 3));
}

TEST_F(ImageSyncTest, AResetWhoseSyncFailsFails) {
  ASSERT_EQ(host().Write(0, 0, Pattern(1, 0, 3), /*fua=*/true), Dev::kSuccess);
  sync_error = EIO;
  EXPECT_EQ(host().Reset(0), Dev::kInternalError);
  EXPECT_EQ(host().Write(1, 0, Pattern(1, 0, 1)), Dev::kInternalError);
}

TEST_F(ImageSyncTest, AfterAFailedSyncTheNextBootOfTheHostHasWhatWasDurable) {
  ASSERT_EQ(host().Write(0, 0, Pattern(1, 0, 2), /*fua=*/true), Dev::kSuccess);
  for (const bool fails : {true, false}) {
    SCOPED_TRACE(fails);
    ASSERT_EQ(host().Write(0, 2, Pattern(1, 2, 2)), Dev::kSuccess);
    sync_error = fails ? EIO : 0;
    EXPECT_EQ(host().Flush(), fails ? Dev::kInternalError : Dev::kSuccess);
    device_.reset();
    Reboot();
    ASSERT_NO_FATAL_FAILURE(Open());
    EXPECT_EQ(host().WritePointer(0), fails ? 2U : 4U);
  }
}

// The kernel takes the pages of a failed sync for written, so nobody else would write them.
TEST_F(ImageSyncTest, WhatAFailedSyncMayHaveLostIsWrittenAgainByTheNextWriter) {
  ASSERT_EQ(host().Write(0, 0, Pattern(1, 0, 2), /*fua=*/true), Dev::kSuccess);
  ASSERT_EQ(host().Write(0, 2, Pattern(1, 2, 3)), Dev::kSuccess);
  sync_error = EIO;
  EXPECT_EQ(host().Flush(), Dev::kInternalError);
  const auto data_offset = static_cast<off_t>(ImageLayout(device_->geometry()).data_offset);
  const uint32_t block = device_->geometry().block_size;
  device_.reset();
  // A writer that does not come to the end of that, or is killed meanwhile, leaves it to the next one.
  write_error = ENOSPC;
  EXPECT_FALSE(ImageFile::Open(image_.path(), OpenMode::kReadWrite).ok());
  write_error = 0;
  {
    const RecordedWrites writes;
    ASSERT_NO_FATAL_FAILURE(Open());
    EXPECT_THAT(writes.pieces(), testing::ElementsAre(std::pair{data_offset + 2 * block, size_t{3} * block}));
  }
  EXPECT_EQ(host().Read(0, 2, 3), Pattern(1, 2, 3));
  EXPECT_EQ(host().Flush(), Dev::kSuccess);
  const RecordedWrites writes;
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_THAT(writes.pieces(), testing::IsEmpty());
}

TEST_F(ImageSyncTest, AnImageWhoseLastSyncFailsIsNotClosedInOrder) {
  ASSERT_EQ(host().Write(0, 0, Pattern(1, 0, 2)), Dev::kSuccess);
  sync_error = EIO;
  device_.reset();
  Reboot();
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(host().WritePointer(0), 0U);
}

}  // namespace
}  // namespace isozone
