// isozone_ycsb: loads a RocksDB database and runs one of YCSB's core workloads on it, on any file system that RocksDB
// can be given by URI.
//
// The phases (load, run) follow each other. Between them the database is closed and opened, so that the run starts with
// the cache empty.
//
// The first error ends the run: a status of RocksDB, a record that is not there, a value of another key.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <rocksdb/db.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"
#include "ycsb/arguments.h"
#include "ycsb/client.h"
#include "ycsb/database.h"
#include "ycsb/phase.h"
#include "ycsb/workload.h"

namespace isozone::ycsb {
namespace {

Result<Json> Load(rocksdb::DB& db, const Arguments& arguments) {
  std::vector<Step> steps;
  for (uint64_t i = 0; i < arguments.threads; ++i) {
    const uint64_t first = ShareOf(arguments.records, i, arguments.threads).first;
    steps.emplace_back([record = first](Client& client) mutable {
      return client.Do({.kind = OperationKind::kInsert, .record = record++});
    });
  }
  Phase phase("load", arguments, arguments.records);
  return phase.Run(db, SeedOf::kLoadedValues, steps);
}

Result<Json> RunWorkload(rocksdb::DB& db, const Arguments& arguments) {
  ISOZONE_ASSIGN_OR_RETURN(const Workload workload, FindWorkload(arguments.workload));
  RecordCounter counter(arguments.records);
  std::vector<Step> steps;
  for (uint64_t i = 0; i < arguments.threads; ++i) {
    const uint64_t seed = ClientSeed(arguments.seed, SeedOf::kOperations, i);
    OperationStream stream(workload, arguments.operations, seed, counter);
    steps.emplace_back([stream, &counter](Client& client) mutable {
      const Operation operation = stream.Next();
      Status status = client.Do(operation);
      if (status.ok() && operation.kind == OperationKind::kInsert) counter.Acknowledge(operation.record);
      return status;
    });
  }
  Phase phase("run", arguments, arguments.operations);
  return phase.Run(db, SeedOf::kWrittenValues, steps);
}

// Settles where that is asked for, and notes in `phase` how long it took.
Status SettleInto(Database& database, const Arguments& arguments, Json* phase) {
  if (!arguments.settle) return Status::Ok();
  const int64_t start_ns = MonotonicNs();
  ISOZONE_RETURN_IF_ERROR(database.Settle());
  (*phase)["settle_seconds"] = static_cast<double>(MonotonicNs() - start_ns) / kSecondNs;
  return Status::Ok();
}

Result<Json> RunPhases(const Arguments& arguments) {
  Database database(arguments);
  Json phases = Json::array();
  if (arguments.Loads()) {
    ISOZONE_RETURN_IF_ERROR(database.Open(/*create=*/true));
    ISOZONE_ASSIGN_OR_RETURN(Json phase, Load(database.db(), arguments));
    ISOZONE_RETURN_IF_ERROR(SettleInto(database, arguments, &phase));
    ISOZONE_RETURN_IF_ERROR(database.Close());
    phases.push_back(std::move(phase));
  }
  if (arguments.Runs()) {
    Json settled = Json::object();
    ISOZONE_RETURN_IF_ERROR(database.Open(/*create=*/false));
    ISOZONE_RETURN_IF_ERROR(SettleInto(database, arguments, &settled));
    ISOZONE_ASSIGN_OR_RETURN(Json phase, RunWorkload(database.db(), arguments));
    ISOZONE_RETURN_IF_ERROR(database.Close());
    phase.update(settled);
    phases.push_back(std::move(phase));
  }
  return phases;
}

int Fail(std::string message) {
  std::ranges::replace(message, '\n', ' ');
  fmt::print(stderr, "isozone_ycsb: {}\n", message);
  return 1;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Runs a core workload of YCSB on RocksDB, and prints throughput and latencies (microseconds) as JSON.\n"
      "For a file system that RocksDB does not have built in, preload its library: LD_PRELOAD=libisozone.so.",
      "isozone_ycsb");
  AddOptions(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    return Fail(fmt::format("{}; see isozone_ycsb --help", error.what()));
  }
  const Result<Workload> workload = FindWorkload(arguments.workload);
  if (!workload.ok()) return Fail(std::string(workload.status().message()));
  const Result<Json> phases = RunPhases(arguments);
  if (!phases.ok()) return Fail(std::string(phases.status().message()));
  const Json document = {{"workload", arguments.workload},
                         {"phase", *phases},
                         {"seed", arguments.seed},
                         {"options", OptionsJson(arguments)}};
  fmt::print("{}\n", document.dump(2));
  return std::fflush(stdout) == 0 ? 0 : Fail("cannot write to standard output");
}

}  // namespace
}  // namespace isozone::ycsb

int main(int argc, char** argv) {
  try {
    return isozone::ycsb::Main(argc, argv);
  } catch (const std::exception& error) {
    return isozone::ycsb::Fail(error.what());
  }
}
