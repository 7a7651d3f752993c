// Every backend of ZonedDevice against the rules in zoned_device.h. The cases know nothing of the device but what its
// geometry says, so they hold for any zoned SSD or disk:
//
//   ISOZONE_TEST_DEVICE=dev:/dev/nvme0n2 device_conformance_test    destroys what is on the device
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/aligned_buffer.h"
#include "base/latch.h"
#include "base/random.h"
#include "device/device_under_test.h"
#include "device/zoned_device.h"
#include "testing/assert_ok.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

using Dev = DeviceStatus;

constexpr uint32_t kZonesNeeded = 6;
constexpr uint32_t kZonesUsed = 16;  // of a device that has more

// Fills whole blocks with bytes that only this tag and this place have.
void Fill(std::span<std::byte> data, uint64_t tag, uint64_t offset) {
  for (uint64_t at = 0; at < data.size(); at += sizeof(uint64_t)) {
    const uint64_t word = (tag << 48 ^ (offset + at)) * 0x9E3779B97F4A7C15ULL;
    std::memcpy(data.data() + at, &word, sizeof(word));
  }
}

AlignedBuffer Pattern(uint64_t tag, uint64_t offset, uint64_t length) {
  AlignedBuffer data(length);
  Fill(data.span(), tag, offset);
  return data;
}

bool Holds(std::span<const std::byte> data, uint64_t tag, uint64_t offset) {
  const AlignedBuffer expected = Pattern(tag, offset, data.size());
  return std::memcmp(data.data(), expected.data(), data.size()) == 0;
}

bool IsZero(std::span<const std::byte> data) {
  return std::all_of(data.begin(), data.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

class ConformanceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    under_test_ = MakeDeviceUnderTest(GetParam());
    ASSERT_NO_FATAL_FAILURE(Reopen());
    ASSERT_NO_FATAL_FAILURE(EmptyZones());
    ASSERT_GE(zones_.size(), kZonesNeeded) << "zones that can be written";
  }

  void Reopen() {
    device_.reset();
    auto opened = under_test_->Open(OpenMode::kReadWrite);
    ISOZONE_ASSERT_OK(opened.status());
    device_ = std::move(*opened);
  }

  // Resets all zones that hold anything, and chooses those that the test writes: the first ones, and the last.
  void EmptyZones() {
    std::vector<ZoneDescriptor> report(geometry().zone_count);
    ISOZONE_ASSERT_OK(device_->ReportZones(ZoneId(0), report));
    zones_.clear();
    for (const ZoneDescriptor& zone : report) {
      if (zone.state == ZoneState::kReadOnly || zone.state == ZoneState::kOffline) continue;
      if (zone.state != ZoneState::kEmpty) {
        ASSERT_EQ(Command(DeviceOp::kReset, zone.zone), Dev::kSuccess);
      }
      if (zones_.size() == kZonesUsed) zones_.pop_back();
      zones_.push_back(zone.zone);
    }
  }

  const DeviceGeometry& geometry() const { return device_->geometry(); }
  uint64_t block() const { return geometry().block_size; }
  uint64_t capacity() const { return geometry().zone_capacity; }
  ZoneId zone(size_t index) const { return zones_[index]; }
  uint64_t longest() const {
    const uint64_t limit = geometry().max_transfer == 0 ? 256 * kKiB : geometry().max_transfer;
    return std::min(limit, capacity());
  }
  DeviceOffset At(ZoneId zone, uint64_t offset) const {
    return DeviceOffset(geometry().ZoneStart(zone).value() + offset);
  }

  Dev Transfer(DeviceOp op, ZoneId zone, uint64_t offset, AlignedBuffer& data, bool fua = false) {
    DeviceRequest request;
    request.op = op;
    request.fua = fua;
    request.offset = At(zone, offset);
    request.data = data.data();
    request.length = data.size();
    return SubmitAndWait(*device_, request);
  }
  // Writes a piece of the pattern whose tag is the zone.
  Dev Write(ZoneId zone, uint64_t offset, uint64_t length, bool fua = false) {
    AlignedBuffer data = Pattern(zone.value(), offset, length);
    return Transfer(DeviceOp::kWrite, zone, offset, data, fua);
  }
  Dev Append(ZoneId zone, uint64_t length) {
    AlignedBuffer data = Pattern(zone.value(), 0, length);
    return Transfer(DeviceOp::kAppend, zone, 0, data);
  }
  Dev Command(DeviceOp op, ZoneId zone) {
    DeviceRequest request;
    request.op = op;
    request.offset = geometry().ZoneStart(zone);
    return SubmitAndWait(*device_, request);
  }
  // Writes the zone up to `end` in long writes.
  void WriteUpTo(ZoneId zone, uint64_t end) {
    for (uint64_t at = 0; at < end;) {
      const uint64_t length = std::min(longest(), end - at);
      ASSERT_EQ(Write(zone, at, length), Dev::kSuccess) << "at " << at;
      at += length;
    }
  }
  AlignedBuffer Read(ZoneId zone, uint64_t offset, uint64_t length) {
    AlignedBuffer data(length);
    std::memset(data.data(), 0xA5, length);
    EXPECT_EQ(Transfer(DeviceOp::kRead, zone, offset, data), Dev::kSuccess) << offset;
    return data;
  }
  ZoneDescriptor Describe(ZoneId zone) {
    ZoneDescriptor descriptor;
    ISOZONE_EXPECT_OK(device_->ReportZones(zone, {&descriptor, 1}));
    return descriptor;
  }
  ZoneState State(ZoneId zone) { return Describe(zone).state; }
  uint64_t WritePointer(ZoneId zone) { return Describe(zone).write_pointer; }

  std::unique_ptr<DeviceUnderTest> under_test_;
  std::unique_ptr<ZonedDevice> device_;
  std::vector<ZoneId> zones_;  // that can be written, empty when a test begins
};

TEST_P(ConformanceTest, TheGeometryIsSound) {
  EXPECT_GE(block(), 512U);
  EXPECT_EQ(block() & (block() - 1), 0U);
  EXPECT_EQ(geometry().zone_size % block(), 0U);
  EXPECT_EQ(capacity() % block(), 0U);
  EXPECT_LE(capacity(), geometry().zone_size);
  EXPECT_GE(geometry().optimal_write, block());
  EXPECT_EQ(geometry().max_transfer % block(), 0U);
  EXPECT_LE(geometry().buffer_alignment, block()) << "callers align their memory to blocks";
  if (geometry().max_active_zones > 0) {
    EXPECT_LE(geometry().max_open_zones, geometry().max_active_zones);
  }
  EXPECT_FALSE(device_->read_only());
  EXPECT_FALSE(device_->name().empty());
}

TEST_P(ConformanceTest, ReadsBackWhatWasWrittenAndZerosBeyond) {
  ASSERT_EQ(Write(zone(0), 0, 3 * block()), Dev::kSuccess);
  EXPECT_EQ(WritePointer(zone(0)), 3 * block());
  EXPECT_TRUE(Holds(Read(zone(0), 0, 3 * block()).span(), zone(0).value(), 0));
  const AlignedBuffer across = Read(zone(0), 2 * block(), 2 * block());
  EXPECT_TRUE(Holds(across.span().first(block()), zone(0).value(), 2 * block()));
  EXPECT_TRUE(IsZero(across.span().subspan(block()))) << "behind the write pointer";
  EXPECT_TRUE(IsZero(Read(zone(0), 8 * block(), block()).span()));
  EXPECT_TRUE(IsZero(Read(zone(1), 0, 4 * block()).span())) << "in an empty zone";
  if (capacity() < geometry().zone_size) {
    EXPECT_TRUE(IsZero(Read(zone(0), capacity(), block()).span())) << "behind the capacity";
  }
}

TEST_P(ConformanceTest, AWriteBeginsAtTheWritePointer) {
  EXPECT_EQ(Write(zone(0), block(), block()), Dev::kZoneInvalidWrite) << "in front of it";
  ASSERT_EQ(Write(zone(0), 0, 2 * block()), Dev::kSuccess);
  EXPECT_EQ(Write(zone(0), 0, block()), Dev::kZoneInvalidWrite) << "behind it";
  EXPECT_EQ(Write(zone(0), 4 * block(), block()), Dev::kZoneInvalidWrite);
  EXPECT_EQ(WritePointer(zone(0)), 2 * block());
  EXPECT_EQ(Write(zone(0), 2 * block(), block()), Dev::kSuccess);
  EXPECT_TRUE(Holds(Read(zone(0), 0, 3 * block()).span(), zone(0).value(), 0));
}

TEST_P(ConformanceTest, AZoneIsFullAtItsCapacity) {
  const ZoneId full = zone(0);
  ASSERT_NO_FATAL_FAILURE(WriteUpTo(full, capacity() - block()));
  EXPECT_EQ(Write(full, capacity() - block(), 2 * block()), Dev::kZoneBoundaryError);
  EXPECT_TRUE(IsActive(State(full)));
  EXPECT_EQ(Write(full, capacity() - block(), block()), Dev::kSuccess);
  EXPECT_EQ(State(full), ZoneState::kFull);
  EXPECT_EQ(WritePointer(full), capacity());
  EXPECT_EQ(Append(full, block()), Dev::kZoneIsFull);
  if (capacity() < geometry().zone_size) {
    EXPECT_EQ(Write(full, capacity(), block()), Dev::kZoneIsFull);
  }
  for (uint64_t at = 0; at < capacity(); at += longest()) {
    const uint64_t length = std::min(longest(), capacity() - at);
    ASSERT_TRUE(Holds(Read(full, at, length).span(), full.value(), at)) << at;
  }
}

TEST_P(ConformanceTest, EveryZoneCanBeFilled) {
  for (const ZoneId id : zones_) {
    ASSERT_NO_FATAL_FAILURE(WriteUpTo(id, capacity())) << id.value();
    EXPECT_EQ(State(id), ZoneState::kFull) << id.value();
  }
  for (const ZoneId id : zones_) {
    EXPECT_TRUE(Holds(Read(id, capacity() - block(), block()).span(), id.value(), capacity() - block())) << id.value();
    EXPECT_TRUE(Holds(Read(id, 0, block()).span(), id.value(), 0)) << "zone " << id.value() << " lies at another one";
  }
}

TEST_P(ConformanceTest, TransfersMayBeAsLongAsTheLimitAndNoLonger) {
  ASSERT_EQ(Write(zone(0), 0, longest()), Dev::kSuccess);
  EXPECT_TRUE(Holds(Read(zone(0), 0, longest()).span(), zone(0).value(), 0));
  const uint64_t limit = geometry().max_transfer;
  if (limit == 0 || limit + block() > capacity()) return;
  EXPECT_EQ(Write(zone(1), 0, limit + block()), Dev::kInvalidField);
  EXPECT_EQ(WritePointer(zone(1)), 0U);
  AlignedBuffer data(limit + block());
  EXPECT_EQ(Transfer(DeviceOp::kRead, zone(0), 0, data), Dev::kInvalidField);
}

TEST_P(ConformanceTest, RefusesMalformedRequests) {
  AlignedBuffer buffer(2 * block());
  const uint64_t zone_size = geometry().zone_size;
  const auto submit = [&](DeviceOp op, uint64_t offset, std::byte* data, uint64_t length) {
    DeviceRequest request;
    request.op = op;
    request.offset = DeviceOffset(offset);
    request.data = data;
    request.length = length;
    return SubmitAndWait(*device_, request);
  };
  EXPECT_EQ(submit(DeviceOp::kRead, 0, nullptr, block()), Dev::kInvalidField);
  EXPECT_EQ(submit(DeviceOp::kRead, 0, buffer.data(), 0), Dev::kInvalidField);
  EXPECT_EQ(submit(DeviceOp::kWrite, 0, buffer.data(), 100), Dev::kInvalidField);
  EXPECT_EQ(submit(DeviceOp::kRead, 100, buffer.data(), block()), Dev::kInvalidField);
  EXPECT_EQ(submit(DeviceOp::kAppend, block(), buffer.data(), block()), Dev::kInvalidField);
  EXPECT_EQ(submit(DeviceOp::kReset, block(), nullptr, 0), Dev::kInvalidField);
  if (geometry().buffer_alignment > 1) {
    EXPECT_EQ(submit(DeviceOp::kRead, 0, buffer.data() + 1, block()), Dev::kInvalidField);
  }
  const uint64_t end = geometry().zone_count * zone_size;
  EXPECT_EQ(submit(DeviceOp::kRead, end - block(), buffer.data(), 2 * block()), Dev::kLbaOutOfRange);
  EXPECT_EQ(submit(DeviceOp::kWrite, end, buffer.data(), block()), Dev::kLbaOutOfRange);
  EXPECT_EQ(submit(DeviceOp::kReset, end, nullptr, 0), Dev::kLbaOutOfRange);
  EXPECT_EQ(submit(DeviceOp::kRead, zone_size - block(), buffer.data(), 2 * block()), Dev::kZoneBoundaryError);
}

TEST_P(ConformanceTest, ASecondWriteInFlightToAZoneIsRefused) {
  // The device may be faster than this thread; of many tries, it does not win all.
  const uint64_t length = std::min(longest(), RoundDown(capacity() / 2, block()));
  const bool is_emulated = device_->name().starts_with("emu:");  // which completes inside of Submit
  const int tries = is_emulated ? 1 : 1000;
  int refused = 0;
  uint64_t at = 0;
  for (int i = 0; i < tries && refused == 0; ++i) {
    if (at + 2 * length > capacity()) {
      ASSERT_EQ(Command(DeviceOp::kReset, zone(0)), Dev::kSuccess);
      at = 0;
    }
    AlignedBuffer first = Pattern(zone(0).value(), at, length);
    AlignedBuffer second = Pattern(zone(0).value(), at + length, length);
    std::array<DeviceRequest, 2> requests;
    Latch latch;
    for (size_t j = 0; j < requests.size(); ++j) {
      requests[j].op = DeviceOp::kWrite;
      requests[j].offset = At(zone(0), at + j * length);
      requests[j].data = j == 0 ? first.data() : second.data();
      requests[j].length = length;
      latch.Expect(requests[j]);
    }
    for (DeviceRequest& request : requests) device_->Submit(request);
    latch.Wait();
    ASSERT_EQ(requests[0].status, Dev::kSuccess);
    refused += requests[1].status == Dev::kZoneInvalidWrite ? 1 : 0;
    ASSERT_TRUE(refused == 1 || requests[1].status == Dev::kSuccess) << DeviceStatusName(requests[1].status);
    at += refused == 1 ? length : 2 * length;
    EXPECT_EQ(WritePointer(zone(0)), at);
  }
  if (!is_emulated) {
    EXPECT_EQ(refused, 1);
  }
}

TEST_P(ConformanceTest, AppendsInFlightGetPlacesOfTheirOwn) {
  constexpr size_t kAppends = 8;
  const uint64_t length = 2 * block();
  std::array<AlignedBuffer, kAppends> data;
  std::array<DeviceRequest, kAppends> requests;
  {
    Latch latch;
    for (size_t i = 0; i < kAppends; ++i) {
      data[i] = Pattern(100 + i, 0, length);
      requests[i].op = DeviceOp::kAppend;
      requests[i].offset = geometry().ZoneStart(zone(0));
      requests[i].data = data[i].data();
      requests[i].length = length;
      latch.Expect(requests[i]);
      device_->Submit(requests[i]);
    }
  }
  std::vector<uint64_t> places;
  for (size_t i = 0; i < kAppends; ++i) {
    ASSERT_EQ(requests[i].status, Dev::kSuccess);
    ASSERT_EQ(geometry().ZoneOf(requests[i].written_at), zone(0));
    places.push_back(geometry().OffsetInZone(requests[i].written_at));
    EXPECT_TRUE(Holds(Read(zone(0), places.back(), length).span(), 100 + i, 0)) << i;
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < kAppends; ++i) EXPECT_EQ(places[i], i * length);
  EXPECT_EQ(WritePointer(zone(0)), kAppends * length);
}

TEST_P(ConformanceTest, AnAppendDoesNotCrossTheCapacity) {
  ASSERT_NO_FATAL_FAILURE(WriteUpTo(zone(0), capacity() - block()));
  EXPECT_EQ(Append(zone(0), 2 * block()), Dev::kZoneBoundaryError);
  EXPECT_EQ(Append(zone(0), block()), Dev::kSuccess);
  EXPECT_EQ(State(zone(0)), ZoneState::kFull);
}

TEST_P(ConformanceTest, AResetEmptiesAZone) {
  ASSERT_EQ(Write(zone(0), 0, 4 * block()), Dev::kSuccess);
  ASSERT_EQ(Write(zone(1), 0, 4 * block()), Dev::kSuccess);
  ASSERT_EQ(Command(DeviceOp::kReset, zone(0)), Dev::kSuccess);
  EXPECT_EQ(State(zone(0)), ZoneState::kEmpty);
  EXPECT_EQ(WritePointer(zone(0)), 0U);
  EXPECT_TRUE(IsZero(Read(zone(0), 0, 4 * block()).span()));
  EXPECT_TRUE(Holds(Read(zone(1), 0, 4 * block()).span(), zone(1).value(), 0)) << "in the next zone";
  EXPECT_EQ(Command(DeviceOp::kReset, zone(0)), Dev::kSuccess) << "of an empty zone";
  EXPECT_EQ(Write(zone(0), 0, block()), Dev::kSuccess);
  EXPECT_TRUE(IsZero(Read(zone(0), block(), 3 * block()).span())) << "what was there before the reset";
}

TEST_P(ConformanceTest, ManyResetsAtOnceResetTheirZonesAndNoOthers) {
  for (const ZoneId id : zones_) ASSERT_NO_FATAL_FAILURE(WriteUpTo(id, capacity()));
  std::vector<DeviceRequest> requests(zones_.size());
  const size_t kept = zones_.size() / 2;
  {
    Latch latch;
    for (size_t i = 0; i < zones_.size(); ++i) {
      if (i == kept) continue;
      requests[i].op = DeviceOp::kReset;
      requests[i].offset = geometry().ZoneStart(zone(i));
      latch.Expect(requests[i]);
      device_->Submit(requests[i]);
    }
  }
  for (size_t i = 0; i < zones_.size(); ++i) {
    EXPECT_EQ(requests[i].status, Dev::kSuccess);
    EXPECT_EQ(State(zone(i)), i == kept ? ZoneState::kFull : ZoneState::kEmpty) << zone(i).value();
  }
  EXPECT_TRUE(Holds(Read(zone(kept), 0, block()).span(), zone(kept).value(), 0));
}

TEST_P(ConformanceTest, AFinishedZoneIsFullAndReadsAsZerosWhereItWasNotWritten) {
  ASSERT_NO_FATAL_FAILURE(WriteUpTo(zone(0), capacity()));
  ASSERT_EQ(Command(DeviceOp::kReset, zone(0)), Dev::kSuccess);
  ASSERT_EQ(Write(zone(0), 0, 2 * block()), Dev::kSuccess);
  ASSERT_EQ(Command(DeviceOp::kFinish, zone(0)), Dev::kSuccess);
  EXPECT_EQ(State(zone(0)), ZoneState::kFull);
  EXPECT_EQ(WritePointer(zone(0)), capacity());
  EXPECT_EQ(Write(zone(0), 2 * block(), block()), Dev::kZoneIsFull);
  EXPECT_TRUE(Holds(Read(zone(0), 0, 2 * block()).span(), zone(0).value(), 0));
  EXPECT_TRUE(IsZero(Read(zone(0), 2 * block(), 4 * block()).span()));
  EXPECT_TRUE(IsZero(Read(zone(0), capacity() - block(), block()).span()));
  EXPECT_EQ(Command(DeviceOp::kFinish, zone(0)), Dev::kSuccess) << "of a full zone";
  EXPECT_EQ(Command(DeviceOp::kFinish, zone(1)), Dev::kSuccess) << "of an empty zone";
  EXPECT_EQ(State(zone(1)), ZoneState::kFull);
  EXPECT_EQ(Command(DeviceOp::kReset, zone(0)), Dev::kSuccess);
  EXPECT_EQ(Write(zone(0), 0, block()), Dev::kSuccess);
}

TEST_P(ConformanceTest, ZonesAreOpenedAndClosedWhereTheirStateAllows) {
  EXPECT_EQ(Command(DeviceOp::kClose, zone(0)), Dev::kInvalidZoneStateTransition) << "an empty zone";
  ASSERT_EQ(Command(DeviceOp::kOpen, zone(0)), Dev::kSuccess);
  EXPECT_EQ(State(zone(0)), ZoneState::kExplicitlyOpen);
  EXPECT_EQ(Command(DeviceOp::kOpen, zone(0)), Dev::kSuccess) << "an open zone";
  ASSERT_EQ(Write(zone(0), 0, block()), Dev::kSuccess);
  EXPECT_EQ(State(zone(0)), ZoneState::kExplicitlyOpen);
  ASSERT_EQ(Command(DeviceOp::kClose, zone(0)), Dev::kSuccess);
  EXPECT_EQ(State(zone(0)), ZoneState::kClosed);
  EXPECT_EQ(Command(DeviceOp::kClose, zone(0)), Dev::kSuccess) << "a closed zone";
  ASSERT_EQ(Write(zone(0), block(), block()), Dev::kSuccess) << "opens it again";
  EXPECT_TRUE(IsOpen(State(zone(0))));
  ASSERT_EQ(Command(DeviceOp::kFinish, zone(0)), Dev::kSuccess);
  EXPECT_EQ(Command(DeviceOp::kOpen, zone(0)), Dev::kInvalidZoneStateTransition) << "a full zone";
  EXPECT_EQ(Command(DeviceOp::kClose, zone(0)), Dev::kInvalidZoneStateTransition);
}

TEST_P(ConformanceTest, AWriteBeyondTheLimitsIsRefusedAndLeavesItsZoneAsItWas) {
  const uint32_t active = geometry().max_active_zones;
  if (active == 0 || active >= zones_.size()) GTEST_SKIP() << "the device has no such limit, or fewer zones";
  for (uint32_t i = 0; i < active; ++i) ASSERT_EQ(Write(zone(i), 0, block()), Dev::kSuccess) << i;
  EXPECT_EQ(Write(zone(active), 0, block()), Dev::kTooManyActiveZones);
  EXPECT_EQ(State(zone(active)), ZoneState::kEmpty);
  EXPECT_EQ(Append(zone(active), block()), Dev::kTooManyActiveZones);
  EXPECT_EQ(Command(DeviceOp::kOpen, zone(active)), Dev::kTooManyActiveZones);
  EXPECT_EQ(Write(zone(0), block(), block()), Dev::kSuccess) << "a zone that is active";
  ASSERT_EQ(Command(DeviceOp::kFinish, zone(0)), Dev::kSuccess);
  EXPECT_EQ(Write(zone(active), 0, block()), Dev::kSuccess) << "a finished zone gives its place back";
  ASSERT_EQ(Command(DeviceOp::kReset, zone(1)), Dev::kSuccess);
  EXPECT_EQ(Write(zone(1), 0, block()), Dev::kSuccess) << "and so does one that was reset";
}

TEST_P(ConformanceTest, OpenZonesAreLimited) {
  const uint32_t open = geometry().max_open_zones;
  if (open == 0 || open >= zones_.size()) GTEST_SKIP() << "the device has no such limit, or fewer zones";
  for (uint32_t i = 0; i < open; ++i) ASSERT_EQ(Command(DeviceOp::kOpen, zone(i)), Dev::kSuccess) << i;
  EXPECT_THAT(Command(DeviceOp::kOpen, zone(open)), testing::AnyOf(Dev::kTooManyOpenZones, Dev::kTooManyActiveZones));
  EXPECT_THAT(Write(zone(open), 0, block()), testing::AnyOf(Dev::kTooManyOpenZones, Dev::kTooManyActiveZones));
  ASSERT_EQ(Write(zone(0), 0, block()), Dev::kSuccess);
  ASSERT_EQ(Command(DeviceOp::kFinish, zone(0)), Dev::kSuccess);
  EXPECT_EQ(Write(zone(open), 0, block()), Dev::kSuccess);
}

TEST_P(ConformanceTest, MoreZonesMayBeWrittenThanAreOpen) {
  const uint32_t open = geometry().max_open_zones;
  const uint32_t active = geometry().max_active_zones == 0 ? open + 2 : geometry().max_active_zones;
  if (open == 0 || open >= active || active > zones_.size()) GTEST_SKIP() << "the device has no such limits";
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < active; ++i) ASSERT_EQ(Write(zone(i), round * block(), block()), Dev::kSuccess) << i;
  }
}

TEST_P(ConformanceTest, WritesThatAreForcedAndFlushesSucceed) {
  EXPECT_EQ(Write(zone(0), 0, block(), /*fua=*/true), Dev::kSuccess);
  EXPECT_EQ(Write(zone(0), block(), longest(), /*fua=*/true), Dev::kSuccess);
  EXPECT_EQ(Write(zone(1), 0, block()), Dev::kSuccess);
  DeviceRequest flush;
  flush.op = DeviceOp::kFlush;
  EXPECT_EQ(SubmitAndWait(*device_, flush), Dev::kSuccess);
  EXPECT_TRUE(Holds(Read(zone(0), block(), longest()).span(), zone(0).value(), block()));
}

TEST_P(ConformanceTest, ReportsAnyRangeOfZones) {
  ASSERT_EQ(Write(zone(1), 0, block()), Dev::kSuccess);
  const uint32_t count = geometry().zone_count;
  std::vector<ZoneDescriptor> all(count);
  ISOZONE_ASSERT_OK(device_->ReportZones(ZoneId(0), all));
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(all[i].zone, ZoneId(i));
    EXPECT_LE(all[i].write_pointer, all[i].capacity);
  }
  std::vector<ZoneDescriptor> last(2);
  ISOZONE_ASSERT_OK(device_->ReportZones(ZoneId(count - 2), last));
  EXPECT_EQ(last[1].zone, ZoneId(count - 1));
  EXPECT_EQ(device_->ReportZones(ZoneId(count - 1), last).code(), StatusCode::kInvalidArgument);
  ISOZONE_EXPECT_OK(device_->ReportZones(ZoneId(count), {}));
  EXPECT_EQ(all[zone(1).value()].write_pointer, block());
}

TEST_P(ConformanceTest, KeepsEverythingOverReopens) {
  ASSERT_EQ(Write(zone(0), 0, 4 * block()), Dev::kSuccess);
  ASSERT_NO_FATAL_FAILURE(WriteUpTo(zone(1), capacity()));
  ASSERT_EQ(Write(zone(2), 0, block()), Dev::kSuccess);
  ASSERT_EQ(Command(DeviceOp::kFinish, zone(2)), Dev::kSuccess);
  const DeviceGeometry before = geometry();
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(geometry().zone_count, before.zone_count);
  EXPECT_EQ(geometry().zone_capacity, before.zone_capacity);
  EXPECT_EQ(WritePointer(zone(0)), 4 * block());
  EXPECT_EQ(State(zone(1)), ZoneState::kFull);
  EXPECT_EQ(State(zone(2)), ZoneState::kFull);
  EXPECT_EQ(State(zone(3)), ZoneState::kEmpty);
  EXPECT_TRUE(Holds(Read(zone(0), 0, 4 * block()).span(), zone(0).value(), 0));
  EXPECT_EQ(Write(zone(0), 4 * block(), block()), Dev::kSuccess);
  EXPECT_EQ(Write(zone(1), 0, block()), Dev::kZoneIsFull);
}

TEST_P(ConformanceTest, HasOneWriterAndReadersBesideIt) {
  EXPECT_EQ(under_test_->Open(OpenMode::kReadWrite).status().code(), StatusCode::kBusy);
  ASSERT_EQ(Write(zone(0), 0, block()), Dev::kSuccess);
  auto opened = under_test_->Open(OpenMode::kReadOnly);
  ISOZONE_ASSERT_OK(opened.status());
  const std::unique_ptr<ZonedDevice> writer = std::exchange(device_, std::move(*opened));
  EXPECT_TRUE(device_->read_only());
  EXPECT_TRUE(Holds(Read(zone(0), 0, block()).span(), zone(0).value(), 0));
  EXPECT_EQ(Write(zone(0), block(), block()), Dev::kNamespaceWriteProtected);
  EXPECT_EQ(Command(DeviceOp::kReset, zone(0)), Dev::kNamespaceWriteProtected);

  AlignedBuffer more = Pattern(zone(0).value(), block(), block());
  DeviceRequest request;
  request.op = DeviceOp::kWrite;
  request.offset = At(zone(0), block());
  request.data = more.data();
  request.length = more.size();
  ASSERT_EQ(SubmitAndWait(*writer, request), Dev::kSuccess);
  EXPECT_EQ(WritePointer(zone(0)), 2 * block());
  EXPECT_TRUE(Holds(Read(zone(0), 0, 2 * block()).span(), zone(0).value(), 0)) << "what was written since";
  EXPECT_TRUE(IsZero(Read(zone(0), 2 * block(), block()).span()));
  device_.reset();
}

TEST_P(ConformanceTest, ThreadsOnTheirOwnZonesDoNotDisturbEachOther) {
  constexpr uint32_t kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      const ZoneId own = zone(i);
      const uint64_t step = 4 * block();
      for (int round = 0; round < 2; ++round) {
        for (uint64_t at = 0; at + step <= std::min<uint64_t>(capacity(), 64 * step); at += step) {
          ASSERT_EQ(Write(own, at, step), Dev::kSuccess);
          const uint64_t behind = at / 2 / block() * block();
          ASSERT_TRUE(Holds(Read(own, behind, block()).span(), own.value(), behind));
        }
        ASSERT_EQ(Command(DeviceOp::kReset, own), Dev::kSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(ConformanceTest, ManyReadsAreInFlightAtATime) {
  const uint64_t written = RoundDown(std::min<uint64_t>(capacity(), 4 * longest()), block());
  for (size_t i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(WriteUpTo(zone(i), written));
  constexpr size_t kReads = 2000;
  Random random(TestSeed(11));
  std::vector<DeviceRequest> requests(kReads);
  AlignedBuffer memory(kReads * block());
  {
    Latch latch;
    for (size_t i = 0; i < kReads; ++i) {
      requests[i].op = DeviceOp::kRead;
      requests[i].offset = At(zone(random.Below(3)), random.Below(written / block()) * block());
      requests[i].data = memory.data() + i * block();
      requests[i].length = block();
      latch.Expect(requests[i]);
      device_->Submit(requests[i]);
    }
  }
  for (const DeviceRequest& request : requests) {
    ASSERT_EQ(request.status, Dev::kSuccess);
    const uint64_t offset = geometry().OffsetInZone(request.offset);
    ASSERT_TRUE(Holds({request.data, block()}, geometry().ZoneOf(request.offset).value(), offset));
  }
}

TEST_P(ConformanceTest, ACompletionMaySubmitTheNextRequest) {
  struct Chain {
    ZonedDevice* device;
    std::atomic<int> left;
    Latch* latch;
  };
  Latch latch(1);
  Chain chain{device_.get(), 6, &latch};
  AlignedBuffer data = Pattern(7, 0, block());
  DeviceRequest request;
  request.op = DeviceOp::kWrite;
  request.offset = At(zone(0), 0);
  request.data = data.data();
  request.length = data.size();
  request.context = &chain;
  request.done = [](DeviceRequest& r) {
    Chain& c = *static_cast<Chain*>(r.context);
    if (r.status != Dev::kSuccess || --c.left == 0) return c.latch->CountDown();
    r.offset = DeviceOffset(r.offset.value() + r.length);
    c.device->Submit(r);
  };
  device_->Submit(request);
  latch.Wait();
  EXPECT_EQ(request.status, Dev::kSuccess);
  EXPECT_EQ(WritePointer(zone(0)), 6 * block());
}

TEST_P(ConformanceTest, CountsWhatItDoes) {
  const DeviceCounters before = device_->counters();
  ASSERT_EQ(Write(zone(0), 0, 4 * block()), Dev::kSuccess);
  Read(zone(0), 0, 2 * block());
  ASSERT_EQ(Command(DeviceOp::kFinish, zone(0)), Dev::kSuccess);
  ASSERT_EQ(Command(DeviceOp::kReset, zone(0)), Dev::kSuccess);
  const DeviceCounters after = device_->counters();
  EXPECT_EQ(after.host_bytes_written - before.host_bytes_written, 4 * block());
  EXPECT_EQ(after.host_bytes_read - before.host_bytes_read, 2 * block());
  EXPECT_EQ(after.finishes - before.finishes, 1U);
  EXPECT_EQ(after.resets - before.resets, 1U);
  EXPECT_GE(after.media_bytes_written, before.media_bytes_written + 4 * block());
}

INSTANTIATE_TEST_SUITE_P(Devices, ConformanceTest, testing::ValuesIn(DevicesUnderTest()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace isozone
