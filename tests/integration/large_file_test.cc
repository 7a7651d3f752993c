// One file larger than 4 GiB, on an SSD that takes it.

#include "integration/scratch.h"

namespace isozone {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;

constexpr char kLargeDevice[] = "zones=96&zone_size=64MiB&zone_capacity=64MiB&max_open=32&max_active=32";

class LargeFileTest : public ScratchDevice {
 protected:
  LargeFileTest() : ScratchDevice(kLargeDevice) {}
};

TEST_F(LargeFileTest, OffsetsBeyond4GiBKeepTheirContent) {
  constexpr uint64_t kPiece = 32 << 20;
  constexpr uint64_t kPieces = 132;  // 4.125 GiB
  const std::shared_ptr<rocksdb::FileSystem> fs = Open();
  std::string piece = Bytes(kPiece, 15);
  const auto stamp = [](uint64_t i) { return "piece " + std::to_string(1000 + i); };
  const auto read_at = [&](uint64_t offset, size_t length) {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    ISOZONE_EXPECT_OK(fs->NewRandomAccessFile("/000001.sst", FileOptions(), &file, nullptr));
    std::string scratch(length, '\0');
    rocksdb::Slice read;
    ISOZONE_EXPECT_OK(file->Read(offset, length, IOOptions(), &read, scratch.data(), nullptr));
    return read.ToString();
  };

  std::unique_ptr<rocksdb::FSWritableFile> file;
  ISOZONE_ASSERT_OK(fs->NewWritableFile("/000001.sst", FileOptions(), &file, nullptr));
  for (uint64_t i = 0; i < kPieces; ++i) {
    piece.replace(0, stamp(i).size(), stamp(i));
    ISOZONE_ASSERT_OK(file->Append(piece, IOOptions(), nullptr));
  }
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(SizeOf(*fs, "/000001.sst"), kPieces * kPiece);
  for (uint64_t i = 0; i < kPieces; ++i) {
    ASSERT_EQ(read_at(i * kPiece, stamp(i).size()), stamp(i));
    ASSERT_EQ(read_at((i + 1) * kPiece - 100, 100), piece.substr(kPiece - 100));
  }

  ISOZONE_ASSERT_OK(fs->ReopenWritableFile("/000001.sst", FileOptions(), &file, nullptr));
  ISOZONE_ASSERT_OK(file->Append("the end", IOOptions(), nullptr));
  ISOZONE_ASSERT_OK(file->Close(IOOptions(), nullptr));
  EXPECT_EQ(read_at(kPieces * kPiece, 100), "the end");
}

}  // namespace
}  // namespace isozone
