// What the tests of the metadata store share: a store without files on an emulated SSD in memory, and what each of its
// records stands for.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "device/passing_device.h"
#include "store/metadata/journal.h"
#include "store/metadata/metadata_io.h"
#include "store/metadata/metadata_test_util.h"
#include "store/metadata/recovery.h"
#include "store/metadata/superblock.h"
#include "store/mount/format_device.h"
#include "testing/frozen_device.h"
#include "testing/test_volume.h"

namespace isozone {

// Zones of a few blocks, so that everything spans several of them.
inline DeviceGeometry TinyZones(uint32_t block_size = 4096, uint64_t blocks = 6) {
  DeviceGeometry geometry;
  geometry.block_size = block_size;
  geometry.zone_count = 64;
  geometry.zone_size = 16 * blocks * block_size;
  geometry.zone_capacity = blocks * block_size;
  geometry.max_active_zones = geometry.max_open_zones = 12;
  geometry.optimal_write = block_size;
  return geometry;
}

// Holds all writes back while it is closed.
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

// Knows what every sequence number stands for: the state after that record.
class History {
 public:
  void Add(uint64_t sequence, const MetadataState& state) {
    const MutexLock lock(mu_);
    prints_[sequence] = PrintOf(state);
  }
  // Forgets the states behind `sequence`. Other states may get the numbers of those that were lost.
  void ForgetBehind(uint64_t sequence) {
    const MutexLock lock(mu_);
    prints_.erase(prints_.upper_bound(sequence), prints_.end());
  }
  bool Knows(uint64_t sequence) const {
    const MutexLock lock(mu_);
    return prints_.contains(sequence);
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
  // Opens a store on a device where something lives in the zones `taken`. `seal` is called before dead zones are reset.
  static Result<std::unique_ptr<Store>> Open(ZonedDevice& device, uint64_t checkpoint_after = kGiB,
                                             const std::set<ZoneId>& taken = {},
                                             const std::function<void(Store&)>& seal = {},
                                             std::shared_ptr<const GroupIndex> groups = nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(RecoveredMetadata recovered, RecoverMetadata(device));
    auto store = std::unique_ptr<Store>(new Store(std::move(recovered)));
    ZonePoolOptions options;
    options.make_durable = [s = store.get()] { return s->SyncAll(); };
    options.metadata_copies = store->found_.copies_wanted;
    options.groups = std::move(groups);
    ISOZONE_ASSIGN_OR_RETURN(store->pool_, ZonePool::Create(device, std::move(options)));
    for (const ZoneId zone : store->found_.zones) ISOZONE_RETURN_IF_ERROR(store->pool_->AdoptMetadata(zone));
    {
      // As long as this lock is held, no copy is begun.
      const MutexLock lock(store->namespace_mutex_);
      ISOZONE_ASSIGN_OR_RETURN(store->journal_,
                               Journal::Open(device, *store->pool_, store->namespace_mutex_, store->found_.state,
                                             store->found_, {.checkpoint_after = checkpoint_after}));
      for (const ZoneId zone : taken) store->pool_->AddLive(zone, device.geometry().zone_capacity);
      // No data lies in the zones that the files of this state name.
      const auto named = NamedZones(device.geometry(), MetadataState(device.geometry()), store->found_.zones);
      EraseReplaced(device, store->found_, [&named](ZoneId zone) { return named.contains(zone); });
      store->pool_->ReleaseUnnamed([&named](ZoneId zone) { return named.contains(zone); });
    }
    if (seal) seal(*store);
    EXPECT_TRUE(store->pool_->Start().ok());
    return store;
  }

  ~Store() {
    if (pool_) pool_->Stop();
    journal_.reset();
  }

  Journal& journal() { return *journal_; }
  ZonePool& pool() { return *pool_; }
  const RecoveredMetadata& found() const { return found_; }

  // Makes one change, and returns its sequence. If there is no space for it, the change is one that removes something,
  // which is always possible.
  uint64_t Append(RecordMaker& maker, History& history) {
    const MutexLock lock(namespace_mutex_);
    Result<uint64_t> sequence = journal_->Commit(maker.Next(found_.state));
    if (sequence.status().Is(StatusCode::kNoSpace)) {
      ++refused_;
      sequence = journal_->Commit(maker.Remove(found_.state));
    }
    EXPECT_TRUE(sequence.ok()) << sequence.status().ToString();
    if (!sequence.ok()) return 0;
    history.Add(*sequence, found_.state);
    return *sequence;
  }
  // Removes a file. Returns false if there is none.
  bool Remove(RecordMaker& maker, History& history) {
    const MutexLock lock(namespace_mutex_);
    if (found_.state.size() == 1) return false;
    const Result<uint64_t> sequence = journal_->Commit(maker.Remove(found_.state));
    EXPECT_TRUE(sequence.ok()) << sequence.status().ToString();
    if (sequence.ok()) history.Add(*sequence, found_.state);
    return sequence.ok();
  }
  Result<uint64_t> Commit(std::span<const MetadataOp> ops) {
    const MutexLock lock(namespace_mutex_);
    return journal_->Commit(ops);
  }
  uint64_t encoded_size() {
    const MutexLock lock(namespace_mutex_);
    return found_.state.encoded_size();
  }
  uint64_t refused() const { return refused_; }
  Status SyncAll() { return journal_->Sync(journal_->last_sequence()); }

 private:
  explicit Store(RecoveredMetadata recovered) : found_(std::move(recovered)) {}

  Mutex namespace_mutex_;
  RecoveredMetadata found_;  // its state goes on changing, under the mutex
  uint64_t refused_ = 0;     // changes that were refused for want of space
  std::unique_ptr<ZonePool> pool_;
  std::unique_ptr<Journal> journal_;
};

class JournalTest : public testing::Test {
 protected:
  void SetUp() override { Format(TinyZones()); }

  void Format(const DeviceGeometry& geometry, uint32_t copies = 2) {
    image_.emplace(EmulatedDevice::CreateInMemory(geometry).value());
    OpenDevice();
    ISOZONE_ASSERT_OK(FormatDevice(*device_, {"a label", false, copies}));
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
  // Of what is written, `live` bytes are of files.
  static void WriteWhole(ZonedDevice& device, ZoneLease& lease, uint64_t live) {
    AlignedBuffer blocks(lease.room());
    ASSERT_TRUE(lease.BeginWrite(live));
    ASSERT_EQ(WriteDurably(device, lease.next(), blocks.span()), DeviceStatus::kSuccess);
    lease.CompleteWrite(blocks.size(), DeviceStatus::kSuccess);
    lease.Settle(blocks.size(), DeviceStatus::kSuccess).ToMetadata();
  }
  // Fills the zones that data, logs and the collector may have, and returns those zones. Only metadata has zones left
  // then.
  std::set<ZoneId> FillDevice(Store& store) {
    std::set<ZoneId> taken;
    for (const ZoneRequest& request : {ZoneRequest{}, ZoneRequest{.use = ZoneUse::kLog}, ZoneRequest{.gc = true}}) {
      for (;;) {
        auto lease = store.pool().Acquire(request);
        if (!lease.ok()) break;
        WriteWhole(*device_, *lease, /*live=*/lease->room());
        taken.insert(lease->zone());
      }
    }
    return taken;
  }
  // Takes all zones that metadata can have, and fills them.
  void HoardMetadataZones(Store& store, std::vector<ZoneLease>& hoard) {
    for (;;) {
      auto lease = store.pool().AcquireForMetadata({});
      if (!lease.ok()) return;
      WriteWhole(*device_, *lease, /*live=*/0);
      hoard.push_back(std::move(*lease));
    }
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

  const uint64_t seed_ = TestSeed(99);
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "ISOZONE_TEST_SEED=" + std::to_string(seed_)};
  std::optional<MemoryImage> image_;
  std::unique_ptr<EmulatedDevice> device_;
  std::unique_ptr<History> history_;
  std::optional<RecordMaker> maker_;
};

}  // namespace isozone
