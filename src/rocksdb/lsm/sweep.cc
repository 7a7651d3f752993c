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

// Returns whether no file of the level has keys both below `key` and from `key` on.
bool IsBoundary(const LsmTree& tree, int level, std::string_view key) {
  const size_t at = tree.FirstEndingAt(level, key);
  return at == tree.files(level).size() || !tree.order().Less(tree.files(level)[at]->smallest, key);
}

FileRange UpperFiles(const LsmTree& tree, int level, SweepSize size) {
  const auto files = tree.files(level);
  const int below = tree.limits().LevelBelow(level);
  const size_t first = FileAtPointer(tree, level);
  const uint64_t wanted_bytes = std::max(size.bytes, files[first]->bytes);
  FileRange plain{first, first + 1};
  FileRange at_boundary{first, first};
  uint64_t bytes = 0;
  for (size_t last = first; last < files.size();) {
    bytes += files[last++]->bytes;
    if (bytes > size.stretch * wanted_bytes || (bytes > wanted_bytes && !at_boundary.empty())) break;
    if (bytes <= wanted_bytes) plain.last = last;
    if (last == files.size() || IsBoundary(tree, below, files[last]->smallest)) at_boundary.last = last;
  }
  return at_boundary.empty() ? plain : at_boundary;
}

}  // namespace

void CutAtLowerPointer(const LsmTree& tree, CompactionPick& pick) {
  const auto& pointer = tree.pointers().Get(pick.output_level);
  if (!pointer || !tree.order().Less(pick.smallest, *pointer) || tree.order().Less(pick.largest, *pointer)) return;
  const auto place = std::find_if(pick.cut_keys.begin(), pick.cut_keys.end(),
                                  [&](const std::string& key) { return !tree.order().Less(key, *pointer); });
  if (place == pick.cut_keys.end() || *place != *pointer) pick.cut_keys.insert(place, *pointer);
}

std::optional<CompactionPick> PickSweepMove(const LsmTree& tree, int level, SweepSize size) {
  const InputWindow window(tree, level, UpperFiles(tree, level, size));
  if (!window.lower().empty()) return std::nullopt;
  CompactionPick pick = window.Move();
  CutAtLowerPointer(tree, pick);
  if (!pick.cut_keys.empty() || tree.Conflicts(pick)) return std::nullopt;
  return pick;
}

std::optional<CompactionPick> PickSweep(const LsmTree& tree, int level, SweepSize size) {
  InputWindow window(tree, level, UpperFiles(tree, level, size));
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
