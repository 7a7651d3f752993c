#include "rocksdb/steering/steered_tree.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace isozone {
namespace {

LsmFile AsLsmFile(const rocksdb::SstFileMetaData& file) {
  LsmFile result;
  result.number = file.file_number;
  result.smallest = file.smallestkey;
  result.largest = file.largestkey;
  result.bytes = file.size;
  return result;
}

}  // namespace

std::string TableName(uint64_t number) { return fmt::format("/{:06}.sst", number); }

SteeredTree::SteeredTree(std::unique_ptr<CompactionPicker> picker, const KeyOrder& order, const SteeredShape& shape)
    : picker_(std::move(picker)), shape_(shape), tree_(shape_.EmptyLimits(), order) {}

void SteeredTree::Update(const SteeredShape& shape, const rocksdb::ColumnFamilyMetaData& metadata,
                         uint64_t free_bytes) {
  shape_ = shape;
  RemoveGone(metadata);
  AddMissing(metadata);
  tree_.set_limits(shape_.LimitsFor(tree_, free_bytes));
}

void SteeredTree::RemoveGone(const rocksdb::ColumnFamilyMetaData& metadata) {
  for (int level = 0; level < tree_.limits().levels(); ++level) {
    std::unordered_set<uint64_t> there;
    for (const auto& file : metadata.levels[static_cast<size_t>(level)].files) there.insert(file.file_number);
    std::vector<uint64_t> gone;
    for (const LsmFile* file : tree_.files(level)) {
      if (!there.contains(file->number) && !tree_.busy(*file)) gone.push_back(file->number);
    }
    for (const uint64_t number : gone) (void)tree_.RemoveFile(number);
  }
}

void SteeredTree::AddMissing(const rocksdb::ColumnFamilyMetaData& metadata) {
  for (int level = 0; level < tree_.limits().levels(); ++level) {
    const auto& files = metadata.levels[static_cast<size_t>(level)].files;
    // In the order of the tree, so that each file is added behind those that are there: RocksDB lists the newest file
    // of level 0 first, and those of other levels by key.
    for (size_t i = 0; i < files.size(); ++i) {
      const auto& listed = files[level == 0 ? files.size() - 1 - i : i];
      LsmFile file = AsLsmFile(listed);
      if (tree_.Find(file.number) != nullptr || tree_.WriterOf(level, file.smallest, file.largest)) continue;
      const Status added = tree_.AddFile(level, std::move(file));
      if (!added.ok()) Log().warn("table {} is left out of the view: {}", listed.name, added.message());
    }
  }
}

uint64_t SteeredTree::running_written_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [job, running] : running_) {
    bytes += std::min(running.input_bytes, running.written_bytes->load(std::memory_order_relaxed));
  }
  return bytes;
}

// A compaction writes at most what it reads: what is dropped is not known before, nor whether RocksDB moves what it
// could move.
CompactionRoom SteeredTree::RoomFor(const std::optional<CompactionPick>& next, uint64_t free_bytes,
                                    uint64_t written_bytes) const {
  CompactionRoom room;
  room.free_bytes = free_bytes;
  room.running_written_bytes = running_written_bytes();
  if (compacts()) {
    uint64_t input_bytes = 0;
    for (const auto& [job, running] : running_) input_bytes += running.input_bytes;
    room.running_bytes = input_bytes - room.running_written_bytes;
  }
  if (next) room.next_bytes = tree_.bytes(*next);
  room.flush_bytes = shape_.flush_bytes();
  room.written_bytes_since_asked = written_bytes;
  return room;
}

bool SteeredTree::MayFlush(uint64_t free_bytes, uint64_t written_bytes) const {
  return shape_.MayFlush(tree_, RoomFor(picker_->Pick(tree_), free_bytes, written_bytes));
}

Result<std::optional<SteeredTree::Compaction>> SteeredTree::Begin(uint64_t free_bytes, size_t flushes,
                                                                  uint64_t written_bytes) {
  auto picked = picker_->Pick(tree_);
  CompactionRoom room = RoomFor(picked, free_bytes, written_bytes);
  room.flushing_bytes = flushes * shape_.memtable_bytes;
  if (!SteeredShape::MayCompact(room)) return std::optional<Compaction>();
  // RocksDB may write anew what could be moved. What it has done is taken from its metadata.
  const bool moves = std::exchange(picked->trivial_move, false);
  const auto job = tree_.Begin(*picked);
  if (!job.ok()) {
    return Status::Corruption(
        fmt::format("the picker '{}' chose what cannot be begun: {}", picker_->name(), job.status().message()));
  }
  picked->trivial_move = moves;
  auto progress = std::make_shared<std::atomic<uint64_t>>(0);
  running_.emplace(*job, Running{tree_.bytes(*picked), progress});
  return std::optional<Compaction>({std::move(*picked), *job, tree_.limits().table_bytes, std::move(progress)});
}

void SteeredTree::Abandon(const Compaction& begun) {
  running_.erase(begun.job);
  (void)tree_.Abandon(begun.job);
}

std::vector<LsmFile> SteeredTree::OutputsIn(const CompactionPick& pick, const rocksdb::ColumnFamilyMetaData& metadata,
                                            const std::vector<std::string>& outputs) const {
  std::vector<LsmFile> files;
  for (const rocksdb::SstFileMetaData& file : metadata.levels[static_cast<size_t>(pick.output_level)].files) {
    const auto is_it = [name = TableName(file.file_number)](const std::string& path) { return path.ends_with(name); };
    if (std::none_of(outputs.begin(), outputs.end(), is_it)) continue;
    files.push_back(AsLsmFile(file));
    files.back().short_lived = pick.IsShortLived(tree_.order(), files.back().smallest);
  }
  return files;
}

ColumnFamilyDriverStats SteeredTree::Finish(const Compaction& done, const rocksdb::ColumnFamilyMetaData& metadata,
                                            const std::vector<std::string>& outputs) {
  std::vector<LsmFile> written = OutputsIn(done.pick, metadata, outputs);
  ColumnFamilyDriverStats stats;
  stats.compactions = 1;
  // A table that is moved keeps its number.
  if (!written.empty() && tree_.Find(written.front().number) != nullptr) {
    stats.tables_moved = written.size();
  } else {
    stats.bytes_read = tree_.bytes(done.pick);
    for (const LsmFile& file : written) {
      stats.bytes_written += file.bytes;
      if (file.short_lived) stats.short_lived_bytes += file.bytes;
    }
  }
  running_.erase(done.job);
  // Tables that were moved have the numbers that they had, and somebody else may have changed the outputs already. The
  // inputs are gone in either case, and Update adds what is there.
  if (!tree_.Finish(done.job, std::move(written)).ok()) (void)tree_.Finish(done.job, {});
  return stats;
}

}  // namespace isozone
