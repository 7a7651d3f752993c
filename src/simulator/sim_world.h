// What the actors of a simulation share: time, the device, the zones, the tree, and what is counted.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/status.h"
#include "rocksdb/lsm/compaction_picker.h"
#include "rocksdb/lsm/merge_model.h"
#include "simulator/device_times.h"
#include "simulator/event_loop.h"
#include "simulator/input_stream.h"
#include "simulator/sim_options.h"
#include "simulator/sim_report.h"
#include "simulator/virtual_zones.h"
#include "store/zone/cohort.h"

namespace isozone {

// FullMemtables: the memtables that are full, until they are tables of level 0. Workers write them in any order; the
// tables come to level 0 in the order in which the memtables were filled.
class FullMemtables {
 public:
  void Add(std::vector<ModelRecord> records) { waiting_.push_back({++last_, std::move(records)}); }
  // Returns how many full memtables are not in level 0 yet.
  uint64_t count() const { return last_ - installed_; }
  // Returns the number that the next full memtable gets.
  uint64_t next() const { return last_ + 1; }
  // Returns the number of the log file of memtable `number`.
  static uint64_t LogOf(uint64_t number) { return kLogs | number; }

  struct Memtable {
    uint64_t number = 0;
    std::vector<ModelRecord> records;
  };
  bool any_waits() const { return !waiting_.empty(); }
  // Takes the oldest memtable that no worker has taken. It has no records if there is none.
  Memtable Take() {
    if (waiting_.empty()) return {};
    Memtable first = std::move(waiting_.front());
    waiting_.pop_front();
    return first;
  }
  // Hands over the table that memtable `number` has become.
  void NoteWritten(uint64_t number, LsmFile table) { written_.emplace(number, std::move(table)); }
  // Takes the table that comes to level 0 next, if it is written. Its memtable has the number installed() afterwards.
  std::optional<LsmFile> TakeWritten() {
    const auto next = written_.find(installed_ + 1);
    if (next == written_.end()) return std::nullopt;
    ++installed_;
    LsmFile table = std::move(next->second);
    written_.erase(next);
    return table;
  }

  // Returns the number of the last memtable whose table came to level 0.
  uint64_t installed() const { return installed_; }

 private:
  static constexpr uint64_t kLogs = uint64_t{1} << 63;  // the numbers of tables are lower

  std::deque<Memtable> waiting_;
  std::map<uint64_t, LsmFile> written_;
  uint64_t last_ = 0;
  uint64_t installed_ = 0;
};

struct SimWorld {
  static constexpr Cohort kTZone = {.id = 1, .own_zones = true};

  SimWorld(SimOptions o, std::unique_ptr<CompactionPicker> p)
      : options(std::move(o)),
        times(options.device.profile),
        model(options.tree.limits, options.load.record_bytes),
        picker(std::move(p)) {}

  const SimOptions options;
  EventLoop loop;
  DeviceTimes times;
  std::unique_ptr<VirtualZones> zones;
  MergeModel model;
  const std::unique_ptr<CompactionPicker> picker;
  FullMemtables memtables;
  Bell tree_changed;  // a memtable is full, or level 0 or another level has changed
  uint32_t busy_workers = 0;
  std::multiset<int64_t> flushes_since_ns;  // when each running flush began
  // The flush that waits in a steered tree: for room, or for less debt.
  struct HeldFlush {
    uint64_t compacted_before = 0;  // what compactions had written when it began to wait
    uint64_t compactions = 0;       // how many had ended when FlushGoesFirst last looked
    int64_t until_ns = 0;           // when it begins in any case
  };
  std::optional<HeldFlush> held_flush;
  struct Compactions {
    uint32_t running = 0;
    uint64_t running_bytes = 0;          // of their inputs
    uint64_t running_written_bytes = 0;  // of their outputs
    uint64_t ended = 0;
    uint64_t written_bytes = 0;  // by all of them
  } compactions;
  bool puts_ended = false;
  SimReport report;
  Status error;  // the first one ends the simulation

  void Fail(const Status& status) {
    if (error.ok()) error = status;
  }
  // Returns whether nothing is flushed or compacted, and nothing is left to be.
  bool is_idle() const { return memtables.count() == 0 && busy_workers == 0 && !picker->Pick(model.tree()); }
  // Returns the class of tables that are written for `level`.
  DataClass ClassOf(int level) const;
  // Returns the cohort of an output of a compaction. All short-lived outputs are one cohort, as in
  // rocksdb/steering/output_guide.h.
  Cohort CohortOf(bool short_lived) const { return short_lived && options.device.t_zone ? kTZone : Cohort(); }
  // If the tree is steered: sets its limits to those that fit what it holds and what is free now.
  void KeepInShape();
  // Returns what decides whether a flush, or the compaction `next`, has room to begin.
  CompactionRoom RoomFor(const std::optional<CompactionPick>& next) const;
  // Returns whether a flush waits that may begin now.
  bool FlushGoesFirst();
  // Returns the bytes that are empty or dead and not reserved.
  uint64_t FreeBytes() const;
  // Returns how many bytes of a table go to a lane at a time.
  uint64_t PieceBytes() const;
  // Returns in which windows compactions read their inputs.
  InputStream::Windows InputWindows() const;
};

}  // namespace isozone
