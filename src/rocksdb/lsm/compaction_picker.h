// What to compact next: one small class for each picker, chosen by name. A picker looks at the tree and decides. It has
// no state of its own, so RocksDB, the simulator and the tests drive the same one.
//
// `isozone` is the picker of Isozone (isozone_picker.h). Those of the papers, for comparison, are in published/:
// leveled, greedy, gear, ll.
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
  // Returns a decision that LsmTree::Begin accepts as it is, or nothing if no compaction is due, or if the one that is
  // due must wait for one that runs.
  virtual std::optional<CompactionPick> Pick(const LsmTree& tree) const = 0;
};

// Makes the picker of this name. If there is none, the message of kInvalidArgument lists the known names.
Result<std::unique_ptr<CompactionPicker>> MakeCompactionPicker(std::string_view name);
std::vector<std::string_view> CompactionPickerNames();

}  // namespace isozone
