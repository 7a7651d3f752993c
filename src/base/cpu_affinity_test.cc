#include "base/cpu_affinity.h"

#include <sched.h>

#include <thread>

#include <gtest/gtest.h>

namespace isozone {
namespace {

cpu_set_t Allowed() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  EXPECT_EQ(::sched_getaffinity(0, sizeof(cpus), &cpus), 0);
  return cpus;
}

TEST(CpuAffinityTest, AThreadStaysOnACpuAndThoseThatItMakesMayLeaveIt) {
  const cpu_set_t process = Allowed();
  uint32_t cpu = 0;
  while (!CPU_ISSET(cpu, &process)) ++cpu;
  std::thread([&] {
    StayOnCpu(cpu);
    const cpu_set_t one = Allowed();
    EXPECT_EQ(CPU_COUNT(&one), 1);
    EXPECT_TRUE(CPU_ISSET(cpu, &one));
    std::thread([&] {
      RunWhereProcessMay();
      const cpu_set_t all = Allowed();
      EXPECT_TRUE(CPU_EQUAL(&all, &process));
    }).join();
  }).join();
}

TEST(CpuAffinityTest, AThreadStaysWhereItMayRun) {
  std::thread([] {
    const cpu_set_t before = Allowed();
    uint32_t cpu = 0;
    while (CPU_ISSET(cpu, &before)) ++cpu;
    for (const uint32_t other : {cpu, 100'000U}) {
      StayOnCpu(other);
      const cpu_set_t after = Allowed();
      EXPECT_TRUE(CPU_EQUAL(&after, &before)) << other;
    }
  }).join();
}

}  // namespace
}  // namespace isozone
