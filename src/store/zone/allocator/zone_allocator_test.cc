// Who waits for the collector, and when it gives up. The tests decide what happens between any two questions.
#include "store/zone/allocator/zone_allocator.h"

#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

using Action = ZoneAllocator::Answer::Action;
using Inquiry = ZoneAllocator::Inquiry;

constexpr uint64_t kBlock = 4 * kKiB;
constexpr uint64_t kCapacity = 16 * kBlock;
constexpr ZoneId kMetadataZone{0};
constexpr ZoneRequest kData = {ZoneUse::kData, Lifetime::kMedium, kBlock};

// Of ten zones, three are for metadata, the first of which is full, two are reserved for logs and GC, and five are for
// data. Three blocks have died in one of these five, which has a writer and room; the others are full and live.
class WaitForCollectorTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<ZoneDescriptor> report;
    for (uint32_t i = 0; i < 10; ++i) report.push_back({ZoneId(i), ZoneState::kEmpty, kCapacity, 0});
    report[kMetadataZone.value()] = {kMetadataZone, ZoneState::kFull, kCapacity, kCapacity};
    AllocatorOptions options;
    options.geometry.block_size = kBlock;
    options.geometry.zone_count = 10;
    options.geometry.zone_size = kCapacity;
    options.geometry.zone_capacity = kCapacity;
    options.metadata_copies = 2;
    options.asks_for_space = true;
    allocator_ = std::make_unique<ZoneAllocator>(report, options, std::move(*MakePlacementPolicy("zenfs")));
    allocator_->ReserveForMetadata(HomeZones(2), MetadataClaim::kForced);
    ledger().started = true;
    rounds().Attach(true);
    writer_ = Take();
    Write(writer_, kCapacity / 2);
    ledger().table.Edit(writer_.zone)->RemoveLive(3 * kBlock);
    ASSERT_TRUE(writer_.state->BeginWrite());
    for (int i = 0; i < 4; ++i) {
      const ZoneGrant full = Take();
      Write(full, kCapacity);
      allocator_->Release(full);
    }
  }

  ZoneLedger& ledger() { return allocator_->ledger(); }
  CollectorRounds& rounds() { return ledger().rounds; }
  Action Ask(Inquiry& inquiry) { return allocator_->Ask(inquiry, /*now_ns=*/0).action; }
  ZoneGrant Take(const ZoneRequest& request = kData) {
    Inquiry inquiry(*allocator_, request);
    const ZoneAllocator::Answer answer = allocator_->Ask(inquiry, /*now_ns=*/0);
    EXPECT_EQ(answer.action, Action::kGranted);
    return answer.grant;
  }
  void Write(const ZoneGrant& lease, uint64_t bytes) {
    ASSERT_TRUE(lease.state->BeginWrite());
    allocator_->EndWrite(lease, bytes, bytes);
  }
  void RoundInVain() {
    rounds().Begin();
    rounds().End(/*gained=*/false);
  }

  std::unique_ptr<ZoneAllocator> allocator_;
  ZoneGrant writer_;  // in the middle of a write
};

// The thread that asks gives a reset to the device, and is not known to a round that begins meanwhile.
TEST_F(WaitForCollectorTest, ARoundThatBeginsDuringAnotherRemedyIsNotHopeless) {
  allocator_->EndWrite(writer_, kCapacity / 2, kCapacity / 2);
  allocator_->Release(writer_);
  Inquiry inquiry(*allocator_, kData);
  EXPECT_EQ(Ask(inquiry), Action::kCollector);
  allocator_->ReleaseMetadata(kMetadataZone);
  EXPECT_EQ(Ask(inquiry), Action::kExecute);
  EXPECT_FALSE(rounds().wanted());
  RoundInVain();
  allocator_->upkeep().NoteReset(kMetadataZone);
  EXPECT_EQ(Ask(inquiry), Action::kCollector);
  EXPECT_TRUE(rounds().wanted());
  EXPECT_EQ(Ask(inquiry), Action::kCollector) << "no round has ended";
  RoundInVain();
  EXPECT_EQ(Ask(inquiry), Action::kNothing);
}

// The collector takes no zone that is being written.
TEST_F(WaitForCollectorTest, WhatAWriterHasKeptFromTheCollectorIsWaitedFor) {
  Inquiry inquiry(*allocator_, kData);
  EXPECT_EQ(Ask(inquiry), Action::kCollector);
  EXPECT_TRUE(allocator_->collection().Candidates().empty());
  RoundInVain();
  EXPECT_EQ(Ask(inquiry), Action::kWait);
  allocator_->EndWrite(writer_, kCapacity / 2, kCapacity / 2);
  allocator_->Release(writer_);
  EXPECT_EQ(allocator_->collection().Candidates().size(), 1U);
  EXPECT_EQ(Ask(inquiry), Action::kCollector);
  RoundInVain();
  EXPECT_EQ(Ask(inquiry), Action::kNothing);
}

// Otherwise two writers without space would keep the collector busy for each other, for ever.
TEST_F(WaitForCollectorTest, AWriteOfTheCollectorIsNoReasonForAnotherRound) {
  allocator_->EndWrite(writer_, kCapacity / 2, kCapacity / 2);
  allocator_->Release(writer_);
  const ZoneGrant collector = Take({.use = ZoneUse::kData, .min_room = kBlock, .gc = true});
  Write(collector, 2 * kBlock);
  ledger().table.Edit(collector.zone)->RemoveLive(kBlock);
  ASSERT_TRUE(collector.state->BeginWrite());
  Inquiry inquiry(*allocator_, kData);
  EXPECT_EQ(Ask(inquiry), Action::kCollector);
  RoundInVain();
  EXPECT_EQ(Ask(inquiry), Action::kWait);
  allocator_->EndWrite(collector, kBlock, kBlock);
  EXPECT_EQ(Ask(inquiry), Action::kNothing);
}

TEST_F(WaitForCollectorTest, RoomThatAWriterHasKeptFromTheCollectorIsWaitedFor) {
  const uint64_t in_reach = ledger().FreeForData() + 3 * kBlock;
  Inquiry enough(*allocator_, Inquiry::Room{in_reach});
  Inquiry too_much(*allocator_, Inquiry::Room{in_reach + 1});
  EXPECT_EQ(Ask(enough), Action::kCollector);
  EXPECT_EQ(Ask(too_much), Action::kCollector);
  RoundInVain();
  EXPECT_EQ(Ask(too_much), Action::kNothing);
  EXPECT_EQ(Ask(enough), Action::kWait);
  allocator_->EndWrite(writer_, kBlock, kBlock);
  EXPECT_EQ(Ask(enough), Action::kRevoked) << "the zone becomes a candidate";
  EXPECT_EQ(allocator_->collection().Candidates().size(), 1U);
  EXPECT_EQ(Ask(enough), Action::kCollector);
  RoundInVain();
  EXPECT_EQ(Ask(enough), Action::kNothing);
}

}  // namespace
}  // namespace isozone
