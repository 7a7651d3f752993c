// Profiles: any text is refused with a reason or gives a valid profile, which is read back from its own text.

#include <cstdint>
#include <cstdlib>

#include "device/emulated/nand/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using isozone::ParseProfile;
  const auto profile = ParseProfile({reinterpret_cast<const char*>(data), size}, "input");
  if (!profile.ok()) {
    if (profile.status().message().empty()) std::abort();
    return 0;
  }
  if (!ValidateProfile(*profile).ok()) std::abort();
  const auto again = ParseProfile(FormatProfile(*profile), "itself");
  if (!again.ok() || !(*again == *profile)) std::abort();
  return 0;
}
