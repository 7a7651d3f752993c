// Drives the ZoneAllocator alone, for millions of steps, on a device that is a table of write pointers. Writers, the
// collector, the metadata and background upkeep take random steps, commands end in any order, well or badly, and time
// passes. After every step, the promises of the allocator (zone_allocator.h) are compared with the device.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "store/zone/allocator/zone_allocator.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

using Action = ZoneAllocator::Answer::Action;

constexpr uint64_t kBlock = 4 * kKiB;
constexpr uint64_t kCapacity = 16 * kBlock;
constexpr uint32_t kCopies = 2;

struct Setting {
  friend std::ostream& operator<<(std::ostream& out, const Setting& setting) {
    return out << setting.policy << ", " << setting.zones << " zones, " << setting.max_active << " active, "
               << setting.groups << " groups";
  }
  std::string policy;
  uint32_t zones;
  uint32_t max_active;
  uint32_t max_open;
  uint32_t groups;  // 0: not measured
};

class Model {
 public:
  Model(const Setting& setting, uint64_t seed) : setting_(setting), random_(seed) {
    geometry_.block_size = kBlock;
    geometry_.zone_count = setting.zones;
    geometry_.zone_size = 2 * kCapacity;
    geometry_.zone_capacity = kCapacity;
    geometry_.max_active_zones = setting.max_active;
    geometry_.max_open_zones = setting.max_open;
    for (uint32_t i = 0; i < setting.zones; ++i) zones_.push_back({{ZoneId(i), ZoneState::kEmpty, kCapacity, 0}});
    std::vector<ZoneDescriptor> report;
    for (const Zone& zone : zones_) report.push_back(zone.device);
    AllocatorOptions options;
    options.geometry = geometry_;
    if (setting.groups > 0) options.groups = MakeGroups();
    options.metadata_copies = kCopies;
    options.asks_for_checkpoints = true;
    options.asks_for_space = true;
    options.patience_ns = 5 * kSecondNs;
    allocator_ = std::make_unique<ZoneAllocator>(report, options, std::move(*MakePlacementPolicy(setting.policy)));
    ledger().started = true;
    allocator_->ReserveForMetadata(HomeZones(kCopies) + 2, MetadataClaim::kForced);
    ledger().rounds.Attach(true);
  }
  ~Model() {
    inquiries_.clear();  // inquiries end before the allocator
  }

  void Step() {
    now_ns_ += static_cast<int64_t>(random_.Below(2 * kMillisecondNs));
    switch (random_.Below(16)) {
      case 0:
      case 1:
        return BeginInquiry();
      case 2:
      case 3:
        return AskAgain();
      case 4:
      case 5:
      case 6:
        return Write();
      case 7:
        return Release();
      case 8:
      case 9:
        return Kill();
      case 10:
        return Background();
      case 11:
      case 12:
        return EndCommand();
      case 13:
        return Collect();
      case 14:
        return Metadata();
      default:
        return Rarely();
    }
  }

  void Check() const {
    const ZoneLedger& l = allocator_->ledger();
    uint32_t active = 0;
    uint32_t open = 0;
    uint32_t leased = 0;
    uint64_t live = 0;
    for (const Zone& zone : zones_) {
      const ZoneRecord& record = l.table.at(zone.device.zone);
      live += record.use == ZoneUse::kMetadata ? 0 : record.live;
      ASSERT_EQ(record.live, zone.live) << zone.device.zone.value();
      ASSERT_EQ(record.phase == ZonePhase::kLeased, zone.lease != nullptr) << zone.device.zone.value();
      leased += zone.lease != nullptr ? 1 : 0;
      if (IsActive(zone.device.state)) ++active;
      if (zone.lease != nullptr && record.room() > 0) ++open;
      ASSERT_FALSE(record.victim && zone.lease != nullptr);
      if (record.phase == ZonePhase::kEmpty || setting_.policy != "isozone") {
        ASSERT_EQ(record.cohort, Cohort()) << zone.device.zone.value();
        ASSERT_FALSE(record.sealed);
      }
      if (record.phase != ZonePhase::kRetired && record.phase != ZonePhase::kFailed) {
        ASSERT_EQ(record.write_pointer, zone.device.write_pointer) << zone.device.zone.value();
      }
    }
    ASSERT_EQ(l.table.totals().live, live);
    ASSERT_EQ(l.leased, leased);
    if (setting_.max_active > 0) {
      ASSERT_LE(active, setting_.max_active);
      ASSERT_LE(active, l.active.used());
    }
    if (setting_.max_open > 0) {
      ASSERT_LE(open, setting_.max_open);
    }
  }

  uint64_t grants() const { return grants_; }
  uint64_t refusals() const { return refusals_; }
  uint64_t waits() const { return waits_; }
  uint64_t mixed() const { return mixed_; }
  const AllocatorStats& stats() const { return allocator_->ledger().stats; }

 private:
  struct Zone {
    ZoneDescriptor device;
    uint64_t live = 0;
    std::shared_ptr<LeaseState> lease = {};  // null: not leased
    bool undurable = false;                  // the metadata on the device may still name something in it
  };
  struct Writer {
    ZoneGrant grant;
    bool metadata = false;
    bool writing = false;
  };
  struct Command {
    DeviceOp op;
    ZoneId zone;
  };
  using Inquiry = ZoneAllocator::Inquiry;
  // An inquiry, and the request that it is about.
  struct Asker {
    ZoneRequest request;
    bool metadata = false;
    std::optional<Inquiry> inquiry;
  };

  ZoneLedger& ledger() { return allocator_->ledger(); }

  std::shared_ptr<const GroupIndex> MakeGroups() {
    ZoneGroups groups;
    for (uint32_t i = 0; i < setting_.zones; ++i) {
      // Of some zones, identification may not have found the group.
      const bool unknown = i % 7 == 3 && setting_.groups > 1;
      groups.group_of_zone.push_back(unknown ? ZoneGroups::kUnknown : static_cast<uint16_t>(i % setting_.groups));
      groups.confidence_percent.push_back(100);
    }
    groups.channel_of_group.resize(setting_.groups);
    groups.zone_bandwidth = GroupIndex::kAssumedBandwidth;
    return std::make_shared<GroupIndex>(setting_.zones, &groups);
  }

  // --- Asking ---
  void BeginInquiry() {
    if (inquiries_.size() > 6) return AskAgain();
    auto asker = std::make_unique<Asker>();
    ZoneRequest& request = asker->request;
    request.use = random_.Below(4) == 0 ? ZoneUse::kLog : ZoneUse::kData;
    request.lifetime = static_cast<Lifetime>(random_.Below(kLifetimeCount));
    request.min_room = kBlock * random_.Between(1, 4);
    if (request.use == ZoneUse::kData) {
      request.gc = random_.Below(8) == 0;
      request.confined = request.gc && random_.Below(2) == 0;
      request.compaction = !request.gc && random_.Below(2) == 0;
      request.urgent = !request.gc && !request.compaction;
      // Cohorts with odd numbers have zones of their own.
      if (!request.gc && random_.Below(2) == 0) request.cohort.id = random_.Below(5);
      request.cohort.own_zones = request.cohort.id % 2 == 1;
      if (random_.Below(2) == 0) request.expected_size = random_.Below(2 * kCapacity);
    }
    asker->inquiry.emplace(*allocator_, request);
    Ask(std::move(asker));
  }

  void AskAgain() {
    if (inquiries_.empty()) return;
    const size_t which = random_.Below(inquiries_.size());
    auto asker = std::move(inquiries_[which]);
    inquiries_.erase(inquiries_.begin() + static_cast<ptrdiff_t>(which));
    Ask(std::move(asker));
  }

  void Ask(std::unique_ptr<Asker> asker) {
    const BudgetClass c = asker->metadata ? BudgetClass::kMetadata : BudgetClassOf(asker->request);
    for (;;) {
      const uint32_t empty = ledger().table.empty().size();
      const bool has_empty = ledger().HasEmpty(c);
      const Alternatives before = AlternativesOf(*asker);
      const auto answer = allocator_->Ask(*asker->inquiry, now_ns_);
      CheckCohort(*asker, before, answer);
      switch (answer.action) {
        case Action::kGranted:
          if (ledger().table.empty().size() < empty) {
            EXPECT_TRUE(has_empty) << "a zone that is reserved for others";
          }
          return Take(*asker, answer.grant);
        case Action::kExecute:
          for (const ZoneCommands& commands : answer.commands) Give(commands);
          break;
        case Action::kRevoked:
          FindRevoked();
          break;
        case Action::kCheckpoint:
          asker->inquiry->checkpoint_ended = random_.Below(2) == 0;
          if (asker->inquiry->checkpoint_ended) break;
          ++waits_;
          inquiries_.push_back(std::move(asker));
          return;
        case Action::kCollector:
        case Action::kWait:
          ++waits_;
          EXPECT_TRUE(answer.until_ns != ZoneAllocator::kNever || answer.action == Action::kCollector ||
                      SomethingIsUnderWay())
              << "nothing will ever wake it";
          inquiries_.push_back(std::move(asker));
          return;
        case Action::kNothing:
          ++refusals_;
          return CheckRefusal(*asker, answer.lack);
      }
    }
  }

  // The zones that data could have now: whether it can open one, which ones are idle, and which ones are kept for
  // others.
  struct Alternatives {
    bool can_open = false;
    std::vector<ZoneId> idle;
    std::vector<ZoneId> kept;
  };
  Alternatives AlternativesOf(const Asker& asker) const {
    Alternatives found;
    if (asker.metadata || asker.request.use != ZoneUse::kData) return found;
    const ZoneLedger& l = allocator_->ledger();
    const BudgetClass c = BudgetClassOf(asker.request);
    if (l.open.Available(c) == 0) return found;
    found.can_open = l.active.Available(c) > 0 && l.HasEmpty(c);
    for (const Zone& zone : zones_) {
      const ZoneRecord& record = l.table.at(zone.device.zone);
      const bool fits = record.use == ZoneUse::kData && record.reusable() && record.room() >= asker.request.min_room;
      if (fits) (record.kept_from(asker.request.cohort.id) ? found.kept : found.idle).push_back(zone.device.zone);
    }
    return found;
  }

  // A cohort with zones of its own has them for itself as long as there is an alternative. What could be had without
  // cohorts, even if it is in a kept zone, is neither refused nor waited for.
  void CheckCohort(const Asker& asker, const Alternatives& before, const ZoneAllocator::Answer& answer) {
    if (setting_.policy != "isozone" || asker.metadata || asker.request.use != ZoneUse::kData) return;
    const bool granted = answer.action == Action::kGranted;
    if (!asker.request.gc) {
      EXPECT_EQ(granted, before.can_open || !before.idle.empty() || !before.kept.empty());
    }
    if (!granted) return;
    const ZoneId zone = answer.grant.zone;
    if (std::ranges::find(before.kept, zone) != before.kept.end()) {
      ++mixed_;
      EXPECT_TRUE(before.idle.empty()) << "zone " << zone.value() << " is kept, and there is another";
      EXPECT_TRUE(!before.can_open || asker.request.confined)
          << "zone " << zone.value() << " is kept, and one is empty";
    }
    if (asker.request.cohort.own_zones && before.can_open && answer.grant.write_pointer > 0) {
      const ZoneRecord& record = ledger().table.at(zone);
      EXPECT_TRUE(record.cohort == asker.request.cohort) << "zone " << zone.value() << " is of others";
      EXPECT_FALSE(record.sealed);
    }
  }

  bool SomethingIsUnderWay() const {
    const ZoneLedger& l = allocator_->ledger();
    const bool writing = std::ranges::any_of(writers_, [](const Writer& w) { return w.writing; });
    return writing || l.table.totals().resetting > 0 || l.table.totals().finishing > 0 ||
           allocator_->upkeep().IsDue(now_ns_) ||
           (!l.durability.error.ok() && allocator_->upkeep().WaitsForDurability());
  }

  // Data is refused only where no zone has room for it.
  void CheckRefusal(const Asker& asker, Lack lack) const {
    const ZoneLedger& l = allocator_->ledger();
    if (asker.metadata || asker.request.gc || asker.request.use != ZoneUse::kData || lack != Lack::kSpace) return;
    EXPECT_FALSE(l.HasEmpty(BudgetClass::kData));
    if (setting_.policy == "lifetime") return;  // this policy leaves zones of other lifetimes alone
    for (const Zone& zone : zones_) {
      const ZoneRecord& record = l.table.at(zone.device.zone);
      const bool fits = record.use == ZoneUse::kData && record.reusable() && record.room() >= asker.request.min_room;
      EXPECT_FALSE(fits) << "zone " << zone.device.zone.value() << " has room";
    }
  }

  void Take(const Asker& asker, const ZoneGrant& grant) {
    ++grants_;
    Zone& zone = zones_[grant.zone.value()];
    if (grant.state == nullptr) {  // only reserved
      ASSERT_EQ(zone.device.state, ZoneState::kEmpty);
      metadata_.push_back(grant.zone);
      return Reserve();
    }
    ASSERT_EQ(zone.lease, nullptr) << "two writers of one zone";
    ASSERT_EQ(grant.write_pointer, zone.device.write_pointer);
    ASSERT_TRUE(zone.device.state == ZoneState::kEmpty || IsActive(zone.device.state));
    if (!asker.metadata) {
      ASSERT_GE(kCapacity - grant.write_pointer, asker.request.min_room);
    }
    zone.lease = grant.state;
    writers_.push_back({grant, asker.metadata});
    if (asker.metadata && std::ranges::find(metadata_, grant.zone) == metadata_.end()) metadata_.push_back(grant.zone);
    Reserve();
  }

  // Finds the leases that the allocator has ended.
  void FindRevoked() {
    for (Zone& zone : zones_) {
      if (zone.lease == nullptr || !zone.lease->ended()) continue;
      EXPECT_EQ(ledger().Find({.zone = zone.device.zone, .state = zone.lease}), nullptr);
      zone.lease = nullptr;
    }
  }

  // --- Leases ---
  void Write() {
    if (writers_.empty()) return;
    Writer& writer = writers_[random_.Below(writers_.size())];
    if (!writer.writing) {
      if (writer.grant.write_pointer == kCapacity) return Release(writer);
      writer.writing = writer.grant.state->BeginWrite();
      if (!writer.writing) Drop(writer);
      return;
    }
    writer.writing = false;
    Zone& zone = zones_[writer.grant.zone.value()];
    const uint64_t fate = random_.Below(6000);
    if (fate == 0) {
      zone.lease = nullptr;
      if (random_.Below(8) == 0) zone.device.state = ZoneState::kReadOnly;
      allocator_->upkeep().NoteFailure(writer.grant.zone, DeviceOp::kWrite,
                                       random_.Below(8) == 0 ? std::optional<ZoneDescriptor>() : zone.device);
      return Drop(writer);
    }
    if (fate == 1) {
      zone.lease = nullptr;
      allocator_->EndRefusedWrite(writer.grant, /*bytes=*/0);
      return Drop(writer);
    }
    const uint64_t bytes = kBlock * random_.Between(1, (kCapacity - writer.grant.write_pointer) / kBlock);
    zone.device.write_pointer += bytes;
    zone.device.state = zone.device.write_pointer == kCapacity ? ZoneState::kFull : ZoneState::kImplicitlyOpen;
    const uint64_t live = writer.metadata ? 0 : bytes;
    zone.live += live;
    allocator_->EndWrite(writer.grant, bytes, live);
    writer.grant.write_pointer += bytes;
  }

  void Drop(Writer& writer) {
    // A zone of metadata that is given back unwritten is free again.
    if (writer.metadata && writer.grant.write_pointer == 0) std::erase(metadata_, writer.grant.zone);
    std::swap(writer, writers_.back());
    writers_.pop_back();
  }

  void Release() {
    if (writers_.empty()) return;
    Writer& writer = writers_[random_.Below(writers_.size())];
    if (!writer.writing) Release(writer);
  }

  void Release(Writer& writer) {
    Zone& zone = zones_[writer.grant.zone.value()];
    if (zone.lease == writer.grant.state) zone.lease = nullptr;
    allocator_->Release(writer.grant);
    Drop(writer);
  }

  // Lets some or all of what lives in a zone die.
  void Kill() {
    Zone& zone = zones_[random_.Below(zones_.size())];
    if (zone.live == 0) return;
    const uint64_t bytes = random_.Below(2) == 0 ? zone.live : kBlock;
    zone.live -= bytes;
    zone.undurable = true;
    ledger().table.Edit(zone.device.zone)->RemoveLive(bytes);
  }

  // --- Upkeep ---
  void Background() {
    allocator_->ForgetOthers(now_ns_);
    const ZoneAllocator::Work work = allocator_->NextWork(now_ns_);
    if (work.count_others) {
      const auto active = std::ranges::count_if(zones_, [](const Zone& z) { return IsActive(z.device.state); });
      allocator_->NoteOthers(static_cast<uint32_t>(active), now_ns_);
    }
    for (const ZoneCommands& commands : work.commands) Give(commands);
    if (!work.ask_readers.empty()) AskReaders(work.ask_readers);
  }

  void AskReaders(const std::vector<ZoneId>& zones) {
    std::vector<ZoneId> pinned;
    for (const ZoneId zone : zones) {
      if (random_.Below(4) == 0) pinned.push_back(zone);
    }
    allocator_->upkeep().NotePinned(zones, pinned, now_ns_);
  }

  void Give(ZoneCommands commands) {
    ASSERT_FALSE(commands.zones.empty());
    if (commands.after_durable && !MakeDurable()) return allocator_->upkeep().Cancel(commands);
    if (commands.after_durable && commands.op == DeviceOp::kReset) {
      AskReaders(commands.zones);
      std::erase_if(commands.zones, [this](ZoneId zone) { return ledger().table.at(zone).pinned; });
    }
    if (commands.after_durable) allocator_->upkeep().Confirm(commands);
    for (const ZoneId id : commands.zones) {
      const Zone& zone = zones_[id.value()];
      const ZoneRecord& record = ledger().table.at(id);
      ASSERT_EQ(zone.lease, nullptr);
      ASSERT_TRUE(record.at_device);
      if (commands.op == DeviceOp::kReset) {
        ASSERT_FALSE(record.victim || record.pinned);
        ASSERT_EQ(zone.live, 0U) << "reset of what lives";
        ASSERT_TRUE(record.released || !zone.undurable) << "reset of what a durable record may name";
      } else {
        ASSERT_TRUE(IsActive(zone.device.state)) << "a finish that gains nothing";
        ASSERT_NE(record.use, ZoneUse::kMetadata);
      }
      commands_.push_back({commands.op, id});
    }
  }

  bool MakeDurable() {
    const bool fails = random_.Below(16) == 0;
    allocator_->NoteDurability(fails ? Status::NoSpace("not now") : Status::Ok(), now_ns_);
    if (fails) return false;
    for (Zone& zone : zones_) zone.undurable = false;
    return true;
  }

  void EndCommand() {
    if (commands_.empty()) return;
    std::swap(commands_[random_.Below(commands_.size())], commands_.back());
    const Command command = commands_.back();
    commands_.pop_back();
    Zone& zone = zones_[command.zone.value()];
    if (random_.Below(4000) == 0) {
      return allocator_->upkeep().NoteFailure(command.zone, command.op, zone.device);
    }
    const bool reset = command.op == DeviceOp::kReset;
    zone.device.write_pointer = reset ? 0 : kCapacity;
    zone.device.state = reset ? ZoneState::kEmpty : ZoneState::kFull;
    if (reset) {
      allocator_->upkeep().NoteReset(command.zone);
    } else {
      allocator_->upkeep().NoteFinish(command.zone);
    }
  }

  // --- GC ---
  void Collect() {
    ZoneCollection& collection = allocator_->collection();
    if (victim_) {
      Zone& zone = zones_[victim_->value()];
      const uint64_t live = zone.live;
      if (live > 0 && random_.Below(2) == 0) {
        zone.live = 0;
        zone.undurable = true;
        ledger().table.Edit(*victim_)->RemoveLive(live);
      }
      collection.End(*victim_);
      victim_.reset();
      return ledger().rounds.End(live > 0);
    }
    ledger().rounds.Begin();
    const std::vector<GcCandidate> candidates = collection.Candidates();
    if (candidates.empty()) return ledger().rounds.End(false);
    const GcCandidate& chosen = candidates[random_.Below(candidates.size())];
    ASSERT_TRUE(chosen.valid < chosen.written || chosen.valid == 0);
    ASSERT_TRUE(collection.Begin(chosen.zone));
    victim_ = chosen.zone;
  }

  // --- Metadata ---
  void Reserve() {
    allocator_->ReserveForMetadata(HomeZones(kCopies) + 2 + static_cast<uint32_t>(random_.Below(2)),
                                   static_cast<MetadataClaim>(random_.Below(2)));
  }

  void Metadata() {
    if (metadata_.size() >= 3 && random_.Below(2) == 0) return ReleaseMetadata();
    if (metadata_.size() >= 5) return;
    auto asker = std::make_unique<Asker>();
    asker->metadata = true;
    const ZoneId reopened = metadata_.empty() ? ZoneId(0) : metadata_[random_.Below(metadata_.size())];
    const ZoneRecord& record = ledger().table.at(reopened);
    const bool reopenable = !metadata_.empty() && zones_[reopened.value()].lease == nullptr && !record.released &&
                            (record.phase == ZonePhase::kIdle || record.set_aside) && record.use == ZoneUse::kMetadata;
    if (reopenable && random_.Below(2) == 0) {
      asker->inquiry.emplace(*allocator_, reopened);
      return AskOnce(std::move(asker));
    }
    using Purpose = Inquiry::Purpose;
    asker->inquiry.emplace(*allocator_, random_.Below(2) == 0 ? Purpose::kBegin : Purpose::kSetAside, metadata_);
    AskOnce(std::move(asker));
  }

  // The journal asks for one zone at a time. The zones that it names do not change meanwhile.
  void AskOnce(std::unique_ptr<Asker> asker) {
    const size_t before = inquiries_.size();
    Ask(std::move(asker));
    if (inquiries_.size() > before) inquiries_.pop_back();
  }

  void ReleaseMetadata() {
    const size_t which = random_.Below(metadata_.size());
    const ZoneId zone = metadata_[which];
    if (zones_[zone.value()].lease != nullptr) return;
    metadata_.erase(metadata_.begin() + static_cast<ptrdiff_t>(which));
    allocator_->ReleaseMetadata(zone);
    Reserve();
  }

  void Rarely() {
    switch (random_.Below(32)) {
      case 0:
        return allocator_->NoteRefusal();
      case 1:
        ledger().reset_at_once = !ledger().reset_at_once;
        return;
      case 2:
        return allocator_->upkeep().AskForDead();
      case 3:
        return allocator_->collection().ThrottleBelow(
            [percent = static_cast<double>(random_.Below(40))](const GcSpace&) { return percent; });
      case 4:
        return ledger().rounds.Attach(random_.Below(4) != 0);
      case 5:
        return allocator_->Seal(random_.Between(1, 4));
      case 6:
        return CheckRoom();
      default:
        (void)allocator_->collection().Pay(random_.Below(kCapacity));
    }
  }

  void CheckRoom() const {
    const ZoneLedger& l = allocator_->ledger();
    for (uint64_t cohort = 1; cohort < 5; ++cohort) {
      ZoneRoom expected;
      for (const Zone& zone : zones_) {
        const ZoneRecord& record = l.table.at(zone.device.zone);
        if (record.live == 0 || record.cohort.id != cohort) continue;
        ++expected.begun;
        if (!record.reusable() || record.sealed) continue;
        ++expected.zones;
        expected.bytes += record.room();
        expected.largest = std::max(expected.largest, record.room());
      }
      if (setting_.policy == "isozone") {
        ASSERT_EQ(allocator_->RoomOf({}, cohort), expected) << cohort;
      }
    }
  }

  const Setting setting_;
  Random random_;
  DeviceGeometry geometry_;
  std::vector<Zone> zones_;
  std::unique_ptr<ZoneAllocator> allocator_;
  std::vector<std::unique_ptr<Asker>> inquiries_;
  std::vector<Writer> writers_;
  std::vector<Command> commands_;
  std::vector<ZoneId> metadata_;
  std::optional<ZoneId> victim_;
  int64_t now_ns_ = 1;
  uint64_t grants_ = 0;
  uint64_t refusals_ = 0;
  uint64_t waits_ = 0;
  uint64_t mixed_ = 0;
};

uint64_t SeedOf(const char* name, uint64_t usual) {
  const char* given = std::getenv(name);
  return given == nullptr ? usual : std::strtoull(given, nullptr, 10);
}

class ZoneAllocatorModelTest : public testing::TestWithParam<Setting> {};

TEST_P(ZoneAllocatorModelTest, KeepsWhatItPromises) {
  constexpr uint64_t kRounds = 20;
  constexpr uint64_t kSteps = 20'000;
  const uint64_t first = SeedOf("ISOZONE_ALLOCATOR_SEED", 20261124);
  AllocatorStats stats;
  uint64_t grants = 0;
  uint64_t refusals = 0;
  uint64_t waits = 0;
  uint64_t mixed = 0;
  for (uint64_t seed = first; seed < first + kRounds; ++seed) {
    SCOPED_TRACE(testing::Message() << "ISOZONE_ALLOCATOR_SEED=" << seed);
    Model model(GetParam(), seed);
    for (uint64_t step = 0; step < kSteps; ++step) {
      SCOPED_TRACE(step);
      model.Step();
      if (step % 16 == 0) model.Check();
      if (HasFailure()) return;
    }
    grants += model.grants();
    refusals += model.refusals();
    waits += model.waits();
    mixed += model.mixed();
    stats.resets += model.stats().resets;
    stats.finishes += model.stats().finishes;
    stats.revoked_leases += model.stats().revoked_leases;
  }
  // All kinds of answers and commands have occurred.
  EXPECT_GT(grants, kRounds * 500);
  EXPECT_GT(refusals, 0U);
  EXPECT_GT(waits, 0U);
  EXPECT_GT(stats.resets, kRounds * 100);
  EXPECT_EQ(mixed > 0, GetParam().policy == "isozone");
  if (GetParam().max_active > 0) {
    EXPECT_GT(stats.finishes, 0U);
  }
  if (GetParam().max_active > 0) {
    EXPECT_GT(stats.revoked_leases, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, ZoneAllocatorModelTest,
                         testing::Values(Setting{"zenfs", 20, 14, 14, 0}, Setting{"isozone", 48, 14, 14, 4},
                                         Setting{"isozone", 64, 10, 9, 8}, Setting{"lifetime", 24, 9, 9, 0},
                                         Setting{"level", 40, 12, 10, 5}, Setting{"isozone", 40, 0, 0, 0}));

}  // namespace
}  // namespace isozone
