// The ordinary file system on an emulated conventional SSD: what it costs, what it gives back, and that RocksDB runs on
// it. Mostly without timing: what is written and copied is counted all the same.

#include "conventional/disk_file_system.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <rocksdb/utilities/checkpoint.h>

#include "base/random.h"
#include "base/units.h"
#include "integration/scratch.h"

namespace isozone {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using ::testing::HasSubstr;

constexpr uint64_t kBlock = 4096;

class ConventionalTest : public ::testing::Test {
 protected:
  std::string Uri(const std::string& options) const {
    return "isozone-conventional://" + scratch_.path() + "/ssd?size=512M&" + options;
  }
  std::shared_ptr<DiskFileSystem> Open(const std::string& options = "timing=off") const {
    auto fs = DiskFileSystem::Open(Uri(options));
    ISOZONE_EXPECT_OK(fs.status());
    return fs.ok() ? std::shared_ptr<DiskFileSystem>(std::move(fs).value()) : nullptr;
  }
  static nlohmann::json Stats(const DiskFileSystem& fs) { return nlohmann::json::parse(fs.disk().StatsJson()); }
  static uint64_t Count(const DiskFileSystem& fs, const char* name) { return Stats(fs).at(name); }
  static uint64_t FreeBytes(rocksdb::FileSystem& fs) {
    uint64_t free = 0;
    ISOZONE_EXPECT_OK(fs.GetFreeSpace("/", IOOptions(), &free, nullptr));
    return free;
  }
  static std::unique_ptr<rocksdb::FSWritableFile> Create(rocksdb::FileSystem& fs, const std::string& name) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    ISOZONE_EXPECT_OK(fs.NewWritableFile(name, FileOptions(), &file, nullptr));
    return file;
  }

  const ScratchDirectory scratch_;
};

TEST_F(ConventionalTest, ErrorsAreOneLine) {
  const struct {
    std::string options;
    const char* says;
  } cases[] = {{"profile=small-zone", "is of a zoned SSD"},
               {"zones=5", "unknown option 'zones'"},
               {"size=5000G", "size"},
               {"discard=perhaps", "discard"},
               {"read_only=on", "one process"},
               {"age=many", "age"}};
  for (const auto& c : cases) {
    const Status status = DiskFileSystem::Open(Uri(c.options)).status();
    EXPECT_THAT(status.ToString(), HasSubstr(c.says));
    EXPECT_EQ(status.ToString().find('\n'), std::string::npos);
  }
  EXPECT_THAT(DiskFileSystem::Open("isozone://emu:/a").status().ToString(),
              HasSubstr("isozone-conventional://DIRECTORY"));
}

TEST_F(ConventionalTest, OneMountAndItsOptions) {
  const auto first = Open();
  const auto second = Open();
  WriteFile(*first, "/x", "1");
  EXPECT_EQ(ReadFile(*second, "/x"), "1");
  EXPECT_THAT(DiskFileSystem::Open(Uri("timing=off&age=1")).status().ToString(), HasSubstr("cannot also be"));
  const auto other = DiskFileSystem::Open("isozone-conventional://" + scratch_.path() + "/ssd/?size=512M&timing=off");
  ISOZONE_ASSERT_OK(other.status());
  EXPECT_EQ(FreeBytes(**other), FreeBytes(*first));
  WriteFile(**other, "/y", "2");
  EXPECT_EQ(FreeBytes(**other), FreeBytes(*first)) << "one mount, however its directory is written";
}

// Runs conventional_child; returns what it printed, and whether it succeeded.
std::pair<std::string, bool> RunChild(const std::string& command, const std::string& uri) {
  const std::string line =
      std::string(ISOZONE_CONVENTIONAL_CHILD) + " " + command + " '" + uri + "' 100 </dev/null 2>&1";
  FILE* child = popen(line.c_str(), "r");  // NOLINT(bugprone-command-processor): it writes to both outputs
  std::string output;
  for (int c = std::fgetc(child); c != EOF; c = std::fgetc(child)) output += static_cast<char>(c);
  return {output, pclose(child) == 0};
}

TEST_F(ConventionalTest, OneProcessAtATime) {
  auto fs = Open();
  const auto [output, succeeded] = RunChild("hold-database", Uri("timing=off"));
  EXPECT_FALSE(succeeded);
  EXPECT_THAT(output, HasSubstr("in use by another process"));
  fs.reset();
  EXPECT_TRUE(RunChild("hold-database", Uri("timing=off")).second);
}

// With a database or file system open, or with children that inherited them.
TEST_F(ConventionalTest, ProcessesEndAsTheyLike) {
  const std::string stats_file = scratch_.path() + "/stats.json";
  for (const std::string command : {"leak-database", "leak-file-system", "fork"}) {
    const auto [output, succeeded] = RunChild(command, Uri("speed=1000&stats_file=" + stats_file));
    EXPECT_TRUE(succeeded) << command << ": " << output;
    std::ifstream file(stats_file);
    EXPECT_GT(nlohmann::json::parse(file).at("host_bytes_written"), 0) << command;
    std::filesystem::remove(stats_file);
  }
}

TEST_F(ConventionalTest, ReadsAndWritesAreCharged) {
  const auto fs = Open();
  const uint64_t size = 3 * kMiB + 100;
  const std::string content = Bytes(size, 1);
  auto file = Create(*fs, "/x");
  ISOZONE_ASSERT_OK(file->Append(content, IOOptions(), nullptr));
  // Whole units go out as they come; the rest waits.
  EXPECT_EQ(Count(*fs, "host_bytes_written"), 3 * kMiB);
  ISOZONE_ASSERT_OK(file->Sync(IOOptions(), nullptr));
  const uint64_t journal = 3 * kBlock;
  EXPECT_EQ(Count(*fs, "host_bytes_written"), 3 * kMiB + kBlock + journal);
  ISOZONE_ASSERT_OK(file->Sync(IOOptions(), nullptr));  // nothing new
  EXPECT_EQ(Count(*fs, "host_bytes_written"), 3 * kMiB + kBlock + journal);
  // The block that was not full is written again, in place.
  ISOZONE_ASSERT_OK(file->Append("more", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Sync(IOOptions(), nullptr));
  EXPECT_EQ(Count(*fs, "host_bytes_written"), 3 * kMiB + 2 * kBlock + 2 * journal);
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));

  std::unique_ptr<rocksdb::FSRandomAccessFile> reader;
  ISOZONE_ASSERT_OK(fs->NewRandomAccessFile("/x", FileOptions(), &reader, nullptr));
  std::string scratch(10'000, '\0');
  rocksdb::Slice read;
  ISOZONE_ASSERT_OK(reader->Read(kMiB - 1, 10, IOOptions(), &read, scratch.data(), nullptr));
  EXPECT_EQ(read.ToString(), content.substr(kMiB - 1, 10));
  EXPECT_EQ(Count(*fs, "host_bytes_read"), 2 * kBlock);
  ISOZONE_ASSERT_OK(reader->Read(kMiB, 10'000, IOOptions(), &read, scratch.data(), nullptr));
  EXPECT_EQ(read.ToString(), content.substr(kMiB, 10'000));
  EXPECT_EQ(Count(*fs, "host_bytes_read"), 5 * kBlock);
  ISOZONE_ASSERT_OK(reader->Read(size + 4, 100, IOOptions(), &read, scratch.data(), nullptr));  // behind the end
  EXPECT_EQ(read.size(), 0U);
  EXPECT_EQ(Count(*fs, "host_bytes_read"), 5 * kBlock);
}

TEST_F(ConventionalTest, WhatWasNotWrittenOutIsReadFromMemory) {
  const auto fs = Open();
  auto file = Create(*fs, "/x");
  ISOZONE_ASSERT_OK(file->Append("buffered", IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs, "/x"), "buffered");
  EXPECT_EQ(Count(*fs, "host_bytes_read"), 0U);
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs, "/x"), "buffered");
  EXPECT_EQ(Count(*fs, "host_bytes_read"), kBlock);
}

TEST_F(ConventionalTest, AFullDeviceHasRoomAgainWhenFilesAreDeleted) {
  const auto fs = Open();
  const uint64_t free = FreeBytes(*fs);
  EXPECT_GT(free, 500 * kMiB);
  auto file = Create(*fs, "/x");
  const std::string unit(4 * kMiB, 'x');
  rocksdb::IOStatus status;
  uint64_t written = 0;
  while ((status = file->Append(unit, IOOptions(), nullptr)).ok()) written += unit.size();
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_EQ(written, RoundDown(free, unit.size()));
  EXPECT_EQ(SizeOf(*fs, "/x"), written);  // what did not fit is not in the file
  ISOZONE_ASSERT_OK(fs->DeleteFile("/x", IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free - written);  // it is still open
  file.reset();
  EXPECT_EQ(FreeBytes(*fs), free);
  WriteFile(*fs, "/y", unit);
}

TEST_F(ConventionalTest, BlocksLiveAsLongAsTheLastName) {
  const auto fs = Open();
  const uint64_t free = FreeBytes(*fs);
  WriteFile(*fs, "/a", std::string(10 * kBlock, 'a'));
  ISOZONE_ASSERT_OK(fs->LinkFile("/a", "/b", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(fs->DeleteFile("/a", IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free - 10 * kBlock);
  WriteFile(*fs, "/c", std::string(kBlock, 'c'));
  ISOZONE_ASSERT_OK(fs->RenameFile("/c", "/b", IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free - kBlock);
  ISOZONE_ASSERT_OK(fs->CreateDirIfMissing("/d/e", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(fs->RenameFile("/b", "/d/e/b", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(fs->RenameFile("/d", "/f", IOOptions(), nullptr));
  EXPECT_EQ(ReadFile(*fs, "/f/e/b"), std::string(kBlock, 'c'));
  ISOZONE_ASSERT_OK(fs->DeleteFile("/f/e/b", IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free);
}

// As POSIX has it, which leaves both names.
TEST_F(ConventionalTest, RenamingAFileToAnotherNameOfItIsNothing) {
  const auto fs = Open();
  const uint64_t free = FreeBytes(*fs);
  WriteFile(*fs, "/a", std::string(10 * kBlock, 'a'));
  ISOZONE_ASSERT_OK(fs->LinkFile("/a", "/b", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(fs->RenameFile("/a", "/b", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(fs->DeleteFile("/b", IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free - 10 * kBlock);
  EXPECT_EQ(ReadFile(*fs, "/a"), std::string(10 * kBlock, 'a'));
  EXPECT_EQ(Count(*fs, "host_bytes_read"), 10 * kBlock);
}

TEST_F(ConventionalTest, TruncatedBlocksAreFree) {
  const auto fs = Open();
  const uint64_t free = FreeBytes(*fs);
  WriteFile(*fs, "/a", std::string(10 * kBlock, 'a'));
  ISOZONE_ASSERT_OK(fs->Truncate("/a", 2 * kBlock + 1, IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free - 3 * kBlock);
  WriteFile(*fs, "/a", "short");
  EXPECT_EQ(FreeBytes(*fs), free - kBlock);
}

// What waits in memory has no blocks yet, but a place for them.
TEST_F(ConventionalTest, WhatWasTruncatedBeforeItWasWrittenOutKeepsItsPlace) {
  const auto fs = Open();
  const uint64_t free = FreeBytes(*fs);
  auto file = Create(*fs, "/x");
  ISOZONE_ASSERT_OK(file->Append(std::string(10 * kBlock, 'x'), IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Truncate(3 * kBlock, IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free - 3 * kBlock);
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free - 3 * kBlock);
  ISOZONE_ASSERT_OK(fs->DeleteFile("/x", IOOptions(), nullptr));
  file.reset();
  EXPECT_EQ(FreeBytes(*fs), free);
}

TEST_F(ConventionalTest, ARecycledLogIsWrittenInPlace) {
  const auto fs = Open();
  const uint64_t free = FreeBytes(*fs);
  WriteFile(*fs, "/1.log", std::string(10 * kBlock, 'a'));
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ISOZONE_ASSERT_OK(fs->ReuseWritableFile("/2.log", "/1.log", FileOptions(), &file, nullptr));
  ISOZONE_ASSERT_OK(file->Append(std::string(4 * kBlock, 'b'), IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free - 10 * kBlock);
  EXPECT_EQ(ReadFile(*fs, "/2.log"), std::string(4 * kBlock, 'b') + std::string(6 * kBlock, 'a'));
}

TEST_F(ConventionalTest, DeletedBlocksAreTrimmedIfAskedFor) {
  for (const bool discard : {false, true}) {
    const auto fs = Open(discard ? "timing=off&discard=on" : "timing=off");
    WriteFile(*fs, "/a", std::string(100 * kBlock, 'a'));
    ISOZONE_ASSERT_OK(fs->DeleteFile("/a", IOOptions(), nullptr));
    EXPECT_EQ(Count(*fs, "host_bytes_trimmed"), discard ? 100 * kBlock : 0);
  }
}

TEST_F(ConventionalTest, FilesHaveTheirBlocksAgainAfterAMount) {
  const std::string content = Bytes(5 * kMiB + 3, 1);
  uint64_t free = 0;
  {
    const auto fs = Open();
    ISOZONE_ASSERT_OK(fs->CreateDirIfMissing("/d", IOOptions(), nullptr));
    WriteFile(*fs, "/d/a", content);
    ISOZONE_ASSERT_OK(fs->LinkFile("/d/a", "/b", IOOptions(), nullptr));
    free = FreeBytes(*fs);
  }
  const auto fs = Open("timing=off&age=1");
  EXPECT_EQ(FreeBytes(*fs), free);
  EXPECT_EQ(Count(*fs, "host_bytes_written"), 0U);
  EXPECT_EQ(ReadFile(*fs, "/b"), content);
  EXPECT_GE(Count(*fs, "host_bytes_read"), content.size());
  ISOZONE_ASSERT_OK(fs->DeleteFile("/d/a", IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free);
  ISOZONE_ASSERT_OK(fs->DeleteFile("/b", IOOptions(), nullptr));
  EXPECT_EQ(FreeBytes(*fs), free + 1'281 * kBlock);
}

// Files written over and over: fresh, all of it goes to flash once; aged, the device copies what it does not know to be
// dead, unless it is told.
TEST_F(ConventionalTest, AnAgedDeviceWritesMore) {
  std::map<std::string, double> amplification;
  for (const std::string options : {"timing=off", "timing=off&age=3", "timing=off&age=3&discard=on"}) {
    const auto fs = Open(options);
    for (int i = 0; i < 50; ++i) WriteFile(*fs, "/f" + std::to_string(i % 10), std::string(4 * kMiB, 'x'));
    amplification[options] = Stats(*fs).at("write_amplification");
    for (int i = 0; i < 10; ++i) ISOZONE_ASSERT_OK(fs->DeleteFile("/f" + std::to_string(i), IOOptions(), nullptr));
  }
  EXPECT_EQ(amplification["timing=off"], 1.0);
  EXPECT_GT(amplification["timing=off&age=3"], 2.0);
  EXPECT_LT(amplification["timing=off&age=3&discard=on"], amplification["timing=off&age=3"]);
}

TEST_F(ConventionalTest, ManyThreadsWithTiming) {
  const auto fs = Open("speed=100&age=1");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "/" + std::to_string(t);
      for (uint64_t round = 0; round < 4; ++round) {
        const std::string content = Bytes(2 * kMiB + round, 10 * t + round);
        WriteFile(*fs, name, content);
        EXPECT_EQ(ReadFile(*fs, name), content);
      }
      ISOZONE_EXPECT_OK(fs->DeleteFile(name, IOOptions(), nullptr));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(Count(*fs, "copied_bytes"), 0U);
}

TEST_F(ConventionalTest, HoldsADatabase) {
  std::map<std::string, std::string> expected;
  Random random(1);
  for (int round = 0; round < 3; ++round) {
    const auto env = rocksdb::NewCompositeEnv(Open());
    rocksdb::Options options;
    options.env = env.get();
    options.create_if_missing = true;
    options.write_buffer_size = 256 * kKiB;
    options.recycle_log_file_num = 2;
    std::unique_ptr<rocksdb::DB> db;
    ISOZONE_ASSERT_OK(OpenDb(options, "/db", &db));
    for (int i = 0; i < 3'000; ++i) {
      const std::string key = Key(random.Below(2'000));
      const std::string value = Bytes(random.Between(1, 1'000), random.Next());
      rocksdb::WriteOptions write;
      write.sync = i % 100 == 0;
      ISOZONE_ASSERT_OK(db->Put(write, key, value));
      expected[key] = value;
    }
    rocksdb::Checkpoint* raw = nullptr;
    ISOZONE_ASSERT_OK(rocksdb::Checkpoint::Create(db.get(), &raw));
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
    ISOZONE_ASSERT_OK(checkpoint->CreateCheckpoint("/checkpoint" + std::to_string(round)));
    ISOZONE_ASSERT_OK(db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
    for (const auto& [key, value] : expected) {
      std::string found;
      ISOZONE_ASSERT_OK(db->Get(rocksdb::ReadOptions(), key, &found));
      ASSERT_EQ(found, value);
    }
  }
}

}  // namespace
}  // namespace isozone
