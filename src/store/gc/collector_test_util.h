// Files and zones in memory, for tests of the collector and of what it copies.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "device/emulated/device_test_util.h"
#include "store/gc/collector.h"
#include "store/gc/gc_store.h"

namespace isozone {

inline constexpr uint64_t kBlock = kTestBlock;
inline constexpr uint64_t kSegment = 2 * kMiB;
inline constexpr uint64_t kCapacity = 5 * kMiB;  // two segments and a half
inline constexpr uint32_t kZones = 16;

inline DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.block_size = kBlock;
  geometry.zone_count = kZones;
  geometry.zone_size = 8 * kMiB;
  geometry.zone_capacity = kCapacity;
  geometry.max_open_zones = geometry.max_active_zones = 0;
  geometry.optimal_write = kBlock;
  return geometry;
}

inline std::string RandomText(Random& random, uint64_t size) {
  std::string text(RoundUp(size, sizeof(uint64_t)), '\0');
  for (uint64_t at = 0; at < text.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(text.data() + at, &word, sizeof(word));
  }
  text.resize(size);
  return text;
}

// What a test writes to a zone: `length` bytes of `file`, from `offset` of the zone on. Garbage fills the gaps.
struct Part {
  uint64_t file = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Files and zones in memory, with their bytes on an emulated SSD. A zone that is not held is reset once nothing in it
// is valid.
class FakeStore final : public GcZones, public GcFiles {
 public:
  explicit FakeStore(ZonedDevice& device) : device_(device), zones_(kZones) {}

  // --- For tests ---
  // Fills a zone up to its capacity, or up to `written`.
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

  // Expects that every file reads as it was written.
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

  // Return the zones that a file lies in, and the class of a zone.
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
  // Returns whether any round has gained something. The mutex must be held.
  bool HasGained() const { return std::count(gained.begin(), gained.end(), true) > 0; }
  template <typename Function>
  void Locked(Function function) {
    const std::lock_guard lock(mu_);
    function();
  }

  // --- GcZones ---
  GcSpace Look() const override {
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

  // --- GcFiles ---
  void CountBlocks(std::span<GcCandidate> zones) const override {
    const std::lock_guard lock(mu_);
    for (GcCandidate& zone : zones) zone.valid = Valid(zone.zone.value());
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
  void ThrottleBelow(ThrottleRule rule) override {
    const std::lock_guard lock(mu_);
    throttle = rule(GcSpace());
  }

  // --- Settings of the test, changed under Locked() while a collector runs ---
  bool wanted = false;
  bool paced = false;
  std::optional<double> free_percent;
  uint32_t most_empty = kZones;
  std::set<uint32_t> unmovable;
  std::set<uint32_t> not_to_be_held;
  std::set<uint64_t> small;  // files that are not tables
  Status commit_error;
  int corrupt_writes = 0;              // this many of the next copies are written wrong
  int writes_before_no_space = -1;     // -1: never
  std::function<void()> before_write;  // called without the mutex
  std::function<void()> after_commit;  // called with the mutex held
  // --- Observations ---
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

  // Writes to one zone at a time for each class.
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
  // Returns the bytes of the valid pieces of a zone, each by itself in whole blocks.
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

  std::unique_ptr<Collector> Make(const GcOptions& options = {}, Clock& clock = Clock::Real()) {
    auto collector = Collector::Create(store_, store_, engine_, options, clock);
    EXPECT_TRUE(collector.ok()) << collector.status().ToString();
    return std::move(*collector);
  }
  static GcOptions Named(const std::string& scheme) { return {.scheme = scheme}; }
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

}  // namespace isozone
