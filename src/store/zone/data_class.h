// DataClass: what is known about how long data will live, that is, RocksDB's hint, the level of the LSM tree that it
// belongs to, and how many rounds of GC it has survived. The placement policy puts data of one class into shared zones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "store/zone/heat.h"
#include "store/zone/lifetime.h"

namespace isozone {

struct DataClass {
  static constexpr int8_t kNoLevel = -1;
  // The number of values that a level may have, kNoLevel included.
  static constexpr size_t kLevelValues = size_t{std::numeric_limits<int8_t>::max()} + 2;

  DataClass() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): most callers know a lifetime and no more
  DataClass(Lifetime data_lifetime, int8_t lsm_level = kNoLevel, ZoneHeat zone_heat = kNewDataHeat)
      : lifetime(data_lifetime), level(lsm_level), heat(zone_heat) {}

  Lifetime lifetime = Lifetime::kNotSet;
  int8_t level = kNoLevel;  // from 0; kNoLevel: the data is in no LSM tree, or its level is not known
  ZoneHeat heat = kNewDataHeat;
  auto operator<=>(const DataClass&) const = default;
};

}  // namespace isozone
