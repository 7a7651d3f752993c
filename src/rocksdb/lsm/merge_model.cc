#include "rocksdb/lsm/merge_model.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace isozone {
namespace {

using Records = std::vector<ModelRecord>;

// The first of the keys at which outputs are cut, and the rest of them.
class Cuts {
 public:
  explicit Cuts(std::span<const std::string> keys) : keys_(keys) { Read(); }
  // Whether an output that ends with the key before `key` ends there. Passes the cuts up to `key`.
  bool PassedBefore(uint64_t key) {
    if (key < next_) return false;
    while (next_ <= key) Read();
    return true;
  }

 private:
  void Read() {
    next_ = keys_.empty() ? UINT64_MAX : MergeModel::KeyOf(keys_.front());
    if (!keys_.empty()) keys_ = keys_.subspan(1);
  }
  std::span<const std::string> keys_;
  uint64_t next_ = 0;
};

// Of a key that both have, `newer` wins.
Records MergeTwo(const Records& newer, const Records& older) {
  Records merged;
  merged.reserve(newer.size() + older.size());
  auto a = newer.begin();
  auto b = older.begin();
  while (a != newer.end() && b != older.end()) {
    if (b->key < a->key) {
      merged.push_back(*b++);
      continue;
    }
    if (b->key == a->key) ++b;
    merged.push_back(*a++);
  }
  merged.insert(merged.end(), a, newer.end());
  merged.insert(merged.end(), b, older.end());
  return merged;
}

// Of sorted runs, the newest first. Neighbours are merged in pairs, so that each record is copied as seldom as
// possible.
Records MergeRuns(std::vector<Records> runs) {
  while (runs.size() > 1) {
    std::vector<Records> merged;
    for (size_t i = 0; i + 1 < runs.size(); i += 2) merged.push_back(MergeTwo(runs[i], runs[i + 1]));
    if (runs.size() % 2 == 1) merged.push_back(std::move(runs.back()));
    runs = std::move(merged);
  }
  return runs.empty() ? Records() : std::move(runs.front());
}

const ModelRecord* FindRecord(std::span<const ModelRecord> records, uint64_t key) {
  const auto found =
      std::lower_bound(records.begin(), records.end(), key, [](const ModelRecord& r, uint64_t k) { return r.key < k; });
  return found != records.end() && found->key == key ? &*found : nullptr;
}

}  // namespace

MergeModel::MergeModel(LsmLimits limits, uint64_t record_bytes)
    : tree_(std::move(limits)), record_bytes_(record_bytes) {}

void MergeModel::Observe(Place place, Release release) {
  place_ = std::move(place);
  release_ = std::move(release);
}

std::string MergeModel::KeyText(uint64_t key) {
  std::string text(8, '\0');
  for (int i = 7; i >= 0; --i, key >>= 8) text[static_cast<size_t>(i)] = static_cast<char>(key & 0xFF);
  return text;
}

uint64_t MergeModel::KeyOf(std::string_view text) {
  uint64_t key = 0;
  for (const char byte : text) key = key << 8 | static_cast<uint8_t>(byte);
  return key;
}

LsmFile MergeModel::NewTable(std::vector<ModelRecord> records, bool short_lived) {
  LsmFile file;
  file.number = ++last_file_;
  file.smallest = KeyText(records.front().key);
  file.largest = KeyText(records.back().key);
  file.bytes = records.size() * record_bytes_;
  file.short_lived = short_lived;
  content_.emplace(file.number, std::move(records));
  return file;
}

Status MergeModel::AddTable(LsmFile table) {
  flushed_bytes_ += table.bytes;
  return tree_.AddFile(0, std::move(table));
}

Status MergeModel::Flush(std::vector<ModelRecord> records) {
  LsmFile table = NewTable(std::move(records));
  if (place_) place_(0, table);
  return AddTable(std::move(table));
}

Status MergeModel::Ingest(int level, std::vector<ModelRecord> records) {
  LsmFile table = NewTable(std::move(records));
  if (place_) place_(level, table);
  return tree_.AddFile(level, std::move(table));
}

Result<CompactionJob> MergeModel::Begin(const CompactionPick& pick) {
  ISOZONE_ASSIGN_OR_RETURN(const CompactionJob job, tree_.Begin(pick));
  running_.emplace(job, pick);
  return job;
}

Status MergeModel::Abandon(CompactionJob job) {
  running_.erase(job);
  return tree_.Abandon(job);
}

Status MergeModel::Run(const CompactionPick& pick) {
  ISOZONE_ASSIGN_OR_RETURN(const CompactionJob job, Begin(pick));
  return Finish(job);
}

Status MergeModel::Finish(CompactionJob job) {
  const auto running = running_.find(job);
  if (running == running_.end()) return Status::NotFound("no such compaction runs");
  if (running->second.trivial_move) return Install(job, {});
  const int level = running->second.output_level;
  ISOZONE_ASSIGN_OR_RETURN(std::vector<LsmFile> outputs, Merge(job));
  for (LsmFile& file : outputs) {
    if (place_) place_(level, file);
  }
  return Install(job, std::move(outputs));
}

Result<std::vector<LsmFile>> MergeModel::Merge(CompactionJob job) {
  const auto running = running_.find(job);
  if (running == running_.end()) return Status::NotFound("no such compaction runs");
  return CutOutputs(running->second, MergeInputs(running->second));
}

Status MergeModel::Install(CompactionJob job, std::vector<LsmFile> outputs) {
  const auto running = running_.find(job);
  if (running == running_.end()) return Status::NotFound("no such compaction runs");
  const CompactionPick pick = std::move(running->second);
  running_.erase(running);
  if (pick.trivial_move) {
    trivial_moves_ += pick.inputs.front().files.size();
    return tree_.Finish(job, {});
  }
  for (const LsmFile& file : outputs) {
    compacted_bytes_ += file.bytes;
    if (file.short_lived) short_lived_bytes_ += file.bytes;
  }
  for (const auto& input : pick.inputs) {
    for (const uint64_t number : input.files) {
      if (release_) release_(*tree_.Find(number));
      content_.erase(number);
    }
  }
  return tree_.Finish(job, std::move(outputs));
}

MergeModel::Records MergeModel::MergeInputs(const CompactionPick& pick) const {
  std::vector<Records> runs;
  for (const auto& input : pick.inputs) {
    if (input.level == 0) {
      for (auto file = input.files.rbegin(); file != input.files.rend(); ++file) runs.push_back(content_.at(*file));
      continue;
    }
    Records& run = runs.emplace_back();
    for (const uint64_t file : input.files) {
      const Records& records = content_.at(file);
      run.insert(run.end(), records.begin(), records.end());
    }
  }
  Records merged = MergeRuns(std::move(runs));
  if (!AnythingBelow(pick.output_level)) std::erase_if(merged, [](const ModelRecord& r) { return r.deletes; });
  return merged;
}

bool MergeModel::AnythingBelow(int level) const {
  for (int below = level + 1; below < tree_.limits().levels(); ++below) {
    if (!tree_.files(below).empty()) return true;
  }
  return false;
}

std::vector<LsmFile> MergeModel::CutOutputs(const CompactionPick& pick, const Records& records) {
  std::vector<LsmFile> outputs;
  Cuts cuts(pick.cut_keys);
  Cuts preferred(pick.preferred_cut_keys);
  auto first = records.begin();  // of the output that is open
  const auto close_before = [&](Records::const_iterator end) {
    if (first == end) return;
    const bool short_lived = pick.IsShortLived(tree_.order(), KeyText(first->key));
    outputs.push_back(NewTable({first, end}, short_lived));
    first = end;
  };
  for (auto record = records.begin(); record != records.end(); ++record) {
    const uint64_t bytes = static_cast<uint64_t>(record - first) * record_bytes_;
    const bool cut = cuts.PassedBefore(record->key);
    const bool passes = preferred.PassedBefore(record->key);
    if (cut || bytes >= tree_.limits().table_bytes || (passes && bytes >= pick.preferred_cut_bytes)) {
      close_before(record);
    }
  }
  close_before(records.end());
  return outputs;
}

std::optional<uint64_t> MergeModel::Get(uint64_t key) const {
  const std::string text = KeyText(key);
  const auto look_in = [&](const LsmFile& file) -> const ModelRecord* {
    return FindRecord(content_.at(file.number), key);
  };
  const ModelRecord* found = nullptr;
  const auto level0 = tree_.files(0);
  for (size_t i = level0.size(); i > 0 && found == nullptr; --i) found = look_in(*level0[i - 1]);
  for (int level = 1; level < tree_.limits().levels() && found == nullptr; ++level) {
    const size_t at = tree_.FirstEndingAt(level, text);
    if (at < tree_.files(level).size()) found = look_in(*tree_.files(level)[at]);
  }
  if (found == nullptr || found->deletes) return std::nullopt;
  return found->put;
}

}  // namespace isozone
