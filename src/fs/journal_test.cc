#include "fs/journal.h"

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/passing_device.h"
#include "fs/batch_stream.h"
#include "fs/frozen_device.h"
#include "fs/metadata_io.h"
#include "fs/metadata_test_util.h"
#include "fs/recovery.h"
#include "fs/superblock.h"
#include "fs/test_volume.h"

namespace isozone {
namespace {

using testing::HasSubstr;

// Zones of a few blocks, so that everything spans several of them.
DeviceGeometry TinyZones(uint32_t block_size = 4096, uint64_t blocks = 6) {
  DeviceGeometry geometry;
  geometry.block_size = block_size;
  geometry.zone_count = 64;
  geometry.zone_size = 16 * blocks * block_size;
  geometry.zone_capacity = blocks * block_size;
  geometry.max_active_zones = geometry.max_open_zones = 12;
  geometry.optimal_write = block_size;
  return geometry;
}

// Can hold back the next write.
class GatedDevice final : public PassingDevice {
 public:
  using PassingDevice::PassingDevice;

  void Submit(DeviceRequest& request) override {
    if (request.op == DeviceOp::kWrite) {
      const MutexLock lock(mu_);
      while (closed_) {
        waiting_ = true;
        changed_.SignalAll();
        changed_.Wait(mu_);
      }
    }
    PassingDevice::Submit(request);
  }

  void Close() {
    const MutexLock lock(mu_);
    closed_ = true;
    waiting_ = false;
  }
  void WaitForWrite() {
    const MutexLock lock(mu_);
    while (!waiting_) changed_.Wait(mu_);
  }
  void Open() {
    const MutexLock lock(mu_);
    closed_ = false;
    changed_.SignalAll();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool closed_ ISOZONE_GUARDED_BY(mu_) = false;
  bool waiting_ ISOZONE_GUARDED_BY(mu_) = false;
};

// What every sequence number stands for: the state after it.
class History {
 public:
  void Add(uint64_t sequence, const MetadataState& state) {
    const MutexLock lock(mu_);
    prints_[sequence] = PrintOf(state);
  }
  // Another state may come to stand for what was lost.
  void ForgetBehind(uint64_t sequence) {
    const MutexLock lock(mu_);
    prints_.erase(prints_.upper_bound(sequence), prints_.end());
  }
  void ExpectIs(const RecoveredMetadata& recovered) const {
    const MutexLock lock(mu_);
    ASSERT_TRUE(prints_.contains(recovered.sequence)) << recovered.sequence;
    ASSERT_EQ(PrintOf(recovered.state), prints_.at(recovered.sequence)) << "sequence " << recovered.sequence;
  }

 private:
  mutable Mutex mu_;
  std::map<uint64_t, uint32_t> prints_ ISOZONE_GUARDED_BY(mu_);
};

// A mounted metadata store without files.
class Store {
 public:
  // Something lives in the zones `taken`. `seal` is called before dead zones are reset.
  static Result<std::unique_ptr<Store>> Open(ZonedDevice& device, uint64_t checkpoint_after = kGiB,
                                             const std::set<ZoneId>& taken = {},
                                             const std::function<void(Store&)>& seal = {}) {
    ISOZONE_ASSIGN_OR_RETURN(RecoveredMetadata recovered, RecoverMetadata(device));
    auto store = std::unique_ptr<Store>(new Store(std::move(recovered)));
    ZonePool::Options options;
    options.make_durable = [s = store.get()] { return s->SyncAll(); };
    ISOZONE_ASSIGN_OR_RETURN(store->pool_, ZonePool::Create(device, std::move(options)));
    for (const auto& [zone, use] : store->found_.zones) {
      ISOZONE_RETURN_IF_ERROR(store->pool_->AdoptMetadata(zone, use));
    }
    ISOZONE_ASSIGN_OR_RETURN(store->journal_,
                             Journal::Open(device, *store->pool_, store->namespace_mutex_, store->found_.state,
                                           store->found_, {.checkpoint_after = checkpoint_after}));
    for (const ZoneId zone : taken) store->pool_->AddLive(zone, device.geometry().zone_capacity);
    // Nothing is in the zones that the files of this state name.
    const auto named = NamedZones(device.geometry(), MetadataState(device.geometry()), store->found_.zones);
    store->pool_->ReleaseUnnamed([&named](ZoneId zone) { return named.contains(zone); });
    if (seal) seal(*store);
    store->pool_->Start();
    return store;
  }

  ~Store() {
    if (pool_) pool_->Stop();
    journal_.reset();
  }

  Journal& journal() { return *journal_; }
  ZonePool& pool() { return *pool_; }
  const RecoveredMetadata& found() const { return found_; }

  // Makes one change; its sequence.
  uint64_t Append(RecordMaker& maker, History& history) {
    const MutexLock lock(namespace_mutex_);
    const std::vector<MetadataOp> ops = maker.Next(found_.state);
    const Status applied = found_.state.Apply(ops);
    EXPECT_TRUE(applied.ok()) << applied.ToString();
    const uint64_t sequence = journal_->Append(ops);
    history.Add(sequence, found_.state);
    return sequence;
  }
  Status SyncAll() { return journal_->Sync(journal_->last_sequence()); }

 private:
  explicit Store(RecoveredMetadata recovered) : found_(std::move(recovered)) {}

  Mutex namespace_mutex_;
  RecoveredMetadata found_;  // its state goes on changing, under the mutex
  std::unique_ptr<ZonePool> pool_;
  std::unique_ptr<Journal> journal_;
};

class JournalTest : public testing::Test {
 protected:
  void SetUp() override { Format(TinyZones()); }

  void Format(const DeviceGeometry& geometry) {
    image_.emplace(EmulatedDevice::CreateInMemory(geometry).value());
    OpenDevice();
    ISOZONE_ASSERT_OK(FormatDevice(*device_, {"a label", false}));
    history_ = std::make_unique<History>();
    history_->Add(0, MetadataState(geometry));
    maker_.emplace(geometry, seed_, 60);
  }
  void OpenDevice(const EmulatedOptions& options = {}) {
    device_.reset();
    device_ = EmulatedDevice::Open(image_->path(), OpenMode::kReadWrite, options).value();
  }
  std::unique_ptr<Store> OpenStore(uint64_t checkpoint_after = kGiB) {
    auto store = Store::Open(*device_, checkpoint_after);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return store.ok() ? std::move(*store) : nullptr;
  }
  // As far as data may go.
  void FillWithData(Store& store) {
    for (;;) {
      auto lease = store.pool().Acquire({});
      if (!lease.ok()) break;
      // Filled, a zone is no longer active, and the next one is given.
      AlignedBuffer blocks(lease->room());
      ISOZONE_ASSERT_OK(WriteDurably(*device_, *lease, blocks.span()));
      store.pool().AddLive(lease->zone(), blocks.size());
    }
  }
  // All that are left, full.
  void HoardMetadataZones(Store& store, std::vector<ZoneLease>& hoard) {
    for (;;) {
      auto lease = store.pool().AcquireMetadata(ZoneUse::kCheckpoint);
      if (!lease.ok()) return;
      AlignedBuffer blocks(lease->room());
      ISOZONE_EXPECT_OK(WriteDurably(*device_, *lease, blocks.span()));
      hoard.push_back(std::move(*lease));
    }
  }
  // All that are left but one, which becomes empty again. The zones in use that are not of the metadata's.
  std::set<ZoneId> HoardAllZonesButOne(Store& store, std::vector<ZoneLease>& hoard) {
    HoardMetadataZones(store, hoard);
    std::set<ZoneId> taken;
    for (uint32_t i = 0; i < device_->geometry().zone_count; ++i) taken.insert(ZoneId(i));
    const RecoveredMetadata found = RecoverMetadata(*device_).value();
    for (const auto& [zone, use] : found.zones) taken.erase(zone);
    const ZoneId last = hoard.back().zone();
    hoard.pop_back();
    store.pool().ReleaseMetadata(last);
    taken.erase(last);
    return taken;
  }
  // Makes `count` changes, each durable at once.
  void Work(Store& store, int count) {
    for (int i = 0; i < count; ++i) ISOZONE_ASSERT_OK(store.journal().Sync(store.Append(*maker_, *history_)));
  }
  void ExpectRecovers(uint64_t at_least) {
    const auto recovered = RecoverMetadata(*device_);
    ASSERT_TRUE(recovered.ok()) << recovered.status().ToString();
    ASSERT_GE(recovered->sequence, at_least);
    history_->ExpectIs(*recovered);
  }
  int ActiveZones() {
    std::vector<ZoneDescriptor> zones(device_->geometry().zone_count);
    EXPECT_TRUE(device_->ReportZones(ZoneId(0), zones).ok());
    return static_cast<int>(std::count_if(zones.begin(), zones.end(), [](const auto& z) { return IsActive(z.state); }));
  }

  const uint64_t seed_ = MetadataTestSeed(99);
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "ISOZONE_TEST_SEED=" + std::to_string(seed_)};
  std::optional<MemoryImage> image_;
  std::unique_ptr<EmulatedDevice> device_;
  std::unique_ptr<History> history_;
  std::optional<RecordMaker> maker_;
};

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
  EXPECT_GT(recovered->position->superblock.superblock.checkpoint.segments.size(), 2U);
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
  for (uint64_t i = 0; i < 10000; ++i) {
    inode.extents.push_back({i, DeviceOffset(device_->geometry().ZoneStart(ZoneId(5)).value()), 1});
  }
  inode.size = inode.extents.size();
  const std::vector<MetadataOp> ops = {PutInode{inode}};
  ISOZONE_ASSERT_OK(store->journal().Sync(store->journal().Append(ops)));
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
  // The last one may still be under way.
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());
  EXPECT_GT(store->journal().Stats().checkpoints, 20U);
  // Superblock, journal, checkpoint; and the other superblock zone while they are exchanged.
  EXPECT_LE(active_max, 4);
  EXPECT_LE(RecoverMetadata(*device_).value().zones.size(), 10U);
  ISOZONE_ASSERT_OK(store->pool().Settle());
  EXPECT_GT(store->pool().Space().empty_zones, 50U);
  ExpectRecovers(1000);
}

TEST_F(JournalTest, WritersGoOnWhileACheckpointIsWritten) {
  GatedDevice gated(*device_);
  auto store = Store::Open(gated).value();
  Work(*store, 100);
  // The checkpoint stands still in the middle; changes are applied and journalled meanwhile.
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
  // One for the first and one for all others; one in all where the write that was waited for was of a superblock.
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

TEST_F(JournalTest, TheFirstFailedWriteLatches) {
  auto store = OpenStore();
  Work(*store, 5);
  const Segment journal = RecoverMetadata(*device_).value().position->superblock.superblock.journal.segments.front();
  device_->FailNext(DeviceOp::kWrite, journal.zone, DeviceStatus::kWriteFault);
  const uint64_t lost = store->Append(*maker_, *history_);
  const Status first = store->journal().Sync(lost);
  EXPECT_EQ(first.code(), StatusCode::kReadOnly);
  EXPECT_THAT(std::string(first.message()), HasSubstr(fmt::format("in zone {}", journal.zone.value())));
  EXPECT_THAT(std::string(first.message()), HasSubstr("Write Fault"));
  // The device would work again; nothing is written behind the gap.
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

TEST_F(JournalTest, AFailedSuperblockOrCheckpointLatches) {
  for (const bool superblock : {true, false}) {
    SCOPED_TRACE(superblock ? "superblock" : "checkpoint");
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones()));
    auto store = OpenStore();
    Work(*store, 5);
    const FoundSuperblock found = ReadSuperblock(*device_).value();
    const ZoneId zone = superblock ? found.zone : found.superblock.checkpoint.segments.back().zone;
    device_->FailNext(DeviceOp::kWrite, zone, DeviceStatus::kWriteFault);
    EXPECT_EQ(store->journal().Checkpoint().code(), StatusCode::kReadOnly);
    EXPECT_EQ(store->journal().Sync(store->Append(*maker_, *history_)).code(), StatusCode::kReadOnly);
    store.reset();
    ExpectRecovers(5);
  }
}

TEST_F(JournalTest, AJournalZoneThatTurnsReadOnlyIsLeftBehind) {
  auto store = OpenStore();
  Work(*store, 5);
  const Segment journal = RecoverMetadata(*device_).value().position->superblock.superblock.journal.segments.front();
  store.reset();
  device_->SetZoneState(journal.zone, ZoneState::kReadOnly);
  store = OpenStore();
  ASSERT_NE(store, nullptr);
  Work(*store, 5);
  store.reset();
  ExpectRecovers(10);
}

TEST_F(JournalTest, AJournalZoneThatTurnsOfflineIsCorruptionWithItsPlace) {
  auto store = OpenStore();
  Work(*store, 5);
  const Segment journal = RecoverMetadata(*device_).value().position->superblock.superblock.journal.segments.front();
  store.reset();
  device_->SetZoneState(journal.zone, ZoneState::kOffline);
  const Status status = RecoverMetadata(*device_).status();
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(fmt::format("journal corrupt in zone {} at offset 0: the zone is offline; the changes from "
                                    "sequence 1 on are lost",
                                    journal.zone.value())));
}

TEST_F(JournalTest, WithoutAZoneToGoOnInSyncSaysSoAndALaterOneSucceeds) {
  auto store = OpenStore();
  Work(*store, 3);
  FillWithData(*store);
  std::vector<ZoneLease> hoard;
  uint64_t durable = 3;
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    HoardMetadataZones(*store, hoard);  // also what the journal gives back
    const uint64_t sequence = store->Append(*maker_, *history_);
    status = store->journal().Sync(sequence);
    if (status.ok()) durable = sequence;
  }
  EXPECT_EQ(status.code(), StatusCode::kNoSpace) << status.ToString();
  ISOZONE_EXPECT_OK(store->journal().status());
  ExpectRecovers(durable);
  // The thread, which gets zones for all others, has nobody to wait for.
  EXPECT_EQ(store->journal().Checkpoint().code(), StatusCode::kNoSpace);
  store->journal().SyncSoon(store->journal().last_sequence());
  for (ZoneLease& lease : hoard) {
    const ZoneId zone = lease.zone();
    lease.Release();
    store->pool().ReleaseMetadata(zone);
  }
  ISOZONE_ASSERT_OK(store->SyncAll());
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());
  ExpectRecovers(durable + 1);
}

// A torn tail that a failed write has left is not durable, and neither is what it ends: both are before anything relies
// on them.
TEST_F(JournalTest, WhatWasFoundSurvivesAPowerCutRightAfterOpening) {
  int torn = 0;
  for (uint64_t seed = seed_; torn < 8; ++seed) {
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

// The superblock that names the next journal zone counts, though writing it ended in an error.
TEST_F(JournalTest, AZoneThatASuperblockMayNameIsGivenToNobodyElse) {
  ASSERT_NO_FATAL_FAILURE(Format(TinyZones(512, 41)));  // a zone of superblocks is never quite full
  auto store = OpenStore();
  device_->FailNext(DeviceOp::kReset, ZoneId(0), DeviceStatus::kZoneIsReadOnly);
  Status status;
  uint64_t durable = 0;
  for (int i = 0; i < 2000 && status.ok(); ++i) {
    const uint64_t sequence = store->Append(*maker_, *history_);
    status = store->journal().Sync(sequence);
    if (status.ok()) durable = sequence;
  }
  ASSERT_EQ(status.code(), StatusCode::kReadOnly) << status.ToString();
  for (int i = 0; i < 8; ++i) {
    auto lease = store->pool().Acquire({});
    if (!lease.ok()) break;
    AlignedBuffer blocks(lease->room());
    ISOZONE_ASSERT_OK(WriteDurably(*device_, *lease, blocks.span()));
    store->pool().AddLive(lease->zone(), blocks.size());
  }
  store.reset();
  ExpectRecovers(durable);
}

// The journal, the checkpoint, and one empty zone are enough for ever, whatever part of a zone a checkpoint takes: where
// the journal has no room the checkpoint stands for its records, and it never begins where it might end in a third zone.
TEST_F(JournalTest, WithOneEmptyZoneTheJournalNeverEnds) {
  for (const uint64_t blocks : {4, 5, 6, 7, 8, 16, 40}) {
    for (const int together : {1, 10, 1000}) {
      SCOPED_TRACE(fmt::format("zones of {} blocks, {} records at a time", blocks, together));
      ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, blocks)));
      maker_.emplace(device_->geometry(), seed_, blocks < 6 ? 45 : 60);  // so that a checkpoint fits into a zone
      auto store = OpenStore();
      FillWithData(*store);
      std::vector<ZoneLease> hoard;
      HoardAllZonesButOne(*store, hoard);
      for (int done = 0; done < 4000; done += together) {
        for (int i = 0; i < together; ++i) store->Append(*maker_, *history_);
        ISOZONE_ASSERT_OK(store->SyncAll());
        if (done % 50 == 0) ExpectRecovers(store->journal().last_sequence());
      }
      EXPECT_GT(store->journal().Stats().checkpoints, 0U);
      hoard.clear();
      store.reset();
      store = OpenStore();
      ASSERT_NE(store, nullptr);
      ISOZONE_ASSERT_OK(store->pool().Settle());  // the one empty zone may hold half a checkpoint
      Work(*store, 20);
      ExpectRecovers(4'020);
    }
  }
}

// The one zone that nothing is in may hold half a checkpoint, or the one before: it is reset without a record of what a
// mount changes, which may need that very zone.
TEST_F(JournalTest, WithOneEmptyZoneTheJournalSurvivesAPowerCutAtAnyWrite) {
  for (int commands = 0; commands < 150; ++commands) {
    SCOPED_TRACE(fmt::format("cut after {} commands", commands));
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 8)));
    auto store = OpenStore();
    FillWithData(*store);
    std::vector<ZoneLease> hoard;
    const std::set<ZoneId> taken = HoardAllZonesButOne(*store, hoard);
    device_->CutPowerAfter(static_cast<uint64_t>(commands));
    for (int i = 0; i < 150; ++i) store->Append(*maker_, *history_), (void)store->SyncAll();
    hoard.clear();
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
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 64)));  // one holds a checkpoint
    auto store = OpenStore();
    FillWithData(*store);
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
    if (recovered.status().Is(StatusCode::kBusy)) continue;  // it had too little of the processor
    EXPECT_TRUE(recovered.ok()) << recovered.status().ToString();
    if (!recovered.ok()) break;
    EXPECT_GE(recovered->sequence, at_least);
    EXPECT_GE(recovered->sequence, seen);
    history_->ExpectIs(*recovered);
    seen = recovered->sequence;
  }
  writer.join();
}

// --- Power cuts ---

class PowerCutTest : public JournalTest, public testing::WithParamInterface<DeviceGeometry> {
 protected:
  // Mounts and makes changes until the power fails; the highest sequence that was durable.
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
  // The power fails now, if it has not yet, and comes back.
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

INSTANTIATE_TEST_SUITE_P(Geometries, PowerCutTest,
                         testing::Values(TinyZones(), TinyZones(512, 44), TinyZones(16384, 3), SmallTransfers()),
                         [](const auto& info) {
                           return fmt::format("Blocks{}Transfers{}", info.param.block_size, info.param.max_transfer);
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

    // And it goes on.
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

// --- Damage ---

class DamageTest : public JournalTest {
 protected:
  void SetUp() override { Format(TinyZones(4096, 16)); }

  // A small file system with everything in it: two superblocks, a checkpoint, a journal of several batches.
  void MakeImage() {
    auto store = OpenStore();
    Work(*store, 3);
    ISOZONE_ASSERT_OK(store->journal().Checkpoint());
    Work(*store, 4);
    store.reset();
    frozen_.emplace(*device_);
    const auto recovered = RecoverMetadata(*frozen_);
    ASSERT_TRUE(recovered.ok()) << recovered.status().ToString();
    print_ = PrintOf(recovered->state);
    superblock_ = recovered->position->superblock.superblock;
    end_ = recovered->position->journal;
  }
  std::vector<std::byte>& JournalZone() { return frozen_->zone(superblock_.journal.segments[end_.segment].zone); }
  std::string WhyNot() {
    const auto recovered = RecoverMetadata(*frozen_);
    return recovered.ok() ? "recovered" : recovered.status().ToString();
  }

  std::optional<FrozenDevice> frozen_;
  uint32_t print_ = 0;
  Superblock superblock_;
  StreamReader::End end_;
};

TEST_F(DamageTest, EveryByteThatIsChangedIsFoundOrDoesNotMatter) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  Random random(seed_);
  int found = 0;
  for (uint32_t zone = 0; zone < frozen_->geometry().zone_count; ++zone) {
    std::vector<std::byte>& bytes = frozen_->zone(ZoneId(zone));
    for (size_t i = 0; i < bytes.size(); ++i) {
      const std::byte before = bytes[i];
      bytes[i] ^= static_cast<std::byte>(random.Between(1, 255));
      const auto recovered = RecoverMetadata(*frozen_);
      if (recovered.ok()) {
        ASSERT_EQ(PrintOf(recovered->state), print_) << "zone " << zone << " byte " << i;
        ASSERT_FALSE(recovered->torn_tail) << "zone " << zone << " byte " << i;
      } else {
        ++found;
      }
      bytes[i] = before;
    }
  }
  EXPECT_GT(found, 4096 + 64 * 5);  // the newest superblock, and at least the headers of all batches
}

TEST_F(DamageTest, EveryBlockThatIsMissingAtTheEndIsATornTailOrAShorterJournal) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  // One more batch, of several blocks.
  RecordQueue queue;
  std::vector<MetadataOp> ops;
  for (uint64_t i = 0; i < 200; ++i) {
    Inode inode;
    inode.id = InodeId(1000 + i);
    inode.links = {{kRootInode, "more-" + std::to_string(i)}};
    ops.emplace_back(PutInode{inode});
  }
  queue.Add([&](std::vector<std::byte>& out) { EncodeRecord(ops, out); });
  BatchBuilder builder(StreamKind::kJournal, ChecksumSeed(superblock_.uuid), frozen_->geometry());
  const auto batch = builder.Build(queue, end_.counters, frozen_->geometry().zone_capacity - JournalZone().size());
  ASSERT_TRUE(queue.empty());
  const size_t begin = JournalZone().size();
  const size_t blocks = batch.blocks.size() / 4096;
  ASSERT_GT(blocks, 1U);
  JournalZone().insert(JournalZone().end(), batch.blocks.begin(), batch.blocks.end());
  EXPECT_EQ(RecoverMetadata(*frozen_).value().sequence, end_.counters.sequence);
  for (size_t left = blocks; left-- > 0;) {
    JournalZone().resize(begin + left * 4096);
    const auto recovered = RecoverMetadata(*frozen_);
    ASSERT_TRUE(recovered.ok()) << recovered.status().ToString();
    EXPECT_EQ(PrintOf(recovered->state), print_);
    EXPECT_EQ(recovered->torn_tail, left > 0);
  }
}

TEST_F(DamageTest, DamageBeforeTheEndIsReportedWithItsPlaceAndEffect) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  const uint32_t zone = superblock_.journal.segments[end_.segment].zone.value();
  JournalZone()[4096 * 4 + 70] ^= std::byte{1};
  EXPECT_EQ(WhyNot(), fmt::format("Corruption: journal corrupt in zone {} at offset 16384: the checksum of the batch's "
                                  "payload is wrong; the changes from sequence 5 on are lost",
                                  zone));
}

TEST_F(DamageTest, AZeroedLastBatchIsNoTornTail) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  std::fill(JournalZone().end() - 4096, JournalZone().end(), std::byte{0});
  EXPECT_THAT(WhyNot(), HasSubstr("no batch begins here"));
}

TEST_F(DamageTest, ABatchThatIsRepeatedOrLeftOutIsFound) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  const std::vector<std::byte> before = JournalZone();
  JournalZone().insert(JournalZone().end(), before.end() - 4096, before.end());
  EXPECT_THAT(WhyNot(), HasSubstr("follows where"));
  JournalZone() = before;
  JournalZone().erase(JournalZone().end() - 8192, JournalZone().end() - 4096);
  EXPECT_THAT(WhyNot(), HasSubstr("follows where"));
}

TEST_F(DamageTest, BatchesOfAnotherFileSystemAreNotAccepted) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  const std::vector<std::byte> ours(JournalZone().end() - 4096, JournalZone().end());
  auto other = EmulatedDevice::CreateInMemory(TinyZones(4096, 16)).value();
  device_ = EmulatedDevice::Open(other.path(), OpenMode::kReadWrite, {}).value();
  ISOZONE_ASSERT_OK(FormatDevice(*device_, {}));
  maker_.emplace(device_->geometry(), seed_, 60);
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  std::copy(ours.begin(), ours.end(), JournalZone().end() - 4096);
  EXPECT_THAT(WhyNot(), HasSubstr("checksum of the batch's header"));
}

TEST_F(DamageTest, AJournalZoneThatWasResetIsFound) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  JournalZone().clear();
  EXPECT_THAT(WhyNot(), HasSubstr("journal corrupt"));
}

TEST_F(DamageTest, ACheckpointZoneThatWasResetIsFound) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  frozen_->zone(superblock_.checkpoint.segments.back().zone).clear();
  EXPECT_THAT(WhyNot(), HasSubstr("checkpoint corrupt"));
}

// --- Superblocks ---

class SuperblockTest : public JournalTest {
 protected:
  AlignedBuffer Slot(const Superblock& superblock) {
    AlignedBuffer slot(SuperblockSlot(TinyZones()));
    EncodeSuperblock(superblock, slot.span());
    return slot;
  }
};

TEST_F(SuperblockTest, SurvivesTheRoundTrip) {
  const Superblock written = ReadSuperblock(*device_).value().superblock;
  const Superblock read = DecodeSuperblock(Slot(written).span(), TinyZones()).value();
  EXPECT_EQ(read.uuid, written.uuid);
  EXPECT_EQ(read.label, "a label");
  EXPECT_EQ(read.sequence, written.sequence);
  EXPECT_EQ(read.checkpoint, written.checkpoint);
  EXPECT_EQ(read.journal, written.journal);
}

TEST_F(SuperblockTest, SegmentsThatCannotBeAreRefused) {
  const Superblock good = ReadSuperblock(*device_).value().superblock;
  const auto refused = [&](const Segment& segment) {
    Superblock bad = good;
    bad.journal.segments.push_back(segment);
    return DecodeSuperblock(Slot(bad).span(), TinyZones()).status().code() == StatusCode::kCorruption;
  };
  EXPECT_FALSE(refused({ZoneId(9), 4096, Segment::kOpen}));
  EXPECT_TRUE(refused({ZoneId(1), 0, Segment::kOpen}));
  EXPECT_TRUE(refused({ZoneId(64), 0, Segment::kOpen}));
  EXPECT_TRUE(refused({ZoneId(9), 100, Segment::kOpen}));
  EXPECT_TRUE(refused({ZoneId(9), 8192, 4096}));
  EXPECT_TRUE(refused({ZoneId(9), 0, 7 * 4096}));
  Superblock bad = good;
  bad.checkpoint.segments.back().end = Segment::kOpen;
  EXPECT_EQ(DecodeSuperblock(Slot(bad).span(), TinyZones()).status().code(), StatusCode::kCorruption);
}

TEST_F(SuperblockTest, AnotherVersionOrNewerFeaturesAreNotSupported) {
  const auto with = [&](size_t offset) {
    AlignedBuffer slot = Slot(ReadSuperblock(*device_).value().superblock);
    slot.data()[offset] = std::byte{kFormatVersion + 1};
    constexpr uint32_t kZero = 0;
    std::memcpy(slot.data() + offsetof(SuperblockHeader, crc), &kZero, sizeof(kZero));
    const uint32_t crc = Crc32c(slot.span());
    std::memcpy(slot.data() + offsetof(SuperblockHeader, crc), &crc, sizeof(crc));
    return DecodeSuperblock(slot.span(), TinyZones()).status();
  };
  EXPECT_EQ(with(offsetof(SuperblockHeader, version)).code(), StatusCode::kNotSupported);
  EXPECT_THAT(std::string(with(offsetof(SuperblockHeader, version)).message()),
              HasSubstr(fmt::format("version {}", kFormatVersion + 1)));
  EXPECT_EQ(with(offsetof(SuperblockHeader, incompatible)).code(), StatusCode::kNotSupported);
}

TEST_F(SuperblockTest, AnotherGeometryIsRefusedWithBoth) {
  DeviceGeometry other = TinyZones();
  other.zone_count = 32;
  const Status status = DecodeSuperblock(Slot(ReadSuperblock(*device_).value().superblock).span(), other).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("64 zones"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("32 of"));
}

TEST_F(SuperblockTest, ZonesTakeTurns) {
  SuperblockWriter writer(*device_, ZoneId(0), ReadSuperblock(*device_).value().next_offset);
  Superblock superblock = ReadSuperblock(*device_).value().superblock;
  std::set<uint32_t> zones;
  for (int i = 0; i < 40; ++i) {
    ISOZONE_ASSERT_OK(writer.Write(superblock));
    const FoundSuperblock found = ReadSuperblock(*device_).value();
    ASSERT_EQ(found.superblock.sequence, superblock.sequence);
    zones.insert(found.zone.value());
    ASSERT_LE(ActiveZones(), 2);  // one of superblocks, one of the checkpoint
  }
  EXPECT_EQ(zones.size(), 2U);
}

TEST_F(SuperblockTest, MoreSegmentsThanFitAreRefusedBeforeAnythingIsWritten) {
  FoundSuperblock found = ReadSuperblock(*device_).value();
  SuperblockWriter writer(*device_, found.zone, found.next_offset);
  Superblock superblock = found.superblock;
  superblock.journal.segments.resize(SuperblockSegmentsMax(device_->geometry()), Segment{ZoneId(9), 0, 0});
  EXPECT_EQ(writer.Write(superblock).code(), StatusCode::kNoSpace);
  EXPECT_EQ(ReadSuperblock(*device_).value().superblock.sequence, found.superblock.sequence);
}

TEST(ProbeTest, TellsWhoseDeviceItIs) {
  FrozenDevice device(TinyZones());
  EXPECT_EQ(ProbeDevice(device).value(), DeviceContent::kEmpty);
  EXPECT_EQ(RecoverMetadata(device).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(RecoverMetadata(device).status().message()), HasSubstr("isozone mkfs"));

  device.zone(ZoneId(2)).resize(4096, std::byte{7});
  EXPECT_EQ(ProbeDevice(device).value(), DeviceContent::kUnknown);
  EXPECT_EQ(RecoverMetadata(device).status().code(), StatusCode::kNotFound);

  // As ZenFS writes it: CRC, length, then its superblock, which begins with the magic.
  device.zone(ZoneId(1)).resize(4096);
  const std::array<uint32_t, 3> zenfs = {0x12345678, 512, 0x5A454E46};
  std::memcpy(device.zone(ZoneId(1)).data(), zenfs.data(), sizeof(zenfs));
  EXPECT_EQ(ProbeDevice(device).value(), DeviceContent::kZenFs);
  const Status status = RecoverMetadata(device).status();
  EXPECT_EQ(status.code(), StatusCode::kNotSupported);
  EXPECT_THAT(std::string(status.message()), HasSubstr("formatted by ZenFS"));
}

TEST(ProbeTest, FormattingRefusesForeignDataUnlessForced) {
  MemoryImage image = EmulatedDevice::CreateInMemory(TinyZones()).value();
  auto device = EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}).value();
  AlignedBuffer block(4096);
  const std::array<uint32_t, 3> zenfs = {0x12345678, 512, 0x5A454E46};
  std::memcpy(block.data(), zenfs.data(), sizeof(zenfs));
  ASSERT_EQ(WriteDurably(*device, DeviceOffset(0), block.span()), DeviceStatus::kSuccess);
  const Status status = FormatDevice(*device, {});
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ZenFS"));
  ISOZONE_ASSERT_OK(FormatDevice(*device, {"", true}));
  EXPECT_EQ(ProbeDevice(*device).value(), DeviceContent::kIsozone);
}

}  // namespace
}  // namespace isozone
