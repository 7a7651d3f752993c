// Device profiles: geometry and timing of an emulated SSD, as text that users can copy and change. One `key = value` a
// line, '#' starts a comment; the comment behind a number says where it comes from. Built-in profiles are the files in
// profiles/, compiled in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace isozone {

struct Profile {
  std::string name;

  // Geometry. Limits of 0 mean: none.
  uint32_t zone_count = 0;
  uint64_t zone_size = 0;      // bytes
  uint64_t zone_capacity = 0;  // bytes
  uint32_t block_size = 4096;  // bytes
  uint32_t max_open_zones = 0;
  uint32_t max_active_zones = 0;
  uint64_t max_transfer = 0;  // bytes
  uint64_t max_append = 0;    // bytes

  // Timing; false completes everything at once.
  bool timing = true;
  // ... the timing fields of DESIGN.md's model and their documentation are completed with timing_model.cc.
};

// kInvalidArgument "small-zone.profile:12: ..." with the line that is wrong: unknown key, bad value, repeated key, or,
// without a line, a value that is missing or contradicts another. `where` names the source in messages.
Result<Profile> ParseProfile(std::string_view text, std::string_view where);

// A built-in profile by name, or a file if `name` contains a '/'. kNotFound lists the built-in names.
Result<Profile> LoadProfile(const std::string& name);
std::vector<std::string> BuiltinProfileNames();

// The profile as text that ParseProfile reads back to the same values.
std::string FormatProfile(const Profile& profile);

}  // namespace isozone
