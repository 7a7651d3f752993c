// The sweep of LL-compaction (sweep.h) with less to write. What it adds was chosen by what it gains with 27 GiB of
// uniform keys, written once each, 4 MiB tables and 64 MiB zones (docs/measurements/compaction.md has the table):
//
// * Several files of the upper level at a time: up to LsmLimits::sweep_bytes, and no more than one part in kUpperShare
//   of what the level may hold. So a level is not drained by one compaction, which would make the next ones broader,
//   and fewer outputs end at a pointer.
// * Aligned outputs: an output of kAlignedPercent of a table ends where a file of the next level below begins. When the
//   sweep of the outputs' own level comes to that key, no file below reaches across it; so hardly anything is
//   short-lived, or written twice.
// * Windows that end at such a key, for which one takes up to kStretch times as much. The next window then shares no
//   file with this one, and is compacted beside it: a sweep has as many windows at work, in its order, as there are
//   threads that compact.
// * Trivial moves, where nothing overlaps the upper files. A moved file stays in a zone of the level above, and what
//   lies below beside it may be older than the pass, which costs some space; a load in the order of keys is not written
//   again at all, however often a level is drained by it.
//
// Thread safety: see compaction_picker.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rocksdb/lsm/compaction_picker.h"

namespace isozone {

class IsozonePicker final : public CompactionPicker {
 public:
  static constexpr std::string_view kName = "isozone";
  static constexpr uint64_t kUpperShare = 16;
  static constexpr uint64_t kAlignedPercent = 50;
  static constexpr uint64_t kStretch = 2;
  std::string_view name() const override { return kName; }
  std::optional<CompactionPick> Pick(const LsmTree& tree) const override;
};

}  // namespace isozone
