#include "base/cpu_affinity.h"

#include <sched.h>
#include <unistd.h>

#include <array>

namespace isozone {
namespace {

// Of as many CPUs as Linux can have.
using CpuSet = std::array<cpu_set_t, 8>;

}  // namespace

void StayOnCpu(uint32_t cpu) {
  CpuSet allowed{};
  if (cpu >= sizeof(allowed) * 8 || ::sched_getaffinity(0, sizeof(allowed), allowed.data()) != 0) return;
  if (!CPU_ISSET_S(cpu, sizeof(allowed), allowed.data())) return;
  CpuSet one{};
  CPU_SET_S(cpu, sizeof(one), one.data());
  (void)::sched_setaffinity(0, sizeof(one), one.data());
}

void RunWhereProcessMay() {
  CpuSet allowed{};
  if (::sched_getaffinity(::getpid(), sizeof(allowed), allowed.data()) != 0) return;
  (void)::sched_setaffinity(0, sizeof(allowed), allowed.data());
}

}  // namespace isozone
