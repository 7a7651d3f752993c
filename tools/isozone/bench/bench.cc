#include "isozone/bench/bench.h"

namespace isozone::cli {
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
  return DefineParts(app, {{"device", "How much I/O to one zone slows I/O to the others",
                            "  isozone bench device emu:/data/ssd.img --svg interference.svg", DefineBenchDevice},
                           {"io", "Throughput and latency of sequential writes and of reads",
                            "  isozone bench io emu:/data/ssd.img --depth 8 --bytes 1G", DefineBenchIo},
                           {"gc", "What collecting zones costs: schemes, group reads, what others feel of it",
                            "  isozone bench gc collect emu:/data/ssd.img --utilisation 0.8 --skewed", DefineBenchGc}});
}

}  // namespace isozone::cli
