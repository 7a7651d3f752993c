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
  // The order must outlive the tree. `limits` has 2 levels at least and kMaxLsmLevels at most.
  explicit LsmTree(LsmLimits limits, const KeyOrder& order = BytewiseOrder());
  LsmTree(const LsmTree&) = delete;
  LsmTree& operator=(const LsmTree&) = delete;

  const LsmLimits& limits() const { return limits_; }
  // With as many levels as before. What runs goes on as it was begun.
  void set_limits(LsmLimits limits);
  const KeyOrder& order() const { return order_; }

  // A file becomes the newest one of level 0, or takes its place in another. kInvalidArgument: it overlaps files there,
  // its range is none, or its number is taken.
  Status AddFile(int level, LsmFile file);
  // kNotFound; kBusy: it is being compacted.
  Status RemoveFile(uint64_t number);

  // The inputs become busy and the pointer advances. kInvalidArgument: not a decision on this tree as it is
  // (compaction_pick.h says what must hold). kBusy: it conflicts with one that runs.
  Result<CompactionJob> Begin(const CompactionPick& pick);
  // The outputs, sorted by key and within the range of the pick, replace the inputs; of a trivial move there are none.
  // kInvalidArgument: they do not fit, and the compaction goes on. kNotFound: no such compaction runs.
  Status Finish(CompactionJob job, std::vector<LsmFile> outputs);
  // The compaction has failed: the inputs are idle again, and the pointer returns to where it was.
  Status Abandon(CompactionJob job);

  // Some input is busy, or it must not run beside one that runs.
  bool Conflicts(const CompactionPick& pick) const;
  // The compaction that runs and writes to the level across some key from `smallest` to `largest`; null: none does. Of
  // one key there is one at most.
  const CompactionPick* WriterOf(int level, std::string_view smallest, std::string_view largest) const;
  bool busy(const LsmFile& file) const { return entries_.at(file.number).job != 0; }

  // By key; of level 0 the oldest first.
  std::span<const LsmFile* const> files(int level) const { return At(level).files; }
  // Null: no such file.
  const LsmFile* Find(uint64_t number) const;
  uint64_t bytes(int level) const { return At(level).bytes; }
  // Of all inputs.
  uint64_t bytes(const CompactionPick& pick) const;
  // Without what is being compacted.
  uint64_t idle_bytes(int level) const { return At(level).bytes - At(level).busy_bytes; }
  const ZoneAges& zones(int level) const { return At(level).zones; }
  // Files of the level that were written as short-lived, by number.
  const std::map<uint64_t, const LsmFile*>& short_lived(int level) const { return At(level).short_lived; }

  // Levels above 0. The index of the first file whose largest key is not below `key`.
  size_t FirstEndingAt(int level, std::string_view key) const;
  // The index of the first file whose smallest key is above `key`.
  size_t FirstBeginningAfter(int level, std::string_view key) const;

  const CompactionPointers& pointers() const { return pointers_; }
  // To be set, as they were kept.
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
  // Of a file that is in the level.
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
