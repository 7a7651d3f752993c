#include "store/file/open_file.h"

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/varint.h"
#include "store/file/truncate.h"
#include "store/space/zone_pool_test_util.h"

namespace isozone {
namespace {

constexpr uint64_t kZoneSize = 64 * 1024;

FileExtent Extent(uint64_t file_offset, uint64_t device_offset, uint64_t length) {
  return {file_offset, DeviceOffset(device_offset), length};
}

// A forged image can claim any number of extents in a few bytes.
TEST(OpenFileTest, WhatIsClaimedTakesNoMemory) {
  std::string packed(1, static_cast<char>(0x40 | 12));  // a stripe, of units of 4096 bytes:
  for (const uint64_t number : {uint64_t{1}, uint64_t{1} << 40, uint64_t{1}, uint64_t{0}}) PutVarint(number, packed);
  auto claimed = ExtentList::Parse(0, std::as_bytes(std::span(packed)));
  ASSERT_TRUE(claimed.has_value());
  const uint64_t steps = ExtentList::steps();
  const OpenFile file(InodeId(7), FileKind::kData, kZoneSize, *std::move(claimed), Status::Ok());
  EXPECT_EQ(file.size(), uint64_t{1} << 52);
  EXPECT_EQ(file.Extents(uint64_t{1} << 51, (uint64_t{1} << 51) + 1).front().device_offset.value(), uint64_t{1} << 51);
  EXPECT_LT(ExtentList::steps() - steps, 10U);
}

TEST(FindExtent, ByOffset) {
  const std::vector<FileExtent> extents = {Extent(0, 4096, 100), Extent(100, 8192, 50)};
  EXPECT_EQ(FindExtent(extents, 0), &extents[0]);
  EXPECT_EQ(FindExtent(extents, 99), &extents[0]);
  EXPECT_EQ(FindExtent(extents, 100), &extents[1]);
  EXPECT_EQ(FindExtent(extents, 150), nullptr);
  EXPECT_EQ(FindExtent({}, 0), nullptr);
}

TEST(AppendExtent, JoinsNeighboursOnTheDevice) {
  std::vector<FileExtent> extents;
  AppendExtent(extents, Extent(0, 4096, 4096), kZoneSize);
  AppendExtent(extents, Extent(4096, 8192, 10), kZoneSize);
  ASSERT_EQ(extents.size(), 1u);
  EXPECT_EQ(extents[0].length, 4106u);
  AppendExtent(extents, Extent(4106, 12288, 1), kZoneSize);
  EXPECT_EQ(extents.size(), 2u);
}

TEST(AppendExtent, DoesNotJoinOverTheBoundaryOfAZone) {
  std::vector<FileExtent> extents;
  AppendExtent(extents, Extent(0, kZoneSize - 4096, 4096), kZoneSize);
  AppendExtent(extents, Extent(4096, kZoneSize, 4096), kZoneSize);
  EXPECT_EQ(extents.size(), 2u);
}

TEST(OpenFile, ExtentsOfARangeAreThoseThatItTouches) {
  OpenFile file(InodeId(2), FileKind::kData, kZoneSize, {Extent(0, 4096, 100)}, Status::Ok());
  file.Resize(300);
  const FileExtent placed = Extent(150, 8192, 50);
  file.Move({&placed, 1}, {});
  const std::vector<FileExtent> all = file.Extents().Expand();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(file.Extents(0, 100), std::vector(all.begin(), all.begin() + 1));
  EXPECT_EQ(file.Extents(99, 101), std::vector(all.begin(), all.begin() + 2));
  EXPECT_EQ(file.Extents(110, 120), std::vector(all.begin() + 1, all.begin() + 2));
  EXPECT_EQ(file.Extents(160, 1000), std::vector(all.begin() + 2, all.end()));
  EXPECT_TRUE(file.Extents(300, 400).empty());
  const OpenFile empty(InodeId(3), FileKind::kLog, kZoneSize, {}, Status::Ok());
  EXPECT_TRUE(empty.Extents(0, 10).empty());
}

// The places that a file has moved away from. Each has a name, and is a block in a zone of its own.
class OldPlaces {
 public:
  SpaceClaim Claim(char name) {
    names_ += name;
    return {*pool_, ZoneOf(name), kBlock};
  }
  // Returns the names of the places that are no longer claimed.
  std::string Released() const {
    std::string released;
    std::ranges::copy_if(names_, std::back_inserter(released),
                         [this](char name) { return pool_->Live(ZoneOf(name)) == 0; });
    return released;
  }

 private:
  static ZoneId ZoneOf(char name) { return ZoneId(static_cast<uint32_t>(name - 'a') + HomeZones(2)); }

  FakeDevice device_{20};
  std::unique_ptr<ZonePool> pool_ = ZonePool::Create(device_, {}).value();
  std::string names_;
};

// Collects the pieces that OpenFile::Locate tells.
OpenFile::OnDevice Into(std::vector<FileExtent>& pieces) {
  return [&pieces](const FileExtent& piece) { pieces.push_back(piece); };
}

TEST(OpenFile, ASlowReadOutlastsManyMoves) {
  OpenFile file(InodeId(2), FileKind::kData, kZoneSize, {Extent(0, 4096, 100)}, Status::Ok());
  std::string buffer(100, '\0');
  std::vector<FileExtent> pieces;
  std::shared_ptr<const ReadPin> pin;
  file.Locate(0, std::as_writable_bytes(std::span(buffer)), Into(pieces), pin);
  for (int i = 0; i < 300'000; ++i) file.Move({}, {});
  pin.reset();  // without recursion
  EXPECT_EQ(file.size(), 100U);
}

TEST(OpenFile, WhereAFileWasIsReleasedWithTheLastReadOfIt) {
  OldPlaces places;
  OpenFile file(InodeId(2), FileKind::kData, kZoneSize, {Extent(0, 4096, 100)}, Status::Ok());
  const auto locate = [&](uint64_t where) {
    std::string buffer(100, '\0');
    std::vector<FileExtent> pieces;
    std::shared_ptr<const ReadPin> pin;
    file.Locate(0, std::as_writable_bytes(std::span(buffer)), Into(pieces), pin);
    EXPECT_EQ(pieces.at(0).device_offset, DeviceOffset(where));
    return pin;
  };
  const auto move = [&](uint64_t to, char name) {
    const FileExtent placed = Extent(0, to, 100);
    file.Move({&placed, 1}, places.Claim(name));
  };
  auto first = locate(4096);
  auto first_too = locate(4096);
  move(8192, 'a');
  auto second = locate(8192);
  move(12288, 'b');
  EXPECT_EQ(places.Released(), "");
  first.reset();
  EXPECT_EQ(places.Released(), "");
  // The places are released in the order of the moves: a read from the first place keeps the second one, too.
  second.reset();
  EXPECT_EQ(places.Released(), "");
  first_too.reset();
  EXPECT_EQ(places.Released(), "ab");
  move(16384, 'c');
  EXPECT_EQ(places.Released(), "abc") << "nobody reads";
  locate(16384);
}

TEST(OpenFile, PartsOfAFileAreMovedWhileItIsWritten) {
  OpenFile file(InodeId(2), FileKind::kData, kZoneSize, {Extent(0, 4096, 4096)}, Status::Ok());
  const FileExtent more = Extent(4096, 8192, 100);  // it is joined, and the journal does not know of it
  file.SetMemory({&more, 1}, {});
  file.PublishSize(4196);
  const FileExtent placed = Extent(904, kZoneSize, 1000);
  file.Move({&placed, 1}, {});
  const std::vector<FileExtent> extents = file.Extents().Expand();
  ASSERT_EQ(extents.size(), 3u);
  EXPECT_EQ(extents[0].length, 904u);
  EXPECT_EQ(extents[1].device_offset, DeviceOffset(kZoneSize));
  EXPECT_EQ(extents[2].device_offset, DeviceOffset(6000));
  EXPECT_EQ(extents[2].length, 4196u - 1904u);
  EXPECT_EQ(file.size(), 4196u);
}

TEST(OpenFile, LocatesOnDeviceAndInMemory) {
  OpenFile file(InodeId(2), FileKind::kData, kZoneSize, {Extent(0, 4096, 10)}, Status::Ok());
  const std::string first = "abcde";
  const std::string second = "fgh";
  const std::vector<OpenFile::MemoryPiece> pieces = {{10, reinterpret_cast<const std::byte*>(first.data())},
                                                     {15, reinterpret_cast<const std::byte*>(second.data())}};
  file.SetMemory({}, pieces);
  file.PublishSize(18);

  std::string buffer(20, '.');
  std::vector<FileExtent> on_device;
  std::shared_ptr<const ReadPin> pin;
  EXPECT_EQ(file.Locate(8, std::as_writable_bytes(std::span(buffer)), Into(on_device), pin), 10u);
  EXPECT_EQ(buffer.substr(2, 9), "abcdefgh.");
  ASSERT_EQ(on_device.size(), 1u);
  EXPECT_EQ(on_device[0].file_offset, 0u);
  EXPECT_EQ(on_device[0].device_offset.value(), 4104u);
  EXPECT_EQ(on_device[0].length, 2u);

  on_device.clear();
  EXPECT_EQ(file.Locate(16, std::as_writable_bytes(std::span(buffer).first(1)), Into(on_device), pin), 1u);
  EXPECT_EQ(buffer[0], 'g');
  EXPECT_TRUE(on_device.empty());
  EXPECT_EQ(file.Locate(18, std::as_writable_bytes(std::span(buffer)), Into(on_device), pin), 0u);
}

TEST(OpenFile, WhatIsWrittenOutLeavesMemory) {
  OpenFile file(InodeId(2), FileKind::kData, kZoneSize, {}, Status::Ok());
  const std::string text = "abcde";
  const OpenFile::MemoryPiece piece{0, reinterpret_cast<const std::byte*>(text.data())};
  file.SetMemory({}, {&piece, 1});
  file.PublishSize(5);
  const FileExtent written = Extent(0, 8192, 5);
  file.SetMemory({&written, 1}, {});
  std::string buffer(5, '.');
  std::vector<FileExtent> on_device;
  std::shared_ptr<const ReadPin> pin;
  EXPECT_EQ(file.Locate(0, std::as_writable_bytes(std::span(buffer)), Into(on_device), pin), 5u);
  EXPECT_EQ(on_device.size(), 1u);
  EXPECT_EQ(buffer, ".....");
}

// A file of two extents. The test sees its moves and its reads.
class MovedFile : public ::testing::Test {
 protected:
  void Move(uint64_t file_offset, uint64_t to, char name) {
    const FileExtent placed = Extent(file_offset, to, 10);
    file_.Move({&placed, 1}, places_.Claim(name));
  }
  std::shared_ptr<const ReadPin> BeginRead(uint64_t offset, uint64_t expected_place) {
    std::string buffer(1, '.');
    std::vector<FileExtent> on_device;
    std::shared_ptr<const ReadPin> pin;
    EXPECT_EQ(file_.Locate(offset, std::as_writable_bytes(std::span(buffer)), Into(on_device), pin), 1u);
    EXPECT_EQ(on_device.front().device_offset.value(), expected_place);
    return pin;
  }
  OldPlaces places_;
  OpenFile file_{InodeId(2), FileKind::kData, kZoneSize, {Extent(0, 4096, 10), Extent(10, 12288, 10)}, Status::Ok()};
};

TEST_F(MovedFile, ReleasesItsOldPlaceAtOnceWhereNobodyReads) {
  Move(0, 8192, 'a');
  EXPECT_EQ(places_.Released(), "a");
  BeginRead(3, 8195);
  BeginRead(12, 12290);
}

TEST_F(MovedFile, KeepsItsOldPlaceForReadsThatBeganThere) {
  auto first = BeginRead(0, 4096);
  auto second = BeginRead(1, 4097);
  Move(0, 8192, 'a');
  const auto after = BeginRead(0, 8192);
  first.reset();
  EXPECT_EQ(places_.Released(), "");
  second.reset();
  EXPECT_EQ(places_.Released(), "a");
}

TEST_F(MovedFile, KeepsWhatWasMovedLaterForReadsThatBeganBefore) {
  auto early = BeginRead(10, 12288);
  Move(0, 8192, 'a');
  auto late = BeginRead(0, 8192);
  Move(10, 16384, 'b');  // the early read still reads there
  late.reset();
  EXPECT_EQ(places_.Released(), "");
  early.reset();
  EXPECT_EQ(places_.Released(), "ab");
}

TEST(Extents, AreCut) {
  const std::vector<FileExtent> extents = {Extent(0, 4096, 100), Extent(100, 8192, 50)};
  EXPECT_TRUE(CutExtents(extents, 0).empty());
  ASSERT_EQ(CutExtents(extents, 100).size(), 1u);
  const auto cut = CutExtents(extents, 101);
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[1].length, 1u);
}

// What handles cost, by how many extents the file has: in steps (ExtentList::steps).
class OpenFileCost : public testing::TestWithParam<uint64_t> {
 protected:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kSteps = 2'000;
  // Neighbours in the file are none on the device.
  static ExtentList Fragmented(uint64_t count) {
    std::vector<FileExtent> extents;
    for (uint64_t i = 0; i < count; ++i) extents.push_back(Extent(i * kPage, (i * 7919 % count) * 2 * kPage, kPage));
    return extents;
  }
  template <typename Work>
  static void ExpectCheap(Work work) {
    const uint64_t before = ExtentList::steps();
    work();
    EXPECT_LT(ExtentList::steps() - before, kSteps);
  }
};

TEST_P(OpenFileCost, IsNotThatOfTheExtents) {
  const ExtentList extents = Fragmented(GetParam());
  std::optional<OpenFile> file;
  ExpectCheap([&] { file.emplace(InodeId(7), FileKind::kData, 1 * kGiB, extents, Status::Ok()); });
  ExpectCheap([&] {
    std::array<std::byte, 2 * kPage> buffer;
    std::vector<FileExtent> pieces;
    std::shared_ptr<const ReadPin> pin;
    EXPECT_EQ(file->Locate(extents.end_offset() / 2, buffer, Into(pieces), pin), buffer.size());
  });
  const uint64_t size = extents.end_offset() - kPage - 100;
  ExpectCheap([&] { file->Resize(size); });
  EXPECT_EQ(file->size(), size);
  const FileExtent more = Extent(size, 1 * kGiB, 100);
  ExpectCheap([&] { file->SetMemory({&more, 1}, {}); });
  ExpectCheap([&] {
    const ExtentList copy = file->Extents();
    EXPECT_EQ(copy.size(), extents.size());
    EXPECT_EQ(copy.back(), more);
  });
  EXPECT_EQ(extents.end_offset(), GetParam() * kPage);
}

INSTANTIATE_TEST_SUITE_P(Extents, OpenFileCost, testing::Values(10, 10'000, 1'000'000));

}  // namespace
}  // namespace isozone
