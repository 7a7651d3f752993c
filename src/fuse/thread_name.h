// The names of threads of this machine, and what they tell of a write: RocksDB names the threads of its background
// work, also in programs that link it statically.
//
// Thread safety: pure functions of the machine; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace isozone {

// Returns the first 15 bytes of the thread's name, as the kernel keeps it (/proc/TID/comm); empty if it is not known
// here.
std::string ThreadName(pid_t thread);

enum class ThreadJob : uint8_t {
  kUnknown,
  kFlush,       // rocksdb:high
  kCompaction,  // rocksdb:low, rocksdb:bottom
};
ThreadJob JobOf(std::string_view thread_name);

}  // namespace isozone
