// A client does one operation after the other; its latency is the time spent in RocksDB, without making and checking
// values, except where these lie between two calls (a scan, a read-modify-write). What a client measures lies in
// histograms of its own: clients share nothing but the database.
//
// Histograms count nanoseconds; what is called Us, and all JSON, is in microseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>
#include <rocksdb/db.h>

#include "base/histogram.h"
#include "base/random.h"
#include "base/status.h"
#include "ycsb/workload.h"

namespace isozone::ycsb {

// One for each OperationKind, by its number.
using Histograms = std::array<Histogram, kOperationKinds.size()>;

// Adds `from` to `to`, which may be empty.
void Add(const Histogram::Snapshot& from, Histogram::Snapshot* to);
// What was added between two snapshots of the same histogram; its max is to the precision of a bucket.
Histogram::Snapshot Difference(Histogram::Snapshot later, const Histogram::Snapshot& earlier);
double PercentileUs(const Histogram::Snapshot& latencies, double percent);
// Count, mean, percentiles and max.
nlohmann::ordered_json LatencyJson(const Histogram::Snapshot& latencies);

// Does operations on the database and measures them.
//
// Thread safety: one thread, beside which others may look at latencies().
class Client {
 public:
  // `db` outlives the client. Values have `value_size` bytes, at least kMinValueSize; `seed` makes them.
  Client(rocksdb::DB& db, size_t value_size, uint64_t seed) : db_(db), random_(seed), value_(value_size, '\0') {}

  // Fails where RocksDB does, and where a record that is read is not there or has the value of another key.
  Status Do(const Operation& operation);
  const Histograms& latencies() const { return latencies_; }

 private:
  Status Read(const std::string& key);
  Status Write(OperationKind kind, uint64_t record, const std::string& key);
  Status Scan(const std::string& key, uint64_t records);
  Status ReadModifyWrite(const std::string& key);

  // The result of `function`, whose time becomes a latency of `kind`.
  template <typename Function>
  auto Measure(OperationKind kind, const Function& function);

  rocksdb::DB& db_;
  Random random_;  // of values
  Histograms latencies_;
  std::string value_;
  rocksdb::PinnableSlice read_;
};

}  // namespace isozone::ycsb
