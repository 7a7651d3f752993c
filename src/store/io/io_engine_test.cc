#include "store/io/io_engine.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/latch.h"

namespace isozone {
namespace {

std::shared_ptr<const GroupIndex> OneGroup() { return std::make_shared<GroupIndex>(1, nullptr); }

// Completes requests on its own thread, with the status that it is told.
class ThreadedDevice : public ZonedDevice {
 public:
  explicit ThreadedDevice(uint32_t zones = 1) {
    geometry_.zone_count = zones;
    geometry_.zone_size = geometry_.zone_capacity = kMiB;
  }
  ~ThreadedDevice() override {
    // A completion may submit, and so add a thread.
    for (size_t i = 0;; ++i) {
      std::thread next;
      {
        const MutexLock lock(mu_);
        if (i == threads_.size()) return;
        next = std::move(threads_[i]);
      }
      next.join();
    }
  }
  const DeviceGeometry& geometry() const override { return geometry_; }
  std::string name() const override { return "threaded"; }
  bool read_only() const override { return false; }
  void Submit(DeviceRequest& request) override {
    const MutexLock lock(mu_);
    threads_.emplace_back([this, &request] {
      request.status = status;
      request.done(request);
    });
  }
  Status ReportZones(ZoneId, std::span<ZoneDescriptor>) const override { return Status::Ok(); }
  DeviceCounters counters() const override { return {}; }

  DeviceStatus status = DeviceStatus::kSuccess;

 private:
  DeviceGeometry geometry_;
  Mutex mu_;
  std::vector<std::thread> threads_ ISOZONE_GUARDED_BY(mu_);
};

TEST(IoEngine, CountsByClass) {
  ThreadedDevice device;
  IoEngine engine(device, OneGroup(), {});
  std::vector<std::byte> buffer(8192);
  IoRequest write;
  write.io_class = IoClass::kWal;
  write.device.op = DeviceOp::kWrite;
  write.device.data = buffer.data();
  write.device.length = 8192;
  EXPECT_EQ(engine.Run(write), DeviceStatus::kSuccess);
  IoRequest read;
  read.io_class = IoClass::kUserRead;
  read.device.data = buffer.data();
  read.device.length = 4096;
  EXPECT_EQ(engine.Run(read), DeviceStatus::kSuccess);
  EXPECT_TRUE(engine.Flush(IoClass::kWal).ok());

  EXPECT_EQ(engine.counters(IoClass::kWal).bytes_written, 8192u);
  EXPECT_EQ(engine.counters(IoClass::kWal).write_latency_ns.Count(), 1u);
  EXPECT_EQ(engine.counters(IoClass::kWal).bytes_read, 0u);
  EXPECT_EQ(engine.counters(IoClass::kUserRead).bytes_read, 4096u);
  EXPECT_EQ(engine.counters(IoClass::kUserRead).read_latency_ns.Count(), 1u);
  EXPECT_EQ(engine.counters(IoClass::kGc).bytes_written, 0u);
}

TEST(IoEngine, ReturnsWhatTheDeviceSays) {
  ThreadedDevice device;
  device.status = DeviceStatus::kWriteFault;
  IoEngine engine(device, OneGroup(), {});
  EXPECT_EQ(engine.Flush(IoClass::kOther).ToString(), "I/O error: flush failed: Write Fault (280h)");
}

// Holds every request until it is told to complete the oldest one.
class ManualDevice : public ZonedDevice {
 public:
  explicit ManualDevice(uint32_t zones) {
    geometry_.zone_count = zones;
    geometry_.zone_size = geometry_.zone_capacity = kMiB;
    geometry_.optimal_write = 64 * kKiB;
  }
  const DeviceGeometry& geometry() const override { return geometry_; }
  std::string name() const override { return "manual"; }
  bool read_only() const override { return false; }
  void Submit(DeviceRequest& request) override { held.push_back(&request); }
  Status ReportZones(ZoneId, std::span<ZoneDescriptor>) const override { return Status::Ok(); }
  DeviceCounters counters() const override { return {}; }
  void set_fua_covers_zone() { geometry_.fua_covers_zone = true; }

  void Complete(DeviceStatus status = DeviceStatus::kSuccess) {
    DeviceRequest& request = *held.front();
    held.pop_front();
    request.status = status;
    request.done(request);
  }

  std::deque<DeviceRequest*> held;

 private:
  DeviceGeometry geometry_;
};

// Holds the requests that it is told to hold, and completes all others inside Submit.
class PromptDevice final : public ManualDevice {
 public:
  using ManualDevice::ManualDevice;
  void Submit(DeviceRequest& request) override {
    if (hold) return ManualDevice::Submit(request);
    request.status = DeviceStatus::kSuccess;
    request.done(request);
  }
  bool hold = true;
};

// Checks what is in flight at a device of `zones` zones, each of which lies on `width` units of flash.
class DepthTest : public testing::Test {
 protected:
  void Open(uint32_t zones, const ZoneGroups* groups) {
    device_ = std::make_unique<ManualDevice>(zones);
    engine_ = std::make_unique<IoEngine>(*device_, std::make_shared<GroupIndex>(zones, groups), IoEngine::Options());
  }
  void Submit(IoClass io_class, uint32_t zone, int count, uint64_t length = 4096) {
    for (int i = 0; i < count; ++i) {
      IoRequest& request = requests_.emplace_back();
      request.io_class = io_class;
      request.device.offset = DeviceOffset(zone * kMiB);
      request.device.data = buffer_.data();
      request.device.length = length;
      request.device.may_block = may_block_;
      request.done = [](IoRequest&) {};
      engine_->Submit(request);
    }
  }
  size_t in_flight() const { return device_->held.size(); }
  void TearDown() override {
    while (!device_->held.empty()) device_->Complete();
  }

  bool may_block_ = false;
  std::unique_ptr<ManualDevice> device_;
  std::unique_ptr<IoEngine> engine_;
  std::deque<IoRequest> requests_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kMiB);
};

TEST_F(DepthTest, ADeviceThatWasNotMeasuredIsGivenAllThatUsersAskOfItAndABoundedBackground) {
  Open(8, nullptr);
  Submit(IoClass::kCompactionRead, 0, 500);
  EXPECT_EQ(in_flight(), IoEngine::kDeviceDepth - 1);
  Submit(IoClass::kUserRead, 0, 500);
  EXPECT_EQ(in_flight(), IoEngine::kDeviceDepth - 1 + 500);
}

TEST_F(DepthTest, AZoneOnOneUnitOfFlashIsGivenOneMoreThanItServes) {
  ZoneGroups groups;
  for (uint16_t zone = 0; zone < 64; ++zone) {
    groups.group_of_zone.push_back(zone);
    groups.channel_of_group.push_back(0);
  }
  groups.zone_bandwidth = GroupIndex::kAssumedBandwidth;
  Open(64, &groups);
  Submit(IoClass::kUserRead, 3, 100);
  EXPECT_EQ(in_flight(), 2u);
  Submit(IoClass::kUserRead, 4, 100);
  EXPECT_EQ(in_flight(), 4u);
}

TEST_F(DepthTest, AGroupIsAsDeepAsItsZonesAreWide) {
  ZoneGroups groups;
  for (uint16_t zone = 0; zone < 64; ++zone) {
    groups.group_of_zone.push_back(zone);
    groups.channel_of_group.push_back(0);
  }
  groups.zone_bandwidth = 8 * GroupIndex::kAssumedBandwidth;
  Open(64, &groups);
  Submit(IoClass::kUserRead, 3, 100);
  EXPECT_EQ(in_flight(), 16u);
}

TEST_F(DepthTest, AHotZoneIsReadDeepWhereNoZoneSlowsAnother) {
  ZoneGroups independent;
  independent.zone_bandwidth = 12 * GroupIndex::kAssumedBandwidth;  // large zones, on all of the flash
  Open(128, &independent);
  Submit(IoClass::kCompactionRead, 7, 100);
  EXPECT_EQ(in_flight(), 12u) << "one for each unit";
  Submit(IoClass::kUserRead, 7, 100);
  EXPECT_EQ(in_flight(), 48u) << "two for each unit of each of the two zones of its group";
  for (int i = 0; i < 200; ++i) device_->Complete();
  // Even a zone that is alone in its group.
  Open(64, &independent);
  Submit(IoClass::kUserRead, 7, 100);
  EXPECT_EQ(in_flight(), 24u);
}

TEST_F(DepthTest, OnlyWhatTheSubmitterItselfSendsLastMayBlock) {
  ZoneGroups groups;
  for (uint16_t zone = 0; zone < 64; ++zone) {
    groups.group_of_zone.push_back(zone);
    groups.channel_of_group.push_back(0);
  }
  groups.zone_bandwidth = 2 * GroupIndex::kAssumedBandwidth;
  Open(64, &groups);
  may_block_ = true;
  Submit(IoClass::kUserRead, 3, 1);
  Submit(IoClass::kUserRead, 3, 1, 2 * 64 * kKiB);
  Submit(IoClass::kUserRead, 3, 2);
  ASSERT_EQ(in_flight(), 4u);
  device_->Complete();
  ASSERT_EQ(in_flight(), 4u) << "one that waited has followed";
  std::vector<bool> may_block;
  for (const DeviceRequest* request : device_->held) may_block.push_back(request->may_block);
  EXPECT_EQ(may_block, (std::vector<bool>{false, true, true, false}));
}

TEST_F(DepthTest, TheSlicesOfAReadGoSideBySide) {
  ZoneGroups independent;
  independent.zone_bandwidth = 12 * GroupIndex::kAssumedBandwidth;
  Open(128, &independent);
  IoRequest read;
  std::vector<uint64_t> done;
  read.io_class = IoClass::kUserRead;
  read.device.offset = DeviceOffset(5 * kMiB);
  read.device.data = buffer_.data();
  read.device.length = 10 * 64 * kKiB + 4096;
  read.context = &done;
  read.done = [](IoRequest& r) { static_cast<std::vector<uint64_t>*>(r.context)->push_back(r.device.length); };
  engine_->Submit(read);
  ASSERT_EQ(in_flight(), 11u);
  uint64_t at = 0;
  for (const DeviceRequest* slice : device_->held) {
    EXPECT_EQ(slice->offset.value(), 5 * kMiB + at);
    EXPECT_EQ(slice->data, buffer_.data() + at);
    at += slice->length;
  }
  EXPECT_EQ(at, read.device.length);
  std::swap(device_->held.front(), device_->held.back());  // in any order
  while (device_->held.size() > 1) device_->Complete();
  EXPECT_TRUE(done.empty());
  device_->Complete();
  EXPECT_EQ(done, std::vector<uint64_t>{10 * 64 * kKiB + 4096});
  EXPECT_EQ(read.device.status, DeviceStatus::kSuccess);
  EXPECT_EQ(engine_->counters(IoClass::kUserRead).bytes_read, 10 * 64 * kKiB + 4096);
  EXPECT_EQ(engine_->counters(IoClass::kUserRead).read_latency_ns.Count(), 1u) << "one read";
}

TEST_F(DepthTest, ASliceThatFailsFailsItsReadWhenAllAreDone) {
  ZoneGroups independent;
  Open(128, &independent);
  Submit(IoClass::kUserRead, 0, 1, 128 * kKiB);
  ASSERT_EQ(in_flight(), 2u);
  device_->Complete(DeviceStatus::kUnrecoveredReadError);
  EXPECT_EQ(engine_->counters(IoClass::kUserRead).read_latency_ns.Count(), 0u);
  device_->Complete();
  EXPECT_EQ(requests_.front().device.status, DeviceStatus::kUnrecoveredReadError);
  EXPECT_EQ(engine_->counters(IoClass::kUserRead).bytes_read, 64 * kKiB);
}

// However many requests wait: they take neither the stack nor the time of the thread that has made room for them.
TEST(IoEngine, WhoIsDoneDoesNotWaitForThoseWhoHadWaitedForIt) {
  constexpr size_t kWaiting = 200'000;
  PromptDevice device(2);
  const ZoneGroups two_groups{{0, 1}, {100, 100}, {0, 0}, 0};
  IoEngine engine(device, std::make_shared<GroupIndex>(2, &two_groups), {});
  std::vector<std::byte> buffer(4096);
  std::deque<IoRequest> requests;
  std::vector<const IoRequest*> done;
  const auto submit = [&] {
    IoRequest& request = requests.emplace_back();
    request.io_class = IoClass::kGc;
    request.device.data = buffer.data();
    request.device.length = buffer.size();
    request.context = &done;
    request.done = [](IoRequest& r) { static_cast<std::vector<const IoRequest*>*>(r.context)->push_back(&r); };
    engine.Submit(request);
  };
  for (size_t i = 0; i < kWaiting; ++i) submit();
  ASSERT_LT(device.held.size(), 100u);
  device.hold = false;
  const size_t held = device.held.size();
  for (size_t i = 0; i < held; ++i) device.Complete();
  ASSERT_EQ(done.size(), kWaiting);
  EXPECT_EQ(done.front(), &requests.front());
}

// A slice of 64 KiB is programmed in this time.
constexpr int64_t kProgramNs = kMillisecondNs;
ZoneGroups TwoGroups() { return {{0, 1}, {100, 100}, {0, 0}, 64 * kKiB * 1000}; }

class Isolation : public testing::Test {
 protected:
  // `zone`: of two, each a group of its own.
  IoRequest& Submit(IoClass io_class, uint64_t length = 64 * kKiB, uint32_t zone = 0, DeviceOp op = DeviceOp::kWrite) {
    IoRequest& request = requests_.emplace_back();
    request.io_class = io_class;
    request.context = this;
    request.device.op = op;
    request.device.offset = DeviceOffset(zone * kMiB);
    request.device.data = buffer_.data();
    request.device.length = length;
    request.done = [](IoRequest& r) { static_cast<Isolation*>(r.context)->done.push_back(&r); };
    engine.Submit(request);
    return request;
  }
  // The class of each request that reaches the device, in order, until nothing is left.
  std::string Drain() {
    std::string order;
    while (!device.held.empty()) {
      const auto* request = static_cast<const IoRequest*>(device.held.front()->context);
      order += std::string(order.empty() ? "" : " ") + std::string(IoClassName(request->io_class));
      device.Complete();
    }
    return order;
  }

  ManualDevice device{2};
  const ZoneGroups two_groups = TwoGroups();
  IoEngine engine{device, std::make_shared<GroupIndex>(2, &two_groups), {}};
  std::vector<IoRequest*> done;

 private:
  std::deque<IoRequest> requests_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kMiB);
};

TEST_F(Isolation, OnlySoMuchOfAGroupIsAtTheDevice) {
  for (int i = 0; i < 40; ++i) Submit(IoClass::kFlush);
  EXPECT_EQ(device.held.size(), IoEngine::kDeviceDepth / 2);
  Submit(IoClass::kFlush, 64 * kKiB, /*zone=*/1);
  EXPECT_EQ(device.held.size(), IoEngine::kDeviceDepth / 2 + 1) << "the other group is idle";
  device.Complete();
  EXPECT_EQ(device.held.size(), IoEngine::kDeviceDepth / 2 + 1) << "the next one went";
  Drain();
  EXPECT_EQ(done.size(), 41U);
}

TEST_F(Isolation, WhatRanksHigherOvertakesWhatWaits) {
  for (int i = 0; i < 32; ++i) Submit(IoClass::kFlush);
  Submit(IoClass::kGc);
  Submit(IoClass::kCompactionWrite);
  Submit(IoClass::kUserRead, 4096, 0, DeviceOp::kRead);
  Submit(IoClass::kWal);
  for (int i = 0; i < 32; ++i) device.Complete();
  EXPECT_EQ(Drain(), "wal user-read compaction-write gc");
}

TEST_F(Isolation, BackgroundLeavesAPlace) {
  for (int i = 0; i < 40; ++i) Submit(IoClass::kCompactionWrite);
  EXPECT_EQ(device.held.size(), IoEngine::kDeviceDepth / 2 - 1);
  Submit(IoClass::kFlush);
  EXPECT_EQ(device.held.size(), IoEngine::kDeviceDepth / 2);
  Drain();
  EXPECT_EQ(done.size(), 41U);
}

TEST_F(Isolation, LongRequestsAreOvertakenBetweenSlices) {
  Submit(IoClass::kCompactionWrite, 256 * kKiB);
  ASSERT_EQ(device.held.size(), 1U);
  EXPECT_EQ(device.held.front()->length, 64 * kKiB);
  for (int i = 0; i < 31; ++i) Submit(IoClass::kFlush);
  Submit(IoClass::kWal);  // waits, because all places are taken
  device.Complete();      // the first slice; the second one goes behind the request that waits
  EXPECT_EQ(static_cast<IoRequest*>(device.held.back()->context)->io_class, IoClass::kWal);
  Drain();
  EXPECT_EQ(done.size(), 33U);
  EXPECT_EQ(done.back()->device.length, 256 * kKiB) << "the request is given back as it came";
  EXPECT_EQ(done.back()->device.offset, DeviceOffset(0));
}

TEST_F(Isolation, AFailedSliceEndsTheRequest) {
  const IoRequest& request = Submit(IoClass::kFlush, 256 * kKiB);
  device.Complete();
  device.Complete(DeviceStatus::kWriteFault);
  EXPECT_TRUE(device.held.empty());
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(request.device.status, DeviceStatus::kWriteFault);
  EXPECT_EQ(engine.counters(IoClass::kFlush).bytes_written, 64 * kKiB) << "the slice that was written";
  Submit(IoClass::kFlush);  // its place was given back
  EXPECT_EQ(Drain(), "flush");
}

TEST_F(Isolation, EverySliceIsDurableUnlessTheLastOneCoversThoseBefore) {
  for (const bool covers : {false, true}) {
    if (covers) device.set_fua_covers_zone();
    IoRequest request;
    std::vector<std::byte> buffer(128 * kKiB);
    request.device.op = DeviceOp::kWrite;
    request.device.fua = true;
    request.device.data = buffer.data();
    request.device.length = buffer.size();
    request.done = [](IoRequest&) {};
    engine.Submit(request);
    EXPECT_EQ(device.held.front()->fua, !covers);
    device.Complete();
    EXPECT_TRUE(device.held.front()->fua);
    device.Complete();
  }
}

// Time stands still until the test moves it.
class ManualClock final : public AlarmClock {
 public:
  int64_t Now() const override { return now_; }
  bool RingAt(int64_t at_ns, uint32_t what) override {
    if (rings) alarms_.emplace(at_ns, what);
    return rings;
  }
  void OnRing(std::function<void(uint32_t)> ring) override { ring_ = std::move(ring); }
  void Stop() override { alarms_.clear(); }

  void MoveTo(int64_t now_ns) {
    now_ = now_ns;
    while (!alarms_.empty() && alarms_.begin()->first <= now_) {
      const uint32_t what = alarms_.begin()->second;
      alarms_.erase(alarms_.begin());
      ring_(what);
    }
  }
  size_t alarms() const { return alarms_.size(); }
  bool rings = true;

 private:
  int64_t now_ = kSecondNs;
  std::multimap<int64_t, uint32_t> alarms_;
  std::function<void(uint32_t)> ring_;
};

class Gaps : public testing::Test {
 protected:
  static constexpr uint32_t kPrograms = 64;
  static constexpr int64_t kGap = kPrograms * kProgramNs;

  IoRequest& MakeRequest(IoClass io_class, uint64_t length, uint32_t zone, bool fua) {
    IoRequest& request = requests_.emplace_back();
    request.io_class = io_class;
    request.device.op = io_class == IoClass::kUserRead ? DeviceOp::kRead : DeviceOp::kWrite;
    request.device.fua = fua;
    request.device.offset = DeviceOffset(zone * kMiB);
    request.device.data = buffer_.data();
    request.device.length = length;
    request.done = [](IoRequest&) {};
    return request;
  }
  IoRequest& Submit(IoClass io_class, uint64_t length = 64 * kKiB, uint32_t zone = 0, bool fua = false) {
    IoRequest& request = MakeRequest(io_class, length, zone, fua);
    engine->Submit(request);
    return request;
  }
  void CompleteAll() {
    while (!device.held.empty()) device.Complete();
  }
  // A reader of zone 1.
  void Read() {
    for (uint32_t i = 0; i < WriteGaps::kRun; ++i) Submit(IoClass::kUserRead, 4096, /*zone=*/1);
    CompleteAll();
  }
  void MoveBy(int64_t ns) { clock->MoveTo(clock->Now() + ns); }

  ManualDevice device{2};
  const ZoneGroups two_groups = TwoGroups();
  ManualClock* clock = new ManualClock;
  std::unique_ptr<IoEngine> engine = std::make_unique<IoEngine>(
      device, std::make_shared<GroupIndex>(2, &two_groups),
      IoEngine::Options{.write_gap = kPrograms, .clock = std::unique_ptr<AlarmClock>(clock)});

 private:
  std::deque<IoRequest> requests_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kMiB);
};

TEST_F(Gaps, NobodyKeepsOneWhileNobodyReads) {
  for (int i = 0; i < 5; ++i) Submit(IoClass::kFlush);
  EXPECT_EQ(device.held.size(), 5U);
  CompleteAll();
  EXPECT_EQ(engine->gap_waits().Take().count, 0U);
}

TEST_F(Gaps, SlicesOfAFlushWaitForEachOtherWhileUsersRead) {
  Read();
  Submit(IoClass::kFlush, 128 * kKiB);
  ASSERT_EQ(device.held.size(), 1U);
  device.Complete();
  EXPECT_TRUE(device.held.empty()) << "the second slice keeps the gap";
  for (int64_t passed = 0; passed + 16 * kMillisecondNs < kGap; passed += 16 * kMillisecondNs) {
    Read();
    MoveBy(16 * kMillisecondNs);
    EXPECT_TRUE(device.held.empty());
  }
  Read();
  MoveBy(16 * kMillisecondNs);
  ASSERT_EQ(device.held.size(), 1U) << "the alarm has sent it";
  CompleteAll();
  EXPECT_EQ(engine->gap_waits().Take().count, 1U);
  EXPECT_EQ(engine->gap_waits().Take().max, static_cast<uint64_t>(kGap));
}

TEST_F(Gaps, NobodyKeepsOneWithoutAlarms) {
  clock->rings = false;
  Read();
  for (int i = 0; i < 5; ++i) Submit(IoClass::kFlush);
  EXPECT_EQ(device.held.size(), 5U);
  CompleteAll();
}

TEST_F(Gaps, EndWhenNobodyReadsAnyMore) {
  Read();
  Submit(IoClass::kFlush);
  Submit(IoClass::kFlush);
  CompleteAll();
  EXPECT_EQ(clock->alarms(), 1U);
  MoveBy(WriteGaps::PauseNs(kGap) + 1);
  Submit(IoClass::kFlush);  // finds that the others need not wait any longer
  EXPECT_EQ(device.held.size(), 2U);
  CompleteAll();
}

TEST_F(Gaps, DoNotHoldUpReadsMetadataOrLogsThatSomebodyWaitsFor) {
  Read();
  Submit(IoClass::kFlush);
  Submit(IoClass::kFlush);
  Submit(IoClass::kUserRead, 4096);
  Submit(IoClass::kMetadata);
  Submit(IoClass::kWal, 64 * kKiB, 0, /*fua=*/true);
  EXPECT_EQ(device.held.size(), 4U) << "all but the second flush";
  Submit(IoClass::kWal);
  EXPECT_EQ(device.held.size(), 4U) << "a log that nobody waits for keeps the shortest gap";
  Submit(IoClass::kFlush, 64 * kKiB, /*zone=*/1);
  EXPECT_EQ(device.held.size(), 5U) << "another group";
  CompleteAll();
  MoveBy(kGap / 16);
  EXPECT_EQ(device.held.size(), 1U) << "the log";
  CompleteAll();
  MoveBy(kGap);
  CompleteAll();
}

// A piece of a log sets an alarm before that of a waiting flush, whose alarm stays set.
TEST_F(Gaps, AlarmsDoNotPileUp) {
  Read();
  for (int i = 0; i < 101; ++i) Submit(IoClass::kFlush);
  size_t most = 0;
  for (int step = 0; step < 100 * 16; ++step) {
    Read();
    if (step % 16 < 8) Submit(IoClass::kWal);
    most = std::max(most, clock->alarms());
    MoveBy(kGap / 16);
    CompleteAll();
  }
  EXPECT_LE(most, 10U) << "one for each piece of the log, and the flush's";
  MoveBy(kGap);  // no user reads any more
  CompleteAll();
}

TEST_F(Gaps, ALogThatSomebodyWaitsForOvertakesOneThatKeepsAGap) {
  Read();
  Submit(IoClass::kWal);
  Submit(IoClass::kWal, 128 * kKiB);
  EXPECT_EQ(device.held.size(), 1U);
  Submit(IoClass::kWal, 64 * kKiB, 0, /*fua=*/true);
  EXPECT_EQ(device.held.size(), 2U) << "nobody waits for what it stands behind";
  CompleteAll();
  Read();
  MoveBy(kGap / 16);
  ASSERT_EQ(device.held.size(), 1U) << "the first slice of the log";
  CompleteAll();
  Submit(IoClass::kWal, 64 * kKiB, 0, /*fua=*/true);
  EXPECT_EQ(device.held.size(), 1U) << "nor behind the second slice";
  CompleteAll();
  IoRequest& awaited = MakeRequest(IoClass::kWal, 64 * kKiB, 0, /*fua=*/false);
  awaited.awaited = true;
  engine->Submit(awaited);
  EXPECT_EQ(device.held.size(), 1U) << "nor if it takes a flush to make it durable";
  CompleteAll();
  Read();
  MoveBy(kGap / 16);
  CompleteAll();
}

TEST(ThreadAlarmClock, RingsOnceForEachAlarm) {
  ThreadAlarmClock clock;
  Latch latch(3);
  std::vector<uint32_t> rung;
  clock.OnRing([&](uint32_t what) {
    rung.push_back(what);
    latch.CountDown();
  });
  const int64_t now = clock.Now();
  EXPECT_TRUE(clock.RingAt(now + 3 * kMillisecondNs, 3));
  EXPECT_TRUE(clock.RingAt(now + 2 * kMillisecondNs, 2));
  EXPECT_TRUE(clock.RingAt(now + kMillisecondNs, 1));
  latch.Wait();
  EXPECT_TRUE(clock.RingAt(now + 3600 * kSecondNs, 4));
  clock.Stop();
  EXPECT_EQ(rung.size(), 3U);
  EXPECT_TRUE(std::is_permutation(rung.begin(), rung.end(), std::vector<uint32_t>{1, 2, 3}.begin()));
}

TEST(IoEngine, WithoutIsolationEverythingGoesAtOnce) {
  ManualDevice device(2);
  const ZoneGroups groups = TwoGroups();
  IoEngine engine(device, std::make_shared<GroupIndex>(2, &groups), {.isolation = false});
  std::deque<IoRequest> requests(100);
  std::byte buffer[4096];
  for (IoRequest& request : requests) {
    request.device.data = buffer;
    request.device.length = sizeof(buffer);
    request.done = [](IoRequest&) {};
    engine.Submit(request);
  }
  EXPECT_EQ(device.held.size(), 100U);
  while (!device.held.empty()) device.Complete();
}

// Requests of all classes, two slices each, to the zones of `device` in turn.
void GetEverythingDone(ThreadedDevice& device, IoEngine& engine) {
  constexpr int kRequests = 400;
  std::deque<IoRequest> requests(kRequests);
  std::vector<std::byte> buffer(128 * kKiB);
  Latch latch;
  for (int i = 0; i < kRequests; ++i) {
    IoRequest& request = requests[static_cast<size_t>(i)];
    request.io_class = static_cast<IoClass>(i % kIoClassCount);
    request.device.op = request.io_class == IoClass::kUserRead ? DeviceOp::kRead : DeviceOp::kWrite;
    request.device.fua = i % 3 == 0;
    request.device.offset = DeviceOffset(i / kIoClassCount % device.geometry().zone_count * kMiB);
    request.device.data = buffer.data();
    request.device.length = buffer.size();
    latch.Expect(request);
    engine.Submit(request);
  }
  latch.Wait();
}

TEST(IoEngine, ManyThreadsGetEverythingDone) {
  ThreadedDevice device;
  IoEngine engine(device, OneGroup(), {});
  GetEverythingDone(device, engine);
  EXPECT_EQ(engine.counters(IoClass::kGc).bytes_written, 50 * 128 * kKiB);
}

TEST(IoEngine, ManyThreadsGetEverythingDoneWithGaps) {
  ThreadedDevice device(2);
  const ZoneGroups groups = TwoGroups();
  IoEngine engine(device, std::make_shared<GroupIndex>(2, &groups), {.write_gap = 1});
  GetEverythingDone(device, engine);
  EXPECT_EQ(engine.counters(IoClass::kGc).bytes_written, 50 * 128 * kKiB);
}

}  // namespace
}  // namespace isozone
