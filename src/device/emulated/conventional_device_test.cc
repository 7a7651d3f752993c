#include "device/emulated/conventional_device.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/units.h"
#include "testing/assert_ok.h"

namespace isozone {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBlock = 4096;

Result<ConventionalOptions> Take(const std::string& query) {
  Result<Uri> uri = ParseUri("conventional:/x?" + query);
  EXPECT_TRUE(uri.ok());
  Result<ConventionalOptions> options = TakeConventionalOptions(uri->options);
  EXPECT_TRUE(uri->options.RejectUnknown().ok() || !options.ok());
  return options;
}

TEST(ConventionalOptions, AreTakenFromTheUri) {
  const Result<ConventionalOptions> given = Take("profile=conventional&size=2G&timing=off&speed=2&age=1.5&age_seed=9");
  ASSERT_TRUE(given.ok()) << given.status().ToString();
  EXPECT_EQ(given->ToString(), "profile=conventional size=2147483648 timing=off speed=2 age=1.5 age_seed=9");
  EXPECT_EQ(Take("")->ToString(), "profile=conventional size=8589934592 timing=on speed=1 age=0 age_seed=1");
}

TEST(ConventionalOptions, AreRefusedWithAReason) {
  EXPECT_THAT(Take("profile=small-zone").status().message(), HasSubstr("is of a zoned SSD"));
  EXPECT_THAT(Take("size=2000G").status().message(), HasSubstr("size"));
  EXPECT_THAT(Take("size=32M").status().message(), HasSubstr("spare erase blocks"));
  EXPECT_THAT(Take("age=-1").status().message(), HasSubstr("age"));
}

void Overwrite(ConventionalDevice& device, uint64_t seed, int writes) {
  Random random(seed);
  const auto transfers = std::make_shared<BytesInFlight>();
  for (int i = 0; i < writes; ++i) {
    device.Submit(TimingOpKind::kWrite, random.Below(device.capacity() / kBlock) * kBlock, kBlock, transfers);
    transfers->WaitForAtMost(64 * kBlock);
  }
  transfers->Wait();
}

TEST(ConventionalDevice, CountsWhatAgeCosts) {
  ConventionalDevice fresh(*Take("size=512M&timing=off"));
  ConventionalDevice aged(*Take("size=512M&timing=off&age=2"));
  for (ConventionalDevice* device : {&fresh, &aged}) {
    EXPECT_EQ(device->Stats().flash_bytes_written, 0U);
    Overwrite(*device, 1, 20'000);
    EXPECT_EQ(device->Stats().host_bytes_written, 20'000 * kBlock);
  }
  EXPECT_EQ(fresh.Stats().flash_bytes_written, 20'000 * kBlock);
  EXPECT_GT(aged.Stats().ftl.WriteAmplification(), 3);
  EXPECT_GT(aged.Stats().flash_bytes_written, 3 * 20'000 * kBlock);
}

TEST(ConventionalDevice, CompletesEveryCommandOfEveryThread) {
  ConventionalDevice device(*Take("size=512M&age=1&speed=1000"));
  ISOZONE_ASSERT_OK(device.Start());
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) threads.emplace_back([&, seed] { Overwrite(device, seed, 1'000); });
  for (std::thread& thread : threads) thread.join();
  const auto transfers = std::make_shared<BytesInFlight>();
  device.Submit(TimingOpKind::kRead, 0, kMiB, transfers);
  device.Submit(TimingOpKind::kTrim, 0, kMiB, transfers);
  device.Submit(TimingOpKind::kFlush, 0, 0, transfers);
  transfers->Wait();
  const ConventionalStats stats = device.Stats();
  EXPECT_EQ(stats.host_bytes_written, 4'000 * kBlock);
  EXPECT_EQ(stats.ftl.host_pages, 4'000U);
  EXPECT_EQ(stats.host_bytes_read, kMiB);
  EXPECT_EQ(stats.host_bytes_trimmed, kMiB);
  EXPECT_EQ(stats.ftl.trimmed_pages, kMiB / kBlock);
}

TEST(ConventionalDevice, MayGoWithCommandsInFlight) {
  const auto transfers = std::make_shared<BytesInFlight>();
  ConventionalDevice device(*Take("size=512M&speed=0.001"));
  ISOZONE_ASSERT_OK(device.Start());
  for (int i = 0; i < 100; ++i) device.Submit(TimingOpKind::kWrite, 0, kMiB, transfers);
}

TEST(ConventionalDevice, WhatIsFilledIsNotCounted) {
  ConventionalDevice device(*Take("size=512M&timing=off"));
  device.Fill(0, kMiB);
  EXPECT_EQ(device.Stats().flash_bytes_written, 0U);
  const auto transfers = std::make_shared<BytesInFlight>();
  device.Submit(TimingOpKind::kTrim, 0, 2 * kMiB, transfers);
  EXPECT_EQ(device.Stats().ftl.trimmed_pages, kMiB / kBlock);
}

}  // namespace
}  // namespace isozone
