#include "rocksdb/adapter/local_logger.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace isozone {
namespace {

class LocalLoggerTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::shared_ptr<rocksdb::Logger> Open(const std::string& path) {
    std::shared_ptr<rocksdb::Logger> logger;
    const rocksdb::IOStatus status = NewLocalLogger(directory_, path, &logger);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return logger;
  }
  std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(directory_ + path).rdbuf();
    return text.str();
  }

  const std::string directory_ = testing::TempDir() + "isozone_local_logger." + std::to_string(::getpid()) + "/logs";
};

TEST_F(LocalLoggerTest, DatabasesKeepTheirLogsApart) {
  const auto first = Open("/a/b/LOG");
  const auto second = Open("/a_b/LOG");
  rocksdb::Error(first.get(), "of the first");
  rocksdb::Error(second.get(), "of the second");
  first->Flush();
  second->Flush();
  EXPECT_NE(Read("/a/b/LOG").find("of the first"), std::string::npos);
  EXPECT_NE(Read("/a_b/LOG").find("of the second"), std::string::npos);
}

TEST_F(LocalLoggerTest, ThePreviousLogIsKept) {
  auto logger = Open("/db/LOG");
  rocksdb::Error(logger.get(), "before");
  logger.reset();
  logger = Open("/db/LOG");
  EXPECT_NE(Read("/db/LOG.old").find("before"), std::string::npos);
  EXPECT_EQ(Read("/db/LOG").find("before"), std::string::npos);
}

TEST_F(LocalLoggerTest, SaysWhichDirectoryCannotBeMade) {
  std::filesystem::create_directories(directory_);
  std::ofstream(directory_ + "/file") << "in the way";
  std::shared_ptr<rocksdb::Logger> logger;
  const rocksdb::IOStatus status = NewLocalLogger(directory_, "/file/LOG", &logger);
  EXPECT_TRUE(status.IsIOError());
  EXPECT_NE(status.ToString().find(directory_ + "/file/LOG"), std::string::npos) << status.ToString();
}

}  // namespace
}  // namespace isozone
