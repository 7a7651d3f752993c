// Names, attributes and links by inode, that they last, and that they are what path-based calls see. Beside that:
// devices of the version of the format before.
#include "store/inode_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "store/metadata/format.h"
#include "store/metadata/recovery.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

using testing::ElementsAre;

class InodeFilesTest : public testing::Test {
 protected:
  void SetUp() override { ISOZONE_ASSERT_OK(volume_.Mount()); }
  InodeFiles& inodes() { return volume_.fs().inodes(); }
  uint64_t MakeDirectory(uint64_t parent, std::string_view name) {
    const auto made = inodes().MakeDirectory(parent, name, {0750, 7, 8});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? made->inode : 0;
  }
  uint64_t MakeFile(uint64_t parent, std::string_view name) {
    const auto made = inodes().Create(parent, name, {}, {0640, 7, 8});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return made.ok() ? (*made)->inode() : 0;
  }
  std::vector<std::string> Names(uint64_t directory) {
    std::vector<std::string> names;
    auto stream = inodes().OpenDirectory(directory).value();
    uint64_t cookie = 0;
    for (;;) {
      const auto entries = stream->Read(cookie, 2).value();
      if (entries.empty()) return names;
      for (const auto& entry : entries) names.push_back(entry.name);
      cookie = entries.back().cookie;
    }
  }

  TestVolume volume_;
};

TEST_F(InodeFilesTest, APathIsThatOfTheMoment) {
  const uint64_t above = MakeDirectory(InodeFiles::kRoot, "above");
  const uint64_t directory = MakeDirectory(above, "db");
  const auto open = inodes().Create(directory, "000012.sst", {}, {}).value();
  EXPECT_EQ(inodes().PathOf(InodeFiles::kRoot).value(), "/");
  EXPECT_EQ(inodes().PathOf(above).value(), "/above");
  EXPECT_EQ(inodes().PathOf(open->inode()).value(), "/above/db/000012.sst");
  ISOZONE_ASSERT_OK(inodes().Rename(InodeFiles::kRoot, "above", InodeFiles::kRoot, "moved", RenameMode::kReplace));
  ISOZONE_ASSERT_OK(inodes().Rename(directory, "000012.sst", directory, "13", RenameMode::kReplace));
  EXPECT_EQ(inodes().PathOf(open->inode()).value(), "/moved/db/13");
  ISOZONE_ASSERT_OK(inodes().Unlink(directory, "13"));
  EXPECT_EQ(inodes().PathOf(open->inode()).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(inodes().PathOf(12345).status().code(), StatusCode::kNotFound);
}

TEST_F(InodeFilesTest, AttributesLast) {
  const uint64_t file = MakeFile(1, "f");
  const FileTime modified{1'700'000'000, 123'456'789};
  ISOZONE_ASSERT_OK(inodes().SetAttributes(file, {01755, 1000, 4'000'000'000, modified}).status());
  const uint64_t link = inodes().MakeSymlink(1, "link", "../some/where", {0777, 1, 2})->inode;
  ISOZONE_ASSERT_OK(inodes().SetXattr(file, "user.a", std::string("\0b", 2), XattrMode::kSet));
  ISOZONE_ASSERT_OK(inodes().SetXattr(file, "user.c", "", XattrMode::kCreate));
  ISOZONE_ASSERT_OK(volume_.fs().SyncMetadata());
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  const FileAttributes a = inodes().Lookup(1, "f").value();
  EXPECT_EQ(a.inode, file);
  EXPECT_EQ(a.mode, 01755U);
  EXPECT_EQ(a.user, 1000U);
  EXPECT_EQ(a.group, 4'000'000'000U);
  EXPECT_EQ(a.modified, modified);
  EXPECT_EQ(a.modified_s, modified.s);
  EXPECT_GT(a.changed, modified);
  EXPECT_EQ(volume_.fs().Stat("/f")->mode, 01755U);
  EXPECT_EQ(inodes().GetXattr(file, "user.a").value(), std::string("\0b", 2));
  EXPECT_THAT(inodes().ListXattrs(file).value(), ElementsAre("user.a", "user.c"));
  EXPECT_EQ(inodes().ReadLink(link).value(), "../some/where");
  EXPECT_EQ(inodes().GetAttributes(link)->type, InodeType::kSymlink);
  EXPECT_EQ(inodes().GetAttributes(link)->size, 13U);
  EXPECT_EQ(inodes().ReadLink(file).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(inodes().Open(link).status().code(), StatusCode::kInvalidArgument);
  ISOZONE_ASSERT_OK(inodes().RemoveXattr(file, "user.a"));
  EXPECT_EQ(inodes().GetXattr(file, "user.a").status().code(), StatusCode::kNotFound);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(InodeFilesTest, LimitsAreKept) {
  const uint64_t file = MakeFile(1, "f");
  const std::string long_name(256, 'n');
  EXPECT_EQ(inodes().MakeDirectory(1, long_name, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(inodes().MakeDirectory(1, "a/b", {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(inodes().Create(1, "..", {}, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(inodes().Create(1, "g", {}, {010000, 0, 0}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(inodes().MakeSymlink(1, "l", "", {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(inodes().MakeSymlink(1, "l", std::string(4096, 't'), {}).status().code(), StatusCode::kInvalidArgument);
  ISOZONE_EXPECT_OK(inodes().MakeSymlink(1, "l", std::string(4095, 't'), {}).status());
  EXPECT_EQ(inodes().SetXattr(file, long_name, "", XattrMode::kSet).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(inodes().SetXattr(file, "x", std::string(65536, 'v'), XattrMode::kSet).code(), StatusCode::kNoSpace);
  ISOZONE_EXPECT_OK(inodes().SetXattr(file, "x", std::string(65535, 'v'), XattrMode::kSet));
  EXPECT_EQ(inodes().SetXattr(file, "x", "", XattrMode::kCreate).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(inodes().SetXattr(file, "y", "", XattrMode::kReplace).code(), StatusCode::kNotFound);
  EXPECT_EQ(inodes().Lookup(file, "x").status().code(), StatusCode::kNotDirectory);
  EXPECT_EQ(inodes().Lookup(99, "x").status().code(), StatusCode::kNotFound);
}

TEST_F(InodeFilesTest, RenamesReplaceExchangeOrNot) {
  const uint64_t d = MakeDirectory(1, "d");
  const uint64_t e = MakeDirectory(d, "e");
  const uint64_t f = MakeFile(1, "f");
  const uint64_t g = MakeFile(d, "g");
  EXPECT_EQ(inodes().Rename(1, "f", d, "g", RenameMode::kNoReplace).code(), StatusCode::kAlreadyExists);
  ISOZONE_ASSERT_OK(inodes().Rename(1, "f", d, "g", RenameMode::kExchange));
  EXPECT_EQ(inodes().Lookup(1, "f")->inode, g);
  EXPECT_EQ(inodes().Lookup(d, "g")->inode, f);
  EXPECT_EQ(inodes().Rename(1, "f", d, "h", RenameMode::kExchange).code(), StatusCode::kNotFound);
  EXPECT_EQ(inodes().Rename(1, "d", e, "in", RenameMode::kReplace).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(inodes().Rename(1, "f", d, "e", RenameMode::kExchange).code(), StatusCode::kOk);
  EXPECT_EQ(inodes().Lookup(1, "f")->inode, e);
  EXPECT_EQ(inodes().Rename(1, "d", 1, "f", RenameMode::kReplace).code(), StatusCode::kOk);  // over an empty directory
  EXPECT_THAT(Names(1), ElementsAre("f"));
  EXPECT_THAT(Names(d), ElementsAre("e", "g"));
  EXPECT_EQ(inodes().RemoveDirectory(1, "f").code(), StatusCode::kNotEmpty);
  ISOZONE_ASSERT_OK(inodes().Link(g, 1, "other").status());
  EXPECT_EQ(inodes().GetAttributes(g)->links, 2U);
  EXPECT_EQ(inodes().Link(d, 1, "no").status().code(), StatusCode::kIsDirectory);
  EXPECT_EQ(inodes().Unlink(1, "f").code(), StatusCode::kIsDirectory);
  ISOZONE_ASSERT_OK(inodes().Unlink(1, "other"));
  ISOZONE_ASSERT_OK(inodes().Unlink(d, "e"));
  ISOZONE_ASSERT_OK(inodes().Unlink(d, "g"));
  ISOZONE_ASSERT_OK(inodes().RemoveDirectory(1, "f"));
  EXPECT_EQ(inodes().inode_count(), 1U);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(InodeFilesTest, ChangingNamesChangesTheTimesOfTheDirectory) {
  const uint64_t d = MakeDirectory(1, "d");
  const FileTime old{1000, 5};
  ISOZONE_ASSERT_OK(inodes().SetAttributes(d, {.modified = old}).status());
  EXPECT_EQ(inodes().GetAttributes(d)->modified, old);
  MakeFile(d, "f");
  EXPECT_GT(inodes().GetAttributes(d)->modified, old);
  const auto file = inodes().Open(inodes().Lookup(d, "f")->inode).value();
  ISOZONE_ASSERT_OK(inodes().SetAttributes(file->inode(), {.modified = old}).status());
  EXPECT_EQ(inodes().GetAttributes(file->inode())->modified, old);
  ISOZONE_ASSERT_OK(file->Write(0, Bytes("x")));
  EXPECT_GT(inodes().GetAttributes(file->inode())->modified, old);
}

TEST_F(InodeFilesTest, AFileThatLosesANameToAnotherFileIsChanged) {
  const uint64_t twice = MakeFile(1, "first");
  ISOZONE_ASSERT_OK(inodes().Link(twice, 1, "second").status());
  const FileTime before = inodes().GetAttributes(twice)->changed;
  MakeFile(1, "other");
  ISOZONE_ASSERT_OK(inodes().Rename(1, "other", 1, "first", RenameMode::kReplace));
  EXPECT_GT(inodes().GetAttributes(twice)->changed, before);
  EXPECT_EQ(inodes().GetAttributes(twice)->links, 1U);
}

TEST_F(InodeFilesTest, ALargeDirectoryIsReadWhileItChanges) {
  for (int i = 0; i < 2500; ++i) MakeFile(1, "f" + std::to_string(10000 + i));
  auto stream = inodes().OpenDirectory(1).value();
  size_t seen = 0;
  for (uint64_t cookie = 0;;) {
    const auto entries = stream->Read(cookie, 100).value();
    if (entries.empty()) break;
    seen += entries.size();
    cookie = entries.back().cookie;
    EXPECT_EQ(stream->Read(entries.front().cookie, 1)->front().name, entries[1].name);
    ISOZONE_ASSERT_OK(inodes().Unlink(1, entries.front().name));
  }
  EXPECT_EQ(seen, 2500U);
}

// Without owners, holes and links, a device of version 8 differs from one of version 7 in that number alone: what
// version 8 adds are operations. So the number is all that is changed here, in every copy of the metadata.
std::vector<char> OlderImage(MemoryImage& image) {
  const int file = open(image.path().c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_GE(file, 0);
  std::vector<char> bytes(static_cast<size_t>(lseek(file, 0, SEEK_END)));
  EXPECT_EQ(pread(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  int changed = 0;
  for (size_t at = 0; at + SuperblockHeader::kSlotMin <= bytes.size(); at += 4096) {
    SuperblockHeader header;
    std::memcpy(&header, bytes.data() + at, sizeof(header));
    if (header.magic != SuperblockHeader::kMagic || header.version != kFormatVersion) continue;
    header.version = 7;
    header.crc = 0;
    std::memcpy(bytes.data() + at, &header, sizeof(header));
    header.crc = Crc32c(bytes.data() + at, SuperblockHeader::kSlotMin);
    std::memcpy(bytes.data() + at, &header, sizeof(header));
    ++changed;
  }
  EXPECT_GE(changed, 2);
  EXPECT_EQ(pwrite(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  close(file);
  return bytes;
}

class OlderVersionTest : public testing::Test {
 protected:
  std::unique_ptr<EmulatedDevice> Device(OpenMode mode = OpenMode::kReadWrite) {
    return std::move(*EmulatedDevice::Open(image_.path(), mode, {}));
  }
  std::unique_ptr<FileSystem> Mount() {
    auto mounted = FileSystem::Mount(Device(), {});
    EXPECT_TRUE(mounted.ok()) << mounted.status().ToString();
    return std::move(*mounted);
  }
  void Check(FileSystem& fs) {
    for (const char* path : {"/d/table.sst", "/d/000001.log"}) {
      auto reader = fs.OpenForRead(path).value();
      std::string content(5000, '?');
      EXPECT_EQ(reader->Read(0, std::as_writable_bytes(std::span(content)), IoClass::kUserRead).value(), 5000U);
      EXPECT_EQ(content, std::string(5000, 'x'));
    }
    EXPECT_EQ(fs.Stat("/d/table.sst")->modified_s, 1234U);
    EXPECT_EQ(fs.Stat("/d/table.sst")->mode, 0644U);
    EXPECT_EQ(fs.Stat("/d")->mode, 0755U);
  }

  MemoryImage image_{EmulatedDevice::CreateInMemory(SmallGeometry()).value()};
};

TEST_F(OlderVersionTest, IsReadAndTakenOver) {
  ISOZONE_ASSERT_OK(FormatDevice(*Device(), {"older", false}));
  {
    const auto fs = Mount();
    ISOZONE_ASSERT_OK(fs->CreateDirectory("/d"));
    for (const auto& [path, kind] : {std::pair{"/d/table.sst", FileKind::kData}, {"/d/000001.log", FileKind::kLog}}) {
      CreateOptions options;
      options.kind = kind;
      auto writer = fs->Create(path, options).value();
      ISOZONE_ASSERT_OK(writer->Append(Bytes(std::string(5000, 'x'))));
      ISOZONE_ASSERT_OK(writer->Sync());
      ISOZONE_ASSERT_OK(writer->Close());
    }
    ISOZONE_ASSERT_OK(fs->SetModified("/d/table.sst", 1234));
  }
  OlderImage(image_);
  EXPECT_TRUE(RecoverMetadata(*Device())->has_older_version());
  {  // a mount that does not write leaves it what it is
    MountOptions options;
    options.read_only = true;
    auto fs = FileSystem::Mount(Device(), options).value();
    Check(*fs);
    EXPECT_EQ(fs->inodes().GetAttributes(1)->mode, 0755U);
  }
  EXPECT_TRUE(RecoverMetadata(*Device())->has_older_version());
  EXPECT_TRUE(Fsck(*Device(), {})->clean());
  for (int mount = 0; mount < 2; ++mount) {
    const auto fs = Mount();
    EXPECT_FALSE(RecoverMetadata(*Device(OpenMode::kReadOnly))->has_older_version());
    Check(*fs);
    ISOZONE_ASSERT_OK(fs->inodes().SetXattr(fs->Stat("/d/table.sst")->inode, "user.new", "v", XattrMode::kSet));
    ISOZONE_ASSERT_OK(fs->SetModified("/d/table.sst", 1234));
  }
  EXPECT_TRUE(Fsck(*Device(), {})->clean());
}

}  // namespace
}  // namespace isozone
