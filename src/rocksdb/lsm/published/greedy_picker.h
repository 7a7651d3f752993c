// Compaction with greedy inputs (a thesis on RocksDB and ZenFS for small zones, Lee 2022, section 2.1.2): plain leveled
// compaction, but all files of the upper level that overlap the chosen outputs join. So what lies beside the chosen
// file in those outputs is not read and written a second time by the next compaction.
//
// 1. The level, and the file at its compaction pointer, as `leveled` chooses them.
// 2. What overlaps it below: the chosen outputs.
// 3. All upper files that overlap these, and what overlaps those below. It ends there: in a full level each step
//    reaches one file further, up to the whole level.
// 4. A file that overlaps nothing is moved, also where it is larger than a table is to be: RocksDB closes an output by
//    the entry that makes it so.
//
// Thread safety: see compaction_picker.h.
#pragma once

#include <optional>
#include <string_view>

#include "rocksdb/lsm/compaction_picker.h"

namespace isozone {

class GreedyPicker final : public CompactionPicker {
 public:
  static constexpr std::string_view kName = "greedy";
  std::string_view name() const override { return kName; }
  std::optional<CompactionPick> Pick(const LsmTree& tree) const override;
};

}  // namespace isozone
