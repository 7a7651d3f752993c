#include "device/export/ledger_file.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "testing/assert_ok.h"

namespace isozone {
namespace {

constexpr size_t kSize = 10'000;

class LedgerFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ = testing::TempDir() + "isozone-ledger-" + std::to_string(::getpid());
};

TEST_F(LedgerFileTest, OutlivesItsServerIfItIsKept) {
  {
    auto file = LedgerFile::Open(path_, kSize, false);
    ISOZONE_ASSERT_OK(file.status());
    (*file)->memory()[kSize - 1] = std::byte{7};
    EXPECT_TRUE(LedgerFile::Open(path_, kSize, true).status().Is(StatusCode::kBusy)) << "it has a server";
  }
  {
    auto kept = LedgerFile::Open(path_, kSize, true);
    ISOZONE_ASSERT_OK(kept.status());
    EXPECT_EQ((*kept)->memory()[kSize - 1], std::byte{7});
  }
  auto fresh = LedgerFile::Open(path_, kSize, false);
  ISOZONE_ASSERT_OK(fresh.status());
  EXPECT_EQ(std::ranges::count((*fresh)->memory(), std::byte{0}), static_cast<ptrdiff_t>(kSize));
  (*fresh)->Remove();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(LedgerFileTest, AFileOfAnotherSizeIsNotKept) {
  ISOZONE_ASSERT_OK(LedgerFile::Open(path_, kSize, false).status());
  auto larger = LedgerFile::Open(path_, 2 * kSize, true);
  ISOZONE_ASSERT_OK(larger.status());
  EXPECT_EQ((*larger)->memory().size(), 2 * kSize);
  EXPECT_TRUE(LedgerFile::Open("/nowhere/ledger", kSize, false).status().Is(StatusCode::kNotFound));
}

}  // namespace
}  // namespace isozone
