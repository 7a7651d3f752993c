#include "isozone/output/simulation_report.h"

#include <algorithm>
#include <string>

#include "base/uri.h"
#include "isozone/output/report.h"
#include "isozone/output/table.h"

namespace isozone::cli {
namespace {

constexpr uint32_t kLongestBar = 40;  // characters

double Seconds(int64_t duration_ns) { return static_cast<double>(duration_ns) / kSecondNs; }

double PerSecond(uint64_t bytes, int64_t duration_ns) {
  return duration_ns == 0 ? 0 : static_cast<double>(bytes) / Seconds(duration_ns);
}

std::string RateText(uint64_t bytes, int64_t duration_ns) {
  return fmt::format("{}/s", FormatSize(static_cast<uint64_t>(PerSecond(bytes, duration_ns))));
}

std::string StallText(int64_t stalled_ns, int64_t total_ns) {
  const double share = total_ns == 0 ? 0 : 100 * static_cast<double>(stalled_ns) / static_cast<double>(total_ns);
  return fmt::format("{:.1f} s, {:.1f} %", Seconds(stalled_ns), share);
}

std::string WrittenText(uint64_t bytes, uint64_t put_bytes) {
  const double times = put_bytes == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(put_bytes);
  return fmt::format("{}, {:.2f}x", FormatSize(bytes), times);
}

void PrintLoad(const SimReport& report, Console& console) {
  Facts facts("Load");
  facts.Add("Put", fmt::format("{} in {:.1f} s, {}", FormatSize(report.put_bytes), Seconds(report.put_ns),
                               RateText(report.put_bytes, report.put_ns)));
  facts.Add("Stalled by memtables", StallText(report.stalls.memtables_ns, report.put_ns));
  facts.Add("Slowed by level 0", StallText(report.stalls.slowdown_ns, report.put_ns));
  facts.Add("Stopped by level 0", StallText(report.stalls.level0_ns, report.put_ns));
  facts.Add("Stopped by pending compaction", StallText(report.stalls.pending_ns, report.put_ns));
  facts.Add("Stalled by the log", StallText(report.stalls.log_ns, report.put_ns));
  facts.Add("Paced for space", StallText(report.stalls.pace_ns, report.put_ns));
  facts.Add("Settled after", fmt::format("{:.1f} s", Seconds(report.settled_ns)));
  facts.Print(console);
}

void PrintWritten(const SimReport& report, Console& console) {
  Facts facts("Written, and times what was put");
  facts.Add("Log", WrittenText(report.log_bytes, report.put_bytes));
  facts.Add("Flushes", WrittenText(report.flush_bytes, report.put_bytes));
  facts.Add("Compactions", fmt::format("{}; {} of {} files at most, {} files moved",
                                       WrittenText(report.compaction_bytes, report.put_bytes), report.compactions,
                                       report.largest_compaction_files, report.moved_files));
  facts.Add("Of these short-lived", fmt::format("{}, {}", FormatSize(report.short_lived_bytes),
                                                FormatShare(report.short_lived_bytes, report.compaction_bytes)));
  facts.Add("GC", fmt::format("{}; {} zones, {} in vain",
                              WrittenText(report.copied_bytes + report.dropped_bytes, report.put_bytes),
                              report.collected_zones, FormatSize(report.dropped_bytes)));
  facts.Add("Amplification",
            fmt::format("{:.2f} = compaction {:.2f} x GC {:.2f} x device {:.2f}", report.write_amplification(),
                        report.compaction_amplification(), report.gc_amplification(), report.device_amplification()));
  facts.Print(console);
}

void PrintSpace(const SimReport& report, Console& console) {
  Facts facts("Space at the end");
  facts.Add("Live records", FormatSize(report.live_bytes));
  facts.Add("Tables", fmt::format("{} files, {}, {:.2f}x", report.files, FormatSize(report.file_bytes),
                                  report.table_space_amplification()));
  facts.Add("Zones in use", fmt::format("{} of {}, {:.2f}x; {} at most", report.end.zones_in_use, report.zones,
                                        report.zone_space_amplification(), report.zones_in_use_most));
  facts.Add("Resets, finishes",
            fmt::format("{}, {}; {} dummy bytes", report.resets, report.finishes, FormatSize(report.dummy_bytes)));
  facts.Print(console);
}

void PrintUtilisation(const SimReport& report, Console& console) {
  const uint32_t most = std::max(1U, *std::ranges::max_element(report.end.zones));
  console.Print("{}\n", console.Bold("Zones in use, by the share of them that lives"));
  for (size_t tenth = 0; tenth < report.end.zones.size(); ++tenth) {
    const uint32_t zones = report.end.zones[tenth];
    const std::string bar(zones * kLongestBar / most, '#');
    console.Print("  {:>3} - {:>3} %  {:>6}  {}\n", tenth * 10, tenth * 10 + 10, zones, bar);
  }
}

Json SampleJson(const SimSample& sample) {
  return {{"seconds", Seconds(sample.time_ns)},          {"put_bytes", sample.put_bytes},
          {"compaction_bytes", sample.compaction_bytes}, {"copied_bytes", sample.copied_bytes},
          {"zones_in_use", sample.zones_in_use},         {"free_percent", sample.free_percent},
          {"zones_by_utilisation", sample.zones}};
}

Json SetupJson(const SimOptions& options, const SimReport& report) {
  const SimDevice& device = options.device;
  return {{"profile", device.profile.name},
          {"zones", report.zones},
          {"zone_capacity", report.zone_capacity},
          {"policy", device.policy},
          {"gc", device.gc},
          {"compaction", options.tree.picker},
          {"t_zone", device.t_zone},
          {"steering", options.tree.steering.has_value()},
          {"data_bytes", options.load.data_bytes},
          {"record_bytes", options.load.record_bytes},
          {"table_bytes", options.tree.limits.table_bytes},
          {"seed", options.load.seed}};
}

}  // namespace

void PrintSimulation(const SimOptions& options, const SimReport& report, Console& console) {
  const SimDevice& device = options.device;
  Facts facts("Simulated");
  facts.Add("Device",
            fmt::format("{}: {} zones of {}", device.profile.name, report.zones, FormatSize(report.zone_capacity)));
  facts.Add("Placement, GC", fmt::format("{}, {}", device.policy, device.gc));
  facts.Add("Compaction",
            fmt::format("{}{}, short-lived tables {}", options.tree.picker, options.tree.steering ? ", steered" : "",
                        device.t_zone ? "apart" : "with the others"));
  facts.Print(console);
  console.Print("\n");
  PrintLoad(report, console);
  console.Print("\n");
  PrintWritten(report, console);
  console.Print("\n");
  PrintSpace(report, console);
  console.Print("\n");
  PrintUtilisation(report, console);
}

Json SimulationJson(const SimOptions& options, const SimReport& report) {
  Json samples = Json::array();
  for (const SimSample& sample : report.samples) samples.push_back(SampleJson(sample));
  return {{"setup", SetupJson(options, report)},
          {"put_bytes", report.put_bytes},
          {"put_seconds", Seconds(report.put_ns)},
          {"put_bytes_per_second", PerSecond(report.put_bytes, report.put_ns)},
          {"settled_seconds", Seconds(report.settled_ns)},
          {"stall_seconds",
           {{"memtables", Seconds(report.stalls.memtables_ns)},
            {"slowdown", Seconds(report.stalls.slowdown_ns)},
            {"level0", Seconds(report.stalls.level0_ns)},
            {"pending", Seconds(report.stalls.pending_ns)},
            {"log", Seconds(report.stalls.log_ns)},
            {"pace", Seconds(report.stalls.pace_ns)}}},
          {"space_wait_seconds", Seconds(report.space_wait_ns)},
          {"written_bytes",
           {{"log", report.log_bytes},
            {"flush", report.flush_bytes},
            {"compaction", report.compaction_bytes},
            {"short_lived", report.short_lived_bytes},
            {"copied", report.copied_bytes},
            {"dropped", report.dropped_bytes},
            {"media", report.media_bytes},
            {"dummy", report.dummy_bytes}}},
          {"read_bytes", {{"compaction", report.compaction_read_bytes}, {"collection", report.gc_read_bytes}}},
          {"write_amplification",
           {{"compaction", report.compaction_amplification()},
            {"collection", report.gc_amplification()},
            {"device", report.device_amplification()},
            {"total", report.write_amplification()}}},
          {"space_amplification",
           {{"tables", report.table_space_amplification()}, {"zones", report.zone_space_amplification()}}},
          {"compactions", report.compactions},
          {"largest_compaction_files", report.largest_compaction_files},
          {"moved_files", report.moved_files},
          {"collected_zones", report.collected_zones},
          {"resets", report.resets},
          {"finishes", report.finishes},
          {"live_bytes", report.live_bytes},
          {"files", report.files},
          {"file_bytes", report.file_bytes},
          {"zones_in_use_most", report.zones_in_use_most},
          {"end", SampleJson(report.end)},
          {"samples", samples}};
}

}  // namespace isozone::cli
