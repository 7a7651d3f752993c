// What is simulated: a load, an LSM tree, a device, and what decides on zones and compactions.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "device/emulated/nand/profile.h"
#include "rocksdb/lsm/compaction_debt.h"
#include "rocksdb/lsm/lsm_limits.h"
#include "rocksdb/lsm/steered_shape.h"
#include "store/zone/gc_scheme.h"

namespace isozone {

enum class KeyOrderKind : uint8_t {
  kSequential,  // 0, 1, 2, ..., again and again
  kShuffled,    // each key once, in random order; then again in another order
  kUniform,
  kZipfian,  // YCSB's scrambled Zipfian distribution with the constant 0.99
  kSkewed,   // hot_percent of the puts go to hot_keys_percent of the keys, which lie anywhere
  kListed,   // the records of SimPhase::listed, again and again
};

// A part of the load.
struct SimPhase {
  KeyOrderKind order = KeyOrderKind::kSequential;
  uint64_t bytes = 0;  // bytes to put; 0: as much as all keys take
  double hot_percent = 70;
  double hot_keys_percent = 30;
  std::vector<uint32_t> listed = {};  // records of kListed
};

// Parses text such as "sequential", "uniform:3.5T", "70/30:1T" or "list:1T". The caller fills in what `list` puts. The
// message of kInvalidArgument names the known orders.
Result<SimPhase> ParseSimPhase(std::string_view text);

struct SimLoad {
  uint64_t data_bytes = 1 * kGiB;     // of all keys, once each
  uint64_t record_bytes = 64 * kKiB;  // bytes that one record stands for; whole blocks
  double delete_percent = 0;          // percentage of the puts after the first phase
  std::vector<SimPhase> phases = {{.order = KeyOrderKind::kSequential}, {.order = KeyOrderKind::kUniform}};
  uint64_t seed = 1;

  uint64_t records() const { return (data_bytes + record_bytes - 1) / record_bytes; }
};

// RocksDB's defaults, but for the workers.
struct SimTree {
  LsmLimits limits;  // table_bytes and sweep_bytes included
  uint64_t memtable_bytes = 64 * kMiB;
  uint32_t memtables = 2;         // full ones that are not in level 0 yet, at most
  bool log = true;                // a memtable has a write-ahead log
  uint32_t level0_slowdown = 20;  // files
  uint32_t level0_stop = 36;      // files
  // The bytes of compaction debt that slow puts down, and those that stop them.
  CompactionDebtLimits pending = {.soft_bytes = 64 * kGiB, .hard_bytes = 256 * kGiB};
  uint32_t flush_workers = 1;
  uint32_t compaction_workers = 4;
  std::string picker = "leveled";
  // Set: the tree is steered as Isozone steers a database. `limits` change with what the tree holds and what is free,
  // flushes wait for room and debt, and `pending` is not used. Empty: it keeps its shape as RocksDB's does, with levels
  // from level 1 down.
  std::optional<SteeredShape> steering = {};
  bool settles = false;  // after each memtable, puts wait until nothing is left to flush or to compact
  bool moves = true;     // trivial moves write nothing; false: files are written anew, as RocksDB before 10.8 does
};

// The speed of a processor. The defaults are what RocksDB 7.8 does on two cores of a server of 2021 with values of 800
// bytes (docs/simulator.md).
struct SimRates {
  uint64_t put = 136'000'000;         // bytes a second, of all puts
  uint64_t slowed_put = 16'000'000;   // bytes a second while the tree slows writers down: delayed_write_rate
  uint64_t compaction = 250'000'000;  // bytes a second that a worker merges or flushes
};

// The facts about a table that placement is told.
enum class TableHints : uint8_t {
  kNone,
  kLifetime,  // RocksDB's hint, which follows from the level
  kLevel,     // and the level itself, as the listener tells it
  kSteered,   // the level alone: RocksDB hints no lifetime where Isozone steers compaction
};
// Parses "none", "lifetime", "level" or "steered". The message of kInvalidArgument names them.
Result<TableHints> ParseTableHints(std::string_view text);

struct SimDevice {
  Profile profile;
  std::string policy = "isozone";
  std::string gc = "isozone";
  std::optional<uint32_t> gc_start = {};  // percentage of free space below which it collects; the scheme's own
  uint64_t gc_memory = 16 * kMiB;         // bytes
  uint32_t stripe_width = 16;             // zones that a file is written to at once, at most
  uint64_t stripe_unit = 384 * kKiB;      // bytes
  TableHints hints = TableHints::kLevel;
  bool t_zone = true;  // short-lived tables have zones of their own
};

struct SimOptions {
  SimLoad load;
  SimTree tree;
  SimRates rates;
  SimDevice device;
};

// Checks all options. The message of kInvalidArgument says what is wrong, and what to do.
Status CheckSimOptions(const SimOptions& options);

}  // namespace isozone
