// Over how many zones a file is striped, as a device fills up.
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "device/izg/zone_groups.h"
#include "store/zone/allocator/zone_allocator.h"

namespace isozone {
namespace {

constexpr uint64_t kBlock = 4 * kKiB;
constexpr uint64_t kCapacity = 16 * kBlock;
constexpr uint32_t kZones = 200;
constexpr uint32_t kGroups = 20;
constexpr uint32_t kWidth = 8;
const DataClass kUpper(Lifetime::kMedium, 1);
const DataClass kLast(Lifetime::kExtreme, 4);

class StripeWidthTest : public testing::Test {
 protected:
  StripeWidthTest() {
    std::vector<ZoneDescriptor> report;
    ZoneGroups groups;
    for (uint32_t i = 0; i < kZones; ++i) {
      report.push_back({ZoneId(i), ZoneState::kEmpty, kCapacity, 0});
      groups.group_of_zone.push_back(static_cast<uint16_t>(i % kGroups));
    }
    groups.confidence_percent.assign(kZones, 100);
    groups.channel_of_group.assign(kGroups, 0);
    AllocatorOptions options;
    options.geometry.block_size = kBlock;
    options.geometry.zone_count = kZones;
    options.geometry.zone_size = kCapacity;
    options.geometry.zone_capacity = kCapacity;
    options.groups = std::make_shared<GroupIndex>(kZones, &groups);
    allocator_ = std::make_unique<ZoneAllocator>(report, options, std::move(*MakePlacementPolicy("isozone")));
  }

  static ZoneRequest RequestFor(const DataClass& data) {
    ZoneRequest request;
    request.lifetime = data.lifetime;
    request.level = data.level;
    request.min_room = kBlock;
    request.width = kWidth;
    return request;
  }
  // Fills so many zones.
  void Fill(const DataClass& data, uint32_t zones) {
    for (uint32_t i = 0; i < zones; ++i) {
      const ZoneGrant zone = Take(RequestFor(data));
      ASSERT_TRUE(zone.state->BeginWrite());
      allocator_->EndWrite(zone, kCapacity, kCapacity);
      allocator_->Release(zone);
    }
  }
  ZoneGrant Take(const ZoneRequest& request) {
    ZoneAllocator::Inquiry inquiry(*allocator_, request);
    const ZoneAllocator::Answer answer = allocator_->Ask(inquiry, /*now_ns=*/0);
    EXPECT_EQ(answer.action, ZoneAllocator::Answer::Action::kGranted);
    return answer.grant;
  }
  // Returns how many zones a file gets that asks for as many as it may have.
  uint32_t WidthOf(const DataClass& data) {
    ZoneRequest request = RequestFor(data);
    std::vector<ZoneGrant> zones = {Take(request)};
    std::vector<uint32_t> taken;
    for (;;) {
      taken.push_back(allocator_->ledger().table.groups().of(zones.back().zone));
      request.taken_groups = taken;
      const auto zone = taken.size() < kWidth ? allocator_->Widen(request) : std::nullopt;
      if (!zone) break;
      zones.push_back(*zone);
    }
    for (const ZoneGrant& zone : zones) allocator_->Release(zone);
    return static_cast<uint32_t>(zones.size());
  }

  std::unique_ptr<ZoneAllocator> allocator_;
};

TEST_F(StripeWidthTest, AFileHasItsWidthWhereThereIsAsMuchRoomAsDataOfItsClass) {
  EXPECT_EQ(WidthOf(kLast), kWidth);
  Fill(kLast, 90);
  EXPECT_EQ(WidthOf(kLast), kWidth);
}

TEST_F(StripeWidthTest, LargeClassesBecomeNarrowBeforeSmallOnes) {
  Fill(kUpper, 5);
  Fill(kLast, 135);
  EXPECT_EQ(WidthOf(kLast), 4U) << "1 + 8 x some 55 zones / 135";
  EXPECT_EQ(WidthOf(kUpper), kWidth);
  Fill(kLast, 30);
  EXPECT_EQ(WidthOf(kLast), 2U);
  EXPECT_EQ(WidthOf(kUpper), kWidth);
}

TEST_F(StripeWidthTest, ZonesAreLeftForThoseWhoWrite) {
  Fill(kLast, 190);
  EXPECT_EQ(WidthOf(kUpper), 4U) << "of 10 empty ones 2 are reserved, and each zone that is taken needs a next one";
}

}  // namespace
}  // namespace isozone
