#include "insight/stats/statistics_json.h"

#include <map>
#include <string>

#include "base/units.h"
#include "insight/stats/figures_json.h"

namespace isozone {
namespace {

using Json = nlohmann::ordered_json;

// In us.
Json LatencyJson(const LatencyFigures& latency) {
  const auto us = [](auto ns) { return static_cast<double>(ns) / static_cast<double>(kMicrosecondNs); };
  return {{"count", latency.count},
          {"mean", us(latency.Mean())},
          {"p50", us(latency.Percentile(50))},
          {"p99", us(latency.Percentile(99))},
          {"p99.9", us(latency.Percentile(99.9))},
          {"max", us(latency.max)}};
}

Json ClassesJson(const Statistics& statistics) {
  const RecentRates rates = RatesOf(statistics);
  Json classes = Json::object();
  for (int i = 0; i < kIoClassCount; ++i) {
    const auto io_class = static_cast<IoClass>(i);
    const auto index = static_cast<size_t>(i);
    Json figures = ClassJson(statistics.figures.by_class[index]);
    figures["bytes_read_per_second"] = rates.bytes_read[index];
    figures["bytes_written_per_second"] = rates.bytes_written[index];
    figures["read_latency_us"] = LatencyJson(statistics.Reads(io_class));
    figures["write_latency_us"] = LatencyJson(statistics.Writes(io_class));
    classes[std::string(IoClassName(io_class))] = std::move(figures);
  }
  return classes;
}

// Zones by phase and by level of the LSM tree ("none" for what is in no tree), those that hold data only.
Json ZoneCountsJson(const Statistics& statistics) {
  std::map<int, uint64_t> by_level;
  Json by_phase = Json::object();
  for (int i = 0; i <= static_cast<int>(ZonePhase::kOffline); ++i) {
    by_phase[std::string(ZonePhaseName(static_cast<ZonePhase>(i)))] = 0;
  }
  for (const PageZone& zone : statistics.zones) {
    Json& count = by_phase[std::string(ZonePhaseName(zone.phase))];
    count = count.get<uint64_t>() + 1;
    if (zone.use == ZoneUse::kData) ++by_level[zone.data.level];
  }
  Json levels = Json::object();
  for (const auto& [level, zones] : by_level) {
    levels[level == DataClass::kNoLevel ? "none" : std::to_string(level)] = zones;
  }
  return {{"by_phase", std::move(by_phase)}, {"by_level", std::move(levels)}};
}

Json StallsJson(const PageFigures& figures) {
  Json stalls = Json::array();
  for (size_t who = 0; who < kZoneWriterCount; ++who) {
    for (size_t reason = 0; reason < kWaitReasonCount; ++reason) {
      const PageStall& stall = figures.stalls[who][reason];
      if (stall.count == 0) continue;
      stalls.push_back({{"writer", ZoneWriterName(static_cast<ZoneWriter>(who))},
                        {"reason", WaitReasonName(static_cast<WaitReason>(reason))},
                        {"count", stall.count},
                        {"seconds", static_cast<double>(stall.ns) / 1e9}});
    }
  }
  return stalls;
}

Json WaitsJson(const Statistics& statistics) {
  Json waits = Json::array();
  for (const WaitView& wait : statistics.waits) {
    waits.push_back({{"writer", ZoneWriterName(wait.who)},
                     {"reason", WaitReasonName(wait.reason)},
                     {"seconds", SecondsSince(wait.since_ns, statistics.read_ns)},
                     {"text", ExplainWait(wait, statistics)}});
  }
  return waits;
}

Json EventsJson(const Statistics& statistics) {
  Json events = Json::array();
  for (const EventView& event : statistics.events) {
    const bool of_zone = event.kind == PageEventKind::kReset || event.kind == PageEventKind::kFinish ||
                         event.kind == PageEventKind::kFailure;
    events.push_back({{"number", event.number},
                      {"kind", PageEventName(event.kind)},
                      {"seconds_ago", SecondsSince(event.at_ns, statistics.read_ns)},
                      {"zone", of_zone ? Json(event.zone) : Json()},
                      {"text", DescribeEvent(event)}});
  }
  return events;
}

Json ZonesJson(const Statistics& statistics) {
  Json zones = Json::array();
  for (size_t i = 0; i < statistics.zones.size(); ++i) {
    const PageZone& zone = statistics.zones[i];
    zones.push_back({{"zone", i},
                     {"phase", ZonePhaseName(zone.phase)},
                     {"use", ZoneUseName(zone.use)},
                     {"written", uint64_t{zone.write_pointer} * statistics.block_size},
                     {"live", uint64_t{zone.live} * statistics.block_size},
                     {"lifetime", LifetimeName(zone.data.lifetime)},
                     {"level", zone.data.level == DataClass::kNoLevel ? Json() : Json(zone.data.level)},
                     {"heat", ZoneHeatName(zone.data.heat)},
                     {"writer", ZoneWriterName(zone.writer)},
                     {"victim", zone.victim},
                     {"sealed", zone.sealed},
                     {"group", zone.group}});
  }
  return zones;
}

Json RatesJson(const Statistics& statistics) {
  const RecentRates rates = RatesOf(statistics);
  Json begun = Json::object();
  for (size_t who = 1; who < kZoneWriterCount; ++who) {
    begun[std::string(ZoneWriterName(static_cast<ZoneWriter>(who)))] = rates.zones_begun[who];
  }
  return {{"seconds", rates.seconds},
          {"user_bytes_per_second", rates.user_bytes},
          {"zones_died_per_second", rates.zones_died},
          {"zones_reset_per_second", rates.zones_reset},
          {"zones_begun_per_second", std::move(begun)}};
}

// Lifetimes of which no zone was reset are left out.
Json DeletionDelaysJson(const Statistics& statistics) {
  Json delays = Json::object();
  for (int i = 0; i < kLifetimeCount; ++i) {
    const auto lifetime = static_cast<Lifetime>(i);
    const LatencyFigures& delay = statistics.DeletionDelay(lifetime);
    if (delay.count > 0) delays[std::string(LifetimeName(lifetime))] = LatencyJson(delay);
  }
  return delays;
}

Json HeadJson(const Statistics& statistics) {
  const bool mounted = statistics.life == PageLife::kMounted || statistics.life == PageLife::kDied;
  Json process;
  if (mounted) {
    process = {
        {"pid", statistics.process.pid}, {"program", statistics.process.program}, {"mounted_s", statistics.mounted_s}};
  }
  return {{"life", LifeName(statistics)},
          {"process", std::move(process)},
          {"taken_s", statistics.figures.taken_s},
          {"device", statistics.device},
          {"uuid", statistics.uuid},
          {"label", statistics.label},
          {"policy", statistics.policy},
          {"geometry",
           {{"block_size", statistics.block_size},
            {"zone_count", statistics.zones.size()},
            {"zone_size", statistics.zone_size},
            {"zone_capacity", statistics.zone_capacity},
            {"max_open_zones", statistics.max_open_zones},
            {"max_active_zones", statistics.max_active_zones},
            {"groups_measured", statistics.groups_measured}}}};
}

void PutCounters(const Statistics& statistics, Json& document) {
  PutFigures(statistics.figures, document);
  document["gc"]["scheme"] = statistics.gc_scheme;
  document["write_amplification"] = statistics.figures.WriteAmplification();
  document["classes"] = ClassesJson(statistics);
  document["zone_wait_us"] = LatencyJson(statistics.Latency(PageHistogramId::kZoneWait));
  document["write_gap_wait_us"] = LatencyJson(statistics.Latency(PageHistogramId::kWriteGapWait));
  document["pace_wait_us"] = LatencyJson(statistics.Latency(PageHistogramId::kPaceWait));
  document["deletion_delay_us"] = DeletionDelaysJson(statistics);
}

}  // namespace

std::string_view LifeName(const Statistics& statistics) {
  switch (statistics.life) {
    case PageLife::kMounted:
      return "mounted";
    case PageLife::kUnmounted:
      return "not-mounted";
    case PageLife::kDied:
      return "died";
  }
  return "not-mounted";
}

Json StatisticsJson(const Statistics& statistics, bool zones) {
  Json document = HeadJson(statistics);
  PutCounters(statistics, document);
  document["zones_now"] = ZoneCountsJson(statistics);
  document["rates"] = RatesJson(statistics);
  document["waits"] = WaitsJson(statistics);
  document["stalls"] = StallsJson(statistics.figures);
  Json groups = Json::array();
  for (const GroupQueue& group : statistics.groups) {
    groups.push_back({{"at_device", group.at_device}, {"waiting", group.waiting}});
  }
  document["groups"] = std::move(groups);
  document["events"] = EventsJson(statistics);
  Json messages = Json::array();
  for (const MessageView& message : statistics.messages) {
    messages.push_back({{"number", message.number}, {"at_s", message.at_s}, {"text", message.text}});
  }
  document["messages"] = std::move(messages);
  document["zones"] = zones ? ZonesJson(statistics) : Json();
  return document;
}

}  // namespace isozone
