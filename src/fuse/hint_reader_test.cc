#include "fuse/hint_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

class HintReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_);
    auto started = HintReader::Start();
    ASSERT_TRUE(started.ok()) << started.status().ToString();
    reader_ = std::move(*started);
  }
  void TearDown() override {
    if (reader_ != nullptr) ::kill(reader_->process(), SIGCONT);
    reader_.reset();
    std::filesystem::remove_all(directory_);
  }

  // A file with a hint, if the file system here takes it.
  HintReader::File Make(const std::string& name, uint64_t hint) {
    HintReader::File file;
    file.path = directory_ + "/" + name;
    const FileDescriptor made(::open(file.path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    EXPECT_GE(made.get(), 0) << file.path;
    can_hint_ = ::fcntl(made.get(), F_SET_RW_HINT, &hint) == 0 && can_hint_;
    struct stat shown {};
    EXPECT_EQ(::fstat(made.get(), &shown), 0);
    file.device = shown.st_dev;
    file.inode = shown.st_ino;
    return file;
  }
  // As often as it takes: on a busy machine, an answer may come too late.
  bool Learns(const HintReader::File& file, uint64_t hint) {
    while (!testing::Test::HasFailure()) {
      if (reader_->Read(file) == hint) return true;
      std::this_thread::yield();
    }
    return false;
  }

  const std::string directory_ =
      std::filesystem::canonical(testing::TempDir()).string() + "/isozone-hints-" + std::to_string(::getpid());
  std::unique_ptr<HintReader> reader_;
  bool can_hint_ = true;
};

TEST_F(HintReaderTest, ReadsWhatAProgramSaid) {
  const HintReader::File medium = Make("medium", RWH_WRITE_LIFE_MEDIUM);
  const HintReader::File extreme = Make("extreme", RWH_WRITE_LIFE_EXTREME);
  if (!can_hint_) GTEST_SKIP() << "no hints on this file system";
  EXPECT_TRUE(Learns(medium, RWH_WRITE_LIFE_MEDIUM));
  EXPECT_TRUE(Learns(extreme, RWH_WRITE_LIFE_EXTREME));
  EXPECT_EQ(reader_->Read(Make("silent", RWH_WRITE_LIFE_NOT_SET)), HintReader::kNoHint);
}

TEST_F(HintReaderTest, OpensNothingButTheFileThatIsMeant) {
  const HintReader::File file = Make("file", RWH_WRITE_LIFE_LONG);
  if (!can_hint_) GTEST_SKIP() << "no hints on this file system";
  EXPECT_TRUE(Learns(file, RWH_WRITE_LIFE_LONG));
  HintReader::File other = file;
  ++other.inode;
  EXPECT_EQ(reader_->Read(other), HintReader::kNoHint);
  other = file;
  ++other.device;
  EXPECT_EQ(reader_->Read(other), HintReader::kNoHint);
  other = file;
  other.path = directory_ + "/link";
  std::filesystem::create_symlink("file", other.path);
  EXPECT_EQ(reader_->Read(other), HintReader::kNoHint);
  other.path = directory_ + "/missing";
  EXPECT_EQ(reader_->Read(other), HintReader::kNoHint);
  other.path = directory_ + "/" + std::string(10000, 'x');
  EXPECT_EQ(reader_->Read(other), HintReader::kNoHint);
  // Nobody opens this pipe for writing.
  other.path = directory_ + "/pipe";
  ASSERT_EQ(::mkfifo(other.path.c_str(), 0600), 0);
  struct stat shown {};
  ASSERT_EQ(::stat(other.path.c_str(), &shown), 0);
  other.inode = shown.st_ino;
  EXPECT_EQ(reader_->Read(other), HintReader::kNoHint);
  EXPECT_TRUE(Learns(file, RWH_WRITE_LIFE_LONG));
}

TEST_F(HintReaderTest, GoesOnWithoutAnAnswerThatDoesNotCome) {
  const HintReader::File medium = Make("medium", RWH_WRITE_LIFE_MEDIUM);
  const HintReader::File longer = Make("long", RWH_WRITE_LIFE_LONG);
  if (!can_hint_) GTEST_SKIP() << "no hints on this file system";
  ASSERT_TRUE(Learns(medium, RWH_WRITE_LIFE_MEDIUM));
  ASSERT_EQ(::kill(reader_->process(), SIGSTOP), 0);
  int state = 0;
  ASSERT_EQ(::waitpid(reader_->process(), &state, WUNTRACED), reader_->process());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(reader_->Read(medium), HintReader::kNoHint);
  ASSERT_EQ(::kill(reader_->process(), SIGCONT), 0);
  // The late answer is that of the other file.
  while (true) {
    const uint64_t hint = reader_->Read(longer);
    ASSERT_TRUE(hint == RWH_WRITE_LIFE_LONG || hint == HintReader::kNoHint) << hint;
    if (hint == RWH_WRITE_LIFE_LONG) break;
  }
}

TEST_F(HintReaderTest, ThereIsNoHintWhereTheProcessHasEnded) {
  const HintReader::File file = Make("file", RWH_WRITE_LIFE_LONG);
  ASSERT_EQ(::kill(reader_->process(), SIGKILL), 0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(reader_->process()), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(reader_->Read(file), HintReader::kNoHint);
  EXPECT_EQ(reader_->Read(file), HintReader::kNoHint);
}

TEST_F(HintReaderTest, ThreadsAskAtOnce) {
  std::vector<HintReader::File> files;
  for (uint64_t hint = RWH_WRITE_LIFE_SHORT; hint <= RWH_WRITE_LIFE_EXTREME; ++hint) {
    files.push_back(Make(std::to_string(hint), hint));
  }
  if (!can_hint_) GTEST_SKIP() << "no hints on this file system";
  std::vector<std::thread> threads;
  for (size_t i = 0; i < files.size(); ++i) {
    threads.emplace_back([this, &file = files[i], hint = RWH_WRITE_LIFE_SHORT + i] {
      for (int turn = 0; turn < 200; ++turn) {
        const uint64_t got = reader_->Read(file);
        EXPECT_TRUE(got == hint || got == HintReader::kNoHint) << got;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Learns(files[0], RWH_WRITE_LIFE_SHORT));
}

TEST_F(HintReaderTest, TheProcessHasNothingOfTheDaemon) {
  const HintReader::File file = Make("file", RWH_WRITE_LIFE_LONG);
  if (!can_hint_) GTEST_SKIP() << "no hints on this file system";
  EXPECT_TRUE(Learns(file, RWH_WRITE_LIFE_LONG));  // it has begun
  const std::filesystem::path process = "/proc/" + std::to_string(reader_->process());
  EXPECT_EQ(std::filesystem::read_symlink(process / "cwd"), "/");
  for (const auto& entry : std::filesystem::directory_iterator(process / "fd")) {
    const std::string number = entry.path().filename();
    const std::string target = std::filesystem::read_symlink(entry.path());
    EXPECT_TRUE(number == "0" ? target.starts_with("socket:") : target == "/dev/null") << number << " " << target;
  }
}

}  // namespace
}  // namespace isozone
