// Where the sweep of each level goes on. The pointer of a level is the user key at which its next compaction begins.
// A level without one begins at its first file. Pointers outlive the process: a sweep that began anew at each restart
// would leave the files at the end of a level alone for ever.
//
// As text, one line a level, in ascending order: "LEVEL KEY\n", the key in lower-case hexadecimal digits, two a byte.
//
// Thread safety: a value.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace isozone {

inline constexpr int kMaxLsmLevels = 32;

class CompactionPointers {
 public:
  static constexpr size_t kMaxKeyBytes = size_t{1} << 20;

  // Empty: the sweep begins at the first file. 0 <= level < kMaxLsmLevels.
  const std::optional<std::string>& Get(int level) const { return keys_[static_cast<size_t>(level)]; }
  void Set(int level, std::optional<std::string> key) { keys_[static_cast<size_t>(level)] = std::move(key); }

  std::string ToText() const;
  // kCorruption names the line that is wrong. What ToText gives is the only spelling that is taken.
  static Result<CompactionPointers> FromText(std::string_view text);

  bool operator==(const CompactionPointers&) const = default;

 private:
  std::array<std::optional<std::string>, kMaxLsmLevels> keys_;
};

}  // namespace isozone
