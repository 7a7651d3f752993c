// Resource names as users type them: SCHEME:PATH[?KEY=VALUE[&KEY=VALUE...]], for instance
// "emu:/data/ssd.img?timing=off&zones=512". A leading "isozone://" is accepted and dropped.
//
// Each layer takes the options that it knows. RejectUnknown() then names an option that no layer took, with the most
// similar known name.
// PATH is taken literally up to the first '?'; no percent-decoding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace isozone {

class UriOptions {
 public:
  UriOptions() = default;
  explicit UriOptions(std::vector<std::pair<std::string, std::string>> pairs) : pairs_(std::move(pairs)) {}

  // Returns the value of `key`, which then counts as known and taken. If a key is repeated, its last value counts.
  std::optional<std::string> Take(std::string_view key);
  // Like Take, but converted. Empty if the key is absent. kInvalidArgument, with key and value, if the value cannot be
  // converted or lies outside [min, max]. Sizes accept K, M, G, T and KiB, MiB, GiB, TiB (powers of 1024).
  Result<std::optional<uint64_t>> TakeUnsigned(std::string_view key, uint64_t min, uint64_t max);
  Result<std::optional<uint64_t>> TakeSize(std::string_view key, uint64_t min, uint64_t max);
  Result<std::optional<double>> TakeReal(std::string_view key, double min, double max);
  // Accepts on/off, yes/no, true/false and 1/0.
  Result<std::optional<bool>> TakeBool(std::string_view key);

  // Returns kInvalidArgument if an option is left that no Take named: "unknown option 'zonse' (did you mean 'zones'?)".
  Status RejectUnknown() const;
  // Returns the options that were not taken yet, sorted by key: "speed=0.25&timing=on". Equal texts mean equal options.
  std::string Rest() const;

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;  // not yet taken
  std::vector<std::string> known_;                          // every key ever asked for
};

struct Uri {
  std::string scheme;
  std::string path;
  UriOptions options;
};

// Parses a URI of the form above. kInvalidArgument says why it is none.
Result<Uri> ParseUri(std::string_view text);

// Parses a size, for options, profiles and command lines alike: "64MiB" -> 67108864.
Result<uint64_t> ParseSize(std::string_view text);
// Returns a size as text: 67108864 -> "64.0 MiB".
std::string FormatSize(uint64_t bytes);

}  // namespace isozone
