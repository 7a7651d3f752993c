// The tests of `make test`; CMakeLists.txt adds runs of isozone_crash to them, and those of `make torture`.
#include "crash/crash.h"

#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crash/crash_device.h"
#include "crash/sequence.h"
#include "model/fine.h"
#include "model/quiet_log.h"

namespace isozone::crash {
namespace {

using testing::HasSubstr;

DeviceGeometry FourZones() {
  DeviceGeometry geometry;
  geometry.zone_count = 4;
  geometry.zone_size = geometry.zone_capacity = 8ULL * geometry.block_size;
  return geometry;
}

DeviceStatus Write(CrashDevice& device, ZoneId zone, uint64_t begin, uint64_t blocks, bool fua) {
  const DeviceGeometry& geometry = device.geometry();
  std::vector<std::byte> data(blocks * geometry.block_size, std::byte{7});
  DeviceRequest request;
  request.op = DeviceOp::kWrite;
  request.fua = fua;
  request.offset = DeviceOffset(geometry.ZoneStart(zone).value() + begin * geometry.block_size);
  request.data = data.data();
  request.length = data.size();
  return SubmitAndWait(device, request);
}

// Blocks that zone 0 has left, of every outcome of a cut in `command`.
std::set<uint64_t> BlocksLeft(const CrashDevice& device, const Command& command) {
  std::set<uint64_t> left;
  for (const auto& [outcome, image] : CutIn(device.Image(), command)) {
    left.insert(image.zones[0].written / image.geometry.block_size);
  }
  return left;
}

TEST(CrashDevice, AWriteInFlightIsStoredInPartOrNotAtAll) {
  CrashDevice device(CrashDevice::Blank(FourZones(), Fua::kZone), true);
  ASSERT_EQ(Write(device, ZoneId(0), 0, 4, false), DeviceStatus::kSuccess);
  const std::vector<Command> commands = device.TakeCommands();
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_THAT(BlocksLeft(device, commands[0]), testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(CrashDevice, WhatWasNotFlushedMayBeLost) {
  CrashDevice device(CrashDevice::Blank(FourZones(), Fua::kZone), true);
  ASSERT_EQ(Write(device, ZoneId(0), 0, 2, false), DeviceStatus::kSuccess);
  ASSERT_EQ(Write(device, ZoneId(1), 0, 1, true), DeviceStatus::kSuccess);
  EXPECT_THAT(BlocksLeft(device, device.TakeCommands()[1]), testing::ElementsAre(0, 1, 2));
}

TEST(CrashDevice, ForceUnitAccessCoversTheZoneOrItsOwnCommand) {
  for (const Fua fua : {Fua::kZone, Fua::kCommand}) {
    CrashDevice device(CrashDevice::Blank(FourZones(), fua), true);
    ASSERT_EQ(Write(device, ZoneId(0), 0, 2, false), DeviceStatus::kSuccess);
    ASSERT_EQ(Write(device, ZoneId(0), 2, 1, true), DeviceStatus::kSuccess);
    bool hole = false;
    for (const auto& [outcome, image] : CutAfter(device.Image())) {
      EXPECT_EQ(image.zones[0].written, 3ULL * image.geometry.block_size);
      const std::vector<std::byte>& bytes = *image.zones[0].bytes;
      EXPECT_EQ(bytes[2ULL * image.geometry.block_size], std::byte{7});
      hole |= bytes[0] == std::byte{0};
    }
    EXPECT_EQ(hole, fua == Fua::kCommand);
  }
}

TEST(CrashDevice, AResetInFlightHappensOrDoesNot) {
  CrashDevice device(CrashDevice::Blank(FourZones(), Fua::kZone), true);
  ASSERT_EQ(Write(device, ZoneId(0), 0, 2, true), DeviceStatus::kSuccess);
  DeviceRequest reset;
  reset.op = DeviceOp::kReset;
  ASSERT_EQ(SubmitAndWait(device, reset), DeviceStatus::kSuccess);
  EXPECT_THAT(BlocksLeft(device, device.TakeCommands()[1]), testing::ElementsAre(0, 2));
}

TEST(CrashDevice, AnImageStaysAsItIsWhileOthersAreWritten) {
  CrashDevice device(CrashDevice::Blank(FourZones(), Fua::kZone), false);
  ASSERT_EQ(Write(device, ZoneId(0), 0, 1, true), DeviceStatus::kSuccess);
  const DeviceImage image = device.Image();
  CrashDevice other(image, false);
  ASSERT_EQ(Write(other, ZoneId(0), 1, 1, true), DeviceStatus::kSuccess);
  ASSERT_EQ(Write(device, ZoneId(0), 1, 2, true), DeviceStatus::kSuccess);
  EXPECT_EQ(image.zones[0].written, image.geometry.block_size);
  EXPECT_EQ(other.Image().zones[0].written, 2ULL * image.geometry.block_size);
  EXPECT_NE(other.Image().zones[0].bytes, device.Image().zones[0].bytes);
}

TEST(Outcome, IsReadAsItIsWritten) {
  for (const char* text : {"0:kept", "3:lost", "1:half", "0:lost-of:7", "2:kept-of:0"}) {
    ASSERT_TRUE(Outcome::Parse(text).has_value()) << text;
    EXPECT_EQ(Outcome::Parse(text)->ToString(), text);
  }
  for (const char* text : {"", "kept", "1:", "1:lost-of", "1:gone"}) EXPECT_FALSE(Outcome::Parse(text)) << text;
}

TEST(Sequence, IsReadAsItIsWritten) {
  const std::string text = "mkdir /C; create /C/A log; append /C/A; rename /C/A /B; fsync /";
  const auto sequence = ParseSequence(text);
  ASSERT_FINE(sequence.status());
  EXPECT_EQ(ToString(*sequence), text);
  EXPECT_THAT(std::string(ParseSequence("append /A; jump /A").status().message()), HasSubstr("'jump /A'"));
  EXPECT_FALSE(ParseSequence("append /Z").ok());
}

TEST(Sequence, OnlyWhatSucceedsAndHasAnEffectIsDone) {
  std::set<std::string> found;
  ForEachSequence(Names(), 2, false, [&](const Sequence& sequence) { found.insert(ToString(sequence)); });
  EXPECT_TRUE(found.contains("mkdir /C; create /C/A data"));
  EXPECT_TRUE(found.contains("create /A log; rename /A /B"));
  EXPECT_FALSE(found.contains("create /A data; truncate /A"));
  EXPECT_FALSE(found.contains("create /A data; mkdir /A"));
  EXPECT_FALSE(found.contains("append /A; sync /A"));
  EXPECT_FALSE(found.contains("mkdir /C; create /D/B data"));
}

TEST(Sequence, OfTwoThatDifferByAnExchangeOfNamesOneCounts) {
  std::multiset<std::string> all;
  ForEachSequence(Names(), 2, false, [&](const Sequence& sequence) { all.insert(ToString(sequence)); });
  std::multiset<std::string> one_of_each;
  ForEachSequence(Names(), 2, true, [&](const Sequence& sequence) { one_of_each.insert(ToString(sequence)); });
  EXPECT_TRUE(one_of_each.contains("create /A data; append /A"));
  EXPECT_FALSE(one_of_each.contains("create /B data; append /B"));
  EXPECT_LT(one_of_each.size(), all.size());
  EXPECT_GE(2 * one_of_each.size(), all.size());
}

class Explore : public testing::Test {
 protected:
  Status Run(const std::string& variant, const std::string& sequence) {
    const auto parsed_variant = Variant::Parse(variant);
    if (!parsed_variant.ok()) return parsed_variant.status();
    const auto parsed_sequence = ParseSequence(sequence);
    if (!parsed_sequence.ok()) return parsed_sequence.status();
    return explorer_.Explore(*parsed_variant, *parsed_sequence);
  }
  const QuietLog quiet_;
  Explorer explorer_{2};
};

TEST_F(Explore, FindsADeviceThatForgetsWhatItWasForcedToKeep) {
  const Status status = Run("files,none,kept", "append /A; sync /A");
  EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.ToString();
  EXPECT_THAT(std::string(status.message()), HasSubstr("--sequence 'append /A; sync /A' --cut "));
}

TEST_F(Explore, ReplaysWhatItFound) {
  const auto variant = Variant::Parse("files,none,kept");
  const auto sequence = ParseSequence("append /A; sync /A");
  Explorer explorer(1);  // recovery is not cut: which copy it writes anew, and when, is a matter of threads
  const std::string message(explorer.Explore(*variant, *sequence).message());
  const size_t at = message.find("--cut ");
  ASSERT_NE(at, std::string::npos) << message;
  const auto cut = Cut::Parse(message.substr(at + 6, message.find(": ", at) - at - 6));
  ASSERT_FINE(cut.status());
  const Status replayed = explorer.Replay(*variant, *sequence, *cut, nullptr);
  EXPECT_EQ(replayed.code(), StatusCode::kCorruption) << message;
  EXPECT_THAT(message, HasSubstr(std::string(replayed.message())));
}

TEST_F(Explore, ASequenceMakesTheSameCommandsEachTime) {
  const auto variant = Variant::Parse("checkpoint,zone,kept");
  const auto sequence = ParseSequence("overwrite /A; unlink /B; rename /C/A /A");
  std::set<std::string> runs;
  for (int i = 0; i < 5; ++i) runs.insert(explorer_.Describe(*variant, *sequence).value());
  EXPECT_EQ(runs.size(), 1u);
}

TEST_F(Explore, CutsTheCopiesThatAreWrittenAnew) {
  const auto sequence = ParseSequence("append /A; sync /A");
  const auto commands = [&](const char* variant) {
    return explorer_.Describe(*Variant::Parse(variant), *sequence).value();
  };
  EXPECT_THAT(commands("journal,zone,kept"), HasSubstr(fmt::format("{:<24}  write zone 0 at 12288", "sync /A")));
  EXPECT_THAT(commands("checkpoint,zone,kept"), HasSubstr(fmt::format("{:<24}  write zone 0 at 0:", "sync /A")));
  EXPECT_THAT(commands("checkpoint,zone,kept"), HasSubstr(fmt::format("{:<24}  reset zone ", "sync /A")));
}

}  // namespace
}  // namespace isozone::crash
