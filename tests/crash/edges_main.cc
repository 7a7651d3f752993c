// isozone_edges: fills small devices to the last block, empties them, and cuts the power meanwhile. See edges.h.
//
//   isozone_edges                                           every policy and scheme, cut in every command
//   isozone_edges --one-of 100                              in one of a hundred
//   isozone_edges --device isozone,lifetime,17              one device
//   isozone_edges --device ... --cut 123:1:lost             one case
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/random.h"
#include "crash/edges.h"
#include "model/quiet_log.h"

namespace isozone::crash {
namespace {

struct EdgeArguments {
  uint64_t seed = std::random_device{}();
  uint64_t rounds = 1;
  uint64_t one_of = 1;
  uint64_t part = 0;
  uint64_t parts = 1;
  std::string device;  // empty: all
  std::string cut;     // empty: as one_of says
};

Result<std::vector<EdgeDevice>> DevicesOf(const EdgeArguments& arguments) {
  std::vector<EdgeDevice> devices;
  if (!arguments.device.empty()) {
    ISOZONE_ASSIGN_OR_RETURN(const EdgeDevice device, EdgeDevice::Parse(arguments.device));
    devices.push_back(device);
    return devices;
  }
  Random random(arguments.seed);
  uint64_t number = 0;
  for (uint64_t round = 0; round < arguments.rounds; ++round) {
    for (const EdgeDevice& device : EdgeDevices(random.Next())) {
      if (number++ % arguments.parts == arguments.part) devices.push_back(device);
    }
  }
  return devices;
}

Status RunEdges(const EdgeArguments& arguments) {
  const QuietLog quiet;
  ISOZONE_ASSIGN_OR_RETURN(const auto devices, DevicesOf(arguments));
  std::optional<Cut> cut;
  if (!arguments.cut.empty()) {
    ISOZONE_ASSIGN_OR_RETURN(cut, Cut::Parse(arguments.cut));
  }
  Edges edges(arguments.one_of);
  uint64_t failures = 0;
  for (const EdgeDevice& device : devices) {
    fmt::print("{}: {}\n", device.ToString(), DescribeEdgeDevice(device));
    std::fflush(stdout);  // where it hangs, this says on which
    const Status status = edges.Run(device, cut);
    if (status.ok()) continue;
    ++failures;
    fmt::print("FAILED: {}\n", status.ToString());
  }
  const EdgeReport& report = edges.report();
  fmt::print("{} devices took {} bytes; of {} commands of {} operations {} were cut\n", report.devices, report.bytes,
             report.commands, report.operations, report.cuts);
  return failures == 0 ? Status::Ok() : Status::Corruption(fmt::format("{} devices failed", failures));
}

}  // namespace
}  // namespace isozone::crash

int main(int argc, char** argv) {
  isozone::crash::EdgeArguments arguments;
  CLI::App app(
      "Fills small devices to the last block, changes them while they are full, and empties them, with the power cut "
      "in\n"
      "the commands of that. Ends with 1 and the command that replays each failure where something is wrong.");
  app.add_option("--seed", arguments.seed, "of the devices; printed");
  app.add_option("--rounds", arguments.rounds, "devices of each policy and scheme")->capture_default_str();
  app.add_option("--one-of", arguments.one_of, "cuts one of so many commands, on average; 0: none")
      ->capture_default_str();
  app.add_option("--parts", arguments.parts, "divides the devices among so many runs")->check(CLI::PositiveNumber);
  app.add_option("--part", arguments.part, "which of them this is, from 0");
  app.add_option("--device", arguments.device, "only this one, as a failure names it");
  app.add_option("--cut", arguments.cut, "only this cut of it");
  CLI11_PARSE(app, argc, argv);
  fmt::print("isozone_edges --seed {} --rounds {} --one-of {} --part {} --parts {}\n", arguments.seed, arguments.rounds,
             arguments.one_of, arguments.part, arguments.parts);
  const isozone::Status status = isozone::crash::RunEdges(arguments);
  if (status.ok()) return 0;
  fmt::print(stderr, "FAILED: {}\n", status.ToString());
  return 1;
}
