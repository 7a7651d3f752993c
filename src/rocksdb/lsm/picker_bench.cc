// What a decision costs on a tree of 100,000 files, and what it costs to carry one out on the tree.

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "rocksdb/lsm/compaction_picker.h"
#include "rocksdb/lsm/merge_model.h"

namespace isozone {
namespace {

constexpr uint64_t kTables = 100'000;
constexpr uint64_t kTablesPerZone = 16;

// Levels of 10, 100, 1,000, 10,000 and the rest, sixteen tables a zone, all over the same keys. `level` is too large.
void Fill(LsmTree& tree) {
  uint64_t number = 0;
  uint64_t left = kTables;
  for (int level = 1; level < tree.limits().levels(); ++level) {
    uint64_t count = level + 1 == tree.limits().levels() ? left : std::min<uint64_t>(left, 10);
    for (int i = 1; i < level && level + 1 < tree.limits().levels(); ++i) count *= 10;
    left -= count;
    const uint64_t width = (uint64_t{1} << 40) / count;
    for (uint64_t i = 0; i < count; ++i) {
      LsmFile file;
      file.number = ++number;
      file.smallest = MergeModel::KeyText(i * width);
      file.largest = MergeModel::KeyText((i + 1) * width - 1);
      file.bytes = tree.limits().table_bytes;
      file.zones.emplace_back(static_cast<uint32_t>(level * 10'000 + static_cast<int>(i / kTablesPerZone)));
      if (!tree.AddFile(level, std::move(file)).ok()) std::abort();
    }
  }
}

LsmLimits TooLarge(int level) {
  LsmLimits limits = LsmLimits::Exponential(6, 40 * kMiB, 10);
  limits.capacity_bytes[static_cast<size_t>(level)] -= 1;
  return limits;
}

void Pick(benchmark::State& state, std::string_view name) {
  const int level = static_cast<int>(state.range(0));
  LsmTree tree(TooLarge(level));
  Fill(tree);
  const auto picker = std::move(MakeCompactionPicker(name)).value();
  size_t inputs = 0;
  for (auto _ : state) {
    const auto pick = picker->Pick(tree);
    if (!pick) std::abort();
    for (const auto& input : pick->inputs) inputs += input.files.size();
  }
  state.counters["inputs"] = benchmark::Counter(static_cast<double>(inputs), benchmark::Counter::kAvgIterations);
}

// Begins a compaction of a full tree and gives it up: all checks, the marks, and the pointer.
void BeginAndAbandon(benchmark::State& state) {
  LsmTree tree(TooLarge(4));
  Fill(tree);
  const auto picker = std::move(MakeCompactionPicker("isozone")).value();
  const auto pick = picker->Pick(tree);
  for (auto _ : state) {
    const auto job = tree.Begin(*pick);
    if (!job.ok() || !tree.Abandon(*job).ok()) std::abort();
  }
}
BENCHMARK(BeginAndAbandon);

const int kRegistered = [] {
  for (const auto name : CompactionPickerNames()) {
    benchmark::RegisterBenchmark(("Pick/" + std::string(name)).c_str(), Pick, name)->DenseRange(1, 4);
  }
  return 0;
}();

}  // namespace
}  // namespace isozone
