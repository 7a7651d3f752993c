// Random operations against the oracle, on devices so small that zones fill, are reset, and the journal rolls all the
// time. ISOZONE_TEST_SEED replays a failure; ISOZONE_TEST_OPS (in all, default a million) makes it longer; with
// ISOZONE_TEST_DEVICE the device of that URI takes the place of all of them, and is overwritten.
#include <algorithm>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "model/client.h"
#include "model/fine.h"
#include "model/volume.h"
#include "store/io/io_engine.h"

namespace isozone::model {
namespace {

// One device, used through a few mounts by `clients` clients at the same time.
class Round {
 public:
  Round(uint64_t seed, size_t clients, uint64_t operations, double fill)
      : random_(seed), client_count_(clients), operations_(operations), fill_(fill) {}

  void Run() {
    DeviceGeometry geometry = RandomGeometry(random_, kMiB);
    auto volume = Volume::CreateOrNamed(geometry);
    ASSERT_FINE(volume.status());
    ASSERT_FINE(volume->Format());
    std::vector<Oracle> oracles(client_count_);
    for (int mounts = 4; mounts > 0; --mounts) {
      const MountOptions options = RandomMountOptions(random_, /*at_leisure=*/true);
      ASSERT_FINE(volume->Mount(options));
      geometry = volume->fs().state().device().geometry();
      ASSERT_NO_FATAL_FAILURE(CheckAll(volume->fs(), oracles));
      ASSERT_NO_FATAL_FAILURE(RunClients(*volume, oracles));
      ASSERT_NO_FATAL_FAILURE(CheckAll(volume->fs(), oracles));
      ASSERT_FINE(volume->fs().groups().Set(RandomGroups(random_, geometry)));  // from the next mount on
      checkpoints += volume->fs().state().Stats().checkpoints;
      resets += volume->fs().state().Stats().zone_resets;
      copied += volume->fs().state().Stats().gc_bytes_copied;
      mismatches += volume->fs().state().Stats().gc_mismatches;
      ASSERT_FINE(volume->fs().Unmount());
      ASSERT_NO_FATAL_FAILURE(CheckLive(volume->fs()));
      ASSERT_FINE(volume->Unmount());
      ASSERT_FINE(volume->Check(/*read_data=*/true));
    }
  }

  ClientCounters counters;
  uint64_t checkpoints = 0;
  uint64_t resets = 0;
  uint64_t copied = 0;  // bytes, by collectors
  uint64_t mismatches = 0;

 private:
  std::string Directory(size_t client) const { return client_count_ == 1 ? "" : "/client" + std::to_string(client); }

  void CheckAll(FileSystem& fs, const std::vector<Oracle>& oracles) {
    for (size_t i = 0; i < oracles.size(); ++i) {
      const auto found = Collect(fs, Directory(i));
      ASSERT_FINE(found.status());
      ASSERT_FINE(oracles[i].CheckExactly(*found));
    }
  }

  // With no file open and the collector at rest, what is live in each zone is what files have there, to the byte; of
  // logs, whose frames count, the sum over all zones is looked at.
  void CheckLive(FileSystem& fs) {
    const DeviceGeometry& geometry = fs.state().device().geometry();
    std::vector<uint64_t> live(geometry.zone_count);
    uint64_t of_logs = 0;
    ASSERT_FINE(fs.state().VisitFiles([&](const FileDetails& file) {
      if (file.attributes.kind == FileKind::kLog) {
        of_logs += file.allocated;
        return;
      }
      for (const FileExtent& extent : file.extents)
        live[geometry.ZoneOf(extent.device_offset).value()] += extent.length;
    }));
    uint64_t in_zones_of_logs = 0;
    for (const ZoneView& zone : fs.state().Zones()) {
      if (zone.use == ZoneUse::kLog) {
        in_zones_of_logs += zone.live;
      } else {
        EXPECT_EQ(zone.live, live[zone.device.zone.value()]) << "zone " << zone.device.zone.value();
      }
    }
    EXPECT_EQ(in_zones_of_logs, of_logs);
  }

  void RunClients(Volume& volume, std::vector<Oracle>& oracles) {
    const DeviceGeometry& geometry = volume.fs().state().device().geometry();
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Status> outcomes(client_count_);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < client_count_; ++i) {
      ClientOptions options;
      options.directory = Directory(i);
      options.max_append = random_.Chance(0.3) ? 3 * geometry.zone_size : geometry.zone_size / 4;
      options.live_target =
          static_cast<uint64_t>(fill_ * static_cast<double>(geometry.zone_count * geometry.zone_capacity)) /
          client_count_;
      options.max_writers = random_.Between(2, 12);
      options.alone = client_count_ == 1;
      clients.push_back(std::make_unique<Client>(volume.fs(), oracles[i], random_.Next(), options));
    }
    const auto run = [&](size_t i) {
      outcomes[i] = clients[i]->Begin();
      for (uint64_t n = operations_ / 3; n > 0 && outcomes[i].ok(); --n) outcomes[i] = clients[i]->Step();
      if (outcomes[i].ok()) outcomes[i] = clients[i]->CloseAll();
    };
    for (size_t i = 1; i < client_count_; ++i) threads.emplace_back(run, i);
    run(0);
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < client_count_; ++i) {
      SCOPED_TRACE("client " + std::to_string(i));
      ASSERT_FINE(outcomes[i]);
      counters.operations += clients[i]->counters().operations;
      counters.bytes_appended += clients[i]->counters().bytes_appended;
      counters.times_full += clients[i]->counters().times_full;
    }
  }

  Random random_;
  const size_t client_count_;
  const uint64_t operations_;  // a client
  const double fill_;          // how full the device is wanted
};

void RunRounds(uint64_t operations, size_t clients, double fill) {
  const uint64_t operations_per_round = NamedDevice() == nullptr ? 10'000 : std::min<uint64_t>(operations, 10'000);
  const uint64_t seed = TestSeed();
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  Random seeds(seed);
  uint64_t done = 0;
  uint64_t times_full = 0;
  uint64_t checkpoints = 0;
  uint64_t resets = 0;
  uint64_t copied = 0;
  for (uint64_t i = 0; done < operations; ++i) {
    SCOPED_TRACE("round " + std::to_string(i));
    Round round(seeds.Next(), clients, operations_per_round / clients, fill);
    ASSERT_NO_FATAL_FAILURE(round.Run());
    done += round.counters.operations;
    times_full += round.counters.times_full;
    checkpoints += round.checkpoints;
    resets += round.resets;
    copied += round.copied;
    EXPECT_EQ(round.mismatches, 0u);
  }
  if (NamedDevice() != nullptr) return;  // it may be so large that nothing of what follows must happen
  EXPECT_GT(resets, 0u);
  EXPECT_GT(checkpoints, 0u);
  EXPECT_GT(copied, 0u);
  if (fill > 1) {
    EXPECT_GT(times_full, 0u);
  }
}

TEST(Model, OneClientOnADeviceThatIsHalfFull) { RunRounds(TestOperations(400'000), 1, 0.5); }

TEST(Model, OneClientOnADeviceThatRunsFull) { RunRounds(TestOperations(300'000), 1, 2); }

TEST(Model, FourClientsAtTheSameTime) { RunRounds(TestOperations(200'000), 4, 0.4); }

TEST(Model, FourClientsOnADeviceThatRunsFull) { RunRounds(TestOperations(100'000), 4, 2); }

// The byte at `offset` of a file that anyone can check.
char ByteAt(uint64_t offset) { return static_cast<char>(Random(offset / 8).Next() >> (offset % 8 * 8)); }

TEST(Model, ReadersSeeTheRightBytesOfAFileThatGrows) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed));
  DeviceGeometry geometry;
  geometry.zone_count = 32;
  geometry.zone_size = geometry.zone_capacity = kMiB;
  geometry.max_open_zones = geometry.max_active_zones = 12;
  geometry.optimal_write = geometry.block_size;
  auto volume = Volume::CreateOrNamed(geometry, /*timing=*/true);
  ASSERT_FINE(volume.status());
  ASSERT_FINE(volume->Format());
  ASSERT_FINE(volume->Mount({}));
  for (const FileKind kind : {FileKind::kData, FileKind::kLog, FileKind::kSmall}) {
    SCOPED_TRACE(FileKindName(kind));
    auto writer = volume->fs().Create("/grows", {kind});
    ASSERT_FINE(writer.status());
    std::atomic<bool> written{false};
    std::atomic<uint64_t> wrong{0};
    std::vector<std::thread> readers;
    for (uint64_t i = 0; i < 2; ++i) {
      readers.emplace_back([&, i] {
        Random random(seed + i);
        auto reader = volume->fs().OpenForRead("/grows");
        for (bool last = false; reader.ok() && !last;) {
          last = written;
          const uint64_t size = (*reader)->size();
          const uint64_t offset = random.Below(size + 1);
          std::string buffer(std::min<uint64_t>(random.Between(1, 20'000), size - offset), '\0');
          const auto read = (*reader)->Read(offset, std::as_writable_bytes(std::span(buffer)), IoClass::kUserRead);
          bool right = read.ok() && *read == buffer.size();
          for (uint64_t at = 0; right && at < buffer.size(); ++at) right = buffer[at] == ByteAt(offset + at);
          if (!right) wrong.fetch_add(1);
        }
        if (!reader.ok()) wrong.fetch_add(1);
      });
    }
    Random random(seed);
    Status status;
    uint64_t size = 0;
    while (status.ok() && size < 4 * kMiB) {
      std::string bytes(random.Between(1, 9000), '\0');
      for (char& byte : bytes) byte = ByteAt(size++);
      status = (*writer)->Append(std::as_bytes(std::span(bytes)));
      if (status.ok() && random.Chance(0.05)) status = (*writer)->Sync();
      if (status.ok() && random.Chance(0.05)) status = (*writer)->WriteOut();
    }
    written = true;
    for (std::thread& reader : readers) reader.join();
    ASSERT_FINE(status);
    EXPECT_EQ(0u, wrong.load());
    ASSERT_FINE((*writer)->Close());
  }
  ASSERT_FINE(volume->Unmount());
  ASSERT_FINE(volume->Check());
}

}  // namespace
}  // namespace isozone::model
