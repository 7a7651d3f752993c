// An LSM tree with content, in memory: carries out decisions on exact keys, so that pickers can be tested, measured and
// simulated without a database.
//
// A record is a key, the number of its Put, and whether it deletes. Which of two records of a key is the newer one is
// told by where they lie, as in a database, and not by their numbers; so a decision that shadows wrongly shows.
// A record that deletes is dropped where nothing below holds files.
//
// A table is made (NewTable, Merge) before it is in the tree (AddTable, Install), so that writing it may take time.
// Flush and Run do both at once.
//
// A merge takes time in proportion to its records, and to the logarithm of the number of its sorted runs: one for each
// file of level 0, and one for each other level.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "rocksdb/lsm/lsm_tree.h"

namespace isozone {

struct ModelRecord {
  uint32_t key = 0;
  uint32_t put = 0;
  bool deletes = false;
  bool operator==(const ModelRecord&) const = default;
};

class MergeModel {
 public:
  // Chooses where a file is written: it is given the level and a file with its size, and sets the zones.
  using Place = std::function<void(int level, LsmFile& file)>;
  // Is told of a file that is removed, whose zones may be free now.
  using Release = std::function<void(const LsmFile& file)>;

  // Tables hold records of `record_bytes`.
  MergeModel(LsmLimits limits, uint64_t record_bytes);

  // Sets what is called from here on: `place` for each file that Flush, Ingest and Finish write, `release` for each
  // input of a compaction that is installed.
  void Observe(Place place, Release release);

  const LsmTree& tree() const { return tree_; }
  LsmTree& tree() { return tree_; }

  // Writes a table and adds it to level 0. The records are sorted by key, without duplicates, and not empty.
  Status Flush(std::vector<ModelRecord> records);
  // Writes a table and adds it to a level, to build a tree that exists already. Records as for Flush.
  Status Ingest(int level, std::vector<ModelRecord> records);
  // Makes a table that is not yet in the tree. Records as for Flush.
  LsmFile NewTable(std::vector<ModelRecord> records, bool short_lived = false);
  // Adds a table of NewTable as the newest one of level 0.
  Status AddTable(LsmFile table);

  Result<CompactionJob> Begin(const CompactionPick& pick);
  // Returns the outputs of a running compaction that is no trivial move. They are not yet in the tree.
  Result<std::vector<LsmFile>> Merge(CompactionJob job);
  // Ends a compaction: the outputs of Merge replace its inputs. A trivial move has none.
  Status Install(CompactionJob job, std::vector<LsmFile> outputs);
  // Merges, places the outputs and installs them.
  Status Finish(CompactionJob job);
  Status Abandon(CompactionJob job);
  // Begins a compaction and finishes it.
  Status Run(const CompactionPick& pick);

  // Returns the number of the newest Put of the key, or nothing if it was never put or is deleted.
  std::optional<uint64_t> Get(uint64_t key) const;

  uint64_t flushed_bytes() const { return flushed_bytes_; }
  uint64_t compacted_bytes() const { return compacted_bytes_; }  // written by compactions, short-lived ones included
  uint64_t short_lived_bytes() const { return short_lived_bytes_; }
  uint64_t trivial_moves() const { return trivial_moves_; }  // files

  // The text form of a key is its eight bytes, the highest first, so that texts sort like the numbers.
  static std::string KeyText(uint64_t key);
  static uint64_t KeyOf(std::string_view text);

 private:
  using Records = std::vector<ModelRecord>;

  Records MergeInputs(const CompactionPick& pick) const;
  bool AnythingBelow(int level) const;
  std::vector<LsmFile> CutOutputs(const CompactionPick& pick, const Records& records);

  LsmTree tree_;
  const uint64_t record_bytes_;
  Place place_;
  Release release_;
  std::unordered_map<uint64_t, Records> content_;  // by file
  std::unordered_map<CompactionJob, CompactionPick> running_;
  uint64_t last_file_ = 0;
  uint64_t flushed_bytes_ = 0;
  uint64_t compacted_bytes_ = 0;
  uint64_t short_lived_bytes_ = 0;
  uint64_t trivial_moves_ = 0;
};

}  // namespace isozone
