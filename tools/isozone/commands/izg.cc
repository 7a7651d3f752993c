// izg: measures the independent zone groups of a device (src/device/izg).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "device/izg/identify.h"
#include "isozone/command.h"
#include "isozone/output/group_map.h"
#include "isozone/output/progress.h"
#include "isozone/output/report.h"
#include "isozone/output/timing_note.h"
#include "isozone/session.h"
#include "isozone/stop_signals.h"
#include "store/metadata/superblock.h"
#include "store/mount/free_zones.h"

namespace isozone::cli {
namespace {

struct GroupsArguments {
  std::string device;
  std::string svg_path;
  bool force = false;
  bool json = false;
};

std::string Cost(const IdentifyReport& report) {
  return fmt::format("{:.1f} reads a zone in {} bursts, {:.1f} s of reading; {} written and reset",
                     static_cast<double>(report.reads) / static_cast<double>(report.zones), report.bursts,
                     static_cast<double>(report.burst_ns) / static_cast<double>(kSecondNs),
                     FormatSize(report.bytes_prepared));
}

std::string Sureness(const IdentifyReport& report) {
  if (report.groups.group_count() == 0) return report.caveat.empty() ? "no doubt" : report.caveat;
  return fmt::format("{}; with a probability of at most {:.2g} %, one of them is wrong", ConfidenceText(report.groups),
                     100 * report.may_be_wrong);
}

Json GroupsJson(const std::string& device, const ZoneGroups& groups) {
  Json document = {{"device", device}};
  document.update(ZoneGroupsJson(&groups));
  return document;
}

Json CostJson(const IdentifyReport& report) {
  return {{"zones", report.zones},
          {"reads", report.reads},
          {"reads_a_zone", static_cast<double>(report.reads) / static_cast<double>(report.zones)},
          {"bursts", report.bursts},
          {"reading_ms", static_cast<double>(report.burst_ns) / 1e6},
          {"bytes_prepared", report.bytes_prepared},
          {"filler", report.filler},
          {"unreadable_blocks", report.unreadable_blocks},
          {"false_interference", report.false_interference}};
}

Json LeftOutJson(const IdentifyReport& report) {
  Json zones = Json::array();
  for (const auto& [zone, why] : report.left_out) zones.push_back({{"zone", zone.value()}, {"why", why.message()}});
  return zones;
}

Json ConfidenceJson(const IdentifyReport& report) {
  const std::optional<int> least = LeastConfidence(report.groups);
  return {{"may_be_wrong", report.may_be_wrong}, {"least_percent", least ? Json(*least) : Json()}};
}

// With a higher probability that one zone is in a wrong group, the groups do not replace others.
constexpr double kMayBeWrong = 0.1;

// Why the result is in doubt, if it is.
std::optional<std::string> Problem(const IdentifyReport& report, const TimingNote& timing) {
  if (timing.Problem()) return timing.Problem();
  if (!report.caveat.empty()) return report.caveat;
  if (report.may_be_wrong <= kMayBeWrong) return std::nullopt;
  return fmt::format("with a probability of up to {:.0f} %, a zone is in a wrong group, because many reads were late",
                     100 * report.may_be_wrong);
}

void PrintFaults(const IdentifyReport& report, Console& console) {
  if (report.unreadable_blocks > 0) {
    console.Print("\n{} blocks could not be read, and were avoided.\n", report.unreadable_blocks);
  }
  for (const auto& [zone, why] : report.left_out) {
    console.Print("\nZone {} could not be measured, and stays unknown: {}\n", zone.value(), why.message());
  }
}

Status Draw(const GroupsArguments& arguments, const std::string& device, const ZoneGroups& groups) {
  if (arguments.svg_path.empty()) return Status::Ok();
  const std::string subtitle = fmt::format("{}: {}", device, GroupSummary(groups));
  return WriteLocalFile(arguments.svg_path, GroupMapSvg(groups, "Independent zone groups", subtitle));
}

Result<IdentifyReport> Measure(ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(const FreedZones zones, FreeUpZones(device));
  ISOZONE_ASSIGN_OR_RETURN(const auto prober, DeviceProber::Create(device, zones.free, zones.written));
  Progress progress("finding groups", prober->zones().size(), Progress::Unit::kSteps);
  IdentifyOptions options;
  options.progress = [&progress](uint64_t done, uint64_t zones) { progress.Update(done, zones); };
  options.cancelled = &StopSignals::Raised;
  return IdentifyZoneGroups(*prober, options);
}

// Stores the groups, and returns whether it did: doubtful results do not replace earlier ones.
Result<bool> Store(OpenedDevice opened, const ZoneGroups& groups, bool in_doubt) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountOpened(std::move(opened)));
  const bool keeps = in_doubt && file_system->groups().Get() != nullptr;
  if (!keeps) ISOZONE_RETURN_IF_ERROR(file_system->groups().Set(groups));
  ISOZONE_RETURN_IF_ERROR(file_system->Unmount());
  return !keeps;
}

std::string_view Outcome(bool formatted, bool stored) {
  if (!formatted) return "not stored: the device is not formatted";
  if (stored) return "stored with the file system";
  return "not stored, because the result is in doubt; the groups that were measured before stay (--force replaces "
         "them)";
}

// A device that is not formatted can be measured, too, but has no place for the result.
Result<bool> IsFormatted(ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(const DeviceContent content, ProbeDevice(device));
  return content == DeviceContent::kIsozone;
}

Status Identify(const GroupsArguments& arguments, Console& console) {
  const StopSignals signals;  // ends the process by a raised signal once written zones have been reset
  ISOZONE_ASSIGN_OR_RETURN(OpenedDevice opened, OpenByUri(arguments.device, OpenMode::kReadWrite));
  const std::string name = opened.device->name();
  ISOZONE_ASSIGN_OR_RETURN(const bool formatted, IsFormatted(*opened.device));
  ISOZONE_ASSIGN_OR_RETURN(const IdentifyReport report, Measure(*opened.device));
  const TimingNote timing(*opened.device);
  const std::optional<std::string> problem = Problem(report, timing);
  bool stored = false;
  if (formatted) {
    const bool in_doubt = problem.has_value() && !arguments.force;
    ISOZONE_ASSIGN_OR_RETURN(stored, Store(std::move(opened), report.groups, in_doubt));
  }
  ISOZONE_RETURN_IF_ERROR(Draw(arguments, name, report.groups));
  if (arguments.json) {
    Json document = GroupsJson(name, report.groups);
    document["stored"] = stored;
    document["cost"] = CostJson(report);
    document["set_aside"] = LeftOutJson(report);
    document["confidence"] = ConfidenceJson(report);
    document["lateness"] = timing.LatenessJson();
    document["problem"] = problem ? Json(*problem) : Json();
    console.PrintJson(document);
    return Status::Ok();
  }
  console.Print("{}: {}\n{}\n{}\n{}\n\n", console.Bold(Printable(name)), GroupSummary(report.groups), Sureness(report),
                Cost(report), Outcome(formatted, stored));
  PrintGroupMap(report.groups, console);
  PrintFaults(report, console);
  timing.PrintProblem(console);
  return Status::Ok();
}

Action DefineIdentify(CLI::App& app) {
  auto arguments = std::make_shared<GroupsArguments>();
  app.add_flag("--force", arguments->force, "Replace the stored groups even if the new result is in doubt");
  AddDeviceArgument(app, arguments->device);
  app.add_option("--svg", arguments->svg_path, "Draw the groups into this file, too")->option_text("FILE");
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return Identify(*arguments, console); };
}

Action DefineIzg(CLI::App& app) {
  return DefineParts(app, {{"identify", "Measure which zones share a die and which a channel, and store it",
                            "  isozone izg identify emu:/data/ssd.img --svg groups.svg", DefineIdentify}});
}

}  // namespace

extern const Command kIzgCommand = {"izg", "Find the independent zone groups: which zones share hardware",
                                    "  isozone izg identify emu:/data/ssd.img\n"
                                    "  isozone zones emu:/data/ssd.img --groups",
                                    DefineIzg};

}  // namespace isozone::cli
