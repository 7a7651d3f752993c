#include "rocksdb/lsm/input_window.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace isozone {
namespace {

// How many times what it is to hold a level holds, without what is being compacted.
double Score(const LsmTree& tree, int level) {
  if (level == 0) {
    const auto files = tree.files(0);
    if (files.empty() || tree.busy(*files.front())) return 0;
    return static_cast<double>(files.size()) / tree.limits().level0_files;
  }
  const auto capacity = static_cast<double>(tree.limits().capacity_bytes[static_cast<size_t>(level)]);
  return static_cast<double>(tree.idle_bytes(level)) / capacity;
}

// The first file that begins at the pointer or behind it, else the first of the level.
size_t FileBehindPointer(const LsmTree& tree, int level) {
  const auto files = tree.files(level);
  const auto& pointer = tree.pointers().Get(level);
  size_t at = FileAtPointer(tree, level);
  while (pointer && at < files.size() && tree.order().Less(files[at]->smallest, *pointer)) ++at;
  return at < files.size() ? at : 0;
}

FileRange Union(FileRange a, FileRange b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}

}  // namespace

FileRange Overlapping(const LsmTree& tree, int level, std::string_view smallest, std::string_view largest) {
  return {tree.FirstEndingAt(level, smallest), tree.FirstBeginningAfter(level, largest)};
}

std::vector<int> LevelsByNeed(const LsmTree& tree) {
  std::vector<std::pair<double, int>> scored;
  for (int level = 0; level + 1 < tree.limits().levels(); ++level) {
    if (tree.files(level).empty()) continue;
    const double score = Score(tree, level);
    // Level 0 is due when it reaches its number of files, others when they exceed their capacity.
    if (level == 0 ? score >= 1 : score > 1) scored.emplace_back(-score, level);
  }
  std::sort(scored.begin(), scored.end());
  std::vector<int> levels;
  for (const auto& [score, level] : scored) levels.push_back(level);
  return levels;
}

size_t FileAtPointer(const LsmTree& tree, int level) {
  const auto& pointer = tree.pointers().Get(level);
  if (!pointer) return 0;
  const size_t at = tree.FirstEndingAt(level, *pointer);
  return at < tree.files(level).size() ? at : 0;
}

InputWindow::InputWindow(const LsmTree& tree, int level, FileRange upper) : tree_(tree), level_(level) {
  assert(!upper.empty() && (level > 0 || upper.first == 0));
  AddUpper(upper);
}

FileRange InputWindow::WithSharedKeys(int level, FileRange files) const {
  if (level == 0 || files.empty()) return files;
  const auto all = tree_.files(level);
  const auto share = [&](size_t i) { return tree_.order().Compare(all[i - 1]->largest, all[i]->smallest) == 0; };
  while (files.first > 0 && share(files.first)) --files.first;
  while (files.last < all.size() && share(files.last)) ++files.last;
  return files;
}

void InputWindow::AddUpper(FileRange files) {
  upper_ = WithSharedKeys(level_, Union(upper_, files));
  AddLower(Overlapping(tree_, level_below(), UpperEnd(false), UpperEnd(true)));
}

void InputWindow::AddLower(FileRange files) { lower_ = WithSharedKeys(level_below(), Union(lower_, files)); }

bool InputWindow::AddEnclosedUpper() {
  const KeyOrder& order = tree_.order();
  const auto all = tree_.files(level_);
  FileRange wider = upper_;
  while (wider.first > 0 && !order.Less(all[wider.first - 1]->smallest, smallest())) --wider.first;
  while (wider.last < all.size() && !order.Less(largest(), all[wider.last]->largest)) ++wider.last;
  if (wider == upper_) return false;
  AddUpper(wider);
  return true;
}

// The smallest or largest key of the upper inputs.
std::string_view InputWindow::UpperEnd(bool largest) const {
  const auto all = tree_.files(level_);
  if (level_ > 0) return largest ? all[upper_.last - 1]->largest : all[upper_.first]->smallest;
  std::string_view end = largest ? all[0]->largest : all[0]->smallest;
  for (size_t i = upper_.first; i < upper_.last; ++i) {
    if (largest && tree_.order().Less(end, all[i]->largest)) end = all[i]->largest;
    if (!largest && tree_.order().Less(all[i]->smallest, end)) end = all[i]->smallest;
  }
  return end;
}

std::string_view InputWindow::smallest() const {
  const std::string_view upper = UpperEnd(false);
  if (lower_.empty()) return upper;
  const std::string_view lower = tree_.files(level_below())[lower_.first]->smallest;
  return tree_.order().Less(lower, upper) ? lower : upper;
}

std::string_view InputWindow::largest() const {
  const std::string_view upper = UpperEnd(true);
  if (lower_.empty()) return upper;
  const std::string_view lower = tree_.files(level_below())[lower_.last - 1]->largest;
  return tree_.order().Less(upper, lower) ? lower : upper;
}

std::optional<std::string_view> InputWindow::NextKey() const {
  const auto all = tree_.files(level_);
  if (upper_.last == all.size()) return std::nullopt;
  const std::string_view next = all[upper_.last]->smallest;
  // When a compaction that writes there has ended, the file with that key may begin where the compaction does.
  const CompactionPick* const writer = tree_.WriterOf(level_, next, next);
  return writer == nullptr ? next : writer->smallest;
}

CompactionPick InputWindow::Pick() const {
  CompactionPick pick;
  const auto add = [&](int level, FileRange range) {
    if (range.empty()) return;
    auto& input = pick.inputs.emplace_back();
    input.level = level;
    for (size_t i = range.first; i < range.last; ++i) input.files.push_back(tree_.files(level)[i]->number);
  };
  add(level_, upper_);
  add(level_below(), lower_);
  pick.output_level = level_below();
  pick.smallest = smallest();
  pick.largest = largest();
  if (level_ > 0) {
    CompactionPick::Advance advance;
    advance.level = level_;
    if (const auto next = NextKey()) advance.key = *next;
    pick.advance = std::move(advance);
  }
  return pick;
}

CompactionPick InputWindow::Move() const {
  assert(lower_.empty());
  CompactionPick pick = Pick();
  pick.trivial_move = true;
  return pick;
}

std::optional<CompactionPick> PickLevel0(const LsmTree& tree, bool move) {
  const InputWindow window(tree, 0, {0, tree.files(0).size()});
  CompactionPick pick = move && window.upper().size() == 1 && window.lower().empty() ? window.Move() : window.Pick();
  if (tree.Conflicts(pick)) return std::nullopt;
  return pick;
}

std::optional<CompactionPick> PickByPointer(const LsmTree& tree, PickAt pick_at) {
  for (const int level : LevelsByNeed(tree)) {
    if (level == 0) {
      if (auto pick = PickLevel0(tree, true)) return pick;
      continue;
    }
    const size_t count = tree.files(level).size();
    const size_t first = FileBehindPointer(tree, level);
    for (size_t tried = 0; tried < std::min(count, kMostFilesTried); ++tried) {
      const size_t file = (first + tried) % count;
      if (tree.busy(*tree.files(level)[file])) continue;
      CompactionPick pick = pick_at(tree, level, file);
      if (!tree.Conflicts(pick)) return pick;
    }
  }
  return std::nullopt;
}

}  // namespace isozone
