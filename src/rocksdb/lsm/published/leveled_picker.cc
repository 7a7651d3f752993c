#include "rocksdb/lsm/published/leveled_picker.h"

#include "rocksdb/lsm/input_window.h"

namespace isozone {
namespace {

CompactionPick PickLeveledAt(const LsmTree& tree, int level, size_t file) {
  InputWindow window(tree, level, {file, file + 1});
  const bool fits = tree.files(level)[file]->bytes <= tree.limits().table_bytes;
  if (window.lower().empty() && window.upper().size() == 1 && fits) return window.Move();
  while (window.AddEnclosedUpper()) {
  }
  return window.Pick();
}

}  // namespace

std::optional<CompactionPick> LeveledPicker::Pick(const LsmTree& tree) const {
  return PickByPointer(tree, PickLeveledAt);
}

}  // namespace isozone
