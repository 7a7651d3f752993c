// Where files of cohorts go, and files whose size is known beforehand: placement by the policy on a table, and by the
// allocator with it.
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "store/zone/allocator/zone_allocator.h"

namespace isozone {
namespace {

using Action = Placement::Action;

constexpr uint64_t kCapacity = 1000;
constexpr Cohort kSweep{7, false};
constexpr Cohort kOwn{8, true};

std::vector<ZoneDescriptor> Report(uint32_t zones) {
  std::vector<ZoneDescriptor> report;
  for (uint32_t i = 0; i < zones; ++i) report.push_back({ZoneId(i), ZoneState::kEmpty, kCapacity, 0});
  return report;
}

class CohortPlacementTest : public testing::Test {
 protected:
  // Begins zone `zone` with `bytes` of data of the class `data` and of `cohort`.
  void Begin(uint32_t zone, uint64_t bytes, DataClass data = {}, Cohort cohort = {}) {
    table_.Edit(ZoneId(zone))->Lease(ZoneUse::kData, data, cohort);
    table_.Edit(ZoneId(zone))->AddLive(bytes);
    table_.Edit(ZoneId(zone))->Advance(bytes);
    table_.Edit(ZoneId(zone))->EndLease();
  }
  // Returns the zone that is chosen, whatever must be done before it can be taken.
  std::optional<uint32_t> Place(const PlacementQuery& query) const {
    const auto placement = policy_->PlaceData(table_, query);
    return placement.zone ? std::optional(placement.zone->value()) : std::nullopt;
  }
  static PlacementQuery Query(Cohort cohort, uint64_t expected_size = 0, bool can_open = true) {
    PlacementQuery query;
    query.min_room = 1;
    query.cohort = cohort;
    query.expected_size = expected_size;
    query.token_available = query.empty_available = can_open;
    return query;
  }

  ZoneTable table_{Report(8)};
  std::unique_ptr<PlacementPolicy> policy_ = std::move(*MakePlacementPolicy("isozone"));
};

TEST_F(CohortPlacementTest, AFileGoesWhereItFitsWhole) {
  Begin(0, 900);
  Begin(1, 500);
  Begin(2, 700);
  EXPECT_EQ(Place(Query({})), 0U);
  EXPECT_EQ(Place(Query({}, 100)), 0U);
  EXPECT_EQ(Place(Query({}, 101)), 2U);
  EXPECT_EQ(Place(Query({}, 301)), 1U);
  // A file that fits nowhere uses up what is left of zones, as files of unknown size do.
  EXPECT_EQ(Place(Query({}, 501)), 0U);
  EXPECT_EQ(Place(Query({}, 501, /*can_open=*/false)), 0U);
}

TEST_F(CohortPlacementTest, ACohortGoesOnInItsZonesWhateverTheClass) {
  Begin(0, 900, {Lifetime::kLong, 3});
  Begin(1, 500, {Lifetime::kShort, 1}, kSweep);
  PlacementQuery query = Query(kSweep);
  query.lifetime = Lifetime::kLong;
  query.level = 3;
  EXPECT_EQ(Place(query), 1U);
  query.cohort = {};
  EXPECT_EQ(Place(query), 0U);
  query.cohort = {kSweep.id + 1, false};
  EXPECT_EQ(Place(query), 0U) << "a cohort without zones goes where its class does";
  // Other files may go on in the zones of a cohort that has none of its own.
  query = Query({});
  query.lifetime = Lifetime::kShort;
  query.level = 1;
  EXPECT_EQ(Place(query), 1U);
}

TEST_F(CohortPlacementTest, OwnZonesTakeNobodyElseAsLongAsThereIsAnother) {
  Begin(0, 500, {}, kOwn);
  EXPECT_EQ(Place(Query(kOwn)), 0U);
  EXPECT_EQ(Place(Query({})), 1U) << "an empty one";
  Begin(3, 500, {Lifetime::kExtreme, 5});
  EXPECT_EQ(Place(Query({}, 0, /*can_open=*/false)), 3U) << "rather another class";
  EXPECT_EQ(Place(Query(kSweep, 0, /*can_open=*/false)), 3U);
  PlacementQuery large = Query({}, 0, /*can_open=*/false);
  large.min_room = 501;
  EXPECT_EQ(Place(large), std::nullopt);
  table_.Edit(ZoneId(3))->Lease(ZoneUse::kData, {});
  EXPECT_EQ(Place(Query({}, 0, /*can_open=*/false)), 0U) << "rather than nothing";
}

TEST_F(CohortPlacementTest, ACohortWithOwnZonesBeginsNewOnes) {
  Begin(0, 500);
  EXPECT_EQ(Place(Query(kOwn)), 1U);
  PlacementQuery more = Query(kOwn);
  more.widen = true;
  more.empty_available = false;
  EXPECT_EQ(policy_->PlaceData(table_, more).action, Action::kNeedSpace) << "it goes on with the zones it has";
  EXPECT_EQ(Place(Query(kOwn, 0, /*can_open=*/false)), 0U) << "rather than nothing";
}

TEST_F(CohortPlacementTest, NobodyGoesOnInASealedZone) {
  Begin(0, 500, {}, kSweep);
  table_.Edit(ZoneId(0))->sealed = true;
  EXPECT_EQ(Place(Query(kSweep)), 1U);
  EXPECT_EQ(Place(Query({})), 1U);
  EXPECT_EQ(Place(Query(kSweep, 0, /*can_open=*/false)), 0U) << "rather than nothing";
}

TEST_F(CohortPlacementTest, WhatIsDeadIsNobodys) {
  Begin(0, 200, {}, kOwn);
  table_.Edit(ZoneId(0))->sealed = true;
  table_.Edit(ZoneId(0))->RemoveLive(200);
  EXPECT_EQ(Place(Query({})), 0U);
  Begin(0, 200);
  EXPECT_EQ(table_.at(ZoneId(0)).cohort, Cohort());
  EXPECT_FALSE(table_.at(ZoneId(0)).sealed);
}

class CohortAllocatorTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr uint64_t kBlock = 4 * kKiB;
  CohortAllocatorTest() {
    AllocatorOptions options;
    options.geometry.block_size = kBlock;
    options.geometry.zone_count = 16;
    options.geometry.zone_size = options.geometry.zone_capacity = 64 * kBlock;
    options.geometry.max_active_zones = options.geometry.max_open_zones = 12;
    std::vector<ZoneDescriptor> report;
    for (uint32_t i = 0; i < 16; ++i) report.push_back({ZoneId(i), ZoneState::kEmpty, 64 * kBlock, 0});
    allocator_ = std::make_unique<ZoneAllocator>(report, options, std::move(*MakePlacementPolicy(GetParam())));
  }
  // Writes `blocks` for `cohort` to the zone that is granted.
  ZoneId Write(Cohort cohort, uint64_t blocks, DataClass data = {}) {
    ZoneRequest request;
    request.lifetime = data.lifetime;
    request.level = data.level;
    request.min_room = kBlock;
    request.cohort = cohort;
    request.expected_size = blocks * kBlock;
    ZoneAllocator::Inquiry inquiry(*allocator_, request);
    const auto answer = allocator_->Ask(inquiry, 1);
    EXPECT_EQ(answer.action, ZoneAllocator::Answer::Action::kGranted);
    EXPECT_TRUE(answer.grant.state->BeginWrite());
    allocator_->EndWrite(answer.grant, blocks * kBlock, /*live=*/blocks * kBlock);
    allocator_->Release(answer.grant);
    return answer.grant.zone;
  }
  std::unique_ptr<ZoneAllocator> allocator_;
};
INSTANTIATE_TEST_SUITE_P(Policies, CohortAllocatorTest, testing::Values("isozone", "zenfs", "lifetime", "level"));

TEST_P(CohortAllocatorTest, OnlyIsozoneHeedsCohorts) {
  const bool heeds = GetParam() == std::string_view("isozone");
  const ZoneId ordinary = Write({}, 10);
  const ZoneId own = Write(kOwn, 10);
  EXPECT_EQ(own != ordinary, heeds);
  EXPECT_EQ(Write(kOwn, 10), own);
  EXPECT_EQ(Write({}, 10), ordinary);
  EXPECT_EQ(allocator_->ledger().stats.mixed_cohorts, 0U);
  const ZoneRoom room = allocator_->RoomOf({}, kOwn.id);
  EXPECT_EQ(room.zones, 1U);
  EXPECT_EQ(room.bytes, (heeds ? 44 : 24) * kBlock);
  EXPECT_EQ(room.largest, room.bytes);
  EXPECT_EQ(allocator_->RoomOf({}, 0).bytes, (heeds ? 44 : 24) * kBlock);
  allocator_->Seal(kOwn.id);
  EXPECT_EQ(allocator_->RoomOf({}, kOwn.id).zones, heeds ? 0U : 1U);
  EXPECT_EQ(Write(kOwn, 10) != own, heeds);
}

TEST_P(CohortAllocatorTest, RoomIsOfOneClass) {
  Write({}, 10, {Lifetime::kLong, 2});
  Write({}, 20, {Lifetime::kLong, 3});
  EXPECT_EQ(allocator_->RoomOf({Lifetime::kShort, 1}, 0), ZoneRoom());
  if (GetParam() != std::string_view("isozone")) return;  // other policies use one zone, or other rules
  EXPECT_EQ(allocator_->RoomOf({Lifetime::kLong, 2}, 0), (ZoneRoom{54 * kBlock, 54 * kBlock, 1}));
  EXPECT_EQ(allocator_->RoomOf({Lifetime::kLong, 3}, 0), (ZoneRoom{44 * kBlock, 44 * kBlock, 1}));
}

// There are so few active zones that data can have three.
TEST(CohortUpkeepTest, ASealedZoneIsFinishedForTheNextCohort) {
  constexpr uint64_t kBlock = 4 * kKiB;
  AllocatorOptions options;
  options.geometry.block_size = kBlock;
  options.geometry.zone_count = 40;
  options.geometry.zone_size = options.geometry.zone_capacity = 64 * kBlock;
  options.geometry.max_active_zones = options.geometry.max_open_zones = 10;
  std::vector<ZoneDescriptor> report;
  for (uint32_t i = 0; i < 40; ++i) report.push_back({ZoneId(i), ZoneState::kEmpty, 64 * kBlock, 0});
  ZoneAllocator allocator(report, options, std::move(*MakePlacementPolicy("isozone")));
  allocator.ledger().started = true;
  const auto write = [&](uint64_t cohort) {
    ZoneRequest request;
    request.min_room = kBlock;
    request.cohort = {cohort, true};
    ZoneAllocator::Inquiry inquiry(allocator, request);
    const auto answer = allocator.Ask(inquiry, 1);
    EXPECT_EQ(answer.action, ZoneAllocator::Answer::Action::kGranted);
    EXPECT_TRUE(answer.grant.state->BeginWrite());
    allocator.EndWrite(answer.grant, kBlock, /*live=*/kBlock);
    allocator.Release(answer.grant);
    return answer.grant.zone;
  };
  const ZoneId sealed = write(1);
  // The zones of two other cohorts become fuller than this one.
  const ZoneId second = write(2);
  const ZoneId third = write(3);
  EXPECT_EQ(write(2), second);
  EXPECT_EQ(write(3), third);
  allocator.Seal(1);
  EXPECT_TRUE(allocator.NextWork(1).commands.empty()) << "as long as no zone is wanted";
  write(4);
  EXPECT_EQ(allocator.ledger().stats.mixed_cohorts, 1U);
  const ZoneAllocator::Work work = allocator.NextWork(1);
  ASSERT_EQ(work.commands.size(), 1U);
  EXPECT_EQ(work.commands[0].op, DeviceOp::kFinish);
  ASSERT_EQ(work.commands[0].zones, std::vector<ZoneId>{sealed});
  allocator.upkeep().NoteFinish(sealed);
  const ZoneId fourth = write(4);
  EXPECT_TRUE(fourth != sealed && fourth != second && fourth != third);
  EXPECT_EQ(allocator.ledger().stats.mixed_cohorts, 1U);
}

}  // namespace
}  // namespace isozone
