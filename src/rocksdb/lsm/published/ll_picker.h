// LL-compaction: the sweep of sweep.h, one file of the upper level at a time. Each level has zones of its own and
// outputs that are short-lived have others, which is for the file system to do. Nothing is moved from level to level
// without being written, since it would stay in a zone of the upper one. Level 0 is compacted as ever, but its outputs
// are cut at the pointer of level 1.
//
// Thread safety: see compaction_picker.h.
#pragma once

#include <optional>
#include <string_view>

#include "rocksdb/lsm/compaction_picker.h"

namespace isozone {

class LlPicker final : public CompactionPicker {
 public:
  static constexpr std::string_view kName = "ll";
  std::string_view name() const override { return kName; }
  std::optional<CompactionPick> Pick(const LsmTree& tree) const override;
};

}  // namespace isozone
