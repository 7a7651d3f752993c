// Several processes and one device: crashes, readers beside a writer, ends of processes.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "integration/scratch.h"
#include "integration/two_processes.h"
#include "isozone/isozone.h"

namespace isozone {
namespace {

using rocksdb::DB;
using rocksdb::ReadOptions;
using rocksdb::WriteOptions;

// A running integration_child, with pipes to its standard input and output.
class Child {
 public:
  Child(const std::string& command, const std::string& uri, uint64_t number) {
    int in[2];
    int out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::string count = std::to_string(number);
    std::string words[] = {ISOZONE_INTEGRATION_CHILD, command, uri, count};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = fdopen(in[1], "w");
    from_ = fdopen(out[0], "r");
  }
  ~Child() {
    if (pid_ > 0) Kill();
    if (to_ != nullptr) std::fclose(to_);
    std::fclose(from_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next line of its output; empty at the end.
  std::string ReadLine() {
    char line[100] = "";
    if (std::fgets(line, sizeof(line), from_) == nullptr) return "";
    std::string text(line);
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  void Continue() {
    std::fclose(to_);
    to_ = nullptr;
  }
  void Kill() {
    kill(pid_, SIGKILL);
    Wait();
  }
  // Its exit status; -1 where it was killed.
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

class ProcessesTest : public ScratchDevice {
 protected:
  // How many keys there are; they must be without gaps, and each with its value.
  uint64_t CountKeys(const std::string& path = kTwoProcessPath) {
    const std::unique_ptr<rocksdb::Env> env = OpenEnv();
    std::unique_ptr<DB> db;
    ISOZONE_EXPECT_OK(OpenDb(TwoProcessOptions(env.get()), path, &db));
    if (db == nullptr) return 0;
    const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(ReadOptions()));
    uint64_t count = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++count) {
      EXPECT_EQ(iterator->key(), rocksdb::Slice(Key(count)));
      EXPECT_EQ(iterator->value(), rocksdb::Slice(TwoProcessValue(count)));
      if (HasFailure()) break;
    }
    ISOZONE_EXPECT_OK(iterator->status());
    return count;
  }
};

TEST_F(ProcessesTest, SyncedWritesSurviveAKill) {
  uint64_t written = 0;
  for (int round = 0; round < 8 && !HasFailure(); ++round) {
    uint64_t synced = 0;
    {
      Child writer("write-forever", Uri(), written);
      const uint64_t goal = written + 200 + static_cast<uint64_t>(round) * 397;
      while (synced < goal) {
        const std::string line = writer.ReadLine();
        ASSERT_FALSE(line.empty()) << "the writer ended";
        synced = std::stoull(line);
      }
      writer.Kill();
    }
    written = CountKeys();
    EXPECT_GE(written, synced);
  }
}

TEST_F(ProcessesTest, WhatAProcessLeavesOpenIsSyncedAtItsEnd) {
  EXPECT_EQ(Child("leak-database", Uri(), 5000).Wait(), 0);
  EXPECT_EQ(CountKeys(), 5000U);
}

TEST_F(ProcessesTest, AProcessMayEndWhileAListenerHasADatabaseCompacted) {
  EXPECT_EQ(Child("leak-steered-database", Uri(), 20'000).Wait(), 0);
  EXPECT_EQ(CountKeys(), 20'000U);
}

TEST_F(ProcessesTest, AFileSystemLeftOpenIsUnmountedAtTheEndWithStatistics) {
  const std::string stats_file = scratch_.path() + "/stats.json";
  EXPECT_EQ(Child("leak-file-system", Uri("stats_file=" + stats_file), 5000).Wait(), 0);
  std::ifstream file(stats_file);
  const nlohmann::json stats = nlohmann::json::parse(file);
  EXPECT_GT(stats.at("classes").at("wal").at("bytes_written").get<uint64_t>(), 5000U * 200);
  EXPECT_GT(stats.at("user_bytes_appended").get<uint64_t>(), 5000U * 200);
  EXPECT_GE(stats.at("write_amplification").get<double>(), 1.0);
  EXPECT_EQ(CountKeys(), 5000U);
}

TEST_F(ProcessesTest, ADatabaseOpenedByAnOptionsFileLiesOnTheDeviceAndNotOnTheLocalDisk) {
  const std::string envs[] = {Uri().substr(0, Uri().find('?')), "{id=" + Uri("policy=lifetime&log_width=4") + "}"};
  for (const std::string& env : envs) {
    const std::string file = scratch_.path() + "/OPTIONS-" + std::to_string(env.size());
    const std::string database = file + ".db";
    std::ofstream(file) << "[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n"
                        << "[DBOptions]\n  create_if_missing=true\n  env=" << env << "\n"
                        << "[CFOptions \"default\"]\n[TableOptions/BlockBasedTable \"default\"]\n";
    EXPECT_EQ(Child("load-options-file", file, 1000).Wait(), 0) << env;
    EXPECT_FALSE(std::filesystem::exists(database)) << env;
    std::vector<std::string> children;
    ISOZONE_EXPECT_OK(Open()->GetChildren(database, rocksdb::IOOptions(), &children, nullptr));
    EXPECT_THAT(children, ::testing::Contains(::testing::EndsWith(".sst")));
    EXPECT_THAT(children, ::testing::Contains("LOG"));
    EXPECT_EQ(CountKeys(database), 1001U) << env;
  }
}

TEST_F(ProcessesTest, AForkedChildTouchesNothing) {
  EXPECT_EQ(Child("fork", Uri(), 5000).Wait(), 0);
  EXPECT_EQ(CountKeys(), 5000U);
}

TEST_F(ProcessesTest, ASecondWriterIsRefusedWhileADeviceIsHeld) {
  Child holder("hold-database", Uri(), 100);
  ASSERT_EQ(holder.ReadLine(), "ready");
  std::shared_ptr<rocksdb::FileSystem> fs;
  const rocksdb::Status refused = OpenFileSystem(Uri(), &fs);
  EXPECT_TRUE(refused.IsBusy()) << refused.ToString();
  EXPECT_EQ(fs, nullptr);
  holder.Continue();
  EXPECT_EQ(holder.Wait(), 0);
  EXPECT_EQ(CountKeys(), 100U);
}

TEST_F(ProcessesTest, AReadOnlyMountSeesALiveDatabase) {
  Child holder("hold-database", Uri(), 3000);
  ASSERT_EQ(holder.ReadLine(), "ready");
  const std::unique_ptr<rocksdb::Env> env = OpenEnv("read_only=on");
  std::unique_ptr<DB> db;
  ISOZONE_ASSERT_OK(OpenInto(&db, ISOZONE_OPEN(OpenForReadOnly, TwoProcessOptions(env.get()), kTwoProcessPath)));
  for (uint64_t i = 0; i < 3000; ++i) {
    std::string value;
    ISOZONE_ASSERT_OK(db->Get(ReadOptions(), Key(i), &value));
    ASSERT_EQ(rocksdb::Slice(value), rocksdb::Slice(TwoProcessValue(i)));
  }
  std::unique_ptr<rocksdb::FSWritableFile> file;
  EXPECT_FALSE(env->GetFileSystem()->NewWritableFile("/x", rocksdb::FileOptions(), &file, nullptr).ok());
  EXPECT_FALSE(env->CreateDir("/new").ok());
  ISOZONE_EXPECT_OK(env->CreateDirIfMissing(kTwoProcessPath));
}

TEST_F(ProcessesTest, ASecondaryInAnotherProcessFollowsTheWriter) {
  const std::unique_ptr<rocksdb::Env> env = OpenEnv();
  std::unique_ptr<DB> db;
  // RocksDB's secondaries miss keys while the primary compacts or flushes beside their catch-up, on POSIX as well.
  rocksdb::Options options = TwoProcessOptions(env.get());
  options.disable_auto_compactions = true;
  ISOZONE_ASSERT_OK(OpenDb(options, kTwoProcessPath, &db));
  const auto put = [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) ISOZONE_ASSERT_OK(db->Put(WriteOptions(), Key(i), TwoProcessValue(i)));
    ISOZONE_ASSERT_OK(db->SyncWAL());
  };
  put(0, 1900);
  ISOZONE_ASSERT_OK(db->Flush(rocksdb::FlushOptions()));
  put(1900, 2000);
  Child secondary("secondary", Uri("read_only=on"), 2000);
  ASSERT_EQ(secondary.ReadLine(), "ready");
  put(2000, 3900);
  ISOZONE_ASSERT_OK(db->Flush(rocksdb::FlushOptions()));
  put(3900, 4000);
  secondary.Continue();
  EXPECT_EQ(secondary.Wait(), 0);
}

}  // namespace
}  // namespace isozone
