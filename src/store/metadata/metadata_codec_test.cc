#include "store/metadata/metadata_codec.h"

#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/metadata/naive_metadata_test_util.h"
#include "testing/assert_ok.h"

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

// Makes inodes and records of which each field may have any value that its type can hold, also those that have no name.
class AnyValues {
 public:
  explicit AnyValues(uint64_t seed) : random_(seed) {}

  Inode NextInode(InodeId id) {
    Inode inode;
    inode.id = random_.Chance(0.1) ? InodeId(random_.Next()) : id;
    inode.is_directory = random_.Chance(0.2);
    inode.kind = Enumerator<FileKind>(3);
    inode.lifetime = Enumerator<Lifetime>(kLifetimeCount);
    inode.level = Level();
    inode.modified_s = random_.Next();
    inode.links = {{kRootInode, Text(1)}};
    if (random_.Chance(0.5)) inode.details = Details();
    const bool is_log = inode.kind == FileKind::kLog;
    if (is_log && random_.Chance(0.5)) inode.regions = {Region(), Region()};
    if (!is_log && !inode.is_directory) inode.extents = {Extent(0, 2, random_.Below(kKiB), random_.Between(1, 900))};
    inode.size = inode.extents.end_offset();
    for (const LogRegion& region : inode.regions) inode.size += region.payload;
    return inode;
  }
  MetadataOp NextOp(InodeId id) {
    switch (random_.Below(8)) {
      case 0:
        return SetAttributes{id, Enumerator<Lifetime>(kLifetimeCount), random_.Next(), Level()};
      case 1:
        return SetDetails{id, Details()};
      case 2:
        return SetZoneHeats{{{ZoneId(2), Enumerator<ZoneHeat>(kZoneHeatCount)}}};
      case 3:
        return AddLink{id, {kRootInode, Text(1)}};
      case 4:
        return SetTimes{id, {random_.Next(), static_cast<uint32_t>(random_.Below(1'100'000'000))}, {random_.Next(), 7}};
      case 5:
        return BeginMount{random_.Below(3)};
      case 6:
        return SetLogRegion{id, random_.Below(3), Region(), random_.Next()};
      default:
        return CutFile{id, random_.Next(), random_.Next()};
    }
  }

 private:
  // One that has a name, most often.
  template <typename T>
  T Enumerator(uint64_t count) {
    return static_cast<T>(random_.Below(random_.Chance(0.1) ? 256 : count));
  }
  int8_t Level() { return static_cast<int8_t>(random_.Chance(0.1) ? random_.Below(256) : random_.Below(8)); }
  std::string Text(uint64_t shortest) {
    std::string text(random_.Between(shortest, random_.Chance(0.05) ? 300 : 8), '\0');
    for (char& byte : text) byte = static_cast<char>(random_.Below(256));
    return text;
  }
  LogRegion Region() {
    const uint64_t begin = random_.Below(4) * 4096;
    const uint64_t payload = random_.Below(5000);
    if (random_.Chance(0.3)) return {ZoneId(5), begin, LogRegion::kOpen, 0, random_.Chance(0.2)};
    return {ZoneId(5), begin, begin + payload, payload, random_.Chance(0.2)};
  }
  std::shared_ptr<const InodeDetails> Details() {
    auto details = std::make_shared<InodeDetails>();
    details->mode = static_cast<uint32_t>(random_.Chance(0.1) ? random_.Next() : random_.Below(07777));
    details->user = static_cast<uint32_t>(random_.Next());
    details->group = static_cast<uint32_t>(random_.Next());
    details->modified = {random_.Next(), static_cast<uint32_t>(random_.Below(1'100'000'000))};
    details->changed = {random_.Next(), static_cast<uint32_t>(random_.Below(1'100'000'000))};
    if (random_.Chance(0.1)) details->target = Text(0);
    for (uint64_t i = random_.Below(3); i > 0; --i) details->xattrs[Text(0)] = Text(0);
    return details;
  }

  Random random_;
};

// What the codec refuses must be refused before it is written: else a device that was filled without an error could not
// be mounted again.
TEST(MetadataCodecTest, WhatIsAcceptedIsReadBack) {
  const uint64_t seed = TestSeed(37);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  AnyValues values(seed);
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    MetadataState state(Geometry());
    const Inode inode = values.NextInode(state.NextId());
    std::vector<MetadataOp> ops = {PutInode{inode}};
    bool all = state.Apply(ops).ok();
    if (all) {
      ops.push_back(values.NextOp(inode.id));
      if (!state.Apply(std::span(ops).subspan(1)).ok()) ops.pop_back();
      all = ops.size() > 1;
    }
    ++(all ? accepted : refused);
    if (state.size() == 1) continue;
    std::vector<std::byte> record;
    EncodeRecord(ops, record);
    const auto decoded = DecodeRecord(record);
    ASSERT_TRUE(decoded.ok()) << "record " << i << ": " << decoded.status().ToString();
    MetadataState replayed(Geometry());
    ISOZONE_ASSERT_OK(replayed.Apply(*decoded));
    std::vector<std::byte> checkpoint;
    std::vector<std::byte> again;
    EncodePutInode(*state.Find(inode.id), checkpoint);
    EncodePutInode(*replayed.Find(inode.id), again);
    ASSERT_EQ(again, checkpoint) << "record " << i;
    const auto read_back = DecodeRecord(checkpoint);
    ASSERT_TRUE(read_back.ok()) << "record " << i << ": " << read_back.status().ToString();
    const Inode& found = std::get<PutInode>(read_back->front()).inode;
    ASSERT_EQ(found.size, state.Find(inode.id)->size) << "record " << i;
    ASSERT_EQ(found.links, state.Find(inode.id)->links) << "record " << i;
    ASSERT_EQ(checkpoint.size() + 4, EncodedSize(found)) << "record " << i;
    ISOZONE_ASSERT_OK(
        MetadataState::Restore(Geometry(), {*state.Find(kRootInode), found}, state.NextId(), {}).status());
  }
  EXPECT_GT(accepted, 2'000);
  EXPECT_GT(refused, 2'000);
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

// Versions 7 and 8 told a truncation, and an overwriting, by all extents of the file.
TEST(MetadataCodecTest, TheOperationOfOlderVersionsThatSetsAllExtentsIsRead) {
  constexpr uint8_t kSetExtents = 6;
  constexpr ptrdiff_t kIndexAt = 1 + 1 + 8;  // behind the code, the inode, and the time
  MetadataState state(Geometry());
  Inode inode = File(3, "name");
  inode.extents = {Extent(0, 2, 0, 4096), Extent(4096, 4, 0, 4096)};
  inode.size = 8192;
  ISOZONE_ASSERT_OK(state.Apply(std::vector<MetadataOp>{PutInode{inode}}));
  for (const ExtentList& now : {ExtentList{Extent(0, 5, 0, 4096), Extent(4096, 4, 100, 500)}, ExtentList()}) {
    std::vector<std::byte> record;
    EncodeRecord(std::vector<MetadataOp>{AppendExtents{InodeId(3), 0, now, 77}}, record);
    record.front() = std::byte{kSetExtents};
    record.erase(record.begin() + kIndexAt, record.begin() + kIndexAt + 8);
    const auto ops = DecodeRecord(record);
    ISOZONE_ASSERT_OK(ops.status());
    ISOZONE_ASSERT_OK(state.Apply(*ops));
    EXPECT_EQ(state.Find(InodeId(3))->extents, now);
    EXPECT_EQ(state.Find(InodeId(3))->size, now.end_offset());
    EXPECT_EQ(state.Find(InodeId(3))->modified_s, 77U);
    ISOZONE_EXPECT_OK(state.CheckInvariants());
    EXPECT_FALSE(DecodeRecord(std::span(record).first(record.size() - 1)).ok());
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
