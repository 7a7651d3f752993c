#include "rocksdb/lsm/compaction_pointers.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace isozone {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

// Two digits a byte; empty: `digits` are none, or too many.
std::optional<std::string> KeyOfDigits(std::string_view digits) {
  if (digits.size() % 2 != 0 || digits.size() / 2 > CompactionPointers::kMaxKeyBytes) return std::nullopt;
  std::string key;
  key.reserve(digits.size() / 2);
  for (size_t i = 0; i < digits.size(); i += 2) {
    const size_t high = kHexDigits.find(digits[i]);
    const size_t low = kHexDigits.find(digits[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    key.push_back(static_cast<char>(high * 16 + low));
  }
  return key;
}

// Empty: not a level in its shortest spelling.
std::optional<int> LevelOfDigits(std::string_view digits) {
  int level = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), level);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (level < 0 || level >= kMaxLsmLevels || digits != std::to_string(level)) return std::nullopt;
  return level;
}

}  // namespace

std::string CompactionPointers::ToText() const {
  std::string text;
  for (int level = 0; level < kMaxLsmLevels; ++level) {
    const auto& key = Get(level);
    if (!key) continue;
    text += std::to_string(level) + " ";
    for (const char byte : *key) {
      text.push_back(kHexDigits[static_cast<uint8_t>(byte) / 16]);
      text.push_back(kHexDigits[static_cast<uint8_t>(byte) % 16]);
    }
    text.push_back('\n');
  }
  return text;
}

Result<CompactionPointers> CompactionPointers::FromText(std::string_view text) {
  CompactionPointers pointers;
  int last = -1;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const size_t space = line.find(' ');
    if (end == std::string_view::npos || space == std::string_view::npos) {
      return Status::Corruption(fmt::format("compaction pointers: line {} is not \"LEVEL KEY\"", number));
    }
    const auto level = LevelOfDigits(line.substr(0, space));
    if (!level || *level <= last) {
      return Status::Corruption(fmt::format("compaction pointers: line {} has a level that is wrong here", number));
    }
    auto key = KeyOfDigits(line.substr(space + 1));
    if (!key) return Status::Corruption(fmt::format("compaction pointers: line {} has a damaged key", number));
    pointers.Set(*level, std::move(key));
    last = *level;
    text.remove_prefix(end + 1);
  }
  return pointers;
}

}  // namespace isozone
