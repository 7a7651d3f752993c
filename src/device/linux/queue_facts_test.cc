#include "device/linux/queue_facts.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"

namespace isozone {
namespace {

using testing::HasSubstr;

using Sysfs = std::map<std::string, std::string, std::less<>>;

// An NVMe ZNS namespace, as Linux 6.1 shows it.
Sysfs Nvme() {
  return {{"size", "262144\n"},
          {"queue/zoned", "host-managed\n"},
          {"queue/scheduler", "[none] mq-deadline\n"},
          {"queue/logical_block_size", "4096\n"},
          {"queue/physical_block_size", "16384\n"},
          {"queue/zone_write_granularity", "4096\n"},
          {"queue/chunk_sectors", "32768\n"},
          {"queue/max_sectors_kb", "512\n"},
          {"queue/max_segments", "127\n"},
          {"queue/optimal_io_size", "0\n"},
          {"queue/minimum_io_size", "16384\n"},
          {"queue/max_open_zones", "14\n"},
          {"queue/max_active_zones", "14\n"},
          {"queue/write_cache", "write back\n"},
          {"queue/fua", "1\n"}};
}

Result<QueueFacts> Parse(const Sysfs& sysfs) {
  return ParseQueueFacts([&](std::string_view name) {
    const auto found = sysfs.find(name);
    return found == sysfs.end() ? std::nullopt : std::optional(found->second);
  });
}

QueueFacts FactsWith(std::string_view name, std::string value) {
  Sysfs sysfs = Nvme();
  sysfs[std::string(name)] = std::move(value);
  auto facts = Parse(sysfs);
  EXPECT_TRUE(facts.ok()) << facts.status().ToString();
  return *facts;
}

TEST(QueueFacts, AreReadFromSysfs) {
  const auto facts = Parse(Nvme());
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_TRUE(facts->zoned());
  EXPECT_EQ(facts->model, "host-managed");
  EXPECT_EQ(facts->scheduler, "none");
  EXPECT_EQ(facts->size, 128 * kMiB);
  EXPECT_EQ(facts->zone_size, 16 * kMiB);
  EXPECT_EQ(facts->logical_block, 4096U);
  EXPECT_EQ(facts->write_granularity, 4096U);
  EXPECT_EQ(facts->optimal_write, 16384U);
  EXPECT_EQ(facts->max_open_zones, 14U);
  EXPECT_EQ(facts->max_active_zones, 14U);
  EXPECT_EQ(facts->durable, DurableWrites::kForced);
}

TEST(QueueFacts, ATransferIsNeverSplit) {
  EXPECT_EQ(FactsWith("queue/max_sectors_kb", "512").max_transfer, 448 * kKiB) << "127 segments of a page each";
  EXPECT_EQ(FactsWith("queue/max_sectors_kb", "128").max_transfer, 128 * kKiB);
  EXPECT_EQ(FactsWith("queue/max_sectors_kb", "100").max_transfer, 64 * kKiB) << "whole units";
  EXPECT_EQ(FactsWith("queue/max_sectors_kb", "12").max_transfer, 12 * kKiB);
  EXPECT_EQ(FactsWith("queue/max_segments", "33").max_transfer, 128 * kKiB);
  Sysfs wide = Nvme();
  wide["queue/max_sectors_kb"] = "1048576";
  wide["queue/max_segments"] = "65535";
  EXPECT_EQ(Parse(wide)->max_transfer, kMiB) << "the pages of one request";
  wide["queue/logical_block_size"] = wide["queue/zone_write_granularity"] = "512";
  EXPECT_EQ(Parse(wide)->max_transfer, 960 * kKiB) << "memory that begins within a page takes one more";
}

TEST(QueueFacts, WritesAreWholePhysicalBlocksWhereTheKernelDoesNotSayOtherwise) {
  Sysfs disk = Nvme();
  disk["queue/logical_block_size"] = "512";
  disk["queue/physical_block_size"] = "4096";
  disk["queue/zone_write_granularity"] = "4096";
  EXPECT_EQ(Parse(disk)->write_granularity, 4096U);
  EXPECT_EQ(Parse(disk)->logical_block, 512U);
  disk.erase("queue/zone_write_granularity");
  EXPECT_EQ(Parse(disk)->write_granularity, 4096U);
}

TEST(QueueFacts, MemoryIsAlignedToNoMoreThanAPage) {
  EXPECT_EQ(Parse(Nvme())->memory_alignment, 4096U);
  Sysfs large = Nvme();
  for (const char* name : {"logical_block_size", "physical_block_size", "zone_write_granularity"}) {
    large[std::string("queue/") + name] = "16384";
  }
  EXPECT_THAT(Parse(large).status().ToString(), HasSubstr("queue/dma_alignment"));
  large["queue/dma_alignment"] = "3";
  ASSERT_TRUE(Parse(large).ok());
  EXPECT_EQ(Parse(large)->memory_alignment, 512U);
  EXPECT_EQ(Parse(large)->logical_block, 16384U);
  EXPECT_EQ(Parse(large)->write_granularity, 16384U);
  large["queue/dma_alignment"] = "4095";
  EXPECT_EQ(Parse(large)->memory_alignment, 4096U);
  large["queue/dma_alignment"] = "8191";
  EXPECT_THAT(Parse(large).status().ToString(), HasSubstr("dma_alignment=8191"));
}

TEST(QueueFacts, AnOpenZoneIsAnActiveOne) {
  EXPECT_EQ(FactsWith("queue/max_open_zones", "0").max_open_zones, 14U);
  EXPECT_EQ(FactsWith("queue/max_open_zones", "20").max_open_zones, 14U);
  EXPECT_EQ(FactsWith("queue/max_open_zones", "6").max_open_zones, 6U);
  const QueueFacts disk = FactsWith("queue/max_active_zones", "0");
  EXPECT_EQ(disk.max_open_zones, 14U);
  EXPECT_EQ(disk.max_active_zones, 0U);
}

TEST(QueueFacts, TellHowWritesBecomeDurable) {
  EXPECT_EQ(FactsWith("queue/fua", "0").durable, DurableWrites::kFlushed);
  EXPECT_EQ(FactsWith("queue/write_cache", "write through").durable, DurableWrites::kAlways);
  EXPECT_EQ(DurableWritesName(DurableWrites::kForced), "Force Unit Access");
  EXPECT_EQ(DurableWritesName(DurableWrites::kFlushed), "write and flush");
  EXPECT_EQ(DurableWritesName(DurableWrites::kAlways), "no volatile cache");
}

TEST(QueueFacts, OfADeviceWithoutZonesNothingElseIsNeeded) {
  const auto facts = Parse({{"size", "8"}, {"queue/zoned", "none\n"}});
  ASSERT_TRUE(facts.ok());
  EXPECT_FALSE(facts->zoned());
  EXPECT_FALSE(Parse({{"size", "8"}})->zoned()) << "a kernel without zones";
}

TEST(QueueFacts, SayWhatIsMissingOrMakesNoSense) {
  Sysfs sysfs = Nvme();
  sysfs.erase("queue/chunk_sectors");
  EXPECT_EQ(Parse(sysfs).status().code(), StatusCode::kNotSupported);
  EXPECT_THAT(Parse(sysfs).status().ToString(), HasSubstr("queue/chunk_sectors"));
  sysfs = Nvme();
  sysfs["size"] = "many";
  EXPECT_THAT(Parse(sysfs).status().ToString(), HasSubstr("size='many'"));
  sysfs = Nvme();
  sysfs["queue/logical_block_size"] = "520";
  EXPECT_THAT(Parse(sysfs).status().ToString(), HasSubstr("logical_block_size=520"));
}

TEST(QueueFacts, TheChoiceInForceStandsInBrackets) {
  EXPECT_EQ(ChosenOf("none [mq-deadline] kyber\n"), "mq-deadline");
  EXPECT_EQ(ChosenOf("none\n"), "none");
  EXPECT_EQ(ChosenOf(""), "");
}

}  // namespace
}  // namespace isozone
