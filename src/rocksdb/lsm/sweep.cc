#include "rocksdb/lsm/sweep.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "rocksdb/lsm/input_window.h"

namespace isozone {
namespace {

// Lower files that end at the pointer or behind it, and before the next one.
FileRange BetweenPointers(const LsmTree& tree, const InputWindow& window) {
  const int below = window.level_below();
  const auto upper = tree.files(window.level());
  const auto& pointer = tree.pointers().Get(window.level());
  // A pointer behind every file is that of a level that was emptied otherwise: the sweep begins anew.
  const bool from_pointer = pointer && tree.FirstEndingAt(window.level(), *pointer) < upper.size();
  const auto next = window.NextKey();
  return {from_pointer ? tree.FirstEndingAt(below, *pointer) : 0,
          next ? tree.FirstEndingAt(below, *next) : tree.files(below).size()};
}

FileRange UpperFiles(const LsmTree& tree, int level, uint64_t upper_bytes) {
  const auto files = tree.files(level);
  const size_t first = FileAtPointer(tree, level);
  uint64_t bytes = files[first]->bytes;
  size_t last = first + 1;
  while (last < files.size() && bytes + files[last]->bytes <= upper_bytes) bytes += files[last++]->bytes;
  return {first, last};
}

}  // namespace

void CutAtLowerPointer(const LsmTree& tree, CompactionPick& pick) {
  const auto& pointer = tree.pointers().Get(pick.output_level);
  if (!pointer || !tree.order().Less(pick.smallest, *pointer) || tree.order().Less(pick.largest, *pointer)) return;
  const auto place = std::find_if(pick.cut_keys.begin(), pick.cut_keys.end(),
                                  [&](const std::string& key) { return !tree.order().Less(key, *pointer); });
  if (place == pick.cut_keys.end() || *place != *pointer) pick.cut_keys.insert(place, *pointer);
}

std::optional<CompactionPick> PickSweepMove(const LsmTree& tree, int level, uint64_t upper_bytes) {
  const InputWindow window(tree, level, UpperFiles(tree, level, upper_bytes));
  if (!window.lower().empty()) return std::nullopt;
  CompactionPick pick = window.Move();
  CutAtLowerPointer(tree, pick);
  if (!pick.cut_keys.empty() || tree.Conflicts(pick)) return std::nullopt;
  return pick;
}

std::optional<CompactionPick> PickSweep(const LsmTree& tree, int level, uint64_t upper_bytes) {
  InputWindow window(tree, level, UpperFiles(tree, level, upper_bytes));
  do {
    window.AddLower(BetweenPointers(tree, window));
  } while (window.AddEnclosedUpper());
  CompactionPick pick = window.Pick();
  if (tree.Conflicts(pick)) return std::nullopt;
  if (const auto& next = pick.advance->key; next && !tree.order().Less(pick.largest, *next)) {
    pick.cut_keys.push_back(*next);
    pick.short_lived.push_back({*next, std::nullopt});
  }
  CutAtLowerPointer(tree, pick);
  return pick;
}

}  // namespace isozone
