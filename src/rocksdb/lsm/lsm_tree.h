// The files of an LSM tree, sorted, with what is being compacted and where sweeps go on: the state that pickers decide
// on. It is edited by files that come and by compactions that begin and end, and never built anew.
//
// Invariants:
// * In a level above 0 files are sorted by key and disjoint, apart from one user key that neighbours may share. In
//   level 0 they are sorted by age, the oldest first.
// * A file is input of one running compaction at most.
// * Two running compactions never write to overlapping ranges of a level, and none carries newer data of a key past
//   older data that another one is writing to a level between (Conflicts).
//
// Costs: to find a place takes the logarithm of the files of a level. To begin a compaction takes its inputs. To end
// one moves the pointers behind its place in two levels.
//
// Thread safety: none; the owner serialises calls. Pointers to files hold until the file is removed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "rocksdb/lsm/compaction_pick.h"
#include "rocksdb/lsm/compaction_pointers.h"
#include "rocksdb/lsm/key_order.h"
#include "rocksdb/lsm/lsm_file.h"
#include "rocksdb/lsm/lsm_limits.h"
#include "rocksdb/lsm/zone_ages.h"

namespace isozone {

using CompactionJob = uint64_t;

class LsmTree {
 public:
  // The order must outlive the tree. `limits` has from 2 to kMaxLsmLevels levels.
  explicit LsmTree(LsmLimits limits, const KeyOrder& order = BytewiseOrder());
  LsmTree(const LsmTree&) = delete;
  LsmTree& operator=(const LsmTree&) = delete;

  const LsmLimits& limits() const { return limits_; }
  // Replaces the limits by others with as many levels. Running compactions continue as they began.
  void set_limits(LsmLimits limits);
  const KeyOrder& order() const { return order_; }

  // Adds a file, to level 0 as the newest one, to another level at its place. kInvalidArgument: it overlaps files
  // there, ends before it begins, or has a number that is taken.
  Status AddFile(int level, LsmFile file);
  // Removes a file. kNotFound: there is none of this number. kBusy: it is being compacted.
  Status RemoveFile(uint64_t number);

  // Begins a compaction: its inputs become busy, and the compaction pointer advances. kInvalidArgument: this is no
  // valid decision for the tree as it is (compaction_pick.h lists the conditions). kBusy: it conflicts with a running
  // one.
  Result<CompactionJob> Begin(const CompactionPick& pick);
  // Ends a compaction: `outputs`, sorted and within the range of the pick, replace the inputs. A trivial move has no
  // outputs. kInvalidArgument: the outputs are not valid, and the compaction goes on. kNotFound: no such compaction
  // runs.
  Status Finish(CompactionJob job, std::vector<LsmFile> outputs);
  // Ends a compaction that has failed. Its inputs are idle again. The compaction pointer goes back, unless a later
  // compaction has moved it since. kNotFound: no such compaction runs.
  Status Abandon(CompactionJob job);

  // Whether an input is busy or gone, or the compaction must not run beside a running one.
  bool Conflicts(const CompactionPick& pick) const;
  // Returns the running compaction that writes to `level` and overlaps the keys from `smallest` to `largest`, or null.
  // At most one writes to any one key of a level.
  const CompactionPick* WriterOf(int level, std::string_view smallest, std::string_view largest) const;
  bool busy(const LsmFile& file) const { return entries_.at(file.number).job != 0; }

  // Returns the files of a level in the order of keys; those of level 0 from the oldest to the newest.
  std::span<const LsmFile* const> files(int level) const { return At(level).files; }
  // Returns the file with this number, or null.
  const LsmFile* Find(uint64_t number) const;
  uint64_t bytes(int level) const { return At(level).bytes; }
  // Returns the bytes of all inputs of the pick.
  uint64_t bytes(const CompactionPick& pick) const;
  // Returns the bytes of a level without those that are being compacted.
  uint64_t idle_bytes(int level) const { return At(level).bytes - At(level).busy_bytes; }
  const ZoneAges& zones(int level) const { return At(level).zones; }
  // Returns the files of the level that were written as short-lived, by number.
  const std::map<uint64_t, const LsmFile*>& short_lived(int level) const { return At(level).short_lived; }

  // Returns the index of the first file whose largest key is not below `key`, in a level above 0.
  size_t FirstEndingAt(int level, std::string_view key) const;
  // Returns the index of the first file whose smallest key is above `key`, in a level above 0.
  size_t FirstBeginningAfter(int level, std::string_view key) const;

  const CompactionPointers& pointers() const { return pointers_; }
  // The owner writes through this reference to restore the pointers that it has kept.
  CompactionPointers& pointers() { return pointers_; }

 private:
  struct Entry {
    LsmFile file;
    int level = 0;
    CompactionJob job = 0;  // 0: idle
  };
  struct Level {
    std::vector<const LsmFile*> files;
    uint64_t bytes = 0;
    uint64_t busy_bytes = 0;
    ZoneAges zones;
    std::map<uint64_t, const LsmFile*> short_lived;
  };
  struct Running {
    CompactionPick pick;
    std::optional<std::string> pointer_before;
  };

  Level& At(int level) { return levels_[static_cast<size_t>(level)]; }
  const Level& At(int level) const { return levels_[static_cast<size_t>(level)]; }
  size_t IndexOf(int level, const LsmFile& file) const;
  Status Check(const CompactionPick& pick) const;
  Status CheckInput(const CompactionPick::Input& input) const;
  Status CheckCovers(const CompactionPick& pick) const;
  Status CheckOutputs(const CompactionPick& pick, const std::vector<LsmFile>& outputs) const;
  void SetJob(const CompactionPick& pick, CompactionJob job);
  // Takes the files out of the level and returns them, in their order.
  std::vector<LsmFile> Take(const CompactionPick::Input& input);
  // Puts files, sorted and disjoint from those there, into the level.
  void Put(int level, std::vector<LsmFile> files);

  LsmLimits limits_;
  const KeyOrder& order_;
  std::array<Level, kMaxLsmLevels> levels_;
  std::unordered_map<uint64_t, Entry> entries_;  // by number; addresses are stable
  std::map<CompactionJob, Running> running_;
  CompactionJob last_job_ = 0;
  CompactionPointers pointers_;
};

}  // namespace isozone
