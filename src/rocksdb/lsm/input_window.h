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

// Files [first, last) of a level.
struct FileRange {
  size_t first = 0;
  size_t last = 0;
  bool empty() const { return first >= last; }
  size_t size() const { return empty() ? 0 : last - first; }
  bool operator==(const FileRange&) const = default;
};

// The files of a level above 0 that overlap a range of user keys, both included.
FileRange Overlapping(const LsmTree& tree, int level, std::string_view smallest, std::string_view largest);

// Levels that hold more than they are to hold, the one that exceeds its limit most first. Of the last level there is
// never too much, nor of a level 0 that is being compacted.
std::vector<int> LevelsByNeed(const LsmTree& tree);

// Where the sweep of a level above 0, which is not empty, goes on: at the first file that ends at its compaction
// pointer or behind it, else at the first of the level.
size_t FileAtPointer(const LsmTree& tree, int level);

class InputWindow {
 public:
  // `upper` is not empty. Of level 0 it begins with the oldest file.
  InputWindow(const LsmTree& tree, int level, FileRange upper);

  const FileRange& upper() const { return upper_; }
  const FileRange& lower() const { return lower_; }
  int level() const { return level_; }
  int level_below() const { return tree_.limits().LevelBelow(level_); }
  // Of both levels.
  std::string_view smallest() const;
  std::string_view largest() const;

  void AddUpper(FileRange files);
  // `files` overlap or touch what is there.
  void AddLower(FileRange files);
  // Adds what is left of the upper level within the range of all inputs, since it costs nothing more. Above level 0.
  // True: there was some.
  bool AddEnclosedUpper();

  // Where the compaction after this one begins: with the first upper file that is left behind the inputs. If that is
  // being rewritten, its place may be taken by one that begins earlier, at the beginning of what rewrites it. Empty:
  // the inputs reach to the end of the level.
  std::optional<std::string_view> NextKey() const;

  // The pointer advances to the next key; from the end of the level, to its beginning.
  CompactionPick Pick() const;
  // A trivial move instead, of upper files that overlap nothing below.
  CompactionPick Move() const;

 private:
  FileRange WithSharedKeys(int level, FileRange files) const;
  std::string_view UpperEnd(bool largest) const;

  const LsmTree& tree_;
  const int level_;
  FileRange upper_;
  FileRange lower_;
};

// All of level 0 into the base level, as every picker does it. A single file that overlaps nothing is moved if `move`.
// Empty: it conflicts with what runs.
std::optional<CompactionPick> PickLevel0(const LsmTree& tree, bool move);

// Of the level that needs it most, what `pick_at` makes of the first file that begins at the pointer or behind it, or
// of the next one that does not conflict with what runs; level 0 as above, with moves. A file that was written across
// the pointer is left for the next round: part of its range was compacted in this one. So many files of a level are
// tried.
inline constexpr size_t kMostFilesTried = 100;
using PickAt = CompactionPick (*)(const LsmTree& tree, int level, size_t file);
std::optional<CompactionPick> PickByPointer(const LsmTree& tree, PickAt pick_at);

}  // namespace isozone
