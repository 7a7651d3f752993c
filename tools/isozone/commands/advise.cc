// advise: an options file of RocksDB that fits a device and this machine (src/insight/advice/options_advice.h decides).
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "insight/advice/options_advice.h"
#include "isozone/command.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

// RocksDB is rarely alone on a machine.
constexpr uint64_t kPartOfMemory = 4;

// The least memory limit of the control groups that this process is in, bytes; the largest number if there is none.
// They are nested, and a container may see only its own, at the root.
uint64_t LimitOfGroups() {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t controllers = line.find(':') + 1;
    const size_t path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string which = line.substr(controllers, path - 1 - controllers);
    if (!which.empty() && which != "memory") continue;
    const std::string root = which.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* const file = which.empty() ? "/memory.max" : "/memory.limit_in_bytes";
    for (std::string group = line.substr(path);;) {
      uint64_t limit = 0;
      if (std::ifstream(root + (group == "/" ? "" : group) + file) >> limit) least = std::min(least, limit);
      if (group.empty()) break;
      const size_t slash = group.rfind('/');
      group.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  return least;
}

uint64_t MemoryOfMachine() {
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return 4 * kGiB;
  return std::min(static_cast<uint64_t>(pages) * static_cast<uint64_t>(page), LimitOfGroups());
}

struct AdviseArguments {
  std::string device;
  uint64_t memory = MemoryOfMachine() / kPartOfMemory;
  std::string workload = "mixed";
  uint64_t database = 0;  // 0: not known
  uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::string output;
};

// The least of two limits of which 0 is none.
uint32_t LeastLimit(uint32_t a, uint32_t b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

Result<AdviceFacts> FactsOf(const AdviseArguments& arguments) {
  AdviceFacts facts;
  ISOZONE_ASSIGN_OR_RETURN(facts.workload, ParseWorkload(arguments.workload));
  ISOZONE_ASSIGN_OR_RETURN(OpenedDevice opened, OpenByUri(arguments.device, OpenMode::kReadOnly));
  const DeviceGeometry geometry = opened.device->geometry();
  const MountOptions options = opened.mount_options;
  facts.device = Printable(opened.device->name());
  facts.zones = geometry.zone_count;
  facts.zone_capacity = geometry.zone_capacity;
  facts.max_active = LeastLimit(geometry.max_active_zones, geometry.max_open_zones);
  facts.stripe_width = options.stripe_width;
  facts.writer_memory = options.writer_memory;
  facts.read_ahead_memory = options.read_ahead_memory;
  facts.cores = arguments.cores;
  facts.memory = arguments.memory;
  facts.database = arguments.database;
  // A device without a file system has no groups yet, and gets advice all the same.
  const auto mounted = FileSystem::Mount(std::move(opened.device), options);
  if (!mounted.ok() && !mounted.status().Is(StatusCode::kNotFound)) return mounted.status();
  if (mounted.ok()) {
    const SpaceInfo space = (*mounted)->state().Space();
    facts.room = space.free + space.live + space.dead;
    if (const auto groups = (*mounted)->groups().Get()) facts.groups = groups->group_count();
  }
  return facts;
}

Status Advise(const AdviseArguments& arguments, Console& console) {
  std::error_code ignored;
  if (!arguments.output.empty() && std::filesystem::exists(arguments.output, ignored)) {
    return Status::AlreadyExists(
        fmt::format("{} exists and is left as it is; remove it or name another file", arguments.output));
  }
  ISOZONE_ASSIGN_OR_RETURN(const AdviceFacts facts, FactsOf(arguments));
  ISOZONE_ASSIGN_OR_RETURN(const OptionsAdvice advice, AdviseOptions(facts));
  const std::string text = OptionsFileText(advice);
  if (arguments.output.empty()) {
    console.Write(text);
    return Status::Ok();
  }
  ISOZONE_RETURN_IF_ERROR(WriteLocalFile(arguments.output, text));
  for (const std::string& note : advice.notes) console.Print("Note: {}\n", note);
  if (!advice.uri.empty()) console.Print("In the URI of the device: {}\n", advice.uri);
  console.Print("{} settings are in {}, each with its reason.\n", advice.settings.size(), Printable(arguments.output));
  return Status::Ok();
}

Action DefineAdvise(CLI::App& app) {
  auto arguments = std::make_shared<AdviseArguments>();
  AddDeviceArgument(app, arguments->device);
  AddSizeOption(app, "--memory", arguments->memory,
                "Bytes that RocksDB and Isozone may take, as 8G; a quarter of the machine's if not given");
  app.add_option("--workload", arguments->workload, "What is mostly done; mixed if not given")
      ->option_text("write|read|mixed");
  AddSizeOption(app, "--database", arguments->database,
                "Bytes of the database, as 500G; 60 % of the device if not given");
  app.add_option("--cores", arguments->cores, "Cores that RocksDB may take; those of this machine if not given")
      ->check(CLI::Range(1U, 1024U))
      ->option_text("N");
  app.add_option("--output", arguments->output, "Write into this new file instead of standard output")
      ->option_text("FILE");
  return [arguments](Console& console) { return Advise(*arguments, console); };
}

}  // namespace

extern const Command kAdviseCommand = {
    "advise", "Give options of RocksDB that fit a device, each with its reason",
    "  isozone advise emu:/data/ssd.img --memory 8G --workload write --database 500G --output options.ini",
    DefineAdvise};

}  // namespace isozone::cli
