// Two copies of the metadata, of which one is lost, damaged or behind: what is read is never wrong, and never older
// than what was acknowledged.
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/metadata/batch_stream.h"
#include "store/metadata/journal_test_util.h"
#include "store/metadata/metadata_log.h"
#include "store/mount/fsck.h"

namespace isozone {
namespace {

using testing::HasSubstr;

class CopiesTest : public JournalTest {
 protected:
  // The zones are so large that what a test writes does not roll a copy.
  void SetUp() override { Format(TinyZones(4096, 64)); }

  ZoneId Head(size_t copy) { return RecoverMetadata(*device_).value().copies.at(copy).head; }
  void FlipByte(FrozenDevice& frozen, ZoneId zone, size_t at) { frozen.zone(zone)[at] ^= std::byte{0x5a}; }
};

TEST_F(CopiesTest, EitherMountsAlone) {
  for (const size_t lost : {0U, 1U}) {
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 64)));
    auto store = OpenStore();
    Work(*store, 7);
    store.reset();
    device_->SetZoneState(Head(lost), ZoneState::kOffline);
    const auto recovered = RecoverMetadata(*device_);
    ISOZONE_ASSERT_OK(recovered.status());
    EXPECT_EQ(recovered->whole_copies(), 1U);
    ExpectRecovers(7);
    store = OpenStore();
    ASSERT_NE(store, nullptr);
    ISOZONE_ASSERT_OK(store->journal().RestoreCopies());
    Work(*store, 3);
    store.reset();
    EXPECT_EQ(RecoverMetadata(*device_).value().whole_copies(), 2U);
    ExpectRecovers(10);
  }
}

TEST_F(CopiesTest, WhenAllAreLostMountingSaysSo) {
  auto store = OpenStore();
  Work(*store, 7);
  store.reset();
  device_->SetZoneState(ZoneId(0), ZoneState::kOffline);
  device_->SetZoneState(ZoneId(1), ZoneState::kOffline);
  const Status status = RecoverMetadata(*device_).status();
  EXPECT_EQ(status.code(), StatusCode::kIoError) << status.ToString();
  EXPECT_THAT(std::string(status.message()), HasSubstr("zone 0"));
}

// The first zones are lost one after the other. Copies then begin elsewhere, and are found there.
TEST_F(CopiesTest, MoveToAnyZoneWhereTheFirstCannotBeWritten) {
  auto store = OpenStore();
  Work(*store, 7);
  uint64_t done = 7;
  for (const uint32_t zone : {0U, 1U, 2U}) {
    store.reset();
    device_->SetZoneState(ZoneId(zone), zone == 1 ? ZoneState::kOffline : ZoneState::kReadOnly);
    store = OpenStore();
    ASSERT_NE(store, nullptr);
    Work(*store, 5);
    ISOZONE_ASSERT_OK(store->journal().RestoreCopies());
    ASSERT_EQ(store->journal().Copies().size(), 2U);
    done += 5;
  }
  for (const auto& zones : store->journal().Copies()) EXPECT_GT(zones.front().value(), 2U);
  store.reset();
  EXPECT_EQ(RecoverMetadata(*device_).value().whole_copies(), 2U);
  ExpectRecovers(done);
}

TEST_F(CopiesTest, LieInDifferentGroupsWhereTheseAreKnown) {
  const DeviceGeometry geometry = device_->geometry();
  auto groups = std::make_shared<ZoneGroups>();
  groups->channel_of_group = {0, 0};
  for (uint32_t zone = 0; zone < geometry.zone_count; ++zone) {
    groups->group_of_zone.push_back(zone < 32 ? 0 : 1);  // all of the home zones are in one group
    groups->confidence_percent.push_back(99);
  }
  const GroupIndex index(geometry.zone_count, groups.get());
  auto store = Store::Open(*device_, kGiB, {}, {}, std::make_shared<const GroupIndex>(index)).value();
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());
  const auto copies = store->journal().Copies();
  ASSERT_EQ(copies.size(), 2U);
  EXPECT_NE(index.of(copies[0].front()), index.of(copies[1].front()));
  Work(*store, 5);
  store.reset();
  ExpectRecovers(5);
}

TEST_F(CopiesTest, ASyncWritesOneBatchToEachAndALogNothing) {
  auto store = OpenStore();
  Work(*store, 1);
  const uint64_t before = device_->counters().host_bytes_written;
  Work(*store, 10);
  EXPECT_EQ(device_->counters().host_bytes_written - before, 10 * 2 * 4096U);
}

TEST_F(CopiesTest, OneCopyIsWrittenWhereOneWasAskedFor) {
  ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 64), /*copies=*/1));
  auto store = OpenStore();
  const uint64_t before = device_->counters().host_bytes_written;
  Work(*store, 10);
  EXPECT_EQ(device_->counters().host_bytes_written - before, 10 * 4096U);
  ISOZONE_ASSERT_OK(store->journal().Checkpoint());
  Work(*store, 10);
  EXPECT_EQ(store->journal().Copies().size(), 1U);
  store.reset();
  const auto recovered = RecoverMetadata(*device_);
  ISOZONE_ASSERT_OK(recovered.status());
  EXPECT_EQ(recovered->copies_wanted, 1U);
  EXPECT_EQ(recovered->whole_copies(), 1U);
  ExpectRecovers(20);
}

TEST_F(CopiesTest, FormattingWantsOneOrTwo) {
  EXPECT_EQ(FormatDevice(*device_, {"", true, 0}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FormatDevice(*device_, {"", true, 3}).code(), StatusCode::kInvalidArgument);
}

// A copy that was given up and could not be erased must not count again once the other is damaged.
TEST_F(CopiesTest, AnOlderCopyIsNotUsedInPlaceOfADamagedOneThatHadMore) {
  auto store = OpenStore();
  Work(*store, 3);
  const ZoneId stale = store->journal().Copies().front().front();
  const ZoneId other = store->journal().Copies().back().front();
  device_->SetZoneState(stale, ZoneState::kReadOnly);
  Work(*store, 3);
  store.reset();
  FrozenDevice frozen(*device_);
  // The device looks as if no other copy had been written yet.
  for (uint32_t zone = 0; zone < frozen.geometry().zone_count; ++zone) {
    if (ZoneId(zone) != stale && ZoneId(zone) != other) frozen.zone(ZoneId(zone)).clear();
  }
  ASSERT_FALSE(frozen.zone(other).empty());
  EXPECT_EQ(RecoverMetadata(frozen).value().sequence, 6U);
  FlipByte(frozen, other, 4096 * 3 + 70);  // in the journal, before what only this copy has
  const Status status = RecoverMetadata(frozen).status();
  EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.ToString();
  EXPECT_THAT(std::string(status.message()), HasSubstr("the other copy"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("is older"));
}

TEST_F(CopiesTest, AreWrittenAnewWhereTheyAreDamaged) {
  for (const size_t damaged : {0U, 1U}) {
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 64)));
    auto store = OpenStore();
    Work(*store, 4);
    store.reset();
    // The controller has finished the zone, and a batch in it is torn. A power cut leaves no such fault.
    const ZoneId head = Head(damaged);
    AlignedBuffer noise(4096);
    std::fill_n(noise.data(), noise.size(), std::byte{0x77});
    const ZoneDescriptor zone = DescribeZone(*device_, head).value();
    const DeviceOffset at(device_->geometry().ZoneStart(head).value() + zone.write_pointer);
    ASSERT_EQ(WriteDurably(*device_, at, noise.span()), DeviceStatus::kSuccess);
    const RecoveredMetadata found = RecoverMetadata(*device_).value();
    EXPECT_EQ(found.whole_copies(), 1U);
    ExpectRecovers(4);
    store = OpenStore();
    ISOZONE_ASSERT_OK(store->journal().RestoreCopies());
    store.reset();
    EXPECT_EQ(RecoverMetadata(*device_).value().whole_copies(), 2U);
    ExpectRecovers(4);
  }
}

// Another copy took its place, but its zone was not reset: the power failed before that, or the reset failed.
TEST_F(CopiesTest, ADamagedOneThatWasReplacedIsNoError) {
  auto store = OpenStore();
  Work(*store, 4);
  store.reset();
  const ZoneId head = Head(0);
  AlignedBuffer noise(4096);
  std::fill_n(noise.data(), noise.size(), std::byte{0x77});
  const ZoneDescriptor zone = DescribeZone(*device_, head).value();
  const DeviceOffset at(device_->geometry().ZoneStart(head).value() + zone.write_pointer);
  ASSERT_EQ(WriteDurably(*device_, at, noise.span()), DeviceStatus::kSuccess);
  EXPECT_FALSE(Fsck(*device_, {}).value().clean());
  for (int i = 0; i < 2; ++i) device_->FailNext(DeviceOp::kReset, head, DeviceStatus::kWriteFault);
  store = OpenStore();
  ISOZONE_ASSERT_OK(store->journal().RestoreCopies());
  store.reset();
  ASSERT_GT(DescribeZone(*device_, head).value().write_pointer, 0U);
  const FsckReport report = Fsck(*device_, {}).value();
  EXPECT_EQ(report.copies.size(), 2U);
  EXPECT_TRUE(report.clean());
  ASSERT_FALSE(report.findings.empty());
  EXPECT_THAT(report.findings.front().text, HasSubstr(fmt::format("zone {}", head.value())));
  store = OpenStore();
  ISOZONE_ASSERT_OK(store->pool().Settle());
  store.reset();
  EXPECT_TRUE(Fsck(*device_, {}).value().findings.empty());
}

// --- Zones that the controller has finished ---

TEST_F(CopiesTest, ZonesThatTheControllerHasFinishedEndWhereTheirZerosBegin) {
  for (const uint32_t zones : {1U, 2U, 3U}) {  // bits: of which copies
    SCOPED_TRACE(zones);
    ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 16)));
    auto store = OpenStore();
    Work(*store, 5);
    store.reset();
    for (const uint32_t zone : {0U, 1U}) {
      if ((zones & (1U << zone)) == 0) continue;
      ISOZONE_ASSERT_OK(ManageZone(*device_, DeviceOp::kFinish, ZoneId(zone)));
    }
    const RecoveredMetadata found = RecoverMetadata(*device_).value();
    EXPECT_EQ(found.whole_copies(), 2U);
    EXPECT_FALSE(found.torn_tail);
    ExpectRecovers(5);
    store = OpenStore();
    ASSERT_NE(store, nullptr);
    Work(*store, 5);
    // The same happens while the copy is being written.
    const ZoneId now = store->journal().Copies().front().front();
    ISOZONE_ASSERT_OK(ManageZone(*device_, DeviceOp::kFinish, now));
    Work(*store, 5);
    ISOZONE_ASSERT_OK(store->journal().RestoreCopies());
    store.reset();
    EXPECT_EQ(RecoverMetadata(*device_).value().whole_copies(), 2U);
    ExpectRecovers(15);
  }
}

TEST_F(CopiesTest, OfAReadOnlyZoneTheWritePointerIsNotBelieved) {
  // This device reports any write pointer for zones that are read-only.
  class LyingDevice final : public PassingDevice {
   public:
    LyingDevice(ZonedDevice& device, uint64_t pointer) : PassingDevice(device), pointer_(pointer) {}
    Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const override {
      ISOZONE_RETURN_IF_ERROR(PassingDevice::ReportZones(first, out));
      for (ZoneDescriptor& zone : out) {
        if (zone.state == ZoneState::kReadOnly) zone.write_pointer = pointer_;
      }
      return {};
    }

   private:
    const uint64_t pointer_;
  };
  auto store = OpenStore();
  Work(*store, 2);
  store.reset();
  for (const uint32_t zone : {0U, 1U}) device_->SetZoneState(ZoneId(zone), ZoneState::kReadOnly);
  for (const uint64_t pointer : {uint64_t{0}, uint64_t{4096}, device_->geometry().zone_capacity}) {
    LyingDevice lying(*device_, pointer);
    const auto recovered = RecoverMetadata(lying);
    ISOZONE_ASSERT_OK(recovered.status());
    EXPECT_EQ(recovered->whole_copies(), 2U);
    history_->ExpectIs(*recovered);
    EXPECT_EQ(recovered->sequence, 2U);
  }
  store = OpenStore();
  Work(*store, 3);
  store.reset();
  ExpectRecovers(5);
}

// --- Damage ---

class DamageTest : public CopiesTest {
 protected:
  void SetUp() override { Format(TinyZones(4096, 16)); }

  // Makes a small file system with everything in it. Each copy has a checkpoint and a journal of several batches.
  void MakeImage() {
    auto store = OpenStore();
    Work(*store, 3);
    ISOZONE_ASSERT_OK(store->journal().Checkpoint());
    Work(*store, 4);
    store.reset();
    frozen_.emplace(*device_);
    const auto recovered = RecoverMetadata(*frozen_);
    ISOZONE_ASSERT_OK(recovered.status());
    ASSERT_EQ(recovered->whole_copies(), 2U);
    print_ = PrintOf(recovered->state);
    copy_ = recovered->position->copies[0];
    other_ = recovered->position->copies[1];
  }
  // Leaves only copy_.
  void LoseOther() { frozen_->zone(other_.superblock.zone).clear(); }
  std::vector<std::byte>& Zone() { return frozen_->zone(copy_.superblock.zone); }
  std::string WhyNot() {
    const auto recovered = RecoverMetadata(*frozen_);
    return recovered.ok() ? "recovered" : recovered.status().ToString();
  }

  std::optional<FrozenDevice> frozen_;
  uint32_t print_ = 0;
  FoundCopy copy_;
  FoundCopy other_;
};

TEST_F(DamageTest, EveryByteThatIsChangedInOneCopyIsFoundAndTheOtherCounts) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  Random random(seed_);
  int found = 0;
  for (uint32_t zone = 0; zone < frozen_->geometry().zone_count; ++zone) {
    std::vector<std::byte>& bytes = frozen_->zone(ZoneId(zone));
    for (size_t i = 0; i < bytes.size(); i += i % 4096 < 320 ? 1 : 37) {
      const std::byte before = bytes[i];
      bytes[i] ^= static_cast<std::byte>(random.Between(1, 255));
      const auto recovered = RecoverMetadata(*frozen_);
      ASSERT_TRUE(recovered.ok()) << "zone " << zone << " byte " << i << ": " << recovered.status().ToString();
      ASSERT_EQ(PrintOf(recovered->state), print_) << "zone " << zone << " byte " << i;
      ASSERT_FALSE(recovered->torn_tail) << "zone " << zone << " byte " << i;
      if (recovered->whole_copies() < 2) ++found;
      bytes[i] = before;
    }
  }
  EXPECT_GT(found, 2 * (256 + 64 * 5));  // the superblock, and at least the headers of all batches
}

TEST_F(DamageTest, EveryByteThatIsChangedInBothCopiesIsFoundOrDoesNotMatter) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  Random random(seed_);
  int found = 0;
  std::vector<std::byte>& other = frozen_->zone(other_.superblock.zone);
  ASSERT_EQ(Zone().size(), other.size());
  for (size_t i = 0; i < Zone().size(); i += i % 4096 < 320 ? 1 : 37) {
    const auto flip = static_cast<std::byte>(random.Between(1, 255));
    Zone()[i] ^= flip;
    other[i] ^= flip;
    const auto recovered = RecoverMetadata(*frozen_);
    if (recovered.ok()) {
      ASSERT_EQ(PrintOf(recovered->state), print_) << "byte " << i;
    } else {
      ++found;
      const StatusCode code = recovered.status().code();
      const bool said = code == StatusCode::kCorruption || code == StatusCode::kNotFound;
      ASSERT_TRUE(said) << "byte " << i << ": " << recovered.status().ToString();
      if (i >= 8) {
        ASSERT_THAT(recovered.status().ToString(), HasSubstr("zone ")) << "byte " << i;
      }
    }
    Zone()[i] ^= flip;
    other[i] ^= flip;
  }
  EXPECT_GT(found, 4096 / 37 + 64 * 5);
}

TEST_F(DamageTest, EveryBlockThatIsMissingAtTheEndIsATornTailOrAShorterJournal) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  LoseOther();
  // There is one more batch, of several blocks.
  RecordQueue queue;
  std::vector<MetadataOp> ops;
  for (uint64_t i = 0; i < 200; ++i) {
    Inode inode;
    inode.id = InodeId(1000 + i);
    inode.links = {{kRootInode, "more-" + std::to_string(i)}};
    ops.emplace_back(PutInode{inode});
  }
  queue.Add([&](std::vector<std::byte>& out) { EncodeRecord(ops, out); });
  BatchBuilder builder(ChecksumSeed(copy_.superblock.uuid, copy_.superblock.generation), frozen_->geometry());
  const size_t begin = Zone().size();
  const auto batch =
      builder.Build(queue, copy_.end.counters, BatchBuilder::Info(), frozen_->geometry().zone_capacity - begin);
  ASSERT_TRUE(queue.empty());
  const size_t blocks = batch.blocks.size() / 4096;
  ASSERT_GT(blocks, 1U);
  Zone().insert(Zone().end(), batch.blocks.begin(), batch.blocks.end());
  EXPECT_EQ(RecoverMetadata(*frozen_).value().sequence, copy_.end.counters.sequence);
  for (size_t left = blocks; left-- > 0;) {
    Zone().resize(begin + left * 4096);
    const auto recovered = RecoverMetadata(*frozen_);
    ISOZONE_ASSERT_OK(recovered.status());
    EXPECT_EQ(PrintOf(recovered->state), print_);
    EXPECT_EQ(recovered->torn_tail, left > 0);
  }
}

TEST_F(DamageTest, DamageBeforeTheEndIsReportedWithItsPlaceAndEffect) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  LoseOther();
  Zone()[4096 * 4 + 70] ^= std::byte{1};
  EXPECT_EQ(WhyNot(), fmt::format("Corruption: journal corrupt in zone {} at offset 16384: the checksum of the batch's "
                                  "payload is wrong; the changes from sequence 5 on are lost",
                                  copy_.superblock.zone.value()));
}

TEST_F(DamageTest, AZeroedLastBatchIsNoTornTail) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  LoseOther();
  std::fill(Zone().end() - 4096, Zone().end(), std::byte{0});
  EXPECT_THAT(WhyNot(), HasSubstr("no batch begins here"));
}

TEST_F(DamageTest, ABatchThatIsRepeatedOrLeftOutIsFound) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  LoseOther();
  const std::vector<std::byte> before = Zone();
  Zone().insert(Zone().end(), before.end() - 4096, before.end());
  EXPECT_THAT(WhyNot(), HasSubstr("follows where"));
  Zone() = before;
  Zone().erase(Zone().end() - 8192, Zone().end() - 4096);
  EXPECT_THAT(WhyNot(), HasSubstr("follows where"));
}

TEST_F(DamageTest, BatchesOfTheOtherCopyAreNotAccepted) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  const std::vector<std::byte>& other = frozen_->zone(other_.superblock.zone);
  std::copy(other.end() - 4096, other.end(), Zone().end() - 4096);
  LoseOther();
  EXPECT_THAT(WhyNot(), HasSubstr("checksum of the batch's header"));
}

TEST_F(DamageTest, ACopyThatWasMovedToAnotherZoneIsNotAccepted) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  LoseOther();
  frozen_->zone(ZoneId(9)) = Zone();
  Zone().clear();
  EXPECT_THAT(WhyNot(), HasSubstr("it belongs into zone"));
}

TEST_F(DamageTest, ACheckpointThatEndsBeforeItsFooterDoesNotCount) {
  ASSERT_NO_FATAL_FAILURE(MakeImage());
  Zone().resize(4096);
  const auto recovered = RecoverMetadata(*frozen_);
  ISOZONE_ASSERT_OK(recovered.status());
  EXPECT_EQ(PrintOf(recovered->state), print_);
  EXPECT_EQ(recovered->whole_copies(), 1U);
  LoseOther();
  EXPECT_EQ(RecoverMetadata(*frozen_).status().code(), StatusCode::kNotFound);
}

// --- Superblocks ---

class SuperblockTest : public JournalTest {
 protected:
  Superblock First() { return *FindSuperblocks(*device_, false).value().front().superblock; }
  AlignedBuffer Slot(const Superblock& superblock) {
    AlignedBuffer slot(SuperblockSlot(TinyZones()));
    EncodeSuperblock(superblock, slot.span());
    return slot;
  }
};

TEST_F(SuperblockTest, SurvivesTheRoundTrip) {
  const Superblock written = First();
  const Superblock read = DecodeSuperblock(Slot(written).span(), TinyZones(), written.zone).value();
  EXPECT_EQ(read.uuid, written.uuid);
  EXPECT_EQ(read.label, "a label");
  EXPECT_EQ(read.copies, 2U);
  EXPECT_EQ(read.generation, written.generation);
  EXPECT_EQ(read.sequence, written.sequence);
}

TEST_F(SuperblockTest, AnotherVersionOrNewerFeaturesAreNotSupported) {
  const auto with = [&](size_t offset, uint32_t value) {
    AlignedBuffer slot = Slot(First());
    slot.data()[offset] = static_cast<std::byte>(value);
    constexpr uint32_t kZero = 0;
    std::memcpy(slot.data() + offsetof(SuperblockHeader, crc), &kZero, sizeof(kZero));
    const uint32_t crc = Crc32c(slot.span());
    std::memcpy(slot.data() + offsetof(SuperblockHeader, crc), &crc, sizeof(crc));
    return DecodeSuperblock(slot.span(), TinyZones(), ZoneId(0)).status();
  };
  const Status newer = with(offsetof(SuperblockHeader, version), kFormatVersion + 1);
  EXPECT_EQ(newer.code(), StatusCode::kNotSupported);
  EXPECT_THAT(std::string(newer.message()), HasSubstr(fmt::format("version {}", kFormatVersion + 1)));
  EXPECT_THAT(std::string(newer.message()), HasSubstr("use a newer one"));
  EXPECT_TRUE(with(offsetof(SuperblockHeader, version), kOldestVersionRead).ok());
  const Status older = with(offsetof(SuperblockHeader, version), kOldestVersionRead - 1);
  EXPECT_EQ(older.code(), StatusCode::kNotSupported);
  EXPECT_THAT(std::string(older.message()), HasSubstr("format it again with isozone mkfs --force"));
  EXPECT_EQ(with(offsetof(SuperblockHeader, incompatible), 1).code(), StatusCode::kNotSupported);
}

// Counting on from there would wrap, and an older copy would count as the newest.
TEST_F(SuperblockTest, NumbersNearTheEndAreRefused) {
  const auto decoded = [&](uint64_t generation, uint64_t sequence) {
    Superblock superblock = First();
    superblock.generation = generation;
    superblock.sequence = sequence;
    return DecodeSuperblock(Slot(superblock).span(), TinyZones(), superblock.zone).status();
  };
  ISOZONE_EXPECT_OK(decoded(kGenerationMax, kSequenceMax));
  for (const uint64_t near : {kGenerationMax + 1, uint64_t{1} << 63, UINT64_MAX - 1, UINT64_MAX}) {
    EXPECT_EQ(decoded(near, 1).code(), StatusCode::kCorruption) << near;
    EXPECT_EQ(decoded(1, near).code(), StatusCode::kCorruption) << near;
  }
}

TEST_F(SuperblockTest, AnotherGeometryIsRefusedWithBoth) {
  DeviceGeometry other = TinyZones();
  other.zone_count = 32;
  const Status status = DecodeSuperblock(Slot(First()).span(), other, ZoneId(0)).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("64 zones"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("32 of"));
}

TEST(CopyZonesTest, AreAsManyAsACheckpointAndARestForTheJournalTake) {
  const DeviceGeometry geometry = TinyZones(4096, 16);
  EXPECT_EQ(CopyZones(geometry, 100, MetadataRest::kWhole), 1U);
  EXPECT_EQ(CopyZones(geometry, 8 * 4096, MetadataRest::kWhole), 1U);
  EXPECT_EQ(CopyZones(geometry, 11 * 4096, MetadataRest::kWhole), 2U);
  EXPECT_EQ(CopyZones(geometry, 11 * 4096, MetadataRest::kHalf), 1U);
  EXPECT_EQ(CopyZones(geometry, 12 * 4096, MetadataRest::kHalf), 2U);
  EXPECT_EQ(CopyZones(geometry, 12 * 4096, MetadataRest::kLeast), 1U);
  EXPECT_EQ(CopyZones(geometry, 14 * 4096, MetadataRest::kLeast), 2U);
}

TEST(ProbeTest, TellsWhoseDeviceItIs) {
  FrozenDevice device(TinyZones());
  EXPECT_EQ(ProbeDevice(device).value(), DeviceContent::kEmpty);
  EXPECT_EQ(RecoverMetadata(device).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(RecoverMetadata(device).status().message()), HasSubstr("isozone mkfs"));

  device.zone(ZoneId(2)).resize(4096, std::byte{7});
  EXPECT_EQ(ProbeDevice(device).value(), DeviceContent::kUnknown);
  EXPECT_EQ(RecoverMetadata(device).status().code(), StatusCode::kNotFound);

  // ZenFS writes a CRC and a length, and then its superblock, which begins with the magic number.
  device.zone(ZoneId(1)).resize(4096);
  const std::array<uint32_t, 3> zenfs = {0x12345678, 512, 0x5A454E46};
  std::memcpy(device.zone(ZoneId(1)).data(), zenfs.data(), sizeof(zenfs));
  EXPECT_EQ(ProbeDevice(device).value(), DeviceContent::kZenFs);
  const Status status = RecoverMetadata(device).status();
  EXPECT_EQ(status.code(), StatusCode::kNotSupported);
  EXPECT_THAT(std::string(status.message()), HasSubstr("formatted by ZenFS"));
}

TEST(ProbeTest, FormattingRefusesForeignDataUnlessForced) {
  MemoryImage image = EmulatedDevice::CreateInMemory(TinyZones()).value();
  auto device = EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}).value();
  AlignedBuffer block(4096);
  const std::array<uint32_t, 3> zenfs = {0x12345678, 512, 0x5A454E46};
  std::memcpy(block.data(), zenfs.data(), sizeof(zenfs));
  ASSERT_EQ(WriteDurably(*device, DeviceOffset(0), block.span()), DeviceStatus::kSuccess);
  const Status status = FormatDevice(*device, {});
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ZenFS"));
  ISOZONE_ASSERT_OK(FormatDevice(*device, {"", true}));
  EXPECT_EQ(ProbeDevice(*device).value(), DeviceContent::kIsozone);
}

}  // namespace
}  // namespace isozone
