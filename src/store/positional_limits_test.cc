// Positional files where not everything goes well: beside writers of the same file, and on devices that are full.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "store/inode_files.h"
#include "store/positional_file.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

using File = std::shared_ptr<PositionalFile>;

class PositionalLimitsTest : public testing::Test {
 protected:
  void SetUp() override { ISOZONE_ASSERT_OK(volume_.Mount()); }

  InodeFiles& inodes() { return volume_.fs().inodes(); }
  File Create(std::string_view name, FileKind kind = FileKind::kData) {
    CreateOptions options;
    options.kind = kind;
    return inodes().Create(InodeFiles::kRoot, name, options, {}).value();
  }
  static Status Write(const File& file, uint64_t offset, std::string_view data) {
    return file->Write(offset, Bytes(data));
  }
  // Appends pieces of `size` bytes to each of `files` in turn, until one finds no space.
  static void Fill(const std::vector<File>& files, size_t size) {
    const std::string piece(size, 'x');
    for (;;) {
      for (const File& file : files) {
        const Status status = Write(file, file->size(), piece);
        if (status.ok()) continue;
        ASSERT_EQ(status.code(), StatusCode::kNoSpace) << status.ToString();
        return;
      }
    }
  }

  TestVolume volume_{SmallGeometry(/*zones=*/40, /*zone_size=*/256 * kKiB)};
};

TEST_F(PositionalLimitsTest, WhatIsPendingInPlaceKeepsOthersAway) {
  const File file = Create("f");
  ISOZONE_ASSERT_OK(Write(file, 0, std::string(9000, 'a')));
  ISOZONE_ASSERT_OK(file->Sync());
  ISOZONE_ASSERT_OK(Write(file, 100, "in place"));  // closes the writer, and is not known to the metadata yet
  ISOZONE_ASSERT_OK(Write(file, 200, "in place"));
  EXPECT_EQ(volume_.fs().OpenForAppend("/f", {}).status().code(), StatusCode::kBusy);
  EXPECT_EQ(volume_.fs().Overwrite("/f", 100, Bytes("other")).code(), StatusCode::kBusy);
  EXPECT_EQ(volume_.fs().Truncate("/f", 50).code(), StatusCode::kBusy);
  ISOZONE_ASSERT_OK(inodes().SetAttributes(file->inode(), {.modified = FileTime{7, 8}}).status());  // writes it back
  ISOZONE_ASSERT_OK(volume_.fs().Overwrite("/f", 100, Bytes("other")));
  ISOZONE_ASSERT_OK(Write(file, 9000, "z"));
  EXPECT_EQ(volume_.ReadFile("/f").value().substr(98, 12), "aaotheraceaa");
}

TEST_F(PositionalLimitsTest, AWriterElsewhereKeepsEveryChangeAway) {
  const File file = Create("f");
  ISOZONE_ASSERT_OK(Write(file, 0, std::string(9000, 'a')));
  ISOZONE_ASSERT_OK(inodes().SetAttributes(file->inode(), {.modified = FileTime{7, 8}}).status());
  auto writer = volume_.fs().OpenForAppend("/f", {}).value();
  ISOZONE_ASSERT_OK(writer->Append(Bytes("bbb")));
  EXPECT_EQ(Write(file, 9001, "x").code(), StatusCode::kBusy);
  EXPECT_EQ(Write(file, 0, "x").code(), StatusCode::kBusy);
  EXPECT_EQ(Write(file, 20000, "x").code(), StatusCode::kBusy);
  EXPECT_EQ(file->Truncate(10).code(), StatusCode::kBusy);
  EXPECT_EQ(file->Truncate(20000).code(), StatusCode::kBusy);
  ISOZONE_ASSERT_OK(file->Sync());
  ISOZONE_ASSERT_OK(writer->Close());
  // What the file remembers of its end is not what it has now.
  ISOZONE_ASSERT_OK(Write(file, 9000, "aaa"));
  EXPECT_EQ(volume_.ReadFile("/f").value(), std::string(9003, 'a'));
}

TEST_F(PositionalLimitsTest, ASyncOfALogMakesNamesDurable) {
  uint64_t other = 0;
  {
    const File log = Create("log", FileKind::kLog);
    ISOZONE_ASSERT_OK(Write(log, 0, "first"));
    ISOZONE_ASSERT_OK(log->Sync());
    other = Create("other")->inode();
    ISOZONE_ASSERT_OK(inodes().SetXattr(other, "user.x", "v", XattrMode::kSet));
    ISOZONE_ASSERT_OK(Write(log, 5, "second"));
    ISOZONE_ASSERT_OK(log->Sync());
    volume_.device().CutPower();
  }
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  EXPECT_EQ(inodes().GetXattr(other, "user.x").value(), "v");
  EXPECT_EQ(volume_.ReadFile("/log").value(), "firstsecond");
}

TEST_F(PositionalLimitsTest, ATimeThatIsSetStays) {
  const FileTime time{1'000'000'000, 5};
  for (const FileKind kind : {FileKind::kData, FileKind::kLog}) {
    const std::string name(FileKindName(kind));
    {
      const File file = Create(name, kind);
      ISOZONE_ASSERT_OK(Write(file, 0, std::string(9000, 'a')));
      ISOZONE_ASSERT_OK(file->Sync());
      if (kind == FileKind::kData) ISOZONE_ASSERT_OK(Write(file, 50, "in place"));
      ISOZONE_ASSERT_OK(Write(file, 9000, "in memory"));
      ISOZONE_ASSERT_OK(inodes().SetAttributes(file->inode(), {.modified = time}).status());
      EXPECT_EQ(inodes().GetAttributes(file->inode())->modified, time);
    }
    EXPECT_EQ(inodes().Lookup(InodeFiles::kRoot, name)->modified, time);
    ISOZONE_ASSERT_OK(volume_.Remount());
    EXPECT_EQ(inodes().Lookup(InodeFiles::kRoot, name)->modified, time);
  }
}

TEST_F(PositionalLimitsTest, AFileWithoutANameIsOverwrittenForEver) {
  const File file = Create("f");
  constexpr size_t kSize = 256 * kKiB;
  ISOZONE_ASSERT_OK(Write(file, 0, std::string(kSize, 'a')));
  ISOZONE_ASSERT_OK(file->Sync());
  ISOZONE_ASSERT_OK(inodes().Unlink(InodeFiles::kRoot, "f"));
  for (uint64_t i = 0; i < 300; ++i) {  // ten times what the device has
    ISOZONE_ASSERT_OK(Write(file, i % 4 * (kSize / 4), std::string(kSize / 4, static_cast<char>('a' + i % 26))));
    if (i % 5 == 0) ISOZONE_ASSERT_OK(file->Sync());
    if (i % 50 == 0) {
      ISOZONE_ASSERT_OK(file->Truncate(1000));
      ISOZONE_ASSERT_OK(file->Truncate(kSize));
    }
  }
  EXPECT_LE(volume_.fs().state().Space().live, 3 * kSize);
}

TEST_F(PositionalLimitsTest, SpaceThatCanBeCollectedIsWaitedFor) {
  std::vector<File> files = {Create("kept"), Create("removed")};
  ASSERT_NO_FATAL_FAILURE(Fill(files, 16 * kKiB));
  for (const File& file : files) ISOZONE_ASSERT_OK(file->Sync());
  ISOZONE_ASSERT_OK(inodes().Unlink(InodeFiles::kRoot, "removed"));
  const uint64_t half = files[1]->size();
  files.pop_back();
  const File again = Create("again");
  for (uint64_t at = 0; at < half / 2; at += 16 * kKiB) {
    ISOZONE_ASSERT_OK(Write(again, at, std::string(16 * kKiB, 'y')));
  }
  ISOZONE_ASSERT_OK(again->Sync());
}

TEST_F(PositionalLimitsTest, AFileWithoutANameGivesBackWhatIsCutOff) {
  constexpr size_t kSize = 512 * kKiB;
  for (const FileKind kind : {FileKind::kData, FileKind::kLog}) {
    const File file = Create("f", kind);
    ISOZONE_ASSERT_OK(Write(file, 0, std::string(kSize, 'a')));
    ISOZONE_ASSERT_OK(inodes().Unlink(InodeFiles::kRoot, "f"));
    for (int i = 0; i < 50; ++i) {  // several times what the device has
      ISOZONE_ASSERT_OK(file->Truncate(i % 2 * 100));
      ISOZONE_ASSERT_OK(Write(file, file->size(), std::string(kSize, 'b')));
      ISOZONE_ASSERT_OK(Write(file, 5, "in place"));
      if (i % 3 == 0) ISOZONE_ASSERT_OK(file->Sync());
    }
    EXPECT_LE(volume_.fs().state().Space().live, 3 * kSize);
    std::string end(10, '\0');
    EXPECT_EQ(file->Read(file->size() - 5, std::as_writable_bytes(std::span(end)), IoClass::kUserRead).value(), 5U);
    EXPECT_EQ(end.substr(0, 5), "bbbbb");
  }
}

TEST_F(PositionalLimitsTest, AFileIsOverwrittenByItsPathForEverBesideAReader) {
  constexpr size_t kSize = 256 * kKiB;
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", std::string(kSize, 'a')));
  const auto reader = volume_.fs().OpenForRead("/f").value();
  for (int i = 0; i < 100; ++i) ISOZONE_ASSERT_OK(volume_.fs().Overwrite("/f", 0, Bytes(std::string(kSize, 'b'))));
  EXPECT_LE(volume_.fs().state().Space().live, 2 * kSize);
}

class PositionalSpaceTest : public testing::TestWithParam<std::pair<uint32_t, uint64_t>> {};  // zones, and their size

// What is dead is spread over all zones, and is less than two zones in all; much less than one, where zones are
// few and large. One zone is always left free.
TEST_P(PositionalSpaceTest, FilesAreReplacedWhereLittleIsLeft) {
  const auto [zones, zone_size] = GetParam();
  TestVolume volume(SmallGeometry(zones, zone_size));
  ISOZONE_ASSERT_OK(volume.Mount());
  constexpr size_t kSize = 64 * kKiB;
  const uint64_t zone = volume.device().geometry().zone_capacity;
  const uint64_t count = (volume.fs().state().Space().free_for_data - zone) * 97 / 100 / kSize;
  std::vector<File> files;
  for (uint64_t i = 0; i < count; ++i) {
    files.push_back(volume.fs().inodes().Create(InodeFiles::kRoot, fmt::format("{}", i), {}, {}).value());
  }
  Random random(1);
  for (uint64_t i = 0; i < 5 * count; ++i) {
    const File& file = files[i < count ? i : random.Below(count)];
    ISOZONE_ASSERT_OK(file->Truncate(0));
    ISOZONE_ASSERT_OK(file->Write(0, Bytes(std::string(kSize, 'x'))));
    ISOZONE_ASSERT_OK(file->Sync());
  }
}

INSTANTIATE_TEST_SUITE_P(Zones, PositionalSpaceTest, testing::Values(std::pair(40, kMiB), std::pair(10, 4 * kMiB)));

TEST_F(PositionalLimitsTest, WhatWasAllocatedIsUsedUpByHolesOnly) {
  const File file = Create("f");
  ISOZONE_ASSERT_OK(Write(file, 0, std::string(64 * kKiB, 'a')));
  ISOZONE_ASSERT_OK(file->Allocate(64 * kKiB, kMiB, /*keep_size=*/true));
  for (int i = 0; i < 40; ++i) ISOZONE_ASSERT_OK(Write(file, 0, std::string(64 * kKiB, 'b')));
  ASSERT_NO_FATAL_FAILURE(Fill({Create("filler")}, 64 * kKiB));
  for (uint64_t at = 64 * kKiB; at < 64 * kKiB + kMiB; at += 64 * kKiB) {
    ISOZONE_ASSERT_OK(Write(file, at, std::string(64 * kKiB, 'c')));
  }
  ISOZONE_ASSERT_OK(file->Sync());
  const File other = Create("other");
  ISOZONE_ASSERT_OK(inodes().Unlink(InodeFiles::kRoot, "filler"));
  ISOZONE_ASSERT_OK(file->Allocate(2 * kMiB, kMiB, /*keep_size=*/true));
  ISOZONE_ASSERT_OK(file->Truncate(0));  // the promise ends
  ISOZONE_ASSERT_OK(file->Allocate(0, 5 * kMiB, /*keep_size=*/true));
}

TEST_F(PositionalLimitsTest, ZonesOfWhatIsPendingInPlaceAreCollected) {
  constexpr size_t kPage = 4 * kKiB;
  constexpr uint64_t kSize = kMiB;
  File kept = Create("kept");
  File removed = Create("removed");
  for (const File& file : {kept, removed}) {
    ISOZONE_ASSERT_OK(Write(file, 0, std::string(kSize, 'a')));
    ISOZONE_ASSERT_OK(file->Sync());
  }
  for (uint64_t at = 0; at < kSize; at += kPage) {  // page by page in the same zones
    ISOZONE_ASSERT_OK(Write(kept, at, std::string(kPage, 'b')));
    ISOZONE_ASSERT_OK(Write(removed, at, std::string(kPage, 'c')));
  }
  removed.reset();
  ISOZONE_ASSERT_OK(inodes().Unlink(InodeFiles::kRoot, "removed"));
  ISOZONE_ASSERT_OK(volume_.fs().collection().Run(100, {}).status());
  ISOZONE_ASSERT_OK(volume_.fs().state().Settle());
  EXPECT_LT(volume_.fs().state().Space().dead, 512 * kKiB);  // what is being written
  ISOZONE_ASSERT_OK(Write(kept, 100, "again"));
  ISOZONE_ASSERT_OK(kept->Sync());
  kept.reset();
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  EXPECT_TRUE(volume_.ReadFile("/kept").value() == std::string(kSize, 'b').replace(100, 5, "again"));
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(PositionalLimitsTest, ZonesOfALogThatBecameDataAreCollected) {
  constexpr size_t kPart = 64 * kKiB;
  constexpr uint64_t kSize = 2 * kMiB;
  const File log = Create("000001.log", FileKind::kLog);
  std::string model(kSize, 'a');
  ISOZONE_ASSERT_OK(Write(log, 0, model));
  ISOZONE_ASSERT_OK(log->Sync());
  for (uint64_t at = 0; at < kSize; at += 2 * kPart) {
    ISOZONE_ASSERT_OK(Write(log, at, std::string(kPart, 'b')));
    model.replace(at, kPart, kPart, 'b');
  }
  ISOZONE_ASSERT_OK(log->Sync());
  EXPECT_GE(volume_.fs().state().Space().dead, kSize / 2);
  ISOZONE_ASSERT_OK(volume_.fs().collection().Run(100, {}).status());
  ISOZONE_ASSERT_OK(volume_.fs().state().Settle());
  EXPECT_LT(volume_.fs().state().Space().dead, 512 * kKiB);
  EXPECT_TRUE(volume_.ReadFile("/000001.log").value() == model);
}

// Files with accepted writes, appended and in place, that the metadata does not know, on a device that names have
// filled.
class FullOfNamesTest : public PositionalLimitsTest {
 protected:
  void SetUp() override {
    PositionalLimitsTest::SetUp();
    constexpr size_t kFiles = 20;
    for (size_t i = 0; i < kFiles; ++i) {
      files_.push_back(Create(fmt::format("file{}", i)));
      ISOZONE_ASSERT_OK(Write(files_.back(), 0, i % 2 == 0 ? "begin" : std::string(20'000, 'b')));
      ISOZONE_ASSERT_OK(files_.back()->Sync());
      ISOZONE_ASSERT_OK(Write(files_.back(), i % 2 == 0 ? 5 : 3000, std::string(5000, 'm')));
    }
    other_ = Create("other");
    for (int i = 0; i < 100000; ++i) {
      const auto made = inodes().MakeDirectory(InodeFiles::kRoot, fmt::format("{}{}", i, std::string(i % 2, 'n')), {});
      if (made.ok()) continue;
      ASSERT_EQ(made.status().code(), StatusCode::kNoSpace);
      return;
    }
    FAIL() << "names do not fill the device";
  }

  std::vector<File> files_;
  File other_;
};

TEST_F(FullOfNamesTest, WhatWasAcceptedCanBeSynced) {
  for (size_t i = 0; i < files_.size(); ++i) {
    ISOZONE_ASSERT_OK(files_[i]->Sync());
    EXPECT_EQ(files_[i]->size(), i % 2 == 0 ? 5005U : 20'000U);
  }
  // Each of these is refused by Write or not at all.
  size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const Status written = Write(files_[1], i % 5 * 4096 + i % 3, "in place");
    refused += written.Is(StatusCode::kNoSpace) ? 1U : 0U;
    EXPECT_TRUE(written.ok() || written.Is(StatusCode::kNoSpace)) << written.ToString();
    ISOZONE_ASSERT_OK(files_[1]->Sync());
    if (Write(other_, other_->size() + i % 2, std::string(i, 'x')).ok()) ISOZONE_ASSERT_OK(other_->Sync());
    if (refused > 100) break;
  }
  EXPECT_GT(refused, 0U);
  for (int i = 0; i < 100; ++i) {
    ISOZONE_ASSERT_OK(inodes().RemoveDirectory(InodeFiles::kRoot, fmt::format("{}{}", i, std::string(i % 2, 'n'))));
  }
  ISOZONE_EXPECT_OK(Write(files_[1], 0, "there is room again"));
  ISOZONE_EXPECT_OK(files_[1]->Sync());
  files_.clear();
  other_.reset();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

// Longer names in the place of others may use up what is left to written data, which cannot be told to the metadata
// then.
TEST_F(FullOfNamesTest, WhatTheMetadataHasNoRoomForIsNoPartOfTheFile) {
  std::vector<File> files = std::exchange(files_, {});
  Status renamed;
  for (int i = 0; renamed.ok() && i < 100000; ++i) {
    const std::string name = fmt::format("{}{}", i, std::string(i % 2, 'n'));
    if (!inodes().Lookup(InodeFiles::kRoot, name).ok()) break;
    renamed = inodes().Rename(InodeFiles::kRoot, name, InodeFiles::kRoot, name + std::string(200, 'l'),
                              RenameMode::kNoReplace);
  }
  ASSERT_EQ(renamed.code(), StatusCode::kNoSpace) << renamed.ToString();
  size_t failed = 0;
  for (size_t i = 0; i < files.size(); i += 2) {  // those that were appended to
    const File& file = files[i];
    const Status synced = file->Sync();
    if (synced.ok()) continue;
    ++failed;
    EXPECT_EQ(synced.code(), StatusCode::kNoSpace) << synced.ToString();
    EXPECT_EQ(file->size(), 5U);
    static_cast<void>(Write(file, 1000, "x"));
    static_cast<void>(Write(file, 3, "xyz"));
    static_cast<void>(file->Truncate(2000));
    EXPECT_TRUE(file->size() == 5 || file->size() == 2000) << file->size();
    ISOZONE_EXPECT_OK(file->Truncate(2));  // makes nothing larger
  }
  EXPECT_GT(failed, 0U);
  files.clear();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

}  // namespace
}  // namespace isozone
