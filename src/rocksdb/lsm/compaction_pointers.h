// Where the sweep of each level continues. The pointer of a level is the user key at which its next compaction begins.
// A level without one begins at its first file. Pointers outlive the process: a sweep that began anew at each restart
// would leave the files at the end of a level alone for ever.
//
// In text form, each pointer is a line "LEVEL KEY\n". The key is in lower-case hexadecimal digits, two for each byte,
// and the lines are sorted by level.
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

  // Returns the pointer of a level, 0 <= level < kMaxLsmLevels; if it is empty, the sweep begins at the first file.
  const std::optional<std::string>& Get(int level) const { return keys_[static_cast<size_t>(level)]; }
  void Set(int level, std::optional<std::string> key) { keys_[static_cast<size_t>(level)] = std::move(key); }

  std::string ToText() const;
  // Parses text that ToText wrote, and accepts no other spelling. kCorruption names the line that is wrong.
  static Result<CompactionPointers> FromText(std::string_view text);

  bool operator==(const CompactionPointers&) const = default;

 private:
  std::array<std::optional<std::string>, kMaxLsmLevels> keys_;
};

}  // namespace isozone
