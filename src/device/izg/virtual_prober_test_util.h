// VirtualProber: a device and a host for tests of identification, in virtual time. The device is the timing model, and
// what a device that is not ours may do besides is added to it (Disturbances). Everything follows from a seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "device/emulated/nand/timing_model.h"
#include "device/emulated/nand/zone_map.h"
#include "device/izg/prober.h"

namespace isozone {

struct Disturbances {
  double deviation = 0;  // standard deviation of a latency, as a share of it
  double spikes = 0;     // share of reads that take spike_ns more
  int64_t spike_ns = 5 * kMillisecondNs;
  bool spikes_vary = false;     // between nothing and twice spike_ns
  int64_t send_ns_per_mib = 0;  // what the host needs to send a read, for each MiB of it
  // A busy host: the share of reads before which it pauses for pause_ns.
  double pauses = 0;
  int64_t pause_ns = 0;
  // Cold caches: the device holds so many parts of its map in memory, each for so many bytes of a zone, those read
  // last. A read that needs another part begins this much later. 0 bytes: it holds all of its map.
  uint64_t map_part = 0;
  size_t map_parts = 0;
  int64_t map_miss_ns = 0;
  // Thermal drift: latencies grow by this share in the course of so many reads.
  double drift = 0;
  uint64_t drift_reads = 1;
  // Background work: about this often, a random die erases up to so many blocks, one after another. 0: never.
  int64_t background_every_ns = 0;
  uint64_t background_erases = 0;
  // How many of the bytes written last are read from memory.
  uint64_t memory = 0;
  // How many bytes every second zone holds from the beginning.
  uint64_t old_data = 0;
};

class VirtualProber final : public Prober {
 public:
  // `place` has the zone of the profile's mapping whose die each zone lies on; empty: its own.
  VirtualProber(Profile profile, Disturbances disturbances, uint64_t seed, std::vector<uint32_t> place = {})
      : profile_(std::move(profile)),
        disturbances_(disturbances),
        place_(std::move(place)),
        random_(seed),
        model_(profile_) {
    geometry_.block_size = profile_.block_size;
    geometry_.zone_count = profile_.zone_count;
    geometry_.zone_size = profile_.zone_size;
    geometry_.zone_capacity = profile_.zone_capacity;
    geometry_.max_active_zones = profile_.max_active_zones;
    geometry_.optimal_write = profile_.timing ? profile_.program_unit : profile_.block_size;
    for (uint32_t zone = 0; zone < profile_.zone_count; ++zone) zones_.push_back({ZoneId(zone), 0});
    if (profile_.timing) zone_map_.emplace(profile_);
    for (uint32_t zone = 0; disturbances_.old_data > 0 && zone < profile_.zone_count; zone += 2) {
      Fill(zone, disturbances_.old_data);
    }
  }

  // Tells that the zone holds `bytes` of data already.
  void Fill(uint32_t zone, uint64_t bytes) {
    zones_[zone].readable = bytes;
    in_use_.insert(zone);
  }
  // Makes the block of this zone at `offset` unreadable.
  void Damage(uint32_t zone, uint64_t offset) { damaged_[zone].insert(offset); }
  void FailWrites(uint32_t zone) { unwritable_.insert(zone); }

  const DeviceGeometry& geometry() const override { return geometry_; }
  const std::vector<ProbeZone>& zones() const override { return zones_; }
  uint32_t preparable() const override { return geometry_.max_active_zones; }
  uint64_t max_read() const override { return 8 * kMiB; }

  Status Prepare(std::span<const ZoneId> zones, uint64_t bytes) override {
    const uint64_t end = std::min(bytes, geometry_.zone_capacity);
    for (bool wrote = true; wrote;) {  // all in parallel
      wrote = false;
      for (const ZoneId zone : zones) {
        Expect(!in_use_.contains(zone.value()), "wrote to a zone in use");
        if (unwritable_.contains(zone.value())) failed_ = zone;
        uint64_t& written = written_[zone.value()];
        if (written >= end) continue;
        const uint64_t length = std::min(write_unit(), end - written);
        Remember(zone.value(), written, length);
        written += length;
        wrote = true;
      }
    }
    if (failed_) return Status::IoError("write fault");
    Expect(written_.size() <= geometry_.max_active_zones, "wrote more zones than may be active");
    return Status::Ok();
  }

  // Each write begins when the one before has completed.
  Result<std::vector<int64_t>> TimeWrites(ZoneId zone, uint64_t bytes) override {
    Expect(written_.empty(), "timed writes beside others");
    std::vector<int64_t> took_ns;
    for (uint64_t& written = written_[zone.value()]; written + write_unit() <= bytes; written += write_unit()) {
      if (written + write_unit() > geometry_.zone_capacity) break;
      model_.Submit(now_ns_, {TimingOpKind::kWrite, Place(zone), written, write_unit(), 0}, 0);
      std::vector<TimingCompletion> completed;
      while (!Contains(completed, 0)) model_.AdvanceTo(model_.NextCompletionBound(), completed);
      took_ns.push_back(Seen(completed.back().time_ns - now_ns_));
      now_ns_ = completed.back().time_ns;
    }
    return took_ns;
  }

  Status Release(std::span<const ZoneId> zones) override {
    failed_.reset();
    for (const ZoneId zone : zones) {
      Expect(written_.erase(zone.value()) == 1, "released what was not written");
      for (const Chunk& chunk : memory_) in_memory_ -= chunk.zone == zone.value() ? chunk.length : 0;
      std::erase_if(memory_, [zone](const Chunk& chunk) { return chunk.zone == zone.value(); });
    }
    return Status::Ok();
  }

  Status Burst(std::span<ProbeRead> reads) override {
    now_ns_ += 10 * kMillisecondNs;  // so that the burst before is long done
    std::vector<std::pair<int64_t, size_t>> arrivals;
    int64_t end_ns = now_ns_;
    for (size_t i = 0; i < reads.size(); ++i) {
      if (const std::optional<int64_t> arrival = Send(reads[i])) arrivals.emplace_back(*arrival, i);
      end_ns = std::max(end_ns, reads[i].submitted_ns + reads[i].latency_ns);
    }
    std::ranges::sort(arrivals);
    std::vector<TimingCompletion> completed;
    for (const auto& [arrival, i] : arrivals) {
      WorkUntil(arrival, completed);
      const ProbeRead& read = reads[i];
      const uint64_t length = std::min(read.length, FlashEnd(read.zone.value()) - read.offset);
      model_.Submit(arrival, {TimingOpKind::kRead, Place(read.zone), read.offset, length, Readable(read.zone)}, i);
    }
    size_t left = arrivals.size() - Take(reads, completed);
    while (left > 0) {
      end_ns = std::max(end_ns, std::min(model_.NextCompletionBound(), NextBackground()));
      WorkUntil(end_ns, completed);
      left -= Take(reads, completed);
    }
    now_ns_ = std::max(now_ns_, end_ns);
    for (ProbeRead& read : reads) read.latency_ns = Seen(read.latency_ns);
    return Status::Ok();
  }

  std::optional<ZoneId> failed_zone() const override { return failed_; }

  size_t still_written() const { return written_.size(); }
  // Requests that no prober may make, and that were made. Must stay empty.
  const std::set<std::string>& violations() const { return violations_; }
  // Returns the die that a zone lies on, or its first one. The profile must have timing.
  uint32_t DieOf(uint32_t zone) const { return zone_map_->DieOf(Place(ZoneId(zone)), 0); }
  const Profile& profile() const { return profile_; }

 private:
  static constexpr uint64_t kBackground = std::numeric_limits<uint64_t>::max();  // a ticket
  struct Chunk {
    uint32_t zone;
    uint64_t offset;
    uint64_t length;
  };

  void Expect(bool holds, std::string_view otherwise) {
    if (!holds) violations_.emplace(otherwise);
  }

  uint32_t Place(ZoneId zone) const { return place_.empty() ? zone.value() : place_[zone.value()]; }
  uint64_t Readable(ZoneId zone) const {
    if (in_use_.contains(zone.value())) return zones_[zone.value()].readable;
    const auto written = written_.find(zone.value());
    return written == written_.end() ? 0 : written->second;
  }
  static bool Contains(const std::vector<TimingCompletion>& completed, uint64_t ticket) {
    return std::ranges::find(completed, ticket, &TimingCompletion::ticket) != completed.end();
  }

  // --- What was written last ---

  void Remember(uint32_t zone, uint64_t offset, uint64_t length) {
    if (disturbances_.memory == 0) return;
    memory_.push_back({zone, offset, length});
    in_memory_ += length;
    while (in_memory_ > disturbances_.memory) {
      in_memory_ -= memory_.front().length;
      memory_.pop_front();
    }
  }
  // Returns the offset in a zone from which on its data is only in memory.
  uint64_t FlashEnd(uint32_t zone) const {
    const auto found = std::ranges::find(memory_, zone, &Chunk::zone);  // the oldest of the zone
    return found == memory_.end() ? std::numeric_limits<uint64_t>::max() : found->offset;
  }

  // --- Reads ---

  // Sends a read, and returns when it arrives at the flash. If all of it is in memory, it completes without.
  std::optional<int64_t> Send(ProbeRead& read) {
    now_ns_ += disturbances_.send_ns_per_mib * static_cast<int64_t>(read.length) / static_cast<int64_t>(kMiB);
    if (disturbances_.pauses > 0 && random_.Chance(disturbances_.pauses)) now_ns_ += disturbances_.pause_ns;
    read.submitted_ns = now_ns_;
    read.latency_ns = 0;
    const std::set<uint64_t>& damaged = damaged_[read.zone.value()];
    const auto first = damaged.lower_bound(read.offset);
    read.failed = first != damaged.end() && *first < read.offset + read.length;
    Expect(read.offset + read.length <= Readable(read.zone), "read what was never written");
    if (FlashEnd(read.zone.value()) <= read.offset) {
      read.latency_ns = profile_.read_latency_ns +
                        static_cast<int64_t>(read.length) * kSecondNs / static_cast<int64_t>(profile_.link_bandwidth);
      return std::nullopt;
    }
    return now_ns_ + LoadMap(read);
  }

  // Returns how long loading the missing parts of the map takes.
  int64_t LoadMap(const ProbeRead& read) {
    if (disturbances_.map_part == 0) return 0;
    int64_t takes_ns = 0;
    const uint64_t last = (read.offset + read.length - 1) / disturbances_.map_part;
    for (uint64_t part = read.offset / disturbances_.map_part; part <= last; ++part) {
      const std::pair<uint32_t, uint64_t> key{read.zone.value(), part};
      const auto held = parts_.find(key);
      if (held == parts_.end()) {
        takes_ns += disturbances_.map_miss_ns;
      } else {
        parts_order_.erase(held->second);
      }
      parts_[key] = parts_order_.insert(parts_order_.end(), key);
      if (parts_.size() > disturbances_.map_parts) {
        parts_.erase(parts_order_.front());
        parts_order_.pop_front();
      }
    }
    return takes_ns;
  }

  int64_t NextBackground() const {
    return disturbances_.background_every_ns == 0 ? TimingModel::kNever : next_background_ns_;
  }

  void WorkUntil(int64_t time_ns, std::vector<TimingCompletion>& completed) {
    while (NextBackground() <= time_ns) {
      const int64_t begins_ns = std::max(next_background_ns_, worked_until_ns_);
      model_.AdvanceTo(begins_ns, completed);
      worked_until_ns_ = begins_ns;
      const auto zone = static_cast<uint32_t>(random_.Below(profile_.zone_count));
      const uint64_t erases = random_.Between(1, disturbances_.background_erases);
      for (uint64_t i = 0; i < erases; ++i) {
        model_.Submit(begins_ns, {TimingOpKind::kReset, zone, 0, 0, profile_.zone_capacity}, kBackground);
      }
      next_background_ns_ +=
          static_cast<int64_t>(random_.Below(static_cast<uint64_t>(2 * disturbances_.background_every_ns)));
    }
    model_.AdvanceTo(time_ns, completed);
    worked_until_ns_ = time_ns;
  }

  // Writes the completions into the reads, and returns how many reads have completed.
  static size_t Take(std::span<ProbeRead> reads, std::vector<TimingCompletion>& completed) {
    size_t count = 0;
    for (const TimingCompletion& completion : completed) {
      if (completion.ticket == kBackground) continue;
      ProbeRead& read = reads[completion.ticket];
      read.latency_ns = completion.time_ns - read.submitted_ns;
      ++count;
    }
    completed.clear();
    return count;
  }

  // Returns the latency that the host sees.
  int64_t Seen(int64_t latency_ns) {
    const double normal = std::sqrt(-2 * std::log(1 - random_.Real())) * std::cos(2 * std::acos(-1.0) * random_.Real());
    const double noise = std::max(0.1, 1 + disturbances_.deviation * normal);
    const double course = std::min(1.0, static_cast<double>(++reads_) / static_cast<double>(disturbances_.drift_reads));
    const double spike = !random_.Chance(disturbances_.spikes) ? 0 : disturbances_.spikes_vary ? 2 * random_.Real() : 1;
    return static_cast<int64_t>(static_cast<double>(latency_ns) * noise * (1 + disturbances_.drift * course) +
                                spike * static_cast<double>(disturbances_.spike_ns));
  }

  const Profile profile_;
  const Disturbances disturbances_;
  const std::vector<uint32_t> place_;
  Random random_;
  TimingModel model_;
  std::optional<ZoneMap> zone_map_;
  DeviceGeometry geometry_;
  std::vector<ProbeZone> zones_;
  std::set<uint32_t> in_use_;
  std::map<uint32_t, std::set<uint64_t>> damaged_;
  std::set<uint32_t> unwritable_;
  std::optional<ZoneId> failed_;
  std::map<uint32_t, uint64_t> written_;
  std::set<std::string> violations_;
  int64_t now_ns_ = 0;
  int64_t worked_until_ns_ = 0;
  uint64_t reads_ = 0;

  std::deque<Chunk> memory_;                              // from the oldest
  uint64_t in_memory_ = 0;                                // bytes
  std::list<std::pair<uint32_t, uint64_t>> parts_order_;  // from the one that was needed first
  std::map<std::pair<uint32_t, uint64_t>, std::list<std::pair<uint32_t, uint64_t>>::iterator> parts_;
  int64_t next_background_ns_ = 0;
};

inline Profile SmallZones(uint32_t zones) {
  Profile profile = LoadProfile("small-zone").value();
  profile.zone_count = zones;
  return profile;
}

// How zones lie on dies.
enum class TestMapping : uint8_t {
  kRoundRobin,  // zone i on die i mod dies
  kPermuted,    // each row of as many zones as there are dies in an order of its own
  kIrregular,   // at random, some dies with up to four times as many zones as others
  kExceptions,  // round robin, but about two zones in a hundred have changed places
};
// The first three: an exception is either rare or part of an irregular mapping.
inline constexpr TestMapping kTestMappings[] = {TestMapping::kRoundRobin, TestMapping::kPermuted,
                                                TestMapping::kIrregular};
inline std::string_view NameOf(TestMapping mapping) {
  return mapping == TestMapping::kRoundRobin  ? "round robin"
         : mapping == TestMapping::kPermuted  ? "permuted"
         : mapping == TestMapping::kIrregular ? "irregular"
                                              : "round robin but for 2 %";
}

inline VirtualProber MakeProber(Profile profile, TestMapping mapping, const Disturbances& disturbances, uint64_t seed) {
  std::vector<uint32_t> place;
  Random random(seed);
  if (mapping == TestMapping::kPermuted) {
    for (uint32_t zone = 0; zone < profile.zone_count; ++zone) {
      place.push_back(zone);
      const uint32_t in_row = zone % profile.dies;
      std::swap(place[zone], place[zone - in_row + random.Below(in_row + 1)]);
    }
  }
  if (mapping == TestMapping::kExceptions) {
    for (uint32_t zone = 0; zone < profile.zone_count; ++zone) place.push_back(zone);
    for (uint32_t i = 0; i < profile.zone_count / 100; ++i) {
      std::swap(place[random.Below(profile.zone_count)], place[random.Below(profile.zone_count)]);
    }
  }
  if (mapping == TestMapping::kIrregular) {
    profile.mapping = ZoneMapping::kRandom;
    profile.mapping_seed = seed;
  }
  return VirtualProber(std::move(profile), disturbances, seed, std::move(place));
}

}  // namespace isozone
