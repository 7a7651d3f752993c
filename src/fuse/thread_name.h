// What a thread of this machine is called, and what that tells of a write: RocksDB names the threads of its background
// work, also in programs that link it statically.
//
// Thread safety: pure functions of the machine; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace isozone {

// The first 15 bytes of its name, as the kernel keeps it (/proc/TID/comm); empty if it is not known here.
std::string ThreadName(pid_t thread);

enum class ThreadJob : uint8_t {
  kUnknown,
  kFlush,       // rocksdb:high
  kCompaction,  // rocksdb:low, rocksdb:bottom
};
ThreadJob JobOf(std::string_view thread_name);

}  // namespace isozone
