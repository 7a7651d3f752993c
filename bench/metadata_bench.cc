// What the metadata of a large file system costs, without a device: files of 8 MiB, striped over 16 zones in units of
// 512 KiB, as many as fill so many TB.
//
//   MetadataOfTerabytes   time: to decode a checkpoint and make a state of it, as a mount does; counters: bytes of the
//                         checkpoint, and of heap for the state
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/units.h"
#include "fs/metadata/metadata.h"
#include "fs/metadata/metadata_codec.h"

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

// File number `file`: unit by unit in the zones of its stripe set, which the files before it have filled so far.
Inode StripedFile(const DeviceGeometry& geometry, uint64_t file) {
  Inode inode;
  inode.id = InodeId(2 + file);
  inode.size = kFileSize;
  inode.links = {{kRootInode, std::to_string(1'000'000 + file) + ".sst"}};
  for (uint64_t i = 0; i < kFileSize / kUnit; ++i) {
    const uint64_t unit = file * (kFileSize / kUnit) + i;
    const uint64_t set = unit / (kStripeWidth * kUnitsInZone);
    const uint64_t zone = set * kStripeWidth + unit % kStripeWidth;
    const uint64_t in_zone = unit / kStripeWidth % kUnitsInZone;
    const uint64_t start = geometry.ZoneStart(ZoneId(static_cast<uint32_t>(zone))).value();
    inode.extents.push_back({i * kUnit, DeviceOffset(start + in_zone * kUnit), kUnit});
  }
  return inode;
}

// The records of a checkpoint, one behind the other.
struct Checkpoint {
  explicit Checkpoint(const DeviceGeometry& geometry) {
    Inode root;
    root.id = kRootInode;
    root.is_directory = true;
    Add(root);
    const uint64_t units = geometry.zone_count * kUnitsInZone;
    for (uint64_t file = 0; file < units / (kFileSize / kUnit); ++file) Add(StripedFile(geometry, file));
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
  auto state = MetadataState::Restore(geometry, std::move(inodes), InodeId(0), nullptr, {});
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
  const Checkpoint checkpoint(geometry);
  uint64_t heap = 0;
  uint64_t encoded = 0;
  while (benchmark_state.KeepRunning()) {
    const uint64_t before = HeapBytes();
    const MetadataState state = Restore(geometry, checkpoint);
    benchmark_state.PauseTiming();
    heap = HeapBytes() - before;
    encoded = state.encoded_size();
    benchmark_state.ResumeTiming();
  }
  benchmark_state.counters["files"] = static_cast<double>(checkpoint.ends.size() - 1);
  benchmark_state.counters["checkpoint_bytes"] = static_cast<double>(encoded);
  benchmark_state.counters["heap_bytes"] = static_cast<double>(heap);
}
BENCHMARK(MetadataOfTerabytes)->Arg(1)->Arg(4)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace isozone
