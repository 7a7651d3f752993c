#include "gc_bench/gc_collector.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "device/emulated/device_test_util.h"
#include "gc_bench/gc_worker.h"
#include "gc_bench/gc_zone.h"

namespace isozone::cli {
namespace {

constexpr uint32_t kZoneBlocks = 160;  // no whole number of segments, nor of requests

DeviceGeometry Geometry(uint32_t zones, uint32_t zone_blocks = kZoneBlocks) {
  return {.block_size = kTestBlock,
          .zone_count = zones,
          .zone_size = std::bit_ceil(zone_blocks) * kTestBlock,
          .zone_capacity = zone_blocks * kTestBlock,
          .max_open_zones = GcVolume::kOpenZones,
          .max_active_zones = GcVolume::kOpenZones,
          .max_transfer = 0,
          .max_append = 0,
          .optimal_write = kTestBlock};
}

// Small segments, so that a zone has several of either kind.
SegmentRules SmallRules() {
  return {.segment_size = 64 * kTestBlock, .request_size = 8 * kTestBlock, .group_blocks = 8};
}

// A device that passes commands to another, and counts the blocks it reads and the most reads and writes in flight.
class CountingDevice : public ZonedDevice {
 public:
  explicit CountingDevice(ZonedDevice& device) : device_(device) {}
  const DeviceGeometry& geometry() const override { return device_.geometry(); }
  std::string name() const override { return device_.name(); }
  bool read_only() const override { return false; }
  Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const override {
    return device_.ReportZones(first, out);
  }
  DeviceCounters counters() const override { return device_.counters(); }
  void Submit(DeviceRequest& request) override {
    if (request.op == DeviceOp::kRead) blocks_read += request.length / kTestBlock;
    if (request.op == DeviceOp::kWrite) blocks_written += request.length / kTestBlock;
    device_.Submit(request);
  }

  uint64_t blocks_read = 0;
  uint64_t blocks_written = 0;

 private:
  ZonedDevice& device_;
};

class GcTest : public ::testing::Test {
 protected:
  // Makes a filled volume on a device that has just as many zones as it needs, and the lowest limit of open zones.
  void Make(uint32_t zones, double utilisation, uint32_t zone_blocks = kZoneBlocks) {
    image_.emplace(NewMemoryImage(Geometry(zones + GcVolume::kSpareZones, zone_blocks)));
    emulated_ = OpenForTest(image_->path());
    ASSERT_NE(emulated_, nullptr);
    device_ = std::make_unique<CountingDevice>(*emulated_);
    std::vector<ZoneId> ids;
    for (uint32_t i = 0; i < zones + GcVolume::kSpareZones; ++i) ids.emplace_back(i);
    auto volume = GcVolume::Create(*device_, ids, {zones, utilisation});
    ASSERT_TRUE(volume.ok()) << volume.status().ToString();
    volume_ = std::move(*volume);
    ASSERT_TRUE(volume_->Fill({}).ok());
  }

  void UpdateUniformly(uint64_t seed) {
    const auto pattern = UniformPattern(volume_->map().logical_blocks(), {seed, 1});
    const Status status = volume_->Update(*pattern, {});
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  CollectResult CollectWith(const CollectOptions& options) {
    auto result = Collect(*volume_, options, {});
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    return result.ok() ? *result : CollectResult();
  }

  CollectOptions Options(CollectScheme scheme, uint64_t reclaim, uint32_t depth) {
    CollectOptions options;
    options.scheme = scheme;
    options.reclaim_blocks = reclaim;
    options.depth = depth;
    options.rules = SmallRules();
    return options;
  }

  // Expects that every logical block is valid in one place, and holds its last version.
  void ExpectWhole() {
    const GcMap& map = volume_->map();
    std::vector<int> seen(map.logical_blocks(), 0);
    for (uint32_t zone = 0; zone < map.zones(); ++zone) {
      uint32_t valid = 0;
      for (uint32_t block = 0; block < map.written(zone); ++block) {
        if (!map.IsValid(zone, block)) continue;
        ++valid;
        ++seen.at(map.logical(zone, block));
      }
      EXPECT_EQ(valid, map.valid(zone));
    }
    EXPECT_THAT(seen, ::testing::Each(1));
    const Status status = volume_->Verify({});
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  std::optional<MemoryImage> image_;
  std::unique_ptr<EmulatedDevice> emulated_;
  std::unique_ptr<CountingDevice> device_;
  std::unique_ptr<GcVolume> volume_;
};

TEST_F(GcTest, StagesOneAndTwoLeaveEveryBlockValidOrInvalid) {
  Make(8, 0.5);
  EXPECT_EQ(volume_->map().written(), 4 * kZoneBlocks);
  UpdateUniformly(1);
  EXPECT_EQ(volume_->map().logical_blocks(), 4 * kZoneBlocks);
  EXPECT_EQ(volume_->map().written(), volume_->budget());
  const UtilisationHistogram histogram = HistogramOf(volume_->map());
  EXPECT_EQ(std::accumulate(histogram.begin(), histogram.end(), 0U), 8U);
  ExpectWhole();
}

TEST_F(GcTest, VictimsAreTheLeastUtilisedZonesAndTheOldestOfThose) {
  GcMap map(4, 2, 8);
  for (uint32_t logical = 0; logical < 8; ++logical) {
    map.Write(logical % 2 == 0 ? map.Open(ZoneHeat::kC0) : logical / 2, logical);
  }
  EXPECT_FALSE(map.HasFree());
  EXPECT_EQ(map.LeastUtilised(), 0U);
  map.TakeVictim(0);
  EXPECT_EQ(map.LeastUtilised(), 1U);  // the first is one already
}

TEST_F(GcTest, CopiesExactlyTheValidBlocksOfItsVictims) {
  for (const CollectScheme scheme : {CollectScheme::kBasic, CollectScheme::kLsmZgc, CollectScheme::kIsozone}) {
    for (const uint32_t depth : {1U, 2U, 16U}) {
      SCOPED_TRACE(std::string(CollectSchemeName(scheme)) + ", depth " + std::to_string(depth));
      Make(8, 0.5);
      UpdateUniformly(3);
      const uint64_t written = device_->blocks_written;
      const uint64_t read = device_->blocks_read;
      const CollectResult result = CollectWith(Options(scheme, 2 * kZoneBlocks, depth));
      EXPECT_EQ(device_->blocks_written - written, result.blocks_copied);
      EXPECT_EQ(device_->blocks_read - read, result.bytes_read / kTestBlock);
      EXPECT_EQ(result.blocks_copied + result.blocks_reclaimed, result.zones_reset * kZoneBlocks);
      EXPECT_GE(result.blocks_reclaimed, 2 * kZoneBlocks);
      EXPECT_LE(result.depth_max, depth);
      if (scheme != CollectScheme::kLsmZgc) {
        EXPECT_EQ(result.bytes_read, result.blocks_copied * kTestBlock);
      }
      EXPECT_EQ(volume_->map().written(), volume_->budget() - result.blocks_reclaimed);
      ExpectWhole();
    }
  }
}

TEST_F(GcTest, CopiesTheSameWhateverTheDepth) {
  std::vector<std::tuple<uint64_t, uint64_t, UtilisationHistogram>> seen;
  for (const uint32_t depth : {1U, 3U, 32U}) {
    Make(8, 0.6);
    UpdateUniformly(5);
    const CollectResult result = CollectWith(Options(CollectScheme::kLsmZgc, kZoneBlocks, depth));
    seen.emplace_back(result.blocks_copied, result.bytes_read, result.after);
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

TEST_F(GcTest, BothSchemesCopyTheSameWhereUpdatesAreUniform) {
  std::vector<CollectResult> results;
  for (const CollectScheme scheme : {CollectScheme::kBasic, CollectScheme::kLsmZgc}) {
    Make(16, 0.5);
    UpdateUniformly(7);
    results.push_back(CollectWith(Options(scheme, 2 * kZoneBlocks, 4)));
  }
  EXPECT_EQ(results[0].blocks_copied, results[1].blocks_copied);
  EXPECT_LT(results[1].reads, results[0].reads);
  EXPECT_GT(results[1].bytes_read, results[0].bytes_read);
}

TEST_F(GcTest, SurvivorsGoToZonesOfTheirHeat) {
  Make(8, 0.5);
  UpdateUniformly(9);
  CollectOptions options = Options(CollectScheme::kLsmZgc, kZoneBlocks, 4);
  CollectWith(options);
  std::vector<uint32_t> valid(kZoneHeatCount, 0);
  const GcMap& map = volume_->map();
  for (uint32_t zone = 0; zone < map.zones(); ++zone) valid[static_cast<size_t>(map.heat(zone))] += map.valid(zone);
  EXPECT_GT(valid[static_cast<size_t>(ZoneHeat::kC1C)], 0U);  // above 0.4
  EXPECT_GT(valid[static_cast<size_t>(ZoneHeat::kC1H)], 0U);
  EXPECT_EQ(valid[static_cast<size_t>(ZoneHeat::kC2)], 0U);
}

TEST_F(GcTest, EveryRoundLeavesEveryBlockWholeWithAsFewOpenZonesAsItMayHave) {
  const uint64_t seed = TestSeed(20260611);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  for (int volume = 0; volume < 12 && !HasFailure(); ++volume) {
    const auto zones = static_cast<uint32_t>(random.Between(5, 24));
    Make(zones, 0.2 + random.Real() * 0.5);
    const uint32_t blocks = volume_->map().logical_blocks();
    const PatternOptions options{random.Next(), static_cast<uint32_t>(random.Between(1, 40))};
    const auto pattern =
        random.Chance(0.5) ? UniformPattern(blocks, options) : SkewedPattern(blocks, options, {0.9, 0.1, 32});
    for (int round = 0; round < 12 && !HasFailure(); ++round) {
      ASSERT_TRUE(volume_->Update(*pattern, {}).ok());
      const auto depth = static_cast<uint32_t>(random.Between(1, 20));
      CollectOptions gc = Options(static_cast<CollectScheme>(random.Between(0, 2)),
                                  random.Between(1, (volume_->budget() - blocks) / 2), depth);
      gc.mix_survivors = random.Chance(0.3);
      gc.rules.trim_groups = random.Chance(0.5);
      CollectWith(gc);
      ExpectWhole();
    }
  }
}

TEST_F(GcTest, CandidatesTellTheirAgeInWrittenBlocks) {
  GcMap map(4, 2, 4);
  for (uint32_t logical = 0; logical < 4; ++logical) {
    map.Write(logical % 2 == 0 ? map.Open(ZoneHeat::kC0) : logical / 2, logical);
  }
  EXPECT_THAT(map.Candidates(), ::testing::IsEmpty());  // all is valid
  map.Write(map.Open(ZoneHeat::kC1C), 0);
  const std::vector<GcCandidate> candidates = map.Candidates();
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_EQ(candidates[0].zone, ZoneId(0));
  EXPECT_EQ(candidates[0].valid, 1U);
  EXPECT_EQ(candidates[0].age, 3U);
}

// Counts copies without timing, after the initial layout is gone.
class SkewedGcTest : public GcTest {
 protected:
  struct Load {
    uint32_t zones = 0;
    uint32_t zone_blocks = 0;
    double utilisation = 0;
    Skew skew;
    uint32_t reclaimed_zones = 0;  // a round
    int rounds = 0;
  };
  // Blocks copied in the last half of the rounds.
  uint64_t CopiedBy(CollectScheme scheme, const Load& load) {
    Make(load.zones, load.utilisation, load.zone_blocks);
    const auto pattern = SkewedPattern(volume_->map().logical_blocks(), {1, 1}, load.skew);
    uint64_t copied = 0;
    for (int round = 0; round < load.rounds; ++round) {
      EXPECT_TRUE(volume_->Update(*pattern, {}).ok());
      const uint64_t reclaim = uint64_t{load.reclaimed_zones} * load.zone_blocks;
      const uint64_t blocks = CollectWith(Options(scheme, reclaim, 16)).blocks_copied;
      if (round >= load.rounds / 2) copied += blocks;
    }
    ExpectWhole();
    return copied;
  }
  // What `scheme` copies, of what `basic` copies.
  double Ratio(CollectScheme scheme, const Load& load) {
    const auto basic = static_cast<double>(CopiedBy(CollectScheme::kBasic, load));
    return static_cast<double>(CopiedBy(scheme, load)) / basic;
  }
};

TEST_F(SkewedGcTest, SeparationCopiesFewerBlocksWhereUpdatesAreSkewed) {
  EXPECT_LT(Ratio(CollectScheme::kLsmZgc, {32, 512, 0.6, {0.9, 0.1, 64}, 2, 150}), 0.95);
}

TEST_F(SkewedGcTest, AgeMakesSeparationPayWhereZonesAreFull) {
  EXPECT_LT(Ratio(CollectScheme::kIsozone, {128, 64, 0.8, {0.9, 0.1, 8}, 1, 1000}), 0.6);
}

TEST_F(GcTest, MoreThanThereIsToReclaimIsAnError) {
  Make(4, 0.5);
  UpdateUniformly(11);
  const auto result = Collect(*volume_, Options(CollectScheme::kBasic, 4 * kZoneBlocks, 1), {});
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(result.status().Is(StatusCode::kNoSpace));
}

TEST_F(GcTest, DeviceErrorsEndTheCollection) {
  for (const DeviceOp op : {DeviceOp::kRead, DeviceOp::kWrite, DeviceOp::kReset}) {
    SCOPED_TRACE(DeviceOpName(op));
    Make(8, 0.5);
    UpdateUniformly(13);
    for (uint32_t zone = 0; zone < 8 + GcVolume::kSpareZones; ++zone) {
      emulated_->FailNext(op, ZoneId(zone),
                          op == DeviceOp::kRead ? DeviceStatus::kUnrecoveredReadError : DeviceStatus::kWriteFault);
    }
    const auto result = Collect(*volume_, Options(CollectScheme::kLsmZgc, kZoneBlocks, 8), {});
    ASSERT_FALSE(result.ok());
    EXPECT_TRUE(result.status().Is(StatusCode::kIoError)) << result.status().ToString();
  }
}

TEST_F(GcTest, VerifyFindsWhatIsLost) {
  Make(4, 0.5);
  Host host(*emulated_);
  ASSERT_EQ(host.Reset(1), DeviceStatus::kSuccess);
  const Status status = volume_->Verify({});
  EXPECT_TRUE(status.Is(StatusCode::kCorruption)) << status.ToString();
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("zone 1"));
}

TEST_F(GcTest, ABlockIsItselfOnly) {
  std::vector<std::byte> block(kTestBlock);
  FillGcBlock(block, 7, 3);
  EXPECT_TRUE(IsGcBlock(block, 7, 3));
  EXPECT_FALSE(IsGcBlock(block, 7, 2));
  EXPECT_FALSE(IsGcBlock(block, 8, 3));
  block[4000] ^= std::byte{1};
  EXPECT_FALSE(IsGcBlock(block, 7, 3));
}

TEST(GcVolume, RefusesShapesThatDoNotWork) {
  DeviceGeometry geometry = Geometry(16);
  EXPECT_TRUE(GcVolume::LogicalBlocks(geometry, {1, 0.001}).status().Is(StatusCode::kInvalidArgument));
  EXPECT_TRUE(GcVolume::LogicalBlocks(geometry, {UINT32_MAX / 128, 0.5}).status().Is(StatusCode::kInvalidArgument));
  geometry.block_size = 512;
  geometry.zone_capacity = 9 * 512;
  EXPECT_TRUE(GcVolume::LogicalBlocks(geometry, {4, 0.5}).status().Is(StatusCode::kNotSupported));
}

TEST(GcWorker, WritesAndReadsItsShareAndLeavesItsZonesEmpty) {
  const MemoryImage image = NewMemoryImage(Geometry(8));
  const auto emulated = OpenForTest(image.path());
  for (const uint32_t threads : {1U, 3U}) {
    const WorkerOptions options{.bytes = 300 * kTestBlock, .threads = threads, .read_size = kTestBlock, .seed = 1};
    const uint32_t count = WorkerZones(emulated->geometry(), options);
    EXPECT_EQ(count, threads == 1 ? 2U : 3U);
    std::vector<ZoneId> zones;
    for (uint32_t i = 0; i < count; ++i) zones.emplace_back(i + 1);
    const DeviceCounters before = emulated->counters();
    const auto result = RunWorker(*emulated, zones, options);
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(result->bytes, 600 * kTestBlock);
    EXPECT_EQ(emulated->counters().host_bytes_written - before.host_bytes_written, 300 * kTestBlock);
    EXPECT_EQ(emulated->counters().host_bytes_read - before.host_bytes_read, 300 * kTestBlock);
    Host host(*emulated);
    for (const ZoneId zone : zones) EXPECT_EQ(host.State(zone.value()), ZoneState::kEmpty);
  }
}

TEST(GcZone, ReclaimCopiesTheShareThatIsValid) {
  const MemoryImage image = NewMemoryImage(Geometry(2));
  const auto emulated = OpenForTest(image.path());
  const std::vector<double> utilisations = {0, 0.5, 1};
  const auto points = MeasureReclaim(*emulated, ZoneId(0), ZoneId(1), utilisations, 1, {});
  ASSERT_TRUE(points.ok()) << points.status().ToString();
  ASSERT_EQ(points->size(), 3U);
  EXPECT_EQ((*points)[0].valid_blocks, 0U);
  EXPECT_NEAR(static_cast<double>((*points)[1].valid_blocks), kZoneBlocks / 2.0, 30);
  EXPECT_EQ((*points)[2].valid_blocks, kZoneBlocks);
  Host host(*emulated);
  for (const uint32_t zone : {0U, 1U}) EXPECT_EQ(host.State(zone), ZoneState::kEmpty);
}

TEST(GcZone, GroupsReadTheWholeZoneEachTime) {
  const MemoryImage image = NewMemoryImage(Geometry(1));
  const auto emulated = OpenForTest(image.path());
  const auto points = MeasureGroups(*emulated, ZoneId(0), {});
  ASSERT_TRUE(points.ok()) << points.status().ToString();
  std::vector<uint64_t> sizes;
  for (const GroupPoint& point : *points) sizes.push_back(point.request);
  EXPECT_THAT(sizes, ::testing::ElementsAre(4 * kKiB, 8 * kKiB, 16 * kKiB, 32 * kKiB, 64 * kKiB, 128 * kKiB));
  EXPECT_EQ(emulated->counters().host_bytes_read, 6 * kZoneBlocks * kTestBlock);
}

}  // namespace
}  // namespace isozone::cli
