// Helping people who mistyped a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isozone {

// What to say behind "unknown option 'zonse'": " (did you mean 'zones'?)" where a known name is near, or all of them:
// "; known are timing zones".
std::string SuggestName(std::string_view wrong, const std::vector<std::string>& known);

}  // namespace isozone
