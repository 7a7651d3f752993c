// The sweep of LL-compaction: of two levels, the compaction pointer of the upper one passes over both, and every file
// that it passes is written anew. So the files of a zone, which were written one after the other, die one after the
// other (Jung and Shin, Lifetime-Leveling LSM-Tree Compaction for ZNS SSD, HotStorage'22, section 3.2).
//
// 1. The files of the upper level at its pointer, and what overlaps them below.
// 2. The window expands, rule (3)-1: whatever lies below between the pointer and the next one is taken, too, although
//    nothing overlaps it. The next pointer is the beginning of the first upper file that is left. Where none is left it
//    is the end of all keys, and the sweep begins anew at the beginning of all keys. The window begins at the pointer,
//    and not at the beginning of the level, also where no upper file is left before the pointer: that would write a
//    level's worth again and again.
// 3. Upper files that lie within the range of all inputs join, and 2. is done again.
// 4. Rule (5)-1: an output is cut at the next pointer. What follows is an input of the very next compaction of the
//    level: it is short-lived, and written elsewhere.
// 5. Rule (5)-2: an output is cut at the pointer of the lower level, which so is always the beginning of a file.
//
// After that no file of the lower level that the pointer has passed is older than the pass.
//
// A window of a sweep can be compacted beside the one before it if no lower file is an input of both. So where there is
// a choice, a window ends at a key that no lower file reaches across.
//
// Thread safety: none; the tree must not change meanwhile.
#pragma once

#include <cstdint>
#include <optional>

#include "rocksdb/lsm/compaction_pick.h"
#include "rocksdb/lsm/lsm_tree.h"

namespace isozone {

// How much a window takes from the upper level: at least one file, and more up to `bytes` in all. It takes the most
// files with which it ends where no lower file reaches across, if need be up to `stretch` times as many bytes.
struct SweepSize {
  uint64_t bytes = 0;
  uint64_t stretch = 1;
};

// Returns the next compaction of the sweep of a level above 0, which must have files. Returns nothing if it conflicts
// with a running compaction: a sweep waits and keeps its order.
std::optional<CompactionPick> PickSweep(const LsmTree& tree, int level, SweepSize size);

// Returns a trivial move of the upper files of that compaction, if no lower file overlaps them, no output would be cut
// at the pointer of the lower level, and nothing conflicts. What lies below between them stays as it is. Otherwise
// returns nothing.
std::optional<CompactionPick> PickSweepMove(const LsmTree& tree, int level, SweepSize size);

// Applies rule (5)-2 to any decision: cuts outputs at the pointer of the output level.
void CutAtLowerPointer(const LsmTree& tree, CompactionPick& pick);

}  // namespace isozone
