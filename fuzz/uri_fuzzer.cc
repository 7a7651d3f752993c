// URIs as users type them: parsing ends, and what it takes is what was written.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/units.h"
#include "base/uri.h"

namespace isozone {
namespace {

void Check(std::string_view text) {
  if (const auto size = ParseSize(text); size.ok() && FormatSize(*size).empty()) std::abort();
  auto uri = ParseUri(text);
  if (!uri.ok()) return;
  const std::string prefix = uri->scheme + ":" + uri->path;
  if (uri->scheme.empty() || text.find(prefix) == std::string_view::npos) std::abort();

  UriOptions& options = uri->options;
  const auto real = options.TakeReal("speed", 0.5, 2);
  if (real.ok() && *real && !(**real >= 0.5 && **real <= 2)) std::abort();
  const auto count = options.TakeUnsigned("zones", 1, 1000);
  if (count.ok() && *count && (**count < 1 || **count > 1000)) std::abort();
  const auto size = options.TakeSize("zone_size", 4096, kGiB);
  if (size.ok() && *size && (**size < 4096 || **size > kGiB)) std::abort();
  (void)options.TakeBool("timing");
  (void)options.Take("policy");
  (void)options.RejectUnknown();
}

}  // namespace
}  // namespace isozone

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  isozone::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
