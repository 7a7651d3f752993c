// IoClass: the purpose of an I/O. Every request below the file system carries its class, under which it is counted and
// by which the scheduler ranks it (highest first).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace isozone {

enum class IoClass : uint8_t {
  kWal,       // write-ahead log, synced by user writes
  kMetadata,  // Isozone's own journal, checkpoints and superblocks, and RocksDB's MANIFEST
  kUserRead,  // Get, MultiGet, iterators
  kFlush,     // memtable to L0
  kCompactionRead,
  kCompactionWrite,
  kOther,  // everything else: info log, OPTIONS, backups, command line
  kGc,     // Isozone's own copies
};
inline constexpr int kIoClassCount = 8;

constexpr std::string_view IoClassName(IoClass c) {
  constexpr std::array<std::string_view, kIoClassCount> kNames = {
      "wal", "metadata", "user-read", "flush", "compaction-read", "compaction-write", "other", "gc"};
  return kNames[static_cast<size_t>(c)];
}

}  // namespace isozone
