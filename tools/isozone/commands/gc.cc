// gc: collects garbage now, shows how much there is, and what a scheme (src/store/zone/gc_scheme.h) would do about it.
//
// `status` mounts read-only, so it can run beside a writer. `run` needs the device for itself. A running
// database is collected through isozone.h instead.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "isozone/command.h"
#include "isozone/output/progress.h"
#include "isozone/output/report.h"
#include "isozone/output/table.h"
#include "isozone/session.h"
#include "store/zone/gc_scheme.h"

namespace isozone::cli {
namespace {

constexpr int kBarWidth = 40;  // characters

struct GcArguments {
  std::string device;
  std::string scheme;       // empty: the scheme of the mount
  double until_free = 100;  // percent
  bool victims = false;
  bool json = false;
};

// Zones with file data, in steps of 10 % of utilisation; the last step includes full utilisation.
struct Bucket {
  uint32_t zones = 0;
  uint64_t dead = 0;  // bytes
};
using Utilisation = std::array<Bucket, 10>;

Utilisation UtilisationOf(const std::vector<ZoneView>& zones) {
  Utilisation buckets;
  for (const ZoneView& zone : zones) {
    const uint64_t written = std::min(zone.device.write_pointer, zone.device.capacity);
    if ((zone.use != ZoneUse::kData && zone.use != ZoneUse::kLog) || written == 0) continue;
    const uint64_t tenth = zone.live * buckets.size() / zone.device.capacity;
    Bucket& bucket = buckets[std::min<uint64_t>(tenth, buckets.size() - 1)];
    ++bucket.zones;
    bucket.dead += written - std::min(zone.live, written);
  }
  return buckets;
}

std::string FreeText(const GcSpace& space) {
  return fmt::format("{} of {}, {:.1f} %", FormatSize(space.free), FormatSize(space.capacity), space.free_percent());
}

// "12 zones: 30.0 MiB to copy, 90.0 MiB to gain".
std::string PlanText(const GcPlan& plan) {
  return fmt::format("{} zone{}: {} to copy, {} to gain", plan.victims.size(), plan.victims.size() == 1 ? "" : "s",
                     FormatSize(plan.copied()), FormatSize(plan.reclaimed()));
}

// Bytes copied for each byte gained.
double CostOf(const GcCandidate& victim) {
  return static_cast<double>(victim.valid) / static_cast<double>(victim.written - victim.valid);
}

Json GcSpaceJson(const GcSpace& space) {
  return {{"zones", space.zones},
          {"empty_zones", space.empty_zones},
          {"capacity", space.capacity},
          {"free", space.free},
          {"free_percent", space.free_percent()}};
}

Json VictimsJson(const GcPlan& plan) {
  Json victims = Json::array();
  for (const GcCandidate& victim : plan.victims) {
    const bool level_known = victim.data.level != DataClass::kNoLevel;
    victims.push_back({{"zone", victim.zone.value()},
                       {"group", victim.group},
                       {"level", level_known ? Json(int{victim.data.level}) : Json()},
                       {"lifetime", LifetimeName(victim.data.lifetime)},
                       {"valid", victim.valid},
                       {"dead", victim.written - victim.valid},
                       {"cost", CostOf(victim)}});
  }
  return victims;
}

Json PlanJson(const GcPlan& plan) {
  return {{"scheme", plan.scheme},    {"urgency", plan.urgency},        {"space", GcSpaceJson(plan.space)},
          {"to_copy", plan.copied()}, {"to_reclaim", plan.reclaimed()}, {"victims", VictimsJson(plan)}};
}

// Mounts with the scheme of the command line, which is checked before the device is opened.
Result<std::unique_ptr<FileSystem>> Mount(const GcArguments& arguments, OpenMode mode) {
  if (!arguments.scheme.empty()) ISOZONE_RETURN_IF_ERROR(MakeGcScheme(arguments.scheme, {}).status());
  auto opened = OpenByUri(arguments.device, mode);
  if (!opened.ok() && opened.status().Is(StatusCode::kBusy)) {
    return Status::Busy(
        fmt::format("{}; ask the running database, through isozone::CollectGarbage()", opened.status().message()));
  }
  ISOZONE_RETURN_IF_ERROR(opened.status());
  if (!arguments.scheme.empty()) opened->mount_options.gc.scheme = arguments.scheme;
  return MountOpened(std::move(opened).value());
}

// --- run ---

void PrintDone(const GcPlan& before, const GcPlan& after, const Figures& done, Console& console) {
  Facts facts("Collected with scheme " + before.scheme);
  facts.Add("Zones", fmt::format("{} emptied, {} skipped, {} failed", done.gc_zones, done.gc_skipped, done.gc_failed));
  facts.Add("Copied", fmt::format("{}, of {} read", FormatSize(done.gc_bytes_copied), FormatSize(done.gc_bytes_read)));
  facts.Add("Reclaimed", FormatSize(done.gc_bytes_reclaimed));
  facts.Add("Free before", FreeText(before.space));
  facts.Add("Free after", FreeText(after.space));
  facts.Print(console);
}

Json DoneJson(const GcPlan& before, const GcPlan& after, const Figures& done) {
  return {{"scheme", before.scheme},
          {"zones", done.gc_zones},
          {"skipped_zones", done.gc_skipped},
          {"failed_zones", done.gc_failed},
          {"bytes_read", done.gc_bytes_read},
          {"bytes_copied", done.gc_bytes_copied},
          {"bytes_reclaimed", done.gc_bytes_reclaimed},
          {"read_errors", done.gc_read_errors},
          {"mismatches", done.gc_mismatches},
          {"before", GcSpaceJson(before.space)},
          {"after", GcSpaceJson(after.space)}};
}

Status CollectWithProgress(FileSystem& file_system, double until_free) {
  Progress progress("collecting", 0, Progress::Unit::kBytes);
  const auto step = [&progress](const CopyStats& done, uint64_t bytes_to_copy) {
    progress.Update(done.bytes_copied, bytes_to_copy);
    return true;
  };
  return file_system.collection().Run(until_free, step).status();
}

// An error if some zones that could be collected were not.
Status Failures(const Figures& done) {
  if (done.gc_failed == 0) return Status::Ok();
  return Status::IoError(
      fmt::format("{} zones could not be collected: {} read errors, {} copies that differ; their "
                  "files are where they were, see isozone fsck --read-data",
                  done.gc_failed, done.gc_read_errors, done.gc_mismatches));
}

Status Run(const GcArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, Mount(arguments, OpenMode::kReadWrite));
  const GcPlan before = file_system->collection().Plan(/*all=*/true);
  ISOZONE_RETURN_IF_ERROR(CollectWithProgress(*file_system, arguments.until_free));
  ISOZONE_RETURN_IF_ERROR(file_system->state().Settle());
  const GcPlan after = file_system->collection().Plan(/*all=*/true);
  // Includes what the background collector of this mount did.
  const Figures done = file_system->state().Stats();
  ISOZONE_RETURN_IF_ERROR(file_system->Unmount());
  arguments.json ? console.PrintJson(DoneJson(before, after, done)) : PrintDone(before, after, done, console);
  return Failures(done);
}

// --- status ---

void PrintUtilisation(const Utilisation& buckets, Console& console) {
  using Align = Table::Align;
  const uint32_t most = std::ranges::max(buckets, {}, &Bucket::zones).zones;
  Table table({{"LIVE", Align::kRight}, {"ZONES", Align::kRight}, {"DEAD", Align::kRight}, {""}});
  for (size_t i = 0; i < buckets.size(); ++i) {
    const uint32_t zones = buckets[i].zones;
    const uint32_t bar = most == 0 ? 0 : (zones * kBarWidth + most - 1) / most;
    table.AddRow({fmt::format("{}-{} %", i * 10, i * 10 + 10), std::to_string(zones), FormatSize(buckets[i].dead),
                  std::string(bar, '#')});
  }
  table.Print(console);
}

Json UtilisationJson(const Utilisation& buckets) {
  Json document = Json::array();
  for (size_t i = 0; i < buckets.size(); ++i) {
    document.push_back({{"from_percent", i * 10}, {"zones", buckets[i].zones}, {"dead", buckets[i].dead}});
  }
  return document;
}

void PrintVictims(const GcPlan& plan, Console& console) {
  using Align = Table::Align;
  Table table({{"ZONE", Align::kRight},
               {"GROUP", Align::kRight},
               {"LEVEL", Align::kRight},
               {"LIFETIME"},
               {"VALID", Align::kRight},
               {"DEAD", Align::kRight},
               {"COST", Align::kRight}});
  for (const GcCandidate& victim : plan.victims) {
    const int8_t level = victim.data.level;
    table.AddRow({std::to_string(victim.zone.value()), std::to_string(victim.group),
                  level == DataClass::kNoLevel ? "-" : std::to_string(level),
                  std::string(LifetimeName(victim.data.lifetime)), FormatSize(victim.valid),
                  FormatSize(victim.written - victim.valid), fmt::format("{:.2f}", CostOf(victim))});
  }
  table.Print(console);
}

std::string NowText(const GcPlan& now) {
  return now.victims.empty() ? "nothing" : fmt::format("{}, at urgency {:.2f}", PlanText(now), now.urgency);
}

Status Show(const GcArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, Mount(arguments, OpenMode::kReadOnly));
  const GcPlan now = file_system->collection().Plan(/*all=*/false);
  const GcPlan all = file_system->collection().Plan(/*all=*/true);
  const uint64_t dead = file_system->state().Space().dead;
  const Utilisation buckets = UtilisationOf(file_system->state().Zones());
  if (arguments.json) {
    console.PrintJson({{"scheme", now.scheme},
                       {"space", GcSpaceJson(now.space)},
                       {"dead", dead},
                       {"utilisation", UtilisationJson(buckets)},
                       {"now", PlanJson(now)},
                       {"all", PlanJson(all)}});
    return Status::Ok();
  }
  Facts facts(Printable(file_system->state().device().name()));
  facts.Add("Scheme", now.scheme);
  facts.Add("Free", FreeText(now.space));
  facts.Add("Dead", FormatSize(dead));
  facts.Add("It would now collect", NowText(now));
  facts.Add("gc run would collect", all.victims.empty() ? "nothing" : PlanText(all));
  facts.Print(console);
  console.Print("\n");
  arguments.victims ? PrintVictims(all, console) : PrintUtilisation(buckets, console);
  return Status::Ok();
}

// --- Options ---

std::shared_ptr<GcArguments> AddShared(CLI::App& app) {
  auto arguments = std::make_shared<GcArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_option("--scheme", arguments->scheme, "Use this scheme instead of that of the URI")
      ->option_text(fmt::format("{}", fmt::join(GcSchemeNames(), "|")));
  AddJsonFlag(app, arguments->json);
  return arguments;
}

Action DefineRun(CLI::App& app) {
  auto arguments = AddShared(app);
  app.add_option("--until", arguments->until_free,
                 "Stop when this percentage is free; 100 (all that can be gained) if not given")
      ->check(CLI::Range(0.0, 100.0).description(""))
      ->option_text("PERCENT");
  return [arguments](Console& console) { return Run(*arguments, console); };
}

Action DefineStatus(CLI::App& app) {
  auto arguments = AddShared(app);
  app.add_flag("--victims", arguments->victims,
               "Instead of how full zones are: what each that gc run takes would cost");
  return [arguments](Console& console) { return Show(*arguments, console); };
}

Action DefineGc(CLI::App& app) {
  return DefineParts(app,
                     {{"run", "Collect now: move what is live out of zones in which something has died",
                       "  isozone gc run emu:/data/ssd.img --until 30", DefineRun},
                      {"status", "Show free and dead space, how full the zones are, and what the scheme would do now",
                       "  isozone gc status emu:/data/ssd.img --victims --scheme lifetime", DefineStatus}});
}

}  // namespace

extern const Command kGcCommand = {"gc", "Collect garbage, and show what there is of it",
                                   "  isozone gc run emu:/data/ssd.img --until 30\n"
                                   "  isozone gc status emu:/data/ssd.img --victims --scheme lifetime",
                                   DefineGc};

}  // namespace isozone::cli
