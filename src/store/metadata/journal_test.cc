#include "store/metadata/journal.h"

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/metadata/journal_test_util.h"
#include "store/metadata/metadata_log.h"

namespace isozone {
namespace {

using testing::HasSubstr;

TEST_F(JournalTest, AFreshDeviceHoldsARootAndTheLabel) {
  const auto recovered = RecoverMetadata(*device_);
  ASSERT_TRUE(recovered.ok()) << recovered.status().ToString();
  EXPECT_EQ(recovered->label, "a label");
  EXPECT_EQ(recovered->uuid.size(), 36U);
  EXPECT_EQ(recovered->sequence, 0U);
  EXPECT_EQ(recovered->checkpoint_inodes, 1U);
  EXPECT_FALSE(recovered->torn_tail);
  history_->ExpectIs(*recovered);
}

TEST_F(JournalTest, FormattingAgainNeedsForceAndForgetsEverything) {
  auto store = OpenStore(20 * kKiB);
  Work(*store, 200);
  store.reset();
  const Status refused = FormatDevice(*device_, {"other", false});
  EXPECT_EQ(refused.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--force"));
  const std::string uuid = RecoverMetadata(*device_).value().uuid;
  ISOZONE_ASSERT_OK(FormatDevice(*device_, {"other", true}));
  const auto recovered = RecoverMetadata(*device_);
  ASSERT_TRUE(recovered.ok()) << recovered.status().ToString();
  EXPECT_EQ(recovered->label, "other");
  EXPECT_EQ(recovered->state.size(), 1U);
  EXPECT_NE(recovered->uuid, uuid);
}

TEST_F(JournalTest, ALabelMustFit) {
  EXPECT_EQ(FormatDevice(*device_, {std::string(64, 'x'), true}).code(), StatusCode::kInvalidArgument);
  ISOZONE_ASSERT_OK(FormatDevice(*device_, {std::string(63, 'x'), true}));
  EXPECT_EQ(RecoverMetadata(*device_).value().label, std::string(63, 'x'));
}

TEST_F(JournalTest, RecordsThatWereSyncedSurvivePowerCuts) {
  auto store = OpenStore();
  Work(*store, 50);
  for (int i = 0; i < 10; ++i) store->Append(*maker_, *history_);
  device_->CutPower();
  store.reset();
  device_->RestorePower();
  ExpectRecovers(50);
}

TEST_F(JournalTest, GoesOnWhereItEnded) {
  for (int mount = 0; mount < 20; ++mount) {
    auto store = OpenStore();
    ASSERT_NE(store, nullptr);
    Work(*store, 13);
    ISOZONE_ASSERT_OK(store->journal().Close());
    store.reset();
    ExpectRecovers(13 * (mount + 1));
  }
}

TEST_F(JournalTest, ACheckpointMayBeLargerThanAZone) {
  auto store = OpenStore();
  maker_.emplace(device_->geometry(), seed_, 1000);
  for (int i = 0; i < 1000; ++i) store->Append(*maker_, *history_);
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());
  const auto recovered = RecoverMetadata(*device_);
  ASSERT_TRUE(recovered.ok()) << recovered.status().ToString();
  EXPECT_GT(recovered->position->copies.front().zones.size(), 2U);
  EXPECT_EQ(recovered->checkpoint_inodes, recovered->state.size());
  EXPECT_EQ(recovered->journal_records, 0U);
  history_->ExpectIs(*recovered);
}

TEST_F(JournalTest, ARecordMayBeLargerThanAZone) {
  auto store = OpenStore();
  Work(*store, 1);
  Inode inode;
  inode.id = InodeId(1000);
  inode.links = {{kRootInode, "large"}};
  Random random(5);
  std::vector<FileExtent> extents;
  for (uint64_t i = 0; i < 10000; ++i) {
    const uint64_t in_zone = random.Below(device_->geometry().zone_capacity);
    extents.push_back({i, DeviceOffset(device_->geometry().ZoneStart(ZoneId(5)).value() + in_zone), 1});
  }
  inode.extents = extents;
  inode.size = inode.extents.size();
  const std::vector<MetadataOp> ops = {PutInode{inode}};
  ASSERT_GT(EncodedSize(inode), device_->geometry().zone_capacity);
  const Result<uint64_t> sequence = store->Commit(ops);
  ISOZONE_ASSERT_OK(sequence.status());
  ISOZONE_ASSERT_OK(store->journal().Sync(*sequence));
  const auto recovered = RecoverMetadata(*device_);
  ASSERT_TRUE(recovered.ok()) << recovered.status().ToString();
  EXPECT_EQ(recovered->state.Find(InodeId(1000))->extents.size(), 10000U);
}

TEST_F(JournalTest, RollingKeepsTheJournalShortAndGivesZonesBack) {
  auto store = OpenStore(30 * kKiB);
  int active_max = 0;
  for (int i = 0; i < 100; ++i) {
    Work(*store, 10);
    active_max = std::max(active_max, ActiveZones());
  }
  // The last checkpoint may still be under way.
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());
  EXPECT_GT(store->journal().Stats().checkpoints, 20U);
  // Active are at most two copies, the one that is being written, and the one that it replaces.
  EXPECT_LE(active_max, 4);
  EXPECT_LE(RecoverMetadata(*device_).value().zones.size(), 10U);
  ISOZONE_ASSERT_OK(store->pool().Settle());
  EXPECT_GT(store->pool().Space().empty_zones, 50U);
  ExpectRecovers(1000);
}

// Each copy of a large state is written once for some part of it that was journalled, and not once for each
// `checkpoint_after`.
TEST_F(JournalTest, CheckpointsCostAFewBytesForEachByteOfJournal) {
  constexpr uint64_t kAfter = 4 * kKiB;
  auto store = OpenStore(kAfter);
  maker_.emplace(device_->geometry(), seed_, 3000);
  for (int i = 0; i < 3000; ++i) store->Append(*maker_, *history_);
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());
  const uint64_t state = store->found().state.encoded_size();
  ASSERT_GT(state, 20 * kAfter);
  const JournalStats before = store->journal().Stats();
  for (int i = 0; i < 300; ++i) {
    ISOZONE_ASSERT_OK(store->journal().Sync(store->Append(*maker_, *history_)));
  }
  const JournalStats after = store->journal().Stats();
  // Every record is a batch of a block, in both copies. A copy is written when a quarter of a checkpoint is journalled,
  // less what came while it was begun.
  const uint64_t journalled = (after.commits - before.commits) * 2 * 4096;
  EXPECT_LE(after.checkpoints - before.checkpoints, journalled / (state / 8) + 2);
  ExpectRecovers(3300);
}

TEST_F(JournalTest, WritersGoOnWhileACheckpointIsWritten) {
  GatedDevice gated(*device_);
  auto store = Store::Open(gated).value();
  Work(*store, 100);
  // The checkpoint is held back in the middle. Changes are applied and journalled meanwhile.
  gated.Close();
  std::thread checkpoint([&] { ISOZONE_EXPECT_OK(store->journal().Checkpoint()); });
  gated.WaitForWrite();
  for (int i = 0; i < 100; ++i) store->Append(*maker_, *history_);
  gated.Open();
  checkpoint.join();
  ISOZONE_ASSERT_OK(store->SyncAll());
  ExpectRecovers(200);
}

TEST_F(JournalTest, OneWriteServesAllWhoWait) {
  GatedDevice gated(*device_);
  auto store = Store::Open(gated).value();
  Work(*store, 1);
  const uint64_t before = store->journal().Stats().commits;
  gated.Close();
  std::vector<std::thread> threads;
  const uint64_t first = store->Append(*maker_, *history_);
  threads.emplace_back([&, first] { ISOZONE_EXPECT_OK(store->journal().Sync(first)); });
  gated.WaitForWrite();
  for (int i = 0; i < 8; ++i) {
    const uint64_t sequence = store->Append(*maker_, *history_);
    threads.emplace_back([&, sequence] { ISOZONE_EXPECT_OK(store->journal().Sync(sequence)); });
  }
  gated.Open();
  for (std::thread& thread : threads) thread.join();
  // There is one commit for the first and one for all others. There is only one if the write that was waited for was
  // that of a superblock.
  const uint64_t commits = store->journal().Stats().commits - before;
  EXPECT_TRUE(commits == 1 || commits == 2) << commits;
  device_->CutPower();
  store.reset();
  device_->RestorePower();
  ExpectRecovers(first + 8);
}

TEST_F(JournalTest, WhatIsWantedSoonBecomesDurableWithoutAnybodyWaiting) {
  auto store = OpenStore();
  const uint64_t last = store->Append(*maker_, *history_);
  store->journal().SyncSoon(last);
  while (RecoverMetadata(*device_)->sequence < last) std::this_thread::yield();
  ExpectRecovers(last);
}

TEST_F(JournalTest, ManyThreadsCommitBesideRollingCheckpoints) {
  auto store = OpenStore(30 * kKiB);
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] { Work(*store, 150); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->journal().Stats().records, 900U);
  ISOZONE_ASSERT_OK(store->journal().Close());
  store.reset();
  ExpectRecovers(900);
}

TEST_F(JournalTest, WithOneCopyTheFirstFailedWriteLatches) {
  ASSERT_NO_FATAL_FAILURE(Format(TinyZones(), /*copies=*/1));
  auto store = OpenStore();
  Work(*store, 5);
  const ZoneId zone = store->journal().Copies().front().front();
  device_->FailNext(DeviceOp::kWrite, zone, DeviceStatus::kWriteFault);
  const uint64_t lost = store->Append(*maker_, *history_);
  const Status first = store->journal().Sync(lost);
  EXPECT_EQ(first.code(), StatusCode::kReadOnly);
  EXPECT_THAT(std::string(first.message()), HasSubstr(fmt::format("in zone {}", zone.value())));
  EXPECT_THAT(std::string(first.message()), HasSubstr("Write Fault"));
  // The device would work again, but nothing is written behind the gap.
  EXPECT_EQ(store->journal().Sync(store->Append(*maker_, *history_)).code(), StatusCode::kReadOnly);
  EXPECT_EQ(store->journal().Checkpoint().code(), StatusCode::kReadOnly);
  EXPECT_EQ(store->journal().status().code(), StatusCode::kReadOnly);
  EXPECT_EQ(store->journal().Close().code(), StatusCode::kReadOnly);
  store.reset();
  ExpectRecovers(5);
  const uint64_t recovered = RecoverMetadata(*device_).value().sequence;
  EXPECT_LE(recovered, lost);

  history_->ForgetBehind(recovered);
  store = OpenStore();
  ASSERT_NE(store, nullptr);
  Work(*store, 5);
  store.reset();
  ExpectRecovers(recovered + 5);
}

TEST_F(JournalTest, WhenAllCopiesFailAtOnceThatLatchesAndNoneIsErased) {
  auto store = OpenStore();
  Work(*store, 5);
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());  // so that no copy is being replaced
  for (const auto& zones : store->journal().Copies()) {
    device_->FailNext(DeviceOp::kWrite, zones.front(), DeviceStatus::kWriteFault);
  }
  EXPECT_EQ(store->journal().Sync(store->Append(*maker_, *history_)).code(), StatusCode::kReadOnly);
  store.reset();
  const auto recovered = RecoverMetadata(*device_);
  ISOZONE_ASSERT_OK(recovered.status());
  EXPECT_EQ(recovered->whole_copies(), 2U);
  ExpectRecovers(5);
}

TEST_F(JournalTest, AFailedWriteOfANewCopyGoesToAnotherZone) {
  auto store = OpenStore();
  Work(*store, 5);
  const std::vector<std::vector<ZoneId>> before = store->journal().Copies();
  // This is the home zone that holds neither of the two copies.
  std::set<ZoneId> home = {ZoneId(0), ZoneId(1), ZoneId(2)};
  for (const auto& zones : before) home.erase(zones.front());
  ASSERT_EQ(home.size(), 1U);
  device_->FailNext(DeviceOp::kWrite, *home.begin(), DeviceStatus::kWriteFault);
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());
  ISOZONE_ASSERT_OK(store->journal().Sync(store->Append(*maker_, *history_)));
  EXPECT_EQ(store->journal().Copies().size(), 2U);
  store.reset();
  EXPECT_EQ(RecoverMetadata(*device_).value().whole_copies(), 2U);
  ExpectRecovers(6);
}

TEST_F(JournalTest, WithoutAZoneToGoOnInSyncSaysSoAndALaterOneSucceeds) {
  auto store = OpenStore();
  Work(*store, 3);
  FillDevice(*store);
  std::vector<ZoneLease> hoard;
  uint64_t durable = 3;
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    HoardMetadataZones(*store, hoard);  // takes also what the copies give back
    const uint64_t sequence = store->Append(*maker_, *history_);
    status = store->journal().Sync(sequence);
    if (status.ok()) durable = sequence;
  }
  EXPECT_EQ(status.code(), StatusCode::kNoSpace) << status.ToString();
  ISOZONE_EXPECT_OK(store->journal().status());
  ExpectRecovers(durable);
  // The thread has no zone to wait for.
  EXPECT_EQ(store->journal().Checkpoint().code(), StatusCode::kNoSpace);
  store->journal().SyncSoon(store->journal().last_sequence());
  for (ZoneLease& lease : hoard) {
    const ZoneId zone = lease.zone();
    lease.Release();
    store->pool().ReleaseMetadata(zone);
  }
  ISOZONE_ASSERT_OK(store->SyncAll());
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());
  ISOZONE_ASSERT_OK(store->journal().RestoreCopies());
  EXPECT_EQ(store->journal().Copies().size(), 2U);
  ExpectRecovers(durable + 1);
}

// A torn tail that a failed write has left is not durable, and neither are the records before it. Opening the journal
// makes both durable before anything relies on them.
TEST_F(JournalTest, WhatWasFoundSurvivesAPowerCutRightAfterOpening) {
  int torn = 0;
  for (uint64_t seed = seed_; torn < 4; ++seed) {
    ASSERT_LT(seed, seed_ + 1000);
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 64)));
    Work(*OpenStore(), 3);
    EmulatedOptions options;
    options.faults.seed = seed;
    options.faults.write_error = 0.4;
    OpenDevice(options);
    if (auto store = Store::Open(*device_); store.ok()) {
      for (int i = 0; i < 300; ++i) (*store)->Append(*maker_, *history_);
      (void)(*store)->SyncAll();
    }
    options.faults.write_error = 0;
    OpenDevice(options);
    if (!RecoverMetadata(*device_).value().torn_tail) continue;
    ++torn;
    auto store = OpenStore();
    ASSERT_NE(store, nullptr);
    device_->CutPower();
    store.reset();
    OpenDevice();
    ExpectRecovers(3);
  }
}

// The zones that are reserved for metadata are always enough, whatever part of a zone a checkpoint takes.
TEST_F(JournalTest, OnAFullDeviceTheJournalNeverEnds) {
  for (const uint32_t copies : {1, 2}) {
    for (const uint64_t blocks : {4, 5, 6, 7, 8, 16, 40}) {
      for (const int together : {1, 500}) {
        SCOPED_TRACE(fmt::format("{} copies, zones of {} blocks, {} records at a time", copies, blocks, together));
        ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, blocks), copies));
        auto store = OpenStore();
        const std::set<ZoneId> taken = FillDevice(*store);
        for (int done = 0; done < 500; done += together) {
          for (int i = 0; i < together; ++i) store->Append(*maker_, *history_);
          ISOZONE_ASSERT_OK(store->SyncAll());
          if (done % 100 == 0) ExpectRecovers(store->journal().last_sequence());
        }
        EXPECT_EQ(store->journal().Copies().size(), copies);
        store.reset();
        auto opened = Store::Open(*device_, kGiB, taken);
        ISOZONE_ASSERT_OK(opened.status());
        Work(**opened, 20);
        ExpectRecovers(520);
      }
    }
  }
}

// The metadata takes many zones, on a device that has no zones left but reserved ones. It can be written again
// and again, be emptied, and grow again as far as before.
TEST_F(JournalTest, AFullDeviceTakesChangesHoweverLargeTheMetadataIs) {
  for (const uint64_t blocks : {6, 7}) {
    SCOPED_TRACE(fmt::format("zones of {} blocks", blocks));
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, blocks)));
    maker_.emplace(device_->geometry(), seed_, 1200);
    auto store = OpenStore();
    // A copy has several zones by the time the device is filled, and more than the reserves that are filled up first.
    for (int i = 0; i < 750; ++i) store->Append(*maker_, *history_);
    ISOZONE_ASSERT_OK(store->SyncAll());
    const std::set<ZoneId> taken = FillDevice(*store);
    // The metadata grows as far as it may.
    for (int i = 0; i < 3000 && store->refused() == 0; ++i) store->Append(*maker_, *history_);
    ISOZONE_ASSERT_OK(store->SyncAll());
    EXPECT_GT(store->refused(), 0U);
    Work(*store, 100);
    EXPECT_GT(store->journal().Copies().front().size(), 1U);
    store.reset();
    auto opened = Store::Open(*device_, kGiB, taken);
    ISOZONE_ASSERT_OK(opened.status());
    Work(**opened, 100);
    ISOZONE_ASSERT_OK((*opened)->journal().Checkpoint());
    while ((*opened)->Remove(*maker_, *history_)) {
    }
    ISOZONE_ASSERT_OK((*opened)->SyncAll());
    ISOZONE_ASSERT_OK((*opened)->journal().Checkpoint());
    EXPECT_EQ((*opened)->journal().Copies().front().size(), 1U);
    ISOZONE_ASSERT_OK((*opened)->pool().Settle());
    EXPECT_GT((*opened)->pool().Space().empty_zones, 2U);  // reserved for the collector and for logs
    const uint64_t refused = (*opened)->refused();
    for (int i = 0; i < 200; ++i) (*opened)->Append(*maker_, *history_);
    ISOZONE_ASSERT_OK((*opened)->SyncAll());
    EXPECT_EQ((*opened)->refused(), refused);
    ExpectRecovers((*opened)->journal().last_sequence());
  }
}

// Some changes may use the rest that others must leave behind a checkpoint. They can make the checkpoint so large that
// it leaves no rest.
TEST_F(JournalTest, OnAFullDeviceWhatUsesTheRestFitsIntoTheZonesThatAreKept) {
  for (const uint64_t blocks : {20, 29}) {
    SCOPED_TRACE(fmt::format("zones of {} blocks", blocks));
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones(512, blocks)));
    auto store = OpenStore();
    const std::set<ZoneId> taken = FillDevice(*store);
    std::vector<InodeLink> files;
    for (Status status; status.ok();) {
      Inode inode;
      inode.id = InodeId(kRootInode.value() + 1 + files.size());
      inode.links = {{kRootInode, fmt::format("{}", files.size())}};
      status = store->Commit(std::vector<MetadataOp>{PutInode{inode}}).status();
      if (status.ok()) files.push_back(inode.links.front());
      ISOZONE_ASSERT_OK(store->SyncAll());
    }
    bool full = false;
    for (size_t i = 0; i < files.size() && !full; ++i) {
      const InodeId id(kRootInode.value() + 1 + i);
      const InodeLink longer{kRootInode, files[i].name + std::string(25, 'n')};
      const Status status =
          store->Commit(std::vector<MetadataOp>{RemoveLink{id, files[i]}, AddLink{id, longer}}).status();
      full = status.Is(StatusCode::kNoSpace);
      if (!full) ISOZONE_ASSERT_OK(status);
      ISOZONE_ASSERT_OK(store->SyncAll());
      ISOZONE_ASSERT_OK(store->journal().RestoreCopies());
    }
    EXPECT_TRUE(full);
    store.reset();
    auto opened = Store::Open(*device_, kGiB, taken);
    ISOZONE_ASSERT_OK(opened.status());
    for (int i = 0; i < 30; ++i) {
      const SetAttributes touch{kRootInode, Lifetime::kNotSet, static_cast<uint64_t>(i)};
      ISOZONE_ASSERT_OK((*opened)->Commit(std::vector<MetadataOp>{touch}).status());
      ISOZONE_ASSERT_OK((*opened)->SyncAll());
      ISOZONE_ASSERT_OK((*opened)->journal().RestoreCopies());
    }
    for (const auto& zones : (*opened)->journal().Copies()) EXPECT_EQ(zones.size(), 1U);
  }
}

// A file whose extents are alike takes a few bytes. If it is cut in the middle of an extent, it takes a few more.
TEST_F(JournalTest, OnAFullDeviceFilesCanBeCutShortAfterRenamesWereRefused) {
  ASSERT_NO_FATAL_FAILURE(Format(TinyZones(512, 64)));
  auto store = OpenStore();
  FillDevice(*store);
  const auto commit = [&](std::vector<MetadataOp> ops) { return store->Commit(ops).status(); };
  std::vector<InodeId> files;
  const auto name_of = [](InodeId id) { return fmt::format("{:150}", id.value()); };
  const DeviceOffset begin(device_->geometry().zone_size * 8);
  Status full;
  while (full.ok()) {
    Inode inode;
    inode.id = InodeId(kRootInode.value() + 1 + files.size());
    inode.links = {{kRootInode, name_of(inode.id)}};
    inode.extents = {{0, begin, 4096}, {4096, DeviceOffset(begin.value() + 4096), 4096}};
    inode.size = 8192;
    full = commit({PutInode{inode}});
    if (full.ok()) files.push_back(inode.id);
  }
  ASSERT_TRUE(full.Is(StatusCode::kNoSpace)) << full.ToString();
  Status refused;
  for (size_t i = 0; i < files.size() && refused.ok(); ++i) {
    const InodeLink link{kRootInode, name_of(files[i])};
    refused = commit({RemoveLink{files[i], link}, AddLink{files[i], {kRootInode, link.name + std::string(100, 'n')}}});
  }
  EXPECT_TRUE(refused.Is(StatusCode::kNoSpace)) << refused.ToString();
  // GC can still move data, though a file takes more bytes when a part of it is moved.
  const DeviceOffset elsewhere(device_->geometry().zone_size * 9);
  ISOZONE_EXPECT_OK(commit({MoveExtents{files[0], {{DeviceOffset(begin.value() + 4096), elsewhere, 4096}}}}));
  const uint64_t size = store->encoded_size();
  for (size_t i = 1; i < files.size(); ++i) ISOZONE_ASSERT_OK(commit({CutFile{files[i], 4096 + 100, 0}}));
  EXPECT_GT(store->encoded_size(), size);
  ISOZONE_ASSERT_OK(store->SyncAll());
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());
}

TEST_F(JournalTest, OnAFullDeviceItSurvivesAPowerCutAtAnyCommand) {
  for (int commands = 0; commands < 150; ++commands) {
    SCOPED_TRACE(fmt::format("cut after {} commands", commands));
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 8)));
    auto store = OpenStore();
    const std::set<ZoneId> taken = FillDevice(*store);
    device_->CutPowerAfter(static_cast<uint64_t>(commands));
    for (int i = 0; i < 150; ++i) store->Append(*maker_, *history_), (void)store->SyncAll();
    store.reset();
    OpenDevice();
    history_->ForgetBehind(RecoverMetadata(*device_).value().sequence);
    uint64_t sealed = 0;
    auto opened = Store::Open(*device_, kGiB, taken, [&](Store& s) { sealed = s.Append(*maker_, *history_); });
    ISOZONE_ASSERT_OK(opened.status());
    ISOZONE_ASSERT_OK((*opened)->journal().Sync(sealed));
    ASSERT_NO_FATAL_FAILURE(Work(**opened, 20));
    opened->reset();
    ExpectRecovers(sealed + 20);
  }
}

TEST_F(JournalTest, OnADeviceFullOfDataCheckpointsComeBeforeZonesRunOut) {
  for (const bool soon : {false, true}) {
    SCOPED_TRACE(soon ? "in the thread" : "by those who wait");
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 64)));  // one zone holds a checkpoint
    auto store = OpenStore();
    FillDevice(*store);
    const uint64_t zones_bytes = device_->geometry().zone_capacity * device_->geometry().zone_count;
    for (uint64_t block = 0; block < zones_bytes / device_->geometry().block_size; ++block) {
      const uint64_t sequence = store->Append(*maker_, *history_);
      if (soon) store->journal().SyncSoon(sequence);
      if (!soon || block % 7 == 0) ISOZONE_ASSERT_OK(store->journal().Sync(sequence));
    }
    EXPECT_GT(store->journal().Stats().checkpoints, 0U);
    store.reset();
  }
}

TEST_F(JournalTest, AReaderBesideTheWriterAlwaysSeesAStateOfThePast) {
  auto store = OpenStore(20 * kKiB);
  auto reader = EmulatedDevice::Open(image_->path(), OpenMode::kReadOnly, {}).value();
  std::atomic<uint64_t> durable{0};
  constexpr uint64_t kChanges = 1500;
  std::thread writer([&] {
    for (uint64_t i = 0; i < kChanges; ++i) {
      const uint64_t sequence = store->Append(*maker_, *history_);
      ISOZONE_EXPECT_OK(store->journal().Sync(sequence));
      durable = sequence;
    }
  });
  for (uint64_t seen = 0; seen < kChanges;) {
    const uint64_t at_least = durable;
    const auto recovered = RecoverMetadata(*reader);
    if (recovered.status().Is(StatusCode::kBusy)) continue;  // the reader got too little of the processor
    EXPECT_TRUE(recovered.ok()) << recovered.status().ToString();
    if (!recovered.ok()) break;
    EXPECT_GE(recovered->sequence, at_least);
    EXPECT_GE(recovered->sequence, seen);
    // A record can be on the device before the thread that has appended it tells the history.
    while (!history_->Knows(recovered->sequence) && durable < recovered->sequence) std::this_thread::yield();
    history_->ExpectIs(*recovered);
    seen = recovered->sequence;
  }
  writer.join();
}

// --- Power cuts ---

class PowerCutTest : public JournalTest, public testing::WithParamInterface<DeviceGeometry> {
 protected:
  // Mounts and makes changes until the power fails. Returns the highest sequence that was durable.
  uint64_t WorkUntilCut(uint64_t durable, int changes) {
    auto store = Store::Open(*device_, 20 * kKiB);
    if (!store.ok()) return durable;
    for (int i = 0; i < changes; ++i) {
      const uint64_t sequence = (*store)->Append(*maker_, *history_);
      if (!(*store)->journal().Sync(sequence).ok()) break;
      durable = sequence;
    }
    return durable;
  }
  // Cuts the power unless it has failed already, and lets it come back.
  void PowerUp() {
    device_->CutPower();
    OpenDevice();
  }
};

DeviceGeometry SmallTransfers() {
  DeviceGeometry geometry = TinyZones(4096, 7);
  geometry.max_transfer = 8192;
  return geometry;
}

DeviceGeometry Covering(DeviceGeometry geometry) {
  geometry.fua_covers_zone = true;
  return geometry;
}

INSTANTIATE_TEST_SUITE_P(Geometries, PowerCutTest,
                         testing::Values(TinyZones(), TinyZones(512, 44), TinyZones(16384, 3), SmallTransfers(),
                                         Covering(TinyZones()), Covering(SmallTransfers())),
                         [](const auto& info) {
                           return fmt::format("Blocks{}Transfers{}{}", info.param.block_size, info.param.max_transfer,
                                              info.param.fua_covers_zone ? "Covering" : "");
                         });

TEST_P(PowerCutTest, AtEveryCommandLosesNothingThatWasDurable) {
  for (uint64_t commands = 0; commands < 250; ++commands) {
    SCOPED_TRACE(fmt::format("power cut after {} commands", commands));
    ASSERT_NO_FATAL_FAILURE(Format(GetParam()));
    EmulatedOptions options;
    options.faults.seed = seed_ + commands;
    OpenDevice(options);
    device_->CutPowerAfter(commands);
    const uint64_t durable = WorkUntilCut(0, 150);
    PowerUp();
    ASSERT_NO_FATAL_FAILURE(ExpectRecovers(durable));

    // The journal goes on from there.
    const uint64_t recovered = RecoverMetadata(*device_).value().sequence;
    history_->ForgetBehind(recovered);
    ASSERT_EQ(WorkUntilCut(recovered, 30), recovered + 30);
    ASSERT_NO_FATAL_FAILURE(ExpectRecovers(recovered + 30));
  }
}

TEST_P(PowerCutTest, OneAfterAnotherLosesNothingThatWasDurable) {
  ASSERT_NO_FATAL_FAILURE(Format(GetParam()));
  Random random(seed_);
  uint64_t durable = 0;
  for (int i = 0; i < 400; ++i) {
    SCOPED_TRACE(fmt::format("power cut {}", i));
    EmulatedOptions options;
    options.faults.seed = random.Next();
    OpenDevice(options);
    device_->CutPowerAfter(random.Below(60));
    durable = WorkUntilCut(durable, 30);
    PowerUp();
    ASSERT_NO_FATAL_FAILURE(ExpectRecovers(durable));
    durable = RecoverMetadata(*device_).value().sequence;
    history_->ForgetBehind(durable);
  }
  EXPECT_GT(durable, 20U);  // how much becomes durable between cuts depends on the threads
}

}  // namespace
}  // namespace isozone
