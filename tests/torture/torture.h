// Power-cut torture: random clients use an emulated SSD in memory, its power is cut in a random command, it is mounted
// again, and its content is compared with the oracles of the clients (model/oracle.h). Four cuts in a row hit one
// device: while it is formatted, mounted, read back, or worked on. After some cuts, one of the two copies of the
// metadata is lost as well before the device is mounted again: nothing may be missing, and the copy must be written
// again.
//
// In two of three chains, logs are written beside the clients that nobody syncs (unsynced_logs.h), and what a cut
// leaves must be a prefix of what was appended, over all logs.
//
// A chain of cuts depends only on the seed and its number, so any failure is replayed by its first cut; with several
// threads, as far as their interleaving allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/status.h"

namespace isozone::torture {

inline constexpr uint64_t kCutsPerChain = 4;

struct Options {
  uint64_t seed = 0;
  uint64_t first = 0;  // the first cut, a multiple of kCutsPerChain
  uint64_t cuts = 2000;
  size_t threads = 1;                                // clients at the same time
  std::function<void(uint64_t cuts_done)> progress;  // may be empty
};

struct Report {
  uint64_t cuts = 0;
  uint64_t in_format = 0;  // of these, cuts while the device was being formatted
  uint64_t in_mount = 0;   // cuts while it was mounted, or read back at once afterwards, or a database was opened
  uint64_t operations = 0;
  uint64_t bytes_collected = 0;  // copied by GC that was asked for
  uint64_t steered = 0;          // compactions that a picker chose after a recovery; only with RocksDB
  uint64_t times_full = 0;       // times that a client was told "no space"; only chains that fill their device
  uint64_t copies_lost = 0;      // copies of the metadata that were lost between a cut and the next mount
  uint64_t unsynced = 0;         // cuts of logs that nobody had synced; with RocksDB, of a database that never syncs
  uint64_t several_logs = 0;     // of these, cuts that left bytes in more than one log
};

// kCorruption with the failure and the command that replays it.
Result<Report> RunPowerCuts(const Options& options);

// The same with RocksDB on top, in two column families that are flushed and compacted all the time, by RocksDB or as
// any picker says, with GC now and then, under every policy and scheme. Recovery of the WAL must succeed and
// give the state after some write, not before the last synced one. About half of all cuts come after no write was
// synced; RocksDB then keeps several memtables and their logs, and recovers what it finds in a log although the one
// before it has lost its end, so that no hole stays unseen. `threads` is ignored.
Result<Report> RunPowerCutsOnRocksDb(const Options& options);

// Cuts the power in each command, from the first, of formatting, mounting and a short piece of work.
Result<Report> CutEveryCommand(uint64_t seed);

}  // namespace isozone::torture
