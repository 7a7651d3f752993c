// What must hold of every picker, on random trees with content: no key is lost or shadowed wrongly, every decision is
// one that RocksDB carries out as it is, and a tree comes to rest within its limits. And of the sweeps, what makes the
// files of a zone die together.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "rocksdb/lsm/compaction_picker.h"
#include "rocksdb/lsm/input_window.h"
#include "rocksdb/lsm/merge_model.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

constexpr int kTrees = 60;
constexpr int kStepsPerTree = 5'000;  // puts, deletions, beginnings and ends of compactions

bool Sweeps(const CompactionPicker& picker) { return picker.name() == "ll" || picker.name() == "isozone"; }

LsmLimits RandomLimits(Random& random) {
  LsmLimits limits;
  const uint64_t factor = random.Between(2, 8);
  limits = LsmLimits::Exponential(static_cast<int>(random.Between(3, 6)), random.Between(8, 64), factor);
  limits.level0_files = static_cast<uint32_t>(random.Between(1, 4));
  limits.base_level = limits.levels() > 3 && random.Chance(0.2) ? 2 : 1;
  limits.table_bytes = random.Between(4, 16);
  limits.sweep_bytes = random.Between(1, 64);
  return limits;
}

// A database with a picker, its oracle, and the zones of its files. A record is one byte.
class Database {
 public:
  Database(const CompactionPicker& picker, uint64_t seed, size_t workers)
      : picker_(picker),
        random_(seed),
        workers_(workers),
        model_(RandomLimits(random_), 1),
        keys_(random_.Between(50, 3'000)),
        deletes_(random_.Chance(0.5) ? 0.2 : 0),
        in_order_(random_.Chance(0.1)),
        local_(random_.Chance(0.4)),
        fails_(workers > 1 && random_.Chance(0.5)),
        memtable_records_(random_.Between(2, 24)),
        zone_bytes_(random_.Between(16, 128)) {
    model_.Observe([this](int level, LsmFile& file) { Place(level, file); }, [](const LsmFile&) {});
  }

  void Step() {
    const bool full = memtable_.size() >= memtable_records_;
    if (!running_.empty() && random_.Chance(workers_ == 1 ? 1 : 0.3)) return End();
    if (running_.size() < workers_ && random_.Chance(0.5) && Begin()) return;
    // A writer waits while level 0 is far too large, as in a database.
    if (full && model_.tree().files(0).size() < 12) Flush();
    if (!full) Put();
  }

  void Settle() {
    while (Begin() || !running_.empty()) {
      while (!running_.empty()) End();
    }
    EXPECT_TRUE(LevelsByNeed(model_.tree()).empty());
  }

  void ExpectContent() {
    for (uint64_t key = 0; key < keys_; ++key) {
      ASSERT_EQ(oracle_[key], model_.Get(key)) << "key " << key;
    }
  }

 private:
  struct Job {
    CompactionJob id = 0;
    CompactionPick pick;
    std::optional<std::string> sweep_begin;  // the pointer; empty: the beginning of all keys
  };

  void Place(int level, LsmFile& file) {
    auto& [zone, room] = zones_[file.short_lived ? -1 : level];
    if (room < file.bytes) {
      zone = ++last_zone_;
      room = zone_bytes_;
    }
    room -= std::min(room, file.bytes);
    file.zones.emplace_back(zone);
  }

  void Put() {
    uint64_t key = in_order_ ? puts_ % keys_ : random_.Below(keys_);
    if (local_) key = (local_base_ + key % (memtable_records_ * 2)) % keys_;
    memtable_[key] = {static_cast<uint32_t>(key), ++puts_, random_.Chance(deletes_)};
  }

  void Flush() {
    std::vector<ModelRecord> records;
    for (const auto& [key, record] : memtable_) {
      records.push_back(record);
      oracle_[key] = record.deletes ? std::nullopt : std::optional(record.put);
    }
    std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    memtable_.clear();
    local_base_ = random_.Below(keys_);
    ASSERT_TRUE(model_.Flush(std::move(records)).ok());
  }

  bool Begin() {
    const auto pick = picker_.Pick(model_.tree());
    if (!pick) return false;
    if (Sweeps(picker_) && pick->start_level() > 0) ExpectSweepTakesAll(*pick);
    const LsmTree& tree = model_.tree();
    auto begin = tree.pointers().Get(pick->start_level());
    const bool anew = begin && pick->start_level() > 0 &&
                      tree.FirstEndingAt(pick->start_level(), *begin) == tree.files(pick->start_level()).size();
    if (anew) begin.reset();
    const auto job = model_.Begin(*pick);
    EXPECT_TRUE(job.ok()) << job.status().ToString();
    if (!job.ok()) return false;
    running_.push_back({*job, *pick, std::move(begin)});
    return true;
  }

  void End() {
    const size_t at = random_.Below(running_.size());
    const Job job = std::move(running_[at]);
    running_.erase(running_.begin() + static_cast<ptrdiff_t>(at));
    if (fails_ && random_.Chance(0.1)) {
      ASSERT_TRUE(model_.Abandon(job.id).ok());
      return;
    }
    const auto ended = model_.Finish(job.id);
    ASSERT_TRUE(ended.ok()) << ended.ToString();
    ExpectCuts(job.pick);
    if (Sweeps(picker_) && job.pick.start_level() > 0 && workers_ == 1) ExpectNothingOlderThanThePass(job);
  }

  // A sweep visits every file of a level: none is left between the pointer and the next one.
  void ExpectSweepTakesAll(const CompactionPick& pick) {
    const auto& inputs = pick.inputs.front();
    const auto files = model_.tree().files(inputs.level);
    ASSERT_TRUE(pick.advance);
    for (size_t i = FileAtPointer(model_.tree(), inputs.level); i < files.size(); ++i) {
      if (pick.advance->key && files[i]->largest >= *pick.advance->key) break;
      EXPECT_NE(inputs.files.end(), std::find(inputs.files.begin(), inputs.files.end(), files[i]->number));
    }
  }

  // Of what was just written: nothing lies across a cut, and what is short-lived begins where it is to.
  void ExpectCuts(const CompactionPick& pick) {
    if (pick.trivial_move) return;
    const LsmTree& tree = model_.tree();
    const auto& lower_pointer = tree.pointers().Get(pick.output_level);
    const auto range = Overlapping(tree, pick.output_level, pick.smallest, pick.largest);
    for (size_t i = range.first; i < range.last; ++i) {
      const LsmFile& file = *tree.files(pick.output_level)[i];
      const auto across = [&](const std::string& key) { return file.smallest < key && key <= file.largest; };
      EXPECT_TRUE(std::none_of(pick.cut_keys.begin(), pick.cut_keys.end(), across));
      EXPECT_EQ(file.short_lived, pick.IsShortLived(tree.order(), file.smallest));
      if (!Sweeps(picker_)) continue;
      // A compaction that fails takes its pointer back, across what was written meanwhile.
      EXPECT_FALSE(!fails_ && lower_pointer && across(*lower_pointer));
      EXPECT_FALSE(pick.advance && pick.advance->key && across(*pick.advance->key));
      EXPECT_TRUE(!file.short_lived || (pick.advance && file.smallest >= *pick.advance->key));
    }
  }

  // No file of the lower level that the pointer has passed is older than the pass.
  void ExpectNothingOlderThanThePass(const Job& job) {
    if (job.pick.trivial_move) return;
    const uint64_t newest_input = NewestInput(job.pick);
    for (const LsmFile* file : model_.tree().files(job.pick.output_level)) {
      const bool behind = !job.sweep_begin || file->smallest >= *job.sweep_begin;
      const bool passed = !job.pick.advance->key || file->largest < *job.pick.advance->key;
      EXPECT_TRUE(!behind || !passed || file->number > newest_input) << file->number;
    }
  }

  static uint64_t NewestInput(const CompactionPick& pick) {
    uint64_t newest = 0;
    for (const auto& input : pick.inputs) {
      newest = std::max(newest, *std::max_element(input.files.begin(), input.files.end()));
    }
    return newest;
  }

  const CompactionPicker& picker_;
  Random random_;
  const size_t workers_;
  MergeModel model_;
  const uint64_t keys_;
  const double deletes_;
  const bool in_order_;
  const bool local_;  // the keys of a memtable lie close together
  const bool fails_;  // some compactions fail
  const size_t memtable_records_;
  const uint64_t zone_bytes_;
  uint32_t puts_ = 0;
  uint64_t local_base_ = 0;
  std::unordered_map<uint64_t, ModelRecord> memtable_;
  std::unordered_map<uint64_t, std::optional<uint64_t>> oracle_;  // of what was flushed
  std::vector<Job> running_;
  std::unordered_map<int, std::pair<uint32_t, uint64_t>> zones_;  // by level: the open zone, and its room
  uint32_t last_zone_ = 0;
};

class PickerPropertiesTest : public testing::TestWithParam<std::string_view> {
 protected:
  void RunTrees(size_t workers) {
    const auto picker = std::move(MakeCompactionPicker(GetParam())).value();
    const uint64_t first_seed = TestSeed(1);
    for (uint64_t seed = first_seed; seed < first_seed + kTrees && !HasFailure(); ++seed) {
      SCOPED_TRACE("replay with ISOZONE_TEST_SEED=" + std::to_string(seed));
      Database database(*picker, seed, workers);
      for (int step = 0; step < kStepsPerTree && !HasFailure(); ++step) {
        database.Step();
        if (step % 1'000 == 0) database.ExpectContent();
      }
      database.Settle();
      database.ExpectContent();
    }
  }
};

TEST_P(PickerPropertiesTest, NoKeyIsLostOrShadowedWrongly) { RunTrees(1); }

TEST_P(PickerPropertiesTest, SeveralWorkersDoNotDisturbEachOther) { RunTrees(4); }

INSTANTIATE_TEST_SUITE_P(AllPickers, PickerPropertiesTest, testing::ValuesIn(CompactionPickerNames()),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace isozone
