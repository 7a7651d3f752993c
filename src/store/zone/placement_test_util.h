// What the tests of placement share: the answers of a policy, in one word.
#pragma once

#include "store/zone/placement_policy.h"

namespace isozone {

inline Placement Use(uint32_t zone) { return {Placement::Action::kUseIdle, ZoneId(zone)}; }
inline Placement Open(uint32_t zone) { return {Placement::Action::kOpenEmpty, ZoneId(zone)}; }
inline Placement TokenOr(uint32_t zone) { return {Placement::Action::kNeedToken, ZoneId(zone)}; }
inline const Placement kToken = {Placement::Action::kNeedToken, {}};
inline const Placement kSpace = {Placement::Action::kNeedSpace, {}};

}  // namespace isozone
