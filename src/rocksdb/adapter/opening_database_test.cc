#include "rocksdb/adapter/opening_database.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include "rocksdb/adapter/database_test_util.h"
#include "testing/assert_ok.h"

namespace isozone {
namespace {

// Waits for the databases that it belongs to.
class WaitingListener : public rocksdb::EventListener {
 public:
  bool ShouldBeNotifiedOnFileIO() override {
    OpeningDatabase::ListenerAsked([this](rocksdb::DB* db) { opened_.push_back(db->GetName()); });
    return false;
  }
  const std::vector<std::string>& opened() const { return opened_; }

 private:
  std::vector<std::string> opened_;
};

class OpeningDatabaseTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_);
    fs_ = MakeEmulatedFileSystem(directory_, "zones=64&zone_size=4M");
    ASSERT_NE(fs_, nullptr);
    env_ = rocksdb::NewCompositeEnv(fs_);
    options_.env = env_.get();
    options_.create_if_missing = true;
    options_.listeners = {listener_};
  }
  void TearDown() override {
    env_.reset();
    fs_.reset();
    std::filesystem::remove_all(directory_);
  }
  void OpenAndClose(const rocksdb::Options& options, const std::string& path) {
    std::unique_ptr<rocksdb::DB> db;
    ISOZONE_ASSERT_OK(OpenInto(options, path, &db));
  }

  const std::string directory_ = testing::TempDir() + "isozone_opening_database." + std::to_string(getpid());
  std::shared_ptr<ZonedFileSystem> fs_;
  std::unique_ptr<rocksdb::Env> env_;
  rocksdb::Options options_;
  const std::shared_ptr<WaitingListener> listener_ = std::make_shared<WaitingListener>();
};

TEST_F(OpeningDatabaseTest, AListenerHearsOfEachOfItsDatabasesOnce) {
  OpenAndClose(options_, "/one");
  OpenAndClose(options_, "/two");
  OpenAndClose(options_, "/one");
  EXPECT_EQ(listener_->opened(), (std::vector<std::string>{"/one", "/two", "/one"}));
}

TEST_F(OpeningDatabaseTest, OfTwoListenersTheFirstOneHears) {
  const auto second = std::make_shared<WaitingListener>();
  options_.listeners.push_back(second);
  OpenAndClose(options_, "/db");
  EXPECT_EQ(listener_->opened().size(), 1U);
  EXPECT_TRUE(second->opened().empty());
}

TEST_F(OpeningDatabaseTest, AListenerOfOneDatabaseDoesNotHearOfAnother) {
  rocksdb::Options deaf = options_;
  deaf.listeners.clear();
  OpenAndClose(deaf, "/db");
  OpeningDatabase::FileOpened("/elsewhere/MANIFEST-000001");
  (void)listener_->ShouldBeNotifiedOnFileIO();
  OpenAndClose(deaf, "/db");
  EXPECT_TRUE(listener_->opened().empty());
}

TEST_F(OpeningDatabaseTest, WatchedLogsAreKnown) {
  std::shared_ptr<rocksdb::Logger> log;
  ISOZONE_ASSERT_OK(env_->NewLogger("/LOG", &log));
  EXPECT_TRUE(OpeningDatabase::IsWatched(log.get()));
  std::shared_ptr<rocksdb::Logger> other;
  ISOZONE_ASSERT_OK(rocksdb::Env::Default()->NewLogger(directory_ + "/LOG", &other));
  EXPECT_FALSE(OpeningDatabase::IsWatched(other.get()));
}

}  // namespace
}  // namespace isozone
