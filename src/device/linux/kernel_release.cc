#include "device/linux/kernel_release.h"

#include <sys/utsname.h>

#include <charconv>

namespace isozone {

KernelRelease ParseKernelRelease(std::string_view text) {
  KernelRelease release;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, release.major);
  if (error != std::errc() || dot == end || *dot != '.') return {};
  if (std::from_chars(dot + 1, end, release.minor).ec != std::errc()) return {};
  return release;
}

KernelRelease RunningKernel() {
  utsname names{};
  return ::uname(&names) == 0 ? ParseKernelRelease(names.release) : KernelRelease{};
}

}  // namespace isozone
