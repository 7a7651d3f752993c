// Files that another process has open while the writer removes, moves and overwrites them. Writer and readers are two
// mounts of one image; they know of each other by files of shared memory alone, as in two processes.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fs/kept/kept_layout.h"
#include "fs/mount/format_device.h"
#include "testing/manual_clock.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

constexpr size_t kFileSize = 300'000;

class PinnedFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / fmt::format("isozone-pinned-{}", getpid());
    std::filesystem::create_directories(directory_);
    const MemoryImage memory = EmulatedDevice::CreateInMemory(SmallGeometry(40)).value();
    std::filesystem::copy_file(memory.path(), image());
    ISOZONE_ASSERT_OK(FormatDevice(*Open(OpenMode::kReadWrite), {"test", false}));
    options_.kept_memory_directory = directory_;
    options_.kept_memory = kKeptMemoryMin;
    options_.statistics_page = false;
    options_.gc.scheme = "none";
  }
  void TearDown() override {
    reader_.reset();
    writer_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::string image() const { return directory_ + "/image"; }
  std::unique_ptr<EmulatedDevice> Open(OpenMode mode) const {
    EmulatedOptions options;
    options.timing = false;
    return EmulatedDevice::Open(image(), mode, options).value();
  }
  void MountWriter() {
    auto device = Open(OpenMode::kReadWrite);
    device_ = device.get();
    auto mounted = FileSystem::Mount(std::move(device), options_);
    ASSERT_TRUE(mounted.ok()) << mounted.status().ToString();
    writer_ = *std::move(mounted);
  }
  std::unique_ptr<FileSystem> NewReader(MountOptions options) {
    options.read_only = true;
    return FileSystem::Mount(Open(OpenMode::kReadOnly), options, clock_).value();
  }
  void MountBoth() {
    MountWriter();
    reader_ = NewReader(options_);
  }

  std::string Write(const std::string& path, size_t size = kFileSize) {
    std::string content = RandomBytes(random_, size);
    auto file = writer_->Create(path, {.kind = FileKind::kData});
    ISOZONE_EXPECT_OK(file.status());
    ISOZONE_EXPECT_OK((*file)->Append(Bytes(content)));
    ISOZONE_EXPECT_OK((*file)->Sync());
    ISOZONE_EXPECT_OK((*file)->Close());
    return content;
  }
  // Removes the file. Whatever may be reset then is reset.
  void Remove(const std::string& path) {
    ISOZONE_ASSERT_OK(writer_->Unlink(path));
    ISOZONE_ASSERT_OK(writer_->SyncMetadata());
    ISOZONE_ASSERT_OK(writer_->state().Settle());
  }
  // Writes until there is no space.
  Status Fill() {
    for (int i = 0;; ++i) {
      ISOZONE_ASSIGN_OR_RETURN(auto file, writer_->Create(fmt::format("/{}", i), {.kind = FileKind::kData}));
      Status status = file->Append(Bytes(std::string(kMiB, 'x')));
      if (status.ok()) status = file->Sync();
      const Status closed = file->Close();
      ISOZONE_RETURN_IF_ERROR(status);
      ISOZONE_RETURN_IF_ERROR(closed);
    }
  }
  // Writes until every zone that is free has been written once.
  void Churn(int rounds = 60) {
    for (int i = 0; i < rounds; ++i) {
      Write("/churn", 600'000);
      ISOZONE_ASSERT_OK(writer_->state().Settle());
    }
  }
  static Result<std::string> Read(FileReader& file, size_t size = kFileSize) {
    std::string content(size, '\0');
    ISOZONE_ASSIGN_OR_RETURN(const size_t n,
                             file.Read(0, std::as_writable_bytes(std::span(content)), IoClass::kUserRead));
    content.resize(n);
    return content;
  }
  uint64_t resets() const { return device_->counters().resets; }
  void AwaitResets(uint64_t count) const {
    while (resets() < count) std::this_thread::yield();
  }

  std::string directory_;
  MountOptions options_;
  ManualClock clock_;  // of readers: nobody looks unless it is asked
  std::unique_ptr<FileSystem> writer_;
  std::unique_ptr<FileSystem> reader_;
  EmulatedDevice* device_ = nullptr;
  Random random_{1};
};

TEST_F(PinnedFilesTest, ARemovedFileStaysReadable) {
  MountBoth();
  const std::string content = Write("/a");
  auto file = reader_->OpenForRead("/a").value();
  Remove("/a");
  Churn();
  EXPECT_GT(resets(), 40U) << "every zone was used again";
  EXPECT_EQ(Read(*file).value(), content);
  EXPECT_TRUE(reader_->OpenForRead("/a").status().Is(StatusCode::kNotFound));
  const SpaceInfo space = writer_->state().Space();
  EXPECT_GE(space.held_by_readers, kFileSize);
  EXPECT_LE(space.held_by_readers, space.dead);
  const uint64_t before = resets();
  file.reset();
  AwaitResets(before + 1);
  ISOZONE_EXPECT_OK(writer_->state().Settle());
  EXPECT_EQ(writer_->state().Space().held_by_readers, 0U);
}

TEST_F(PinnedFilesTest, NothingIsHeldForAFileThatNobodyHasOpen) {
  MountBoth();
  Write("/a", 2 * kMiB);
  reader_->OpenForRead("/a").value().reset();
  const uint64_t before = resets();
  Remove("/a");
  EXPECT_GT(resets(), before);
}

TEST_F(PinnedFilesTest, AFileThatIsReplacedOrOverwrittenIsReadAsItWas) {
  MountBoth();
  const std::string content = Write("/a");
  auto file = reader_->OpenForRead("/a").value();
  const std::string next = Write("/b");
  ISOZONE_ASSERT_OK(writer_->Rename("/b", "/a"));
  Churn();
  EXPECT_EQ(Read(*file).value(), content);
  EXPECT_EQ(Read(*reader_->OpenForRead("/a").value()).value(), next);
}

TEST_F(PinnedFilesTest, ALogIsReadToItsEndAfterItWasRemoved) {
  MountBoth();
  auto log = writer_->Create("/log", {.kind = FileKind::kLog}).value();
  const std::string content = RandomBytes(random_, kFileSize);
  ISOZONE_ASSERT_OK(log->Append(Bytes(content)));
  ISOZONE_ASSERT_OK(log->Sync());
  auto file = reader_->OpenForRead("/log").value();
  EXPECT_EQ(Read(*file).value(), content);
  ISOZONE_ASSERT_OK(log->Close());
  log.reset();
  Remove("/log");
  Churn();
  const auto found = Read(*file);
  ISOZONE_ASSERT_OK(found.status());
  EXPECT_EQ(*found, content);
}

// What was appended and not looked at is the log's as well, though the name has gone.
TEST_F(PinnedFilesTest, ALogThatWasRemovedBeforeItWasReadToItsEndIsReadToItsEnd) {
  MountBoth();
  auto log = writer_->Create("/log", {.kind = FileKind::kLog}).value();
  const std::string content = RandomBytes(random_, 2 * kFileSize);
  ISOZONE_ASSERT_OK(log->Append(Bytes(content.substr(0, kFileSize))));
  ISOZONE_ASSERT_OK(log->Sync());
  auto file = reader_->OpenForRead("/log").value();
  EXPECT_EQ(Read(*file).value(), content.substr(0, kFileSize));
  ISOZONE_ASSERT_OK(log->Append(Bytes(content.substr(kFileSize))));
  ISOZONE_ASSERT_OK(log->Close());
  log.reset();
  Remove("/log");
  for (int again = 0; again < 2; ++again) {
    const auto found = Read(*file, content.size() + 1);
    ISOZONE_ASSERT_OK(found.status());
    EXPECT_EQ(*found, content);
    Churn();
  }
}

// It has no end where the end cannot be known.
TEST_F(PinnedFilesTest, ALogWhoseEndWasLostToAResetIsAnError) {
  MountBoth();
  auto log = writer_->Create("/log", {.kind = FileKind::kLog}).value();
  ISOZONE_ASSERT_OK(log->Append(Bytes(RandomBytes(random_, kFileSize))));
  ISOZONE_ASSERT_OK(log->Sync());
  auto file = reader_->OpenForRead("/log").value();
  ISOZONE_ASSERT_OK(Read(*file).status());
  ISOZONE_ASSERT_OK(log->Append(Bytes(RandomBytes(random_, 3 * kMiB))));
  ISOZONE_ASSERT_OK(log->Close());
  log.reset();
  Remove("/log");
  Churn();
  const auto found = Read(*file, 4 * kMiB);
  EXPECT_TRUE(found.status().Is(StatusCode::kIoError)) << found->size();
}

TEST_F(PinnedFilesTest, AMovedFileIsFollowedAndItsOldPlacesAreGivenBack) {
  MountBoth();
  const std::string content = Write("/a");
  Write("/dies", 400'000);
  auto file = reader_->OpenForRead("/a").value();
  Remove("/dies");
  const uint64_t before = resets();
  ISOZONE_ASSERT_OK(writer_->collection().Run(100, {}).status());
  ISOZONE_ASSERT_OK(writer_->state().Settle());
  Churn();
  // The places that it had are held until the reader looks, and that nobody asks for.
  clock_.AwaitWaiter(clock_.NowNs());
  clock_.Advance(kSecondNs);
  AwaitResets(before + 1);
  Churn();
  EXPECT_EQ(Read(*file).value(), content);
  Remove("/a");
  Churn();
  EXPECT_EQ(Read(*file).value(), content);
}

TEST_F(PinnedFilesTest, TheNextMountForWritingHoldsWhatTheLastOneHeld) {
  MountBoth();
  const std::string content = Write("/a");
  auto file = reader_->OpenForRead("/a").value();
  Remove("/a");
  ISOZONE_ASSERT_OK(writer_->Unmount());
  writer_.reset();
  MountWriter();
  Churn();
  EXPECT_EQ(Read(*file).value(), content);
}

TEST_F(PinnedFilesTest, AReaderThatWasKilledHoldsNothing) {
  int to_child[2];
  int to_parent[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(to_parent), 0);
  char byte = 0;
  const pid_t child = fork();  // before any thread runs
  if (child == 0) {
    if (read(to_child[0], &byte, 1) != 1) _exit(1);
    const auto reader = NewReader(options_);
    const auto file = reader->OpenForRead("/a").value();
    if (write(to_parent[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
  }
  MountWriter();
  Write("/a");
  ASSERT_EQ(write(to_child[1], "g", 1), 1);
  ASSERT_EQ(read(to_parent[0], &byte, 1), 1);
  const uint64_t before = resets();
  Remove("/a");
  EXPECT_EQ(resets(), before);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  AwaitResets(before + 1);
}

TEST_F(PinnedFilesTest, WithinTheBoundAFullDeviceHasNoSpaceUntilTheReaderLetsGo) {
  options_.reader_hold = 100;
  MountBoth();
  const std::string content = Write("/a", 15 * kMiB);
  auto file = reader_->OpenForRead("/a").value();
  Remove("/a");
  const Status status = Fill();
  EXPECT_TRUE(status.Is(StatusCode::kNoSpace)) << status.ToString();
  EXPECT_NE(status.message().find("readers"), std::string::npos) << status.ToString();
  EXPECT_EQ(Read(*file, content.size()).value(), content);
  const uint64_t before = resets();
  file.reset();
  AwaitResets(before + 15);
  Write("/again", kMiB);
}

TEST_F(PinnedFilesTest, BeyondTheBoundAFullDeviceTakesItFromTheReaderWhichPinsAgainWhatExists) {
  options_.reader_hold = 10;
  MountBoth();
  const std::string content = Write("/a");
  const std::string large = Write("/large", 6 * kMiB);
  auto file = reader_->OpenForRead("/a").value();
  auto lost = reader_->OpenForRead("/large").value();
  Remove("/large");
  Churn();
  EXPECT_EQ(Read(*lost, large.size()).value(), large) << "there is other space";
  EXPECT_TRUE(Fill().Is(StatusCode::kNoSpace));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Read(*lost, large.size()).status().Is(StatusCode::kIoError));
  EXPECT_EQ(Read(*file).value(), content);
  Remove("/a");
  for (int i = 0; i < 5; ++i) Remove(fmt::format("/{}", i));
  Churn();
  EXPECT_EQ(Read(*file).value(), content);
}

TEST_F(PinnedFilesTest, AReaderWithoutSharedMemoryIsToldThatAFileWasRemoved) {
  MountWriter();
  MountOptions options = options_;
  options.kept_memory_directory = directory_ + "/none";
  reader_ = NewReader(options);
  const std::string content = Write("/a");
  auto file = reader_->OpenForRead("/a").value();
  EXPECT_EQ(Read(*file).value(), content);
  Remove("/a");
  EXPECT_TRUE(Read(*file).status().Is(StatusCode::kIoError));
}

// As in two containers, each with a /dev/shm of its own.
TEST_F(PinnedFilesTest, AReaderThatTheWriterDoesNotSeeIsToldThatAFileWasRemoved) {
  MountWriter();
  MountOptions options = options_;
  options.kept_memory_directory = directory_ + "/other";
  std::filesystem::create_directories(options.kept_memory_directory);
  reader_ = NewReader(options);
  Write("/a");
  auto file = reader_->OpenForRead("/a").value();
  ISOZONE_EXPECT_OK(Read(*file).status());
  Remove("/a");
  Churn();
  EXPECT_TRUE(Read(*file).status().Is(StatusCode::kIoError));
}

// As a cleaner of temporary files does, or the service manager when a user logs out.
TEST_F(PinnedFilesTest, AReaderWhoseSharedMemoryWasRemovedPinsAgain) {
  MountBoth();
  const std::string content = Write("/a");
  auto file = reader_->OpenForRead("/a").value();
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path().string().find("-reader-") != std::string::npos) std::filesystem::remove(entry.path());
  }
  EXPECT_EQ(Read(*file).value(), content);
  Remove("/a");
  Churn();
  EXPECT_EQ(Read(*file).value(), content);
}

TEST_F(PinnedFilesTest, AFileOfADeviceThatWasFormattedIsNotRead) {
  MountBoth();
  Write("/a");
  auto file = reader_->OpenForRead("/a").value();
  ISOZONE_ASSERT_OK(writer_->Unmount());
  writer_.reset();
  FormatOptions format{"another", false};
  format.force = true;
  ISOZONE_ASSERT_OK(FormatDevice(*Open(OpenMode::kReadWrite), format));
  EXPECT_TRUE(Read(*file).status().Is(StatusCode::kIoError));
}

// Readers that open and read whatever there is, while files come, move and go as fast as they can: each file says what
// it has to hold.
TEST_F(PinnedFilesTest, WhateverTheWriterDoesAReaderReadsWhatItHasOpened) {
  MountWriter();
  reader_ = NewReader(options_);
  const auto content = [](int number) {
    Random random(static_cast<uint64_t>(number));
    return fmt::format("{:08}", number) + RandomBytes(random, kFileSize);
  };
  std::atomic<bool> over{false};
  std::atomic<int> read{0};
  std::jthread reading([&] {
    while (!over) {
      auto file = reader_->OpenForRead(fmt::format("/{}", read % 10));
      if (!file.ok()) continue;
      for (int again = 0; again < 3; ++again) {
        const auto found = Read(**file, kFileSize + 8);
        ASSERT_TRUE(found.ok()) << found.status().ToString();
        if (found->empty()) break;  // it was seen before it had been written
        ASSERT_EQ(*found, content(std::stoi(found->substr(0, 8)))) << "file " << found->substr(0, 8);
      }
      ++read;
    }
  });
  for (int number = 0; number < 300; ++number) {
    auto file = writer_->Create("/new", {.kind = FileKind::kData}).value();
    ISOZONE_ASSERT_OK(file->Append(Bytes(content(number))));
    ISOZONE_ASSERT_OK(file->Sync());
    ISOZONE_ASSERT_OK(file->Close());
    ISOZONE_ASSERT_OK(writer_->Rename("/new", fmt::format("/{}", number % 10)));
    if (number % 10 == 0) ISOZONE_ASSERT_OK(writer_->collection().Run(100, {}).status());
  }
  while (read < 10) std::this_thread::yield();
  over = true;
}

}  // namespace
}  // namespace isozone
