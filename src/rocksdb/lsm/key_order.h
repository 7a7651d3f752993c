// The order of user keys, so that a tree can be sorted as the database that it describes is sorted.
//
// Thread safety: implementations are const and may be called from any thread.
#pragma once

#include <string_view>

namespace isozone {

class KeyOrder {
 public:
  virtual ~KeyOrder() = default;
  // Returns a number below, at or above 0 if `a` sorts before, like or behind `b`.
  virtual int Compare(std::string_view a, std::string_view b) const = 0;
  bool Less(std::string_view a, std::string_view b) const { return Compare(a, b) < 0; }
};

// Returns the order of keys as strings of unsigned bytes, where a prefix comes before longer keys. The object lives as
// long as the process.
const KeyOrder& BytewiseOrder();

}  // namespace isozone
