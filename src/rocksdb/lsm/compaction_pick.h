// The decision of a picker: what is compacted, where it goes, and where its outputs are cut.
//
// It is one that RocksDB's CompactFiles executes as it is, without adding a file on its own: the inputs of a level are
// contiguous and share no user key with what is left, inputs of lower levels are all that overlap those above them, and
// of level 0 an input brings everything older along. LsmTree::Begin refuses anything else.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rocksdb/lsm/key_order.h"

namespace isozone {

// The user keys from `begin` up to, but without, `end`; without an `end`, all keys from `begin` on.
struct KeySpan {
  std::string begin;
  std::optional<std::string> end;
  bool operator==(const KeySpan&) const = default;
};

struct CompactionPick {
  struct Input {
    int level = 0;
    std::vector<uint64_t> files;  // numbers; in level 0 from the oldest to the newest, else in key order
    bool operator==(const Input&) const = default;
  };
  // The new compaction pointer of a level. An empty key stands for the beginning of the level.
  struct Advance {
    int level = 0;
    std::optional<std::string> key;
    bool operator==(const Advance&) const = default;
  };

  std::vector<Input> inputs;  // ascending by level; the first one is not empty, others may be left out
  int output_level = 0;
  bool trivial_move = false;  // the files of the only input change their level and are not written
  std::string smallest;       // the smallest and largest key of all inputs, both included; outputs lie between them
  std::string largest;

  // Each of these keys begins a new output. They are sorted.
  std::vector<std::string> cut_keys;
  // Each of these keys begins a new output if the one before it has reached `preferred_cut_bytes`. They are sorted.
  std::vector<std::string> preferred_cut_keys;
  uint64_t preferred_cut_bytes = 0;
  // An output whose first key lies in one of these spans will soon be an input again. They are sorted and disjoint.
  std::vector<KeySpan> short_lived;
  std::optional<Advance> advance;

  int start_level() const { return inputs.front().level; }
  bool IsShortLived(const KeyOrder& order, std::string_view first_key) const {
    for (const KeySpan& span : short_lived) {
      if (!order.Less(first_key, span.begin) && (!span.end || order.Less(first_key, *span.end))) return true;
    }
    return false;
  }
  bool operator==(const CompactionPick&) const = default;
};

}  // namespace isozone
