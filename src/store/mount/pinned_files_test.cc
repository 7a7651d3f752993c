// Files that another process has open while the writer removes, moves and overwrites them. Writer and readers are two
// mounts of one image; they know of each other by files of shared memory alone, as in two processes.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "device/passing_device.h"
#include "store/kept/kept_layout.h"
#include "store/mount/format_device.h"
#include "store/mount/mounted_file_system.h"
#include "store/pins/pinning_readers.h"
#include "testing/manual_clock.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

constexpr size_t kFileSize = 300'000;

struct Owner {
  std::unique_ptr<ZonedDevice> owned;
};

// A device of which nothing can be read or asked for a while.
class FailingDevice final : private Owner, public PassingDevice {
 public:
  explicit FailingDevice(std::unique_ptr<ZonedDevice> device) : Owner{std::move(device)}, PassingDevice(*owned) {}

  // From the look number `looks` on, counted from 0. `at_first` is called at the first failure.
  void FailAfter(int looks, std::function<void()> at_first) {
    at_first_ = std::move(at_first);
    looks_left_ = looks;
  }
  // Returns whether anything has failed.
  bool Recover() { return looks_left_.exchange(INT_MAX) < 0; }

  Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const override {
    return Fails() ? Status::IoError("no zone can be asked for") : PassingDevice::ReportZones(first, out);
  }
  void Submit(DeviceRequest& request) override {
    if (!Fails()) return PassingDevice::Submit(request);
    request.status = DeviceStatus::kUnrecoveredReadError;
    request.done(request);
  }

 private:
  bool Fails() const {
    const int left = looks_left_.fetch_sub(1);
    if (left == 0 && at_first_) at_first_();
    return left <= 0;
  }

  mutable std::atomic<int> looks_left_{INT_MAX};
  std::function<void()> at_first_;
};

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
  std::unique_ptr<FileSystem> NewReader(const MountOptions& options) {
    return NewReader(options, Open(OpenMode::kReadOnly));
  }
  std::unique_ptr<FileSystem> NewReader(MountOptions options, std::unique_ptr<ZonedDevice> device) {
    options.read_only = true;
    return FileSystem::Mount(std::move(device), options, clock_).value();
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

struct FailingRefresh {
  bool replaced = false;  // the metadata lies elsewhere
  bool closed = false;    // logs are closed meanwhile, so that the refresh alone has them
};

class FailingRefreshTest : public PinnedFilesTest, public testing::WithParamInterface<FailingRefresh> {
 protected:
  struct Log {
    std::string path;
    std::unique_ptr<FileWriter> writer;
    std::string content;
    std::unique_ptr<FileReader> reader;
  };

  void SetUp() override {
    PinnedFilesTest::SetUp();
    MountWriter();
    auto device = std::make_unique<FailingDevice>(Open(OpenMode::kReadOnly));
    failing_ = device.get();
    reader_ = NewReader(options_, std::move(device));
    for (Log& log : logs_) log.writer = writer_->Create(log.path, {.kind = FileKind::kLog}).value();
    WriteLogs();
    data_ = Write("/data");
  }
  void TearDown() override {
    for (Log& log : logs_) log.writer.reset();
    PinnedFilesTest::TearDown();
  }
  void WriteLogs() {
    for (Log& log : logs_) {
      const std::string more = RandomBytes(random_, 20'000);
      ISOZONE_EXPECT_OK(log.writer->Append(Bytes(more)));
      ISOZONE_EXPECT_OK(log.writer->Sync());
      log.content += more;
    }
  }
  void OpenLogs() {
    for (Log& log : logs_) log.reader = reader_->OpenForRead(log.path).value();
  }
  void CloseLogs() {
    for (Log& log : logs_) log.reader.reset();
  }
  // Overwrites, appends, removes and moves.
  void ChangeFiles() {
    const std::string written = RandomBytes(random_, 5000);
    ISOZONE_ASSERT_OK(writer_->Overwrite("/data", 10'000, Bytes(written)));
    data_.replace(10'000, written.size(), written);
    WriteLogs();
    Remove("/removed");
    ISOZONE_ASSERT_OK(writer_->collection().Run(100, {}).status());
    if (GetParam().replaced) ISOZONE_ASSERT_OK(ContextOf(*writer_).catalog.journal->Checkpoint());
  }
  static MountContext& ContextOf(FileSystem& fs) { return static_cast<MountedFileSystem&>(fs).context(); }
  size_t OpenFiles() {
    MountContext& context = ContextOf(*reader_);
    const MutexLock lock(context.catalog.namespace_mutex);
    return context.catalog.open_files.size();
  }

  FailingDevice* failing_ = nullptr;
  std::array<Log, 2> logs_ = {Log{"/log", {}, {}, {}}, Log{"/another", {}, {}, {}}};
  std::string data_;
};

// Wherever a refresh fails, the next one makes up for it. Nothing stays as it was, and nothing stays open or pinned for
// which nobody asks any more.
TEST_P(FailingRefreshTest, IsMadeUpForByTheNext) {
  int failures = 0;
  bool failed = true;
  for (int looks = 0; failed; ++looks) {
    SCOPED_TRACE(fmt::format("nothing can be read from look {} on", looks));
    const std::string removed = Write("/removed");
    auto data_file = reader_->OpenForRead("/data").value();
    auto removed_file = reader_->OpenForRead("/removed").value();
    OpenLogs();
    ASSERT_NO_FATAL_FAILURE(ChangeFiles());

    failing_->FailAfter(looks, [this] {
      if (GetParam().closed) CloseLogs();
    });
    const Status refreshed = reader_->Stat("/data").status();
    failed = failing_->Recover();
    EXPECT_TRUE(refreshed.ok() || failed) << refreshed.ToString();
    failures += refreshed.ok() ? 0 : 1;
    EXPECT_EQ(OpenFiles(), failed && GetParam().closed ? 2U : 4U);
    if (GetParam().closed) OpenLogs();

    for (const Log& log : logs_) EXPECT_TRUE(Read(*log.reader, log.content.size() + 1).value() == log.content);
    EXPECT_TRUE(Read(*data_file).value() == data_);
    EXPECT_TRUE(Read(*removed_file).value() == removed);
    EXPECT_TRUE(reader_->Stat("/removed").status().Is(StatusCode::kNotFound));
    data_file.reset();
    removed_file.reset();
    CloseLogs();
    EXPECT_EQ(OpenFiles(), 0U);
    EXPECT_TRUE(PinnedZones(*device_, writer_->state().uuid(), directory_).empty());
  }
  EXPECT_GT(failures, 2);
  for (Log& log : logs_) ISOZONE_EXPECT_OK(log.writer->Close());
}

INSTANTIATE_TEST_SUITE_P(Refreshes, FailingRefreshTest,
                         testing::Values(FailingRefresh{false, false}, FailingRefresh{false, true},
                                         FailingRefresh{true, false}, FailingRefresh{true, true}));

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
