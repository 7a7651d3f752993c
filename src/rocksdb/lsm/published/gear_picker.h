// Gear compaction, after GearDB (Yao et al., FAST'19): the baseline that LL-compaction is compared with. Zones empty
// without being collected, since what is compacted is taken from few zones at a time.
//
// A zone belongs to one level. The compaction window of a level is the oldest of its zones, one in kZonesPerWindowZone.
//
// 1. Data that sinks goes first: outputs of the compaction before that are short-lived, into the level below.
// 2. Else level 0, or the level that exceeds its limit most: the oldest file of its window.
// 3. What overlaps that below, as in `leveled`. Nothing is moved.
// 4. Where the outputs overlap files of the window one level further down, they are cut and short-lived: they sink on
//    at once (1.), and merge with files of the window alone.
//
// What differs from GearDB: it keeps what sinks in memory; here it is written as short-lived, so that each step is a
// compaction that RocksDB can do, and what it costs can be told apart. And a file that is compacted because its level
// is too large merges with all that it overlaps, in the window or not.
//
// Thread safety: see compaction_picker.h.
#pragma once

#include <optional>
#include <string_view>

#include "rocksdb/lsm/compaction_picker.h"

namespace isozone {

class GearPicker final : public CompactionPicker {
 public:
  static constexpr std::string_view kName = "gear";
  static constexpr size_t kZonesPerWindowZone = 10;
  std::string_view name() const override { return kName; }
  std::optional<CompactionPick> Pick(const LsmTree& tree) const override;
};

}  // namespace isozone
