// Reading and writing files, through rocksdb::FileSystem.

#include <atomic>
#include <bit>
#include <thread>

#include "base/random.h"
#include "integration/scratch.h"
#include "rocksdb/adapter/rocksdb_version.h"

namespace isozone {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSReadRequest;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class FilesTest : public ScratchDevice {
 protected:
  void SetUp() override {
    ScratchDevice::SetUp();
    fs_ = Open();
    ASSERT_NE(fs_, nullptr);
  }
  std::unique_ptr<rocksdb::FSWritableFile> Create(const std::string& name, const FileOptions& options = FileOptions()) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    ISOZONE_EXPECT_OK(fs_->NewWritableFile(name, options, &file, nullptr));
    return file;
  }
  std::unique_ptr<rocksdb::FSRandomAccessFile> OpenRandom(const std::string& name,
                                                          const FileOptions& options = FileOptions()) {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    ISOZONE_EXPECT_OK(fs_->NewRandomAccessFile(name, options, &file, nullptr));
    return file;
  }
  static std::string ReadAt(const rocksdb::FSRandomAccessFile& file, uint64_t offset, size_t length) {
    std::string scratch(length, '\0');
    Slice read;
    ISOZONE_EXPECT_OK(file.Read(offset, length, IOOptions(), &read, scratch.data(), nullptr));
    return read.ToString();
  }

  std::shared_ptr<rocksdb::FileSystem> fs_;
};

TEST_F(FilesTest, CreatingTruncatesWhatWasThere) {
  WriteFile(*fs_, "/x", "long content");
  WriteFile(*fs_, "/x", "short");
  EXPECT_EQ(ReadFile(*fs_, "/x"), "short");
  EXPECT_EQ(SizeOf(*fs_, "/x"), 5U);
}

TEST_F(FilesTest, ReopeningAppends) {
  for (const std::string name : {"/000001.log", "/000002.sst", "/OPTIONS-000003"}) {
    WriteFile(*fs_, name, "first ");
    std::unique_ptr<rocksdb::FSWritableFile> file;
    ISOZONE_ASSERT_OK(fs_->ReopenWritableFile(name, FileOptions(), &file, nullptr));
    EXPECT_EQ(file->GetFileSize(IOOptions(), nullptr), 6U);
    ISOZONE_ASSERT_OK(file->Append("second", IOOptions(), nullptr));
    ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
    EXPECT_EQ(ReadFile(*fs_, name), "first second") << name;
  }
}

TEST_F(FilesTest, ReopeningCreatesWhatIsMissing) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ISOZONE_ASSERT_OK(fs_->ReopenWritableFile("/new", FileOptions(), &file, nullptr));
  ISOZONE_ASSERT_OK(file->Append("x", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs_, "/new"), "x");
}

TEST_F(FilesTest, ReusingStartsANewFileUnderTheNewName) {
  WriteFile(*fs_, "/000001.log", std::string(100000, 'o'));
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ISOZONE_ASSERT_OK(fs_->ReuseWritableFile("/000002.log", "/000001.log", FileOptions(), &file, nullptr));
  ISOZONE_ASSERT_OK(file->Append("new", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs_, "/000002.log"), "new");
  EXPECT_TRUE(fs_->FileExists("/000001.log", IOOptions(), nullptr).IsNotFound());
}

TEST_F(FilesTest, FlushedDataIsReadableThroughOtherHandles) {
  for (const std::string name : {"/000001.log", "/MANIFEST-000001", "/000002.sst", "/LOG"}) {
    std::unique_ptr<rocksdb::FSWritableFile> file = Create(name);
    std::string expected;
    for (int i = 0; i < 50; ++i) {
      const std::string piece = Bytes(static_cast<size_t>(i) * 97 + 1, static_cast<uint64_t>(i));
      ISOZONE_ASSERT_OK(file->Append(piece, IOOptions(), nullptr));
      ISOZONE_ASSERT_OK(file->Flush(IOOptions(), nullptr));
      expected += piece;
      ASSERT_EQ(SizeOf(*fs_, name), expected.size()) << name;
      ASSERT_EQ(ReadFile(*fs_, name), expected) << name;
    }
    ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
    EXPECT_EQ(ReadFile(*fs_, name), expected) << name;
  }
}

TEST_F(FilesTest, AReaderFollowsAWriter) {
  std::unique_ptr<rocksdb::FSWritableFile> file = Create("/000001.log");
  std::unique_ptr<rocksdb::FSSequentialFile> reader;
  ISOZONE_ASSERT_OK(fs_->NewSequentialFile("/000001.log", FileOptions(), &reader, nullptr));
  for (uint64_t i = 0; i < 20; ++i) {
    const std::string piece = Bytes(30000, i);
    ISOZONE_ASSERT_OK(file->Append(piece, IOOptions(), nullptr));
    ISOZONE_ASSERT_OK(file->Flush(IOOptions(), nullptr));
    std::string scratch(40000, '\0');
    Slice read;
    ISOZONE_ASSERT_OK(reader->Read(scratch.size(), IOOptions(), &read, scratch.data(), nullptr));
    EXPECT_EQ(read, Slice(piece));
    ISOZONE_ASSERT_OK(reader->Read(scratch.size(), IOOptions(), &read, scratch.data(), nullptr));
    EXPECT_TRUE(read.empty());
  }
}

TEST_F(FilesTest, SequentialReadsAndSkipsSeeTheFileInOrder) {
  const std::string content = Bytes(3 << 20, 5);
  WriteFile(*fs_, "/000001.sst", content);
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  ISOZONE_ASSERT_OK(fs_->NewSequentialFile("/000001.sst", FileOptions(), &file, nullptr));
  Random random(17);
  uint64_t position = 0;
  while (position < content.size()) {
    if (random.Chance(0.2)) {
      const uint64_t skip = random.Below(50000);
      ISOZONE_ASSERT_OK(file->Skip(skip));
      position += skip;
    }
    const size_t length = random.Chance(0.1) ? 600000 : random.Below(40000) + 1;
    std::string scratch(length, '\0');
    Slice read;
    ISOZONE_ASSERT_OK(file->Read(length, IOOptions(), &read, scratch.data(), nullptr));
    const std::string expected = position < content.size() ? content.substr(position, length) : "";
    ASSERT_EQ(read, Slice(expected)) << "at " << position;
    position += read.size();
  }
}

TEST_F(FilesTest, SequentialReadsOfSmallPiecesReadAhead) {
  WriteFile(*fs_, "/000001.log", Bytes(1 << 20, 5));
  const uint64_t before = ClassBytes(*fs_, "wal", "reads");
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  ISOZONE_ASSERT_OK(fs_->NewSequentialFile("/000001.log", FileOptions(), &file, nullptr));
  char scratch[1024];
  Slice read;
  for (int i = 0; i < 1024; ++i) ISOZONE_ASSERT_OK(file->Read(sizeof(scratch), IOOptions(), &read, scratch, nullptr));
  EXPECT_LT(ClassBytes(*fs_, "wal", "reads") - before, 40U);
}

TEST_F(FilesTest, RandomReadsAtTheEndAreShort) {
  WriteFile(*fs_, "/x", "0123456789");
  const auto file = OpenRandom("/x");
  EXPECT_EQ(ReadAt(*file, 0, 10), "0123456789");
  EXPECT_EQ(ReadAt(*file, 7, 100), "789");
  EXPECT_EQ(ReadAt(*file, 10, 1), "");
  EXPECT_EQ(ReadAt(*file, 1000, 1), "");
  EXPECT_EQ(ReadAt(*file, 3, 0), "");
}

TEST_F(FilesTest, DirectReadsAskForBlocksAndTakeAnyOffset) {
  const std::string content = Bytes(100000, 8);
  WriteFile(*fs_, "/000001.sst", content);
  FileOptions direct;
  direct.use_direct_reads = true;
  const auto file = OpenRandom("/000001.sst", direct);
  EXPECT_TRUE(file->use_direct_io());
  const size_t block = file->GetRequiredBufferAlignment();
  EXPECT_TRUE(std::has_single_bit(block));
  if (NamedDevice() == nullptr) {
    EXPECT_EQ(block, 4096U);
  }
  EXPECT_EQ(ReadAt(*file, 4096, 8192), content.substr(4096, 8192));
  EXPECT_EQ(ReadAt(*file, 4097, 3), content.substr(4097, 3));
  EXPECT_FALSE(OpenRandom("/000001.sst")->use_direct_io());
}

TEST_F(FilesTest, ReadsWithoutMemoryOfTheCallersWorkAsFromAMapping) {
  const std::string content = Bytes(50000, 8);
  WriteFile(*fs_, "/000001.sst", content);
  FileOptions mapped;
  mapped.use_mmap_reads = true;
  const auto file = OpenRandom("/000001.sst", mapped);
  Slice all;
  ISOZONE_ASSERT_OK(file->Read(0, content.size(), IOOptions(), &all, nullptr, nullptr));
  EXPECT_EQ(all, Slice(content));
  Slice part;
  ISOZONE_ASSERT_OK(file->Read(49990, 100, IOOptions(), &part, nullptr, nullptr));
  EXPECT_EQ(part.ToString(), content.substr(49990));
  EXPECT_EQ(all, Slice(content)) << "the first result must stay valid";
}

TEST_F(FilesTest, MultiReadAnswersEachRequest) {
  const std::string content = Bytes(1 << 20, 9);
  WriteFile(*fs_, "/000001.sst", content);
  const auto file = OpenRandom("/000001.sst");
  std::vector<FSReadRequest> requests(40);
  std::vector<std::string> scratch(requests.size(), std::string(9000, '\0'));
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].offset = i * 27011;  // the last lie beyond the end
    requests[i].len = 9000;
    requests[i].scratch = scratch[i].data();
  }
  ISOZONE_ASSERT_OK(file->MultiRead(requests.data(), requests.size(), IOOptions(), nullptr));
  for (const FSReadRequest& request : requests) {
    ISOZONE_EXPECT_OK(request.status);
    const std::string expected = request.offset < content.size() ? content.substr(request.offset, request.len) : "";
    EXPECT_EQ(request.result, Slice(expected)) << "at " << request.offset;
  }
}

class AsyncReadTest : public FilesTest {
 protected:
  struct Answer {
    int calls = 0;
    IOStatus status;
    std::string data;
  };

  void SetUp() override {
    FilesTest::SetUp();
    content_ = Bytes(1 << 20, 10);
    WriteFile(*fs_, "/000001.sst", content_);
    file_ = OpenRandom("/000001.sst");
  }
  void* Submit(uint64_t offset, std::string& scratch, Answer& answer) {
    FSReadRequest request;
    request.offset = offset;
    request.len = scratch.size();
    request.scratch = scratch.data();
    void* handle = nullptr;
    ISOZONE_EXPECT_OK(file_->ReadAsync(
        request, IOOptions(),
        [](const FSReadRequest& done, void* context) {
          auto& result = *static_cast<Answer*>(context);
          ++result.calls;
          result.status = done.status;
          result.data = done.result.ToString();
        },
        &answer, &handle, &deleter_, nullptr));
    return handle;
  }

  std::string content_;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  rocksdb::IOHandleDeleter deleter_;
};

TEST_F(AsyncReadTest, PollDeliversEachReadOnce) {
  std::vector<Answer> answers(16);
  std::vector<std::string> scratch(answers.size(), std::string(10000, '\0'));
  std::vector<void*> handles;
  for (size_t i = 0; i < answers.size(); ++i) handles.push_back(Submit(i * 65537, scratch[i], answers[i]));
  for (const Answer& answer : answers) EXPECT_EQ(answer.calls, 0) << "callbacks run in Poll";
  ISOZONE_ASSERT_OK(fs_->Poll(handles, handles.size()));
  ISOZONE_ASSERT_OK(fs_->Poll(handles, handles.size()));
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].calls, 1);
    ISOZONE_EXPECT_OK(answers[i].status);
    EXPECT_EQ(answers[i].data, content_.substr(i * 65537, 10000));
    deleter_(handles[i]);
  }
}

TEST_F(AsyncReadTest, AbortTellsTheCallback) {
  Answer answer;
  std::string scratch(10000, '\0');
  std::vector<void*> handles{Submit(0, scratch, answer)};
  ISOZONE_ASSERT_OK(fs_->AbortIO(handles));
  EXPECT_EQ(answer.calls, 1);
  EXPECT_TRUE(answer.status.IsAborted());
  ISOZONE_ASSERT_OK(fs_->Poll(handles, 1));
  EXPECT_EQ(answer.calls, 1);
  deleter_(handles[0]);
}

TEST_F(AsyncReadTest, AHandleMayBeDroppedWithoutPoll) {
  Answer answer;
  std::string scratch(10000, '\0');
  deleter_(Submit(0, scratch, answer));
  EXPECT_EQ(answer.calls, 0);
}

#if ISOZONE_ROCKSDB_HAS_SUPPORTED_OPS
TEST_F(AsyncReadTest, AsyncReadsAreAdvertisedAndPrefetchIsNot) {
  int64_t supported = 0;
  fs_->SupportedOps(supported);
  EXPECT_EQ(supported, 1 << rocksdb::FSSupportedOps::kAsyncIO);
}
#endif

#if ISOZONE_ROCKSDB_HAS_READER_FILE_SIZE
TEST_F(FilesTest, AnOpenFileKnowsItsSize) {
  WriteFile(*fs_, "/x", "12345");
  const auto file = OpenRandom("/x");
  ISOZONE_ASSERT_OK(fs_->DeleteFile("/x", IOOptions(), nullptr));
  uint64_t size = 0;
  ISOZONE_ASSERT_OK(file->GetFileSize(&size));
  EXPECT_EQ(size, 5U);
}
#endif

TEST_F(FilesTest, DeletedFilesStayReadableWhileOpen) {
  const std::string content = Bytes(1 << 20, 11);
  WriteFile(*fs_, "/000001.sst", content);
  const auto file = OpenRandom("/000001.sst");
  ISOZONE_ASSERT_OK(fs_->DeleteFile("/000001.sst", IOOptions(), nullptr));
  EXPECT_TRUE(fs_->FileExists("/000001.sst", IOOptions(), nullptr).IsNotFound());
  for (uint64_t i = 2; i < 12; ++i) WriteFile(*fs_, "/00000" + std::to_string(i) + ".sst", Bytes(6 << 20, i));
  EXPECT_EQ(ReadAt(*file, 0, content.size()), content);
}

TEST_F(FilesTest, FilesOutliveTheirFileSystemObject) {
  auto file = Create("/x");
  ISOZONE_ASSERT_OK(file->Append("content", IOOptions(), nullptr));
  fs_.reset();
  ISOZONE_EXPECT_OK(file->Sync(IOOptions(), nullptr));
  ISOZONE_EXPECT_OK(file->Close(IOOptions(), nullptr));
  file.reset();
  fs_ = Open();
  EXPECT_EQ(ReadFile(*fs_, "/x"), "content");
}

TEST_F(FilesTest, AFileThatIsDroppedAfterItsFileSystemObjectKeepsItsContent) {
  auto file = Create("/x");
  ISOZONE_ASSERT_OK(file->Append("content", IOOptions(), nullptr));
  fs_.reset();
  file.reset();
  fs_ = Open();
  EXPECT_EQ(ReadFile(*fs_, "/x"), "content");
}

TEST_F(FilesTest, WhoOpensWhileTheLastUserLeavesWaitsForIt) {
  fs_.reset();
  const auto come_and_go = [this] {
    for (int i = 0; i < 50; ++i) EXPECT_NE(Open(), nullptr);
  };
  std::thread other(come_and_go);
  come_and_go();
  other.join();
}

TEST_F(FilesTest, TruncateCutsAWriterAndAClosedFile) {
  auto file = Create("/000001.sst");
  ISOZONE_ASSERT_OK(file->Append(std::string(10000, 'a'), IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Truncate(6000, IOOptions(), nullptr));
  EXPECT_EQ(file->GetFileSize(IOOptions(), nullptr), 6000U);
  ISOZONE_ASSERT_OK(file->Append("b", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs_, "/000001.sst"), std::string(6000, 'a') + "b");
  ISOZONE_ASSERT_OK(fs_->Truncate("/000001.sst", 10, IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs_, "/000001.sst"), std::string(10, 'a'));
}

TEST_F(FilesTest, PositionedAppendRewritesAPaddedTail) {
  auto file = Create("/000001.sst");
  const auto append_at = [&](uint64_t offset, const std::string& data) {
    return file->PositionedAppend(data, offset, IOOptions(), nullptr);
  };
  ISOZONE_ASSERT_OK(append_at(0, std::string(4096, 'a')));
  ISOZONE_ASSERT_OK(append_at(4096, "bb" + std::string(4094, '\0')));
  ISOZONE_ASSERT_OK(append_at(4096, "bbcc" + std::string(4092, '\0')));
  EXPECT_FALSE(append_at(100000, "x").ok());
  ISOZONE_ASSERT_OK(file->Truncate(4100, IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs_, "/000001.sst"), std::string(4096, 'a') + "bbcc");
}

TEST_F(FilesTest, RangeSyncAndHintsAreTaken) {
  auto file = Create("/000001.sst");
  file->SetWriteLifeTimeHint(rocksdb::Env::WLTH_LONG);
  EXPECT_EQ(file->GetWriteLifeTimeHint(), rocksdb::Env::WLTH_LONG);
  file->SetIOPriority(rocksdb::Env::IO_LOW);
  EXPECT_TRUE(file->IsSyncThreadSafe());
  const std::string content = Bytes(3 << 20, 12);
  ISOZONE_ASSERT_OK(file->Append(content, IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->RangeSync(0, 1 << 20, IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Fsync(IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_GE(ClassBytes(*fs_, "compaction-write", "bytes_written"), content.size());
}

TEST_F(FilesTest, SyncRunsBesideAppend) {
  auto file = Create("/000001.log");
  std::atomic<bool> stop{false};
  std::thread syncer([&] {
    while (!stop.load()) ISOZONE_EXPECT_OK(file->Sync(IOOptions(), nullptr));
  });
  std::string expected;
  for (uint64_t i = 0; i < 2000; ++i) {
    const std::string piece = Bytes(i % 700, i);
    ISOZONE_ASSERT_OK(file->Append(piece, IOOptions(), nullptr));
    ISOZONE_ASSERT_OK(file->Flush(IOOptions(), nullptr));
    expected += piece;
  }
  stop = true;
  syncer.join();
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs_, "/000001.log"), expected);
}

TEST_F(FilesTest, RandomRWFilesChangeInPlace) {
  std::string content = Bytes(100000, 13);
  WriteFile(*fs_, "/000001.sst", content);
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  ISOZONE_ASSERT_OK(fs_->NewRandomRWFile("/000001.sst", FileOptions(), &file, nullptr));
  const auto write = [&](uint64_t offset, const std::string& data) {
    content.resize(std::max(content.size(), offset + data.size()), '\0');
    content.replace(offset, data.size(), data);
    return file->Write(offset, data, IOOptions(), nullptr);
  };
  ISOZONE_ASSERT_OK(write(5000, "12345678"));
  ISOZONE_ASSERT_OK(write(0, "start"));
  ISOZONE_ASSERT_OK(write(99998, "beyond the end"));
  ISOZONE_ASSERT_OK(write(200000, "after a hole"));
  char scratch[8];
  Slice read;
  ISOZONE_ASSERT_OK(file->Read(5000, 8, IOOptions(), &read, scratch, nullptr));
  EXPECT_EQ(read.ToString(), "12345678");
  ISOZONE_EXPECT_OK(file->Flush(IOOptions(), nullptr));
  ISOZONE_EXPECT_OK(file->Sync(IOOptions(), nullptr));
  ISOZONE_EXPECT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_TRUE(ReadFile(*fs_, "/000001.sst") == content);
}

// RocksDB goes on writing to an info log that it could not write, and some builds of 7.8 end the process then.
TEST_F(FilesTest, AnInfoLogNeverFailsForWantOfSpace) {
  auto log = Create("/LOG");
  const std::string piece = Bytes(8 << 20, 14);
  for (int i = 0; i < 200; ++i) {
    ISOZONE_ASSERT_OK(log->Append(piece, IOOptions(), nullptr));
    ISOZONE_ASSERT_OK(log->Flush(IOOptions(), nullptr));
  }
  auto table = Create("/000001.sst");
  IOStatus status;
  for (int i = 0; i < 4 && status.ok(); ++i) status = table->Append(piece, IOOptions(), nullptr);
  if (status.ok()) status = table->Sync(IOOptions(), nullptr);
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
}

TEST_F(FilesTest, ErrorsOfAFullDeviceCanBeRetried) {
  auto file = Create("/000001.sst");
  const std::string piece = Bytes(8 << 20, 14);
  IOStatus status;
  for (int i = 0; i < 200 && status.ok(); ++i) {
    status = file->Append(piece, IOOptions(), nullptr);
    if (status.ok()) status = file->Sync(IOOptions(), nullptr);
  }
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_TRUE(status.GetRetryable());
  file->Close(IOOptions(), nullptr).PermitUncheckedError();
  file.reset();
  ISOZONE_ASSERT_OK(fs_->DeleteFile("/000001.sst", IOOptions(), nullptr));
  WriteFile(*fs_, "/000002.sst", piece);
  EXPECT_TRUE(ReadFile(*fs_, "/000002.sst") == piece);
}

}  // namespace
}  // namespace isozone
