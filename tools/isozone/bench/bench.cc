#include "isozone/bench/bench.h"

namespace isozone::cli {
namespace {

Action DefineBench(CLI::App& app) {
  return DefineParts(app, {{"device", "How much I/O to one zone slows I/O to the others",
                            "  isozone bench device emu:/data/ssd.img --svg interference.svg", DefineBenchDevice},
                           {"io", "Throughput and latency of sequential writes and of reads",
                            "  isozone bench io emu:/data/ssd.img --depth 8 --bytes 1G", DefineBenchIo}});
}

}  // namespace

extern const Command kBenchCommand = {"bench", "Measure a device: zone interference, throughput and latency",
                                      "  isozone bench device emu:/data/ssd.img --svg interference.svg\n"
                                      "  isozone bench io emu:/data/ssd.img --depth 32",
                                      DefineBench};

}  // namespace isozone::cli
