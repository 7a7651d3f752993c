// SteeredTree is what a driver knows of its column family: the LSM tree as RocksDB's metadata has it, with what the
// driver compacts, and what may begin in it.
//
// Update brings the tree up to date, after each flush and each compaction. Whatever else has changed it in between
// (DeleteFilesInRange, ingestion, CompactRange) is found so, too. Tables that a running compaction may have written are
// left to its end, which tells which of them are short-lived.
//
// Space. A compaction has its inputs and its outputs on the device at once. As long as one runs or can be picked, a
// flush leaves the space that it needs, and so does every other compaction (rocksdb/lsm/steered_shape.h). The less
// space there is, the less the picker isozone takes at a time. So the tree becomes compact where space runs short,
// instead of growing until nothing fits.
//
// Thread safety: none, and no threads, clock or database of its own; whoever has it serialises calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rocksdb/metadata.h>

#include "base/status.h"
#include "rocksdb/lsm/compaction_picker.h"
#include "rocksdb/lsm/key_order.h"
#include "rocksdb/lsm/lsm_tree.h"
#include "rocksdb/lsm/steered_shape.h"
#include "rocksdb/steering/driver_stats.h"

namespace isozone {

// Returns the name by which RocksDB's functions know a table: "/000012.sst".
std::string TableName(uint64_t number);

class SteeredTree {
 public:
  // A compaction that has begun.
  struct Compaction {
    CompactionPick pick = {};
    CompactionJob job = 0;
    uint64_t table_bytes = 0;  // how large outputs become at most
    // What the outputs have so far. The thread that compacts keeps it up to date; where it cannot, it stays 0.
    std::shared_ptr<std::atomic<uint64_t>> written_bytes = {};
  };

  // Makes an empty tree, of which `picker` chooses what is compacted. `order` must outlive it.
  SteeredTree(std::unique_ptr<CompactionPicker> picker, const KeyOrder& order, const SteeredShape& shape);

  // Makes the tree what `metadata` says, but for what is being compacted, with the limits of `shape` on a device that
  // has `free_bytes`.
  void Update(const SteeredShape& shape, const rocksdb::ColumnFamilyMetaData& metadata, uint64_t free_bytes);

  // Returns whether a compaction runs.
  bool compacts() const { return !running_.empty(); }
  // Returns what the compactions that run have written, at most what they read.
  uint64_t running_written_bytes() const;
  // Returns whether something is to be compacted, beside what runs.
  bool has_next() const { return picker_->Pick(tree_).has_value(); }

  // Returns whether a flush may begin, where compactions have written `written_bytes` while it waited.
  bool MayFlush(uint64_t free_bytes, uint64_t written_bytes) const;
  // Begins the next compaction and returns it, if there is one, and room for it beside the `flushes` flushes that run;
  // else nothing. Compactions have written `written_bytes` while the flush that has waited longest waited. kCorruption
  // if the picker chose what cannot be begun.
  Result<std::optional<Compaction>> Begin(uint64_t free_bytes, size_t flushes, uint64_t written_bytes);
  // Ends a compaction that RocksDB has executed. `outputs` are the paths of its tables, and `metadata` was asked for
  // after that. Returns the counts of this compaction.
  ColumnFamilyDriverStats Finish(const Compaction& done, const rocksdb::ColumnFamilyMetaData& metadata,
                                 const std::vector<std::string>& outputs);
  // Ends a compaction that RocksDB has refused, or that has failed.
  void Abandon(const Compaction& begun);

  const CompactionPointers& pointers() const { return tree_.pointers(); }
  void set_pointers(CompactionPointers pointers) { tree_.pointers() = std::move(pointers); }

 private:
  // Returns what bears on whether something may begin, where `next` would be the next compaction.
  CompactionRoom RoomFor(const std::optional<CompactionPick>& next, uint64_t free_bytes, uint64_t written_bytes) const;
  // Remove the tables that RocksDB no longer has, and add those that the tree does not have.
  void RemoveGone(const rocksdb::ColumnFamilyMetaData& metadata);
  void AddMissing(const rocksdb::ColumnFamilyMetaData& metadata);
  // Returns the files of the output level that are among `outputs`.
  std::vector<LsmFile> OutputsIn(const CompactionPick& pick, const rocksdb::ColumnFamilyMetaData& metadata,
                                 const std::vector<std::string>& outputs) const;

  const std::unique_ptr<CompactionPicker> picker_;
  SteeredShape shape_;
  LsmTree tree_;
  struct Running {
    uint64_t input_bytes = 0;
    std::shared_ptr<std::atomic<uint64_t>> written_bytes;
  };
  std::map<CompactionJob, Running> running_;
};

}  // namespace isozone
