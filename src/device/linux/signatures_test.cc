#include "device/linux/signatures.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.h"
#include "testing/assert_ok.h"

namespace isozone {
namespace {

// A file in memory stands for the device.
class SignaturesTest : public testing::Test {
 protected:
  void Put(off_t at, std::string_view bytes) {
    ASSERT_EQ(::pwrite(file_.get(), bytes.data(), bytes.size(), at), static_cast<ssize_t>(bytes.size()));
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

  void SetUp() override { ASSERT_EQ(::ftruncate(file_.get(), 4 << 20), 0); }

  FileDescriptor file_{::memfd_create("signatures", MFD_CLOEXEC)};
};

// A swap area as mkswap writes it: version 1, 100 pages, label, and the magic at the end of the first page.
constexpr off_t kSwapHeader = 1024;
constexpr off_t kSwapLabel = kSwapHeader + 28;
constexpr off_t kSwapMagic = 4086;

TEST_F(SignaturesTest, OfNothingThereAreNone) {
  const auto found = FindSignatures(path(), "it");
  ISOZONE_ASSERT_OK(found.status());
  EXPECT_TRUE(found->empty());
}

TEST_F(SignaturesTest, AreNamedAndErased) {
  Put(kSwapHeader, std::string("\1\0\0\0\143\0\0\0", 8));
  Put(kSwapLabel, "mine");
  Put(kSwapMagic, "SWAPSPACE2");
  const auto found = FindSignatures(path(), "it");
  ISOZONE_ASSERT_OK(found.status());
  ASSERT_EQ(found->size(), 1U) << "also of a file that no folder names any more";
  EXPECT_EQ(found->front().type, "swap");
  EXPECT_EQ(found->front().label, "mine");
  EXPECT_THAT(found->front().Text(), testing::StartsWith("swap, label 'mine'"));
  ISOZONE_ASSERT_OK(EraseSignatures(path(), "it"));
  EXPECT_TRUE(FindSignatures(path(), "it")->empty());
}

TEST_F(SignaturesTest, AreAllErased) {
  Put(kSwapHeader, std::string("\1\0\0\0\143\0\0\0", 8));
  Put(kSwapMagic, "SWAPSPACE2");
  // A partition table of DOS, with one partition of Linux from sector 2048 on.
  Put(446, std::string("\0\0\0\0\203\0\0\0\0\10\0\0\0\10\0\0", 16));
  Put(510, "\x55\xaa");
  ASSERT_EQ(FindSignatures(path(), "it")->size(), 2U);
  ISOZONE_ASSERT_OK(EraseSignatures(path(), "it"));
  EXPECT_TRUE(FindSignatures(path(), "it")->empty());
}

TEST_F(SignaturesTest, OfNoFileAreAnError) {
  const Status status = FindSignatures("/dev/no-such-device", "it").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(), testing::HasSubstr("cannot open it"));
  EXPECT_EQ(EraseSignatures("/dev/no-such-device", "it").code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace isozone
