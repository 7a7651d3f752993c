// The inputs of a compaction of one level into the one below it, while they are being chosen.
//
// Invariant: the inputs of either level are contiguous, share no user key with their neighbours, and those of the lower
// level are all that overlap those of the upper one.
//
// Thread safety: none; the tree must not change meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rocksdb/lsm/compaction_pick.h"
#include "rocksdb/lsm/lsm_tree.h"

namespace isozone {

// The files [first, last) of a level, by index.
struct FileRange {
  size_t first = 0;
  size_t last = 0;
  bool empty() const { return first >= last; }
  size_t size() const { return empty() ? 0 : last - first; }
  bool operator==(const FileRange&) const = default;
};

// Returns the files of a level above 0 that overlap the user keys from `smallest` to `largest`, both included.
FileRange Overlapping(const LsmTree& tree, int level, std::string_view smallest, std::string_view largest);

// Returns the levels that hold more than they should, beginning with the one that exceeds its limit most. It never
// returns the last level, nor level 0 while that is being compacted.
std::vector<int> LevelsByNeed(const LsmTree& tree);

// Returns the index of the file at which the sweep of a level above 0 continues: the first one that ends at the
// compaction pointer or behind it, or file 0 if there is none. The level must have files.
size_t FileAtPointer(const LsmTree& tree, int level);

class InputWindow {
 public:
  // Begins with the files `upper` of `level` and what they overlap below. `upper` is not empty, and in level 0 it
  // includes the oldest file.
  InputWindow(const LsmTree& tree, int level, FileRange upper);

  const FileRange& upper() const { return upper_; }
  const FileRange& lower() const { return lower_; }
  int level() const { return level_; }
  int level_below() const { return tree_.limits().LevelBelow(level_); }
  // The smallest and largest user key of the inputs of both levels.
  std::string_view smallest() const;
  std::string_view largest() const;

  void AddUpper(FileRange files);
  // Adds files of the lower level, which overlap or touch the inputs of that level.
  void AddLower(FileRange files);
  // Adds all other files of the upper level that lie within the range of all inputs, since that costs nothing more.
  // Returns whether there were any. Levels above 0 only.
  bool AddEnclosedUpper();

  // Returns the key at which the next compaction of this level begins, or nothing if the inputs reach to the end of the
  // level. That is the first key of the upper file behind the inputs. If a running compaction writes across that key,
  // its own first key is returned, since one of its outputs may begin there.
  std::optional<std::string_view> NextKey() const;

  // Returns the compaction of these inputs. Above level 0 it moves the compaction pointer to NextKey.
  CompactionPick Pick() const;
  // Like Pick, but moves the upper files without writing them. The lower level must have no inputs.
  CompactionPick Move() const;

 private:
  FileRange WithSharedKeys(int level, FileRange files) const;
  std::string_view UpperEnd(bool largest) const;

  const LsmTree& tree_;
  const int level_;
  FileRange upper_;
  FileRange lower_;
};

// Returns the compaction of all of level 0 into the base level, or nothing if that conflicts with one that runs. If
// `move` is set, a single file that overlaps nothing is moved instead.
std::optional<CompactionPick> PickLevel0(const LsmTree& tree, bool move);

// The largest number of files that PickByPointer tries in a level.
inline constexpr size_t kMostFilesTried = 100;
using PickAt = CompactionPick (*)(const LsmTree& tree, int level, size_t file);
// Picks a compaction for the pickers leveled and greedy. The levels that need one are tried by need. In a level above
// 0, `pick_at` is asked for each idle file from the first one on that begins at or behind the compaction pointer, and
// the first decision without a conflict is taken. A file that was written across the pointer is left for the next
// round, since part of its range was compacted in this one. Level 0 is compacted by PickLevel0, with moves.
std::optional<CompactionPick> PickByPointer(const LsmTree& tree, PickAt pick_at);

}  // namespace isozone
