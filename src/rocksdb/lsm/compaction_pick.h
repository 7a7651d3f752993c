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

// User keys from `begin` on; up to, and without, `end`, or without an end.
struct KeySpan {
  std::string begin;
  std::optional<std::string> end;
  bool operator==(const KeySpan&) const = default;
};

struct CompactionPick {
  struct Input {
    int level = 0;
    std::vector<uint64_t> files;  // numbers: of level 0 oldest first, of others by key
    bool operator==(const Input&) const = default;
  };
  // Sets the compaction pointer of a level; an empty key is the beginning of the level.
  struct Advance {
    int level = 0;
    std::optional<std::string> key;
    bool operator==(const Advance&) const = default;
  };

  std::vector<Input> inputs;  // ascending by level; the first one is not empty, others may be left out
  int output_level = 0;
  bool trivial_move = false;  // the files of the only input change their level and are not written
  std::string smallest;       // of all inputs, both included; outputs lie within
  std::string largest;

  // An output ends before each of these. Ascending.
  std::vector<std::string> cut_keys;
  // The same for an output that has `preferred_cut_bytes` already. Ascending.
  std::vector<std::string> preferred_cut_keys;
  uint64_t preferred_cut_bytes = 0;
  // An output that begins in one of these will be an input again soon. Ascending, disjoint.
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
