// isozone_sim_truth: the same small set-up twice, on RocksDB with a file system on an emulated SSD, and in the
// simulator. Both put the same keys in the same order, flush after as many puts, and compact by the same picker. What
// each has written, and in how many zones its tables lie at the end, is printed as JSON, side by side.
//
//   without --speed   The device takes no time. After each flush, the database waits until nothing is left to compact,
//                     and so does the simulator, which is told how fast the processor has put and merged meanwhile.
//   with --speed      The device has the timing of its profile, so many times as fast. Puts are as fast as they can be.
//                     How fast the processor is, as it was measured without --speed, is to be given.
//
// Zones are counted in which tables lie. A file system has others for its metadata, the MANIFEST and small files.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/statistics.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "base/units.h"
#include "base/uri.h"
#include "device/emulated/device_options.h"
#include "device/izg/group_index.h"
#include "device/izg/zone_groups.h"
#include "device/open_device.h"
#include "isozone/isozone.h"
#include "rocksdb/lsm/merge_model.h"
#include "simulator/device_times.h"
#include "simulator/simulator.h"
#include "simulator/workload.h"
#include "store/file_system.h"
#include "store/mount/format_device.h"
#include "store/zone/placement_policy.h"

namespace isozone {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kDatabase[] = "/db";
constexpr uint64_t kMostMib = 1 << 20;
// Neither tables nor level 1 fill zones, and each other, evenly. A table is a little larger than its records, so that
// one more zone, or one table less in a level, would be the rule on one side and an exception on the other.
constexpr uint64_t kTableBytes = 4 * kMiB;
constexpr uint64_t kZoneBytes = 18 * kMiB;
constexpr uint64_t kLevel1Bytes = 18 * kMiB;
constexpr double kLevelFactor = 8;
constexpr uint64_t kRecordBytes = 4 * kKiB;

struct Arguments {
  std::string workload = "uniform";
  uint64_t data_mib = 256;
  uint32_t zones = 40;
  bool dynamic_levels = false;  // sized from the last one up
  double speed = 0;             // of the device, in times its profile; 0: it takes no time
  std::string directory;
  SimOptions setup;
};

// --- What both sides have in common ---

Result<SimOptions> SetupOf(const Arguments& arguments) {
  SimOptions setup = arguments.setup;
  GeometryWishes wishes;
  wishes.zones = arguments.zones;
  wishes.zone_size = wishes.zone_capacity = kZoneBytes;
  ISOZONE_ASSIGN_OR_RETURN(setup.device.profile, ResolveProfile(wishes));
  setup.device.profile.timing = arguments.speed > 0;
  // Each key once, and then as many puts as the workload says.
  ISOZONE_ASSIGN_OR_RETURN(SimPhase first,
                           ParseSimPhase(arguments.workload == "sequential" ? "sequential" : "shuffled"));
  ISOZONE_ASSIGN_OR_RETURN(SimPhase then, ParseSimPhase(arguments.workload));
  setup.load.data_bytes = arguments.data_mib * kMiB;
  first.bytes = then.bytes = setup.load.data_bytes;
  setup.load.phases = {first, then};
  setup.load.record_bytes = kRecordBytes;
  setup.device.hints = TableHints::kSteered;
  SimTree& tree = setup.tree;
  tree.limits = LsmLimits::Exponential(7, kLevel1Bytes, kLevelFactor);
  tree.limits.table_bytes = tree.memtable_bytes = kTableBytes;
  SteeredShape& shape = tree.steering.emplace();
  shape.levels = tree.limits.levels();
  shape.level_base_bytes = kLevel1Bytes;
  shape.level_factor = kLevelFactor;
  shape.dynamic_levels = arguments.dynamic_levels;
  shape.table_bytes = shape.memtable_bytes = kTableBytes;
  shape.debt = tree.pending;
  tree.level0_slowdown = tree.level0_stop = 8;
  tree.compaction_workers = 1;
  tree.settles = arguments.speed == 0;
  tree.moves = false;
  return setup;
}

// What either side is asked for.
struct Found {
  uint64_t flushed_bytes = 0;
  uint64_t compacted_bytes = 0;
  uint64_t copied_bytes = 0;  // by GC, in vain included
  uint64_t zones = 0;         // in which tables lie
  uint64_t files = 0;
  int64_t put_ns = 0;      // of all puts
  int64_t settled_ns = 0;  // and until nothing is left to compact
};

Json AsJson(const Found& found, uint64_t puts) {
  const double put_seconds = static_cast<double>(found.put_ns) / kSecondNs;
  return {{"flushed_bytes", found.flushed_bytes},
          {"compacted_bytes", found.compacted_bytes},
          {"copied_bytes", found.copied_bytes},
          {"zones", found.zones},
          {"tables", found.files},
          {"put_seconds", put_seconds},
          {"settled_seconds", static_cast<double>(found.settled_ns) / kSecondNs},
          {"puts_per_second", static_cast<double>(puts) / put_seconds}};
}

// --- The simulator ---

// The profile of a device that is so many times as fast.
Profile Faster(Profile profile, double speed) {
  const auto shorter = [speed](int64_t& duration_ns) {
    duration_ns = static_cast<int64_t>(static_cast<double>(duration_ns) / speed);
  };
  const auto more = [speed](uint64_t& bandwidth) {
    bandwidth = static_cast<uint64_t>(static_cast<double>(bandwidth) * speed);
  };
  for (int64_t* duration_ns :
       {&profile.page_read_ns, &profile.small_read_ns, &profile.program_ns, &profile.erase_ns, &profile.read_latency_ns,
        &profile.write_latency_ns, &profile.management_latency_ns, &profile.flush_latency_ns}) {
    shorter(*duration_ns);
  }
  for (uint64_t* bandwidth : {&profile.channel_bandwidth, &profile.link_bandwidth}) more(*bandwidth);
  return profile;
}

// An emulated SSD without timing is as fast as memory, and no zone slows another as far as a file system can know. That
// is near to the profile with all dies as one unit. The rate of merging was measured with that memory, so its time is
// taken off where reads and writes are waited for.
void BeMemory(SimOptions& setup) {
  Profile& profile = setup.device.profile;
  profile.timing = true;
  profile.mapping = ZoneMapping::kInterleaved;
  const auto policy = MakePlacementPolicy(setup.device.policy);
  if (!policy.ok() || (*policy)->parallel()) return;
  const double seconds_per_byte =
      1 / static_cast<double>(setup.rates.compaction) - 2 / static_cast<double>(profile.link_bandwidth);
  if (seconds_per_byte > 0) setup.rates.compaction = static_cast<uint64_t>(1 / seconds_per_byte);
}

Result<Found> Simulate(SimOptions setup, double speed) {
  if (speed > 0) {
    setup.device.profile = Faster(setup.device.profile, speed);
  } else {
    BeMemory(setup);
  }
  ISOZONE_ASSIGN_OR_RETURN(const auto simulator, Simulator::Create(setup));
  ISOZONE_ASSIGN_OR_RETURN(const SimReport report, simulator->Run());
  Found found;
  found.flushed_bytes = report.flush_bytes;
  found.compacted_bytes = report.compaction_bytes;
  found.copied_bytes = report.copied_bytes + report.dropped_bytes;
  found.files = report.files;
  found.put_ns = report.put_ns;
  found.settled_ns = report.settled_ns;
  for (uint32_t zone = 0; zone < report.zones; ++zone) {
    found.zones += simulator->zones().pieces(ZoneId(zone)).empty() ? 0 : 1;
  }
  return found;
}

// --- The database ---

Status FromRocksDb(const rocksdb::Status& status) {
  return status.ok() ? Status::Ok() : Status::IoError(status.ToString());
}

// RocksDB hands a database out as DB** before version 11, as unique_ptr<DB>* since.
template <typename Database>
rocksdb::Status OpenInto(const rocksdb::Options& options, std::unique_ptr<Database>* db) {
  if constexpr (requires { Database::Open(options, kDatabase, db); }) {
    return Database::Open(options, kDatabase, db);
  } else {
    Database* raw = nullptr;
    const rocksdb::Status status = Database::Open(options, kDatabase, &raw);
    db->reset(raw);
    return status;
  }
}

uint64_t PerSecond(uint64_t bytes, int64_t duration_ns) {
  return static_cast<uint64_t>(static_cast<double>(bytes) * kSecondNs / static_cast<double>(duration_ns));
}

struct MountedResult {
  Found found;
  SimRates rates;  // of the processor
};

class MountedDatabase {
 public:
  MountedDatabase(const SimOptions& setup, double speed, const std::string& directory)
      : setup_(setup), speed_(speed), image_("emu:" + directory + "/ssd.img") {}

  Status Open();
  Result<MountedResult> Run();

 private:
  Status Format() const;
  Result<rocksdb::Options> Options() const;
  Status PutAll();
  Status SealMemtable();
  Status CountBytes();
  Status CountZones();

  const SimOptions& setup_;
  const double speed_;
  const std::string image_;
  std::shared_ptr<rocksdb::FileSystem> fs_;
  const std::shared_ptr<rocksdb::Statistics> statistics_ = rocksdb::CreateDBStatistics();
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<CompactionDriver> driver_;
  MountedResult result_;
  int64_t merging_ns_ = 0;  // while nothing else was done
};

Result<std::unique_ptr<FileSystem>> MountDirectly(const std::string& image) {
  ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(image + "?timing=off"));
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<ZonedDevice> device, OpenDevice(uri, OpenMode::kReadWrite));
  return FileSystem::Mount(std::move(device), {});
}

// The groups of the zones, as measuring would find them.
ZoneGroups GroupsOf(const Profile& profile) {
  const std::shared_ptr<const GroupIndex> index = DeviceTimes(profile).Groups();
  ZoneGroups groups;
  for (uint32_t zone = 0; zone < profile.zone_count; ++zone) {
    groups.group_of_zone.push_back(static_cast<uint16_t>(index->of(ZoneId(zone))));
  }
  groups.confidence_percent.assign(profile.zone_count, 100);
  for (uint32_t group = 0; group < index->count(); ++group) {
    groups.channel_of_group.push_back(static_cast<uint16_t>(group % profile.channels));
  }
  groups.zone_bandwidth = index->zone_bandwidth();
  return groups;
}

// A new device, whose zone groups are known where it has timing, as if they had been measured.
Status MountedDatabase::Format() const {
  const Profile& profile = setup_.device.profile;
  ISOZONE_ASSIGN_OR_RETURN(
      Uri uri, ParseUri(fmt::format("{}?zones={}&zone_size={}&zone_capacity={}&timing=off", image_, profile.zone_count,
                                    profile.zone_size, profile.zone_capacity)));
  ISOZONE_RETURN_IF_ERROR(CreateDevice(uri));
  ISOZONE_ASSIGN_OR_RETURN(Uri created, ParseUri(image_ + "?timing=off"));
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<ZonedDevice> device, OpenDevice(created, OpenMode::kReadWrite));
  ISOZONE_RETURN_IF_ERROR(FormatDevice(*device, {}));
  device.reset();
  if (!profile.timing) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSystem> fs, MountDirectly(image_));
  ISOZONE_RETURN_IF_ERROR(fs->groups().Set(GroupsOf(profile)));
  return fs->Unmount();
}

Result<rocksdb::Options> MountedDatabase::Options() const {
  const SimTree& tree = setup_.tree;
  rocksdb::Options options;
  options.env = env_.get();
  options.statistics = statistics_;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.compaction_style = rocksdb::kCompactionStyleNone;
  options.write_buffer_size = 4 * tree.memtable_bytes;  // the program flushes before that
  options.max_write_buffer_number = static_cast<int>(tree.memtables);
  options.num_levels = tree.limits.levels();
  options.target_file_size_base = tree.limits.table_bytes;
  options.max_bytes_for_level_base = tree.limits.capacity_bytes[1];
  options.max_bytes_for_level_multiplier =
      static_cast<double>(tree.limits.capacity_bytes[2]) / static_cast<double>(tree.limits.capacity_bytes[1]);
  options.level_compaction_dynamic_level_bytes = false;
  options.level0_file_num_compaction_trigger = static_cast<int>(tree.limits.level0_files);
  options.level0_slowdown_writes_trigger = static_cast<int>(tree.level0_slowdown);
  options.level0_stop_writes_trigger = static_cast<int>(tree.level0_stop);
  options.soft_pending_compaction_bytes_limit = tree.pending.soft_bytes;
  options.hard_pending_compaction_bytes_limit = tree.pending.hard_bytes;
  options.compaction_readahead_size = 2 * kMiB;
  rocksdb::Options result;
  const rocksdb::Status parsed = rocksdb::GetOptionsFromString(
      rocksdb::ConfigOptions(), options, "listeners={isozone};sst_partitioner_factory=isozone", &result);
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(parsed));
  return result;
}

Status MountedDatabase::Open() {
  ISOZONE_RETURN_IF_ERROR(Format());
  const SimDevice& device = setup_.device;
  const std::string time = speed_ > 0 ? fmt::format("speed={}", speed_) : "timing=off";
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(
      OpenFileSystem(fmt::format("isozone://{}?{}&policy={}&gc={}", image_, time, device.policy, device.gc), &fs_)));
  env_ = rocksdb::NewCompositeEnv(fs_);
  ISOZONE_ASSIGN_OR_RETURN(const rocksdb::Options options, Options());
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(OpenInto(options, &db_)));
  const CompactionDriverOptions driver = {.picker = setup_.tree.picker,
                                          .threads = setup_.tree.compaction_workers,
                                          .t_zone = device.t_zone,
                                          .dynamic_levels = setup_.tree.steering->dynamic_levels};
  return FromRocksDb(CompactionDriver::Open(db_.get(), {db_->DefaultColumnFamily()}, driver, &driver_));
}

Status MountedDatabase::SealMemtable() {
  rocksdb::FlushOptions flush;
  flush.wait = speed_ == 0;
  flush.allow_write_stall = true;
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(db_->Flush(flush)));
  if (speed_ > 0) return Status::Ok();
  const int64_t start_ns = MonotonicNs();
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(driver_->WaitUntilIdle()));
  merging_ns_ += MonotonicNs() - start_ns;
  return Status::Ok();
}

Status MountedDatabase::PutAll() {
  Workload workload(setup_.load);
  const uint64_t memtable_records = setup_.tree.memtable_bytes / setup_.load.record_bytes;
  Random random(setup_.load.seed);
  std::string value(setup_.load.record_bytes - MergeModel::KeyText(0).size(), '\0');
  for (char& byte : value) byte = static_cast<char>(random.Next());
  int64_t putting_ns = 0;
  int64_t start_ns = MonotonicNs();
  const int64_t first_ns = start_ns;
  ModelRecord record;
  for (uint64_t puts = 1; workload.Next(record); ++puts) {
    ISOZONE_RETURN_IF_ERROR(FromRocksDb(db_->Put({}, MergeModel::KeyText(record.key), value)));
    if (puts % memtable_records != 0 && puts != workload.total_records()) continue;
    putting_ns += MonotonicNs() - start_ns;
    ISOZONE_RETURN_IF_ERROR(SealMemtable());
    start_ns = MonotonicNs();
  }
  result_.found.put_ns = MonotonicNs() - first_ns;
  result_.rates.put = PerSecond(workload.done_records() * setup_.load.record_bytes, putting_ns);
  rocksdb::FlushOptions flush;
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(db_->Flush(flush)));
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(driver_->WaitUntilIdle()));
  result_.found.settled_ns = MonotonicNs() - first_ns;
  return Status::Ok();
}

Status MountedDatabase::CountBytes() {
  std::string text;
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(GetStats(*fs_, &text)));
  const Json counted = Json::parse(text);
  Found& found = result_.found;
  // Of RocksDB's counts: in a stall it says of no write what it is for, so that the file system counts it as another.
  found.flushed_bytes = statistics_->getTickerCount(rocksdb::FLUSH_WRITE_BYTES);
  found.compacted_bytes = statistics_->getTickerCount(rocksdb::COMPACT_WRITE_BYTES);
  found.copied_bytes = counted.at("gc").at("bytes_copied");
  found.copied_bytes += counted.at("gc").at("bytes_dropped").get<uint64_t>();
  if (merging_ns_ == 0) return Status::Ok();
  result_.rates.compaction = PerSecond(Json::parse(driver_->Stats()).at("bytes_read"), merging_ns_);
  return Status::Ok();
}

Status MountedDatabase::CountZones() {
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSystem> fs, MountDirectly(image_));
  std::set<ZoneId> zones;
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, fs->List(kDatabase));
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.ends_with(".sst")) continue;
    ++result_.found.files;
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneOfFile> places,
                             fs->state().ZonesOf(fmt::format("{}/{}", kDatabase, entry.name)));
    for (const ZoneOfFile& place : places) zones.insert(place.zone);
  }
  result_.found.zones = zones.size();
  return fs->Unmount();
}

Result<MountedResult> MountedDatabase::Run() {
  ISOZONE_RETURN_IF_ERROR(PutAll());
  ISOZONE_RETURN_IF_ERROR(CountBytes());
  driver_.reset();
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(db_->Close()));
  db_.reset();
  env_.reset();
  fs_.reset();
  ISOZONE_RETURN_IF_ERROR(CountZones());
  return result_;
}

// --- The program ---

void AddOptions(CLI::App& app, Arguments& arguments) {
  SimOptions& setup = arguments.setup;
  app.add_option("--workload", arguments.workload, "What is put after each key once: as `isozone simulate --phase`")
      ->capture_default_str();
  app.add_option("--policy", setup.device.policy, "Placement")->capture_default_str();
  app.add_option("--gc", setup.device.gc, "GC scheme")->capture_default_str();
  app.add_option("--compaction", setup.tree.picker, "Picker of compactions")->capture_default_str();
  app.add_flag("--dynamic-levels", arguments.dynamic_levels, "Levels are sized from the last one up");
  app.add_option("--data-mib", arguments.data_mib, "MiB of all keys and values, put once, and as much over them")
      ->check(CLI::Range(uint64_t{1}, kMostMib))
      ->capture_default_str();
  app.add_option("--zones", arguments.zones, "Zones of 18 MiB")->capture_default_str();
  app.add_option("--speed", arguments.speed, "Of the device, in times its profile; 0: it takes no time")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--put-rate", setup.rates.put, "With --speed: bytes a second that the processor puts")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--compaction-rate", setup.rates.compaction, "With --speed: bytes a second that it merges")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", setup.load.seed, "Of all that is random")->capture_default_str();
  app.add_option("--directory", arguments.directory, "Where the device is made, and removed in the end")->required();
}

Json RatesJson(const SimRates& rates) {
  return {{"put_bytes_per_second", rates.put}, {"merged_bytes_per_second", rates.compaction}};
}

Result<Json> Compare(const Arguments& arguments) {
  ISOZONE_ASSIGN_OR_RETURN(SimOptions setup, SetupOf(arguments));
  MountedDatabase database(setup, arguments.speed, arguments.directory);
  ISOZONE_RETURN_IF_ERROR(database.Open());
  ISOZONE_ASSIGN_OR_RETURN(const MountedResult mounted, database.Run());
  if (arguments.speed == 0) setup.rates = mounted.rates;
  ISOZONE_ASSIGN_OR_RETURN(const Found simulated, Simulate(setup, arguments.speed));
  const uint64_t puts = Workload(setup.load).total_records();
  return Json{{"puts", puts},
              {"put_bytes", puts * setup.load.record_bytes},
              {"rates", RatesJson(setup.rates)},
              {"mounted", AsJson(mounted.found, puts)},
              {"simulated", AsJson(simulated, puts)}};
}

int Fail(std::string message) {
  std::ranges::replace(message, '\n', ' ');
  fmt::print(stderr, "isozone_sim_truth: {}\n", message);
  return 1;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Runs one small set-up on RocksDB and in the simulator, and prints what each has found as JSON.",
               "isozone_sim_truth");
  AddOptions(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    return Fail(fmt::format("{}; see isozone_sim_truth --help", error.what()));
  }
  const Result<Json> found = Compare(arguments);
  std::error_code ignored;  // an image that is left over harms nobody
  std::filesystem::remove(arguments.directory + "/ssd.img", ignored);
  if (!found.ok()) return Fail(std::string(found.status().message()));
  fmt::print("{}\n", found->dump(2));
  return std::fflush(stdout) == 0 ? 0 : Fail("cannot write to standard output");
}

}  // namespace
}  // namespace isozone

int main(int argc, char** argv) {
  try {
    return isozone::Main(argc, argv);
  } catch (const std::exception& error) {
    return isozone::Fail(error.what());
  }
}
