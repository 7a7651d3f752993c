// A phase (load, run) divides its operations among clients, one thread each. The main thread watches: at each interval
// it takes all histograms, and what they have more than at the last is the interval.
//
// The first error ends the phase: clients see it before their next operation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <rocksdb/db.h>

#include "base/histogram.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/units.h"
#include "ycsb/arguments.h"
#include "ycsb/client.h"
#include "ycsb/workload.h"

namespace isozone::ycsb {

using Json = nlohmann::ordered_json;

// Does the next operation of a client. Called from one thread, that of the client.
using Step = std::function<Status(Client& client)>;

// Runs the clients of one phase, and meanwhile records intervals and shows progress.
//
// Thread safety: Run is called once, from one thread; its clients' threads end before it returns.
class Phase {
 public:
  // `operations` of all clients together. `name` and `arguments` outlive the phase.
  Phase(std::string_view name, const Arguments& arguments, uint64_t operations);

  // Client i does steps[i] as often as is its share of the operations, and its random values are those of `values`.
  // What was measured, as it is printed: seconds, operations per second, latencies in microseconds. `db` outlives the
  // phase.
  Result<Json> Run(rocksdb::DB& db, SeedOf values, const std::vector<Step>& steps);

 private:
  void RunClient(Client& client, const Step& step, uint64_t operations);
  void Finish(const Status& status) ISOZONE_EXCLUDES(mutex_);
  Status Watch() ISOZONE_EXCLUDES(mutex_);
  void TakeInterval(int64_t now_ns);
  void ShowProgress(int64_t now_ns) const;
  Histogram::Snapshot LatenciesOf(OperationKind kind) const;
  Histogram::Snapshot AllLatencies() const;
  Json Report(int64_t end_ns) const;
  double SecondsAt(int64_t now_ns) const { return static_cast<double>(now_ns - start_ns_) / kSecondNs; }

  const std::string_view name_;
  const Arguments& arguments_;
  const uint64_t operations_;
  const bool terminal_;  // whether standard error is one
  // From here to the atomic: changed by the thread in Run only.
  std::vector<std::unique_ptr<Client>> clients_;
  int64_t start_ns_ = 0;
  Histogram::Snapshot before_interval_;
  Json intervals_ = Json::array();

  std::atomic<bool> stop_{false};
  Mutex mutex_;
  CondVar finished_;
  size_t running_ ISOZONE_GUARDED_BY(mutex_) = 0;
  int64_t end_ns_ ISOZONE_GUARDED_BY(mutex_) = 0;
  Status error_ ISOZONE_GUARDED_BY(mutex_);  // the first
};

}  // namespace isozone::ycsb
