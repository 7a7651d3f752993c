// On which CPUs the calling thread runs.
//
// A thread begins with what its maker has. A thread that lives longer than the work that it was made for, and may be
// made by one that stays on a CPU, calls RunWhereProcessMay first.
//
// Thread safety: each call concerns the calling thread alone.
#pragma once

#include <cstdint>

namespace isozone {

// Runs on this CPU alone, if it may run there; otherwise nothing changes.
void StayOnCpu(uint32_t cpu);
// Runs where the first thread of the process may.
void RunWhereProcessMay();

}  // namespace isozone
