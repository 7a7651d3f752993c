#include "store/kept/kept_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "store/kept/kept_reader.h"
#include "testing/assert_ok.h"
#include "testing/manual_clock.h"

namespace isozone {
namespace {

constexpr uint32_t kSeed = 77;  // LogFrameSeed of the file system
constexpr uint64_t kMount = 12345;
const std::string kUuid = "0b1c2d3e-0000-4000-8000-0123456789ab";

class KeptMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / fmt::format("isozone-kept-{}", getpid());
    std::filesystem::create_directories(directory_);
    image_ = directory_ / "image";
    std::ofstream(image_) << "a device";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<KeptMemory> Make(uint64_t bytes = kKeptMemoryMin, uint64_t mount = kMount) {
    const auto owner = PageOwner::Of(image_);
    EXPECT_TRUE(owner.ok());
    auto memory = KeptMemory::Make(*owner, directory_, bytes, kUuid, mount, clock_);
    ISOZONE_EXPECT_OK(memory.status());
    ISOZONE_EXPECT_OK((*memory)->Publish());
    (*memory)->ForgetRecords(100);  // the device has so many
    return *std::move(memory);
  }
  Result<std::unique_ptr<KeptReader>> Open(uint64_t mount = kMount, const std::string& uuid = kUuid) {
    return KeptReader::Open(image_, directory_, uuid, mount);
  }
  std::vector<KeptPiece> Pieces() {
    const auto reader = Open();
    ISOZONE_EXPECT_OK(reader.status());
    auto pieces = (*reader)->Pieces(kSeed);
    ISOZONE_EXPECT_OK(pieces.status());
    return *std::move(pieces);
  }
  std::vector<uint64_t> SequencesAfter(uint64_t sequence) {
    const auto reader = Open();
    ISOZONE_EXPECT_OK(reader.status());
    const auto records = (*reader)->RecordsAfter(sequence);
    ISOZONE_EXPECT_OK(records.status());
    std::vector<uint64_t> sequences;
    for (const KeptRecordBytes& record : *records) {
      EXPECT_EQ(Text(record.body), RecordOf(record.sequence));
      sequences.push_back(record.sequence);
    }
    return sequences;
  }
  static std::string Text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::string RecordOf(uint64_t sequence) {
    return fmt::format("record {}{}", sequence, std::string(sequence % 50, '.'));
  }
  static bool Keep(KeptMemory& memory, uint64_t sequence) {
    const std::string record = RecordOf(sequence);
    return memory.KeepRecord(sequence, std::as_bytes(std::span(record)));
  }
  // A unit of a file that has `text` of it.
  static KeptUnitMemory Unit(KeptMemory& memory, uint64_t inode, uint64_t offset, const std::string& text) {
    KeptUnitMemory unit = memory.Take(inode, offset, 40, 64 * kKiB);
    std::memcpy(unit.span().data() + 40, text.data(), text.size());
    unit.Publish(text.size(), Crc32c(text.data(), text.size(), KeptSeed(kSeed, inode, offset)));
    return unit;
  }
  std::filesystem::path KeptFile() { return directory_ / KeptMemoryOwner(*PageOwner::Of(image_)).page_name; }
  // Changes a byte of the file.
  void Damage(uint64_t offset) {
    std::filesystem::permissions(KeptFile(), std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
    std::fstream file(KeptFile(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 1));
  }

  std::filesystem::path directory_;
  std::string image_;
  RealClock clock_;
};

TEST_F(KeptMemoryTest, WhatWasPublishedIsFoundWhetherTheMakerLivesOrNot) {
  auto memory = Make();
  const KeptUnitMemory second = Unit(*memory, 7, 5, " world");
  const KeptUnitMemory first = Unit(*memory, 7, 0, "hello");
  const KeptUnitMemory other = Unit(*memory, 3, 1000, "other");
  const KeptUnitMemory empty = memory->Take(9, 0, 40, 64 * kKiB);
  const auto check = [&] {
    const std::vector<KeptPiece> pieces = Pieces();
    ASSERT_EQ(pieces.size(), 3U);
    EXPECT_EQ(pieces[0].inode, 3U);
    EXPECT_EQ(Text(JoinKept(std::span(pieces).subspan(1), 0)), "hello world");
    EXPECT_EQ(Text(JoinKept(std::span(pieces).subspan(1), 2)), "llo world");
    EXPECT_EQ(Text(JoinKept(std::span(pieces).subspan(1), 11)), "");
    EXPECT_EQ(Text(JoinKept(std::span(pieces).first(1), 999)), "") << "there is a gap";
  };
  check();
  std::filesystem::copy_file(KeptFile(), directory_ / "copy");
  memory->Remove();
  EXPECT_FALSE(Open().ok());
  std::filesystem::rename(directory_ / "copy", KeptFile());
  check();
}

TEST_F(KeptMemoryTest, AUnitThatIsGivenUpIsGone) {
  auto memory = Make();
  {
    const KeptUnitMemory unit = Unit(*memory, 7, 0, "hello");
    EXPECT_EQ(Pieces().size(), 1U);
    EXPECT_GT(memory->Stats().used, 0U);
  }
  EXPECT_TRUE(Pieces().empty());
  EXPECT_EQ(memory->Stats().used, 0U);
}

TEST_F(KeptMemoryTest, OnlyTheMemoryOfThisBootMountAndFileSystemIsFound) {
  auto memory = Make();
  ISOZONE_EXPECT_OK(Open().status());
  EXPECT_FALSE(Open(kMount + 1).ok());
  EXPECT_FALSE(Open(0).ok());
  EXPECT_FALSE(Open(kMount, "another").ok());
  Damage(offsetof(KeptHeader, boot_id));
  EXPECT_FALSE(Open().ok()) << "it is of another boot";
}

TEST_F(KeptMemoryTest, AFileThatIsNoneOrDamagedIsNotTaken) {
  std::ofstream(KeptFile()) << "something else";
  EXPECT_FALSE(Open().ok());
  std::filesystem::remove(KeptFile());
  { auto memory = Make(); }
  std::filesystem::permissions(KeptFile(), std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
  std::filesystem::resize_file(KeptFile(), kKeptMemoryMin - 1);
  EXPECT_FALSE(Open().ok());
}

// Whatever byte is damaged, nothing false is found.
TEST_F(KeptMemoryTest, DamageTakesNoMoreThanWhatItTouches) {
  auto memory = Make();
  const KeptUnitMemory unit = Unit(*memory, 7, 0, "hello");
  for (uint64_t sequence = 101; sequence < 110; ++sequence) ASSERT_TRUE(Keep(*memory, sequence));
  const KeptLayout layout(kKeptMemoryMin);
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const uint64_t at = i % 2 == 0 ? random.Below(KeptLayout::kUnits + sizeof(KeptUnit))
                                   : (i % 4 == 1 ? layout.ring + random.Below(400) : layout.memory + random.Below(60));
    Damage(at);
    if (const auto reader = Open(); reader.ok()) {
      if (const auto pieces = (*reader)->Pieces(kSeed); pieces.ok()) {
        for (const KeptPiece& piece : *pieces) EXPECT_EQ(Text(piece.bytes), "hello") << at;
      }
      if (const auto records = (*reader)->RecordsAfter(100); records.ok()) {
        for (const KeptRecordBytes& record : *records) EXPECT_EQ(Text(record.body), RecordOf(record.sequence)) << at;
      }
    }
    Damage(at);
  }
  EXPECT_EQ(Pieces().size(), 1U);
}

TEST_F(KeptMemoryTest, RecordsAreKeptUntilTheyAreDurable) {
  auto memory = Make();
  EXPECT_EQ(memory->kept_sequence(), 100U);
  for (uint64_t sequence = 101; sequence <= 105; ++sequence) ASSERT_TRUE(Keep(*memory, sequence));
  EXPECT_EQ(memory->kept_sequence(), 105U);
  EXPECT_EQ(SequencesAfter(100), (std::vector<uint64_t>{101, 102, 103, 104, 105}));
  EXPECT_EQ(SequencesAfter(103), (std::vector<uint64_t>{104, 105}));
  memory->ForgetRecords(102);
  EXPECT_EQ(SequencesAfter(102), (std::vector<uint64_t>{103, 104, 105}));
  EXPECT_TRUE(SequencesAfter(101).empty()) << "102 is on the device alone";
  const auto durable = (*Open())->DurableSequence();
  ISOZONE_ASSERT_OK(durable.status());
  EXPECT_EQ(*durable, 102U);
}

// The ring is used again and again, and what does not fit is not kept until all before it is durable.
TEST_F(KeptMemoryTest, TheRingWrapsAndSaysWhatItHasNoRoomFor) {
  auto memory = Make();
  uint64_t sequence = 100;
  uint64_t durable = 100;
  for (int round = 0; round < 20; ++round) {
    while (Keep(*memory, sequence + 1)) ++sequence;
    EXPECT_TRUE(memory->wants_records_durable());
    EXPECT_FALSE(Keep(*memory, sequence + 2)) << "one before it is missing";
    EXPECT_EQ(memory->kept_sequence(), sequence);
    EXPECT_EQ(SequencesAfter(durable).size(), sequence - durable);
    durable = sequence + 1;  // it came after what is kept, and is durable by now
    memory->ForgetRecords(durable);
    EXPECT_EQ(memory->kept_sequence(), durable);
    EXPECT_FALSE(memory->wants_records_durable());
    sequence = durable;
  }
}

// A record that came while the one before it was being made durable asks for that again: else nothing would be kept any
// more until somebody syncs.
TEST_F(KeptMemoryTest, ARecordBehindAGapAsksForDurability) {
  auto memory = Make();
  uint64_t sequence = 100;
  while (Keep(*memory, sequence + 1)) ++sequence;
  memory->ForgetRecords(sequence);
  EXPECT_FALSE(memory->wants_records_durable());
  EXPECT_FALSE(Keep(*memory, sequence + 2));
  EXPECT_TRUE(memory->wants_records_durable());
  memory->ForgetRecords(sequence + 2);
  EXPECT_TRUE(Keep(*memory, sequence + 3));
}

// Who appends is slowed down by what waits for the device, and not by units that are still being filled.
TEST_F(KeptMemoryTest, WritersArePacedByTheDevice) {
  ManualClock clock;
  const auto memory = KeptMemory::Make(*PageOwner::Of(image_), directory_, 2 * kMiB, kUuid, kMount, clock).value();
  std::vector<KeptUnitMemory> units;
  while (auto unit = memory->TryTake(5, 0, 0, kKeptGranule)) units.push_back(*std::move(unit));
  memory->Pace(kMiB);
  EXPECT_EQ(memory->Stats().waits, 0U) << "nothing waits for the device";

  const size_t three_quarters = units.size() * 3 / 4;
  for (size_t i = 0; i <= three_quarters; ++i) units[i].NoteFull();
  memory->Pace(kMiB);
  EXPECT_EQ(memory->Stats().waits, 0U) << "nobody knows yet how fast the device is";
  clock.Advance(kKeptGranule * 1000);  // 1 us for each byte
  units.erase(units.begin());
  // The device takes 1 ms for these; half of the memory behind the free half is full.
  memory->Pace(1000);
  EXPECT_EQ(memory->Stats().waits, 0U) << "half a millisecond is too little to sleep";
  std::jthread writer([&] { memory->Pace(2000); });
  const int64_t until = clock.AwaitWaiter(clock.NowNs());
  EXPECT_NEAR(static_cast<double>(until - clock.NowNs()), 1.5e6, 0.3e6);
  clock.Advance(2 * kMillisecondNs);
  writer.join();
  EXPECT_EQ(memory->Stats().waits, 1U);
  units.clear();
  memory->Pace(kMiB);
  EXPECT_EQ(memory->Stats().waits, 1U);
}

TEST_F(KeptMemoryTest, UnitsBecomeSmallerWhereMemoryIsShortAndThenTheirMakerWaits) {
  auto memory = Make();
  std::vector<KeptUnitMemory> units;
  std::vector<size_t> sizes;
  while (auto unit = memory->TryTake(5, 0, 0, 256 * kKiB)) {
    sizes.push_back(unit->span().size());
    units.push_back(*std::move(unit));
  }
  EXPECT_TRUE(std::ranges::is_sorted(sizes, std::greater<>()));
  EXPECT_EQ(sizes.back(), kKeptGranule);
  int awaited = 0;
  memory->OnAwaited([&] { ++awaited; });
  EXPECT_FALSE(memory->is_awaited());
  std::thread giver([&] {
    while (!memory->is_awaited()) std::this_thread::yield();
    units.pop_back();
  });
  const KeptUnitMemory unit = memory->Take(6, 0, 0, 256 * kKiB);
  giver.join();
  EXPECT_EQ(unit.span().size(), kKeptGranule);
  EXPECT_EQ(awaited, 1);
  EXPECT_FALSE(memory->is_awaited());
}

TEST_F(KeptMemoryTest, NoTwoUnitsShareMemory) {
  auto memory = Make();
  Random random(3);
  std::vector<std::pair<KeptUnitMemory, std::byte>> units;
  for (int i = 0; i < 5000; ++i) {
    if (random.Chance(0.5) && !units.empty()) {
      const size_t at = random.Below(units.size());
      for (const std::byte byte : units[at].first.span()) ASSERT_EQ(byte, units[at].second);
      units.erase(units.begin() + static_cast<ptrdiff_t>(at));
    } else if (auto unit = memory->TryTake(1, 0, 0, kKeptGranule * random.Between(1, 6))) {
      const auto fill = static_cast<std::byte>(i);
      std::ranges::fill(unit->span(), fill);
      units.emplace_back(*std::move(unit), fill);
    }
  }
  units.clear();
  EXPECT_EQ(memory->Stats().used, 0U);
}

TEST_F(KeptMemoryTest, WhatIsOfNoUseIsRemoved) {
  { auto memory = Make(); }
  RemoveUselessKeptMemory(image_, directory_, kUuid, kMount);
  EXPECT_TRUE(std::filesystem::exists(KeptFile()));
  RemoveUselessKeptMemory(image_, directory_, kUuid, kMount + 1);
  EXPECT_FALSE(std::filesystem::exists(KeptFile()));
}

TEST_F(KeptMemoryTest, TheRightsAreThoseOfTheDevice) {
  std::filesystem::permissions(image_, std::filesystem::perms(0640));
  auto memory = Make();
  EXPECT_EQ(std::filesystem::status(KeptFile()).permissions(), std::filesystem::perms(0440));
}

}  // namespace
}  // namespace isozone
