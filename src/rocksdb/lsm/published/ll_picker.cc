#include "rocksdb/lsm/published/ll_picker.h"

#include "rocksdb/lsm/input_window.h"
#include "rocksdb/lsm/sweep.h"

namespace isozone {

std::optional<CompactionPick> LlPicker::Pick(const LsmTree& tree) const {
  for (const int level : LevelsByNeed(tree)) {
    auto pick = level == 0 ? PickLevel0(tree, false) : PickSweep(tree, level, {});
    if (!pick) continue;
    if (level == 0) CutAtLowerPointer(tree, *pick);
    return pick;
  }
  return std::nullopt;
}

}  // namespace isozone
