// What the tests of the zone pool share: a device that has only write pointers, common requests, and a pool on that
// device.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "store/space/zone_pool.h"
#include "testing/assert_ok.h"

namespace isozone {

inline constexpr uint64_t kBlock = 4 * kKiB;
inline constexpr uint64_t kCapacity = 16 * kBlock;
inline constexpr ZoneRequest kData = {ZoneUse::kData, Lifetime::kMedium, kBlock};
inline constexpr ZoneRequest kGoesOnInData = {ZoneUse::kData, Lifetime::kShort,
                                              kBlock};  // in a zone of kData, if it can
inline constexpr ZoneRequest kLog = {ZoneUse::kLog, Lifetime::kShort, kBlock};
inline constexpr ZoneRequest kCollector = {
    .use = ZoneUse::kData, .lifetime = Lifetime::kMedium, .min_room = kBlock, .gc = true};
inline constexpr std::chrono::seconds kLong(10);  // longer than anything takes that does not hang

// A device that has only write pointers. It can be made to hold requests back, so that a test decides what happens in
// between. It remembers how many zones were active at most.
class FakeDevice final : public ZonedDevice {
 public:
  explicit FakeDevice(uint32_t zone_count, uint32_t max_active = 14, uint32_t max_open = 14) {
    geometry_.zone_count = zone_count;
    geometry_.zone_size = 2 * kCapacity;
    geometry_.zone_capacity = kCapacity;
    geometry_.max_active_zones = max_active;
    geometry_.max_open_zones = max_open;
    for (uint32_t i = 0; i < zone_count; ++i) zones_.push_back({ZoneId(i), ZoneState::kEmpty, kCapacity, 0});
  }

  const DeviceGeometry& geometry() const override { return geometry_; }
  std::string name() const override { return "fake"; }
  bool read_only() const override { return false; }
  DeviceCounters counters() const override { return {}; }

  Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const override {
    const std::lock_guard lock(mu_);
    std::copy_n(zones_.begin() + first.value(), out.size(), out.begin());
    return Status::Ok();
  }

  void Submit(DeviceRequest& request) override {
    std::function<void()> before;
    {
      const std::lock_guard lock(mu_);
      if (request.op == DeviceOp::kReset) before = std::exchange(before_reset_, nullptr);
    }
    if (before) before();
    {
      const std::lock_guard lock(mu_);
      if (held_ops_.contains(request.op)) {
        held_.push_back(&request);
        max_held_ = std::max(max_held_, held_.size());
        arrived_.notify_all();
        return;
      }
      Execute(request);
    }
    request.done(request);
  }

  // From now on, requests of `op` wait for LetGo.
  void Hold(DeviceOp op) {
    const std::lock_guard lock(mu_);
    held_ops_.insert(op);
  }
  void WaitUntilHeld(size_t count) {
    std::unique_lock lock(mu_);
    arrived_.wait(lock, [&] { return held_.size() >= count; });
  }
  void LetGo() {
    {
      const std::lock_guard lock(mu_);
      held_ops_.clear();
    }
    LetGoHeld();
  }
  // Lets the requests go that are held now. Later ones are held as before.
  void LetGoHeld() {
    std::deque<DeviceRequest*> held;
    {
      const std::lock_guard lock(mu_);
      held.swap(held_);
      for (DeviceRequest* request : held) Execute(*request);
    }
    for (DeviceRequest* request : held) request->done(*request);
  }
  // Calls `before` once, when the next reset is submitted, on the thread that submits it.
  void BeforeNextReset(std::function<void()> before) {
    const std::lock_guard lock(mu_);
    before_reset_ = std::move(before);
  }
  // The most requests that were held at a time.
  size_t max_held() const {
    const std::lock_guard lock(mu_);
    return max_held_;
  }
  void FailNext(DeviceOp op, DeviceStatus status, uint64_t times = 1) {
    const std::lock_guard lock(mu_);
    failures_[op] = {status, times};
  }
  void Set(ZoneId zone, ZoneState state, uint64_t write_pointer) {
    const std::lock_guard lock(mu_);
    zones_[zone.value()].state = state;
    zones_[zone.value()].write_pointer = write_pointer;
  }
  ZoneDescriptor Zone(ZoneId zone) const {
    const std::lock_guard lock(mu_);
    return zones_[zone.value()];
  }
  std::vector<ZoneId> Finished() const {
    const std::lock_guard lock(mu_);
    return finished_;
  }
  uint32_t max_active_seen() const {
    const std::lock_guard lock(mu_);
    return max_active_seen_;
  }

 private:
  void Execute(DeviceRequest& request) {
    request.status = DeviceStatus::kSuccess;
    if (const auto failure = failures_.find(request.op); failure != failures_.end()) {
      request.status = failure->second.first;
      if (--failure->second.second == 0) failures_.erase(failure);
      return;
    }
    ZoneDescriptor& zone = zones_[geometry_.ZoneOf(request.offset).value()];
    switch (request.op) {
      case DeviceOp::kWrite:
        if (zone.write_pointer != geometry_.OffsetInZone(request.offset)) {
          request.status = DeviceStatus::kZoneInvalidWrite;
          return;
        }
        zone.write_pointer += request.length;
        zone.state = zone.write_pointer == zone.capacity ? ZoneState::kFull : ZoneState::kImplicitlyOpen;
        break;
      case DeviceOp::kReset:
        zone.state = ZoneState::kEmpty;
        zone.write_pointer = 0;
        break;
      case DeviceOp::kFinish:
        zone.state = ZoneState::kFull;
        zone.write_pointer = zone.capacity;
        finished_.push_back(zone.zone);
        break;
      default:
        request.status = DeviceStatus::kInvalidField;
        return;
    }
    const auto active = std::count_if(zones_.begin(), zones_.end(), [](const auto& z) { return IsActive(z.state); });
    max_active_seen_ = std::max(max_active_seen_, static_cast<uint32_t>(active));
  }

  DeviceGeometry geometry_;
  mutable std::mutex mu_;
  std::condition_variable arrived_;
  std::vector<ZoneDescriptor> zones_;
  std::function<void()> before_reset_;
  std::set<DeviceOp> held_ops_;
  std::deque<DeviceRequest*> held_;
  size_t max_held_ = 0;
  std::map<DeviceOp, std::pair<DeviceStatus, uint64_t>> failures_;  // how the next requests fail, and how many of them
  std::vector<ZoneId> finished_;
  uint32_t max_active_seen_ = 0;
};

inline DeviceStatus WriteBlocks(FakeDevice& device, const ZoneLease& lease, uint64_t bytes) {
  static std::byte block[kCapacity];
  DeviceRequest request;
  request.op = DeviceOp::kWrite;
  request.offset = lease.next();
  request.data = block;
  request.length = bytes;
  return SubmitAndWait(device, request);
}

// Does what the completion of a write does, and then what its owner does. What is live is the metadata's from then on.
inline void EndWrite(ZoneLease& lease, uint64_t bytes, DeviceStatus status = DeviceStatus::kSuccess) {
  lease.CompleteWrite(bytes, status);
  lease.Settle(bytes, status).ToMetadata();
}

class ZonePoolTest : public testing::Test {
 protected:
  // Of 20 zones, 3 are for metadata, 4 stay empty (2 of them for metadata, whatever it has), and 13 are for data.
  void Open(uint32_t zone_count = 20, uint32_t max_active = 14, uint32_t max_open = 14) {
    device_ = std::make_unique<FakeDevice>(zone_count, max_active, max_open);
    Create();
    ISOZONE_ASSERT_OK(pool_->Start());
  }
  void Create() {
    auto pool =
        ZonePool::Create(*device_, {.policy = policy_,
                                    .clock = clock_,
                                    .make_durable =
                                        [this] {
                                          ++durable_calls_;
                                          return durable_ ? durable_() : Status::Ok();
                                        },
                                    .want_checkpoint = [this] { return ++checkpoints_wanted_; },
                                    .checkpoint_pending = [this](uint64_t) { return checkpoint_pending_.load(); },
                                    .want_space =
                                        [this] {
                                          ++space_wanted_;
                                          if (on_space_wanted_) on_space_wanted_();
                                        },
                                    .want_pace = [this] { ++pace_wanted_; }});
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    pool_ = std::move(*pool);
    lent_ = 0;
    KeepForMetadata();
  }
  void KeepForMetadata() { pool_->ReserveForMetadata(HomeZones(2) + lent_ + 2, MetadataClaim::kForced); }
  ZoneLease MustAcquire(const ZoneRequest& request) {
    auto lease = pool_->Acquire(request);
    EXPECT_TRUE(lease.ok()) << lease.status().ToString();
    return lease.ok() ? std::move(*lease) : ZoneLease();
  }
  // Acquires a zone that is not one of the first ones, which belong to metadata anyway.
  Result<ZoneLease> AcquireMetadata() {
    ISOZONE_ASSIGN_OR_RETURN(const ZoneId zone, pool_->SetAside({}));
    if (zone.value() < HomeZones(2)) return Status::NoSpace("only the first zones are left");
    ++lent_;
    KeepForMetadata();
    return pool_->Reopen(zone);
  }
  ZoneLease MustAcquireMetadata() {
    auto lease = AcquireMetadata();
    EXPECT_TRUE(lease.ok()) << lease.status().ToString();
    return lease.ok() ? std::move(*lease) : ZoneLease();
  }
  void ReleaseMetadata(ZoneId zone) {
    pool_->ReleaseMetadata(zone);
    --lent_;
    KeepForMetadata();
  }
  // Releases a zone of metadata that is not empty, as if it were no longer needed.
  void WriteAndReleaseMetadata() {
    ZoneLease journal = MustAcquireMetadata();
    ASSERT_TRUE(journal.BeginWrite());
    ASSERT_EQ(WriteBlocks(*device_, journal, kBlock), DeviceStatus::kSuccess);
    EndWrite(journal, kBlock);
    const ZoneId released = journal.zone();
    journal.Release();
    ReleaseMetadata(released);
  }
  void Write(ZoneLease& lease, uint64_t bytes) {
    ASSERT_TRUE(lease.BeginWrite(bytes));
    ASSERT_EQ(WriteBlocks(*device_, lease, bytes), DeviceStatus::kSuccess);
    EndWrite(lease, bytes);
  }
  uint32_t ActiveZones() const { return pool_->Space().active_zones; }
  // Writes `bytes` to a zone, and returns the zone, which nobody holds any more.
  ZoneId WriteZone(const ZoneRequest& request, uint64_t bytes) {
    ZoneLease lease = MustAcquire(request);
    Write(lease, bytes);
    return lease.zone();
  }
  std::vector<ZoneId> FillDevice() {
    std::vector<ZoneId> zones;
    for (;;) {
      auto lease = pool_->Acquire(kData);
      if (!lease.ok()) {
        EXPECT_EQ(lease.status().code(), StatusCode::kNoSpace);
        checkpoints_wanted_ = 0;
        return zones;
      }
      Write(*lease, lease->room());
      zones.push_back(lease->zone());
    }
  }

  std::unique_ptr<FakeDevice> device_;
  std::string policy_ = "zenfs";
  Clock* clock_ = &Clock::Real();
  std::function<Status()> durable_;
  std::function<void()> on_space_wanted_;  // under the lock of the pool
  // Waits until the collector has been asked for space `times` times.
  void WaitUntilWanted(int times) const {
    while (space_wanted_ < times) std::this_thread::yield();
  }

  std::atomic<int> durable_calls_ = 0;
  std::atomic<int> space_wanted_ = 0;
  std::atomic<int> pace_wanted_ = 0;
  std::atomic<uint64_t> checkpoints_wanted_ = 0;
  std::atomic<bool> checkpoint_pending_ = false;
  uint32_t lent_ = 0;  // zones that AcquireMetadata gave and that were not released
  std::unique_ptr<ZonePool> pool_;
};

}  // namespace isozone
