// Positional files: what programs do that know nothing of zones, against plain strings, with remounts, power cuts, a
// full device, GC, and threads.
#include "store/positional_file.h"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/inode_files.h"
#include "testing/test_seed.h"
#include "testing/test_volume.h"

namespace isozone {
namespace {

using File = std::shared_ptr<PositionalFile>;

class PositionalFileTest : public testing::Test {
 protected:
  void SetUp() override { ISOZONE_ASSERT_OK(volume_.Mount()); }

  InodeFiles& inodes() { return volume_.fs().inodes(); }
  File Create(std::string_view name, FileKind kind = FileKind::kData) {
    CreateOptions options;
    options.kind = kind;
    auto file = inodes().Create(InodeFiles::kRoot, name, options, {});
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    return *file;
  }
  File Open(std::string_view name) {
    const auto found = inodes().Lookup(InodeFiles::kRoot, name);
    EXPECT_TRUE(found.ok()) << found.status().ToString();
    auto file = inodes().Open(found->inode);
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    return *file;
  }
  static Status Write(const File& file, uint64_t offset, std::string_view data) {
    return file->Write(offset, Bytes(data));
  }
  static std::string Content(const File& file) {
    std::string content(file->size() + 1, '?');
    const auto read = file->Read(0, std::as_writable_bytes(std::span(content)), IoClass::kUserRead);
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    content.resize(read.ok() ? *read : 0);
    return content;
  }
  static std::string Text(size_t size, char first = 'a') {
    std::string text(size, '\0');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(first + i % 23);
    return text;
  }
  uint64_t InPlaceWrites() { return volume_.fs().state().Stats().in_place_writes; }

  TestVolume volume_;
};

TEST_F(PositionalFileTest, WritesAnywhereAndReadsIt) {
  std::string model = Text(20000);
  {
    const File file = Create("f");
    ISOZONE_ASSERT_OK(Write(file, 0, model));
    for (const uint64_t offset : {0U, 5000U, 4096U, 12288U, 19990U}) {
      const std::string now = Text(100 + offset % 3000, 'B');
      ISOZONE_ASSERT_OK(Write(file, offset, now));
      model.resize(std::max<size_t>(model.size(), offset + now.size()));
      model.replace(offset, now.size(), now);
      EXPECT_EQ(Content(file), model);
    }
    ISOZONE_ASSERT_OK(file->Sync());
  }
  EXPECT_GT(InPlaceWrites(), 0U);
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  EXPECT_EQ(Content(Open("f")), model);
  EXPECT_EQ(volume_.ReadFile("/f").value(), model);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(PositionalFileTest, ALifetimeThatIsSetBeforeTheFirstWriteIsThatOfTheFile) {
  {
    const File file = Create("f");
    file->SetLifetime(Lifetime::kExtreme);
    ISOZONE_ASSERT_OK(Write(file, 0, Text(20000)));
    ISOZONE_ASSERT_OK(file->Sync());
    const std::vector<ZoneOfFile> places = volume_.fs().state().ZonesOf("/f").value();
    const std::vector<ZoneView> zones = volume_.fs().state().Zones();
    for (const ZoneOfFile& place : places) EXPECT_EQ(zones[place.zone.value()].lifetime, Lifetime::kExtreme);
  }
  EXPECT_EQ(volume_.fs().Stat("/f")->lifetime, Lifetime::kExtreme);
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  EXPECT_EQ(volume_.fs().Stat("/f")->lifetime, Lifetime::kExtreme);
}

TEST_F(PositionalFileTest, HolesReadAsZerosAndTakeNoSpace) {
  {
    const File file = Create("f");
    const uint64_t live = volume_.fs().state().Space().live;
    ISOZONE_ASSERT_OK(file->Truncate(uint64_t{512} << 30));  // more than the device has
    EXPECT_EQ(volume_.fs().state().Space().live, live);
    ISOZONE_ASSERT_OK(Write(file, uint64_t{256} << 30, "data"));
    ISOZONE_ASSERT_OK(file->Sync());
  }
  ISOZONE_ASSERT_OK(volume_.Remount());
  const File file = Open("f");
  EXPECT_EQ(file->size(), uint64_t{512} << 30);
  EXPECT_LE(inodes().AllocatedBytes(file->inode()).value(), 8192U);
  std::string around(12, '?');
  const auto at = [&](uint64_t offset) {
    EXPECT_TRUE(file->Read(offset, std::as_writable_bytes(std::span(around)), IoClass::kUserRead).ok());
    return around;
  };
  EXPECT_EQ(at((uint64_t{256} << 30) - 4), std::string("\0\0\0\0data\0\0\0\0", 12));
  EXPECT_EQ(file->FindData(0).value(), uint64_t{256} << 30);
  EXPECT_EQ(file->FindHole(uint64_t{256} << 30).value(), (uint64_t{256} << 30) + 4);
  EXPECT_EQ(file->FindHole(5).value(), 5U);
  EXPECT_EQ(file->FindData((uint64_t{256} << 30) + 4).status().code(), StatusCode::kNotFound);
  ISOZONE_ASSERT_OK(file->Truncate(100));
  EXPECT_EQ(Content(file), std::string(100, '\0'));
}

TEST_F(PositionalFileTest, ARewriteThatOnlyRepeatsTheEndIsAnAppend) {
  for (const FileKind kind : {FileKind::kLog, FileKind::kData, FileKind::kSmall}) {
    const std::string name(FileKindName(kind));
    std::string page = Text(1000);
    {
      const File file = Create(name, kind);
      ISOZONE_ASSERT_OK(Write(file, 0, page));
      for (int i = 0; i < 30; ++i) {
        if (i % 3 == 0) ISOZONE_ASSERT_OK(file->Sync());
        page += Text(100, static_cast<char>('A' + i));
        const size_t begin = RoundDown(page.size() - 100, 4096);
        ISOZONE_ASSERT_OK(Write(file, begin, std::string_view(page).substr(begin)));
      }
      ISOZONE_ASSERT_OK(Write(file, page.size() - 10, page.substr(page.size() - 10)));
      EXPECT_EQ(Content(file), page);
    }
    EXPECT_EQ(InPlaceWrites(), 0U);
    {  // after it was opened anew, the end has to be read
      const File file = Open(name);
      page += Text(20);
      ISOZONE_ASSERT_OK(Write(file, page.size() - 70, std::string_view(page).substr(page.size() - 70)));
      EXPECT_EQ(InPlaceWrites(), 0U);
      ISOZONE_ASSERT_OK(file->Sync());
    }
    ISOZONE_ASSERT_OK(volume_.Remount());
    EXPECT_EQ(Content(Open(name)), page);
    EXPECT_EQ(inodes().Lookup(InodeFiles::kRoot, name)->kind, kind);
  }
}

TEST_F(PositionalFileTest, ASyncOfALogIsOneWriteOfTheDevice) {
  const File file = Create("000001.log", FileKind::kLog);
  file->SetIoClass(IoClass::kWal);
  ISOZONE_ASSERT_OK(Write(file, 0, "first"));
  ISOZONE_ASSERT_OK(file->Sync());
  const Figures before = volume_.fs().state().Stats();
  for (int i = 0; i < 10; ++i) {
    ISOZONE_ASSERT_OK(file->Append(Bytes("and more")).status());
    ISOZONE_ASSERT_OK(file->Sync());
  }
  const Figures after = volume_.fs().state().Stats();
  EXPECT_EQ(after.journal_commits, before.journal_commits);
  const auto wal = static_cast<size_t>(IoClass::kWal);
  EXPECT_EQ(after.by_class[wal].writes - before.by_class[wal].writes, 10U);
}

TEST_F(PositionalFileTest, ARecycledLogIsWrittenAnewOverItsOldBytes) {
  std::string model;
  {
    const File file = Create("000001.log", FileKind::kLog);
    model = Text(50000);
    for (size_t at = 0; at < model.size(); at += 1000) {
      ISOZONE_ASSERT_OK(Write(file, at, model.substr(at, 1000)));
      if (at % 3000 == 0) ISOZONE_ASSERT_OK(file->Sync());
    }
    // The unsynced tail is overwritten first.
    ISOZONE_ASSERT_OK(Write(file, 49000, "tail"));
    model.replace(49000, 4, "tail");
    EXPECT_EQ(Content(file), model);
    ISOZONE_ASSERT_OK(inodes().Rename(1, "000001.log", 1, "000007.log", RenameMode::kReplace));
    for (size_t at = 0; at < 8000; at += 500) {
      ISOZONE_ASSERT_OK(Write(file, at, Text(500, 'K')));
      model.replace(at, 500, Text(500, 'K'));
      if (at % 1000 == 0) ISOZONE_ASSERT_OK(file->Sync());
    }
    ISOZONE_ASSERT_OK(file->Sync());
    EXPECT_EQ(Content(file), model);
  }
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  EXPECT_EQ(Content(Open("000007.log")), model);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(PositionalFileTest, AFileWithoutANameGoesOnAndLeavesNothing) {
  const uint64_t live = volume_.fs().state().Space().live;
  for (const FileKind kind : {FileKind::kData, FileKind::kLog}) {
    const File file = Create("f", kind);
    ISOZONE_ASSERT_OK(Write(file, 0, Text(9000)));
    ISOZONE_ASSERT_OK(file->Sync());
    ISOZONE_ASSERT_OK(inodes().Unlink(1, "f"));
    EXPECT_EQ(inodes().Lookup(1, "f").status().code(), StatusCode::kNotFound);
    std::string model = Text(9000);
    ISOZONE_ASSERT_OK(Write(file, 100, "in place"));
    model.replace(100, 8, "in place");
    ISOZONE_ASSERT_OK(Write(file, 9000, "and behind"));
    model += "and behind";
    ISOZONE_ASSERT_OK(file->Sync());
    EXPECT_EQ(Content(file), model);
    ISOZONE_ASSERT_OK(file->Truncate(50));
    ISOZONE_ASSERT_OK(file->Truncate(60));
    EXPECT_EQ(Content(file), model.substr(0, 50) + std::string(10, '\0'));
    const auto attributes = inodes().GetAttributes(file->inode());
    ISOZONE_ASSERT_OK(attributes.status());
    EXPECT_EQ(attributes->links, 0U);
    EXPECT_EQ(attributes->size, 60U);
  }
  EXPECT_EQ(volume_.fs().state().Space().live, live);
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(PositionalFileTest, OneObjectServesAllOpens) {
  const File one = Create("f");
  const File other = Open("f");
  EXPECT_EQ(one, other);
  ISOZONE_ASSERT_OK(Write(one, 0, "shared"));
  EXPECT_EQ(Content(other), "shared");
}

TEST_F(PositionalFileTest, AWriterElsewhereMakesItBusy) {
  auto writer = volume_.fs().Create("/f", {}).value();
  ISOZONE_ASSERT_OK(writer->Append(Bytes("its own")));
  const File file = Open("f");
  EXPECT_EQ(Content(file), "its own");
  EXPECT_EQ(Write(file, 7, "x").code(), StatusCode::kBusy);
  ISOZONE_ASSERT_OK(writer->Close());
  ISOZONE_ASSERT_OK(Write(file, 7, "x"));
  EXPECT_EQ(Content(file), "its ownx");
}

TEST_F(PositionalFileTest, HandlesMayOutliveTheMount) {
  File data = Create("data");
  File log = Create("log", FileKind::kLog);
  ISOZONE_ASSERT_OK(Write(data, 0, Text(5000)));
  ISOZONE_ASSERT_OK(Write(data, 10, "in place"));
  ISOZONE_ASSERT_OK(Write(log, 0, Text(5000)));
  ISOZONE_ASSERT_OK(volume_.fs().Unmount());
  EXPECT_EQ(Write(data, 0, "late").code(), StatusCode::kAborted);
  EXPECT_EQ(log->Sync().code(), StatusCode::kAborted);
  volume_.Unmount();
  EXPECT_EQ(Content(log), Text(5000));
  data.reset();
  log.reset();
  volume_.ExpectFsckClean();
  ISOZONE_ASSERT_OK(volume_.Mount());
  EXPECT_EQ(Content(Open("log")), Text(5000));
  EXPECT_EQ(Content(Open("data")).substr(10, 8), "in place");
}

TEST_F(PositionalFileTest, AnOverwriteRecordsOnlyWhatItChanges) {
  const File file = Create("f");
  const std::string block(4096, 'x');
  for (int i = 0; i < 1000; ++i) ISOZONE_ASSERT_OK(Write(file, static_cast<uint64_t>(i) * 4096, block));
  ISOZONE_ASSERT_OK(file->Sync());
  for (int i = 0; i < 500; ++i) {
    ISOZONE_ASSERT_OK(Write(file, static_cast<uint64_t>((i * 37) % 1000) * 4096, block));
  }
  ISOZONE_ASSERT_OK(file->Sync());
  const uint64_t before = volume_.fs().state().Stats().journal_bytes;
  ISOZONE_ASSERT_OK(Write(file, 400 * 4096, "here"));
  ISOZONE_ASSERT_OK(file->Sync());
  EXPECT_LE(volume_.fs().state().Stats().journal_bytes - before, 2 * 4096U);  // a block for each copy
}

TEST_F(PositionalFileTest, OverwritesCountOnBothSidesOfWriteAmplification) {
  constexpr uint64_t kPiece = 64 * kKiB;
  const File file = Create("f");
  for (int round = 0; round < 4; ++round) {
    for (uint64_t offset = 0; offset < kMiB; offset += kPiece) ISOZONE_ASSERT_OK(Write(file, offset, Text(kPiece)));
    ISOZONE_ASSERT_OK(file->Sync());
  }
  const Figures stats = volume_.fs().state().Stats();
  EXPECT_EQ(stats.in_place_bytes, 3 * kMiB);
  EXPECT_EQ(stats.user_bytes_appended, 4 * kMiB);
  EXPECT_GE(stats.WriteAmplification(), 1.0);
  EXPECT_LT(stats.WriteAmplification(), 1.1);
}

TEST_F(PositionalFileTest, WhatWasAcceptedOnAFullDeviceIsThere) {
  for (const FileKind kind : {FileKind::kData, FileKind::kLog, FileKind::kSmall}) {
    std::string model;
    const std::string name(FileKindName(kind));
    {
      const File file = Create(name, kind);
      Status status;
      while (status.ok()) {
        const std::string piece = Text(30000, static_cast<char>('A' + model.size() % 31));
        status = Write(file, model.size(), piece);
        if (status.ok()) model += piece;
      }
      EXPECT_EQ(status.code(), StatusCode::kNoSpace) << status.ToString();
      EXPECT_GT(model.size(), 20 * kMiB);
      ISOZONE_EXPECT_OK(file->Sync());
      EXPECT_EQ(file->size(), model.size());
    }
    ISOZONE_ASSERT_OK(volume_.CutAndRemount());
    EXPECT_TRUE(Content(Open(name)) == model);
    ISOZONE_ASSERT_OK(inodes().Unlink(1, name));
    ISOZONE_ASSERT_OK(volume_.fs().state().Settle());
  }
}

TEST_F(PositionalFileTest, AllocatedSpaceIsNotGivenToOthers) {
  const File promised = Create("promised");
  ISOZONE_ASSERT_OK(promised->Allocate(0, 4 * kMiB, /*keep_size=*/false));
  EXPECT_EQ(promised->size(), 4 * kMiB);
  const File kept = Create("kept");
  ISOZONE_ASSERT_OK(kept->Allocate(0, 4 * kMiB, /*keep_size=*/true));
  EXPECT_EQ(kept->size(), 0U);
  EXPECT_EQ(kept->Allocate(0, kGiB, /*keep_size=*/true).code(), StatusCode::kNoSpace);
  EXPECT_EQ(kept->Allocate(0, 0, /*keep_size=*/true).code(), StatusCode::kInvalidArgument);
  const File filler = Create("filler");
  Status status;
  for (uint64_t at = 0; status.ok(); at += 64 * kKiB) status = Write(filler, at, std::string(64 * kKiB, 'x'));
  EXPECT_EQ(status.code(), StatusCode::kNoSpace);
  const std::string page = Text(64 * kKiB);
  for (uint64_t at = 0; at < 4 * kMiB; at += page.size()) {
    ISOZONE_ASSERT_OK(Write(promised, at, page));
    ISOZONE_ASSERT_OK(Write(kept, at, page));
  }
  ISOZONE_ASSERT_OK(promised->Sync());
  ISOZONE_ASSERT_OK(kept->Sync());
}

TEST_F(PositionalFileTest, CollectionAndOverwritesOfTheSameBytesKeepThem) {
  const uint64_t seed = TestSeed(11);
  std::cout << "seed " << seed << '\n';
  Random random(seed);
  std::string model = RandomBytes(random, 6 * kMiB);
  const File file = Create("f");
  ISOZONE_ASSERT_OK(Write(file, 0, model));
  ISOZONE_ASSERT_OK(file->Sync());
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 60; ++i) {
      const uint64_t offset = random.Below(model.size() - 20000);
      const std::string now = RandomBytes(random, random.Between(1, 20000));
      ISOZONE_ASSERT_OK(Write(file, offset, now));
      model.replace(offset, now.size(), now);
    }
    // Of what was written since the last Sync, the metadata knows nothing yet.
    ISOZONE_ASSERT_OK(volume_.fs().collection().Run(100, {}).status());
    EXPECT_TRUE(Content(file) == model);
    if (round % 3 == 0) ISOZONE_ASSERT_OK(file->Sync());
  }
  ISOZONE_ASSERT_OK(file->Sync());
  ISOZONE_ASSERT_OK(volume_.fs().state().Settle());
  EXPECT_TRUE(Content(file) == model);
  EXPECT_EQ(volume_.fs().state().Space().live, model.size());  // what was overwritten is free, though it is open
}

TEST_F(PositionalFileTest, ThreadsOnOneFileDoNotDisturbOneAnother) {
  constexpr uint64_t kPart = 64 * kKiB;
  constexpr int kWriters = 3;
  const File file = Create("f");
  ISOZONE_ASSERT_OK(file->Truncate(kPart * (kWriters + 1)));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      for (int i = 0; i < 60; ++i) {
        const std::string now(kPart, static_cast<char>('a' + i % 26));
        ISOZONE_EXPECT_OK(Write(file, kPart * static_cast<uint64_t>(w), now));
        if (i % 7 == 0) ISOZONE_EXPECT_OK(file->Sync());
      }
    });
  }
  threads.emplace_back([&] {  // cuts and extends behind the writers
    for (int i = 0; i < 60; ++i) {
      ISOZONE_EXPECT_OK(file->Truncate(kPart * kWriters + static_cast<uint64_t>(i % 5) * 1000));
      ISOZONE_EXPECT_OK(file->Allocate(kPart * kWriters, 3000, i % 2 == 0));
    }
  });
  threads.emplace_back([&] {
    std::string buffer(kPart, '?');
    while (!stop) {
      for (uint64_t part = 0; part < kWriters; ++part) {
        const auto read = file->Read(part * kPart, std::as_writable_bytes(std::span(buffer)), IoClass::kUserRead);
        ISOZONE_EXPECT_OK(read.status());
      }
    }
  });
  threads.emplace_back([&] {
    while (!stop) ISOZONE_EXPECT_OK(inodes().GetAttributes(file->inode()).status());
  });
  threads.emplace_back([&] {
    while (!stop) ISOZONE_EXPECT_OK(volume_.fs().collection().Run(100, {}).status());
  });
  for (int t = 0; t < kWriters + 1; ++t) threads[static_cast<size_t>(t)].join();
  ISOZONE_EXPECT_OK(inodes().Unlink(1, "f"));
  stop = true;
  for (size_t t = kWriters + 1; t < threads.size(); ++t) threads[t].join();
  const std::string content = Content(file);
  for (uint64_t part = 0; part < kWriters; ++part) {
    EXPECT_EQ(content.substr(part * kPart, kPart), std::string(kPart, static_cast<char>('a' + 59 % 26)));
  }
}

// What a file may be after a power cut: each byte is that of the last Sync or of a later version.
class Versions {
 public:
  void Change(const std::string& now) { versions_.push_back(now); }
  void Sync() { versions_.erase(versions_.begin(), versions_.end() - 1); }
  const std::string& now() const { return versions_.back(); }
  void Become(const std::string& now) { versions_ = {now}; }

  testing::AssertionResult MayBe(const std::string& content) const {
    size_t least = SIZE_MAX, most = 0;
    for (const std::string& v : versions_) {
      least = std::min(least, v.size());
      most = std::max(most, v.size());
    }
    if (content.size() < least || content.size() > most) {
      return testing::AssertionFailure() << content.size() << " bytes, not " << least << " to " << most;
    }
    for (size_t i = 0; i < content.size(); ++i) {
      const bool found = std::any_of(versions_.begin(), versions_.end(),
                                     [&](const std::string& v) { return i < v.size() && v[i] == content[i]; });
      if (!found) return testing::AssertionFailure() << "byte " << i << " of " << content.size() << " is none of its";
    }
    return testing::AssertionSuccess();
  }

 private:
  std::vector<std::string> versions_{std::string()};
};

class PositionalModelTest : public PositionalFileTest {
 protected:
  static constexpr size_t kFiles = 4;

  void Open() {
    for (size_t i = 0; i < kFiles; ++i)
      files_[i] = PositionalFileTest::Open(std::string(1, static_cast<char>('a' + i)));
  }
  void Close() {
    for (File& file : files_) file.reset();
  }

  // One random operation on one file. False: the device does not take it.
  bool Step(Random& random) {
    const size_t i = random.Below(kFiles);
    const File& file = files_[i];
    std::string now = versions_[i].now();
    Status status;
    switch (random.Below(10)) {
      case 0:
        status = file->Sync();
        if (status.ok()) versions_[i].Sync();
        return status.ok();
      case 1: {
        const uint64_t size = random.Below(60000);
        now.resize(size, '\0');
        versions_[i].Change(now);
        status = file->Truncate(size);
        break;
      }
      case 2:
        status = volume_.fs().collection().Run(100, {}).status();
        return status.ok();
      case 3:
      case 4:
      case 5: {
        const std::string more = RandomBytes(random, random.Between(1, 6000));
        now += more;
        versions_[i].Change(now);
        status = file->Append(Bytes(more)).status();
        break;
      }
      default: {
        const uint64_t offset = random.Below(now.size() + 5000);
        const std::string data = RandomBytes(random, random.Between(1, 9000));
        if (offset > now.size()) {
          now.resize(offset, '\0');  // the hole may be there without what comes behind it
          versions_[i].Change(now);
        }
        now.resize(std::max<size_t>(now.size(), offset + data.size()), '\0');
        now.replace(offset, data.size(), data);
        versions_[i].Change(now);
        status = Write(file, offset, data);
        break;
      }
    }
    EXPECT_TRUE(!status.ok() || file->size() == now.size());
    return status.ok();
  }

  void Run(uint64_t seed, int rounds, bool cuts) {
    std::cout << "seed " << seed << '\n';
    Random random(seed);
    for (size_t i = 0; i < kFiles; ++i) {
      Create(std::string(1, static_cast<char>('a' + i)), static_cast<FileKind>(i % 3));
    }
    ISOZONE_ASSERT_OK(volume_.fs().SyncMetadata());
    for (int round = 0; round < rounds; ++round) {
      SCOPED_TRACE(round);
      Open();
      if (cuts) volume_.device().CutPowerAfter(random.Between(1, 150));
      for (int step = 0; step < 60; ++step) {
        if (!Step(random)) {
          ASSERT_TRUE(cuts);
          break;
        }
      }
      for (size_t i = 0; i < kFiles && !cuts; ++i) ASSERT_TRUE(Content(files_[i]) == versions_[i].now());
      Close();
      ISOZONE_ASSERT_OK(cuts ? volume_.CutAndRemount() : volume_.Remount());
      Open();
      for (size_t i = 0; i < kFiles; ++i) {
        const std::string content = Content(files_[i]);
        ASSERT_TRUE(versions_[i].MayBe(content)) << "file " << i;
        ASSERT_TRUE(cuts || content == versions_[i].now()) << "file " << i;
        versions_[i].Become(content);
      }
      Close();
    }
    volume_.Unmount();
    volume_.ExpectFsckClean();
  }

  File files_[kFiles];
  Versions versions_[kFiles];
};

// A fixed sequence of operations, cut in every command that it sends to the device.
class PositionalCutTest : public testing::Test {
 protected:
  // Runs until an operation fails; false: none did. What may be there is in versions_.
  bool RunUntilCut(FileSystem& fs) {
    InodeFiles& inodes = fs.inodes();
    for (size_t i = 0; i < kFiles; ++i) files_[i] = inodes.Open(inodes.Lookup(1, Name(i))->inode).value();
    return Steps(inodes);
  }
  bool Steps(InodeFiles& inodes) {
    const std::string page(4096, 'p');
    for (size_t i = 0; i < kFiles; ++i) {
      if (!Write(i, 0, Pattern(9000, 'a')) || !Sync(i)) return false;
      if (!Write(i, 9000, Pattern(3000, 'b')) || !Write(i, 11000, Pattern(500, 'c'))) return false;  // unsynced tail
      if (!Write(i, 4096, page) || !Write(i, 6000, Pattern(4096, 'd')) || !Sync(i)) return false;
      if (!Truncate(i, 40000) || !Write(i, 30000, page) || !Write(i, 50000, page) || !Sync(i)) return false;
      if (!Truncate(i, 5000) || !Write(i, 5000, page) || !Write(i, 0, page) || !Sync(i)) return false;
    }
    if (!inodes.SetAttributes(files_[0]->inode(), {.mode = 0600}).ok()) return false;
    if (!inodes.SetXattr(files_[0]->inode(), "user.x", "v", XattrMode::kSet).ok()) return false;
    if (!Write(1, 100, page) || !inodes.Rename(1, Name(1), 1, Name(0), RenameMode::kExchange).ok()) return false;
    exchanged_ = Names::kEither;
    if (!Sync(1)) return false;
    exchanged_ = Names::kNew;
    return Write(0, 200, page) && Sync(0);
  }
  bool Write(size_t i, uint64_t offset, const std::string& data) {
    std::string now = versions_[i].now();
    if (offset > now.size()) {
      now.resize(offset, '\0');
      versions_[i].Change(now);
    }
    now.resize(std::max<size_t>(now.size(), offset + data.size()), '\0');
    now.replace(offset, data.size(), data);
    versions_[i].Change(now);
    return files_[i]->Write(offset, Bytes(data)).ok();
  }
  bool Truncate(size_t i, uint64_t size) {
    std::string now = versions_[i].now();
    now.resize(size, '\0');
    versions_[i].Change(now);
    return files_[i]->Truncate(size).ok();
  }
  bool Sync(size_t i) {
    if (!files_[i]->Sync().ok()) return false;
    versions_[i].Sync();
    return true;
  }
  static std::string Pattern(size_t size, char first) {
    std::string text(size, '\0');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(first + i % 13);
    return text;
  }
  static std::string Name(size_t i) { return std::string(1, static_cast<char>('a' + i)); }

  void Check(TestVolume& volume) {
    std::string content[kFiles];
    for (size_t i = 0; i < kFiles; ++i) content[i] = volume.ReadFile("/" + Name(i)).value();
    const bool is_new = volume.fs().inodes().Lookup(1, "a")->inode != inode_of_a_;
    ASSERT_TRUE(exchanged_ == Names::kEither || is_new == (exchanged_ == Names::kNew));
    if (is_new) std::swap(content[0], content[1]);
    for (size_t i = 0; i < kFiles; ++i) ASSERT_TRUE(versions_[i].MayBe(content[i])) << "file " << i;
  }

  static constexpr size_t kFiles = 2;  // of data, and a log
  enum class Names : uint8_t { kOld, kEither, kNew };
  File files_[kFiles];
  Versions versions_[kFiles];
  Names exchanged_ = Names::kOld;
  uint64_t inode_of_a_ = 0;
};

TEST_F(PositionalCutTest, EveryCommand) {
  uint64_t cuts = 0;
  for (bool cut = true; cut; ++cuts) {
    SCOPED_TRACE("cut after " + std::to_string(cuts) + " commands");
    for (Versions& versions : versions_) versions.Become("");
    exchanged_ = Names::kOld;
    TestVolume volume(SmallGeometry(/*zones=*/24, /*zone_size=*/256 * kKiB));
    ISOZONE_ASSERT_OK(volume.Mount());
    CreateOptions log;
    log.kind = FileKind::kLog;
    inode_of_a_ = volume.fs().inodes().Create(1, "a", {}, {}).value()->inode();
    ISOZONE_ASSERT_OK(volume.fs().inodes().Create(1, "b", log, {}).status());
    ISOZONE_ASSERT_OK(volume.Remount());
    volume.device().CutPowerAfter(cuts);
    cut = !RunUntilCut(volume.fs());
    for (File& file : files_) file.reset();
    ISOZONE_ASSERT_OK(volume.CutAndRemount());
    ASSERT_NO_FATAL_FAILURE(Check(volume));
    {
      const File file = volume.fs().inodes().Open(inode_of_a_).value();
      const std::string before = Pattern(700, 'x');
      ISOZONE_ASSERT_OK(file->Write(100, Bytes(before)));
      ISOZONE_ASSERT_OK(file->Sync());
    }
    volume.Unmount();
    volume.ExpectFsckClean();
  }
  EXPECT_GT(cuts, 50U);
}

TEST_F(PositionalFileTest, WhatIsCutOffIsFreeWhileItIsOpen) {
  for (const FileKind kind : {FileKind::kData, FileKind::kLog}) {
    const std::string name(FileKindName(kind));
    const File file = Create(name, kind);
    const uint64_t live = volume_.fs().state().Space().live;
    for (int i = 0; i < 10; ++i) {
      ISOZONE_ASSERT_OK(Write(file, 0, Text(200000)));
      ISOZONE_ASSERT_OK(file->Truncate(0));
    }
    EXPECT_EQ(volume_.fs().state().Space().live, live);
  }
}

TEST_F(PositionalModelTest, RandomOperationsAndRemounts) { Run(TestSeed(1), 30, /*cuts=*/false); }

TEST_F(PositionalModelTest, RandomOperationsAndPowerCuts) { Run(TestSeed(2), 120, /*cuts=*/true); }

}  // namespace
}  // namespace isozone
