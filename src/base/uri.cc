#include "base/uri.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "base/suggest.h"
#include "base/units.h"

namespace isozone {
namespace {

std::string Quote(std::string_view text) { return "'" + std::string(text) + "'"; }

template <typename T>
Result<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Status::InvalidArgument(Quote(text) + " is not a number");
  }
  return value;
}

template <typename T>
Status CheckRange(std::string_view key, T value, T min, T max) {
  if (value >= min && value <= max) return Status::Ok();
  return Status::InvalidArgument("option " + std::string(key) + "=" + std::to_string(value) + " is outside " +
                                 std::to_string(min) + ".." + std::to_string(max));
}

template <typename T>
Result<std::optional<T>> Checked(std::string_view key, Result<T> parsed, T min, T max) {
  if (!parsed.ok()) return parsed.status().WithContext("option " + std::string(key));
  ISOZONE_RETURN_IF_ERROR(CheckRange(key, *parsed, min, max));
  return std::optional<T>(*parsed);
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const std::string_view suffix = text.substr(digits);
  struct Unit {
    std::string_view name;
    uint64_t factor;
  };
  static constexpr std::array<Unit, 10> kUnits = {{{"", 1},
                                                   {"B", 1},
                                                   {"K", kKiB},
                                                   {"KiB", kKiB},
                                                   {"M", kMiB},
                                                   {"MiB", kMiB},
                                                   {"G", kGiB},
                                                   {"GiB", kGiB},
                                                   {"T", kTiB},
                                                   {"TiB", kTiB}}};
  for (const Unit& unit : kUnits) {
    if (suffix != unit.name || digits == 0) continue;
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t count, ParseNumber<uint64_t>(text.substr(0, digits)));
    if (count > std::numeric_limits<uint64_t>::max() / unit.factor) {
      return Status::InvalidArgument(Quote(text) + " is too large a size");
    }
    return count * unit.factor;
  }
  return Status::InvalidArgument(Quote(text) + " is not a size (write 4096, 64K, 16MiB, 2G)");
}

std::string FormatSize(uint64_t bytes) {
  static constexpr std::array<const char*, 6> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kNames[unit]);
  return text.data();
}

Result<Uri> ParseUri(std::string_view text) {
  static constexpr std::string_view kPrefix = "isozone://";
  const std::string_view whole = text;
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  const size_t colon = text.find(':');
  const size_t question = text.find('?');
  if (colon == std::string_view::npos || colon == 0 || colon > question) {
    return Status::InvalidArgument("device " + Quote(whole) + " has no scheme; write emu:/path/ssd.img");
  }
  Uri uri;
  uri.scheme = text.substr(0, colon);
  uri.path = text.substr(colon + 1, question == std::string_view::npos ? question : question - colon - 1);
  std::vector<std::pair<std::string, std::string>> pairs;
  std::string_view rest = question == std::string_view::npos ? std::string_view() : text.substr(question + 1);
  while (!rest.empty()) {
    const size_t amp = rest.find('&');
    const std::string_view pair = rest.substr(0, amp);
    rest = amp == std::string_view::npos ? std::string_view() : rest.substr(amp + 1);
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return Status::InvalidArgument("option " + Quote(pair) + " is not of the form key=value");
    }
    pairs.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  uri.options = UriOptions(std::move(pairs));
  return uri;
}

std::optional<std::string> UriOptions::Take(std::string_view key) {
  known_.emplace_back(key);
  std::optional<std::string> value;
  std::erase_if(pairs_, [&](auto& pair) {
    if (pair.first != key) return false;
    value = std::move(pair.second);
    return true;
  });
  return value;
}

Result<std::optional<uint64_t>> UriOptions::TakeUnsigned(std::string_view key, uint64_t min, uint64_t max) {
  const auto text = Take(key);
  if (!text) return std::optional<uint64_t>();
  return Checked(key, ParseNumber<uint64_t>(*text), min, max);
}

Result<std::optional<uint64_t>> UriOptions::TakeSize(std::string_view key, uint64_t min, uint64_t max) {
  const auto text = Take(key);
  if (!text) return std::optional<uint64_t>();
  return Checked(key, ParseSize(*text), min, max);
}

Result<std::optional<double>> UriOptions::TakeReal(std::string_view key, double min, double max) {
  const auto text = Take(key);
  if (!text) return std::optional<double>();
  auto parsed = ParseNumber<double>(*text);
  if (parsed.ok() && !std::isfinite(*parsed)) parsed = Status::InvalidArgument(Quote(*text) + " is not a number");
  return Checked(key, std::move(parsed), min, max);
}

Result<std::optional<bool>> UriOptions::TakeBool(std::string_view key) {
  const auto text = Take(key);
  if (!text) return std::optional<bool>();
  if (*text == "on" || *text == "yes" || *text == "true" || *text == "1") return std::optional<bool>(true);
  if (*text == "off" || *text == "no" || *text == "false" || *text == "0") return std::optional<bool>(false);
  return Status::InvalidArgument("option " + std::string(key) + "=" + *text + ": write on or off");
}

Status UriOptions::RejectUnknown() const {
  if (pairs_.empty()) return Status::Ok();
  return Status::InvalidArgument("unknown option " + Quote(pairs_.front().first) +
                                 SuggestName(pairs_.front().first, known_));
}

std::string UriOptions::Rest() const {
  std::map<std::string_view, std::string_view> last;
  for (const auto& [key, value] : pairs_) last[key] = value;
  std::string text;
  for (const auto& [key, value] : last) {
    if (!text.empty()) text += '&';
    text.append(key).append("=").append(value);
  }
  return text;
}

}  // namespace isozone
