#include "store/space/space_claim.h"

#include <array>
#include <map>
#include <thread>

#include "base/random.h"
#include "store/space/zone_pool_test_util.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

// Claims on zones of a pool that resets what is dead.
class SpaceClaimTest : public ZonePoolTest {
 protected:
  void SetUp() override { Open(); }

  // A written zone in which `bytes` are live, and the claim on them.
  std::pair<ZoneId, SpaceClaim> Written(uint64_t bytes) {
    ZoneLease lease = MustAcquire(kData);
    EXPECT_TRUE(lease.BeginWrite(bytes));
    EXPECT_EQ(WriteBlocks(*device_, lease, kCapacity), DeviceStatus::kSuccess);
    lease.CompleteWrite(kCapacity, DeviceStatus::kSuccess);
    return {lease.zone(), lease.Settle(kCapacity, DeviceStatus::kSuccess)};
  }
  bool IsReset(ZoneId zone) {
    EXPECT_TRUE(pool_->Settle().ok());
    return device_->Zone(zone).state == ZoneState::kEmpty;
  }
};

TEST_F(SpaceClaimTest, AZoneIsResetWhenTheLastClaimOnItHasGone) {
  auto [zone, claim] = Written(2 * kBlock);
  SpaceClaim part = claim.Split(std::array{ZoneBytes(zone, kBlock)});
  EXPECT_EQ(pool_->Live(zone), 2 * kBlock);
  claim.Release();
  EXPECT_EQ(pool_->Live(zone), kBlock);
  EXPECT_FALSE(IsReset(zone));
  part = {};
  EXPECT_TRUE(IsReset(zone));
}

TEST_F(SpaceClaimTest, IsItsLastHoldersOnly) {
  const auto [zone, made] = Written(kBlock);
  {
    SpaceClaim outer;
    {
      SpaceClaim claim(*pool_, zone, 100);
      SpaceClaim moved(std::move(claim));
      outer = std::move(moved);
    }
    EXPECT_EQ(pool_->Live(zone), kBlock + 100);
    // The assignment releases what the claim had before.
    outer = SpaceClaim(*pool_, zone, 50);
    EXPECT_EQ(pool_->Live(zone), kBlock + 50);
    outer.Release();
    EXPECT_EQ(pool_->Live(zone), kBlock);
  }
  EXPECT_EQ(pool_->Live(zone), kBlock);
}

TEST_F(SpaceClaimTest, WhatTheMetadataNamesIsLiveWithoutAClaim) {
  auto [zone, claim] = Written(kBlock);
  claim.ToMetadata();
  claim.Release();
  EXPECT_EQ(pool_->Live(zone), kBlock);
  // A zone may be named several times.
  const std::array<ZoneBytes, 3> freed = {ZoneBytes(zone, 96), ZoneBytes(zone, 0), ZoneBytes(zone, 4000)};
  claim = SpaceClaim::FromMetadata(*pool_, freed);
  EXPECT_EQ(pool_->Live(zone), kBlock) << "it was counted before";
  claim.Release();
  EXPECT_TRUE(IsReset(zone));
}

TEST_F(SpaceClaimTest, GrowsByWhatItLacks) {
  auto [zone, claim] = Written(kBlock);
  const auto [other, of_other] = Written(kBlock);
  claim.Grow(*pool_, std::array{ZoneBytes(zone, 3000), ZoneBytes(zone, 2000), ZoneBytes(other, 7)});
  EXPECT_EQ(pool_->Live(zone), 5000U);
  EXPECT_EQ(pool_->Live(other), kBlock + 7);
  claim.Grow(*pool_, std::array{ZoneBytes(zone, 10)});
  EXPECT_EQ(pool_->Live(zone), 5000U);
  claim.Release();
  EXPECT_EQ(pool_->Live(other), kBlock);
  EXPECT_TRUE(IsReset(zone));
}

TEST_F(SpaceClaimTest, IsCutToWhatIsKeptOfIt) {
  auto [zone, claim] = Written(kBlock);
  auto [other, of_other] = Written(kBlock);
  auto [third, of_third] = Written(kBlock);
  claim.Merge(std::move(of_other));
  SpaceClaim beyond = claim.TakeBeyond(
      std::array{ZoneBytes(zone, 60), ZoneBytes(zone, 40), ZoneBytes(other, kBlock + 7), ZoneBytes(third, kBlock)});
  beyond.Release();
  EXPECT_EQ(pool_->Live(zone), 100U);
  EXPECT_EQ(pool_->Live(other), kBlock);
  EXPECT_EQ(pool_->Live(third), kBlock);
  beyond = claim.TakeBeyond({});
  claim.Release();
  EXPECT_EQ(pool_->Live(zone), 100U);
  beyond.Release();
  EXPECT_TRUE(IsReset(zone));
  EXPECT_TRUE(IsReset(other));
}

TEST_F(SpaceClaimTest, GoesOnAnyThread) {
  auto [zone, claim] = Written(kBlock);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    const std::array part = {ZoneBytes(zone, kBlock / 4)};
    threads.emplace_back([gone = claim.Split(part)]() mutable { gone.Release(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(IsReset(zone));
}

using Counts = std::map<ZoneId, uint64_t>;  // bytes

void Pass(Counts& from, Counts& to, const std::vector<ZoneBytes>& space) {
  for (const auto& [zone, bytes] : space) {
    from[zone] -= bytes;
    to[zone] += bytes;
  }
}

std::vector<ZoneBytes> AllOf(const Counts& counts) { return {counts.begin(), counts.end()}; }

// The live bytes of a zone are those that the metadata and all claims have of it, through whatever hands they went.
TEST_F(SpaceClaimTest, NothingIsLostOnItsWay) {
  const uint64_t seed = TestSeed(20261124);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  constexpr size_t kZones = 5;
  std::vector<ZoneId> zones;
  SpaceClaim base;  // keeps the zones from being reset
  for (size_t i = 0; i < kZones; ++i) {
    auto [zone, claim] = Written(1);
    zones.push_back(zone);
    base.Merge(std::move(claim));
  }
  std::array<SpaceClaim, 6> claims;
  std::array<Counts, 6> expected;
  Counts metadata;
  const auto some_of = [&](const Counts& counts) {
    std::vector<ZoneBytes> some;
    for (const auto& [zone, bytes] : counts) {
      if (random.Chance(0.5)) some.emplace_back(zone, random.Below(bytes + 1));
    }
    return some;
  };
  Counts gone;
  for (int step = 0; step < 20'000; ++step) {
    const size_t a = random.Below(claims.size());
    const size_t b = (a + random.Between(1, claims.size() - 1)) % claims.size();
    switch (random.Below(6)) {
      case 0: {
        const ZoneId zone = zones[random.Below(kZones)];
        const uint64_t bytes = random.Below(50);
        if (pool_->Live(zone) + bytes > kCapacity) break;
        claims[a].Merge(SpaceClaim(*pool_, zone, bytes));
        expected[a][zone] += bytes;
        break;
      }
      case 1: {
        const auto part = some_of(expected[a]);
        claims[b].Merge(claims[a].Split(part));
        Pass(expected[a], expected[b], part);
        break;
      }
      case 2: {
        const auto part = some_of(expected[a]);
        claims[a].Split(part).ToMetadata();
        Pass(expected[a], metadata, part);
        break;
      }
      case 3: {
        const auto part = some_of(metadata);
        claims[a].Merge(SpaceClaim::FromMetadata(*pool_, part));
        Pass(metadata, expected[a], part);
        break;
      }
      case 4:
        claims[a].Merge(std::move(claims[b]));
        Pass(expected[b], expected[a], AllOf(expected[b]));
        break;
      default:
        claims[a] = std::move(claims[b]);
        Pass(expected[a], gone, AllOf(expected[a]));
        Pass(expected[b], expected[a], AllOf(expected[b]));
        break;
    }
    for (const ZoneId zone : zones) {
      uint64_t live = 1 + metadata[zone];
      for (Counts& counts : expected) live += counts[zone];
      ASSERT_EQ(pool_->Live(zone), live) << "step " << step;
    }
  }
  for (SpaceClaim& claim : claims) claim.Release();
  SpaceClaim::FromMetadata(*pool_, AllOf(metadata)).Release();
  base.Release();
  for (const ZoneId zone : zones) EXPECT_TRUE(IsReset(zone));
}

}  // namespace
}  // namespace isozone
