// info and df: what a device is, and how much of it is left.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "isozone/command.h"
#include "isozone/output/group_map.h"
#include "isozone/output/report.h"
#include "isozone/output/table.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

struct Arguments {
  std::string device;
  bool json = false;
};

// What is shown of a device, copied because a mount takes the device over.
struct DeviceFacts {
  std::string name;
  std::optional<std::string> profile;  // of an emulated device
  DeviceDescription description;
  DeviceGeometry geometry;
  DeviceCounters counters;
  bool timing() const { return description.emulation && description.emulation->timing; }
};

DeviceFacts FactsOf(const ZonedDevice& device) {
  DeviceFacts facts{device.name(), std::nullopt, device.description(), device.geometry(), device.counters()};
  if (const auto profile = ProfileOf(device)) facts.profile = profile->name;
  return facts;
}

void AddKernelDevice(const KernelDeviceDescription& kernel, Facts& facts) {
  facts.Add("Kernel", fmt::format("{}, through {}, scheduler {}", kernel.model, kernel.transfer_path,
                                  kernel.scheduler.empty() ? "none" : kernel.scheduler));
  facts.Add("Durable writes", kernel.durable_writes);
  if (kernel.conventional_zones + kernel.small_zones > 0) {
    facts.Add("Left alone", fmt::format("{} conventional zones, {} zones of less capacity", kernel.conventional_zones,
                                        kernel.small_zones));
  }
  if (kernel.large_zones > 0) {
    facts.Add("Used in part", fmt::format("{} zones of more capacity", kernel.large_zones));
  }
}

std::string LimitText(uint32_t limit) { return limit == 0 ? "no limit" : std::to_string(limit); }

void PrintDevice(const DeviceFacts& facts, Console& console) {
  const DeviceGeometry& geometry = facts.geometry;
  Facts device("Device");
  device.Add("Name", Printable(facts.name));
  if (facts.profile) device.Add("Emulates", *facts.profile + (facts.timing() ? "" : ", at memory speed (timing=off)"));
  if (facts.description.kernel) AddKernelDevice(*facts.description.kernel, device);
  device.Add("Zones", fmt::format("{} of {}{}", geometry.zone_count, FormatSize(geometry.zone_capacity),
                                  geometry.zone_size == geometry.zone_capacity
                                      ? ""
                                      : fmt::format(", {} apart", FormatSize(geometry.zone_size))));
  device.Add("Capacity", FormatSize(geometry.zone_capacity * geometry.zone_count));
  device.Add("Block", fmt::format("{}, best written in {}", FormatSize(geometry.block_size),
                                  FormatSize(geometry.optimal_write)));
  device.Add("Open zones", LimitText(geometry.max_open_zones));
  device.Add("Active zones", LimitText(geometry.max_active_zones));
  device.Add("Forced write covers", geometry.fua_covers_zone ? "its zone up to its end" : "itself");
  if (facts.description.kernel) return device.Print(console);  // the kernel does not know what the device did before
  device.Add("Host read", FormatSize(facts.counters.host_bytes_read));
  device.Add("Host written", FormatSize(facts.counters.host_bytes_written));
  device.Add("Media written", fmt::format("{}, of which {} dummy bytes", FormatSize(facts.counters.media_bytes_written),
                                          FormatSize(facts.counters.dummy_bytes_written)));
  device.Add("Zone resets", std::to_string(facts.counters.resets));
  device.Add("Zone finishes", std::to_string(facts.counters.finishes));
  device.Print(console);
}

void PrintFileSystem(const FileSystem& file_system, Console& console) {
  const SpaceInfo space = file_system.state().Space();
  Facts facts("File system");
  facts.Add("Label", file_system.state().label().empty() ? "none" : Printable(file_system.state().label()));
  facts.Add("UUID", file_system.state().uuid());
  facts.Add("Space", fmt::format("{} live, {} dead, {} metadata, {} reserved, {} free of {}", FormatSize(space.live),
                                 FormatSize(space.dead), FormatSize(space.metadata), FormatSize(space.reserved),
                                 FormatSize(space.free), FormatSize(space.capacity)));
  facts.Add("Zones", fmt::format("{} empty, {} active, {} full, {} unusable", space.empty_zones, space.active_zones,
                                 space.full_zones, space.unusable_zones));
  const MetadataCopies metadata = file_system.state().Metadata();
  facts.Add("Metadata", fmt::format("{} of {} copies whole, in zones {}", metadata.whole.size(), metadata.wanted,
                                    CopiesText(metadata.whole)));
  const auto groups = file_system.groups().Get();
  facts.Add("Zone groups", groups == nullptr ? "not measured" : GroupSummary(*groups));
  facts.Print(console);
}

Json KernelDeviceJson(const KernelDeviceDescription& kernel) {
  return {{"model", kernel.model},
          {"scheduler", kernel.scheduler},
          {"transfers", kernel.transfer_path},
          {"durable_writes", kernel.durable_writes},
          {"conventional_zones", kernel.conventional_zones},
          {"small_zones", kernel.small_zones},
          {"large_zones", kernel.large_zones}};
}

Json DeviceJson(const DeviceFacts& facts) {
  return {{"name", facts.name},
          {"profile", facts.profile ? Json(*facts.profile) : Json()},
          {"timing", facts.timing()},
          {"block_device", facts.description.kernel ? KernelDeviceJson(*facts.description.kernel) : Json()},
          {"geometry", GeometryJson(facts.geometry)},
          {"counters", CountersJson(facts.counters)}};
}

Json FileSystemJson(const FileSystem& file_system) {
  return {{"label", file_system.state().label()},
          {"uuid", file_system.state().uuid()},
          {"space", SpaceJson(file_system.state().Space())},
          {"metadata", MetadataJson(file_system.state().Metadata())}};
}

// Describes a device, formatted or not.
Status Info(const Arguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(OpenedDevice opened, OpenByUri(arguments.device, OpenMode::kReadOnly));
  const DeviceFacts facts = FactsOf(*opened.device);
  auto mounted = FileSystem::Mount(std::move(opened.device), opened.mount_options);
  if (!mounted.ok() && !mounted.status().Is(StatusCode::kNotFound)) return mounted.status();
  if (arguments.json) {
    console.PrintJson(
        {{"device", DeviceJson(facts)}, {"file_system", mounted.ok() ? FileSystemJson(**mounted) : Json()}});
    return Status::Ok();
  }
  PrintDevice(facts, console);
  if (mounted.ok()) {
    PrintFileSystem(**mounted, console);
  } else {
    console.Print("{}\n  none: format it with isozone mkfs {}\n", console.Bold("File system"),
                  Printable(arguments.device));
  }
  return Status::Ok();
}

Status Df(const Arguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(arguments.device, OpenMode::kReadOnly));
  const SpaceInfo space = file_system->state().Space();
  if (arguments.json) {
    console.PrintJson(SpaceJson(space));
    return Status::Ok();
  }
  using Align = Table::Align;
  Table table({{"CAPACITY", Align::kRight},
               {"LIVE", Align::kRight},
               {"DEAD", Align::kRight},
               {"METADATA", Align::kRight},
               {"RESERVED", Align::kRight},
               {"FREE", Align::kRight},
               {"FREE %", Align::kRight},
               {"EMPTY ZONES", Align::kRight},
               {"ZONES", Align::kRight}});
  table.AddRow({FormatSize(space.capacity), FormatSize(space.live), FormatSize(space.dead), FormatSize(space.metadata),
                FormatSize(space.reserved), FormatSize(space.free), FormatShare(space.free, space.capacity),
                std::to_string(space.empty_zones), std::to_string(space.zones)});
  table.Print(console);
  return Status::Ok();
}

Action Define(CLI::App& app, Status (*run)(const Arguments&, Console&)) {
  auto arguments = std::make_shared<Arguments>();
  AddDeviceArgument(app, arguments->device);
  AddJsonFlag(app, arguments->json);
  return [arguments, run](Console& console) { return run(*arguments, console); };
}

Action DefineInfo(CLI::App& app) { return Define(app, Info); }

Action DefineDf(CLI::App& app) { return Define(app, Df); }

}  // namespace

extern const Command kInfoCommand = {"info",
                                     "Show what a device is, its limits and counters, and the file system on it",
                                     "  isozone info emu:/data/ssd.img", DefineInfo};

extern const Command kDfCommand = {"df", "Show how much space is used and free",
                                   "  isozone df emu:/data/ssd.img --json", DefineDf};

}  // namespace isozone::cli
