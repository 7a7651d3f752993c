// Measures what the emulated device itself costs with timing off, compares it with plain memory on the same machine,
// and shows why the device writes with pwrite(). Images are in memory (tmpfs pages); ISOZONE_BENCH_DIRECTORY puts them
// on a disk.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "base/aligned_buffer.h"
#include "base/random.h"
#include "device/emulated/emulated_device.h"

namespace isozone {
namespace {

constexpr uint64_t kZoneSize = 64 * kMiB;
constexpr uint32_t kZones = 8;
constexpr uint64_t kDeviceSize = kZones * kZoneSize;
constexpr uint64_t kWriteSize = kMiB;
constexpr uint64_t kReadSize = 4096;

DeviceGeometry Geometry() {
  return {.block_size = 4096,
          .zone_count = kZones,
          .zone_size = kZoneSize,
          .zone_capacity = kZoneSize,
          .optimal_write = 128 * kKiB};
}

template <typename T>
T Must(Result<T> result) {
  if (result.ok()) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::abort();
}

// A file of kDeviceSize bytes, and an image, in memory or where the environment says.
class Scratch {
 public:
  Scratch() {
    const char* directory = std::getenv("ISOZONE_BENCH_DIRECTORY");
    if (directory != nullptr) directory_ = directory;
  }
  ~Scratch() {
    if (!path_.empty()) std::filesystem::remove(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  FileDescriptor File() {
    FileDescriptor fd(directory_.empty() ? ::memfd_create("bench", MFD_CLOEXEC)
                                         : ::open(directory_.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
    if (fd.get() < 0 || ::ftruncate(fd.get(), static_cast<off_t>(kDeviceSize)) != 0) std::abort();
    return fd;
  }
  std::unique_ptr<EmulatedDevice> Device() {
    if (directory_.empty()) {
      memory_ = std::make_unique<MemoryImage>(Must(EmulatedDevice::CreateInMemory(Geometry())));
      return Must(EmulatedDevice::Open(memory_->path(), OpenMode::kReadWrite, {}));
    }
    path_ = directory_ + "/isozone-bench.img";
    ImageInfo info;
    info.geometry = Geometry();
    if (!ImageFile::Create(path_, info).ok()) std::abort();
    return Must(EmulatedDevice::Open(path_, OpenMode::kReadWrite, {}));
  }

 private:
  std::string directory_;
  std::string path_;
  std::unique_ptr<MemoryImage> memory_;
};

DeviceStatus Run(ZonedDevice& device, DeviceOp op, uint64_t offset, AlignedBuffer& buffer) {
  DeviceRequest request;
  request.op = op;
  request.offset = DeviceOffset(offset);
  request.data = buffer.data();
  request.length = buffer.size();
  request.done = [](DeviceRequest&) {};
  device.Submit(request);  // with timing off, done when it returns
  return request.status;
}

AlignedBuffer Filled(uint64_t size) {
  AlignedBuffer buffer(size);
  std::memset(buffer.data(), 1, size);
  return buffer;
}

// Writes one unit after another over all zones. At the end it resets them, untimed, and starts over.
void DeviceWrite(benchmark::State& state) {
  Scratch scratch;
  const auto device = scratch.Device();
  AlignedBuffer buffer = Filled(kWriteSize);
  uint64_t at = kDeviceSize;
  for (auto _ : state) {
    if (at == kDeviceSize) {
      state.PauseTiming();
      for (uint32_t zone = 0; zone < kZones; ++zone) (void)Run(*device, DeviceOp::kReset, zone * kZoneSize, buffer);
      at = 0;
      state.ResumeTiming();
    }
    if (Run(*device, DeviceOp::kWrite, at, buffer) != DeviceStatus::kSuccess) state.SkipWithError("write failed");
    at += kWriteSize;
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kWriteSize));
}
BENCHMARK(DeviceWrite)->UseRealTime();

// The alternative: memcpy into a mapping of the file, whose blocks are dropped, untimed, at the end. With `populate`,
// one madvise() for each write creates the pages first.
void MappedWrite(benchmark::State& state, bool populate) {
  Scratch scratch;
  const FileDescriptor file = scratch.File();
  auto* mapping =
      static_cast<std::byte*>(::mmap(nullptr, kDeviceSize, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  const AlignedBuffer buffer = Filled(kWriteSize);
  uint64_t at = 0;
  for (auto _ : state) {
    if (at == kDeviceSize) {
      state.PauseTiming();
      (void)::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(kDeviceSize));
      at = 0;
      state.ResumeTiming();
    }
    if (populate) (void)::madvise(mapping + at, kWriteSize, MADV_POPULATE_WRITE);
    std::memcpy(mapping + at, buffer.data(), kWriteSize);
    benchmark::ClobberMemory();
    at += kWriteSize;
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kWriteSize));
  ::munmap(mapping, kDeviceSize);
}
BENCHMARK_CAPTURE(MappedWrite, faulting, false)->UseRealTime();
BENCHMARK_CAPTURE(MappedWrite, populating, true)->UseRealTime();

// The baseline: memcpy of the same pieces into as much anonymous memory, fresh from the kernel or touched before.
void MemoryWrite(benchmark::State& state, bool fresh) {
  auto* memory =
      static_cast<std::byte*>(::mmap(nullptr, kDeviceSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (!fresh) std::memset(memory, 1, kDeviceSize);
  const AlignedBuffer buffer = Filled(kWriteSize);
  uint64_t at = 0;
  for (auto _ : state) {
    if (at == kDeviceSize) {
      state.PauseTiming();
      if (fresh) (void)::madvise(memory, kDeviceSize, MADV_DONTNEED);
      at = 0;
      state.ResumeTiming();
    }
    std::memcpy(memory + at, buffer.data(), kWriteSize);
    benchmark::ClobberMemory();
    at += kWriteSize;
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kWriteSize));
  ::munmap(memory, kDeviceSize);
}
BENCHMARK_CAPTURE(MemoryWrite, fresh, true)->UseRealTime();
BENCHMARK_CAPTURE(MemoryWrite, touched, false)->UseRealTime();

class ReadDevice {
 public:
  ReadDevice() : device_(scratch_.Device()) {
    AlignedBuffer buffer = Filled(kWriteSize);
    for (uint64_t at = 0; at < kDeviceSize; at += kWriteSize) (void)Run(*device_, DeviceOp::kWrite, at, buffer);
  }
  EmulatedDevice& operator*() { return *device_; }

 private:
  Scratch scratch_;
  std::unique_ptr<EmulatedDevice> device_;
};

uint64_t RandomBlock(Random& random, uint64_t range) { return random.Below(range / kReadSize) * kReadSize; }

// Random reads in the first `range` bytes, by one thread or by several on one device.
void DeviceRead(benchmark::State& state) {
  static std::unique_ptr<ReadDevice> device;
  if (state.thread_index() == 0) device = std::make_unique<ReadDevice>();
  AlignedBuffer buffer = Filled(kReadSize);
  Random random(static_cast<uint64_t>(state.thread_index()));
  const auto range = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    if (Run(**device, DeviceOp::kRead, RandomBlock(random, range), buffer) != DeviceStatus::kSuccess) std::abort();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kReadSize));
  if (state.thread_index() == 0) device.reset();
}
BENCHMARK(DeviceRead)->Arg(kMiB)->Arg(kDeviceSize)->ThreadRange(1, 2)->UseRealTime();

void MemoryRead(benchmark::State& state) {
  const auto range = static_cast<uint64_t>(state.range(0));
  const AlignedBuffer memory = Filled(range);
  AlignedBuffer buffer = Filled(kReadSize);
  Random random(0);
  for (auto _ : state) {
    std::memcpy(buffer.data(), memory.data() + RandomBlock(random, range), kReadSize);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kReadSize));
}
BENCHMARK(MemoryRead)->Arg(kMiB)->Arg(kDeviceSize)->UseRealTime();

// How late completions are when commands are far apart: 192 KiB reads of the small-zone device, one at a time.
void TimedReadLateness(benchmark::State& state) {
  auto profile = Must(LoadProfile("small-zone"));
  profile.zone_count = 64;
  const MemoryImage image = Must(EmulatedDevice::CreateInMemory(profile));
  const auto device = Must(EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}));
  AlignedBuffer buffer = Filled(192 * kKiB);
  DeviceRequest request;
  request.op = DeviceOp::kWrite;
  request.data = buffer.data();
  request.length = buffer.size();
  if (SubmitAndWait(*device, request) != DeviceStatus::kSuccess) std::abort();
  request.op = DeviceOp::kRead;
  for (auto _ : state) {
    if (SubmitAndWait(*device, request) != DeviceStatus::kSuccess) std::abort();
  }
  const Histogram::Snapshot lateness = device->description().emulation->lateness_ns;
  state.counters["late_p50_ns"] = static_cast<double>(lateness.Percentile(50));
  state.counters["late_p99_ns"] = static_cast<double>(lateness.Percentile(99));
}
BENCHMARK(TimedReadLateness)->UseRealTime();

}  // namespace
}  // namespace isozone
