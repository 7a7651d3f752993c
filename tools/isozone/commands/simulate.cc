// simulate: what a device would do under a load, in virtual time (src/simulator). It needs no device and writes none.
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/emulated/device_options.h"
#include "isozone/command.h"
#include "isozone/output/progress.h"
#include "isozone/output/simulation_report.h"
#include "rocksdb/lsm/compaction_picker.h"
#include "simulator/simulator.h"
#include "store/zone/gc_scheme.h"
#include "store/zone/placement_policy.h"

namespace isozone::cli {
namespace {

constexpr uint64_t kKeyBytes = 20;

struct SimulateArguments {
  SimOptions options;
  uint64_t keys = 0;
  uint64_t value_bytes = 800;
  std::vector<std::string> phases;
  std::string list_path;
  std::string profile = "small-zone";
  std::optional<uint64_t> zones;
  uint64_t zone_bytes = 0;   // 0: as the profile says
  uint64_t limit_bytes = 0;  // 0: the whole device
  int levels = 7;
  uint64_t level1_bytes = 256 * kMiB;
  uint64_t multiplier = 10;
  uint64_t table_bytes = 64 * kMiB;
  uint64_t sweep_bytes = 0;  // 0: of four tables
  uint32_t level0_files = 4;
  std::optional<uint32_t> gc_start;
  std::string hints;
  std::string steering = "off";
  std::string t_zone = "on";
  std::string log = "on";
  std::string moves = "on";
  bool json = false;
};

void AddLoadOptions(CLI::App& app, SimulateArguments& arguments) {
  SimLoad& load = arguments.options.load;
  auto* keys = app.add_option("--keys", arguments.keys, "Number of keys, of 20 bytes, instead of --data");
  keys->check(CLI::Range(uint64_t{1}, uint64_t{1} << 48))->option_text("N");
  AddSizeOption(app, "--value-size", arguments.value_bytes, "With --keys: bytes of a value; 800 if not given");
  app.get_option("--value-size")->needs(keys);
  AddSizeOption(app, "--data", load.data_bytes, "Bytes of all keys and values, once each; 1G if not given");
  app.get_option("--data")->excludes(keys);
  app.add_option(
         "--phase", arguments.phases,
         "What is put, phase by phase: sequential, shuffled (each key once), uniform, zipfian, 70/30 (70 % of "
         "the puts to 30 % of the keys), or list, each with how much, as uniform:2T; without, as much as --data. "
         "sequential and then uniform if not given")
      ->option_text("ORDER[:SIZE]");
  app.add_option("--list", arguments.list_path, "For the phase list: a file with the number of a record on each line")
      ->option_text("FILE");
  app.add_option("--deletes", load.delete_percent, "Percentage of the puts after the first phase that delete")
      ->check(CLI::Range(0.0, 100.0))
      ->option_text("P");
  AddSizeOption(app, "--grain", load.record_bytes, "Bytes of keys and values that are moved as one; 64K if not given");
  app.add_option("--seed", load.seed, "Seed of everything that is drawn at random; 1 if not given")->option_text("N");
}

void AddTreeOptions(CLI::App& app, SimulateArguments& arguments) {
  SimTree& tree = arguments.options.tree;
  const auto count = CLI::Range(1U, 1'000'000U);
  AddSizeOption(app, "--memtable", tree.memtable_bytes, "Bytes of a memtable; 64M if not given");
  app.add_option("--memtables", tree.memtables, "Full memtables that may wait for their flush; 2 if not given")
      ->check(count)
      ->option_text("N");
  app.add_option("--wal", arguments.log, "on: memtables have a write-ahead log; on if not given")
      ->check(CLI::IsMember({"on", "off"}))
      ->option_text("on|off");
  AddSizeOption(app, "--table", arguments.table_bytes, "Bytes of a table; 64M if not given");
  app.add_option("--levels", arguments.levels, "Levels of the tree; 7 if not given")
      ->check(CLI::Range(2, kMaxLsmLevels))
      ->option_text("N");
  AddSizeOption(app, "--level-base", arguments.level1_bytes, "Bytes of level 1; 256M if not given");
  app.add_option("--level-multiplier", arguments.multiplier, "How much larger the next level is; 10 if not given")
      ->check(CLI::Range(uint64_t{2}, uint64_t{1000}))
      ->option_text("N");
  app.add_option("--compaction-trigger", arguments.level0_files, "Files of level 0 that are compacted; 4 if not given")
      ->check(count)
      ->option_text("N");
  app.add_option("--slowdown-trigger", tree.level0_slowdown, "Files of level 0 that slow puts down; 20 if not given")
      ->check(count)
      ->option_text("N");
  app.add_option("--stop-trigger", tree.level0_stop, "Files of level 0 that stop puts; 36 if not given")
      ->check(count)
      ->option_text("N");
  AddSizeOption(app, "--soft-pending", tree.pending.soft_bytes,
                "Bytes to be compacted that slow puts down; 64G if not given, 0 for none");
  AddSizeOption(app, "--hard-pending", tree.pending.hard_bytes,
                "Bytes to be compacted that stop puts; 256G if not given, 0 for none");
  app.add_option("--flushes", tree.flush_workers, "Flushes at a time; 1 if not given")
      ->check(CLI::Range(1U, 1024U))
      ->option_text("N");
  app.add_option("--compactions", tree.compaction_workers, "Compactions at a time; 4 if not given")
      ->check(CLI::Range(1U, 1024U))
      ->option_text("N");
  app.add_option("--compaction", tree.picker, "What chooses the inputs of compactions; leveled if not given")
      ->option_text(fmt::format("{}", fmt::join(CompactionPickerNames(), "|")));
  app.add_option("--moves", arguments.moves,
                 "on: trivial moves write nothing; off: they do, as in RocksDB before 10.8; on if not given")
      ->check(CLI::IsMember({"on", "off"}))
      ->option_text("on|off");
  app.add_option("--steering", arguments.steering,
                 "on: the tree is kept in shape as Isozone does it for a database, with levels sized from the last one "
                 "up, and within the space that there is; off if not given")
      ->check(CLI::IsMember({"on", "off"}))
      ->option_text("on|off");
  AddSizeOption(app, "--sweep", arguments.sweep_bytes,
                "Of the upper level, for each compaction of isozone; four tables if not given");
}

void AddDeviceOptions(CLI::App& app, SimulateArguments& arguments) {
  SimOptions& options = arguments.options;
  app.add_option("--profile", arguments.profile, "Profile of the device, or a file of one; small-zone if not given")
      ->option_text("NAME");
  auto* zones = app.add_option("--zones", arguments.zones, "Zones of the device, instead of those of the profile");
  zones->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24))->option_text("N");
  AddSizeOption(app, "--zone-size", arguments.zone_bytes, "Size of a zone, instead of that of the profile");
  AddSizeOption(app, "--limit", arguments.limit_bytes,
                "Capacity of the device, instead of --zones: as many zones as fit");
  app.get_option("--limit")->excludes(zones);
  app.add_option("--policy", options.device.policy, "Placement policy; isozone if not given")
      ->option_text(fmt::format("{}", fmt::join(PlacementPolicyNames(), "|")));
  app.add_option("--gc", options.device.gc, "Garbage collection scheme; isozone if not given")
      ->option_text(fmt::format("{}", fmt::join(GcSchemeNames(), "|")));
  app.add_option("--gc-start", arguments.gc_start, "Percentage of free space below which it collects")
      ->check(CLI::Range(1U, 99U))
      ->option_text("P");
  AddSizeOption(app, "--gc-memory", options.device.gc_memory, "Bytes of the collector's buffers; 16M if not given");
  app.add_option(
         "--hints", arguments.hints,
         "What placement is told of tables: none, lifetime (RocksDB's hint), level (both), or steered (the level "
         "alone, as RocksDB hints no lifetime where Isozone steers compaction); level if not given, steered with "
         "--steering")
      ->option_text("none|lifetime|level|steered");
  app.add_option("--t-zone", arguments.t_zone, "on: short-lived tables have zones of their own; on if not given")
      ->check(CLI::IsMember({"on", "off"}))
      ->option_text("on|off");
  app.add_option("--stripe-width", options.device.stripe_width, "Zones that a table is written to; 16 if not given")
      ->check(CLI::Range(1U, 1024U))
      ->option_text("N");
  AddSizeOption(app, "--put-rate", options.rates.put, "Bytes a second that a processor puts; 136M if not given");
  AddSizeOption(app, "--compaction-rate", options.rates.compaction,
                "Bytes a second that each compaction merges; 250M if not given");
}

Result<std::vector<uint32_t>> ReadList(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status::NotFound(fmt::format("cannot read the list {}", path));
  std::vector<uint32_t> records;
  uint32_t record = 0;
  while (file >> record) records.push_back(record);
  if (file.eof() && !records.empty()) return records;
  return Status::InvalidArgument(fmt::format("{}: line {} is not the number of a record", path, records.size() + 1));
}

Result<std::vector<SimPhase>> PhasesOf(const SimulateArguments& arguments) {
  std::vector<SimPhase> phases;
  bool any_listed = false;
  for (const std::string& text : arguments.phases) {
    ISOZONE_ASSIGN_OR_RETURN(SimPhase phase, ParseSimPhase(text));
    if (phase.order == KeyOrderKind::kListed && !arguments.list_path.empty()) {
      ISOZONE_ASSIGN_OR_RETURN(phase.listed, ReadList(arguments.list_path));
      any_listed = true;
    }
    phases.push_back(std::move(phase));
  }
  if (arguments.list_path.empty() || any_listed) return phases;
  return Status::InvalidArgument("no phase puts what --list names; add --phase list");
}

Result<Profile> DeviceProfile(const SimulateArguments& arguments) {
  GeometryWishes wishes;
  wishes.profile = arguments.profile;
  if (arguments.zone_bytes != 0) wishes.zone_size = arguments.zone_bytes;
  wishes.zones = arguments.zones;
  ISOZONE_ASSIGN_OR_RETURN(Profile profile, ResolveProfile(wishes));
  if (arguments.limit_bytes == 0) return profile;
  if (arguments.limit_bytes < profile.zone_capacity) {
    return Status::InvalidArgument(fmt::format("--limit {} is less than a zone of {}; give room for some",
                                               FormatSize(arguments.limit_bytes), FormatSize(profile.zone_capacity)));
  }
  profile.zone_count = static_cast<uint32_t>(arguments.limit_bytes / profile.zone_capacity);
  return profile;
}

SteeredShape ShapeOf(const SimulateArguments& arguments, const SimTree& tree) {
  SteeredShape shape;
  shape.levels = arguments.levels;
  shape.level_base_bytes = arguments.level1_bytes;
  shape.level_factor = static_cast<double>(arguments.multiplier);
  shape.level0_files = arguments.level0_files;
  shape.table_bytes = arguments.table_bytes;
  shape.memtable_bytes = tree.memtable_bytes;
  shape.debt = tree.pending;
  return shape;
}

Result<SimOptions> OptionsOf(const SimulateArguments& arguments) {
  SimOptions options = arguments.options;
  ISOZONE_ASSIGN_OR_RETURN(options.device.profile, DeviceProfile(arguments));
  options.device.gc_start = arguments.gc_start;
  const bool steered = arguments.steering == "on";
  if (steered && arguments.sweep_bytes != 0) {
    return Status::InvalidArgument(
        "--sweep has no effect with --steering on, which sizes sweeps by the space; leave one out");
  }
  const std::string hints = arguments.hints.empty() ? (steered ? "steered" : "level") : arguments.hints;
  ISOZONE_ASSIGN_OR_RETURN(options.device.hints, ParseTableHints(hints));
  options.device.t_zone = arguments.t_zone == "on";
  options.tree.log = arguments.log == "on";
  options.tree.moves = arguments.moves == "on";
  if (arguments.keys != 0) options.load.data_bytes = arguments.keys * (kKeyBytes + arguments.value_bytes);
  ISOZONE_ASSIGN_OR_RETURN(std::vector<SimPhase> phases, PhasesOf(arguments));
  if (!phases.empty()) options.load.phases = std::move(phases);
  LsmLimits& limits = options.tree.limits;
  limits = LsmLimits::Exponential(arguments.levels, arguments.level1_bytes, arguments.multiplier);
  limits.level0_files = arguments.level0_files;
  limits.table_bytes = arguments.table_bytes;
  limits.sweep_bytes = arguments.sweep_bytes == 0 ? 4 * arguments.table_bytes : arguments.sweep_bytes;
  if (steered) options.tree.steering = ShapeOf(arguments, options.tree);
  return options;
}

Status Simulate(const SimulateArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(SimOptions options, OptionsOf(arguments));
  ISOZONE_ASSIGN_OR_RETURN(const auto simulator, Simulator::Create(options));
  Progress progress("simulating", 0, Progress::Unit::kBytes);
  ISOZONE_ASSIGN_OR_RETURN(const SimReport report, simulator->Run([&progress](uint64_t done, uint64_t total) {
    progress.Update(done, total);
  }));
  if (arguments.json) {
    console.PrintJson(SimulationJson(options, report));
  } else {
    PrintSimulation(options, report, console);
  }
  return Status::Ok();
}

Action DefineSimulate(CLI::App& app) {
  auto arguments = std::make_shared<SimulateArguments>();
  AddLoadOptions(app, *arguments);
  AddTreeOptions(app, *arguments);
  AddDeviceOptions(app, *arguments);
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return Simulate(*arguments, console); };
}

}  // namespace

extern const Command kSimulateCommand = {
    "simulate", "Tell what a device would do under a load, in virtual time",
    "  isozone simulate --data 40G --phase sequential --phase zipfian:80G --zones 1024\n"
    "  isozone simulate --profile ll-paper --compaction ll --policy level --data 8G --phase shuffled",
    DefineSimulate};

}  // namespace isozone::cli
