#include "device/izg/zone_bandwidth.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/units.h"
#include "device/izg/latency_probe.h"

namespace isozone {
namespace {

// Bytes written to a zone: more than a device buffers. Only the later half counts. If there are fewer writes than
// kLeastTimedWrites, the bandwidth stays unknown.
constexpr uint64_t kTimedWrites = 64 * kMiB;
constexpr size_t kLeastTimedWrites = 8;
constexpr size_t kTriesOfBandwidth = 4;

}  // namespace

Result<ZoneBandwidth> MeasureZoneBandwidth(Prober& prober, std::span<const ProbeZone> zones) {
  ZoneBandwidth bandwidth;
  std::vector<int64_t> took_ns;
  for (size_t i = 0, tries = 0; i < zones.size() && took_ns.empty() && tries < kTriesOfBandwidth; ++i) {
    if (zones[i].readable > 0 || prober.preparable() == 0) continue;
    ++tries;
    Result<std::vector<int64_t>> timed = prober.TimeWrites(zones[i].zone, kTimedWrites);
    const bool failed = !timed.ok() && prober.failed_zone().has_value();
    const Status released = prober.Release({&zones[i].zone, 1});
    if (failed) continue;  // another zone may work
    ISOZONE_RETURN_IF_ERROR(released);
    ISOZONE_ASSIGN_OR_RETURN(took_ns, std::move(timed));
  }
  bandwidth.bytes_written = took_ns.size() * prober.write_unit();
  if (took_ns.size() < kLeastTimedWrites) return bandwidth;
  took_ns.erase(took_ns.begin(), took_ns.begin() + static_cast<ptrdiff_t>(took_ns.size() / 2));
  const int64_t unit_ns = std::max<int64_t>(1, Quantile(std::move(took_ns), 0.5));
  bandwidth.bytes_per_second = prober.write_unit() * static_cast<uint64_t>(kSecondNs) / static_cast<uint64_t>(unit_ns);
  return bandwidth;
}

}  // namespace isozone
