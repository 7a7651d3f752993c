// Scans that read ahead: what they read of the device, and what they see when the file changes or the device fails.
#include "store/file/read_ahead.h"

#include <algorithm>
#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/file/stripe_test_util.h"
#include "store/inode_files.h"
#include "store/positional_file.h"

namespace isozone {
namespace {

class ReadAheadTest : public StripeTest {
 protected:
  // Reads a whole file as compaction does, in pieces of `piece` bytes.
  Result<std::string> Scan(const std::string& path, size_t piece) {
    ISOZONE_ASSIGN_OR_RETURN(const auto reader, fs().OpenForRead(path));
    std::string content(reader->size(), '\0');
    for (size_t at = 0; at < content.size(); at += piece) {
      const auto out = std::as_writable_bytes(std::span(content)).subspan(at, std::min(piece, content.size() - at));
      ISOZONE_ASSIGN_OR_RETURN(const size_t n, reader->Read(at, out, IoClass::kCompactionRead));
      if (n != out.size()) return Status::IoError("short read");
    }
    return content;
  }
  // What a scan finds in `bytes` bytes at `at`; `file` is a FileReader or a PositionalFile.
  static Result<std::string> Read(auto& file, uint64_t at, size_t bytes) {
    std::string found(bytes, '\0');
    const auto n = file.Read(at, std::as_writable_bytes(std::span(found)), IoClass::kCompactionRead);
    ISOZONE_RETURN_IF_ERROR(n.status());
    found.resize(*n);
    return found;
  }
  uint64_t DeviceReads() { return fs().state().Stats().by_class[static_cast<size_t>(IoClass::kCompactionRead)].reads; }
};

TEST_F(ReadAheadTest, AScanSeesTheFileInWholeStripes) {
  MountWithGroups(Striped());
  const std::string content = Content(3000000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  for (const size_t piece : {1000UL, 65536UL, 777777UL, 3000000UL}) {
    const auto scanned = Scan("/f", piece);
    ASSERT_TRUE(scanned.ok()) << scanned.status().ToString();
    EXPECT_TRUE(*scanned == content) << piece;
  }
}

TEST_F(ReadAheadTest, TheDeviceIsReadInFewLargePieces) {
  MountWithGroups(Striped());
  const std::string content = Content(3000000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  const uint64_t extents = Extents("/f").size();
  EXPECT_TRUE(*Scan("/f", 4096) == content);
  EXPECT_LE(DeviceReads(), extents + 16) << "one request an extent, and one more where a window cuts it";
}

// As the kernel reads a mounted directory: it cuts a long read into requests, which several threads serve.
TEST_F(ReadAheadTest, PiecesThatOvertakeEachOtherAreOfOneScan) {
  MountWithGroups(Striped());
  const size_t piece = 8192, at_once = 3;
  const std::string content = Content(at_once * piece * 100);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  const uint64_t extents = Extents("/f").size();
  const auto reader = fs().OpenForRead("/f").value();
  std::barrier turn(at_once);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < at_once; ++thread) {
    threads.emplace_back([&, thread] {
      for (size_t at = thread * piece; at < content.size(); at += at_once * piece) {
        turn.arrive_and_wait();
        EXPECT_TRUE(Read(*reader, at, piece).value() == content.substr(at, piece)) << at;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(DeviceReads(), extents + 16 + at_once) << "at most the first ones were read by themselves";
}

TEST_F(ReadAheadTest, JumpsAndOtherReadersAreServed) {
  MountWithGroups(Striped());
  const std::string content = Content(2000000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  const auto reader = fs().OpenForRead("/f").value();
  uint64_t scan = 0;
  for (int i = 0; i < 3000; ++i) {
    const bool jumps = random_.Chance(0.3);
    const uint64_t at = jumps ? random_.Below(content.size()) : scan;
    const uint64_t end = std::min<uint64_t>(at + random_.Between(1, 5000), content.size());
    ASSERT_EQ(Read(*reader, at, end - at).value(), content.substr(at, end - at)) << at;
    if (!jumps) scan = end % content.size();
  }
}

TEST_F(ReadAheadTest, WhatWasReadAheadGoesWhenTheFileIsCutOrOverwritten) {
  MountWithGroups(Striped());
  std::string content = Content(20000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  const auto reader = fs().OpenForRead("/f").value();
  EXPECT_TRUE(Read(*reader, 0, 1000).value() == content.substr(0, 1000));
  content.replace(1500, 100, Content(100));
  ISOZONE_ASSERT_OK(fs().Overwrite("/f", 1500, Bytes(content).subspan(1500, 100)));
  EXPECT_TRUE(Read(*reader, 1000, 1000).value() == content.substr(1000, 1000));
  ISOZONE_ASSERT_OK(fs().Truncate("/f", 2300));
  EXPECT_TRUE(Read(*reader, 2000, 1000).value() == content.substr(2000, 300));
}

TEST_F(ReadAheadTest, MemoryIsBounded) {
  MountOptions options = Striped();
  options.read_ahead_memory = 2 * kMiB;
  MountWithGroups(options);
  const std::string content = Content(2000000);
  std::vector<std::unique_ptr<FileReader>> readers;
  for (int i = 0; i < 5; ++i) {
    const std::string path = "/f" + std::to_string(i);
    ISOZONE_ASSERT_OK(volume_.WriteFile(path, content));
    readers.push_back(fs().OpenForRead(path).value());
  }
  const uint64_t before = DeviceReads();
  for (auto& reader : readers) {  // each begins a scan and stops there
    EXPECT_EQ(Read(*reader, 0, 1000).value(), content.substr(0, 1000));
  }
  const auto read = fs().state().Stats().by_class[static_cast<size_t>(IoClass::kCompactionRead)].bytes_read;
  EXPECT_LE(read, options.read_ahead_memory + 5 * 64 * kKiB);
  EXPECT_GT(DeviceReads(), before);
  readers.clear();
  EXPECT_TRUE(*Scan("/f0", 10000) == content) << "what was held is free again";
}

TEST_F(ReadAheadTest, ErrorsAreThoseOfTheBytesThatWereAskedFor) {
  MountWithGroups(Striped());
  const std::string content = Content(2000000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  const auto zone = volume_.device().geometry().ZoneOf(Extents("/f").back().device_offset);
  const auto reader = fs().OpenForRead("/f").value();
  ISOZONE_EXPECT_OK(Read(*reader, 0, 1000).status());
  volume_.device().SetZoneState(zone, ZoneState::kOffline);
  uint64_t at = 1000;
  while (at + 1000 <= content.size() && Read(*reader, at, 1000).ok()) at += 1000;
  // This is the first piece of the file that lies in that zone.
  for (const FileExtent& extent : Extents("/f")) {
    if (volume_.device().geometry().ZoneOf(extent.device_offset) != zone) continue;
    EXPECT_GE(at + 1000, extent.file_offset);
    break;
  }
  EXPECT_LT(at, content.size());
  EXPECT_TRUE(Read(*reader, at, 1000).status().Is(StatusCode::kIoError));
}

TEST_F(ReadAheadTest, ManyThreadsScanOneReader) {
  MountWithGroups(Striped());
  const std::string content = Content(2000000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  const auto reader = fs().OpenForRead("/f").value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const size_t piece = 10000;
      for (uint64_t at = 0; at < content.size(); at += piece) {
        ASSERT_EQ(Read(*reader, at, piece).value(), content.substr(at, piece));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Bytes that were in the writer's memory go with it when they cannot be written. Others take their place.
TEST_F(ReadAheadTest, WhatTheWriterLostIsNoLongerRead) {
  MountWithGroups(Striped());
  const auto file = fs().inodes().Create(InodeFiles::kRoot, "f", {}, {}).value();
  ISOZONE_ASSERT_OK(file->Append(Bytes(Content(50000))).status());
  EXPECT_EQ(Read(*file, 0, 1000).value().size(), 1000U);
  const std::vector<ZoneView> zones = fs().state().Zones();
  for (uint32_t zone = 0; zone < zones.size(); ++zone) {
    if (zones[zone].use == ZoneUse::kMetadata) continue;
    volume_.device().SetZoneState(ZoneId(zone), ZoneState::kReadOnly);
  }
  EXPECT_FALSE(file->Sync().ok());
  ASSERT_EQ(file->size(), 0U);
  ISOZONE_ASSERT_OK(file->Truncate(50000));
  EXPECT_TRUE(Read(*file, 1000, 1000).value() == std::string(1000, '\0'));
}

TEST_F(ReadAheadTest, AScanFromTheMiddleReadsAheadThoughAnotherHasStopped) {
  MountWithGroups(Striped());
  const std::string content = Content(6500000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  const auto reader = fs().OpenForRead("/f").value();
  const size_t piece = 8192;
  const auto read = [&](uint64_t at) {
    EXPECT_TRUE(Read(*reader, at, piece).value() == content.substr(at, piece)) << at;
  };
  read(0);                          // and stops there
  const uint64_t left_over = kMiB;  // two windows
  uint64_t at = 1500000;
  const uint64_t end = at + ReadAheadMemory::kPatience * left_over + 2 * piece;
  for (; at < end; at += piece) read(at);
  const uint64_t before = DeviceReads();
  uint64_t pieces = 0;
  for (; at + piece <= content.size(); at += piece, ++pieces) read(at);
  const uint64_t extents = Extents("/f").size();
  ASSERT_GT(pieces, extents + 16);
  EXPECT_LE(DeviceReads(), before + extents + 16);
}

// A compaction does not read the index and the filters behind the data again, and its inputs stay open until it ends.
TEST_F(ReadAheadTest, ScansThatStopBeforeTheEndLeaveMemoryToOthers) {
  MountOptions options = Striped();
  options.read_ahead_memory = 2 * kMiB;
  MountWithGroups(options);
  const std::string content = Content(2000000);
  std::vector<std::unique_ptr<FileReader>> readers;
  const size_t piece = 20000;
  uint64_t before = 0, expected = 0;
  for (int i = 0; i < 12; ++i) {
    if (i == 6) before = DeviceReads();
    const std::string path = "/f" + std::to_string(i);
    ISOZONE_ASSERT_OK(volume_.WriteFile(path, content));
    if (i >= 6) expected += Extents(path).size() + 16;
    readers.push_back(fs().OpenForRead(path).value());
    for (uint64_t at = 0; at < content.size() - 5 * piece; at += piece) {
      ASSERT_TRUE(Read(*readers.back(), at, piece).value() == content.substr(at, piece)) << at;
    }
  }
  EXPECT_LE(DeviceReads(), before + expected);
}

TEST_F(ReadAheadTest, WhatCannotBeReadAheadIsReadOnce) {
  MountWithGroups(Striped());
  const size_t piece = 16384;
  const std::string content = Content(piece * 180);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  const std::vector<FileExtent> extents = Extents("/f");
  const DeviceGeometry geometry = volume_.device().geometry();
  const ZoneId bad = geometry.ZoneOf(extents[2].device_offset);  // a part of each window
  volume_.device().SetZoneState(bad, ZoneState::kOffline);
  const auto reader = fs().OpenForRead("/f").value();
  uint64_t failed = 0;
  for (size_t at = 0; at < content.size(); at += piece) {
    const auto found = Read(*reader, at, piece);
    failed += found.ok() ? 0 : 1;
    EXPECT_TRUE(!found.ok() || *found == content.substr(at, piece)) << at;
  }
  EXPECT_GT(failed, 0U);
  EXPECT_LE(DeviceReads(), 2 * content.size() / piece + extents.size() + 16) << "each piece by itself, windows once";
}

TEST_F(ReadAheadTest, AFileThatChangesAllTheTimeIsNotReadAhead) {
  MountWithGroups(Striped());
  const std::string content = Content(2000000);
  ISOZONE_ASSERT_OK(volume_.WriteFile("/f", content));
  const auto reader = fs().OpenForRead("/f").value();
  const size_t piece = 10000, pieces = 20;
  for (uint64_t at = 0; at < pieces * piece; at += piece) {
    EXPECT_TRUE(Read(*reader, at, piece).value() == content.substr(at, piece)) << at;
    ISOZONE_ASSERT_OK(fs().Overwrite("/f", content.size() - 100, Bytes(content).last(100)));
  }
  const auto read = fs().state().Stats().by_class[static_cast<size_t>(IoClass::kCompactionRead)].bytes_read;
  EXPECT_LE(read, kMiB + pieces * (piece + 2 * 4 * kKiB)) << "the first two windows, and what was asked for";
}

}  // namespace
}  // namespace isozone
