#include "device/emulated/faults.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "device/emulated/device_test_util.h"

namespace isozone {
namespace {

using testing::Each;
using testing::HasSubstr;
using Dev = DeviceStatus;

struct FaultyDevice {
  explicit FaultyDevice(const FaultPlan& plan = {}, const DeviceGeometry& geometry = SmallGeometry())
      : image(NewMemoryImage(geometry)), device(OpenForTest(image.path(), OpenMode::kReadWrite, With(plan))) {}
  static EmulatedOptions With(const FaultPlan& plan) {
    EmulatedOptions options;
    options.faults = plan;
    return options;
  }
  MemoryImage image;
  std::unique_ptr<EmulatedDevice> device;
  Host host{*device};
};

FaultPlan Plan(uint64_t seed) {
  FaultPlan plan;
  plan.seed = seed;
  return plan;
}

TEST(FaultPlan, IsTakenFromAUri) {
  auto uri = ParseUri(
      "emu:x?fault_seed=7&fault_read_error=0.5&fault_write_error=0.25&fault_zone_read_only=0.125&fault_zone_offline=1&"
      "fault_latency_spike=0.75&fault_latency_spike_us=99&fault_power_cut_after=12");
  ASSERT_TRUE(uri.ok());
  const auto plan = TakeFaultPlan(uri->options);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(plan->seed, 7U);
  EXPECT_EQ(std::tuple(plan->read_error, plan->write_error, plan->zone_read_only, plan->zone_offline),
            std::tuple(0.5, 0.25, 0.125, 1.0));
  EXPECT_EQ(std::tuple(plan->latency_spike, plan->latency_spike_us), std::tuple(0.75, 99U));
  EXPECT_EQ(plan->power_cut_after, 12U);
  EXPECT_TRUE(uri->options.RejectUnknown().ok());
}

TEST(FaultPlan, RefusesWhatIsNoProbability) {
  auto uri = ParseUri("emu:x?fault_read_error=1.5");
  ASSERT_TRUE(uri.ok());
  EXPECT_THAT(TakeFaultPlan(uri->options).status().ToString(), HasSubstr("fault_read_error"));
}

TEST(Faults, ABlockThatFailedToReadFailsUntilItsZoneIsReset) {
  FaultPlan plan = Plan(TestSeed(1));
  plan.read_error = 0.2;
  FaultyDevice faulty(plan);
  SCOPED_TRACE(faulty.device->fault_seed());
  ASSERT_EQ(faulty.host.Append(0, Pattern(1, 0, 1)), Dev::kSuccess);
  std::vector<std::byte> data(kTestBlock);
  int tries = 0;
  while (faulty.host.Read(0, 0, data) == Dev::kSuccess) {
    ASSERT_LT(++tries, 1000);
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(faulty.host.Read(0, 0, data), Dev::kUnrecoveredReadError);
  ASSERT_EQ(faulty.host.Reset(0), Dev::kSuccess);
  int successes = 0;
  for (int i = 0; i < 1000 && successes == 0; ++i) {
    ASSERT_EQ(faulty.host.Reset(0), Dev::kSuccess);
    if (faulty.host.Read(0, 0, data) == Dev::kSuccess) ++successes;
  }
  EXPECT_EQ(successes, 1);
}

TEST(Faults, AFailedWriteStoresOnlyItsFirstBlocks) {
  FaultPlan plan = Plan(TestSeed(2));
  plan.write_error = 0.5;
  FaultyDevice faulty(plan);
  SCOPED_TRACE(faulty.device->fault_seed());
  int failures = 0;
  int whole = 0;
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(faulty.host.Reset(0), Dev::kSuccess);
    const Dev status = faulty.host.Write(0, 0, Pattern(1, 0, 6));
    const uint64_t stored = faulty.host.WritePointer(0);
    if (status == Dev::kSuccess) {
      EXPECT_EQ(stored, 6U);
    } else {
      ASSERT_EQ(status, Dev::kWriteFault);
      ++failures;
      if (stored == 6) ++whole;
    }
    if (stored > 0) {
      EXPECT_EQ(faulty.host.Read(0, 0, stored), Pattern(1, 0, stored));
    }
  }
  EXPECT_GT(failures, 50);
  EXPECT_LT(failures, 150);
  EXPECT_GT(whole, 0) << "an answer that is lost";
}

TEST(Faults, AZoneThatTurnsReadOnlyKeepsItsData) {
  FaultyDevice faulty;
  ASSERT_EQ(faulty.host.Append(0, Pattern(1, 0, 2)), Dev::kSuccess);
  faulty.device->SetZoneState(ZoneId(0), ZoneState::kReadOnly);
  EXPECT_EQ(faulty.host.Append(0, Pattern(1, 2, 1)), Dev::kZoneIsReadOnly);
  EXPECT_EQ(faulty.host.Reset(0), Dev::kInvalidZoneStateTransition);
  EXPECT_EQ(faulty.host.Read(0, 0, 2), Pattern(1, 0, 2));
  EXPECT_EQ(faulty.host.WritePointer(0), 2U);
}

TEST(Faults, AZoneThatTurnsOfflineLosesItsData) {
  FaultyDevice faulty;
  ASSERT_EQ(faulty.host.Append(0, Pattern(1, 0, 2)), Dev::kSuccess);
  faulty.device->SetZoneState(ZoneId(0), ZoneState::kOffline);
  std::vector<std::byte> data(kTestBlock);
  EXPECT_EQ(faulty.host.Read(0, 0, data), Dev::kZoneIsOffline);
  EXPECT_EQ(faulty.host.Append(0, Pattern(1, 2, 1)), Dev::kZoneIsOffline);
  EXPECT_EQ(faulty.host.WritePointer(0), 0U);
}

TEST(Faults, ZonesTurnReadOnlyOrOfflineAsPlanned) {
  FaultPlan plan = Plan(TestSeed(3));
  plan.zone_read_only = 1;
  FaultyDevice read_only(plan);
  EXPECT_EQ(read_only.host.Append(1, Pattern(1, 0, 1)), Dev::kZoneIsReadOnly);
  EXPECT_EQ(read_only.host.State(1), ZoneState::kReadOnly);
  plan.zone_offline = 1;
  FaultyDevice offline(plan);
  EXPECT_EQ(offline.host.Reset(1), Dev::kZoneIsOffline);
  EXPECT_EQ(offline.host.State(1), ZoneState::kOffline);
  EXPECT_EQ(offline.host.State(2), ZoneState::kEmpty);
}

TEST(Faults, FailNextHitsOneCommandOfOneZone) {
  FaultyDevice faulty;
  faulty.device->FailNext(DeviceOp::kAppend, ZoneId(2), Dev::kWriteFault);
  faulty.device->FailNext(DeviceOp::kFlush, ZoneId(0), Dev::kInternalError);
  EXPECT_EQ(faulty.host.Append(1, Pattern(1, 0, 1)), Dev::kSuccess);
  EXPECT_EQ(faulty.host.Append(2, Pattern(1, 0, 1)), Dev::kWriteFault);
  EXPECT_EQ(faulty.host.WritePointer(2), 0U);
  EXPECT_EQ(faulty.host.Append(2, Pattern(1, 0, 1)), Dev::kSuccess);
  EXPECT_EQ(faulty.host.Flush(), Dev::kInternalError);
  EXPECT_EQ(faulty.host.Flush(), Dev::kSuccess);
}

TEST(Faults, ALatencySpikeDelaysACommandAlsoWithTimingOff) {
  FaultPlan plan = Plan(TestSeed(4));
  plan.latency_spike = 1;
  plan.latency_spike_us = 3000;
  FaultyDevice faulty(plan);
  const int64_t start_ns = MonotonicNs();
  EXPECT_EQ(faulty.host.Append(0, Pattern(1, 0, 1)), Dev::kSuccess);
  EXPECT_GE(MonotonicNs() - start_ns, 3000 * kMicrosecondNs);
}

TEST(Faults, TheSameSeedGivesTheSameFaults) {
  FaultPlan plan = Plan(TestSeed(5));
  plan.write_error = 0.3;
  const auto run = [&] {
    FaultyDevice faulty(plan);
    std::vector<std::pair<Dev, uint64_t>> outcomes;
    for (int i = 0; i < 100; ++i) {
      if (i % 3 == 0) {
        EXPECT_EQ(faulty.host.Reset(0), Dev::kSuccess);
      }
      const Dev status = faulty.host.Append(0, Pattern(1, 0, 3));
      outcomes.emplace_back(status, faulty.host.WritePointer(0));
    }
    return outcomes;
  };
  EXPECT_EQ(run(), run());
}

TEST(PowerCut, StopsEverythingUntilPowerIsBack) {
  FaultyDevice faulty;
  ASSERT_EQ(faulty.host.Append(0, Pattern(1, 0, 1), true), Dev::kSuccess);
  faulty.device->CutPower();
  std::vector<std::byte> data(kTestBlock);
  EXPECT_EQ(faulty.host.Read(0, 0, data), Dev::kPowerLoss);
  EXPECT_EQ(faulty.host.Append(0, Pattern(1, 0, 1)), Dev::kPowerLoss);
  EXPECT_EQ(faulty.host.Reset(0), Dev::kPowerLoss);
  EXPECT_EQ(faulty.host.Flush(), Dev::kPowerLoss);
  faulty.device->RestorePower();
  EXPECT_EQ(faulty.host.Read(0, 0, 1), Pattern(1, 0, 1));
  EXPECT_EQ(faulty.host.State(0), ZoneState::kClosed);
}

TEST(PowerCut, IsOverWithTheNextOpen) {
  const MemoryImage image = NewMemoryImage();
  auto device = OpenForTest(image.path());
  device->CutPower();
  device.reset();
  device = OpenForTest(image.path());
  EXPECT_EQ(Host(*device).Append(0, Pattern(1, 0, 1)), Dev::kSuccess);
}

TEST(PowerCut, HappensInTheCommandAskedFor) {
  for (uint64_t n = 0; n < 4; ++n) {
    FaultyDevice faulty;
    faulty.device->CutPowerAfter(n);
    for (uint64_t i = 0; i < n; ++i) EXPECT_EQ(faulty.host.Append(0, Pattern(1, i, 1)), Dev::kSuccess);
    EXPECT_EQ(faulty.host.Append(0, Pattern(1, n, 1)), Dev::kPowerLoss);
    faulty.device->RestorePower();
    EXPECT_LE(faulty.host.WritePointer(0), n + 1);
  }
}

TEST(PowerCut, TearsTheWriteInFlightAtEveryBlock) {
  FaultyDevice faulty(Plan(TestSeed(6)));
  SCOPED_TRACE(faulty.device->fault_seed());
  std::map<uint64_t, int> survived;
  for (int i = 0; i < 400; ++i) {
    ASSERT_EQ(faulty.host.Reset(0), Dev::kSuccess);
    ASSERT_EQ(faulty.host.Append(0, Pattern(1, 0, 1), true), Dev::kSuccess);
    faulty.device->CutPowerAfter(0);
    EXPECT_EQ(faulty.host.Append(0, Pattern(1, 1, 5)), Dev::kPowerLoss);
    faulty.device->RestorePower();
    ++survived[faulty.host.WritePointer(0)];
  }
  EXPECT_EQ(survived.begin()->first, 1U);
  EXPECT_EQ(survived.rbegin()->first, 6U);
  EXPECT_EQ(survived.size(), 6U);
}

TEST(PowerCut, AResetInFlightHappenedOrDidNot) {
  FaultyDevice faulty(Plan(TestSeed(7)));
  SCOPED_TRACE(faulty.device->fault_seed());
  int happened = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(faulty.host.Reset(0), Dev::kSuccess);
    ASSERT_EQ(faulty.host.Append(0, Pattern(1, 0, 4), true), Dev::kSuccess);
    faulty.device->CutPowerAfter(0);
    EXPECT_EQ(faulty.host.Reset(0), Dev::kPowerLoss);
    faulty.device->RestorePower();
    if (faulty.host.State(0) == ZoneState::kEmpty) {
      ++happened;
      EXPECT_THAT(faulty.host.Read(0, 0, 4), Each(std::byte{0}));
    } else {
      EXPECT_EQ(faulty.host.Read(0, 0, 4), Pattern(1, 0, 4));
    }
  }
  EXPECT_GT(happened, 20);
  EXPECT_LT(happened, 80);
}

// A model of what a host may rely on, checked with random commands and power cuts. After each cut, every zone must hold
// all durable data, a prefix of each range of data between or behind it, and zeros elsewhere.
class PowerCutModel {
 public:
  PowerCutModel(uint64_t seed, bool fua_covers_zone)
      : random_(seed), fua_covers_zone_(fua_covers_zone), faulty_(Plan(seed), Geometry(fua_covers_zone)) {}

  void Run(int cuts) {
    for (int cut = 0; cut < cuts && !testing::Test::HasFailure(); ++cut) {
      SCOPED_TRACE(testing::Message() << "cut " << cut);
      faulty_.device->CutPowerAfter(random_.Below(20));
      while (Step() != Dev::kPowerLoss) {
        if (!random_.Chance(0.02)) continue;
        Reopen();  // not a power cut: durable data stays durable, and no other data becomes durable
        faulty_.device->CutPowerAfter(random_.Below(20));
      }
      if (random_.Chance(0.1)) {
        Reopen();
      } else {
        faulty_.device->RestorePower();
      }
      for (uint32_t zone = 0; zone < zones_.size(); ++zone) CheckAfterCut(zone);
    }
  }

  int holes() const { return holes_; }

 private:
  enum class Block : uint8_t { kVolatile, kDurable, kLost };
  struct Model {
    uint64_t tag = 0;           // of the data since the last reset
    std::vector<Block> blocks;  // that were written
    uint64_t in_flight = 0;     // how many of the last blocks a write with FUA was writing when power failed
    bool full = false;
    bool resetting = false;

    uint64_t written() const { return blocks.size(); }
    void MakeDurable(uint64_t from) {
      for (uint64_t i = from; i < blocks.size(); ++i) {
        if (blocks[i] == Block::kVolatile) blocks[i] = Block::kDurable;
      }
    }
  };

  static DeviceGeometry Geometry(bool fua_covers_zone) {
    DeviceGeometry geometry = SmallGeometry();
    geometry.fua_covers_zone = fua_covers_zone;
    return geometry;
  }

  Dev Step() {
    const auto zone = static_cast<uint32_t>(random_.Below(zones_.size()));
    Model& model = zones_[zone];
    const uint64_t choice = random_.Below(20);
    if (choice == 0) return Flush();
    if (choice == 1) return Finish(zone, model);
    const uint64_t capacity = faulty_.device->geometry().zone_capacity / kTestBlock;
    if (model.full || model.written() == capacity) return Reset(zone, model);
    const uint64_t blocks = random_.Between(1, std::min<uint64_t>(capacity - model.written(), 8));
    const bool fua = random_.Chance(0.3);
    const uint64_t at = model.written();
    auto data = Pattern(model.tag, at, blocks);
    const Dev status = random_.Chance(0.5) ? faulty_.host.Write(zone, at, std::move(data), fua)
                                           : faulty_.host.Append(zone, std::move(data), fua);
    if (status == Dev::kTooManyActiveZones) return Reset(zone, model);
    EXPECT_TRUE(status == Dev::kSuccess || status == Dev::kPowerLoss) << DeviceStatusName(status);
    model.blocks.resize(at + blocks, Block::kVolatile);
    if (status == Dev::kSuccess && fua) model.MakeDurable(fua_covers_zone_ ? 0 : at);
    model.in_flight = status == Dev::kPowerLoss && fua && !fua_covers_zone_ ? blocks : 0;
    return status;
  }

  Dev Flush() {
    const Dev status = faulty_.host.Flush();
    if (status == Dev::kSuccess) {
      for (Model& model : zones_) model.MakeDurable(0);
    }
    return status;
  }

  Dev Finish(uint32_t zone, Model& model) {
    const Dev status = faulty_.host.Finish(zone);
    if (status != Dev::kSuccess) return status;
    model.full = true;
    model.MakeDurable(0);
    return status;
  }

  // Resets another random zone if this one holds no resource that is short.
  Dev Reset(uint32_t zone, Model& model) {
    if (faulty_.host.State(zone) == ZoneState::kEmpty) {
      const auto other = static_cast<uint32_t>(random_.Below(zones_.size()));
      if (other != zone) return Reset(other, zones_[other]);
    }
    const Dev status = faulty_.host.Reset(zone);
    model.resetting = status == Dev::kPowerLoss;
    if (status == Dev::kSuccess) {
      model = Model();
      model.tag = ++last_tag_;
    }
    return status;
  }

  void CheckAfterCut(uint32_t zone) {
    Model& model = zones_[zone];
    SCOPED_TRACE(testing::Message() << "zone " << zone);
    const uint64_t capacity = faulty_.device->geometry().zone_capacity / kTestBlock;
    const ZoneState state = faulty_.host.State(zone);
    EXPECT_FALSE(IsOpen(state));
    const std::vector<std::byte> content = faulty_.host.Read(zone, 0, capacity);
    ASSERT_FALSE(content.empty());
    const bool was_reset = model.resetting && IsZero(content, 0, capacity);
    if (was_reset) {
      model.blocks.clear();
      model.tag = ++last_tag_;
    }
    ASSERT_NO_FATAL_FAILURE(TakeSurvivors(model, content));
    ASSERT_TRUE(IsZero(content, model.written(), capacity));
    if (model.full && !was_reset) {
      EXPECT_EQ(state, ZoneState::kFull);
    }
    if (state != ZoneState::kFull) {
      EXPECT_EQ(faulty_.host.WritePointer(zone), model.written());
    }
    model.full = state == ZoneState::kFull;
    model.resetting = false;
    model.in_flight = 0;
  }

  // Forgets the blocks that were lost behind the last one that survived.
  void TakeSurvivors(Model& model, const std::vector<std::byte>& content) {
    bool lost = false;  // since the last durable block
    uint64_t survived = 0;
    for (uint64_t i = 0; i < model.written(); ++i) {
      Block& block = model.blocks[i];
      const bool there = block != Block::kLost && BlockIs(content, i, Pattern(model.tag, i, 1));
      if (!there) {
        ASSERT_TRUE(IsZero(content, i, i + 1)) << "block " << i;
        ASSERT_NE(block, Block::kDurable) << "block " << i;
      } else if (block == Block::kDurable || i + model.in_flight == model.written()) {
        lost = false;
      } else {
        ASSERT_FALSE(lost) << "block " << i << " survived, and one before it did not";
      }
      lost |= !there;
      if (block == Block::kVolatile && !there) block = Block::kLost;
      if (there) block = Block::kDurable;
      // A hole that an earlier cut left is part of the zone until its reset.
      if (block != Block::kLost || WasBelowThePointer(model, i)) survived = i + 1;
    }
    for (uint64_t i = 0; i < survived; ++i) holes_ += model.blocks[i] == Block::kLost ? 1 : 0;
    model.blocks.resize(survived);
  }

  // A block that an earlier cut took has durable blocks behind it.
  static bool WasBelowThePointer(const Model& model, uint64_t i) {
    return std::find(model.blocks.begin() + static_cast<ptrdiff_t>(i), model.blocks.end(), Block::kDurable) !=
           model.blocks.end();
  }

  static bool BlockIs(const std::vector<std::byte>& content, uint64_t block, const std::vector<std::byte>& expected) {
    return std::memcmp(content.data() + block * kTestBlock, expected.data(), kTestBlock) == 0;
  }
  static bool IsZero(const std::vector<std::byte>& content, uint64_t begin, uint64_t end) {
    return std::all_of(content.begin() + static_cast<ptrdiff_t>(begin * kTestBlock),
                       content.begin() + static_cast<ptrdiff_t>(end * kTestBlock),
                       [](std::byte b) { return b == std::byte{0}; });
  }

  void Reopen() {
    faulty_.device.reset();
    faulty_.device = OpenForTest(faulty_.image.path(), OpenMode::kReadWrite, FaultyDevice::With(Plan(random_.Next())));
    faulty_.host = Host(*faulty_.device);
  }

  Random random_;
  const bool fua_covers_zone_;
  FaultyDevice faulty_;
  std::vector<Model> zones_{faulty_.device->geometry().zone_count};
  uint64_t last_tag_ = 0;
  int holes_ = 0;
};

TEST(PowerCut, KeepsAPrefixOfEveryZoneAndAllThatWasDurable) {
  const uint64_t seed = TestSeed(8);
  SCOPED_TRACE(testing::Message() << "ISOZONE_TEST_SEED=" << seed);
  PowerCutModel model(seed, /*fua_covers_zone=*/true);
  model.Run(1000);
  EXPECT_EQ(model.holes(), 0);
}

TEST(PowerCut, KeepsWhatForceUnitAccessWroteAndNotWhatWasBeforeIt) {
  const uint64_t seed = TestSeed(8);
  SCOPED_TRACE(testing::Message() << "ISOZONE_TEST_SEED=" << seed);
  PowerCutModel model(seed, /*fua_covers_zone=*/false);
  model.Run(1000);
  EXPECT_GT(model.holes(), 100);
}

TEST(PowerCut, AWriteWithForceUnitAccessLeavesAHoleBeforeIt) {
  FaultyDevice faulty(Plan(TestSeed(9)));
  SCOPED_TRACE(faulty.device->fault_seed());
  int holes = 0;
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(faulty.host.Reset(0), Dev::kSuccess);
    ASSERT_EQ(faulty.host.Write(0, 0, Pattern(1, 0, 3)), Dev::kSuccess);
    ASSERT_EQ(faulty.host.Write(0, 3, Pattern(1, 3, 2), true), Dev::kSuccess);
    faulty.device->CutPower();
    faulty.device->RestorePower();
    EXPECT_EQ(faulty.host.WritePointer(0), 5U);
    EXPECT_EQ(faulty.host.Read(0, 3, 2), Pattern(1, 3, 2));
    if (faulty.host.Read(0, 2, 1) == std::vector<std::byte>(kTestBlock)) ++holes;
    // A flush would make all of them durable.
    ASSERT_EQ(faulty.host.Write(0, 5, Pattern(1, 5, 1)), Dev::kSuccess);
    ASSERT_EQ(faulty.host.Flush(), Dev::kSuccess);
    faulty.device->CutPower();
    faulty.device->RestorePower();
    EXPECT_EQ(faulty.host.Read(0, 5, 1), Pattern(1, 5, 1));
  }
  EXPECT_GT(holes, 5);
  EXPECT_LT(holes, 40);
}

}  // namespace
}  // namespace isozone
