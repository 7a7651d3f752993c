#include "insight/stats/page_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/units.h"
#include "insight/stats/stats_test_util.h"

namespace isozone {
namespace {

// Publishes the page of `image` in another process, which is then killed. Its pid.
pid_t PublishAndDie(const TestImage& image, uid_t uid = ::geteuid()) {
  std::array<int, 2> ready{};
  EXPECT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (uid != ::geteuid() && ::setuid(uid) != 0) ::_exit(1);
    const auto page = image.Publish();
    page->writer().AddEvent(PageEventKind::kReset, ZoneId(5), 1);
    const bool told = ::write(ready[1], "x", 1) == 1;
    for (;;) ::pause();
    ::_exit(told ? 0 : 1);
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  EXPECT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return child;
}

TEST(PageFileTest, TheNameFollowsTheDeviceAndNotItsPath) {
  const TestImage image("names");
  const std::string link = image.path() + "-link";
  ASSERT_EQ(::symlink(image.path().c_str(), link.c_str()), 0);
  const auto through_link = PageOwner::Of("emu:" + link);
  ::unlink(link.c_str());
  ISOZONE_ASSERT_OK(through_link.status());
  EXPECT_EQ(through_link->page_name, image.owner().page_name);
  const TestImage other("names-other");
  EXPECT_NE(other.owner().page_name, image.owner().page_name);
  EXPECT_TRUE(PageOwner::Of("emu:/no/such/image").status().Is(StatusCode::kNotFound));
}

TEST(PageFileTest, APageHasNoNameBeforeItIsCompleteAndNoneAfterIt) {
  const TestImage image("life");
  {
    auto page = PublishedPage::Make(image.owner(), TestHeader());
    ISOZONE_ASSERT_OK(page.status());
    EXPECT_FALSE(std::filesystem::exists(image.page_path()));
    ISOZONE_ASSERT_OK((*page)->Publish());
    EXPECT_TRUE(std::filesystem::exists(image.page_path()));
  }
  EXPECT_FALSE(std::filesystem::exists(image.page_path()));
}

TEST(PageFileTest, WhoMayReadTheImageMayReadThePage) {
  const TestImage image("rights");
  for (const mode_t mode : {0600, 0640, 0644, 0666}) {
    ASSERT_EQ(::chmod(image.path().c_str(), mode), 0);
    const auto page = image.Publish();
    struct stat status {};
    ASSERT_EQ(::stat(image.page_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, (mode & 0444U) | 0400U) << std::oct << mode;
    EXPECT_EQ(status.st_uid, image.owner().uid);
    EXPECT_EQ(status.st_gid, image.owner().gid);
  }
}

// Its owner could shorten it, which would end the process by a SIGBUS.
TEST(PageFileTest, APageIsNeverGivenToTheOwnerOfTheImage) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t kOther = 1234;
  const TestImage image("of-another");
  ASSERT_EQ(::chown(image.path().c_str(), kOther, kOther), 0);
  const auto page = image.Publish();
  struct stat status {};
  ASSERT_EQ(::stat(image.page_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0U);
  EXPECT_EQ(status.st_gid, kOther);
}

TEST(PageFileTest, WhereThereIsNoMemoryThereIsNoPage) {
  const TestImage image("full");
  const auto page = PageFile::Make(image.owner(), size_t{1} << 60);
  ASSERT_FALSE(page.ok());
  EXPECT_EQ(page.status().message().find('\n'), std::string::npos);
  EXPECT_FALSE(PageFile::Make(image.owner(), 4096, "/no/such/folder").ok());
}

TEST(PageFileTest, SignalsDoNotKeepAPageFromBeingMade) {
  const TestImage image("signals");
  struct sigaction before {};
  struct sigaction ignores {};
  ignores.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGALRM, &ignores, &before), 0);
  const itimerval often = {{0, 50}, {0, 50}};  // microseconds
  const itimerval never = {};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  const auto page = PageFile::Make(image.owner(), 64 * kMiB, "/dev/shm");
  ASSERT_EQ(::setitimer(ITIMER_REAL, &never, nullptr), 0);
  ASSERT_EQ(::sigaction(SIGALRM, &before, nullptr), 0);
  ISOZONE_EXPECT_OK(page.status());
}

TEST(PageFileTest, APageThatLivesIsNotReplaced) {
  const TestImage image("busy");
  const auto page = image.Publish();
  const auto second = PublishedPage::Make(image.owner(), TestHeader());
  ISOZONE_ASSERT_OK(second.status());
  EXPECT_TRUE((*second)->Publish().Is(StatusCode::kBusy));
  const auto reader = StatisticsReader::Open(image.device());
  ISOZONE_ASSERT_OK(reader.status());
  ISOZONE_EXPECT_OK((*reader)->RemoveDead());
  EXPECT_TRUE(std::filesystem::exists(image.page_path()));
}

TEST(PageFileTest, AKilledProcessLeavesAPageThatIsReadAndThenRemoved) {
  const TestImage image("killed");
  const pid_t pid = PublishAndDie(image);
  const auto reader = StatisticsReader::Open(image.device());
  ISOZONE_ASSERT_OK(reader.status());
  const auto statistics = (*reader)->Read();
  ISOZONE_ASSERT_OK(statistics.status());
  EXPECT_EQ(statistics->life, PageLife::kDied);
  EXPECT_EQ(statistics->process.pid, static_cast<uint32_t>(pid));
  ASSERT_EQ(statistics->events.size(), 1U);
  EXPECT_EQ(statistics->events[0].zone, 5U);
  ISOZONE_EXPECT_OK((*reader)->RemoveDead());
  EXPECT_FALSE(std::filesystem::exists(image.page_path()));
}

TEST(PageFileTest, TheNextMountReplacesThePageOfAKilledProcess) {
  const TestImage image("replaced");
  PublishAndDie(image);
  const auto old = StatisticsReader::Open(image.device());
  ISOZONE_ASSERT_OK(old.status());
  const auto page = image.Publish();
  const auto reader = StatisticsReader::Open(image.device());
  ISOZONE_ASSERT_OK(reader.status());
  EXPECT_EQ((*reader)->Life(), PageLife::kMounted);
  // A reader that still has the old one open must not take the new one for it.
  ISOZONE_EXPECT_OK((*old)->RemoveDead());
  EXPECT_TRUE(std::filesystem::exists(image.page_path()));
}

// A user of the test, as long as this exists.
class AsUser {
 public:
  explicit AsUser(uid_t uid) { EXPECT_EQ(::seteuid(uid), 0); }
  ~AsUser() { EXPECT_EQ(::seteuid(0), 0); }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
};

TEST(PageFileTest, WhatAnotherUsersProcessLeftHidesNoMount) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t kFirst = 1234;
  constexpr uid_t kSecond = 4321;
  const TestImage image("of-two-users");
  ASSERT_EQ(::chmod(image.path().c_str(), 0666), 0);
  PublishAndDie(image, kFirst);
  const std::string second_path = image.page_path() + "." + std::to_string(kSecond);
  {
    const AsUser user(kSecond);
    const auto left = StatisticsReader::Open(image.device());
    ISOZONE_ASSERT_OK(left.status());
    EXPECT_EQ((*left)->Life(), PageLife::kDied);
    EXPECT_FALSE((*left)->RemoveDead().ok());
    const auto page = image.Publish();
    ASSERT_TRUE(std::filesystem::exists(second_path));
    const auto reader = StatisticsReader::Open(image.device());
    ISOZONE_ASSERT_OK(reader.status());
    EXPECT_EQ((*reader)->Life(), PageLife::kMounted);
  }
  EXPECT_FALSE(std::filesystem::exists(second_path));
  EXPECT_EQ(::unlink(image.page_path().c_str()), 0);
}

// Publishes the page of `image`, in whose place another user has put something, and looks for it as its readers do.
void ExpectAPageBeside(const TestImage& image) {
  const auto page = PublishedPage::Make(image.owner(), TestHeader());
  ISOZONE_ASSERT_OK(page.status());
  ISOZONE_ASSERT_OK((*page)->Publish());
  EXPECT_TRUE(std::filesystem::exists(image.page_path() + ".0"));
  const auto reader = StatisticsReader::Open(image.device());
  ISOZONE_ASSERT_OK(reader.status());
  EXPECT_EQ((*reader)->Life(), PageLife::kMounted);
}

TEST(PageFileTest, NothingThatAnotherUserPutsInItsPlaceKeepsAPageFromBeingPublished) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t kOther = 1234;
  const TestImage image("of-a-stranger");
  ASSERT_EQ(::chmod(image.path().c_str(), 0666), 0);
  const std::string path = image.page_path();
  ASSERT_EQ(::symlink("/nowhere", path.c_str()), 0);
  ASSERT_EQ(::lchown(path.c_str(), kOther, kOther), 0);
  ExpectAPageBeside(image);
  ASSERT_EQ(::unlink(path.c_str()), 0);

  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  ASSERT_EQ(::chown(path.c_str(), kOther, kOther), 0);
  ExpectAPageBeside(image);
  ASSERT_EQ(::rmdir(path.c_str()), 0);

  const FileDescriptor locked(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_GE(locked.get(), 0);
  ASSERT_EQ(::fchown(locked.get(), kOther, kOther), 0);
  ASSERT_EQ(::flock(locked.get(), LOCK_EX | LOCK_NB), 0);
  ExpectAPageBeside(image);
  ASSERT_EQ(::unlink(path.c_str()), 0);
}

TEST(PageFileTest, WhatAProcessLeftThatDiedWhileItUnmountedIsRemoved) {
  const TestImage image("half-unmounted");
  PublishAndDie(image);
  {
    ASSERT_EQ(::chmod(image.page_path().c_str(), 0600), 0);
    std::fstream file(image.page_path(), std::ios::in | std::ios::out | std::ios::binary);
    const auto state = static_cast<uint64_t>(PageState::kUnmounted);
    file.seekp(PageLayout::kState);
    file.write(reinterpret_cast<const char*>(&state), sizeof(state));
    ASSERT_TRUE(file.flush());
  }
  const auto reader = StatisticsReader::Open(image.device());
  ISOZONE_ASSERT_OK(reader.status());
  EXPECT_EQ((*reader)->Life(), PageLife::kUnmounted);
  ISOZONE_EXPECT_OK((*reader)->RemoveDead());
  EXPECT_FALSE(std::filesystem::exists(image.page_path()));
}

TEST(PageFileTest, AProcessIsKnownByItsPidAndItsStart) {
  PageProcess self = PageProcess::Self();
  EXPECT_TRUE(self.MayLive());
  EXPECT_GT(self.started, 0U);
  EXPECT_FALSE(self.program.empty());
  ++self.started;
  EXPECT_FALSE(self.MayLive()) << "another process has the pid now";
  self.pid_namespace ^= 1;
  EXPECT_TRUE(self.MayLive()) << "nobody knows the pids of another name space";
}

TEST(PageFileTest, APrivatePageNamesAndRemovesNothing) {
  const std::string directory = testing::TempDir() + "private-page-" + std::to_string(::getpid());
  std::filesystem::create_directories(directory);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory);
  {
    std::ofstream("mine") << "text";
    const auto page = PageFile::MakePrivate(8192);
    ISOZONE_ASSERT_OK(page.status());
    (*page)->words()[1000] = 7;
    ISOZONE_EXPECT_OK((*page)->Publish());
    EXPECT_EQ((*page)->path(), "");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator("."), {}), 1);
    const auto bytes = ReadSharedFile((*page)->fd(), 8000, 8);
    ISOZONE_ASSERT_OK(bytes.status());
    EXPECT_EQ(bytes->front(), std::byte{7});
  }
  EXPECT_TRUE(std::filesystem::exists("mine"));
  std::filesystem::current_path(before);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace isozone
