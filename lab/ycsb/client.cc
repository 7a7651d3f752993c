#include "ycsb/client.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/units.h"
#include "ycsb/database.h"

namespace isozone::ycsb {
namespace {

double Microseconds(double ns) { return ns / kMicrosecondNs; }

}  // namespace

void Add(const Histogram::Snapshot& from, Histogram::Snapshot* to) {
  if (from.count == 0) return;
  to->buckets.resize(from.buckets.size());
  for (size_t i = 0; i < from.buckets.size(); ++i) to->buckets[i] += from.buckets[i];
  to->count += from.count;
  to->sum += from.sum;
  to->max = std::max(to->max, from.max);
}

Histogram::Snapshot Difference(Histogram::Snapshot later, const Histogram::Snapshot& earlier) {
  for (size_t i = 0; i < earlier.buckets.size(); ++i) later.buckets[i] -= earlier.buckets[i];
  later.count -= earlier.count;
  later.sum -= earlier.sum;
  later.max = later.Percentile(100);
  return later;
}

double PercentileUs(const Histogram::Snapshot& latencies, double percent) {
  return Microseconds(static_cast<double>(latencies.Percentile(percent)));
}

nlohmann::ordered_json LatencyJson(const Histogram::Snapshot& latencies) {
  nlohmann::ordered_json json = {{"count", latencies.count}, {"mean", Microseconds(latencies.Mean())}};
  for (const double percent : {50.0, 95.0, 99.0, 99.9, 99.99, 99.999}) {
    json[fmt::format("p{}", percent)] = PercentileUs(latencies, percent);
  }
  json["max"] = Microseconds(static_cast<double>(latencies.max));
  return json;
}

template <typename Function>
auto Client::Measure(OperationKind kind, const Function& function) {
  const int64_t start_ns = MonotonicNs();
  auto result = function();
  latencies_[static_cast<size_t>(kind)].Add(static_cast<uint64_t>(MonotonicNs() - start_ns));
  return result;
}

Status Client::Do(const Operation& operation) {
  const std::string key = KeyOf(operation.record);
  switch (operation.kind) {
    case OperationKind::kRead:
      return Read(key);
    case OperationKind::kUpdate:
    case OperationKind::kInsert:
      return Write(operation.kind, operation.record, key);
    case OperationKind::kScan:
      return Scan(key, operation.scan_records);
    case OperationKind::kReadModifyWrite:
      return ReadModifyWrite(key);
  }
  return Status::InvalidArgument("no such operation");
}

Status Client::Read(const std::string& key) {
  read_.Reset();
  const rocksdb::Status status = Measure(
      OperationKind::kRead, [&] { return db_.Get(rocksdb::ReadOptions(), db_.DefaultColumnFamily(), key, &read_); });
  ISOZONE_RETURN_IF_ERROR(FromRocksDb(status, "reading", key));
  return CheckValue(key, read_.ToStringView(), value_.size());
}

Status Client::Write(OperationKind kind, uint64_t record, const std::string& key) {
  FillValue(record, random_, &value_);
  const rocksdb::Status status = Measure(kind, [&] { return db_.Put(rocksdb::WriteOptions(), key, value_); });
  return FromRocksDb(status, "writing", key);
}

// The check of what is found is measured, too: RocksDB reads while the iterator moves.
Status Client::Scan(const std::string& key, uint64_t records) {
  return Measure(OperationKind::kScan, [&] {
    const std::unique_ptr<rocksdb::Iterator> iterator(db_.NewIterator(rocksdb::ReadOptions()));
    iterator->Seek(key);
    if (iterator->status().ok() && (!iterator->Valid() || iterator->key() != rocksdb::Slice(key))) {
      return Status::NotFound("scanning from " + key + ": it is not there");
    }
    for (uint64_t i = 0; i < records && iterator->Valid(); ++i, iterator->Next()) {
      ISOZONE_RETURN_IF_ERROR(
          CheckValue(iterator->key().ToStringView(), iterator->value().ToStringView(), value_.size()));
    }
    return FromRocksDb(iterator->status(), "scanning from", key);
  });
}

Status Client::ReadModifyWrite(const std::string& key) {
  return Measure(OperationKind::kReadModifyWrite, [&] {
    std::string value;
    ISOZONE_RETURN_IF_ERROR(FromRocksDb(db_.Get(rocksdb::ReadOptions(), key, &value), "reading", key));
    ISOZONE_RETURN_IF_ERROR(CheckValue(key, value, value_.size()));
    FillField(random_, &value);
    return FromRocksDb(db_.Put(rocksdb::WriteOptions(), key, value), "writing", key);
  });
}

}  // namespace isozone::ycsb
