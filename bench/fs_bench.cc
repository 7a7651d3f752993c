// What the file system adds to the device, at memory speed (timing=off), each compared with its baseline:
//
//   SyncedLogWrite     FileWriter::Append + Sync of 900 bytes to a log       against one 4 KiB FUA write to a zone
//   RandomRead4K       FileReader::Read of 4 KiB aligned                     against one 4 KiB device read
//   Mount              29,172 zones, 10,000 files: time, and memory it adds
#include <malloc.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/aligned_buffer.h"
#include "base/random.h"
#include "device/emulated/emulated_device.h"
#include "store/file_system.h"
#include "store/mount/format_device.h"

namespace isozone {
namespace {

// A benchmark that cannot set itself up ends the process.
template <typename T>
T OrDie(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::abort();
}
void OrDie(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

DeviceGeometry Geometry(uint32_t zones, uint64_t zone_size) {
  DeviceGeometry geometry;
  geometry.zone_count = zones;
  geometry.zone_size = geometry.zone_capacity = zone_size;
  geometry.max_active_zones = geometry.max_open_zones = 384;
  geometry.optimal_write = 192 * kKiB;
  return geometry;
}

struct Volume {
  explicit Volume(const DeviceGeometry& geometry) : image(OrDie(EmulatedDevice::CreateInMemory(geometry))) {
    auto device = OpenDevice();
    OrDie(FormatDevice(*device, {}));
  }
  std::unique_ptr<EmulatedDevice> OpenDevice() const {
    return OrDie(EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}));
  }
  std::unique_ptr<FileSystem> Mount() const { return OrDie(FileSystem::Mount(OpenDevice(), {})); }

  MemoryImage image;
};

void RunDevice(ZonedDevice& device, DeviceOp op, uint64_t offset, std::span<std::byte> bytes, bool fua) {
  DeviceRequest request;
  request.op = op;
  request.fua = fua;
  request.offset = DeviceOffset(offset);
  request.data = bytes.data();
  request.length = bytes.size();
  OrDie(SubmitAndWait(device, request) == DeviceStatus::kSuccess ? Status::Ok() : ToStatus(device.geometry(), request));
}

void DeviceWriteFua4K(benchmark::State& state) {
  const MemoryImage image = OrDie(EmulatedDevice::CreateInMemory(Geometry(64, 72 * kMiB)));
  auto device = OrDie(EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}));
  AlignedBuffer block(4096);
  std::fill(block.span().begin(), block.span().end(), std::byte{1});
  uint64_t at = 0;
  for (auto _ : state) {
    RunDevice(*device, DeviceOp::kWrite, at % (64 * 72 * kMiB), block.span(), true);
    at += 4096;
    if (at % (72 * kMiB) == 0) {
      state.PauseTiming();
      RunDevice(*device, DeviceOp::kReset, at % (64 * 72 * kMiB), {}, false);
      state.ResumeTiming();
    }
  }
}
BENCHMARK(DeviceWriteFua4K);

void SyncedLogWrite(benchmark::State& state) {
  const Volume volume(Geometry(64, 72 * kMiB));
  auto fs = volume.Mount();
  const CreateOptions options{FileKind::kLog, IoClass::kWal, Lifetime::kShort, 0};
  const std::vector<std::byte> record(900, std::byte{1});
  auto writer = OrDie(fs->Create("/1.log", options));
  for (auto _ : state) {
    OrDie(writer->Append(record));
    OrDie(writer->Sync());
    if (writer->size() > 10 * kMiB) {  // like RocksDB: begins a new log and removes the old one
      state.PauseTiming();
      writer.reset();
      writer = OrDie(fs->Create("/1.log", options));
      state.ResumeTiming();
    }
  }
}
BENCHMARK(SyncedLogWrite);

constexpr uint64_t kReadSpan = 512 * kMiB;

void DeviceRead4K(benchmark::State& state) {
  const MemoryImage image = OrDie(EmulatedDevice::CreateInMemory(Geometry(16, 64 * kMiB)));
  auto device = OrDie(EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}));
  AlignedBuffer chunk(kMiB);
  std::fill(chunk.span().begin(), chunk.span().end(), std::byte{1});
  for (uint64_t at = 0; at < kReadSpan; at += kMiB) RunDevice(*device, DeviceOp::kWrite, at, chunk.span(), false);
  Random random(1);
  for (auto _ : state) {
    RunDevice(*device, DeviceOp::kRead, random.Below(kReadSpan / 4096) * 4096, chunk.span().first(4096), false);
  }
}
BENCHMARK(DeviceRead4K);

void RandomRead4K(benchmark::State& state) {
  const Volume volume(Geometry(32, 64 * kMiB));
  auto fs = volume.Mount();
  auto writer = OrDie(fs->Create("/f", {}));
  const std::vector<std::byte> chunk(kMiB, std::byte{1});
  for (uint64_t at = 0; at < kReadSpan; at += kMiB) OrDie(writer->Append(chunk));
  OrDie(writer->Sync());
  OrDie(writer->Close());
  auto reader = OrDie(fs->OpenForRead("/f"));
  AlignedBuffer block(4096);
  Random random(1);
  for (auto _ : state) {
    OrDie(reader->Read(random.Below(kReadSpan / 4096) * 4096, block.span(), IoClass::kUserRead).status());
  }
}
BENCHMARK(RandomRead4K);

uint64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void Mount(benchmark::State& state) {
  const Volume volume(Geometry(29172, 72 * kMiB));
  {
    auto fs = volume.Mount();
    OrDie(fs->CreateDirectory("/db"));
    const std::vector<std::byte> content(64 * kKiB, std::byte{1});
    for (int i = 0; i < 10000; ++i) {
      auto writer = OrDie(fs->Create("/db/" + std::to_string(i) + ".sst", {}));
      OrDie(writer->Append(content));
      OrDie(writer->Close());
    }
    OrDie(fs->Unmount());
  }
  uint64_t memory = 0;
  for (auto _ : state) {
    const uint64_t before = HeapBytes();
    auto fs = volume.Mount();
    memory = HeapBytes() - before;
    state.PauseTiming();
    fs.reset();
    state.ResumeTiming();
  }
  state.counters["heap_MiB"] = static_cast<double>(memory) / static_cast<double>(kMiB);
}
BENCHMARK(Mount)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace isozone
