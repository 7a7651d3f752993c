#include "rocksdb/lsm/isozone_picker.h"

#include <algorithm>

#include "rocksdb/lsm/input_window.h"
#include "rocksdb/lsm/sweep.h"

namespace isozone {
namespace {

// Lets outputs end where files of the level below them begin.
void AlignOutputs(const LsmTree& tree, CompactionPick& pick) {
  const int next = pick.output_level + 1;
  if (next >= tree.limits().levels()) return;
  const auto files = tree.files(next);
  for (size_t i = tree.FirstBeginningAfter(next, pick.smallest); i < files.size(); ++i) {
    if (tree.order().Less(pick.largest, files[i]->smallest)) break;
    pick.preferred_cut_keys.push_back(files[i]->smallest);
  }
  if (pick.preferred_cut_keys.empty()) return;
  pick.preferred_cut_bytes = tree.limits().table_bytes * IsozonePicker::kAlignedPercent / 100;
}

std::optional<CompactionPick> PickLevel(const LsmTree& tree, int level) {
  if (level == 0) {
    auto pick = PickLevel0(tree, true);
    if (pick && !pick->trivial_move) CutAtLowerPointer(tree, *pick);
    return pick;
  }
  const LsmLimits& limits = tree.limits();
  const uint64_t share = limits.capacity_bytes[static_cast<size_t>(level)] / IsozonePicker::kUpperShare;
  const SweepSize size{.bytes = std::min(limits.sweep_bytes, share), .stretch = IsozonePicker::kStretch};
  auto pick = PickSweepMove(tree, level, size);
  if (!pick) pick = PickSweep(tree, level, size);
  return pick;
}

}  // namespace

std::optional<CompactionPick> IsozonePicker::Pick(const LsmTree& tree) const {
  for (const int level : LevelsByNeed(tree)) {
    auto pick = PickLevel(tree, level);
    if (!pick) continue;
    if (!pick->trivial_move) AlignOutputs(tree, *pick);
    return pick;
  }
  return std::nullopt;
}

}  // namespace isozone
