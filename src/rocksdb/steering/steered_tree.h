// What a driver knows of its column family: the LSM tree as RocksDB's metadata has it, with what the driver compacts,
// and what may begin in it.
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

#include <cstddef>
#include <cstdint>
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

// The name by which RocksDB's functions know the table.
std::string TableName(uint64_t number);

class SteeredTree {
 public:
  // A compaction that has begun.
  struct Compaction {
    CompactionPick pick = {};
    CompactionJob job = 0;
    uint64_t table_bytes = 0;  // the size of outputs
  };

  // The order must outlive the tree.
  SteeredTree(std::unique_ptr<CompactionPicker> picker, const KeyOrder& order, const SteeredShape& shape);

  // The tree becomes what `metadata` says, but for what is being compacted, and has the limits of `shape` on a device
  // with so many free bytes.
  void Update(const SteeredShape& shape, const rocksdb::ColumnFamilyMetaData& metadata, uint64_t free_bytes);

  bool compacts() const { return running_bytes() > 0; }
  // Whether something is to be compacted, beside what runs.
  bool has_next() const { return picker_->Pick(tree_).has_value(); }

  // Whether a flush may begin for which compactions have written so many bytes.
  bool MayFlush(uint64_t free_bytes, uint64_t written_bytes) const;
  // Begins the next compaction, if there is one and room for it beside `flushes` that run. The flush that has waited
  // longest waits for those `written_bytes`. kCorruption: the picker chose what cannot be begun.
  Result<std::optional<Compaction>> Begin(uint64_t free_bytes, size_t flushes, uint64_t written_bytes);
  // RocksDB has compacted into `outputs`, which are paths; `metadata` is from after that. Returns what was done.
  ColumnFamilyDriverStats Finish(const Compaction& done, const rocksdb::ColumnFamilyMetaData& metadata,
                                 const std::vector<std::string>& outputs);
  // RocksDB has refused the compaction, or it has failed.
  void Abandon(const Compaction& begun) { (void)tree_.Abandon(begun.job); }

  const CompactionPointers& pointers() const { return tree_.pointers(); }
  void set_pointers(CompactionPointers pointers) { tree_.pointers() = std::move(pointers); }

 private:
  // Of all inputs of what runs.
  uint64_t running_bytes() const;
  CompactionRoom RoomFor(const std::optional<CompactionPick>& next, uint64_t free_bytes, uint64_t written_bytes) const;
  void RemoveGone(const rocksdb::ColumnFamilyMetaData& metadata);
  void AddMissing(const rocksdb::ColumnFamilyMetaData& metadata);
  // The files of the output level that are among `outputs`.
  std::vector<LsmFile> OutputsIn(const CompactionPick& pick, const rocksdb::ColumnFamilyMetaData& metadata,
                                 const std::vector<std::string>& outputs) const;

  const std::unique_ptr<CompactionPicker> picker_;
  SteeredShape shape_;
  LsmTree tree_;
};

}  // namespace isozone
