// InodeId: the number by which the metadata knows a file or directory. It is never used again.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace isozone {

using InodeId = StrongInt<struct InodeIdTag, uint64_t>;
inline constexpr InodeId kRootInode{1};

}  // namespace isozone
