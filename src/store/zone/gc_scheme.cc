#include "store/zone/gc_scheme.h"

#include <array>

#include <fmt/format.h>

#include "store/zone/gc_order.h"
#include "store/zone/isozone_gc.h"
#include "store/zone/published/lifetime_gc.h"
#include "store/zone/published/lsm_zgc.h"
#include "store/zone/published/zenfs_gc.h"
#include "store/zone/published/zenfs_plus_gc.h"

namespace isozone {
namespace {

class NoGc : public GcScheme {
 public:
  explicit NoGc(std::optional<uint32_t> /*start_percent*/) {}
  std::string_view name() const override { return "none"; }
  int64_t interval_ns() const override { return 10 * kSecondNs; }
  bool automatic() const override { return false; }
  bool Due(const GcSpace&) const override { return false; }
  std::vector<ZoneId> Choose(const GcSpace&, std::span<const GcCandidate>) const override { return {}; }
  std::vector<ZoneId> Order(std::span<const GcCandidate> candidates) const override {
    return ZonesOf(SortedBy(candidates, [](const GcCandidate& c) { return c.valid; }));
  }
};

struct NamedScheme {
  std::string_view name;
  std::unique_ptr<GcScheme> (*make)(std::optional<uint32_t> start_percent);
};

template <typename Scheme, auto... kVariant>
std::unique_ptr<GcScheme> New(std::optional<uint32_t> start_percent) {
  return std::make_unique<Scheme>(start_percent, kVariant...);
}

constexpr std::array kSchemes = {
    NamedScheme{"isozone", New<IsozoneGc>},
    NamedScheme{"none", New<NoGc>},
    NamedScheme{"zenfs", New<ZenfsGc>},
    NamedScheme{"full", New<ZenfsPlusGc, false>},
    NamedScheme{"zenfs+", New<ZenfsPlusGc, true>},
    NamedScheme{"lifetime", New<LifetimeGc, true>},
    NamedScheme{"lifetime-one-victim", New<LifetimeGc, false>},
    NamedScheme{"lsm-zgc", New<LsmZgc>},
};

}  // namespace

Result<std::unique_ptr<GcScheme>> MakeGcScheme(std::string_view name, std::optional<uint32_t> start_percent) {
  std::string known;
  for (const NamedScheme& scheme : kSchemes) {
    if (scheme.name == name) return scheme.make(start_percent);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", scheme.name);
  }
  return Status::InvalidArgument(fmt::format("unknown GC scheme \"{}\"; known: {}", name, known));
}

std::vector<std::string_view> GcSchemeNames() {
  std::vector<std::string_view> names;
  for (const NamedScheme& scheme : kSchemes) names.push_back(scheme.name);
  return names;
}

}  // namespace isozone
