// What the metadata of a large file system costs, without a device. There are as many files of 8 MiB, striped over 16
// zones in units of 512 KiB, as fill so many TB. Zones are taken one after another, as on a new device, or in any
// order, as on one that has been used for long.
//
//   MetadataOfTerabytes   time: to decode a checkpoint, to make a state of it and to find the zones that it names, as a
//                         mount does; counters: files, bytes of the checkpoint, bytes of heap
//                         for the state
//
// For 15 TB, the limits are 600 MB of memory, 100 MB of checkpoint and 5 s. Run alone:
//
//   isozone_metadata_bench --benchmark_filter=MetadataOfTerabytes/terabytes:15/scattered:0
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "base/units.h"
#include "store/metadata/metadata.h"
#include "store/metadata/metadata_codec.h"
#include "store/metadata/recovery.h"

namespace isozone {
namespace {

constexpr uint64_t kTerabyte = 1'000'000'000'000;
constexpr uint64_t kZoneSize = 72 * kMiB;
constexpr uint64_t kFileSize = 8 * kMiB;
constexpr uint64_t kUnit = 512 * kKiB;
constexpr uint64_t kStripeWidth = 16;
constexpr uint64_t kUnitsInZone = kZoneSize / kUnit;

DeviceGeometry Geometry(uint64_t terabytes) {
  DeviceGeometry geometry;
  geometry.zone_size = geometry.zone_capacity = kZoneSize;
  geometry.zone_count = static_cast<uint32_t>(terabytes * kTerabyte / kZoneSize / kStripeWidth * kStripeWidth);
  return geometry;
}

// The zones in the order in which they are taken.
std::vector<uint32_t> ZoneOrder(const DeviceGeometry& geometry, bool scattered) {
  std::vector<uint32_t> zones(geometry.zone_count);
  std::iota(zones.begin(), zones.end(), 0);
  Random random(20261123);
  for (uint32_t i = geometry.zone_count; scattered && i > 1; --i) std::swap(zones[i - 1], zones[random.Below(i)]);
  return zones;
}

// File number `file`, written unit by unit to the zones of its stripe set behind the files before it.
Inode StripedFile(const DeviceGeometry& geometry, const std::vector<uint32_t>& zones, uint64_t file) {
  Inode inode;
  inode.id = InodeId(2 + file);
  inode.size = kFileSize;
  inode.links = {{kRootInode, std::to_string(1'000'000 + file) + ".sst"}};
  for (uint64_t i = 0; i < kFileSize / kUnit; ++i) {
    const uint64_t unit = file * (kFileSize / kUnit) + i;
    const uint64_t set = unit / (kStripeWidth * kUnitsInZone);
    const uint64_t zone = set * kStripeWidth + unit % kStripeWidth;
    const uint64_t in_zone = unit / kStripeWidth % kUnitsInZone;
    const uint64_t start = geometry.ZoneStart(ZoneId(zones[zone])).value();
    inode.extents.push_back({i * kUnit, DeviceOffset(start + in_zone * kUnit), kUnit});
  }
  return inode;
}

// The records of a checkpoint, one after another.
struct Checkpoint {
  Checkpoint(const DeviceGeometry& geometry, bool scattered) {
    const std::vector<uint32_t> zones = ZoneOrder(geometry, scattered);
    Inode root;
    root.id = kRootInode;
    root.is_directory = true;
    Add(root);
    const uint64_t units = geometry.zone_count * kUnitsInZone;
    for (uint64_t file = 0; file < units / (kFileSize / kUnit); ++file) Add(StripedFile(geometry, zones, file));
  }
  void Add(const Inode& inode) {
    EncodePutInode(inode, bytes);
    ends.push_back(bytes.size());
  }
  std::span<const std::byte> record(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::span(bytes).subspan(begin, ends[i] - begin);
  }

  std::vector<std::byte> bytes;
  std::vector<size_t> ends;
};

MetadataState Restore(const DeviceGeometry& geometry, const Checkpoint& checkpoint) {
  std::vector<Inode> inodes;
  for (size_t i = 0; i < checkpoint.ends.size(); ++i) {
    inodes.push_back(std::move(std::get<PutInode>(DecodeRecord(checkpoint.record(i))->front()).inode));
  }
  auto state = MetadataState::Restore(geometry, std::move(inodes), InodeId(0), {});
  if (state.ok()) return std::move(state).value();
  std::fprintf(stderr, "%s\n", state.status().ToString().c_str());
  std::abort();
}

uint64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void MetadataOfTerabytes(benchmark::State& benchmark_state) {
  const DeviceGeometry geometry = Geometry(static_cast<uint64_t>(benchmark_state.range(0)));
  const Checkpoint checkpoint(geometry, benchmark_state.range(1) != 0);
  uint64_t heap = 0;
  uint64_t encoded = 0;
  while (benchmark_state.KeepRunning()) {
    const uint64_t before = HeapBytes();
    auto state = std::make_unique<MetadataState>(Restore(geometry, checkpoint));
    benchmark::DoNotOptimize(NamedZones(geometry, *state, {}));
    benchmark_state.PauseTiming();
    heap = HeapBytes() - before;
    encoded = state->encoded_size();
    state.reset();
    benchmark_state.ResumeTiming();
  }
  benchmark_state.counters["files"] = static_cast<double>(checkpoint.ends.size() - 1);
  benchmark_state.counters["checkpoint_bytes"] = static_cast<double>(encoded);
  benchmark_state.counters["heap_bytes"] = static_cast<double>(heap);
}
BENCHMARK(MetadataOfTerabytes)
    ->ArgsProduct({{1, 15}, {0, 1}})
    ->ArgNames({"terabytes", "scattered"})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace isozone
