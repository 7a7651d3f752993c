// Plain leveled compaction, as LevelDB does it: the baseline of the papers.
//
// 1. The level that exceeds its limit most.
// 2. The file at its compaction pointer, or the first one behind it that does not conflict with what runs.
// 3. What overlaps it in the level below; then what of the upper level lies within the range of both.
// 4. A file that overlaps nothing is moved, unless it is larger than a table is to be.
//
// Thread safety: see compaction_picker.h.
#pragma once

#include <optional>
#include <string_view>

#include "rocksdb/lsm/compaction_picker.h"

namespace isozone {

class LeveledPicker final : public CompactionPicker {
 public:
  static constexpr std::string_view kName = "leveled";
  std::string_view name() const override { return kName; }
  std::optional<CompactionPick> Pick(const LsmTree& tree) const override;
};

}  // namespace isozone
