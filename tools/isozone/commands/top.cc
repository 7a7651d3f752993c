// top: what a mount does now, on the whole terminal.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "isozone/command.h"
#include "isozone/output/full_screen.h"
#include "isozone/output/statistics_view.h"
#include "isozone/statistics_source.h"

namespace isozone::cli {
namespace {

struct TopArguments {
  std::string device;
  bool once = false;
  double interval_s = 1;
};

void PrintOnce(const Look& look, Console& console) {
  for (const ViewLine& line : StatisticsView(look.statistics, nullptr, static_cast<size_t>(console.width()))) {
    console.Print("{}\n", line.text);
  }
  if (!look.note.empty()) console.Print("\n{}\n", look.note);
}

// The same mount: what was counted before can be subtracted.
bool IsSameMount(const Statistics& a, const Statistics& b) {
  return a.process.pid == b.process.pid && a.mounted_ns == b.mounted_ns;
}

// Looks once more; what was seen last becomes `before`, if it is of the same mount.
Status LookAgain(const std::string& device, Look& look, std::optional<Statistics>& before) {
  ISOZONE_ASSIGN_OR_RETURN(Look next, LookAt(device));
  before.reset();
  if (IsSameMount(look.statistics, next.statistics)) before = std::move(look.statistics);
  look = std::move(next);
  return Status::Ok();
}

Status Run(const TopArguments& arguments, Look look, Console& console) {
  FullScreen screen(console);
  std::optional<Statistics> before;
  bool paused = false;
  int64_t next_look_ns = 0;
  Status ended;  // why there is nothing new any more
  for (;;) {
    const int64_t now_ns = MonotonicNs();
    if (now_ns >= next_look_ns) {
      next_look_ns = now_ns + static_cast<int64_t>(arguments.interval_s * static_cast<double>(kSecondNs));
      if (!paused) ended = LookAgain(arguments.device, look, before);
    }
    const Statistics* since = before ? &*before : nullptr;
    std::string status = paused ? "q quit   space go on (paused)" : "q quit   space pause";
    if (!ended.ok()) status += fmt::format("   {}", ended.message());
    if (!look.note.empty()) status += fmt::format("   {}", look.note);
    ISOZONE_RETURN_IF_ERROR(screen.Draw(StatisticsView(look.statistics, since, screen.CurrentSize().columns), status));
    const int64_t wait_ms = (next_look_ns - MonotonicNs()) / kMillisecondNs + 1;
    char key = 0;
    const auto input = screen.Wait(static_cast<int>(std::clamp<int64_t>(wait_ms, 0, 3'600'000)), key);
    if (input == FullScreen::Input::kQuit) return Status::Ok();
    if (input != FullScreen::Input::kKey) continue;
    if (key == 'q' || key == 'Q') return Status::Ok();
    if (key == ' ') paused = !paused;
  }
}

Status Top(const TopArguments& arguments, Console& console) {
  if (!arguments.once && !FullScreen::Available()) {
    return Status::InvalidArgument("standard input and output are no terminal: give --once, or use isozone stats");
  }
  ISOZONE_ASSIGN_OR_RETURN(Look look, LookAt(arguments.device));
  if (!arguments.once) return Run(arguments, std::move(look), console);
  PrintOnce(look, console);
  return Status::Ok();
}

Action DefineTop(CLI::App& app) {
  auto arguments = std::make_shared<TopArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_flag("--once", arguments->once, "Print one picture, and end");
  app.add_option("--interval", arguments->interval_s, "Seconds between two looks; 1 if not given")
      ->check(CLI::Range(0.1, 3600.0).description(""))
      ->option_text("SECONDS");
  return [arguments](Console& console) { return Top(*arguments, console); };
}

}  // namespace

extern const Command kTopCommand = {"top", "Show the same on the whole terminal, again and again",
                                    "  isozone top emu:/data/ssd.img", DefineTop};

}  // namespace isozone::cli
