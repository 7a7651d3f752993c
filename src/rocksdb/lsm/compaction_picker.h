// What to compact next: one small class for each picker, chosen by name. A picker looks at the tree and decides. It has
// no state of its own, so RocksDB, the simulator and the tests drive the same one.
//
// * leveled: what LevelDB and RocksDB do (leveled_picker.h).
// * greedy: the same, with all of the upper level that overlaps the outputs (greedy_picker.h).
// * gear: what meets the window of the next level sinks on at once (gear_picker.h).
// * ll: files of a zone die together (ll_picker.h).
// * isozone: the same with less to write (isozone_picker.h).
//
// Thread safety: const, any thread; the caller locks the tree.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "rocksdb/lsm/compaction_pick.h"
#include "rocksdb/lsm/lsm_tree.h"

namespace isozone {

class CompactionPicker {
 public:
  virtual ~CompactionPicker() = default;
  virtual std::string_view name() const = 0;
  // A decision that LsmTree::Begin takes as it is. Empty: nothing is due, or what is due must wait for what runs.
  virtual std::optional<CompactionPick> Pick(const LsmTree& tree) const = 0;
};

// kInvalidArgument names the known pickers.
Result<std::unique_ptr<CompactionPicker>> MakeCompactionPicker(std::string_view name);
// All that it knows.
std::vector<std::string_view> CompactionPickerNames();

}  // namespace isozone
