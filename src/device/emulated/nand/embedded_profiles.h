// The files of profiles/, compiled in by embed_profiles.cmake.
#pragma once

#include <span>
#include <string_view>

namespace isozone {

struct EmbeddedProfile {
  std::string_view name;  // of the file, without ".profile"
  std::string_view text;
};

std::span<const EmbeddedProfile> EmbeddedProfiles();

}  // namespace isozone
