#include "fuse/fuse_messages.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace isozone {
namespace {

void Say(const std::string& text) { ASSERT_EQ(::write(STDERR_FILENO, text.data(), text.size()), ssize_t(text.size())); }

TEST(FuseMessagesTest, GivesTheLinesOfFuseAndPassesTheOthersOn) {
  testing::internal::CaptureStderr();
  const std::string messages = CollectFuseMessages([] {
                                 Say("[log] before\nfuse: one\n[log] fuse after\n");
                                 // NOLINTNEXTLINE(bugprone-command-processor): another process, as fusermount3 is
                                 ASSERT_EQ(std::system("echo 'fusermount3: two' >&2"), 0);
                               }).value();
  Say("later\n");
  EXPECT_EQ(messages, "fuse: one; fusermount3: two");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[log] before\n[log] fuse after\nlater\n");
}

TEST(FuseMessagesTest, ThereAreNoneWhereNothingIsSaid) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(CollectFuseMessages([] {}).value(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(FuseMessagesTest, ThereAreNoneWithoutAStandardError) {
  const int kept = ::dup(STDERR_FILENO);
  ASSERT_GE(kept, 0);
  ::close(STDERR_FILENO);
  bool called = false;
  EXPECT_EQ(CollectFuseMessages([&] { called = true; }).value(), "");
  EXPECT_LT(::write(STDERR_FILENO, "x", 1), 0) << "it is closed as before";
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  EXPECT_TRUE(called);
}

TEST(FuseMessagesTest, NothingIsCalledWhereNoMoreFilesCanBeOpened) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer needs descriptors to look at an object";
#endif
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(STDERR_FILENO);
  ::close(next);
  for (int free_files = 0; free_files < 2; ++free_files) {
    const rlimit few{static_cast<rlim_t>(next + free_files), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    bool called = false;
    const auto messages = CollectFuseMessages([&] { called = true; });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(messages.status().Is(StatusCode::kIoError)) << messages.status().ToString();
    EXPECT_FALSE(called);
  }
}

}  // namespace
}  // namespace isozone
