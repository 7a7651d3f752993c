#include "rocksdb/lsm/published/gear_picker.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "rocksdb/lsm/input_window.h"

namespace isozone {
namespace {

// The zones of the window of a level.
std::unordered_set<ZoneId> WindowZones(const LsmTree& tree, int level) {
  const size_t count = tree.zones(level).count();
  return tree.zones(level).Oldest((count + GearPicker::kZonesPerWindowZone - 1) / GearPicker::kZonesPerWindowZone);
}

bool LiesIn(const LsmFile& file, const std::unordered_set<ZoneId>& zones) {
  return std::any_of(file.zones.begin(), file.zones.end(), [&](ZoneId zone) { return zones.contains(zone); });
}

// Cuts the outputs where they begin and cease to overlap the window of the level below them, and lets those between
// sink.
void SinkIntoWindow(const LsmTree& tree, CompactionPick& pick) {
  const int next = pick.output_level + 1;
  if (next >= tree.limits().levels()) return;
  const auto zones = WindowZones(tree, next);
  const auto files = tree.files(next);
  const FileRange overlapping = Overlapping(tree, next, pick.smallest, pick.largest);
  bool in_window = false;
  for (size_t i = overlapping.first; i < overlapping.last; ++i) {
    if (LiesIn(*files[i], zones) == in_window) continue;
    in_window = !in_window;
    if (in_window) {
      pick.short_lived.push_back({files[i]->smallest, std::nullopt});
    } else {
      pick.short_lived.back().end = files[i]->smallest;
    }
    pick.cut_keys.push_back(files[i]->smallest);
  }
  // Behind the range of the inputs there is nothing to sink, but the file may go on.
  if (in_window && overlapping.last < files.size()) pick.short_lived.back().end = files[overlapping.last]->smallest;
}

std::optional<CompactionPick> PickOf(const LsmTree& tree, int level, FileRange upper) {
  InputWindow window(tree, level, upper);
  while (window.AddEnclosedUpper()) {
  }
  CompactionPick pick = window.Pick();
  if (tree.Conflicts(pick)) return std::nullopt;
  SinkIntoWindow(tree, pick);
  return pick;
}

// The index of a file of a level above 0.
size_t IndexIn(const LsmTree& tree, int level, const LsmFile& file) {
  const auto files = tree.files(level);
  size_t index = tree.FirstEndingAt(level, file.smallest);
  while (files[index] != &file) ++index;
  return index;
}

// Of the levels in which something is to sink, the lowest one; with its neighbours that are to sink as well.
std::optional<CompactionPick> PickSinking(const LsmTree& tree) {
  for (int level = tree.limits().levels() - 2; level > 0; --level) {
    const auto files = tree.files(level);
    for (const auto& [number, file] : tree.short_lived(level)) {
      if (tree.busy(*file)) continue;
      const size_t index = IndexIn(tree, level, *file);
      FileRange upper{index, index + 1};
      while (upper.first > 0 && files[upper.first - 1]->short_lived) --upper.first;
      while (upper.last < files.size() && files[upper.last]->short_lived) ++upper.last;
      if (auto pick = PickOf(tree, level, upper)) return pick;
      break;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<CompactionPick> GearPicker::Pick(const LsmTree& tree) const {
  if (auto pick = PickSinking(tree)) return pick;
  for (const int level : LevelsByNeed(tree)) {
    if (level == 0) {
      auto pick = PickLevel0(tree, false);
      if (!pick) continue;
      SinkIntoWindow(tree, *pick);
      return pick;
    }
    const auto oldest = tree.zones(level).OldestFile();
    const LsmFile* file = oldest ? tree.Find(*oldest) : tree.files(level)[FileAtPointer(tree, level)];
    const size_t index = IndexIn(tree, level, *file);
    if (auto pick = PickOf(tree, level, {index, index + 1})) return pick;
  }
  return std::nullopt;
}

}  // namespace isozone
