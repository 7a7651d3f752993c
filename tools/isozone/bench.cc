#include "isozone/bench.h"

#include <memory>

namespace isozone::cli {
namespace {

void AddBench(CLI::App& app, const char* name, const char* summary, const char* example, Action (*define)(CLI::App&),
              const std::shared_ptr<Action>& chosen) {
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->footer(fmt::format("Example:\n{}", example));
  sub->final_callback([chosen, action = define(*sub)] { *chosen = action; });
}

}  // namespace

void AddSizeOption(CLI::App& app, const std::string& name, uint64_t& bytes, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [name, &bytes](const std::string& text) {
           const auto size = ParseSize(text);
           if (!size.ok()) throw CLI::ValidationError(name, std::string(size.status().message()));
           bytes = *size;
         },
         help)
      ->option_text("SIZE");
}

void AddDestroyFlag(CLI::App& app, bool& destroy) {
  app.add_flag("--destroy", destroy,
               "Use the first zones of the device, whatever they hold: a file system on it is lost. Without it, only "
               "empty zones are used, and are empty again afterwards");
}

Action DefineBench(CLI::App& app) {
  app.require_subcommand(1);
  auto chosen = std::make_shared<Action>();
  AddBench(app, "device", "How much I/O to one zone slows I/O to the others",
           "  isozone bench device emu:/data/ssd.img --svg interference.svg", DefineBenchDevice, chosen);
  AddBench(app, "groups", "Which zones share a die and which a channel, found by latency",
           "  isozone bench groups emu:/data/ssd.img --svg groups.svg", DefineBenchGroups, chosen);
  AddBench(app, "io", "Throughput and latency of sequential writes and of reads",
           "  isozone bench io emu:/data/ssd.img --depth 8 --bytes 1G", DefineBenchIo, chosen);
  return [chosen](Console& console) { return (*chosen)(console); };
}

}  // namespace isozone::cli
