// libfuse's low-level interface, at the version that Isozone is written for.
#pragma once

#define FUSE_USE_VERSION 314  // NOLINT(readability-identifier-naming): libfuse names it
#include <fuse3/fuse_lowlevel.h>

#include <cstdint>

namespace isozone {

inline constexpr uint32_t kLongestRequest = 1 << 20;  // bytes of data that one request reads or writes; libfuse's most

}  // namespace isozone
