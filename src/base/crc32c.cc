#include "base/crc32c.h"

#include <algorithm>
#include <climits>

#include <isa-l/crc.h>

namespace isozone {

uint32_t Crc32c(std::span<const std::byte> data, uint32_t crc) {
  uint32_t state = ~crc;
  while (!data.empty()) {
    const size_t step = std::min<size_t>(data.size(), INT_MAX);
    // ISA-L takes a mutable pointer and only reads through it.
    state = crc32_iscsi(reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data.data())), static_cast<int>(step),
                        state);
    data = data.subspan(step);
  }
  return ~state;
}

}  // namespace isozone
