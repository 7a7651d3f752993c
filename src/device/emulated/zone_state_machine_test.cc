#include "device/emulated/zone_state_machine.h"

#include <ostream>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

using enum ZoneState;
using Dev = DeviceStatus;

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kCapacity = 3 * kBlock;  // of a zone of four blocks

DeviceGeometry Geometry(uint32_t max_open = 0, uint32_t max_active = 0) {
  return {.block_size = kBlock,
          .zone_count = 4,
          .zone_size = 4 * kBlock,
          .zone_capacity = kCapacity,
          .max_open_zones = max_open,
          .max_active_zones = max_active,
          .optimal_write = kBlock};
}

// A zone table in memory, and a state machine over it.
class Zones {
 public:
  explicit Zones(const DeviceGeometry& geometry = Geometry(), ZoneContent first = {})
      : table_(Table(geometry, first)), machine_(geometry, table_) {}

  ZoneStateMachine* operator->() { return &machine_; }
  ZoneState State(uint32_t zone) const { return LoadContent(table_[zone]).state; }
  uint64_t Written(uint32_t zone) const { return LoadContent(table_[zone]).written; }
  Dev Write(uint32_t zone, uint64_t offset, uint64_t length) {
    const Dev status = machine_.BeginWrite(ZoneId(zone), offset, length);
    if (status == Dev::kSuccess) machine_.EndWrite(ZoneId(zone), length);
    return status;
  }
  Dev Append(uint32_t zone, uint64_t length) {
    const Dev status = machine_.BeginAppend(ZoneId(zone), length);
    if (status == Dev::kSuccess) machine_.EndWrite(ZoneId(zone), length);
    return status;
  }
  // The open and active zones, counted in the table.
  std::pair<uint32_t, uint32_t> Counted() const {
    uint32_t open = 0;
    uint32_t active = 0;
    for (const ZoneEntry& entry : table_) {
      open += IsOpen(LoadContent(entry).state) ? 1 : 0;
      active += IsActive(LoadContent(entry).state) ? 1 : 0;
    }
    return {open, active};
  }

 private:
  static std::vector<ZoneEntry> Table(const DeviceGeometry& geometry, ZoneContent first) {
    std::vector<ZoneEntry> table(geometry.zone_count);
    for (ZoneEntry& entry : table) StoreContent(entry, {kEmpty, 0});
    StoreContent(table[0], first);
    return table;
  }

  std::vector<ZoneEntry> table_;
  ZoneStateMachine machine_;
};

enum class Command { kWrite, kWriteToEnd, kAppend, kOpen, kClose, kFinish, kReset };

Dev Execute(Zones& zones, Command command) {
  switch (command) {
    case Command::kWrite:
      return zones.Write(0, zones.Written(0), kBlock);
    case Command::kWriteToEnd:
      return zones.Write(0, zones.Written(0), kCapacity - zones.Written(0));
    case Command::kAppend:
      return zones.Append(0, kBlock);
    case Command::kOpen:
      return zones->Open(ZoneId(0));
    case Command::kClose:
      return zones->Close(ZoneId(0));
    case Command::kFinish:
      return zones->Finish(ZoneId(0));
    case Command::kReset:
      return zones->Reset(ZoneId(0));
  }
  return Dev::kInternalError;
}

struct Transition {
  ZoneState before;
  Command command;
  Dev status;
  ZoneState after;
};

std::ostream& operator<<(std::ostream& out, const Transition& t) {
  return out << ZoneStateName(t.before) << ", command " << static_cast<int>(t.command);
}

class ZoneTransition : public testing::TestWithParam<Transition> {};

TEST_P(ZoneTransition, IsAsSpecified) {
  const Transition& t = GetParam();
  const uint64_t written = t.before == kEmpty ? 0 : t.before == kFull ? kCapacity : kBlock;
  Zones zones(Geometry(), {t.before, written});
  EXPECT_EQ(DeviceStatusName(Execute(zones, t.command)), DeviceStatusName(t.status));
  EXPECT_EQ(ZoneStateName(zones.State(0)), ZoneStateName(t.after));
  EXPECT_EQ(zones.Counted(), std::pair(zones->open_zones(), zones->active_zones()));
  if (t.status != Dev::kSuccess) {
    EXPECT_EQ(zones.Written(0), written);
  }
}

constexpr Dev kRefused = Dev::kInvalidZoneStateTransition;
INSTANTIATE_TEST_SUITE_P(Every, ZoneTransition,
                         testing::Values(Transition{kEmpty, Command::kWrite, Dev::kSuccess, kImplicitlyOpen},
                                         Transition{kEmpty, Command::kWriteToEnd, Dev::kSuccess, kFull},
                                         Transition{kEmpty, Command::kAppend, Dev::kSuccess, kImplicitlyOpen},
                                         Transition{kEmpty, Command::kOpen, Dev::kSuccess, kExplicitlyOpen},
                                         Transition{kEmpty, Command::kClose, kRefused, kEmpty},
                                         Transition{kEmpty, Command::kFinish, Dev::kSuccess, kFull},
                                         Transition{kEmpty, Command::kReset, Dev::kSuccess, kEmpty},
                                         Transition{kImplicitlyOpen, Command::kWrite, Dev::kSuccess, kImplicitlyOpen},
                                         Transition{kImplicitlyOpen, Command::kWriteToEnd, Dev::kSuccess, kFull},
                                         Transition{kImplicitlyOpen, Command::kAppend, Dev::kSuccess, kImplicitlyOpen},
                                         Transition{kImplicitlyOpen, Command::kOpen, Dev::kSuccess, kExplicitlyOpen},
                                         Transition{kImplicitlyOpen, Command::kClose, Dev::kSuccess, kClosed},
                                         Transition{kImplicitlyOpen, Command::kFinish, Dev::kSuccess, kFull},
                                         Transition{kImplicitlyOpen, Command::kReset, Dev::kSuccess, kEmpty},
                                         Transition{kExplicitlyOpen, Command::kWrite, Dev::kSuccess, kExplicitlyOpen},
                                         Transition{kExplicitlyOpen, Command::kWriteToEnd, Dev::kSuccess, kFull},
                                         Transition{kExplicitlyOpen, Command::kAppend, Dev::kSuccess, kExplicitlyOpen},
                                         Transition{kExplicitlyOpen, Command::kOpen, Dev::kSuccess, kExplicitlyOpen},
                                         Transition{kExplicitlyOpen, Command::kClose, Dev::kSuccess, kClosed},
                                         Transition{kExplicitlyOpen, Command::kFinish, Dev::kSuccess, kFull},
                                         Transition{kExplicitlyOpen, Command::kReset, Dev::kSuccess, kEmpty},
                                         Transition{kClosed, Command::kWrite, Dev::kSuccess, kImplicitlyOpen},
                                         Transition{kClosed, Command::kWriteToEnd, Dev::kSuccess, kFull},
                                         Transition{kClosed, Command::kAppend, Dev::kSuccess, kImplicitlyOpen},
                                         Transition{kClosed, Command::kOpen, Dev::kSuccess, kExplicitlyOpen},
                                         Transition{kClosed, Command::kClose, Dev::kSuccess, kClosed},
                                         Transition{kClosed, Command::kFinish, Dev::kSuccess, kFull},
                                         Transition{kClosed, Command::kReset, Dev::kSuccess, kEmpty},
                                         Transition{kFull, Command::kWrite, Dev::kZoneIsFull, kFull},
                                         Transition{kFull, Command::kAppend, Dev::kZoneIsFull, kFull},
                                         Transition{kFull, Command::kOpen, kRefused, kFull},
                                         Transition{kFull, Command::kClose, kRefused, kFull},
                                         Transition{kFull, Command::kFinish, Dev::kSuccess, kFull},
                                         Transition{kFull, Command::kReset, Dev::kSuccess, kEmpty},
                                         Transition{kReadOnly, Command::kWrite, Dev::kZoneIsReadOnly, kReadOnly},
                                         Transition{kReadOnly, Command::kAppend, Dev::kZoneIsReadOnly, kReadOnly},
                                         Transition{kReadOnly, Command::kOpen, kRefused, kReadOnly},
                                         Transition{kReadOnly, Command::kClose, kRefused, kReadOnly},
                                         Transition{kReadOnly, Command::kFinish, kRefused, kReadOnly},
                                         Transition{kReadOnly, Command::kReset, kRefused, kReadOnly},
                                         Transition{kOffline, Command::kWrite, Dev::kZoneIsOffline, kOffline},
                                         Transition{kOffline, Command::kAppend, Dev::kZoneIsOffline, kOffline},
                                         Transition{kOffline, Command::kOpen, kRefused, kOffline},
                                         Transition{kOffline, Command::kClose, kRefused, kOffline},
                                         Transition{kOffline, Command::kFinish, kRefused, kOffline},
                                         Transition{kOffline, Command::kReset, kRefused, kOffline}));

TEST(ZoneStateMachine, RefusesAWriteBesideTheWritePointer) {
  Zones zones;
  EXPECT_EQ(zones.Write(0, kBlock, kBlock), Dev::kZoneInvalidWrite);
  EXPECT_EQ(zones.State(0), kEmpty);
  ASSERT_EQ(zones.Write(0, 0, kBlock), Dev::kSuccess);
  EXPECT_EQ(zones.Write(0, 0, kBlock), Dev::kZoneInvalidWrite);
  EXPECT_EQ(zones.Write(0, kBlock, kBlock), Dev::kSuccess);
}

TEST(ZoneStateMachine, EndsAtTheCapacityNotTheSize) {
  Zones zones;
  EXPECT_EQ(zones.Write(0, 0, kCapacity + kBlock), Dev::kZoneBoundaryError);
  EXPECT_EQ(zones.Append(0, kCapacity + kBlock), Dev::kZoneBoundaryError);
  EXPECT_EQ(zones.State(0), kEmpty);
  EXPECT_EQ(zones.Append(0, kCapacity), Dev::kSuccess);
  EXPECT_EQ(zones.State(0), kFull);
}

TEST(ZoneStateMachine, AZoneFinishedEarlyKeepsWhatWasWritten) {
  Zones zones;
  ASSERT_EQ(zones.Append(0, kBlock), Dev::kSuccess);
  ASSERT_EQ(zones->Finish(ZoneId(0)), Dev::kSuccess);
  EXPECT_EQ(zones.Written(0), kBlock);
}

TEST(ZoneStateMachine, AtTheOpenLimitClosesTheZoneThatWasImplicitlyOpenedFirst) {
  Zones zones(Geometry(2, 4));
  ASSERT_EQ(zones.Append(2, kBlock), Dev::kSuccess);
  ASSERT_EQ(zones.Append(1, kBlock), Dev::kSuccess);
  EXPECT_EQ(zones.Append(3, kBlock), Dev::kSuccess);
  EXPECT_EQ(zones.State(2), kClosed);
  EXPECT_EQ(zones.State(1), kImplicitlyOpen);
  EXPECT_EQ(zones->open_zones(), 2U);
  EXPECT_EQ(zones->active_zones(), 3U);
  EXPECT_EQ(zones->Open(ZoneId(0)), Dev::kSuccess);
  EXPECT_EQ(zones.State(1), kClosed);
}

TEST(ZoneStateMachine, NeverClosesAnExplicitlyOpenZone) {
  Zones zones(Geometry(2, 4));
  ASSERT_EQ(zones->Open(ZoneId(0)), Dev::kSuccess);
  ASSERT_EQ(zones->Open(ZoneId(1)), Dev::kSuccess);
  EXPECT_EQ(zones.Append(2, kBlock), Dev::kTooManyOpenZones);
  EXPECT_EQ(zones->Open(ZoneId(2)), Dev::kTooManyOpenZones);
  EXPECT_EQ(zones.State(2), kEmpty);
  ASSERT_EQ(zones->Close(ZoneId(0)), Dev::kSuccess);
  EXPECT_EQ(zones.Append(2, kBlock), Dev::kSuccess);
}

TEST(ZoneStateMachine, HoldsTheActiveLimit) {
  Zones zones(Geometry(1, 2));
  ASSERT_EQ(zones.Append(0, kBlock), Dev::kSuccess);
  ASSERT_EQ(zones.Append(1, kBlock), Dev::kSuccess);
  EXPECT_EQ(zones.Append(2, kBlock), Dev::kTooManyActiveZones);
  EXPECT_EQ(zones->Open(ZoneId(2)), Dev::kTooManyActiveZones);
  EXPECT_EQ(zones.Append(0, kBlock), Dev::kSuccess) << "a closed zone is active already";
  EXPECT_EQ(zones->Finish(ZoneId(2)), Dev::kSuccess) << "finishing an empty zone takes no resource";
  ASSERT_EQ(zones->Finish(ZoneId(1)), Dev::kSuccess);
  EXPECT_EQ(zones.Append(3, kBlock), Dev::kSuccess);
}

TEST(ZoneStateMachine, AFailingMediumReleasesTheResources) {
  Zones zones(Geometry(1, 1));
  ASSERT_EQ(zones.Append(0, kBlock), Dev::kSuccess);
  zones->Force(ZoneId(0), kReadOnly);
  EXPECT_EQ(zones->active_zones(), 0U);
  EXPECT_EQ(zones.Written(0), kBlock);
  ASSERT_EQ(zones.Append(1, kBlock), Dev::kSuccess);
  zones->Force(ZoneId(1), kOffline);
  EXPECT_EQ(zones.Append(2, kBlock), Dev::kSuccess);
}

TEST(ZoneStateMachine, CountsWhatItFinds) {
  Zones zones(Geometry(1, 2), {kImplicitlyOpen, kBlock});
  EXPECT_EQ(zones->open_zones(), 1U);
  EXPECT_EQ(zones.Append(1, kBlock), Dev::kSuccess);
  EXPECT_EQ(zones.State(0), kClosed);
}

TEST(ZoneStateMachine, APowerCutClosesOpenZonesAndEmptiesThoseWithNothingLeft) {
  Zones zones;
  ASSERT_EQ(zones.Append(0, 2 * kBlock), Dev::kSuccess);
  ASSERT_EQ(zones.Append(1, kBlock), Dev::kSuccess);
  ASSERT_EQ(zones->Open(ZoneId(2)), Dev::kSuccess);
  ASSERT_EQ(zones.Append(3, kCapacity), Dev::kSuccess);
  zones->LosePower(ZoneId(0), kBlock);
  zones->LosePower(ZoneId(1), 0);
  zones->LosePower(ZoneId(2), 0);
  zones->LosePower(ZoneId(3), kCapacity);
  EXPECT_EQ(zones.State(0), kClosed);
  EXPECT_EQ(zones.Written(0), kBlock);
  EXPECT_EQ(zones.State(1), kEmpty);
  EXPECT_EQ(zones.State(2), kEmpty);
  EXPECT_EQ(zones.State(3), kFull);
}

TEST(ZoneStateMachine, AFullZoneThatLostDataStaysFullWhereNoActiveResourceIsLeft) {
  Zones zones(Geometry(2, 2));
  ASSERT_EQ(zones.Append(0, kCapacity), Dev::kSuccess);
  ASSERT_EQ(zones.Append(1, kCapacity), Dev::kSuccess);
  ASSERT_EQ(zones.Append(2, kBlock), Dev::kSuccess);
  zones->LosePower(ZoneId(0), kBlock);
  EXPECT_EQ(zones.State(0), kClosed);
  zones->LosePower(ZoneId(1), kBlock);
  EXPECT_EQ(zones.State(1), kFull);
  EXPECT_EQ(zones.Written(1), kBlock);
  EXPECT_EQ(zones->active_zones(), 2U);
}

}  // namespace
}  // namespace isozone
