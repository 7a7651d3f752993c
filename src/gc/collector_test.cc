#include "gc/collector.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "device/emulated/device_test_util.h"
#include "gc/zone_copier.h"

namespace isozone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kBlock = kTestBlock;
constexpr uint64_t kSegment = 2 * kMiB;
constexpr uint64_t kCapacity = 5 * kMiB;  // two segments and a half
constexpr uint32_t kZones = 16;

DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.block_size = kBlock;
  geometry.zone_count = kZones;
  geometry.zone_size = 8 * kMiB;
  geometry.zone_capacity = kCapacity;
  geometry.max_open_zones = geometry.max_active_zones = 0;
  geometry.optimal_write = kBlock;
  return geometry;
}

std::string RandomText(Random& random, uint64_t size) {
  std::string text(RoundUp(size, sizeof(uint64_t)), '\0');
  for (uint64_t at = 0; at < text.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(text.data() + at, &word, sizeof(word));
  }
  text.resize(size);
  return text;
}

// What a test puts into a zone: `length` bytes of `file`, from `offset` of the zone on. In between is garbage.
struct Part {
  uint64_t file = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Files and zones in memory, their bytes on an emulated SSD. A zone that nobody holds is reset once nothing in it is valid.
class FakeStore final : public GcStore {
 public:
  explicit FakeStore(ZonedDevice& device) : device_(device), zones_(kZones) {}

  // --- The test's ---
  // Fills a zone up to its capacity, or so far.
  void Fill(uint32_t zone, const std::vector<Part>& runs, DataClass data = {}, uint64_t written = kCapacity) {
    const std::lock_guard lock(mu_);
    std::string bytes = RandomText(random_, written);
    ASSERT_EQ(WriteBlocks(zone, bytes), DeviceStatus::kSuccess);
    zones_[zone].data = data;
    for (const Part& run : runs) {
      File& file = files_[run.file];
      file.data = {data.lifetime, data.level};
      file.content += bytes.substr(run.offset, run.length);
      file.pieces.push_back({DeviceOffset(Start(zone) + run.offset), run.length});
    }
  }

  void Delete(uint64_t file) {
    const std::lock_guard lock(mu_);
    DeleteLocked(file);
  }
  void DeleteLocked(uint64_t file) {
    files_.erase(file);
    if (!reset_at_once) return;
    for (uint32_t zone = 0; zone < kZones; ++zone) ResetIfDead(zone);
  }

  // Every file reads as it was written.
  void ExpectIntact() {
    const std::lock_guard lock(mu_);
    for (const auto& [id, file] : files_) {
      std::string content;
      for (const Piece& piece : file.pieces) content += ReadBytes(piece);
      ASSERT_TRUE(content == file.content) << "file " << id;
    }
  }
  std::string ContentOf(uint64_t file) {
    const std::lock_guard lock(mu_);
    std::string content;
    for (const Piece& piece : files_.at(file).pieces) content += ReadBytes(piece);
    return content;
  }
  std::string WantedOf(uint64_t file) {
    const std::lock_guard lock(mu_);
    return files_.at(file).content;
  }

  // The zones that a file lies in, and what is known of a zone.
  std::set<uint32_t> ZonesOf(uint64_t file) const {
    const std::lock_guard lock(mu_);
    std::set<uint32_t> zones;
    for (const Piece& piece : files_.at(file).pieces) zones.insert(ZoneOf(piece.where));
    return zones;
  }
  DataClass ClassOf(uint32_t zone) const {
    const std::lock_guard lock(mu_);
    return zones_[zone].data;
  }
  bool IsEmpty(uint32_t zone) const {
    const std::lock_guard lock(mu_);
    return zones_[zone].written == 0;
  }

  // Waits until `count` rounds have ended.
  void WaitForRounds(uint64_t count) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return gained.size() >= count; });
  }
  void WaitUntil(const std::function<bool()>& predicate) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, predicate);
  }
  // In any round. The mutex is held.
  bool HasGained() const { return std::count(gained.begin(), gained.end(), true) > 0; }
  template <typename Function>
  void Locked(Function function) {
    const std::lock_guard lock(mu_);
    function();
  }

  // --- GcStore ---
  GcSpace Space() const override {
    const std::lock_guard lock(mu_);
    GcSpace space;
    space.zones = kZones;
    for (uint32_t zone = 0; zone < kZones; ++zone) {
      if (zones_[zone].written == 0) ++space.empty_zones;
    }
    space.empty_zones = std::min(space.empty_zones, most_empty);
    space.capacity = kZones * kCapacity;
    space.free = free_percent ? static_cast<uint64_t>(static_cast<double>(space.capacity) * *free_percent / 100)
                              : space.empty_zones * kCapacity;
    space.wanted = wanted;
    space.paced = paced;
    return space;
  }
  std::vector<GcCandidate> Candidates() const override {
    const std::lock_guard lock(mu_);
    std::vector<GcCandidate> candidates;
    for (uint32_t zone = 0; zone < kZones; ++zone) {
      const GcCandidate c = AsCandidate(zone);
      if (!zones_[zone].held && !zones_[zone].writing && IsCandidate(c)) candidates.push_back(c);
    }
    return candidates;
  }
  std::optional<GcCandidate> Hold(ZoneId zone) override {
    const std::lock_guard lock(mu_);
    if (not_to_be_held.contains(zone.value())) return std::nullopt;
    const GcCandidate c = AsCandidate(zone.value());
    if (!IsCandidate(c)) return std::nullopt;
    zones_[zone.value()].held = true;
    most_held = std::max(most_held, ++held_);
    tried.push_back(zone.value());
    return c;
  }
  void LetGo(ZoneId zone) override {
    const std::lock_guard lock(mu_);
    EXPECT_TRUE(std::exchange(zones_[zone.value()].held, false));
    --held_;
    ResetIfDead(zone.value());
  }
  std::vector<GcRun> RunsIn(ZoneId zone) override {
    const std::lock_guard lock(mu_);
    std::vector<GcRun> runs;
    if (unmovable.contains(zone.value())) return runs;
    for (const auto& [id, file] : files_) {
      for (const Piece& piece : file.pieces) {
        if (ZoneOf(piece.where) != zone.value()) continue;
        runs.push_back({id, piece.where, piece.length, file.data, !small.contains(id)});
      }
    }
    std::sort(runs.begin(), runs.end(), [](const GcRun& a, const GcRun& b) { return a.from < b.from; });
    return runs;
  }
  std::unique_ptr<GcWriter> MakeWriter(bool confined) override { return std::make_unique<Writer>(*this, confined); }

  Result<Outcome> Commit(std::span<const GcMove> moves) override {
    const std::lock_guard lock(mu_);
    ISOZONE_RETURN_IF_ERROR(commit_error);
    Outcome outcome;
    for (const GcMove& move : moves) (MoveOne(move) ? outcome.moved : outcome.dropped) += move.length;
    if (after_commit) after_commit();
    return outcome;
  }
  void GiveUp(std::span<const GcMove> moves) override {
    const std::lock_guard lock(mu_);
    for (const GcMove& move : moves) given_up += move.length;
  }

  void Attach(bool now) override {
    const std::lock_guard lock(mu_);
    attached = now;
    changed_.notify_all();
  }
  void BeginRound() override {}
  void EndRound(bool round_gained) override {
    const std::lock_guard lock(mu_);
    gained.push_back(round_gained);
    changed_.notify_all();
  }
  void ResetAtOnce(bool now) override {
    const std::lock_guard lock(mu_);
    reset_at_once = now;
  }
  void ResetDead() override {
    const std::lock_guard lock(mu_);
    for (uint32_t zone = 0; zone < kZones; ++zone) ResetIfDead(zone);
  }
  void ThrottleBelow(double percent) override {
    const std::lock_guard lock(mu_);
    throttle = percent;
  }

  // --- What the test decides; under Locked() while a collector runs ---
  bool wanted = false;
  bool paced = false;
  std::optional<double> free_percent;
  uint32_t most_empty = kZones;
  std::set<uint32_t> unmovable;
  std::set<uint32_t> not_to_be_held;
  std::set<uint64_t> small;  // files that are no tables
  Status commit_error;
  int corrupt_writes = 0;              // the next so many copies are not what was to be written
  int writes_before_no_space = -1;     // -1: never
  std::function<void()> before_write;  // without the mutex
  std::function<void()> after_commit;  // with it
  // --- What it looks at ---
  std::vector<bool> gained;  // of each round
  std::vector<uint32_t> tried;
  size_t most_held = 0;
  uint64_t given_up = 0;
  bool attached = false;
  bool reset_at_once = true;
  double throttle = -1;

 private:
  struct Piece {
    DeviceOffset where;
    uint64_t length = 0;
  };
  struct File {
    std::vector<Piece> pieces;  // in file order
    std::string content;
    DataClass data;
  };
  struct Zone {
    uint64_t written = 0;
    DataClass data;
    bool held = false;
    bool writing = false;
  };

  // One zone for each class at a time.
  class Writer final : public GcWriter {
   public:
    Writer(FakeStore& store, bool confined) : store_(store), confined_(confined) {}
    ~Writer() override {
      const std::lock_guard lock(store_.mu_);
      for (uint32_t zone = 0; zone < kZones; ++zone) {
        if (std::exchange(store_.zones_[zone].writing, false)) store_.ResetIfDead(zone);
      }
    }
    Status Write(std::span<const GcBlocks> blocks, DataClass data, std::vector<GcMove>& moves) override {
      if (store_.before_write) store_.before_write();
      const std::lock_guard lock(store_.mu_);
      for (const GcBlocks& some : blocks) ISOZONE_RETURN_IF_ERROR(WriteOne(some, data, moves));
      return Status::Ok();
    }

   private:
    Status WriteOne(const GcBlocks& some, DataClass data, std::vector<GcMove>& moves) {
      for (uint64_t at = 0; at < some.blocks.size();) {
        if (store_.writes_before_no_space == 0) return Status::NoSpace("the test says so");
        if (store_.writes_before_no_space > 0) --store_.writes_before_no_space;
        ISOZONE_ASSIGN_OR_RETURN(const uint32_t zone, ZoneFor(data));
        const uint64_t begin = store_.zones_[zone].written;
        const uint64_t length = std::min<uint64_t>(some.blocks.size() - at, kCapacity - begin);
        std::string bytes(reinterpret_cast<const char*>(some.blocks.data() + at), length);
        if (store_.corrupt_writes > 0) {
          --store_.corrupt_writes;
          for (char& c : bytes) c = static_cast<char>(~c);
        }
        if (store_.WriteBlocks(zone, bytes) != DeviceStatus::kSuccess) return Status::IoError("write");
        for (const GcBlocks::Piece& piece : some.pieces) {
          const uint64_t from = std::max(piece.offset, at);
          const uint64_t to = std::min(piece.offset + piece.length, at + length);
          if (from >= to) continue;
          moves.push_back({piece.file, DeviceOffset(piece.from.value() + (from - piece.offset)),
                           DeviceOffset(FakeStore::Start(zone) + begin + (from - at)), to - from});
        }
        at += length;
      }
      return Status::Ok();
    }
    Result<uint32_t> ZoneFor(DataClass data) {
      std::optional<uint32_t> empty;
      for (uint32_t zone = 0; zone < kZones; ++zone) {
        Zone& z = store_.zones_[zone];
        if (z.writing && z.data == data && z.written < kCapacity) return zone;
        if (confined_ && !z.held && z.written > 0 && z.written < kCapacity) return zone;
        if (z.written == 0 && !confined_ && !empty) empty = zone;
      }
      if (!empty) return Status::NoSpace("no zone is empty");
      store_.zones_[*empty].writing = true;
      store_.zones_[*empty].data = data;
      return *empty;
    }
    FakeStore& store_;
    const bool confined_;
  };

  static uint64_t Start(uint32_t zone) { return zone * 8 * kMiB; }
  static uint32_t ZoneOf(DeviceOffset offset) { return static_cast<uint32_t>(offset.value() / (8 * kMiB)); }

  DeviceStatus Submit(DeviceOp op, uint64_t offset, std::span<std::byte> data) {
    DeviceRequest request;
    request.op = op;
    request.offset = DeviceOffset(offset);
    request.data = data.data();
    request.length = data.size();
    return SubmitAndWait(device_, request);
  }
  DeviceStatus WriteBlocks(uint32_t zone, std::string& bytes) {
    const DeviceStatus status =
        Submit(DeviceOp::kWrite, Start(zone) + zones_[zone].written, std::as_writable_bytes(std::span(bytes)));
    zones_[zone].written += bytes.size();
    return status;
  }
  std::string ReadBytes(const Piece& piece) {
    const uint64_t begin = RoundDown(piece.where.value(), kBlock);
    std::string blocks(RoundUp(piece.where.value() + piece.length, kBlock) - begin, '\0');
    EXPECT_EQ(Submit(DeviceOp::kRead, begin, std::as_writable_bytes(std::span(blocks))), DeviceStatus::kSuccess);
    return blocks.substr(piece.where.value() - begin, piece.length);
  }
  // Bytes, each piece by itself in whole blocks.
  uint64_t Valid(uint32_t zone) const {
    uint64_t valid = 0;
    for (const auto& [id, file] : files_) {
      for (const Piece& piece : file.pieces) {
        if (ZoneOf(piece.where) == zone) valid += InBlocks({piece.where.value(), piece.length}, kBlock).length;
      }
    }
    return valid;
  }
  GcCandidate AsCandidate(uint32_t zone) const {
    GcCandidate c;
    c.zone = ZoneId(zone);
    c.valid = Valid(zone);
    c.written = zones_[zone].written;
    c.capacity = kCapacity;
    c.data = zones_[zone].data;
    c.full = c.written == kCapacity;
    return c;
  }
  bool IsCandidate(const GcCandidate& c) const { return (c.valid > 0 || !reset_at_once) && c.valid < c.written; }
  void ResetIfDead(uint32_t zone) {
    Zone& z = zones_[zone];
    if (z.held || z.writing || z.written == 0 || Valid(zone) > 0) return;
    EXPECT_EQ(Submit(DeviceOp::kReset, Start(zone), {}), DeviceStatus::kSuccess);
    z = Zone();
  }
  bool MoveOne(const GcMove& move) {
    const auto found = files_.find(move.file);
    if (found == files_.end()) return false;
    std::vector<Piece>& pieces = found->second.pieces;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const uint64_t begin = pieces[i].where.value();
      const uint64_t end = begin + pieces[i].length;
      const uint64_t from = move.from.value();
      if (from < begin || from + move.length > end) continue;
      std::vector<Piece> parts;
      if (from > begin) parts.push_back({pieces[i].where, from - begin});
      parts.push_back({move.to, move.length});
      if (from + move.length < end) parts.push_back({DeviceOffset(from + move.length), end - from - move.length});
      pieces.erase(pieces.begin() + static_cast<ptrdiff_t>(i));
      pieces.insert(pieces.begin() + static_cast<ptrdiff_t>(i), parts.begin(), parts.end());
      return true;
    }
    return false;
  }

  ZonedDevice& device_;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::vector<Zone> zones_;
  std::map<uint64_t, File> files_;
  size_t held_ = 0;
  Random random_{7};
};

class CollectorTest : public testing::Test {
 protected:
  CollectorTest()
      : image_(NewMemoryImage(Geometry())), device_(OpenForTest(image_.path())), engine_(*device_), store_(*device_) {}

  std::unique_ptr<Collector> Make(const GcOptions& options = {}) {
    auto collector = Collector::Create(store_, engine_, options);
    EXPECT_TRUE(collector.ok()) << collector.status().ToString();
    return std::move(*collector);
  }
  static GcOptions Named(const std::string& scheme) { return {.scheme = scheme, .tuning = {}}; }
  CopyStats RunAll(Collector& collector) {
    const auto done = collector.Run(100, {});
    EXPECT_TRUE(done.ok()) << done.status().ToString();
    return done.ok() ? *done : CopyStats();
  }

  MemoryImage image_;
  std::unique_ptr<EmulatedDevice> device_;
  IoEngine engine_;
  FakeStore store_;
};

// --- What is copied ---

TEST_F(CollectorTest, WhatIsValidArrivesByteForByte) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 8 * kBlock, 3 * kBlock}, {1, kCapacity - kBlock, kBlock}});
  const auto collector = Make();
  const CopyStats done = RunAll(*collector);
  store_.ExpectIntact();
  EXPECT_TRUE(store_.IsEmpty(0));
  EXPECT_EQ(done.zones, 1u);
  EXPECT_EQ(done.bytes_copied, 5 * kBlock);
  EXPECT_EQ(done.bytes_read, 5 * kBlock);
  EXPECT_EQ(done.bytes_reclaimed, kCapacity - 5 * kBlock);
  EXPECT_EQ(done.bytes_dropped + done.read_errors + done.mismatches + done.failed_zones + done.skipped_zones, 0u);
  EXPECT_EQ(collector->Stats().copies.bytes_copied, 5 * kBlock);
  EXPECT_EQ(collector->Stats().rounds, 1u);
  EXPECT_THAT(store_.gained, ElementsAre(true));
}

TEST_F(CollectorTest, RunsNeedNotBeAligned) {
  store_.Fill(0, {{1, 1, 10},                       // within a block
                  {2, kBlock - 5, 10},              // across two
                  {3, 2 * kBlock + 100, kBlock},    // of no whole block
                  {4, 5 * kBlock, 3 * kBlock - 1},  // but for its last byte
                  {5, 8 * kBlock - 1, 1},           // which is another's
                  {6, kCapacity - 3, 3}});
  RunAll(*Make());
  store_.ExpectIntact();
  EXPECT_TRUE(store_.IsEmpty(0));
}

TEST_F(CollectorTest, RunsGoAcrossSegments) {
  store_.Fill(0, {{1, kSegment - 3 * kBlock, 6 * kBlock}, {2, 2 * kSegment - 77, 100}});
  store_.Fill(1, {{3, kBlock, 2 * kSegment}});  // a whole one in the middle
  RunAll(*Make());
  store_.ExpectIntact();
  EXPECT_TRUE(store_.IsEmpty(0));
  EXPECT_TRUE(store_.IsEmpty(1));
}

TEST_F(CollectorTest, ClassesStayApart) {
  store_.Fill(0, {{1, 0, kBlock}}, {Lifetime::kMedium, 2});
  store_.Fill(1, {{2, 0, kBlock}}, {Lifetime::kLong, 3});
  store_.Fill(2, {{3, 0, kBlock}}, {Lifetime::kMedium, 2});
  RunAll(*Make(Named("zenfs")));
  store_.ExpectIntact();
  EXPECT_EQ(store_.ZonesOf(1), store_.ZonesOf(3));
  EXPECT_NE(store_.ZonesOf(1), store_.ZonesOf(2));
  EXPECT_EQ(store_.ClassOf(*store_.ZonesOf(1).begin()), DataClass(Lifetime::kMedium, 2));
  EXPECT_EQ(store_.ClassOf(*store_.ZonesOf(2).begin()), DataClass(Lifetime::kLong, 3));
}

TEST_F(CollectorTest, LsmZgcReadsSegmentsAndPartsHotFromCold) {
  // Above 0.4 of the first segment: cold, and read whole; 2 blocks of the second: hot, and read as they are.
  const uint64_t cold = kSegment / 2;
  store_.Fill(0, {{1, 0, cold}, {2, kSegment, kBlock}, {3, kSegment + 100 * kBlock, kBlock}});
  // Of a zone that has survived once, all is cold.
  store_.Fill(1, {{4, 0, kBlock}}, {Lifetime::kNotSet, DataClass::kNoLevel, ZoneHeat::kC1H});
  const CopyStats done = RunAll(*Make(Named("lsm-zgc")));
  store_.ExpectIntact();
  const auto heat = [&](uint64_t file) { return store_.ClassOf(*store_.ZonesOf(file).begin()).heat; };
  EXPECT_EQ(heat(1), ZoneHeat::kC1C);
  EXPECT_EQ(heat(2), ZoneHeat::kC1H);
  EXPECT_EQ(heat(3), ZoneHeat::kC1H);
  EXPECT_EQ(heat(4), ZoneHeat::kC2);
  EXPECT_EQ(done.bytes_read, cold + 3 * kBlock);
}

TEST_F(CollectorTest, LsmZgcReadsInvalidBlocksWhereThatPays) {
  std::vector<Part> runs;  // every second block of a segment
  for (uint64_t at = 0; at < kSegment; at += 2 * kBlock) runs.push_back({at, at, kBlock});
  store_.Fill(0, runs);
  const CopyStats done = RunAll(*Make(Named("lsm-zgc")));
  store_.ExpectIntact();
  EXPECT_EQ(done.bytes_read, kSegment);
  EXPECT_EQ(done.bytes_copied, kSegment / 2);
}

TEST_F(CollectorTest, AnyLayoutUnderAnySchemeKeepsEveryByte) {
  const uint64_t seed = TestSeed(20260101);
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  uint64_t next_file = 0;
  for (const char* scheme : {"none", "zenfs", "full", "zenfs+", "lifetime", "lsm-zgc", "isozone"}) {
    SCOPED_TRACE(scheme);
    std::vector<uint64_t> files;
    for (int filled = 0; filled < 5;) {  // each of a class of its own, with survivors of two heats
      const auto zone = static_cast<uint32_t>(random.Below(kZones));
      if (!store_.IsEmpty(zone)) continue;
      ++filled;
      std::vector<Part> runs;
      for (uint64_t at = 0; at < kCapacity;) {
        at += random.Chance(0.3) ? 0 : random.Between(1, kSegment / 2);
        const uint64_t length = random.Between(1, random.Chance(0.5) ? kBlock : kSegment / 2);
        if (at + length > kCapacity) break;
        if (random.Chance(0.5)) files.push_back(next_file++);
        if (files.empty()) continue;
        runs.push_back({files.back(), at, length});
        at += length;
      }
      files.push_back(next_file++);
      store_.Fill(zone, runs,
                  {static_cast<Lifetime>(random.Below(kLifetimeCount)), static_cast<int8_t>(random.Below(3))});
    }
    GcOptions options = Named(scheme);
    options.memory = random.Chance(0.5) ? 8 * kMiB : 64 * kMiB;
    RunAll(*Make(options));
    ASSERT_NO_FATAL_FAILURE(store_.ExpectIntact());
    for (const uint64_t file : files) store_.Delete(file);
  }
}

TEST_F(CollectorTest, WhatWasRemovedMeanwhileIsDropped) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 4 * kBlock, kBlock}});
  store_.before_write = [&] { store_.Delete(1); };
  const CopyStats done = RunAll(*Make());
  EXPECT_EQ(done.bytes_copied, kBlock);
  EXPECT_EQ(done.bytes_dropped, kBlock);
  EXPECT_EQ(done.failed_zones, 0u);
  store_.ExpectIntact();
  EXPECT_TRUE(store_.IsEmpty(0));
}

// --- What is not ---

TEST_F(CollectorTest, WhatCannotBeReadStaysAndIsTriedAgainMuchLater) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 4 * kBlock, kBlock}});
  store_.Fill(1, {{3, 0, kBlock}});
  device_->FailNext(DeviceOp::kRead, ZoneId(0), DeviceStatus::kUnrecoveredReadError);
  const auto collector = Make();
  const CopyStats done = RunAll(*collector);
  EXPECT_EQ(done.read_errors, 1u);
  EXPECT_EQ(done.failed_zones, 1u);
  EXPECT_EQ(done.zones, 1u);
  EXPECT_EQ(done.bytes_copied, kBlock);
  EXPECT_FALSE(store_.IsEmpty(0));
  EXPECT_TRUE(store_.IsEmpty(1));
  store_.ExpectIntact();
  // It is the only candidate that there is.
  for (uint64_t round = 1; round < Collector::kForgiveRounds; ++round) {
    store_.tried.clear();
    RunAll(*collector);
    ASSERT_FALSE(std::count(store_.tried.begin(), store_.tried.end(), 0)) << round;
    EXPECT_TRUE(collector->Plan(/*all=*/true).victims.empty());
  }
  RunAll(*collector);
  EXPECT_TRUE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

TEST_F(CollectorTest, ACopyThatDoesNotReadBackIsGivenUp) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 4 * kBlock, 2 * kBlock}});
  store_.corrupt_writes = 1;
  const auto collector = Make();
  const CopyStats done = RunAll(*collector);
  EXPECT_EQ(done.mismatches, 2u);
  EXPECT_EQ(store_.given_up, 3 * kBlock);
  EXPECT_EQ(done.bytes_copied, 0u);
  EXPECT_EQ(done.zones, 0u);
  EXPECT_EQ(done.failed_zones, 1u);
  EXPECT_EQ(done.bytes_reclaimed, 0u);
  EXPECT_FALSE(store_.IsEmpty(0));
  store_.ExpectIntact();
  EXPECT_THAT(store_.gained, ElementsAre(false));
  EXPECT_TRUE(collector->Plan(/*all=*/true).victims.empty()) << "not at once again";
}

TEST_F(CollectorTest, OnlyTheVictimOfABadCopyIsLeft) {
  store_.Fill(0, {{1, 0, kBlock}}, {Lifetime::kShort});
  store_.Fill(1, {{2, 0, kBlock}}, {Lifetime::kLong});
  store_.corrupt_writes = 1;
  const CopyStats done = RunAll(*Make());
  EXPECT_EQ(done.zones, 1u);
  EXPECT_EQ(done.failed_zones, 1u);
  EXPECT_NE(store_.IsEmpty(0), store_.IsEmpty(1));
  store_.ExpectIntact();
}

TEST_F(CollectorTest, WithoutVerifyingABadCopyIsNotFound) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.corrupt_writes = 1;
  GcOptions options;
  options.verify = false;
  EXPECT_EQ(RunAll(*Make(options)).mismatches, 0u);
  EXPECT_NE(store_.ContentOf(1), store_.WantedOf(1));
}

TEST_F(CollectorTest, WithoutSpaceAVictimStaysAsItWas) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 2 * kSegment, kBlock}});  // two segments
  store_.writes_before_no_space = 1;
  GcOptions options;
  options.memory = 8 * kMiB;  // a segment at a time
  const auto collector = Make(options);
  EXPECT_TRUE(collector->Run(100, {}).status().Is(StatusCode::kNoSpace));
  EXPECT_EQ(collector->Stats().copies.bytes_copied, 0u);
  EXPECT_EQ(store_.given_up, kBlock);
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(0u));
  EXPECT_EQ(store_.Space().empty_zones, kZones - 1) << "the zone of the copy is reset";
  store_.ExpectIntact();
  EXPECT_THAT(store_.gained, ElementsAre(false));
  store_.writes_before_no_space = -1;
  RunAll(*collector);
  EXPECT_TRUE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

TEST_F(CollectorTest, WhatWasWrittenBeforeAnErrorIsVerifiedToo) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 2 * kSegment, kBlock}});
  store_.corrupt_writes = 1;
  store_.writes_before_no_space = 1;
  const auto collector = Make();
  EXPECT_TRUE(collector->Run(100, {}).status().Is(StatusCode::kNoSpace));
  EXPECT_EQ(collector->Stats().copies.mismatches, 1u);
  store_.ExpectIntact();
}

TEST_F(CollectorTest, ScatteredCrumbsAreNotWorthIt) {
  std::vector<Part> runs;  // one byte of every block
  for (uint64_t at = 0; at < kCapacity; at += kBlock) runs.push_back({1, at + 5, 1});
  store_.Fill(0, runs);
  const auto collector = Make();
  EXPECT_TRUE(collector->Plan(/*all=*/true).victims.empty());
  EXPECT_EQ(RunAll(*collector).bytes_read, 0u);
  EXPECT_FALSE(store_.IsEmpty(0));
}

TEST_F(CollectorTest, FilesMayLackTheMetadataToBeMoved) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.commit_error = Status::ReadOnly("journal is broken");
  const auto collector = Make();
  EXPECT_TRUE(collector->Run(100, {}).status().Is(StatusCode::kReadOnly));
  store_.ExpectIntact();
  EXPECT_FALSE(store_.IsEmpty(0));
}

// --- How many, and how far ---

TEST_F(CollectorTest, VictimsAreReadTogetherWhereTheirSurvivorsHaveRoom) {
  for (uint32_t zone = 0; zone < 4; ++zone) store_.Fill(zone, {{zone, 0, kSegment}});
  RunAll(*Make());
  EXPECT_EQ(store_.most_held, 2u);  // 16 MiB: two windows of two segments and their copies
  store_.ExpectIntact();
}

TEST_F(CollectorTest, OneVictimPaysForTheNextWhereSpaceIsShort) {
  // One empty zone, and less to be gained in any victim than the next one has survivors.
  for (uint32_t zone = 0; zone + 1 < kZones; ++zone) store_.Fill(zone, {{zone, 0, 2 * kSegment}});
  store_.most_empty = 0;  // it is the collector's reserve
  GcOptions options;
  options.memory = 256 * kMiB;
  const CopyStats done = RunAll(*Make(options));
  EXPECT_EQ(store_.most_held, 1u);
  EXPECT_EQ(done.zones, kZones - 1);
  store_.ExpectIntact();
}

TEST_F(CollectorTest, StopsBetweenWindows) {
  std::vector<Part> runs;
  for (uint64_t file = 0; file < 3; ++file) runs.push_back({file, file * kSegment, kBlock});
  store_.Fill(0, runs);
  GcOptions options;
  options.memory = 8 * kMiB;  // a segment at a time
  const auto collector = Make(options);
  uint64_t calls = 0;
  const auto done = collector->Run(100, [&](const CopyStats& so_far, uint64_t bytes_to_copy) {
    EXPECT_EQ(so_far.bytes_read, kBlock);
    EXPECT_EQ(bytes_to_copy, 3 * kBlock);
    ++calls;
    return false;
  });
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(calls, 1u);
  EXPECT_EQ(done->bytes_read, 2 * kBlock) << "the window that was read ahead, and no more";
  EXPECT_EQ(done->bytes_copied, 0u) << "all of a victim, or nothing";
  EXPECT_EQ(store_.Space().empty_zones, kZones - 1) << "the zone of the copies is reset";
  EXPECT_EQ(done->zones, 0u);
  EXPECT_FALSE(store_.IsEmpty(0));
  EXPECT_THAT(store_.gained, ElementsAre(true)) << "who waits for space has not heard the last of it";
  store_.ExpectIntact();
  RunAll(*collector);
  EXPECT_TRUE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

TEST_F(CollectorTest, CollectsUntilSoMuchIsFree) {
  for (uint32_t zone = 0; zone < 12; ++zone) store_.Fill(zone, {{zone, 0, kBlock}});
  const auto collector = Make();
  EXPECT_EQ(collector->Run(20, {})->bytes_read, 0u) << "four of 16 are free";
  EXPECT_EQ(collector->Stats().rounds, 0u);
  const auto done = collector->Run(40, {});
  ASSERT_TRUE(done.ok());
  EXPECT_GE(store_.Space().free_percent(), 40);
  EXPECT_LT(done->zones, 12u);
  store_.ExpectIntact();
}

TEST_F(CollectorTest, TellsWhoWaitsThatNothingIsToBeHad) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.unmovable = {0};
  RunAll(*Make());
  EXPECT_THAT(store_.gained, ElementsAre(false));
}

TEST_F(CollectorTest, PlansWhatItWouldDo) {
  store_.Fill(0, {{1, 0, 3 * kBlock}});
  store_.Fill(1, {{2, 0, kBlock}});
  const auto collector = Make();
  GcPlan plan = collector->Plan(/*all=*/false);
  EXPECT_EQ(plan.scheme, "isozone");
  EXPECT_TRUE(plan.victims.empty()) << "there is space";
  EXPECT_EQ(plan.urgency, 0);
  plan = collector->Plan(/*all=*/true);
  ASSERT_EQ(plan.victims.size(), 2u);
  EXPECT_EQ(plan.victims[0].zone, ZoneId(1));
  EXPECT_EQ(plan.copied(), 4 * kBlock);
  EXPECT_EQ(plan.reclaimed(), 2 * kCapacity - 4 * kBlock);
  store_.free_percent = 1;
  plan = collector->Plan(/*all=*/false);
  EXPECT_EQ(plan.urgency, 1);
  EXPECT_EQ(plan.space.free_percent(), store_.Space().free_percent());
  EXPECT_EQ(plan.victims.size(), 2u);
  EXPECT_FALSE(store_.IsEmpty(0)) << "a plan moves nothing";
}

// --- By itself ---

TEST_F(CollectorTest, CollectsByItselfWhenSpaceRunsLow) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.free_percent = 1;
  const auto collector = Make();
  collector->Start();
  store_.WaitUntil([&] { return store_.HasGained(); });
  collector->Stop();
  EXPECT_TRUE(store_.IsEmpty(0));
  EXPECT_GE(collector->Stats().rounds, 1u);
  EXPECT_EQ(collector->Stats().urgency, 0);
  store_.ExpectIntact();
}

// One victim at a time, of eight zones that are worth it.
class CollectorBatchTest : public CollectorTest {
 protected:
  CollectorBatchTest() {
    for (uint32_t zone = 0; zone < kFull; ++zone)
      store_.Fill(zone, {{zone, 0, kBlock}, {100 + zone, kSegment, kBlock}});
    store_.free_percent = 1;
  }
  static GcOptions OneAtATime(const std::string& scheme) {
    GcOptions options = Named(scheme);
    options.memory = 8 * kMiB;
    return options;
  }
  static constexpr uint32_t kFull = 8;
};

TEST_F(CollectorBatchTest, StopsWhenEnoughIsFree) {
  for (const char* scheme : {"isozone", "zenfs+", "full", "lsm-zgc"}) {
    SCOPED_TRACE(scheme);
    store_.Locked([&] {
      store_.tried.clear();
      store_.gained.clear();
      store_.free_percent = 1;
      store_.after_commit = [&] { store_.free_percent = 50; };  // somebody has deleted a database
    });
    const auto collector = Make(OneAtATime(scheme));
    collector->Start();
    store_.WaitUntil([&] { return !store_.gained.empty(); });
    collector->Stop();
    EXPECT_EQ(store_.tried.size(), 1u);
    store_.ExpectIntact();
  }
}

TEST_F(CollectorBatchTest, ChoosesByWhatIsAliveNow) {
  store_.after_commit = [&] {
    store_.after_commit = nullptr;
    store_.DeleteLocked(107);  // so the last one becomes the best
  };
  const auto collector = Make(OneAtATime("isozone"));
  collector->Start();
  store_.WaitUntil([&] { return store_.tried.size() >= 2; });
  collector->Stop();
  EXPECT_EQ(store_.tried[0], 0u);
  EXPECT_EQ(store_.tried[1], 7u);
  store_.ExpectIntact();
}

// What the papers decide for a look is collected in one go.
TEST_F(CollectorBatchTest, WhoLooksOnceDecidesOnce) {
  store_.Fill(kZones - 1, {{99, 0, kBlock}}, {}, kSegment);  // `zenfs` needs an open zone
  for (const char* scheme : {"zenfs", "lifetime"}) {
    SCOPED_TRACE(scheme);
    store_.Locked([&] {
      store_.tried.clear();
      store_.gained.clear();
      store_.free_percent = 1;
      store_.after_commit = [&] { store_.free_percent = 50; };
    });
    for (uint32_t zone = 0; zone < kZones; ++zone) {
      if (store_.IsEmpty(zone)) store_.Fill(zone, {{200 + zone, 0, kBlock}});
      if (store_.Space().empty_zones < 3) break;
    }
    const auto collector = Make(OneAtATime(scheme));
    collector->Start();
    collector->Wake();
    store_.WaitUntil([&] { return !store_.gained.empty(); });
    collector->Stop();
    EXPECT_GT(store_.tried.size(), 1u);
    store_.ExpectIntact();
  }
}

// While five victims are missing.
TEST_F(CollectorBatchTest, HasHasteOnlyWhileSomebodyWaits) {
  store_.free_percent = 60;
  store_.wanted = true;
  store_.after_commit = [&] { store_.wanted = false; };
  GcOptions options = OneAtATime("isozone");
  options.tuning.start_percent = 90;
  const auto collector = Make(options);
  std::vector<double> urgencies;
  store_.before_write = [&] { urgencies.push_back(collector->Stats().urgency); };
  collector->Start();
  collector->Wake();
  store_.WaitForRounds(1);
  collector->Stop();
  ASSERT_GE(urgencies.size(), 4u);
  EXPECT_EQ(urgencies[0], 1);
  EXPECT_LT(urgencies[3], 0.5);
  store_.ExpectIntact();
}

// --- As ZenFS does ---

class ConfinedCollectorTest : public CollectorTest {
 protected:
  ConfinedCollectorTest() { store_.free_percent = 1; }
  void StartAndLook() {
    collector_ = Make(Named("zenfs"));
    collector_->Start();
    Look();
  }
  void Look() {
    collector_->Wake();
    store_.WaitForRounds(++looks_);
  }
  uint64_t looks_ = 0;
  std::unique_ptr<Collector> collector_;
};

TEST_F(ConfinedCollectorTest, MovesTablesIntoZonesThatAreOpen) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.Fill(1, {{2, 0, kBlock}});
  store_.Fill(2, {{3, 0, kBlock}}, {}, kSegment);
  store_.small = {2};
  StartAndLook();
  EXPECT_FALSE(store_.attached) << "nobody waits for it";
  collector_->Stop();
  EXPECT_TRUE(store_.IsEmpty(0));
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(2u));
  EXPECT_THAT(store_.ZonesOf(2), ElementsAre(1u));
  EXPECT_THAT(store_.ZonesOf(3), ElementsAre(2u)) << "its zone is not full";
  EXPECT_EQ(store_.Space().empty_zones, kZones - 2);
  store_.ExpectIntact();
}

TEST_F(ConfinedCollectorTest, WithoutAnOpenZoneItFailsAndTriesAgain) {
  store_.Fill(0, {{1, 0, kBlock}});
  StartAndLook();
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(0u));
  store_.Fill(2, {{3, 0, kBlock}}, {}, kSegment);
  Look();
  collector_->Stop();
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(2u));
  EXPECT_THAT(store_.gained, ElementsAre(false, true));
  store_.ExpectIntact();
}

TEST_F(ConfinedCollectorTest, WhatFindsNoRoomStays) {
  store_.Fill(0, {{1, 0, kBlock}, {2, 8 * kBlock, 4 * kBlock}});
  store_.Fill(2, {{3, 0, kBlock}}, {}, kCapacity - 3 * kBlock);
  StartAndLook();
  collector_->Stop();
  EXPECT_THAT(store_.ZonesOf(1), ElementsAre(2u));
  EXPECT_THAT(store_.ZonesOf(2), ElementsAre(0u, 2u));
  EXPECT_EQ(collector_->Stats().copies.bytes_copied, 3 * kBlock);
  EXPECT_EQ(collector_->Stats().copies.zones, 0u);
  EXPECT_THAT(store_.gained, ElementsAre(false));
  store_.ExpectIntact();
}

TEST_F(ConfinedCollectorTest, WhoAsksGetsAll) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.Fill(1, {{2, 0, kBlock}});
  store_.small = {2};
  RunAll(*Make(Named("zenfs")));
  EXPECT_TRUE(store_.IsEmpty(0));
  EXPECT_TRUE(store_.IsEmpty(1));
  store_.ExpectIntact();
}

TEST_F(CollectorBatchTest, DoesNotRestWhileAUserIsPacedByItAlone) {
  store_.free_percent = 60;
  store_.paced = true;
  store_.after_commit = [&] { store_.paced = store_.tried.size() < 2; };
  GcOptions options = OneAtATime("isozone");
  options.tuning.start_percent = 90;
  const auto collector = Make(options);
  std::vector<double> urgencies;
  store_.before_write = [&] {
    urgencies.push_back(collector->Stats().urgency);
    collector->Hurry();
  };
  collector->Start();
  store_.WaitForRounds(1);
  collector->Stop();
  ASSERT_GE(urgencies.size(), 6u);
  EXPECT_EQ(urgencies[0], 1);
  EXPECT_EQ(urgencies[2], 1);
  EXPECT_LT(urgencies[5], 0.5);
  store_.ExpectIntact();
}

TEST_F(CollectorTest, WakesForWhoeverWaits) {
  const auto collector = Make(Named("zenfs"));  // would look in ten seconds
  collector->Start();
  for (uint64_t round = 1; round <= 20; ++round) {
    collector->Wake();
    store_.WaitForRounds(round);
  }
}

TEST_F(CollectorTest, WhatCannotBeMovedMakesWayForTheNextChoice) {
  store_.Fill(0, {{1, 0, kBlock}});       // the best choice
  store_.Fill(1, {{2, 0, 10 * kBlock}});  // would be enough
  store_.Fill(2, {{3, 0, 20 * kBlock}});
  store_.unmovable = {0};
  store_.not_to_be_held = {1};
  store_.free_percent = 9.9;
  store_.wanted = true;
  const auto collector = Make(Named("lsm-zgc"));
  collector->Start();
  collector->Wake();
  store_.WaitForRounds(1);
  EXPECT_TRUE(store_.gained[0]);
  collector->Stop();
  EXPECT_TRUE(store_.IsEmpty(2));
  EXPECT_FALSE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

TEST_F(CollectorTest, WhatCouldNotBeMovedIsTriedInTheNextRound) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.unmovable = {0};
  const auto collector = Make();
  EXPECT_EQ(RunAll(*collector).skipped_zones, 1u);
  store_.unmovable.clear();
  EXPECT_EQ(RunAll(*collector).zones, 1u);
}

TEST_F(CollectorTest, WhereDeadZonesWaitTheyAreResetWhenTheSchemeChoosesThem) {
  const auto collector = Make(Named("full"));
  store_.free_percent = 50;
  store_.Fill(0, {{1, 0, kBlock}});
  collector->Start();
  store_.Delete(1);
  for (uint64_t round = 1; round <= 3; ++round) {
    collector->Wake();
    store_.WaitForRounds(round);
  }
  EXPECT_FALSE(store_.IsEmpty(0)) << "there is space";
  store_.Locked([&] { store_.free_percent = 9; });
  store_.WaitUntil([&] { return store_.HasGained(); });
  EXPECT_TRUE(store_.IsEmpty(0));
  collector->Stop();
  EXPECT_EQ(collector->Stats().copies.zones, 1u);
  EXPECT_EQ(collector->Stats().copies.bytes_reclaimed, kCapacity);
  EXPECT_EQ(collector->Stats().copies.bytes_read, 0u);
}

TEST_F(CollectorTest, StopsPromptlyWhereItHasTime) {
  for (uint32_t zone = 0; zone < 8; ++zone) store_.Fill(zone, {{zone, 0, kBlock}, {zone, 2 * kSegment, kBlock}});
  store_.free_percent = 9.9;  // a twentieth of the time
  GcOptions options;
  options.memory = 8 * kMiB;
  const auto collector = Make(options);
  collector->Start();
  store_.WaitForRounds(1);
  collector->Stop();
  store_.ExpectIntact();
  EXPECT_FALSE(store_.attached);
}

TEST_F(CollectorTest, NobodyMayWaitBeforeStartOrAfterStop) {
  const auto collector = Make();
  EXPECT_FALSE(store_.attached);
  collector->Start();
  EXPECT_TRUE(store_.attached);
  collector->Stop();
  EXPECT_FALSE(store_.attached);
  collector->Wake();
  collector->Start();
  EXPECT_FALSE(store_.attached);
  store_.Fill(0, {{1, 0, kBlock}});
  EXPECT_TRUE(collector->Run(100, {}).status().Is(StatusCode::kAborted));
  EXPECT_FALSE(store_.IsEmpty(0));
}

TEST_F(CollectorTest, GivesUpForGoodWhereFilesCannotBeMoved) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.free_percent = 1;
  store_.commit_error = Status::ReadOnly("the journal is broken");
  const auto collector = Make();
  collector->Start();
  store_.WaitUntil([&] { return !store_.gained.empty() && !store_.attached; });
  store_.Locked([&] { store_.commit_error = Status::Ok(); });
  ASSERT_TRUE(collector->SetOptions(Named("zenfs+")).ok());
  EXPECT_FALSE(store_.attached);
  for (int i = 0; i < 3; ++i) collector->Wake();
  collector->Stop();
  EXPECT_EQ(store_.gained.size(), 1u);
  EXPECT_FALSE(store_.IsEmpty(0));
  store_.ExpectIntact();
}

TEST_F(CollectorTest, NoSpaceIsNoReasonToGiveUp) {
  store_.Fill(0, {{1, 0, kBlock}});
  store_.free_percent = 1;
  store_.writes_before_no_space = 0;
  const auto collector = Make();
  collector->Start();
  store_.WaitForRounds(1);
  store_.Locked([&] { store_.writes_before_no_space = -1; });
  collector->Wake();
  store_.WaitUntil([&] { return store_.HasGained(); });
  EXPECT_TRUE(store_.attached);
  collector->Stop();
  EXPECT_TRUE(store_.IsEmpty(0));
}

TEST_F(CollectorTest, OptionsCanBeChangedWhileItRuns) {
  const auto collector = Make();
  collector->Start();
  EXPECT_EQ(store_.throttle, 15);
  EXPECT_TRUE(store_.reset_at_once);
  GcOptions start_at_40 = Named("isozone");
  start_at_40.tuning.start_percent = 40;
  ASSERT_TRUE(collector->SetOptions(start_at_40).ok());
  EXPECT_EQ(store_.throttle, 60);
  ASSERT_TRUE(collector->SetOptions(Named("full")).ok());
  EXPECT_FALSE(store_.reset_at_once);
  EXPECT_EQ(store_.throttle, 0);
  EXPECT_TRUE(store_.attached);
  ASSERT_TRUE(collector->SetOptions(Named("none")).ok());
  EXPECT_TRUE(store_.reset_at_once);
  EXPECT_FALSE(store_.attached);
  EXPECT_EQ(collector->Stats().scheme, "none");
  EXPECT_TRUE(collector->SetOptions(Named("best")).Is(StatusCode::kInvalidArgument));
  EXPECT_EQ(collector->options().scheme, "none");
  ASSERT_TRUE(collector->SetOptions(Named("lifetime")).ok());
  EXPECT_TRUE(store_.attached);
}

TEST_F(CollectorTest, UnknownSchemeNamesTheKnown) {
  const auto collector = Collector::Create(store_, engine_, Named("best"));
  ASSERT_TRUE(collector.status().Is(StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(collector.status().message()), HasSubstr("isozone"));
}

TEST_F(CollectorTest, ManyMayAskAtOnce) {
  for (uint32_t zone = 0; zone < 8; ++zone) store_.Fill(zone, {{zone, 0, kBlock}});
  store_.free_percent = 5;
  const auto collector = Make();
  collector->Start();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) {
        EXPECT_TRUE(collector->Run(100, {}).ok());
        collector->Wake();
        (void)collector->Plan(true);
        (void)collector->Stats();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  collector->Stop();
  store_.ExpectIntact();
}

}  // namespace
}  // namespace isozone
