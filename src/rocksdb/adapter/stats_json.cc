#include "rocksdb/adapter/stats_json.h"

#include "base/byte_text.h"
#include "insight/stats/figures_json.h"
#include "store/io/io_class.h"
#include "store/zone/lifetime.h"

namespace isozone {
namespace {

using Json = nlohmann::ordered_json;

Json Classes(const FileSystemStats& stats) {
  Json classes = Json::object();
  for (size_t i = 0; i < kIoClassCount; ++i) {
    Json io_class = ClassJson(stats.by_class[i]);
    io_class["read_latency_us"] = LatencyJson(stats.read_latencies_ns[i]);
    io_class["write_latency_us"] = LatencyJson(stats.write_latencies_ns[i]);
    classes[std::string(IoClassName(static_cast<IoClass>(i)))] = std::move(io_class);
  }
  return classes;
}

// From the removal of a file's last name to the reset of a zone that it lay in, by lifetime.
Json DeletionDelaysJson(const FileSystemStats& stats) {
  Json delays = Json::object();
  for (size_t i = 0; i < stats.deletion_delays_ns.size(); ++i) {
    const Histogram::Snapshot& ns = stats.deletion_delays_ns[i];
    if (ns.count > 0) delays[std::string(LifetimeName(static_cast<Lifetime>(i)))] = LatencyJson(ns);
  }
  return delays;
}

}  // namespace

Json StatsJson(const FileSystemStats& stats) {
  Json json;
  PutFigures(stats, false, json);
  json["write_amplification"] = stats.WriteAmplification();
  json["classes"] = Classes(stats);
  json["reset_zones_written_percent"] = {{"mean", stats.reset_written_percent.Mean()},
                                         {"p10", stats.reset_written_percent.Percentile(10)},
                                         {"p50", stats.reset_written_percent.Percentile(50)}};
  json["zone_wait_us"] = LatencyJson(stats.zone_wait_ns);
  json["write_gap_wait_us"] = LatencyJson(stats.write_gap_wait_ns);
  json["pace_wait_us"] = LatencyJson(stats.pace_wait_ns);
  json["gc"]["scheme"] = stats.gc.scheme;
  json["deletion_delay_us"] = DeletionDelaysJson(stats);
  return json;
}

std::string StatsJson(const FileSystem& fs) {
  const FileSystemState& state = fs.state();
  Json json = {{"device", state.device().name()},
               {"policy", state.options().policy},
               {"read_only_reason", state.read_only_reason()}};
  json.update(StatsJson(state.Stats()));
  return JsonText(std::move(json), 2) + "\n";
}

}  // namespace isozone
