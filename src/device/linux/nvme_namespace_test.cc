#include "device/linux/nvme_namespace.h"

#include <fcntl.h>

#include <array>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "testing/assert_ok.h"

namespace isozone {
namespace {

using testing::HasSubstr;

QueueFacts Facts() {
  QueueFacts facts;
  facts.logical_block = 4096;
  facts.size = 100 * kMiB;
  return facts;
}

// What a namespace of this many blocks identifies as, in a format that has these.
std::array<std::byte, 4096> Identity(uint64_t blocks, uint8_t format, uint8_t block_bits, uint16_t metadata) {
  std::array<std::byte, 4096> identity{};
  std::memcpy(&identity[0], &blocks, sizeof(blocks));
  identity[26] = std::byte{format};
  const size_t at = 128 + 4 * static_cast<size_t>((format & 0xF) + (format >> 5 & 0x3) * 16);
  std::memcpy(&identity[at], &metadata, sizeof(metadata));
  identity[at + 2] = std::byte{block_bits};
  return identity;
}

TEST(CheckIdentity, AcceptsTheBlocksOfTheBlockDevice) {
  ISOZONE_EXPECT_OK(CheckIdentity(Identity(100 * 256, 0, 12, 0), Facts()));
  ISOZONE_EXPECT_OK(CheckIdentity(Identity(100 * 256, 3, 12, 0), Facts()));
  ISOZONE_EXPECT_OK(CheckIdentity(Identity(100 * 256, 0x43, 12, 0), Facts()));  // format 35
}

TEST(CheckIdentity, RefusesMetadataAndOtherNamespaces) {
  const Status metadata = CheckIdentity(Identity(100 * 256, 1, 12, 8), Facts());
  EXPECT_EQ(metadata.code(), StatusCode::kNotSupported);
  EXPECT_THAT(metadata.ToString(), HasSubstr("8 bytes of metadata"));
  for (const auto& other :
       {Identity(100 * 256 + 1, 1, 12, 0), Identity(100 * 256, 1, 9, 0), Identity(100 * 256, 1, 44, 0)}) {
    const Status status = CheckIdentity(other, Facts());
    EXPECT_EQ(status.code(), StatusCode::kNotSupported);
    EXPECT_THAT(status.ToString(), HasSubstr("not the namespace of its block device"));
  }
}

TEST(TakesNvmeCommands, IsOnlyTheClassOfSuchDevices) {
  EXPECT_FALSE(TakesNvmeCommands("/dev/null"));
  EXPECT_FALSE(TakesNvmeCommands("/dev/nothing"));
  EXPECT_FALSE(TakesNvmeCommands("/"));
  EXPECT_THAT(BlockDeviceBeside("/dev/null").status().ToString(), HasSubstr("no block device"));
}

// What the name stands for once it is opened decides.
TEST(OpenNamespace, RefusesWhatIsNoNamespaceOfTheBlockDevice) {
  const FileDescriptor block(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const Status status = OpenNamespace("/dev/null", block, Facts(), OpenMode::kReadWrite).status();
  EXPECT_EQ(status.code(), StatusCode::kNotSupported);
  EXPECT_THAT(status.ToString(), HasSubstr("not the namespace of its block device"));
}

}  // namespace
}  // namespace isozone
