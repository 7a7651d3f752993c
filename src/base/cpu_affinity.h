// Chooses the CPUs on which the calling thread runs.
//
// A new thread may run where its maker may. A thread that outlives the work for which it was made, and whose maker may
// be bound to one CPU, calls RunWhereProcessMay first.
//
// Thread safety: each call concerns the calling thread alone.
#pragma once

#include <cstdint>

namespace isozone {

// Binds the thread to this CPU, if it may run there; otherwise nothing changes.
void StayOnCpu(uint32_t cpu);
// Lets the thread run on all CPUs on which the first thread of the process may run.
void RunWhereProcessMay();

}  // namespace isozone
