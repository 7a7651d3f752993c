#include "store/zone/heat.h"

#include <array>
#include <cstddef>

namespace isozone {
namespace {

struct Row {
  std::string_view name;
  ZoneHeat cold;
  ZoneHeat other;
};

// By ZoneHeat.
constexpr std::array<Row, kZoneHeatCount> kRows = {{
    {"C0", ZoneHeat::kC1C, ZoneHeat::kC1H},
    {"C1C", ZoneHeat::kC2, ZoneHeat::kC2},
    {"C1H", ZoneHeat::kC2, ZoneHeat::kC2},
    {"C2", ZoneHeat::kC2, ZoneHeat::kC2},
}};

const Row& RowOf(ZoneHeat heat) { return kRows[static_cast<size_t>(heat)]; }

}  // namespace

ZoneHeat SurvivorHeat(ZoneHeat victim, bool cold) { return cold ? RowOf(victim).cold : RowOf(victim).other; }

std::string_view ZoneHeatName(ZoneHeat heat) { return RowOf(heat).name; }

}  // namespace isozone
