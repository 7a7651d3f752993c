// A table as pickers see it.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/zoned_device.h"

namespace isozone {

struct LsmFile {
  uint64_t number = 0;   // unique; rises in the order in which files are written
  std::string smallest;  // user keys, both included
  std::string largest;
  uint64_t bytes = 0;
  std::vector<ZoneId> zones;  // the zones in which it lies; empty: not known
  bool short_lived = false;   // written as such (CompactionPick::short_lived)
};

}  // namespace isozone
