#include "rocksdb/lsm/published/greedy_picker.h"

#include "rocksdb/lsm/input_window.h"

namespace isozone {
namespace {

CompactionPick PickGreedyAt(const LsmTree& tree, int level, size_t file) {
  InputWindow window(tree, level, {file, file + 1});
  if (window.lower().empty() && window.upper().size() == 1) return window.Move();
  window.AddUpper(Overlapping(tree, level, window.smallest(), window.largest()));
  while (window.AddEnclosedUpper()) {
  }
  return window.Pick();
}

}  // namespace

std::optional<CompactionPick> GreedyPicker::Pick(const LsmTree& tree) const {
  return PickByPointer(tree, PickGreedyAt);
}

}  // namespace isozone
