// Suggestions for people who mistyped a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isozone {

// Returns the end of a message such as "unknown option 'zonse'": " (did you mean 'zones'?)" if a known name is similar,
// otherwise all known names: "; known are timing zones".
std::string SuggestName(std::string_view wrong, const std::vector<std::string>& known);

}  // namespace isozone
