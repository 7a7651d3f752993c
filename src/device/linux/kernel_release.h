// The release of a kernel, for what older ones do wrong without saying so.
//
// Thread safety: any thread may call any function.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace isozone {

struct KernelRelease {
  uint32_t major = 0;
  uint32_t minor = 0;
  auto operator<=>(const KernelRelease&) const = default;
};

// Returns the numbers in front: 6.1 of "6.1.0-18-amd64". Returns 0.0, which is older than all, if there are none.
KernelRelease ParseKernelRelease(std::string_view text);
// Returns the release of the kernel that runs this process.
KernelRelease RunningKernel();

}  // namespace isozone
