#include "rocksdb/adapter/stats_file.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.h"

namespace isozone {
namespace {

// Rings when the test tells it to.
class ManualClock final : public AlarmClock {
 public:
  int64_t Now() const override { return now_ns; }
  bool RingAt(int64_t at_ns, uint32_t) override {
    alarms.push_back(at_ns);
    return true;
  }
  void OnRing(std::function<void(uint32_t)> ring) override { ring_ = std::move(ring); }
  void Stop() override { stopped = true; }
  // Advances to the alarm that was set last, and rings.
  void Ring() {
    now_ns = alarms.back();
    ring_(0);
  }

  int64_t now_ns = 5 * kSecondNs;
  std::vector<int64_t> alarms;
  bool stopped = false;

 private:
  std::function<void(uint32_t)> ring_;
};

class StatsFileTest : public testing::Test {
 protected:
  StatsFileTest() : directory_(testing::TempDir() + "stats-file-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(directory_);
    path_ = directory_ + "/stats.json";
  }
  ~StatsFileTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<StatsFile> Make() {
    auto clock = std::make_unique<ManualClock>();
    clock_ = clock.get();
    return std::make_unique<StatsFile>(
        path_, [this] { return std::to_string(++made_); }, std::move(clock));
  }
  std::string Content() const {
    std::ifstream file(path_);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  size_t FilesThere() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }

  const std::string directory_;
  std::string path_;
  ManualClock* clock_ = nullptr;
  int made_ = 0;
};

TEST_F(StatsFileTest, IsWrittenAtOnceEveryIntervalAndAtTheEnd) {
  const auto stats = Make();
  EXPECT_EQ(FilesThere(), 0U);
  ASSERT_EQ(clock_->alarms.back(), clock_->now_ns);
  clock_->Ring();
  EXPECT_EQ(Content(), "1");
  ASSERT_EQ(clock_->alarms.back(), clock_->now_ns + StatsFile::kIntervalNs);
  clock_->Ring();
  EXPECT_EQ(Content(), "2");
  stats->Finish();
  EXPECT_TRUE(clock_->stopped);
  EXPECT_EQ(Content(), "3");
  EXPECT_EQ(FilesThere(), 1U);
}

TEST_F(StatsFileTest, KeepsWhatItHasWhereThereIsNothingNewToSay) {
  std::ofstream(path_) << "as it was";
  StatsFile stats(
      path_, [] { return Status::Busy("not now"); }, std::make_unique<ManualClock>());
  stats.Finish();
  EXPECT_EQ(Content(), "as it was");
}

TEST_F(StatsFileTest, WithoutAPathIsNeverWritten) {
  path_.clear();
  const auto stats = Make();
  EXPECT_TRUE(clock_->alarms.empty());
  stats->Finish();
  EXPECT_EQ(made_, 0);
  EXPECT_EQ(FilesThere(), 0U);
}

TEST_F(StatsFileTest, AReaderFindsAWholeDocumentWhileItIsWritten) {
  const auto document = [](int number) { return std::string(100'000, static_cast<char>('a' + number % 26)); };
  auto owned = std::make_unique<ManualClock>();
  ManualClock* const clock = owned.get();
  int number = 0;
  StatsFile stats(
      path_, [&] { return document(number++); }, std::move(owned));
  clock->Ring();
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) {
      const std::string text = Content();
      ASSERT_EQ(text.size(), 100'000U);
      ASSERT_EQ(text.find_first_not_of(text.front()), std::string::npos);
    }
  });
  for (int i = 0; i < 300; ++i) clock->Ring();
  stop = true;
  reader.join();
}

TEST_F(StatsFileTest, WhatIsNoPlainFileIsWrittenAtTheEndOnlyAndNotReplaced) {
  const std::string target = directory_ + "/target";
  std::ofstream(target) << "as it was, and longer";
  std::filesystem::create_symlink(target, path_);
  const auto stats = Make();
  EXPECT_TRUE(clock_->alarms.empty());
  stats->Finish();
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_EQ(Content(), "1");
}

TEST_F(StatsFileTest, GoesOnWhereAWriteFails) {
  const auto stats = Make();
  std::filesystem::create_directory(path_ + ".new");  // prevents the temporary file
  clock_->Ring();
  EXPECT_EQ(Content(), "");
  std::filesystem::remove(path_ + ".new");
  ASSERT_EQ(clock_->alarms.size(), 2U);
  clock_->Ring();
  EXPECT_EQ(Content(), "2");
  std::filesystem::create_directory(path_ + ".new");
  stats->Finish();
  EXPECT_EQ(Content(), "3");
}

}  // namespace
}  // namespace isozone
