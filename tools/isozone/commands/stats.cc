// stats: what a mount tells on its statistics page, once or again and again.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/byte_text.h"
#include "insight/stats/statistics_json.h"
#include "isozone/command.h"
#include "isozone/output/prometheus.h"
#include "isozone/output/statistics_view.h"
#include "isozone/statistics_source.h"
#include "isozone/stop_signals.h"

namespace isozone::cli {
namespace {

struct StatsArguments {
  std::string device;
  bool json = false;
  bool prometheus = false;
  bool watch = false;
  bool zones = false;
  double interval_s = 1;
};

void PrintView(const Statistics& now, const Statistics* before, Console& console) {
  for (const ViewLine& line : StatisticsView(now, before, static_cast<size_t>(console.width()))) {
    const std::string_view text = line.text;
    console.Print("{}{}\n", line.heading == 0 ? "" : console.Bold(text.substr(0, line.heading)),
                  text.substr(line.heading));
  }
}

void Print(const StatsArguments& arguments, const Statistics& now, const Statistics* before, Console& console) {
  if (arguments.prometheus) {
    console.Write(PrometheusText({&now, 1}));
  } else if (arguments.json && arguments.watch) {
    // One document on each line, so that a script can read line by line.
    console.Print("{}\n", JsonText(StatisticsJson(now, arguments.zones)));
  } else if (arguments.json) {
    console.PrintJson(StatisticsJson(now, arguments.zones));
  } else {
    PrintView(now, before, console);
  }
}

// A result goes to standard output alone, so that this can be read there by a script.
void PrintNote(const Look& look) {
  if (!look.note.empty()) std::fputs(fmt::format("isozone stats: {}\n", look.note).c_str(), stderr);
}

// Prints until the mount ends or the user stops it.
Status Watch(const StatsArguments& arguments, Look look, Console& console) {
  const StopSignals signals;
  std::optional<Statistics> before;
  for (;;) {
    Print(arguments, look.statistics, before ? &*before : nullptr, console);
    if (!arguments.json) console.Write("\n");
    ISOZONE_RETURN_IF_ERROR(console.Flush());
    PrintNote(look);
    if (!look.note.empty()) return Status::Ok();
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int64_t>(arguments.interval_s * 1000));
    while (std::chrono::steady_clock::now() < until) {
      if (StopSignals::Raised()) return Status::Ok();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    before = std::move(look.statistics);
    ISOZONE_ASSIGN_OR_RETURN(look, LookAt(arguments.device));
  }
}

Status Stats(const StatsArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(Look look, LookAt(arguments.device));
  if (arguments.watch) return Watch(arguments, std::move(look), console);
  Print(arguments, look.statistics, nullptr, console);
  PrintNote(look);
  return Status::Ok();
}

Action DefineStats(CLI::App& app) {
  auto arguments = std::make_shared<StatsArguments>();
  AddDeviceArgument(app, arguments->device);
  AddJsonFlag(app, arguments->json);
  CLI::Option* json = app.get_option("--json");
  app.add_flag("--zones", arguments->zones, "With --json: every zone, too")->needs(json);
  CLI::Option* prometheus = app.add_flag("--prometheus", arguments->prometheus, "Write metrics for Prometheus");
  prometheus->excludes(json);
  CLI::Option* watch =
      app.add_flag("--watch", arguments->watch, "Again and again, until the mount ends; with --json a line each time");
  watch->excludes(prometheus);
  app.add_option("--interval", arguments->interval_s, "With --watch: seconds between two looks; 1 if not given")
      ->check(CLI::Range(0.1, 3600.0).description(""))
      ->option_text("SECONDS")
      ->needs(watch);
  return [arguments](Console& console) { return Stats(*arguments, console); };
}

}  // namespace

extern const Command kStatsCommand = {"stats", "Show what the process that has a device mounted does",
                                      "  isozone stats emu:/data/ssd.img\n"
                                      "  isozone stats emu:/data/ssd.img --json --watch\n"
                                      "  isozone stats emu:/data/ssd.img --prometheus",
                                      DefineStats};

}  // namespace isozone::cli
