#include "isozone/serve/zone_frames.h"

#include <cstring>
#include <map>

#include <gtest/gtest.h>

namespace isozone::cli {
namespace {

struct Frame {
  uint32_t instance = 0;
  uint32_t number = 0;
  uint32_t base = 0;
  uint32_t zones = 0;
  std::map<uint32_t, PageZone> entries;
  std::string json;
};

uint32_t WordAt(const std::string& bytes, size_t index) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.substr(index * sizeof(word), sizeof(word)).data(), sizeof(word));
  return word;
}

Frame Decode(const std::string& bytes) {
  EXPECT_EQ(WordAt(bytes, 0), ZoneFrames::kFormat);
  Frame frame{WordAt(bytes, 1), WordAt(bytes, 2), WordAt(bytes, 3), WordAt(bytes, 4), {}, {}};
  size_t at = ZoneFrames::kHeadWords;
  for (uint32_t i = 0; i < WordAt(bytes, 5); ++i, at += ZoneFrames::kEntryWords) {
    const auto word = [&](size_t half) {
      return WordAt(bytes, at + half) | uint64_t{WordAt(bytes, at + half + 1)} << 32;
    };
    frame.entries[WordAt(bytes, at)] = UnpackZone({word(1), word(3)});
  }
  frame.json = bytes.substr(at * sizeof(uint32_t));
  EXPECT_EQ(frame.json.size(), WordAt(bytes, 6));
  return frame;
}

std::vector<PageZone> SomeZones(size_t count) {
  std::vector<PageZone> zones(count);
  for (size_t i = 0; i < count; ++i) {
    zones[i] = {.write_pointer = static_cast<uint32_t>(i) * 7 + 1,
                .live = static_cast<uint32_t>(i),
                .phase = ZonePhase::kLeased,
                .use = ZoneUse::kData,
                .data = {},
                .writer = ZoneWriter::kFlush,
                .group = static_cast<uint16_t>(i % 3),
                .written_at = PageZone::kAges - 1};
  }
  return zones;
}

TEST(ZoneFramesTest, TheFirstFrameHasEveryZone) {
  ZoneFrames frames(77);
  const std::vector<PageZone> zones = SomeZones(5);
  frames.Look(zones);
  const Frame frame = Decode(frames.Encode(0, 0, "{}"));
  EXPECT_EQ(frame.instance, 77U);
  EXPECT_EQ(frame.number, 1U);
  EXPECT_EQ(frame.base, 0U);
  EXPECT_EQ(frame.zones, 5U);
  EXPECT_EQ(frame.json, "{}");
  ASSERT_EQ(frame.entries.size(), 5U);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(frame.entries.at(i), zones[i]);
}

TEST(ZoneFramesTest, TheNextHasWhatHasChangedSinceItsBase) {
  ZoneFrames frames(77);
  std::vector<PageZone> zones = SomeZones(5);
  frames.Look(zones);
  zones[2].live = 99;
  frames.Look(zones);
  zones[4].victim = true;
  frames.Look(zones);
  const Frame last = Decode(frames.Encode(77, 2, ""));
  EXPECT_EQ(last.base, 2U);
  ASSERT_EQ(last.entries.size(), 1U);
  EXPECT_EQ(last.entries.at(4), zones[4]);
  EXPECT_EQ(Decode(frames.Encode(77, 1, "")).entries.size(), 2U);
  EXPECT_TRUE(Decode(frames.Encode(77, 3, "")).entries.empty());
}

TEST(ZoneFramesTest, ALookAtTheSameIsTheSameFrame) {
  ZoneFrames frames(77);
  frames.Look(SomeZones(5));
  frames.Look(SomeZones(5));
  EXPECT_EQ(frames.number(), 1U);
}

TEST(ZoneFramesTest, ABaseThatIsNotKnownGetsAWholeFrame) {
  ZoneFrames frames(77);
  frames.Look(SomeZones(5));
  for (const auto& [instance, number] : std::map<uint32_t, uint32_t>{{76, 1}, {77, 2}, {0, 0}}) {
    const Frame frame = Decode(frames.Encode(instance, number, ""));
    EXPECT_EQ(frame.base, 0U);
    EXPECT_EQ(frame.entries.size(), 5U);
  }
}

TEST(ZoneFramesTest, AnotherNumberOfZonesBeginsAnew) {
  ZoneFrames frames(77);
  frames.Look(SomeZones(5));
  frames.Look(SomeZones(6));
  const Frame frame = Decode(frames.Encode(77, 1, ""));
  EXPECT_EQ(frame.base, 0U);
  EXPECT_EQ(frame.zones, 6U);
  EXPECT_EQ(frame.entries.size(), 6U);
}

TEST(ZoneFramesTest, BeforeTheFirstLookThereIsNothing) {
  const Frame frame = Decode(ZoneFrames(77).Encode(77, 0, ""));
  EXPECT_EQ(frame.number, 0U);
  EXPECT_TRUE(frame.entries.empty());
}

}  // namespace
}  // namespace isozone::cli
