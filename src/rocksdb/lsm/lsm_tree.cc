#include "rocksdb/lsm/lsm_tree.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace isozone {

LsmTree::LsmTree(LsmLimits limits, const KeyOrder& order) : limits_(std::move(limits)), order_(order) {
  assert(limits_.levels() >= 2 && limits_.levels() <= kMaxLsmLevels);
  assert(limits_.base_level >= 1 && limits_.base_level < limits_.levels());
}

void LsmTree::set_limits(LsmLimits limits) {
  assert(limits.levels() == limits_.levels() && limits.base_level >= 1 && limits.base_level < limits.levels());
  limits_ = std::move(limits);
}

uint64_t LsmTree::bytes(const CompactionPick& pick) const {
  uint64_t sum = 0;
  for (const CompactionPick::Input& input : pick.inputs) {
    for (const uint64_t number : input.files) sum += entries_.at(number).file.bytes;
  }
  return sum;
}

const LsmFile* LsmTree::Find(uint64_t number) const {
  const auto entry = entries_.find(number);
  return entry == entries_.end() ? nullptr : &entry->second.file;
}

size_t LsmTree::FirstEndingAt(int level, std::string_view key) const {
  const auto& files = At(level).files;
  const auto found = std::partition_point(files.begin(), files.end(),
                                          [&](const LsmFile* file) { return order_.Less(file->largest, key); });
  return static_cast<size_t>(found - files.begin());
}

size_t LsmTree::FirstBeginningAfter(int level, std::string_view key) const {
  const auto& files = At(level).files;
  const auto found = std::partition_point(files.begin(), files.end(),
                                          [&](const LsmFile* file) { return !order_.Less(key, file->smallest); });
  return static_cast<size_t>(found - files.begin());
}

size_t LsmTree::IndexOf(int level, const LsmFile& file) const {
  const auto& files = At(level).files;
  // Neighbours may share a key, so the file is at the place of its first key or a little behind it.
  const size_t first = level == 0 ? 0 : FirstEndingAt(level, file.smallest);
  const auto found = std::find(files.begin() + static_cast<ptrdiff_t>(first), files.end(), &file);
  assert(found != files.end());
  return static_cast<size_t>(found - files.begin());
}

Status LsmTree::AddFile(int level, LsmFile file) {
  if (level < 0 || level >= limits_.levels())
    return Status::InvalidArgument(fmt::format("the tree has no level {}", level));
  if (order_.Less(file.largest, file.smallest)) {
    return Status::InvalidArgument(fmt::format("file {} ends before it begins", file.number));
  }
  if (entries_.contains(file.number)) {
    return Status::InvalidArgument(fmt::format("the tree has a file {} already", file.number));
  }
  if (level > 0) {
    // Those that reach into the range may touch it in one key only.
    const auto& files = At(level).files;
    for (size_t i = FirstEndingAt(level, file.smallest); i < FirstBeginningAfter(level, file.largest); ++i) {
      const bool touches_left = order_.Compare(files[i]->largest, file.smallest) == 0;
      const bool touches_right = order_.Compare(files[i]->smallest, file.largest) == 0;
      if (touches_left != touches_right) continue;
      return Status::InvalidArgument(
          fmt::format("file {} overlaps file {} of level {}", file.number, files[i]->number, level));
    }
  }
  std::vector<LsmFile> one;
  one.push_back(std::move(file));
  Put(level, std::move(one));
  return {};
}

Status LsmTree::RemoveFile(uint64_t number) {
  const auto entry = entries_.find(number);
  if (entry == entries_.end()) return Status::NotFound(fmt::format("the tree has no file {}", number));
  if (entry->second.job != 0) return Status::Busy(fmt::format("file {} is being compacted", number));
  Take({.level = entry->second.level, .files = {number}});
  return {};
}

bool LsmTree::Conflicts(const CompactionPick& pick) const {
  for (const auto& input : pick.inputs) {
    for (const uint64_t number : input.files) {
      const auto entry = entries_.find(number);
      if (entry == entries_.end() || entry->second.job != 0) return true;
    }
  }
  // Each of the two writes to, or passes, the levels from below its first one down to its output. Where they have one
  // in common and the ranges overlap, files would overlap, or newer data sink below older data.
  return std::any_of(running_.begin(), running_.end(), [&](const auto& running) {
    const CompactionPick& other = running.second.pick;
    if (pick.start_level() >= other.output_level || other.start_level() >= pick.output_level) return false;
    return !order_.Less(pick.largest, other.smallest) && !order_.Less(other.largest, pick.smallest);
  });
}

const CompactionPick* LsmTree::WriterOf(int level, std::string_view smallest, std::string_view largest) const {
  for (const auto& [job, running] : running_) {
    const CompactionPick& pick = running.pick;
    if (pick.output_level == level && !order_.Less(largest, pick.smallest) && !order_.Less(pick.largest, smallest)) {
      return &pick;
    }
  }
  return nullptr;
}

// The files exist, are all in the level, and are contiguous there; of level 0, the oldest ones.
Status LsmTree::CheckInput(const CompactionPick::Input& input) const {
  const auto wrong = [&](std::string_view why) {
    return Status::InvalidArgument(fmt::format("inputs of level {}: {}", input.level, why));
  };
  if (input.files.empty()) return wrong("there are none");
  const auto first = entries_.find(input.files.front());
  if (first == entries_.end() || first->second.level != input.level) return wrong("no such file");
  const auto& files = At(input.level).files;
  const size_t begin = IndexOf(input.level, first->second.file);
  const size_t end = begin + input.files.size();
  if (end > files.size()) return wrong("not contiguous");
  for (size_t i = begin; i < end; ++i) {
    if (files[i]->number != input.files[i - begin]) return wrong("not contiguous");
  }
  if (input.level == 0) return begin == 0 ? Status() : wrong("older files are left");
  if (begin > 0 && order_.Compare(files[begin - 1]->largest, files[begin]->smallest) == 0) {
    return wrong("a user key is shared with the file before");
  }
  if (end < files.size() && order_.Compare(files[end - 1]->largest, files[end]->smallest) == 0) {
    return wrong("a user key is shared with the file behind");
  }
  return {};
}

// From the first level down, whatever overlaps the inputs above is an input, too; and the range is that of the inputs.
Status LsmTree::CheckCovers(const CompactionPick& pick) const {
  std::string_view smallest;
  std::string_view largest;
  bool any = false;
  size_t next = 0;
  for (int level = pick.start_level(); level <= pick.output_level; ++level) {
    const bool named = next < pick.inputs.size() && pick.inputs[next].level == level;
    if (level > pick.start_level()) {
      const size_t first = FirstEndingAt(level, smallest);
      const size_t last = FirstBeginningAfter(level, largest);
      const size_t begin = named ? IndexOf(level, entries_.at(pick.inputs[next].files.front()).file) : 0;
      const size_t end = named ? begin + pick.inputs[next].files.size() : 0;
      if (first < last && (first < begin || last > end)) {
        return Status::InvalidArgument(
            fmt::format("a file of level {} overlaps the inputs and is none of them", level));
      }
    }
    if (!named) continue;
    for (const uint64_t number : pick.inputs[next++].files) {
      const LsmFile& file = entries_.at(number).file;
      if (!any || order_.Less(file.smallest, smallest)) smallest = file.smallest;
      if (!any || order_.Less(largest, file.largest)) largest = file.largest;
      any = true;
    }
  }
  if (smallest != pick.smallest || largest != pick.largest) {
    return Status::InvalidArgument("the range is not that of the inputs");
  }
  return {};
}

Status LsmTree::Check(const CompactionPick& pick) const {
  if (pick.inputs.empty()) return Status::InvalidArgument("a compaction without inputs");
  const int start = pick.start_level();
  if (start < 0 || pick.output_level <= start || pick.output_level >= limits_.levels()) {
    return Status::InvalidArgument(fmt::format("a compaction from level {} to level {}", start, pick.output_level));
  }
  for (size_t i = 0; i < pick.inputs.size(); ++i) {
    const int level = pick.inputs[i].level;
    if (level > pick.output_level || (i > 0 && level <= pick.inputs[i - 1].level)) {
      return Status::InvalidArgument("the levels of the inputs are out of order");
    }
    ISOZONE_RETURN_IF_ERROR(CheckInput(pick.inputs[i]));
  }
  if (pick.trivial_move && (pick.inputs.size() > 1 || (start == 0 && pick.inputs.front().files.size() > 1))) {
    return Status::InvalidArgument("a trivial move of files that may overlap");
  }
  return CheckCovers(pick);
}

void LsmTree::SetJob(const CompactionPick& pick, CompactionJob job) {
  for (const auto& input : pick.inputs) {
    for (const uint64_t number : input.files) {
      Entry& entry = entries_.at(number);
      uint64_t& busy = At(input.level).busy_bytes;
      if (job != 0) {
        busy += entry.file.bytes;
      } else {
        busy -= entry.file.bytes;
      }
      entry.job = job;
    }
  }
}

Result<CompactionJob> LsmTree::Begin(const CompactionPick& pick) {
  ISOZONE_RETURN_IF_ERROR(Check(pick));
  if (Conflicts(pick)) return Status::Busy("the compaction conflicts with one that runs");
  Running running{pick, {}};
  if (pick.advance) {
    running.pointer_before = pointers_.Get(pick.advance->level);
    pointers_.Set(pick.advance->level, pick.advance->key);
  }
  SetJob(pick, ++last_job_);
  running_.emplace(last_job_, std::move(running));
  return last_job_;
}

Status LsmTree::Abandon(CompactionJob job) {
  const auto running = running_.find(job);
  if (running == running_.end()) return Status::NotFound("no such compaction runs");
  const auto& advance = running->second.pick.advance;
  // A later one of the level may have advanced further; it goes on from there.
  if (advance && pointers_.Get(advance->level) == advance->key) {
    pointers_.Set(advance->level, running->second.pointer_before);
  }
  SetJob(running->second.pick, 0);
  running_.erase(running);
  return {};
}

Status LsmTree::CheckOutputs(const CompactionPick& pick, const std::vector<LsmFile>& outputs) const {
  if (pick.trivial_move && !outputs.empty()) return Status::InvalidArgument("a trivial move has no outputs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    const LsmFile& file = outputs[i];
    const bool sorted =
        !order_.Less(file.largest, file.smallest) && (i == 0 || !order_.Less(file.smallest, outputs[i - 1].largest));
    const bool within = !order_.Less(file.smallest, pick.smallest) && !order_.Less(pick.largest, file.largest);
    if (!sorted || !within)
      return Status::InvalidArgument(fmt::format("output {} is out of order or range", file.number));
    if (entries_.contains(file.number)) {
      return Status::InvalidArgument(fmt::format("the tree has a file {} already", file.number));
    }
  }
  return {};
}

Status LsmTree::Finish(CompactionJob job, std::vector<LsmFile> outputs) {
  const auto running = running_.find(job);
  if (running == running_.end()) return Status::NotFound("no such compaction runs");
  const CompactionPick& pick = running->second.pick;
  ISOZONE_RETURN_IF_ERROR(CheckOutputs(pick, outputs));
  SetJob(pick, 0);
  for (const auto& input : pick.inputs) {
    std::vector<LsmFile> taken = Take(input);
    if (pick.trivial_move) outputs = std::move(taken);
  }
  Put(pick.output_level, std::move(outputs));
  running_.erase(running);
  return {};
}

std::vector<LsmFile> LsmTree::Take(const CompactionPick::Input& input) {
  Level& level = At(input.level);
  // Outputs of another compaction may have come between the inputs since.
  const auto begin =
      level.files.begin() + static_cast<ptrdiff_t>(IndexOf(input.level, entries_.at(input.files.front()).file));
  size_t next = 0;
  auto kept = begin;
  auto file = begin;
  for (; next < input.files.size(); ++file) {
    if ((*file)->number == input.files[next]) {
      ++next;
    } else {
      *kept++ = *file;
    }
  }
  level.files.erase(kept, file);
  std::vector<LsmFile> taken;
  for (const uint64_t number : input.files) {
    auto entry = entries_.extract(number);
    LsmFile& file = entry.mapped().file;
    level.bytes -= file.bytes;
    level.zones.Remove(file);
    if (file.short_lived) level.short_lived.erase(number);
    taken.push_back(std::move(file));
  }
  return taken;
}

void LsmTree::Put(int level_number, std::vector<LsmFile> files) {
  if (files.empty()) return;
  Level& level = At(level_number);
  // Neighbours that share a key with the new files: the first one lies before them, the last one behind.
  size_t place = level.files.size();
  if (level_number > 0) {
    place = FirstEndingAt(level_number, files.front().smallest);
    const auto lies_before = [&](const LsmFile& file) {
      return order_.Less(file.smallest, files.front().smallest) || !order_.Less(files.front().smallest, file.largest);
    };
    while (place < level.files.size() && lies_before(*level.files[place])) ++place;
  }
  std::vector<const LsmFile*> added;
  for (LsmFile& file : files) {
    const uint64_t number = file.number;
    Entry& entry = entries_[number];
    entry.file = std::move(file);
    entry.level = level_number;
    level.bytes += entry.file.bytes;
    level.zones.Add(entry.file);
    if (entry.file.short_lived) level.short_lived.emplace(number, &entry.file);
    added.push_back(&entry.file);
  }
  level.files.insert(level.files.begin() + static_cast<ptrdiff_t>(place), added.begin(), added.end());
}

}  // namespace isozone
