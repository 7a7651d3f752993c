#include "device/emulated/emulated_device.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/latch.h"
#include "device/emulated/device_test_util.h"

namespace isozone {
namespace {

using testing::Each;
using testing::HasSubstr;
using Dev = DeviceStatus;

class EmulatedDeviceTest : public testing::Test {
 protected:
  MemoryImage image_ = NewMemoryImage();
  std::unique_ptr<EmulatedDevice> device_ = OpenForTest(image_.path());
  Host host_{*device_};
};

TEST_F(EmulatedDeviceTest, ReadsBackWhatWasWrittenAndZerosBeyond) {
  ASSERT_EQ(host_.Write(1, 0, Pattern(1, 0, 3)), Dev::kSuccess);
  EXPECT_EQ(host_.Read(1, 0, 3), Pattern(1, 0, 3));
  auto expected = Pattern(1, 2, 1);
  expected.resize(4 * kTestBlock);
  EXPECT_EQ(host_.Read(1, 2, 4), expected);
  EXPECT_THAT(host_.Read(1, 10, 6), Each(std::byte{0})) << "across the capacity";
  EXPECT_EQ(host_.State(1), ZoneState::kImplicitlyOpen);
  EXPECT_EQ(host_.WritePointer(1), 3U);
}

TEST_F(EmulatedDeviceTest, AppendsOneAfterAnother) {
  ASSERT_EQ(host_.Append(2, Pattern(1, 0, 2)), Dev::kSuccess);
  EXPECT_EQ(host_.appended_at(), 0U);
  ASSERT_EQ(host_.Append(2, Pattern(1, 2, 3)), Dev::kSuccess);
  EXPECT_EQ(host_.appended_at(), 2U);
  EXPECT_EQ(host_.Read(2, 0, 5), Pattern(1, 0, 5));
}

TEST_F(EmulatedDeviceTest, ReportsEveryViolationByItsOwnCode) {
  EXPECT_EQ(host_.Write(0, 1, Pattern(1, 0, 1)), Dev::kZoneInvalidWrite);
  EXPECT_EQ(host_.Write(0, 0, Pattern(1, 0, 13)), Dev::kZoneBoundaryError);
  ASSERT_EQ(host_.Finish(0), Dev::kSuccess);
  EXPECT_EQ(host_.Write(0, 0, Pattern(1, 0, 1)), Dev::kZoneIsFull);
  EXPECT_EQ(host_.Append(0, Pattern(1, 0, 1)), Dev::kZoneIsFull);
  EXPECT_EQ(host_.Open(0), Dev::kInvalidZoneStateTransition);
  EXPECT_EQ(host_.Append(1, Pattern(1, 0, 9)), Dev::kInvalidField) << "above the append limit";
  EXPECT_EQ(host_.Write(8, 0, Pattern(1, 0, 1)), Dev::kLbaOutOfRange);
  EXPECT_EQ(host_.Reset(8), Dev::kLbaOutOfRange);
  for (uint32_t zone = 1; zone <= 4; ++zone) ASSERT_EQ(host_.Open(zone), Dev::kSuccess);
  EXPECT_EQ(host_.Append(5, Pattern(1, 0, 1)), Dev::kTooManyOpenZones);
  ASSERT_EQ(host_.Close(1), Dev::kSuccess);
  ASSERT_EQ(host_.Close(2), Dev::kSuccess);
  ASSERT_EQ(host_.Open(5), Dev::kSuccess);
  ASSERT_EQ(host_.Open(6), Dev::kSuccess);
  EXPECT_EQ(host_.Append(7, Pattern(1, 0, 1)), Dev::kTooManyActiveZones);
}

TEST_F(EmulatedDeviceTest, RefusesMalformedRequests) {
  std::vector<std::byte> buffer(2 * kTestBlock);
  const auto submit = [&](DeviceOp op, uint64_t offset, std::byte* data, uint64_t length) {
    DeviceRequest request;
    request.op = op;
    request.offset = DeviceOffset(offset);
    request.data = data;
    request.length = length;
    return SubmitAndWait(*device_, request);
  };
  EXPECT_EQ(submit(DeviceOp::kRead, 0, nullptr, kTestBlock), Dev::kInvalidField);
  EXPECT_EQ(submit(DeviceOp::kRead, 0, buffer.data(), 0), Dev::kInvalidField);
  EXPECT_EQ(submit(DeviceOp::kWrite, 0, buffer.data(), 100), Dev::kInvalidField);
  EXPECT_EQ(submit(DeviceOp::kRead, 100, buffer.data(), kTestBlock), Dev::kInvalidField);
  EXPECT_EQ(submit(DeviceOp::kAppend, kTestBlock, buffer.data(), kTestBlock), Dev::kInvalidField);
  EXPECT_EQ(submit(DeviceOp::kReset, kTestBlock, nullptr, 0), Dev::kInvalidField);
  const uint64_t last_block = 8 * 16 * kTestBlock - kTestBlock;
  EXPECT_EQ(submit(DeviceOp::kRead, last_block, buffer.data(), 2 * kTestBlock), Dev::kLbaOutOfRange);
  EXPECT_EQ(submit(DeviceOp::kRead, 15 * kTestBlock, buffer.data(), 2 * kTestBlock), Dev::kZoneBoundaryError);
  EXPECT_EQ(submit(DeviceOp::kRead, UINT64_MAX - kTestBlock + 1, buffer.data(), kTestBlock), Dev::kLbaOutOfRange);
}

TEST_F(EmulatedDeviceTest, AFinishedZoneReadsAsZerosWhereItWasNotWritten) {
  ASSERT_EQ(host_.Write(0, 0, Pattern(1, 0, 12)), Dev::kSuccess);
  ASSERT_EQ(host_.Reset(0), Dev::kSuccess);
  ASSERT_EQ(host_.Write(0, 0, Pattern(2, 0, 1)), Dev::kSuccess);
  ASSERT_EQ(host_.Finish(0), Dev::kSuccess);
  EXPECT_EQ(host_.WritePointer(0), 12U);
  EXPECT_EQ(host_.Read(0, 0, 1), Pattern(2, 0, 1));
  EXPECT_THAT(host_.Read(0, 1, 11), Each(std::byte{0}));
}

TEST_F(EmulatedDeviceTest, ReportsARangeOfZones) {
  ASSERT_EQ(host_.Append(3, Pattern(1, 0, 1)), Dev::kSuccess);
  std::vector<ZoneDescriptor> zones(3);
  ASSERT_TRUE(device_->ReportZones(ZoneId(2), zones).ok());
  EXPECT_EQ(zones[1].zone, ZoneId(3));
  EXPECT_EQ(zones[1].state, ZoneState::kImplicitlyOpen);
  EXPECT_EQ(zones[1].capacity, 12 * kTestBlock);
  EXPECT_EQ(device_->ReportZones(ZoneId(6), zones).code(), StatusCode::kInvalidArgument);
}

TEST_F(EmulatedDeviceTest, ARequestMaySubmitTheNextFromItsCompletion) {
  struct Chain {
    EmulatedDevice* device;
    int left;
  } chain{device_.get(), 5};
  auto data = Pattern(1, 0, 1);
  DeviceRequest request;
  request.op = DeviceOp::kWrite;
  request.data = data.data();
  request.length = data.size();
  request.context = &chain;
  request.done = [](DeviceRequest& r) {
    auto& c = *static_cast<Chain*>(r.context);
    ASSERT_EQ(r.status, Dev::kSuccess);
    if (--c.left == 0) return;
    r.offset = DeviceOffset(r.offset.value() + kTestBlock);
    c.device->Submit(r);
  };
  device_->Submit(request);
  EXPECT_EQ(chain.left, 0);
  EXPECT_EQ(host_.WritePointer(0), 5U);
}

TEST_F(EmulatedDeviceTest, KeepsEverythingOverReopens) {
  ASSERT_EQ(host_.Write(1, 0, Pattern(1, 0, 4)), Dev::kSuccess);
  ASSERT_EQ(host_.Open(2), Dev::kSuccess);
  ASSERT_EQ(host_.Write(3, 0, Pattern(3, 0, 12)), Dev::kSuccess);
  ASSERT_EQ(host_.Reset(3), Dev::kSuccess);
  ASSERT_EQ(host_.Finish(4), Dev::kSuccess);
  device_->SetZoneState(ZoneId(5), ZoneState::kOffline);
  ASSERT_EQ(host_.Read(1, 0, 2).size(), 2 * kTestBlock);
  const DeviceCounters before = device_->counters();
  device_.reset();
  device_ = OpenForTest(image_.path());
  Host again(*device_);
  EXPECT_EQ(again.Read(1, 0, 4), Pattern(1, 0, 4));
  EXPECT_EQ(again.State(1), ZoneState::kImplicitlyOpen);
  EXPECT_EQ(again.State(2), ZoneState::kExplicitlyOpen);
  EXPECT_EQ(again.State(3), ZoneState::kEmpty);
  EXPECT_EQ(again.State(4), ZoneState::kFull);
  EXPECT_EQ(again.State(5), ZoneState::kOffline);
  const DeviceCounters counters = device_->counters();
  EXPECT_EQ(before.host_bytes_read, 2 * kTestBlock);
  EXPECT_EQ(counters.host_bytes_read, 6 * kTestBlock);
  EXPECT_EQ(counters.host_bytes_written, 16 * kTestBlock);
  EXPECT_EQ(counters.media_bytes_written, 16 * kTestBlock);
  EXPECT_EQ(counters.resets, 1U);
  EXPECT_EQ(counters.finishes, 1U);
}

TEST_F(EmulatedDeviceTest, AReadOnlyOpenSeesTheWritersStateAndRefusesToChangeIt) {
  const auto reader = OpenForTest(image_.path(), OpenMode::kReadOnly);
  ASSERT_TRUE(reader != nullptr);
  Host reading(*reader);
  ASSERT_EQ(host_.Append(1, Pattern(1, 0, 2)), Dev::kSuccess);
  EXPECT_EQ(reading.WritePointer(1), 2U);
  EXPECT_EQ(reading.Read(1, 0, 2), Pattern(1, 0, 2));
  ASSERT_EQ(host_.Reset(1), Dev::kSuccess);
  EXPECT_THAT(reading.Read(1, 0, 2), Each(std::byte{0}));
  EXPECT_EQ(reading.Append(1, Pattern(1, 0, 1)), Dev::kNamespaceWriteProtected);
  EXPECT_EQ(reading.Reset(1), Dev::kNamespaceWriteProtected);
  EXPECT_EQ(reading.Flush(), Dev::kSuccess);
}

TEST_F(EmulatedDeviceTest, HasOneWriter) {
  const Status second = EmulatedDevice::Open(image_.path(), OpenMode::kReadWrite, {}).status();
  EXPECT_EQ(second.code(), StatusCode::kBusy);
  EXPECT_THAT(second.ToString(), HasSubstr("in use by this process"));
  device_.reset();
  EXPECT_TRUE(EmulatedDevice::Open(image_.path(), OpenMode::kReadWrite, {}).ok());
}

TEST_F(EmulatedDeviceTest, TellsAnotherProcessWhoHasTheImage) {
  const pid_t owner = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    const Status status = EmulatedDevice::Open(image_.path(), OpenMode::kReadWrite, {}).status();
    const bool named = status.ToString().find("in use by process " + std::to_string(owner)) != std::string::npos;
    ::_exit(status.Is(StatusCode::kBusy) && named ? 0 : 1);
  }
  int exit_status = 0;
  ASSERT_EQ(::waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(exit_status, 0);
}

// A child process writes until it is killed, and publishes its progress. All data up to that point must be there.
TEST_F(EmulatedDeviceTest, LosesNothingThatCompletedWhenItsProcessIsKilled) {
  device_.reset();
  for (int round = 0; round < 5; ++round) {
    std::array<int, 2> pipe_ends{};
    ASSERT_EQ(::pipe(pipe_ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto device = OpenForTest(image_.path());
      Host host(*device);
      for (uint32_t i = 0;; ++i) {
        if (i % 12 == 0 && host.Reset(0) != Dev::kSuccess) ::_exit(1);
        if (host.Append(0, Pattern(static_cast<uint64_t>(round), i % 12, 1)) != Dev::kSuccess) ::_exit(2);
        if (::write(pipe_ends[1], &i, sizeof(i)) != sizeof(i)) ::_exit(3);
      }
    }
    ::close(pipe_ends[1]);
    uint32_t last = 0;
    const uint32_t kill_after = 40 + static_cast<uint32_t>(round) * 7;
    while (last < kill_after) {
      ASSERT_EQ(::read(pipe_ends[0], &last, sizeof(last)), sizeof(last));
    }
    ::kill(child, SIGKILL);
    int exit_status = 0;
    ASSERT_EQ(::waitpid(child, &exit_status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(exit_status)) << "the child failed with " << WEXITSTATUS(exit_status);
    while (::read(pipe_ends[0], &last, sizeof(last)) == sizeof(last)) continue;
    ::close(pipe_ends[0]);

    const auto device = OpenForTest(image_.path());
    ASSERT_TRUE(device != nullptr) << "the lock must go with the process";
    Host host(*device);
    const uint64_t written = host.WritePointer(0);
    const uint64_t completed = last % 12 + 1;
    // One more append, or the reset after a full zone, may have started.
    EXPECT_TRUE(written == completed || written == completed % 12 + 1 || (completed == 12 && written == 0))
        << written << " blocks written, " << completed << " completed";
    if (written > 0) {
      EXPECT_EQ(host.Read(0, 0, written), Pattern(static_cast<uint64_t>(round), 0, written));
    }
  }
}

TEST_F(EmulatedDeviceTest, ThreadsOnTheirOwnZonesDoNotDisturbEachOther) {
  const auto image = NewMemoryImage({.block_size = kTestBlock,
                                     .zone_count = 4,
                                     .zone_size = 256 * kTestBlock,
                                     .zone_capacity = 256 * kTestBlock,
                                     .optimal_write = kTestBlock});
  const auto device = OpenForTest(image.path());
  std::vector<std::thread> threads;
  for (uint32_t zone = 0; zone < 4; ++zone) {
    threads.emplace_back([&, zone] {
      Host host(*device);
      for (int round = 0; round < 3; ++round) {
        for (uint64_t block = 0; block < 256; block += 4) {
          ASSERT_EQ(host.Write(zone, block, Pattern(zone, block, 4)), Dev::kSuccess);
          ASSERT_EQ(host.Read(zone, block / 2, 2), Pattern(zone, block / 2, 2));
        }
        ASSERT_EQ(host.Flush(), Dev::kSuccess);
        ASSERT_EQ(host.Reset(zone), Dev::kSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(EmulatedDeviceTest, ThreadsAppendingToOneZoneGetTheirOwnPlaces) {
  const auto image = NewMemoryImage({.block_size = kTestBlock,
                                     .zone_count = 1,
                                     .zone_size = 256 * kTestBlock,
                                     .zone_capacity = 256 * kTestBlock,
                                     .optimal_write = kTestBlock});
  const auto device = OpenForTest(image.path());
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      Host host(*device);
      for (uint64_t i = 0; i < 64; ++i) {
        ASSERT_EQ(host.Append(0, Pattern(thread, i, 1)), Dev::kSuccess);
        ASSERT_EQ(host.Read(0, host.appended_at(), 1), Pattern(thread, i, 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Host(*device).State(0), ZoneState::kFull);
}

class EmulatedDeviceFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "isozone-device-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Status Create(const std::string& path) {
    Profile profile;
    profile.name = "test";
    profile.timing = false;
    profile.zone_count = 4;
    profile.zone_size = 8 * kMiB;
    profile.zone_capacity = 8 * kMiB;
    return EmulatedDevice::CreateImage(path, profile);
  }
  // Bytes that the file occupies on its disk.
  static uint64_t Allocated(const std::string& path) {
    struct stat st {};
    EXPECT_EQ(::stat(path.c_str(), &st), 0);
    return static_cast<uint64_t>(st.st_blocks) * 512;
  }

  std::string directory_;
};

TEST_F(EmulatedDeviceFileTest, GivesBlocksBackOnReset) {
  const std::string path = directory_ + "/ssd.img";
  ASSERT_TRUE(Create(path).ok());
  const uint64_t fresh = Allocated(path);
  const auto device = OpenForTest(path);
  Host host(*device);
  const std::vector<std::byte> zone(8 * kMiB, std::byte{1});
  for (uint32_t i = 0; i < 2; ++i) ASSERT_EQ(host.Write(i, 0, zone), Dev::kSuccess);
  EXPECT_GE(Allocated(path), fresh + 16 * kMiB);
  ASSERT_EQ(host.Reset(0), Dev::kSuccess);
  EXPECT_LT(Allocated(path), fresh + 9 * kMiB);
  EXPECT_EQ(host.Read(1, 0, 2048), zone);
}

TEST_F(EmulatedDeviceFileTest, ReadingWhatWasNeverWrittenTakesNoBlocks) {
  const std::string path = directory_ + "/ssd.img";
  ASSERT_TRUE(Create(path).ok());
  const uint64_t fresh = Allocated(path);
  const auto device = OpenForTest(path);
  EXPECT_EQ(Host(*device).Read(2, 0, 2048), std::vector<std::byte>(8 * kMiB));
  EXPECT_EQ(Allocated(path), fresh);
}

TEST_F(EmulatedDeviceFileTest, SyncsToDiskWhereAskedTo) {
  const std::string path = directory_ + "/ssd.img";
  ASSERT_TRUE(Create(path).ok());
  EmulatedOptions options;
  options.sync = ImageSync::kDisk;
  const auto device = OpenForTest(path, OpenMode::kReadWrite, options);
  Host host(*device);
  EXPECT_EQ(host.Append(0, Pattern(1, 0, 1), true), Dev::kSuccess);
  EXPECT_EQ(host.Append(0, Pattern(1, 1, 1)), Dev::kSuccess);
  EXPECT_EQ(host.Flush(), Dev::kSuccess);
  EXPECT_EQ(host.Reset(0), Dev::kSuccess);
  EXPECT_TRUE(device->host_error().ok());
}

// After a crash of the host, the image names a writer of another boot that did not close it.
TEST_F(EmulatedDeviceFileTest, FallsBackToWhatWasDurableAfterTheHostCrashed) {
  const std::string path = directory_ + "/ssd.img";
  ASSERT_TRUE(Create(path).ok());
  {
    const auto device = OpenForTest(path);
    Host host(*device);
    ASSERT_EQ(host.Append(0, Pattern(1, 0, 2), true), Dev::kSuccess);
    ASSERT_EQ(host.Append(0, Pattern(1, 2, 2)), Dev::kSuccess);
    ASSERT_EQ(host.Append(1, Pattern(1, 0, 2)), Dev::kSuccess);
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(kLiveBlockOffset + offsetof(LiveBlock, boot_id)));
  file << "an earlier boot";
  file.close();
  const auto device = OpenForTest(path);
  Host host(*device);
  EXPECT_EQ(host.WritePointer(0), 2U);
  EXPECT_EQ(host.State(0), ZoneState::kClosed);
  EXPECT_EQ(host.State(1), ZoneState::kEmpty);
  EXPECT_THAT(host.Read(0, 2, 2), Each(std::byte{0}));
}

TEST_F(EmulatedDeviceFileTest, AFullHostIsAnErrorAndTheDeviceGoesOn) {
  const std::string path = directory_ + "/ssd.img";
  ASSERT_TRUE(Create(path).ok());
  const auto device = OpenForTest(path);
  Host host(*device);
  ASSERT_EQ(host.Append(0, Pattern(1, 0, 1)), Dev::kSuccess);
  // The file may not grow beyond its first data block. That has the effect of a full disk without filling one.
  const ImageLayout layout(device->geometry());
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = layout.data_offset;
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Dev status = host.Append(0, Pattern(1, 1, 1));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(status, Dev::kInternalError);
  EXPECT_THAT(device->host_error().ToString(), HasSubstr("cannot write to image"));
  EXPECT_EQ(host.WritePointer(0), 1U);
  EXPECT_EQ(host.Append(0, Pattern(1, 1, 1)), Dev::kSuccess);
  EXPECT_EQ(host.Read(0, 0, 2), Pattern(1, 0, 2));
}

TEST_F(EmulatedDeviceFileTest, AnImageCutOffUnderTheDeviceIsAnErrorNotACrash) {
  const std::string path = directory_ + "/ssd.img";
  ASSERT_TRUE(Create(path).ok());
  const auto device = OpenForTest(path);
  Host host(*device);
  ASSERT_EQ(host.Append(0, Pattern(1, 0, 8)), Dev::kSuccess);
  std::filesystem::resize_file(path, ImageLayout(device->geometry()).data_offset);
  std::vector<std::byte> data(8 * kTestBlock);
  EXPECT_EQ(host.Read(0, 0, data), Dev::kInternalError);
  EXPECT_THAT(device->host_error().ToString(), HasSubstr("could not read the image"));
  EXPECT_EQ(host.Append(1, Pattern(1, 0, 1)), Dev::kInternalError);
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(host.Reset(0), Dev::kInternalError);
}

TEST_F(EmulatedDeviceFileTest, SaysWhatIsWrongWithAFile) {
  const std::string path = directory_ + "/ssd.img";
  const auto error = [&] { return EmulatedDevice::Open(path, OpenMode::kReadWrite, {}).status(); };
  EXPECT_EQ(error().code(), StatusCode::kNotFound);
  EXPECT_THAT(error().ToString(), HasSubstr("there is no image"));

  std::ofstream(path) << "something else";
  EXPECT_EQ(error().code(), StatusCode::kCorruption);
  EXPECT_THAT(error().ToString(), HasSubstr("not an image"));
  std::filesystem::remove(path);

  ASSERT_TRUE(Create(path).ok());
  std::filesystem::resize_file(path, 5 * kMiB);
  EXPECT_EQ(error().code(), StatusCode::kCorruption);
  EXPECT_THAT(error().ToString(), HasSubstr("cut off at 5242880 of 35651584 bytes"));
  std::filesystem::remove(path);

  std::filesystem::create_directory(path);
  EXPECT_THAT(error().ToString(), HasSubstr("is a directory"));
  std::filesystem::remove(path);

  ASSERT_TRUE(Create(path).ok());
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(kZoneTableOffset + sizeof(ZoneEntry)));
    file.put('\x66');
  }
  EXPECT_THAT(error().ToString(), HasSubstr("zone 1 has an unknown state"));
}

TEST_F(EmulatedDeviceFileTest, SaysThatAFileMayNotBeOpened) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may open everything";
  const std::string path = directory_ + "/ssd.img";
  ASSERT_TRUE(Create(path).ok());
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  const Status status = EmulatedDevice::Open(path, OpenMode::kReadWrite, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(status.ToString(), HasSubstr("not allowed to open"));
  EXPECT_TRUE(EmulatedDevice::Open(path, OpenMode::kReadOnly, {}).ok());
}

TEST_F(EmulatedDeviceFileTest, NeverMakesAnImageOverAFile) {
  const std::string path = directory_ + "/ssd.img";
  ASSERT_TRUE(Create(path).ok());
  EXPECT_EQ(Create(path).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1) << "nothing half-made is left";
}

// A device whose commands take milliseconds, so that a test can look between submission and completion.
class TimedDeviceTest : public testing::Test {
 protected:
  static Profile SlowProfile() {
    auto profile = LoadProfile("small-zone");
    EXPECT_TRUE(profile.ok()) << profile.status().ToString();
    profile->zone_count = 64;
    profile->zone_size = 2 * kMiB;
    profile->zone_capacity = 1536 * kKiB;
    return *profile;
  }
  static MemoryImage NewImage() {
    auto image = EmulatedDevice::CreateInMemory(SlowProfile());
    EXPECT_TRUE(image.ok()) << image.status().ToString();
    return std::move(*image);
  }

  struct Pending {
    DeviceRequest request;
    std::vector<std::byte> data;
    int64_t submitted_ns = 0;
    int64_t completed_ns = 0;
    Latch latch{1};

    DeviceStatus Wait() {
      latch.Wait();
      return request.status;
    }
  };
  std::unique_ptr<Pending> Submit(DeviceOp op, uint32_t zone, uint64_t block, std::vector<std::byte> data) {
    auto pending = std::make_unique<Pending>();
    pending->data = std::move(data);
    DeviceRequest& request = pending->request;
    request.op = op;
    request.offset = DeviceOffset(device_->geometry().ZoneStart(ZoneId(zone)).value() + block * kTestBlock);
    request.data = pending->data.data();
    request.length = pending->data.size();
    request.context = pending.get();
    request.done = [](DeviceRequest& r) {
      auto& p = *static_cast<Pending*>(r.context);
      p.completed_ns = MonotonicNs();
      p.latch.CountDown();
    };
    pending->submitted_ns = MonotonicNs();
    device_->Submit(request);
    return pending;
  }

  MemoryImage image_ = NewImage();
  std::unique_ptr<EmulatedDevice> device_ = OpenForTest(image_.path());
  Host host_{*device_};
};

TEST_F(TimedDeviceTest, IsNeverEarly) {
  ASSERT_TRUE(device_->timing());
  EXPECT_EQ(device_->geometry().optimal_write, 192 * kKiB);
  // At depth 1 a zone cannot program faster than its die: each unit takes 1.95 ms, except those that the buffer takes.
  const int64_t start_ns = MonotonicNs();
  for (uint64_t unit = 0; unit < 6; ++unit) {
    ASSERT_EQ(host_.Write(0, unit * 48, Pattern(1, unit * 48, 48)), Dev::kSuccess);
  }
  EXPECT_GE(MonotonicNs() - start_ns, 3 * 1950 * kMicrosecondNs);
  // Three pages; each takes its array time and its channel time.
  const auto read = Submit(DeviceOp::kRead, 0, 0, std::vector<std::byte>(48 * kTestBlock));
  EXPECT_EQ(read->Wait(), Dev::kSuccess);
  EXPECT_EQ(read->data, Pattern(1, 0, 48));
  EXPECT_GE(read->completed_ns - read->submitted_ns, 3 * (60 + 82) * kMicrosecondNs);
  EXPECT_GE(device_->description().emulation->lateness_ns.count, 7U);
}

TEST_F(TimedDeviceTest, ReadsBehindTheCapacity) {
  const DeviceGeometry& geometry = device_->geometry();
  ASSERT_LT(geometry.zone_capacity, geometry.zone_size);
  EXPECT_THAT(host_.Read(0, geometry.zone_size / kTestBlock - 2, 2), Each(std::byte{0}));
  EXPECT_THAT(host_.Read(0, geometry.zone_capacity / kTestBlock - 1, 2), Each(std::byte{0}));
}

TEST_F(TimedDeviceTest, KeepsManyRequestsInFlight) {
  std::vector<std::unique_ptr<Pending>> writes;
  for (uint32_t zone = 0; zone < 32; ++zone) writes.push_back(Submit(DeviceOp::kAppend, zone, 0, Pattern(zone, 0, 48)));
  std::vector<std::unique_ptr<Pending>> more;
  for (int i = 0; i < 5; ++i) more.push_back(Submit(DeviceOp::kAppend, 7, 0, Pattern(100, 0, 1)));
  for (uint32_t zone = 0; zone < 32; ++zone) {
    EXPECT_EQ(writes[zone]->Wait(), Dev::kSuccess);
    EXPECT_EQ(host_.Read(zone, 0, 48), Pattern(zone, 0, 48));
  }
  for (uint64_t i = 0; i < more.size(); ++i) {
    EXPECT_EQ(more[i]->Wait(), Dev::kSuccess);
    EXPECT_EQ(device_->geometry().OffsetInZone(more[i]->request.written_at), (48 + i) * kTestBlock);
  }
}

TEST_F(TimedDeviceTest, RefusesASecondWriteInFlightToAZone) {
  EmulatedOptions options;
  options.faults.latency_spike = 1;
  options.faults.latency_spike_us = 20'000;
  device_.reset();
  device_ = OpenForTest(image_.path(), OpenMode::kReadWrite, options);
  const auto first = Submit(DeviceOp::kWrite, 0, 0, Pattern(1, 0, 48));
  const auto second = Submit(DeviceOp::kWrite, 0, 48, Pattern(1, 48, 48));
  const auto other_zone = Submit(DeviceOp::kWrite, 1, 0, Pattern(1, 0, 1));
  EXPECT_EQ(second->Wait(), Dev::kZoneInvalidWrite);
  EXPECT_EQ(first->Wait(), Dev::kSuccess);
  EXPECT_EQ(other_zone->Wait(), Dev::kSuccess);
  EXPECT_EQ(Submit(DeviceOp::kWrite, 0, 48, Pattern(1, 48, 48))->Wait(), Dev::kSuccess);
}

TEST_F(TimedDeviceTest, ExecutesAResetWhenItCompletes) {
  ASSERT_EQ(host_.Write(0, 0, Pattern(1, 0, 4)), Dev::kSuccess);
  EmulatedOptions options;
  options.faults.latency_spike = 1;
  options.faults.latency_spike_us = 50'000;
  device_.reset();
  device_ = OpenForTest(image_.path(), OpenMode::kReadWrite, options);
  Host host(*device_);
  const auto reset = Submit(DeviceOp::kReset, 0, 0, {});
  EXPECT_EQ(reset->Wait(), Dev::kSuccess);
  EXPECT_EQ(host.State(0), ZoneState::kEmpty);
  EXPECT_GE(reset->completed_ns - reset->submitted_ns, 50 * kMillisecondNs);
}

TEST_F(TimedDeviceTest, APowerCutEndsWhatIsInFlight) {
  ASSERT_EQ(host_.Write(0, 0, Pattern(1, 0, 48)), Dev::kSuccess);
  ASSERT_EQ(host_.Flush(), Dev::kSuccess);
  EmulatedOptions options;
  options.faults.latency_spike = 1;
  options.faults.latency_spike_us = 60'000'000;
  device_.reset();
  device_ = OpenForTest(image_.path(), OpenMode::kReadWrite, options);
  Host host(*device_);
  const auto reset = Submit(DeviceOp::kReset, 0, 0, {});
  const auto write = Submit(DeviceOp::kWrite, 1, 0, Pattern(2, 0, 48));
  const auto read = Submit(DeviceOp::kRead, 0, 0, std::vector<std::byte>(kTestBlock));
  const auto flush = Submit(DeviceOp::kFlush, 0, 0, {});
  device_->CutPower();
  for (const auto* pending : {&reset, &write, &read, &flush}) EXPECT_EQ((*pending)->Wait(), Dev::kPowerLoss);
  device_.reset();
  device_ = OpenForTest(image_.path());
  host = Host(*device_);
  EXPECT_THAT(host.WritePointer(0), testing::AnyOf(0U, 48U));
  const uint64_t survived = host.WritePointer(1);
  EXPECT_LE(survived, 48U);
  EXPECT_EQ(host.Write(1, survived, Pattern(2, survived, 1)), Dev::kSuccess);
  EXPECT_EQ(host.Read(1, 0, survived + 1), Pattern(2, 0, survived + 1));
}

TEST_F(TimedDeviceTest, CountsWhatTheMediumProgramsOverReopens) {
  for (uint32_t zone = 0; zone < 2; ++zone) {
    ASSERT_EQ(host_.Write(zone, 0, Pattern(1, 0, 48)), Dev::kSuccess);
    ASSERT_EQ(host_.Finish(zone), Dev::kSuccess);
    ASSERT_EQ(host_.Flush(), Dev::kSuccess);
    device_.reset();
    device_ = OpenForTest(image_.path());
    EXPECT_GE(device_->counters().media_bytes_written, (zone + 1) * 192 * kKiB);
    host_ = Host(*device_);
  }
}

TEST_F(TimedDeviceTest, CountsDummyBytesOverReopens) {
  const uint64_t capacity = device_->geometry().zone_capacity;
  for (uint32_t zone = 0; zone < 2; ++zone) {
    ASSERT_EQ(host_.Write(zone, 0, Pattern(1, 0, 1)), Dev::kSuccess);
    ASSERT_EQ(host_.Finish(zone), Dev::kSuccess);
    ASSERT_EQ(host_.Finish(zone), Dev::kSuccess) << "again, which does nothing";
    device_.reset();
    device_ = OpenForTest(image_.path());
    EXPECT_EQ(device_->counters().dummy_bytes_written, (zone + 1) * (capacity - kTestBlock));
    EXPECT_EQ(device_->counters().media_bytes_written, (zone + 1) * capacity);
    host_ = Host(*device_);
  }
}

TEST_F(TimedDeviceTest, CountsDummyBytesWithoutTiming) {
  const uint64_t capacity = device_->geometry().zone_capacity;
  device_.reset();
  EmulatedOptions options;
  options.timing = false;
  device_ = OpenForTest(image_.path(), OpenMode::kReadWrite, options);
  Host host(*device_);
  ASSERT_EQ(host.Write(0, 0, Pattern(1, 0, 1)), Dev::kSuccess);
  ASSERT_EQ(host.Write(1, 0, Pattern(1, 0, 1)), Dev::kSuccess);
  ASSERT_EQ(host.Finish(0), Dev::kSuccess);
  ASSERT_EQ(host.Finish(0), Dev::kSuccess);
  ASSERT_EQ(host.Reset(0), Dev::kSuccess);
  ASSERT_EQ(host.Reset(1), Dev::kSuccess);
  ASSERT_EQ(host.Finish(2), Dev::kSuccess) << "an empty zone";
  EXPECT_EQ(device_->counters().dummy_bytes_written, capacity - kTestBlock);
  EXPECT_EQ(device_->counters().media_bytes_written, capacity + kTestBlock);
}

TEST(EmulatedDevicePadding, OfAResetIsCountedToo) {
  Profile profile = LoadProfile("lifetime-paper").value();
  profile.zone_count = 8;
  profile.block_size = kTestBlock;
  profile.reset_padding = 8 * kTestBlock;
  const MemoryImage image = EmulatedDevice::CreateInMemory(profile).value();
  const auto device = OpenForTest(image.path());
  Host host(*device);
  ASSERT_EQ(host.Write(0, 0, Pattern(1, 0, 9)), Dev::kSuccess);
  ASSERT_EQ(host.Write(1, 0, Pattern(1, 0, 9)), Dev::kSuccess);
  ASSERT_EQ(host.Reset(0), Dev::kSuccess);
  ASSERT_EQ(host.Reset(0), Dev::kSuccess) << "an empty zone";
  ASSERT_EQ(host.Finish(1), Dev::kSuccess);
  ASSERT_EQ(host.Reset(1), Dev::kSuccess) << "a full zone";
  EXPECT_EQ(device->counters().dummy_bytes_written, 7 * kTestBlock);
  EXPECT_EQ(device->counters().media_bytes_written, (18 + 7) * kTestBlock);
}

TEST_F(TimedDeviceTest, RunsAtTheSpeedAskedFor) {
  device_.reset();
  EmulatedOptions options;
  options.speed = 0.1;
  device_ = OpenForTest(image_.path(), OpenMode::kReadWrite, options);
  const auto write = Submit(DeviceOp::kWrite, 0, 0, Pattern(1, 0, 48));
  ASSERT_EQ(write->Wait(), Dev::kSuccess);
  const auto read = Submit(DeviceOp::kRead, 0, 0, std::vector<std::byte>(48 * kTestBlock));
  ASSERT_EQ(read->Wait(), Dev::kSuccess);
  EXPECT_GE(read->completed_ns - read->submitted_ns, 10 * 3 * (60 + 82) * kMicrosecondNs);
}

TEST_F(TimedDeviceTest, DoesNotSpoilTimingBySyncing) {
  device_.reset();
  EmulatedOptions options;
  options.sync = ImageSync::kDisk;
  EXPECT_THAT(EmulatedDevice::Open(image_.path(), OpenMode::kReadWrite, options).status().ToString(),
              HasSubstr("timing=off"));
}

}  // namespace
}  // namespace isozone
