#include "store/zone/heat.h"

#include <array>

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(ZoneHeat, SurvivorsGoWhereThePaperSendsThem) {
  struct Case {
    ZoneHeat victim;
    ZoneHeat cold;
    ZoneHeat other;
  };
  using enum ZoneHeat;
  constexpr std::array<Case, kZoneHeatCount> kCases = {{
      {kC0, kC1C, kC1H},
      {kC1C, kC2, kC2},
      {kC1H, kC2, kC2},
      {kC2, kC2, kC2},
  }};
  for (const Case& one : kCases) {
    EXPECT_EQ(SurvivorHeat(one.victim, true), one.cold) << ZoneHeatName(one.victim);
    EXPECT_EQ(SurvivorHeat(one.victim, false), one.other) << ZoneHeatName(one.victim);
  }
}

TEST(ZoneHeat, NewDataIsNeverMixedWithSurvivors) {
  for (const ZoneHeat heat : {ZoneHeat::kC0, ZoneHeat::kC1C, ZoneHeat::kC1H, ZoneHeat::kC2}) {
    EXPECT_NE(SurvivorHeat(heat, true), kNewDataHeat);
    EXPECT_NE(SurvivorHeat(heat, false), kNewDataHeat);
  }
}

TEST(ZoneHeat, HasThePapersNames) {
  EXPECT_EQ(ZoneHeatName(ZoneHeat::kC0), "C0");
  EXPECT_EQ(ZoneHeatName(ZoneHeat::kC1C), "C1C");
  EXPECT_EQ(ZoneHeatName(ZoneHeat::kC1H), "C1H");
  EXPECT_EQ(ZoneHeatName(ZoneHeat::kC2), "C2");
}

}  // namespace
}  // namespace isozone
