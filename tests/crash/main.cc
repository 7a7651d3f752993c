// isozone_crash: cuts the power in every command of every short sequence of operations. See crash.h.
//
//   isozone_crash                                              every sequence of up to 3 operations
//   isozone_crash --sample 5000                                so many of them, drawn
//   isozone_crash --length 2 --depth 2                         up to 2 operations, and recovery is cut as well
//   isozone_crash --length 1 --lose-copies                     each state also without either copy of the metadata
//   isozone_crash --count                                      says how many sequences there are
//   isozone_crash --variant files,zone,kept --sequence 'append /A; rename /A /B'             all cuts of one sequence
//   isozone_crash --variant ... --sequence ... --cut 7:1:lost [--again 2:0:kept]            one case
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/random.h"
#include "crash/crash.h"
#include "model/quiet_log.h"

namespace isozone::crash {
namespace {

constexpr uint64_t kFailuresMax = 10;  // then it gives up

struct Arguments {
  size_t length = 3;
  uint32_t depth = 1;
  uint64_t sample = 0;  // 0: all
  uint64_t seed = std::random_device{}();
  uint64_t part = 0;
  uint64_t parts = 1;
  std::string variant;  // empty: all
  std::string sequence;
  std::string cut;
  std::string again;
  bool one = false;  // `sequence` is given, which may be empty
  bool count = false;
  bool loses_copies = false;
  bool progress = false;
};

Result<std::vector<Variant>> VariantsOf(const Arguments& arguments) {
  if (arguments.variant.empty()) return AllVariants();
  ISOZONE_ASSIGN_OR_RETURN(const Variant variant, Variant::Parse(arguments.variant));
  return std::vector{variant};
}

using Visit = std::function<void(const Variant&, const Sequence&)>;
Status ForEach(Explorer& explorer, const Arguments& arguments, const Visit& visit) {
  ISOZONE_ASSIGN_OR_RETURN(const auto variants, VariantsOf(arguments));
  for (const Variant& variant : variants) {
    ISOZONE_ASSIGN_OR_RETURN(const Names names, explorer.NamesAt(variant.start));
    for (size_t length = 0; length <= arguments.length; ++length) {
      ForEachSequence(names, length, variant.start == Start::kEmpty,
                      [&](const Sequence& sequence) { visit(variant, sequence); });
    }
  }
  return Status::Ok();
}

Status Count(Explorer& explorer, const Arguments& arguments) {
  std::map<std::string, std::map<size_t, uint64_t>> counts;
  ISOZONE_RETURN_IF_ERROR(ForEach(explorer, arguments, [&](const Variant& variant, const Sequence& sequence) {
    ++counts[variant.ToString()][sequence.size()];
  }));
  for (const auto& [variant, by_length] : counts) {
    for (const auto& [length, count] : by_length) fmt::print("{}: {} of length {}\n", variant, count, length);
  }
  return Status::Ok();
}

Status ExploreAll(Explorer& explorer, const Arguments& arguments) {
  uint64_t total = 0;
  ISOZONE_RETURN_IF_ERROR(ForEach(explorer, arguments, [&](const Variant&, const Sequence&) { ++total; }));
  const double chance = arguments.sample == 0 ? 1 : static_cast<double>(arguments.sample) / static_cast<double>(total);
  Random random(arguments.seed);
  uint64_t number = 0;
  uint64_t failures = 0;
  ISOZONE_RETURN_IF_ERROR(ForEach(explorer, arguments, [&](const Variant& variant, const Sequence& sequence) {
    const bool drawn = random.Chance(chance) && number % arguments.parts == arguments.part;
    ++number;
    if (arguments.progress && number % 1000 == 0) fmt::print(stderr, "\r{} of {} sequences", number, total);
    if (!drawn || failures >= kFailuresMax) return;
    const Status status = explorer.Explore(variant, sequence);
    if (status.ok()) return;
    ++failures;
    fmt::print("FAILED: {}\n", status.ToString());
    std::fflush(stdout);
  }));
  const Report& report = explorer.report();
  fmt::print(
      "{} of {} sequences, cut in {} commands: {} states were recovered, {} of them after a second cut, and {} "
      "without one of the copies of the metadata\n",
      report.sequences, total, report.commands, report.cases, report.again, report.lost);
  return failures == 0 ? Status::Ok() : Status::Corruption(fmt::format("{} sequences failed", failures));
}

Status RunOne(Explorer& explorer, const Arguments& arguments) {
  if (arguments.variant.empty()) return Status::InvalidArgument("--sequence needs --variant");
  ISOZONE_ASSIGN_OR_RETURN(const Variant variant, Variant::Parse(arguments.variant));
  ISOZONE_ASSIGN_OR_RETURN(const Sequence sequence, ParseSequence(arguments.sequence));
  ISOZONE_ASSIGN_OR_RETURN(const std::string commands, explorer.Describe(variant, sequence));
  fmt::print("{}", commands);
  if (arguments.cut.empty()) return explorer.Explore(variant, sequence);
  ISOZONE_ASSIGN_OR_RETURN(const Cut cut, Cut::Parse(arguments.cut));
  if (arguments.again.empty()) return explorer.Replay(variant, sequence, cut, nullptr);
  ISOZONE_ASSIGN_OR_RETURN(const Cut again, Cut::Parse(arguments.again));
  return explorer.Replay(variant, sequence, cut, &again);
}

Status Run(const Arguments& arguments) {
  const QuietLog quiet;
  Explorer explorer(arguments.depth, arguments.loses_copies);
  if (arguments.count) return Count(explorer, arguments);
  if (arguments.one) return RunOne(explorer, arguments);
  fmt::print("isozone_crash --length {} --depth {} --sample {} --seed {} --part {} --parts {}{}\n", arguments.length,
             arguments.depth, arguments.sample, arguments.seed, arguments.part, arguments.parts,
             arguments.loses_copies ? " --lose-copies" : "");
  std::fflush(stdout);
  return ExploreAll(explorer, arguments);
}

}  // namespace
}  // namespace isozone::crash

int main(int argc, char** argv) {
  isozone::crash::Arguments arguments;
  CLI::App app(
      "Cuts the power in every command of every short sequence of operations, recovers what each cut leaves, and\n"
      "checks it. Ends with 1 and the command that replays each failure where something is wrong.");
  app.add_option("--length", arguments.length, "operations of a sequence, at most")->capture_default_str();
  app.add_option("--depth", arguments.depth, "2: recovery is cut as well")->check(CLI::Range(1, 2));
  app.add_option("--sample", arguments.sample, "so many sequences, drawn at random; 0: all");
  app.add_option("--seed", arguments.seed, "of the draw; printed");
  app.add_option("--parts", arguments.parts, "divides the sequences among so many runs")->check(CLI::PositiveNumber);
  app.add_option("--part", arguments.part, "which of them this is, from 0");
  app.add_option("--variant", arguments.variant, "what it begins with, what FUA covers, when files are closed");
  const CLI::Option* sequence = app.add_option("--sequence", arguments.sequence, "runs this one");
  app.add_option("--cut", arguments.cut, "only this cut of it, as a failure names it");
  app.add_option("--again", arguments.again, "and this one of its recovery");
  app.add_flag("--lose-copies", arguments.loses_copies, "each state also without either copy of the metadata");
  app.add_flag("--count", arguments.count, "only counts the sequences");
  app.add_flag("--progress", arguments.progress, "show how far it is");
  CLI11_PARSE(app, argc, argv);
  arguments.one = sequence->count() > 0;
  const isozone::Status status = isozone::crash::Run(arguments);
  if (status.ok()) return 0;
  fmt::print(stderr, "FAILED: {}\n", status.ToString());
  return 1;
}
