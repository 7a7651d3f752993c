#include "adapter/stats_json.h"

#include <nlohmann/json.hpp>

#include "base/histogram.h"
#include "base/units.h"
#include "io/io_class.h"
#include "zone/lifetime.h"

namespace isozone {
namespace {

using Json = nlohmann::ordered_json;

Json Latency(const Histogram::Snapshot& ns) {
  const auto microseconds = [](double value_ns) { return value_ns / static_cast<double>(kMicrosecondNs); };
  const auto percentile = [&](double percent) { return microseconds(static_cast<double>(ns.Percentile(percent))); };
  return {{"count", ns.count},         {"mean", microseconds(ns.Mean())},
          {"p50", percentile(50)},     {"p99", percentile(99)},
          {"p99.9", percentile(99.9)}, {"max", microseconds(static_cast<double>(ns.max))}};
}

Json Classes(const FileSystemStats& stats) {
  Json classes = Json::object();
  for (int i = 0; i < kIoClassCount; ++i) {
    const ClassStats& c = stats.by_class[static_cast<size_t>(i)];
    classes[std::string(IoClassName(static_cast<IoClass>(i)))] = {{"bytes_read", c.bytes_read},
                                                                  {"bytes_written", c.bytes_written},
                                                                  {"reads", c.reads},
                                                                  {"writes", c.writes},
                                                                  {"read_latency_us", Latency(c.read_latency_ns)},
                                                                  {"write_latency_us", Latency(c.write_latency_ns)}};
  }
  return classes;
}

Json Gc(const GcStats& gc) {
  return {{"scheme", gc.scheme},
          {"rounds", gc.rounds},
          {"zones", gc.copies.zones},
          {"skipped", gc.copies.skipped_zones},
          {"failed", gc.copies.failed_zones},
          {"bytes_read", gc.copies.bytes_read},
          {"bytes_copied", gc.copies.bytes_copied},
          {"bytes_dropped", gc.copies.bytes_dropped},
          {"bytes_reclaimed", gc.copies.bytes_reclaimed},
          {"read_errors", gc.copies.read_errors},
          {"mismatches", gc.copies.mismatches},
          {"space_waits", gc.space_waits},
          {"urgency", gc.urgency}};
}

// From the removal of a file's last name to the reset of a zone that it lay in, by lifetime.
Json DeletionDelaysJson(const FileSystemStats& stats) {
  Json delays = Json::object();
  for (size_t i = 0; i < stats.deletion_delays_ns.size(); ++i) {
    const Histogram::Snapshot& ns = stats.deletion_delays_ns[i];
    if (ns.count > 0) delays[std::string(LifetimeName(static_cast<Lifetime>(i)))] = Latency(ns);
  }
  return delays;
}

}  // namespace

std::string StatsJson(const FileSystem& fs) {
  const FileSystemStats stats = fs.state().Stats();
  const SpaceInfo space = fs.state().Space();
  const Json json = {
      {"device", fs.state().device().name()},
      {"policy", fs.state().options().policy},
      {"read_only_reason", fs.state().read_only_reason()},
      {"user_bytes_appended", stats.user_bytes_appended},
      {"write_amplification", stats.WriteAmplification()},
      {"classes", Classes(stats)},
      {"syncs", stats.syncs},
      {"journal_commits", stats.journal_commits},
      {"journal_bytes", stats.journal_bytes},
      {"checkpoints", stats.checkpoints},
      {"write_retries", stats.write_retries},
      {"refused_writes", stats.refused_writes},
      {"zone_resets", stats.zone_resets},
      {"reset_zones_written_percent",
       {{"mean", stats.reset_written_percent.Mean()},
        {"p10", stats.reset_written_percent.Percentile(10)},
        {"p50", stats.reset_written_percent.Percentile(50)}}},
      {"zone_finishes", stats.zone_finishes},
      {"zone_wait_us", Latency(stats.zone_wait_ns)},
      {"write_gap_wait_us", Latency(stats.write_gap_wait_ns)},
      {"pace_wait_us", Latency(stats.pace_wait_ns)},
      {"mixed_classes", stats.mixed_classes},
      {"mixed_cohorts", stats.mixed_cohorts},
      {"in_place_writes", stats.in_place_writes},
      {"in_place_bytes", stats.in_place_bytes},
      {"gc", Gc(stats.gc)},
      {"deletion_delay_us", DeletionDelaysJson(stats)},
      {"space",
       {{"capacity_bytes", space.capacity},
        {"live_bytes", space.live},
        {"dead_bytes", space.dead},
        {"metadata_bytes", space.metadata},
        {"free_bytes", space.free},
        {"reserved_bytes", space.reserved},
        {"zones", space.zones},
        {"empty_zones", space.empty_zones},
        {"active_zones", space.active_zones},
        {"full_zones", space.full_zones},
        {"unusable_zones", space.unusable_zones}}},
      {"device_lifetime",
       {{"host_bytes_read", stats.device.host_bytes_read},
        {"host_bytes_written", stats.device.host_bytes_written},
        {"media_bytes_written", stats.device.media_bytes_written},
        {"dummy_bytes_written", stats.device.dummy_bytes_written},
        {"resets", stats.device.resets},
        {"finishes", stats.device.finishes}}},
  };
  return json.dump(2) + "\n";
}

}  // namespace isozone
