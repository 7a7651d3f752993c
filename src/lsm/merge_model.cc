#include "lsm/merge_model.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace isozone {
namespace {

// Whether an output that ends with the key before `key` ends there because of `cuts`. Takes cuts that lie behind.
bool CutsBefore(std::span<const std::string>& cuts, std::string_view key) {
  bool cut = false;
  while (!cuts.empty() && cuts.front() <= key) {
    cut = true;
    cuts = cuts.subspan(1);
  }
  return cut;
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

LsmFile MergeModel::NewFile(int level, std::vector<ModelRecord> records, bool short_lived) {
  LsmFile file;
  file.number = ++last_file_;
  file.smallest = KeyText(records.front().key);
  file.largest = KeyText(records.back().key);
  file.bytes = records.size() * record_bytes_;
  file.short_lived = short_lived;
  if (place_) place_(level, file);
  content_.emplace(file.number, std::move(records));
  return file;
}

Status MergeModel::Flush(std::vector<ModelRecord> records) {
  flushed_bytes_ += records.size() * record_bytes_;
  return Ingest(0, std::move(records));
}

Status MergeModel::Ingest(int level, std::vector<ModelRecord> records) {
  return tree_.AddFile(level, NewFile(level, std::move(records), false));
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
  const CompactionPick pick = std::move(running->second);
  running_.erase(running);
  if (pick.trivial_move) {
    trivial_moves_ += pick.inputs.front().files.size();
    return tree_.Finish(job, {});
  }
  std::vector<LsmFile> outputs = WriteOutputs(pick, Merge(pick));
  for (const auto& input : pick.inputs) {
    for (const uint64_t number : input.files) {
      if (release_) release_(*tree_.Find(number));
      content_.erase(number);
    }
  }
  return tree_.Finish(job, std::move(outputs));
}

// What is newer comes first of each key, and stays alone.
std::vector<ModelRecord> MergeModel::Merge(const CompactionPick& pick) const {
  std::vector<ModelRecord> merged;
  const auto add = [&](uint64_t file) {
    const auto& records = content_.at(file);
    merged.insert(merged.end(), records.begin(), records.end());
  };
  for (const auto& input : pick.inputs) {
    if (input.level == 0) {
      std::for_each(input.files.rbegin(), input.files.rend(), add);
    } else {
      std::for_each(input.files.begin(), input.files.end(), add);
    }
  }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const ModelRecord& a, const ModelRecord& b) { return a.key < b.key; });
  merged.erase(std::unique(merged.begin(), merged.end(),
                           [](const ModelRecord& a, const ModelRecord& b) { return a.key == b.key; }),
               merged.end());
  if (!AnythingBelow(pick.output_level)) {
    merged.erase(std::remove_if(merged.begin(), merged.end(), [](const ModelRecord& r) { return r.deletes; }),
                 merged.end());
  }
  return merged;
}

bool MergeModel::AnythingBelow(int level) const {
  for (int below = level + 1; below < tree_.limits().levels(); ++below) {
    if (!tree_.files(below).empty()) return true;
  }
  return false;
}

std::vector<LsmFile> MergeModel::WriteOutputs(const CompactionPick& pick, const std::vector<ModelRecord>& records) {
  std::vector<LsmFile> outputs;
  std::vector<ModelRecord> open;
  std::span<const std::string> cuts = pick.cut_keys;
  std::span<const std::string> preferred = pick.preferred_cut_keys;
  const auto close = [&] {
    if (open.empty()) return;
    const bool short_lived = pick.IsShortLived(tree_.order(), KeyText(open.front().key));
    outputs.push_back(NewFile(pick.output_level, std::exchange(open, {}), short_lived));
    compacted_bytes_ += outputs.back().bytes;
    if (short_lived) short_lived_bytes_ += outputs.back().bytes;
  };
  for (const ModelRecord& record : records) {
    const std::string key = KeyText(record.key);
    const bool cut = CutsBefore(cuts, key);
    const bool passes = CutsBefore(preferred, key);
    if (cut || (passes && open.size() * record_bytes_ >= pick.preferred_cut_bytes)) close();
    open.push_back(record);
    if (open.size() * record_bytes_ >= tree_.limits().table_bytes) close();
  }
  close();
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
