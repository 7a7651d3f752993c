// Heat: how often the data of a zone has survived GC, and whether it looked cold then (LSM_ZGC paper, section
// 3 and Fig. 4). A zone holds data of one heat only, so that zones die together.
//
//   victim     survivors of a cold segment   survivors of any other segment
//   C0         C1C                           C1H
//   C1C, C1H   C2                            C2
//   C2         C2                            C2
//
// New data goes to C0. Data that survived a second time counts as cold, whatever its segment looked like.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace isozone {

enum class ZoneHeat : uint8_t {
  kC0,   // new
  kC1C,  // survived once, in a cold segment
  kC1H,  // survived once, in another one
  kC2,   // survived twice or more
};
inline constexpr int kZoneHeatCount = 4;
inline constexpr ZoneHeat kNewDataHeat = ZoneHeat::kC0;

// Returns the heat of the survivors of `victim`. `cold` is that of their segment (SegmentPlan::cold).
ZoneHeat SurvivorHeat(ZoneHeat victim, bool cold);

// Returns "C0", "C1C", "C1H" or "C2".
std::string_view ZoneHeatName(ZoneHeat heat);

}  // namespace isozone
