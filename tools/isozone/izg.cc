// bench groups: the independent zone groups of a device, found by latency (src/izg).
#include <memory>
#include <string>

#include "isozone/bench.h"
#include "isozone/group_map.h"
#include "isozone/progress.h"
#include "isozone/session.h"
#include "izg/identify.h"

namespace isozone::cli {
namespace {

struct GroupsArguments {
  std::string device;
  std::string svg_path;
  bool json = false;
};

std::string Cost(const IdentifyReport& report) {
  return fmt::format("{:.1f} reads a zone in {} bursts, {:.1f} s of reading; {} written and reset",
                     static_cast<double>(report.reads) / static_cast<double>(report.zones), report.bursts,
                     static_cast<double>(report.burst_ns) / static_cast<double>(kSecondNs),
                     FormatSize(report.bytes_prepared));
}

Json ReportJson(const std::string& device, const IdentifyReport& report) {
  return {{"device", device},
          {"groups", report.groups.group_count()},
          {"group_of_zone", report.groups.group_of_zone},
          {"channel_of_group", report.groups.channel_of_group},
          {"confidence_percent", report.groups.confidence_percent},
          {"zones", report.zones},
          {"reads", report.reads},
          {"bursts", report.bursts},
          {"reading_ms", static_cast<double>(report.burst_ns) / 1e6},
          {"bytes_prepared", report.bytes_prepared},
          {"false_loud", report.false_loud}};
}

Status BenchGroups(const GroupsArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenByUri(arguments.device, OpenMode::kReadWrite));
  ISOZONE_ASSIGN_OR_RETURN(const auto prober, DeviceProber::Create(*opened.device));
  Progress progress("finding groups", prober->zones().size(), Progress::Unit::kSteps);
  IdentifyOptions options;
  options.progress = [&progress](uint64_t done, uint64_t) { progress.Update(done); };
  ISOZONE_ASSIGN_OR_RETURN(const IdentifyReport report, IdentifyZoneGroups(*prober, options));
  const std::string name = opened.device->name();
  if (!arguments.svg_path.empty()) {
    const std::string svg =
        GroupMapSvg(report.groups, "Independent zone groups", fmt::format("{}: {}", name, GroupSummary(report.groups)));
    ISOZONE_RETURN_IF_ERROR(WriteLocalFile(arguments.svg_path, svg));
  }
  if (arguments.json) {
    console.PrintJson(ReportJson(name, report));
    return Status::Ok();
  }
  console.Print("{}: {}\n{}\n\n", console.Bold(Printable(name)), GroupSummary(report.groups), Cost(report));
  PrintGroupMap(report.groups, console);
  return Status::Ok();
}

}  // namespace

Action DefineBenchGroups(CLI::App& app) {
  auto arguments = std::make_shared<GroupsArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_option("--svg", arguments->svg_path, "Draw the groups into this file, too")->option_text("FILE");
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return BenchGroups(*arguments, console); };
}

}  // namespace isozone::cli
