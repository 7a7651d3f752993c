// GC under a file system: whatever happens to files meanwhile, each keeps its bytes.
#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/passing_device.h"
#include "store/file/collected_files_test_util.h"
#include "store/file/zone_stream.h"

namespace isozone {
namespace {

TEST_F(GcTest, FilesKeepTheirBytesAndSpaceComesBack) {
  Mount();
  MakeGarbage();
  const SpaceInfo before = fs().state().Space();
  const GcPlan plan = fs().collection().Plan(/*all=*/true);
  const CopyStats done = Collect();
  ISOZONE_ASSERT_OK(fs().state().Settle());
  // Survivors may go to a zone that was a victim in the plan.
  EXPECT_LE(done.zones, plan.victims.size());
  EXPECT_GE(done.zones + 1, plan.victims.size());
  EXPECT_LE(done.bytes_copied, plan.copied());
  EXPECT_GT(done.bytes_copied, 0u);
  EXPECT_EQ(done.read_errors + done.mismatches + done.failed_zones, 0u);
  const SpaceInfo after = fs().state().Space();
  EXPECT_EQ(after.live, before.live);
  EXPECT_LT(after.dead, before.dead / 10);
  EXPECT_GT(after.free, before.free);
  EXPECT_GT(after.empty_zones, before.empty_zones);
  ExpectAll();
  EXPECT_EQ(fs().state().Stats().gc_bytes_copied, done.bytes_copied);
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  EXPECT_EQ(fs().state().Space().live, before.live);
  ExpectAll();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

// The rest of the last block of a file is written and not live, but every copy of the file has it, too.
TEST_F(GcTest, PaddingIsNotToBeGained) {
  Mount();
  for (int i = 0; i < 400; ++i) ISOZONE_ASSERT_OK(Write("/f" + std::to_string(i), 5'000));
  ISOZONE_ASSERT_OK(fs().SyncMetadata());
  EXPECT_GT(fs().state().Space().dead, 400 * 3'000U);
  EXPECT_TRUE(fs().collection().Plan(/*all=*/true).victims.empty());
  EXPECT_EQ(Collect().bytes_read, 0u);
  // The two blocks, of which more than a third is padding, are gained. The rest of the zone takes as much as before.
  const std::set<uint32_t> zones = ZonesOf("/f7");
  Remove("/f7");
  ISOZONE_ASSERT_OK(fs().SyncMetadata());
  const GcPlan plan = fs().collection().Plan(/*all=*/true);
  ASSERT_EQ(plan.victims.size(), 1u);
  EXPECT_EQ(plan.victims[0].zone.value(), *zones.begin());
  const uint64_t freed = 2 * volume_.device().geometry().block_size;
  EXPECT_EQ(plan.reclaimed(), freed);
  EXPECT_EQ(plan.copied(), plan.victims[0].written - freed);
  EXPECT_EQ(Collect().bytes_reclaimed, freed);
  ExpectAll();
}

TEST_F(GcTest, APowerCutAfterwardsTakesNothing) {
  Mount();
  MakeGarbage();
  Collect();
  ISOZONE_ASSERT_OK(fs().state().Settle());
  ISOZONE_ASSERT_OK(volume_.CutAndRemount());
  ExpectAll();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

// Otherwise survivors would mix with new data after each mount, and would be copied for ever.
TEST_F(GcTest, AMountKnowsWhereSurvivorsAre) {
  Mount("lsm-zgc");
  MakeGarbage();
  Collect();
  for (int i = 1; i < 16; i += 4) {
    const std::string name = std::to_string(i);
    ISOZONE_ASSERT_OK(fs().Rename("/f" + name, "/g" + name));
    files_["/g" + name] = files_.extract("/f" + name).mapped();
  }
  MakeGarbage();
  Collect();  // the rest of the first files survives for the second time, the others for the first time
  const auto heats = [this] {
    std::map<uint32_t, ZoneHeat> heats;
    for (const ZoneView& zone : fs().state().Zones()) {
      if (zone.live > 0 && zone.heat != kNewDataHeat) heats[zone.device.zone.value()] = zone.heat;
    }
    return heats;
  };
  ISOZONE_ASSERT_OK(fs().SyncMetadata());
  const auto before = heats();
  std::set<ZoneHeat> kinds;
  for (const auto& [zone, heat] : before) kinds.insert(heat);
  ASSERT_GE(kinds.size(), 2u) << before.size() << " zones of survivors";

  // The heats come from the journal first, and then from a checkpoint.
  ISOZONE_ASSERT_OK(volume_.CutAndRemount(WithGc("lsm-zgc")));
  EXPECT_EQ(heats(), before);
  const uint64_t checkpoints = fs().state().Stats().checkpoints;
  for (int i = 0; fs().state().Stats().checkpoints == checkpoints; ++i) {
    ISOZONE_ASSERT_OK(Write("/small", 1));
    ASSERT_LT(i, 100'000);
  }
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("lsm-zgc")));
  EXPECT_EQ(heats(), before);
  ExpectAll();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

TEST_F(GcTest, EverySchemeKeepsEveryByte) {
  for (const char* scheme : {"none", "zenfs", "full", "zenfs+", "lifetime", "lsm-zgc", "isozone"}) {
    SCOPED_TRACE(scheme);
    if (files_.empty()) Mount();
    ISOZONE_ASSERT_OK(volume_.Remount(WithGc(scheme)));
    for (int i = 0; i < 24; ++i) {
      const DataClass data(static_cast<Lifetime>(random_.Below(kLifetimeCount)), static_cast<int8_t>(random_.Below(3)));
      ISOZONE_ASSERT_OK(Write("/f" + std::to_string(i), random_.Between(1, 400'000), data));
    }
    const CopyStats done = Collect();
    EXPECT_EQ(done.mismatches + done.read_errors, 0u);
    ExpectAll();
  }
  EXPECT_GT(fs().state().Stats().gc_bytes_copied, 0u);
}

TEST_F(GcTest, ReadersSeeTheSameBytesWhileTheyAreMoved) {
  Mount();
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> reads = 0;
  ISOZONE_ASSERT_OK(Write("/read", 500'000));
  const std::string wanted = files_["/read"];
  const auto reader = fs().OpenForRead("/read").value();
  std::thread thread([&] {
    Random random(TestSeed(kGcTestSeed));
    std::string buffer(100'000, '\0');
    while (!stop) {
      const uint64_t offset = random.Below(wanted.size());
      const auto n = reader->Read(offset, std::as_writable_bytes(std::span(buffer)), IoClass::kUserRead);
      ASSERT_TRUE(n.ok()) << n.status().ToString();
      ASSERT_EQ(*n, std::min<uint64_t>(buffer.size(), wanted.size() - offset));
      ASSERT_TRUE(buffer.compare(0, *n, wanted, offset, *n) == 0) << offset;
      ++reads;
    }
  });
  uint64_t moves = 0;
  for (int round = 0; round < 30; ++round) {
    const auto before = ZonesOf("/read");
    ISOZONE_EXPECT_OK(Write("/garbage", 300'000));
    Remove("/garbage");
    Collect();
    ISOZONE_EXPECT_OK(fs().state().Settle());  // the place where it was is reset
    moves += ZonesOf("/read") == before ? 0 : 1;
    for (const uint64_t seen = reads; reads == seen && !testing::Test::HasFailure();) std::this_thread::yield();
  }
  stop = true;
  thread.join();
  EXPECT_GT(moves, 3u);
}

TEST_F(GcTest, WhatIsBeingWrittenKeepsItsBytes) {
  Mount();
  auto writer = fs().Create("/open", {}).value();
  const std::string content = RandomBytes(random_, 300'000);
  ISOZONE_ASSERT_OK(writer->Append(Bytes(content)));
  ISOZONE_ASSERT_OK(writer->WriteOut());  // it is on the device, but not in the journal
  MakeGarbage();
  Collect();
  ExpectFiles([&] {
    auto files = files_;
    files["/open"] = content;
    return files;
  }());
  ISOZONE_ASSERT_OK(writer->Append(Bytes("more")));
  ISOZONE_ASSERT_OK(writer->Sync());
  Collect();
  ISOZONE_ASSERT_OK(writer->Append(Bytes(", and more")));
  ISOZONE_ASSERT_OK(writer->Close());
  writer.reset();
  files_["/open"] = content + "more, and more";
  Collect();
  ExpectAll();
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  ExpectAll();
}

TEST_F(GcTest, ARemovedFileStaysReadableWhileItIsOpen) {
  Mount();
  MakeGarbage();
  const std::string content = files_["/f1"];
  auto reader = fs().OpenForRead("/f1").value();
  Remove("/f1");
  Collect();
  ISOZONE_ASSERT_OK(fs().state().Settle());
  std::string got(content.size(), '\0');
  EXPECT_EQ(reader->Read(0, std::as_writable_bytes(std::span(got)), IoClass::kUserRead).value(), content.size());
  EXPECT_TRUE(got == content);
  reader.reset();
  Collect();
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_LT(fs().state().Space().dead, 100'000u);
  ExpectAll();
}

TEST_F(GcTest, AReadOnlyMountFollowsWhatIsMoved) {
  Mount();
  MakeGarbage();
  MountOptions read_only;
  read_only.read_only = true;
  const auto follower = FileSystem::Mount(volume_.OpenDevice(OpenMode::kReadOnly), read_only).value();
  std::map<std::string, std::unique_ptr<FileReader>> readers;
  for (const auto& [path, content] : files_) readers[path] = follower->OpenForRead(path).value();
  for (int round = 0; round < 3; ++round) {
    Collect();
    ISOZONE_ASSERT_OK(fs().state().Settle());
    // Other data lies now where the files were.
    for (int i = 0; i < 8; ++i) ISOZONE_ASSERT_OK(Write("/new" + std::to_string(i), 300'000));
    for (auto& [path, reader] : readers) {
      const std::string& content = files_[path];
      std::string got(content.size(), '\0');
      const auto n = reader->Read(0, std::as_writable_bytes(std::span(got)), IoClass::kUserRead);
      ASSERT_TRUE(n.ok()) << path << ": " << n.status().ToString();
      EXPECT_TRUE(*n == content.size() && got == content) << path;
    }
    for (int i = 0; i < 8; i += 2) Remove("/new" + std::to_string(i));
  }
  EXPECT_TRUE(follower->collection().Run(100, {}).status().Is(StatusCode::kReadOnly));
  EXPECT_TRUE(follower->collection().SetOptions({}).Is(StatusCode::kReadOnly));
}

TEST_F(GcTest, AReadErrorLeavesTheFileAndItsZone) {
  Mount();
  MakeGarbage();
  const uint32_t zone = *ZonesOf("/f1").begin();
  volume_.device().FailNext(DeviceOp::kRead, ZoneId(zone), DeviceStatus::kUnrecoveredReadError);
  const CopyStats done = Collect();
  EXPECT_EQ(done.read_errors, 1u);
  EXPECT_EQ(done.failed_zones, 1u);
  EXPECT_EQ(ZonesOf("/f1").count(zone), 1u);
  ExpectAll();
}

TEST_F(GcTest, AFailedWriteGoesToAnotherZone) {
  Mount();
  MakeGarbage();
  const uint32_t empty = [&] {
    const auto zones = fs().state().Zones();
    for (uint32_t i = 0; i < zones.size(); ++i) {
      if (zones[i].use == ZoneUse::kFree) return i;
    }
    return 0U;
  }();
  const std::vector<ZoneView> before = fs().state().Zones();
  for (uint32_t zone = 2; zone < before.size(); ++zone) {
    if (before[zone].use != ZoneUse::kData && before[zone].use != ZoneUse::kFree) continue;
    volume_.device().FailNext(DeviceOp::kWrite, ZoneId(zone), DeviceStatus::kWriteFault);
    if (zone > empty + 1) break;
  }
  const CopyStats done = Collect();
  EXPECT_GT(done.zones, 0u);
  EXPECT_EQ(done.mismatches, 0u);
  ExpectAll();
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  ExpectAll();
}

// GC gives up on a device that fails all writes.
TEST_F(GcTest, ManyFailedWritesInARowEndTheCollection) {
  Mount();
  MakeGarbage();
  const std::vector<ZoneView> zones = fs().state().Zones();
  for (uint32_t zone = 2; zone < zones.size(); ++zone) {
    if (zones[zone].use != ZoneUse::kData && zones[zone].use != ZoneUse::kFree) continue;
    for (int i = 0; i < 3 * ZoneStream::kMaxAttempts; ++i) {
      volume_.device().FailNext(DeviceOp::kWrite, ZoneId(zone), DeviceStatus::kWriteFault);
    }
  }
  const auto done = fs().collection().Run(100, {});
  EXPECT_TRUE(done.status().Is(StatusCode::kIoError)) << done.status().ToString();
  EXPECT_EQ(fs().state().Stats().write_retries, ZoneStream::kMaxAttempts);
  ExpectAll();
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  ExpectAll();
}

TEST_F(GcTest, ZenfsCollectsIntoOpenZonesOnly) {
  Mount();
  MakeGarbage();
  const std::vector<ZoneView> before = fs().state().Zones();
  GcOptions zenfs = WithGc("zenfs").gc;
  zenfs.start_percent = 100;
  ISOZONE_ASSERT_OK(fs().collection().SetOptions(zenfs));  // the collector looks at once
  while (fs().state().Stats().gc_rounds == 0) std::this_thread::yield();
  const std::vector<ZoneView> after = fs().state().Zones();
  for (size_t i = 0; i < after.size(); ++i) {
    const bool filled = before[i].use == ZoneUse::kFree && after[i].use == ZoneUse::kData;
    EXPECT_FALSE(filled) << "zone " << i;
  }
  EXPECT_GT(fs().state().Stats().gc_bytes_copied, 0u);
  ExpectAll();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

// --- What happens to files between two windows. Zones of three segments, and a segment a window: the second one is
// read before the first one is written, and all are moved together. ---

class GcWindowTest : public GcTest {
 protected:
  GcWindowTest() : GcTest(SmallGeometry(24, 8 * kMiB)) {
    MountOptions options = WithGc("none");
    options.gc.memory = 8 * kMiB;
    const Status status = volume_.Mount(options);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  // A zone with /0 .. /9, of 500 kB each and in this order; the first is removed.
  void FillZone() {
    for (int i = 0; i < 10; ++i) ISOZONE_ASSERT_OK(Write("/" + std::to_string(i), 500'000));
    ASSERT_EQ(ZonesOf("/9"), ZonesOf("/1"));
    Remove("/0");
  }
  CopyStats CollectAnd(const std::function<void()>& change) {
    bool changed = false;
    const auto done = fs().collection().Run(100, [&](const CopyStats&, uint64_t) {
      if (!changed) change();
      return changed = true;
    });
    EXPECT_TRUE(done.ok()) << done.status().ToString();
    EXPECT_TRUE(changed);
    return done.ok() ? *done : CopyStats();
  }
};

TEST_F(GcWindowTest, FilesMayChangeWhileTheyAreCopied) {
  FillZone();
  const CopyStats done = CollectAnd([&] {
    Remove("/5");
    ISOZONE_EXPECT_OK(fs().Truncate("/6", 123'457));
    files_["/6"].resize(123'457);
    ISOZONE_EXPECT_OK(fs().Overwrite("/7", 1'000, Bytes("overwritten")));
    files_["/7"].replace(1'000, 11, "overwritten");
    ISOZONE_EXPECT_OK(fs().Rename("/8", "/renamed"));
    files_["/renamed"] = std::move(files_["/8"]);
    files_.erase("/8");
    auto writer = fs().OpenForAppend("/1", {}).value();  // copied already
    ISOZONE_EXPECT_OK(writer->Append(Bytes("appended")));
    ISOZONE_EXPECT_OK(writer->Close());
    files_["/1"] += "appended";
    ISOZONE_EXPECT_OK(Write("/9", 10));  // replaced
  });
  EXPECT_GT(done.bytes_dropped, 0u);
  ExpectAll();
  Collect();
  ExpectAll();
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  ExpectAll();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

// The copy has bytes that the file no longer has. The file has others under the same name and inode. It would have them
// even in the same place, if the zone could be given away while it is collected.
TEST_F(GcWindowTest, AFileThatIsWrittenAnewKeepsWhatIsNew) {
  ISOZONE_ASSERT_OK(Write("/a", 5'000'000));
  ISOZONE_ASSERT_OK(Write("/garbage", 100'000));
  Remove("/garbage");
  const auto before = ZonesOf("/a");
  CollectAnd([&] {
    ISOZONE_EXPECT_OK(fs().Truncate("/a", 0));
    ISOZONE_EXPECT_OK(fs().state().Settle());
    files_["/a"] = RandomBytes(random_, 5'000'000);
    auto writer = fs().OpenForAppend("/a", {}).value();
    ISOZONE_EXPECT_OK(writer->Append(Bytes(files_["/a"])));
    ISOZONE_EXPECT_OK(writer->Sync());
    ISOZONE_EXPECT_OK(writer->Close());
  });
  ExpectAll();
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_EQ(fs().state().Space().live, files_["/a"].size());
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  ExpectAll();
}

// What is left of a run that was cut or overwritten while it was copied is moved all the same, so that the zone becomes
// empty.
TEST_F(GcWindowTest, AVictimIsEmptiedThoughItsFilesWereCutMeanwhile) {
  FillZone();
  const uint32_t victim = *ZonesOf("/1").begin();
  const CopyStats done = CollectAnd([&] {
    ISOZONE_EXPECT_OK(fs().Truncate("/6", 123'457));
    files_["/6"].resize(123'457);
    ISOZONE_EXPECT_OK(fs().Overwrite("/7", 100'000, Bytes("overwritten")));
    files_["/7"].replace(100'000, 11, "overwritten");
  });
  EXPECT_EQ(done.zones, 1u);
  EXPECT_GT(done.bytes_reclaimed, 0u);
  EXPECT_LT(done.bytes_dropped, 500'000u) << "what was cut off, and what was replaced";
  ISOZONE_ASSERT_OK(fs().state().Settle());
  EXPECT_EQ(fs().state().Zones()[victim].live, 0u);
  ExpectAll();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

// A handle of a removed file keeps its bytes where they are, so that nothing is gained yet.
TEST_F(GcWindowTest, AVictimThatAnOpenHandleKeepsDoesNotCountAsGained) {
  FillZone();
  auto reader = fs().OpenForRead("/5").value();
  const CopyStats done = CollectAnd([&] { Remove("/5"); });
  EXPECT_EQ(done.zones, 0u);
  EXPECT_EQ(done.skipped_zones, 1u);
  EXPECT_EQ(done.bytes_reclaimed, 0u);
  reader.reset();
  ISOZONE_ASSERT_OK(fs().state().Settle());
  ExpectAll();
}

TEST_F(GcWindowTest, OpenHandlesGoOnWorking) {
  FillZone();
  auto reader = fs().OpenForRead("/5").value();
  auto writer = fs().OpenForAppend("/6", {}).value();
  ISOZONE_ASSERT_OK(writer->Append(Bytes("first, ")));
  const std::string content = files_["/5"];
  CollectAnd([&] {
    Remove("/5");
    ISOZONE_EXPECT_OK(writer->Append(Bytes("second")));
    ISOZONE_EXPECT_OK(writer->Truncate(400'000));
    ISOZONE_EXPECT_OK(writer->Append(Bytes("third")));
    ISOZONE_EXPECT_OK(writer->Sync());
  });
  std::string got(content.size(), '\0');
  EXPECT_EQ(reader->Read(0, std::as_writable_bytes(std::span(got)), IoClass::kUserRead).value(), content.size());
  EXPECT_TRUE(got == content);
  ISOZONE_ASSERT_OK(writer->Close());
  writer.reset();
  reader.reset();
  files_["/6"].resize(400'000);
  files_["/6"] += "third";
  ExpectAll();
  ISOZONE_ASSERT_OK(volume_.Remount(WithGc("none")));
  ExpectAll();
  volume_.Unmount();
  volume_.ExpectFsckClean();
}

// --- What a victim costs ---

class CountingDevice final : public PassingDevice {
 public:
  using PassingDevice::PassingDevice;
  void Submit(DeviceRequest& request) override {
    if (request.op == DeviceOp::kFlush) ++flushes;
    PassingDevice::Submit(request);
  }
  std::atomic<uint64_t> flushes = 0;
};

TEST(GcCost, AVictimIsFlushedAndCommittedOnceHoweverManyWindowsItTakes) {
  TestVolume volume(SmallGeometry(24, 8 * kMiB));
  const auto device = volume.OpenDevice();
  auto counting = std::make_unique<CountingDevice>(*device);
  const CountingDevice& counted = *counting;
  MountOptions options = WithGc("none");
  options.gc.memory = 8 * kMiB;  // a window is one segment; the zone has three
  const auto fs = FileSystem::Mount(std::move(counting), options).value();
  Random random(TestSeed(kGcTestSeed));
  for (int i = 0; i < 10; ++i) {
    const auto writer = fs->Create("/" + std::to_string(i), {}).value();
    ISOZONE_ASSERT_OK(writer->Append(Bytes(RandomBytes(random, 500'000))));
    ISOZONE_ASSERT_OK(writer->Close());
  }
  ISOZONE_ASSERT_OK(fs->Unlink("/0"));
  ISOZONE_ASSERT_OK(fs->SyncMetadata());
  const uint64_t flushes = counted.flushes;
  const uint64_t commits = fs->state().Stats().journal_commits;
  uint64_t windows = 0;
  const CopyStats done = fs->collection()
                             .Run(100,
                                  [&](const CopyStats& so_far, uint64_t) {
                                    windows += so_far.zones == 0 ? 1 : 0;
                                    return true;
                                  })
                             .value();
  EXPECT_EQ(done.zones, 1u);
  EXPECT_GE(windows, 3u);
  EXPECT_EQ(counted.flushes - flushes, 1u);
  ISOZONE_ASSERT_OK(fs->SyncMetadata());
  EXPECT_EQ(fs->state().Stats().journal_commits - commits, 1u);
}

// --- Power cuts ---

TEST(GcPowerCut, InAnyCommandOfACollectionLosesNothing) {
  const uint64_t seed = TestSeed(kGcTestSeed);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  uint64_t cuts = 0;
  for (bool cut = true; cut; ++cuts) {
    SCOPED_TRACE(cuts);
    ASSERT_LT(cuts, 1'000u);
    Random random(seed);
    DeviceGeometry geometry = SmallGeometry(32, 256 * kKiB);
    geometry.fua_covers_zone = cuts % 2 == 1;
    TestVolume volume(geometry);
    ISOZONE_ASSERT_OK(volume.Mount(WithGc("none")));
    std::map<std::string, std::string> files;
    for (int i = 0; i < 12; ++i) {
      const std::string path = "/f" + std::to_string(i);
      files[path] = RandomBytes(random, random.Between(10'000, 90'000));
      CreateOptions options;
      options.lifetime = i % 4 == 0 ? Lifetime::kLong : Lifetime::kMedium;
      ISOZONE_ASSERT_OK(volume.WriteFile(path, files[path], options));
    }
    for (int i = 0; i < 12; i += 3) {
      ISOZONE_ASSERT_OK(volume.fs().Unlink("/f" + std::to_string(i)));
      files.erase("/f" + std::to_string(i));
    }
    ISOZONE_ASSERT_OK(volume.fs().SyncMetadata());
    volume.device().CutPowerAfter(cuts);
    const auto done = volume.fs().collection().Run(100, {});
    const Status settled = volume.fs().state().Settle();
    cut = !done.ok() || done->read_errors + done->mismatches > 0 || !settled.ok();
    EXPECT_TRUE(cut || done->bytes_copied > 0);
    ISOZONE_ASSERT_OK(volume.CutAndRemount());
    for (const auto& [path, content] : files) {
      const auto got = volume.ReadFile(path);
      ASSERT_TRUE(got.ok()) << path << ": " << got.status().ToString();
      ASSERT_TRUE(*got == content) << path;
    }
    EXPECT_EQ(volume.fs().List("/")->size(), files.size());
    volume.Unmount();
    ASSERT_NO_FATAL_FAILURE(volume.ExpectFsckClean());
  }
  EXPECT_GT(cuts, 20u);  // reads, writes, reads of copies, a flush, writes to the journal, and resets
}

}  // namespace
}  // namespace isozone
