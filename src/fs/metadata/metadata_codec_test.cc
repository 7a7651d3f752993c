#include "fs/metadata/metadata_codec.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fs/metadata/naive_metadata_test_util.h"

namespace isozone {
namespace {

TEST(MetadataCodecTest, EveryOperationSurvivesTheRoundTrip) {
  const uint64_t seed = TestSeed(7);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  WildRecords records(seed);
  NaiveModel model;
  for (int i = 0; i < 5000; ++i) {
    std::vector<MetadataOp> ops = records.Next(model);
    if (model.Apply(ops)) {
      for (const auto& [id, inode] : model.inodes) ops.emplace_back(PutInode{inode});
    }
    std::vector<std::byte> bytes;
    EncodeRecord(ops, bytes);
    const auto decoded = DecodeRecord(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
    ASSERT_EQ(decoded->size(), ops.size());
    std::vector<std::byte> again;
    EncodeRecord(*decoded, again);
    ASSERT_EQ(again, bytes);
  }
}

TEST(MetadataCodecTest, DecodesEveryField) {
  Inode inode = File(300, "name", InodeId(17));
  inode.lifetime = Lifetime::kExtreme;
  inode.kind = FileKind::kSmall;
  inode.modified_s = 12345;
  inode.extents = {Extent(0, 2, 7, 100), Extent(100, 3, 8, 200)};
  inode.size = 300;
  std::vector<std::byte> bytes;
  EncodePutInode(inode, bytes);
  const Inode decoded = std::get<PutInode>(DecodeRecord(bytes).value().front()).inode;
  EXPECT_EQ(decoded.id, inode.id);
  EXPECT_EQ(decoded.links, inode.links);
  EXPECT_EQ(decoded.lifetime, inode.lifetime);
  EXPECT_EQ(decoded.kind, inode.kind);
  EXPECT_EQ(decoded.modified_s, inode.modified_s);
  EXPECT_EQ(decoded.size, inode.size);
  EXPECT_EQ(decoded.extents, inode.extents);
}

TEST(MetadataCodecTest, DecodesEveryDetail) {
  Inode inode = File(300, "name");
  auto details = std::make_shared<InodeDetails>();
  *details = {04755, 1000, UINT32_MAX, {123, 456}, {789, 999'999'999}, "/a/target", {{"a", ""}, {"b", "value"}}};
  inode.details = details;
  inode.kind = FileKind::kSmall;
  std::vector<std::byte> bytes;
  EncodePutInode(inode, bytes);
  EXPECT_EQ(bytes.size() + 4, EncodedSize(inode));
  const Inode decoded = std::get<PutInode>(DecodeRecord(bytes).value().front()).inode;
  ASSERT_NE(decoded.details, nullptr);
  EXPECT_EQ(*decoded.details, *details);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeRecord(std::span(bytes).first(length)).ok()) << length;
  }
}

TEST(MetadataCodecTest, ARecordThatIsCutOffIsRefused) {
  Inode inode = File(3, "name");
  inode.extents = {Extent(0, 2, 7, 100)};
  inode.size = 100;
  const std::vector<MetadataOp> ops = {PutInode{inode}};
  std::vector<std::byte> bytes;
  EncodeRecord(ops, bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeRecord(std::span(bytes).first(length)).ok()) << length;
  }
}

TEST(MetadataCodecTest, ACountThatCannotBeTakesNoMemory) {
  std::vector<std::byte> bytes;
  const std::vector<MetadataOp> ops = {SetLogRegions{InodeId(3), {}, 0}};
  EncodeRecord(ops, bytes);
  std::fill(bytes.end() - 4, bytes.end(), std::byte{0xFF});  // the number of regions
  EXPECT_EQ(DecodeRecord(bytes).status().code(), StatusCode::kCorruption);
}

TEST(MetadataCodecTest, TheFooterSurvivesTheRoundTrip) {
  const CheckpointFooter footer{12, 34, InodeId(56)};
  std::vector<std::byte> bytes;
  EncodeFooter(footer, bytes);
  EXPECT_TRUE(IsFooter(bytes));
  EXPECT_EQ(DecodeFooter(bytes).value(), footer);
  EXPECT_FALSE(DecodeFooter(std::span(bytes).first(bytes.size() - 1)).ok());
  EXPECT_FALSE(DecodeRecord(bytes).ok());
}

}  // namespace
}  // namespace isozone
