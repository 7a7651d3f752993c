#include "isozone/output/statistics_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/units.h"
#include "base/uri.h"
#include "isozone/output/console.h"
#include "isozone/output/report.h"

namespace isozone::cli {
namespace {

constexpr size_t kMostEvents = 8;
constexpr size_t kLabelWidth = 12;

class Lines {
 public:
  void Add(std::string_view label, std::string text) {
    lines_.push_back({fmt::format("{:<{}}{}", label, kLabelWidth, text), label.size()});
  }
  void Heading(std::string text) {
    const size_t length = text.size();
    lines_.push_back({std::move(text), length});
  }
  void Plain(std::string text) { lines_.push_back({std::move(text), 0}); }
  void Blank() { lines_.push_back({}); }
  std::vector<ViewLine> Take() { return std::move(lines_); }

 private:
  std::vector<ViewLine> lines_;
};

// "12.3 MiB/s"; "-" for nothing.
std::string Rate(double bytes_per_second) {
  return bytes_per_second < 1 ? "-" : FormatSize(static_cast<uint64_t>(bytes_per_second)) + "/s";
}

// "870 us", "1.2 ms".
std::string Duration(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.0f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.1f} ms", ns / 1e6);
  return fmt::format("{:.1f} s", ns / 1e9);
}

std::string Clocked(uint64_t seconds) {
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

uint64_t Rise(uint64_t before, uint64_t now) { return now >= before ? now - before : 0; }

// Throughput between two looks, or of the last seconds.
RecentRates RatesBetween(const Statistics& now, const Statistics* before) {
  if (before == nullptr) return RatesOf(now);
  Statistics pair = now;
  pair.history = {before->figures};
  const RecentRates rates = RatesOf(pair);
  return rates.seconds > 0 ? rates : RatesOf(now);
}

void AddHead(const Statistics& now, Lines& lines) {
  const std::string label = now.label.empty() ? "" : fmt::format(" \"{}\"", Printable(now.label));
  lines.Heading(Printable(now.device) + label);
  std::string who = "not mounted";
  if (now.life != PageLife::kUnmounted || now.process.pid != 0) {
    const auto seconds = Rise(now.mounted_s, now.figures.taken_s);
    who = fmt::format("{} (process {}), mounted for {}", Printable(now.process.program), now.process.pid,
                      Clocked(seconds));
    if (now.life == PageLife::kDied) who += ", then ended without unmounting";
  }
  lines.Add("Mount", fmt::format("{}; policy {}, GC {}{}", who, Printable(now.policy), Printable(now.gc_scheme),
                                 now.figures.read_only != 0 ? "; READ-ONLY after a failed write" : ""));
}

// A bar of `width` characters: live #, dead =, metadata m, free blank.
std::string Bar(const PageFigures& figures, size_t width) {
  std::string bar;
  const auto add = [&](uint64_t bytes, char c) {
    const double share = figures.capacity == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(figures.capacity);
    const auto columns = static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
    bar.append(std::min(columns, width - bar.size()), c);
  };
  add(figures.live, '#');
  add(figures.dead, '=');
  add(figures.metadata, 'm');
  bar.append(width - bar.size(), ' ');
  return "[" + bar + "]";
}

void AddSpace(const Statistics& now, size_t width, Lines& lines) {
  const PageFigures& f = now.figures;
  lines.Add("Space", fmt::format("{} live, {} dead, {} metadata, {} reserved, {} free ({}) of {}", FormatSize(f.live),
                                 FormatSize(f.dead), FormatSize(f.metadata), FormatSize(f.reserved), FormatSize(f.free),
                                 FormatShare(f.free, f.capacity), FormatSize(f.capacity)));
  const size_t columns = std::clamp<size_t>(width, kLabelWidth + 20, kLabelWidth + 82) - kLabelWidth - 2;
  lines.Add("", Bar(f, columns) + "  # live  = dead  m metadata");
  if (f.held_by_readers > 0) {
    lines.Add("Readers", fmt::format("other processes still read in zones that hold {} of what is dead; isozone why "
                                     "names them",
                                     FormatSize(f.held_by_readers)));
  }
  std::array<uint64_t, static_cast<size_t>(ZonePhase::kOffline) + 1> phases{};
  std::map<int, uint64_t> levels;
  for (const PageZone& zone : now.zones) {
    ++phases[static_cast<size_t>(zone.phase)];
    if (zone.use == ZoneUse::kData && zone.write_pointer > 0) ++levels[zone.data.level];
  }
  std::string zones;
  for (size_t i = 0; i < phases.size(); ++i) {
    if (phases[i] == 0) continue;
    zones += fmt::format("{}{} {}", zones.empty() ? "" : ", ", phases[i], ZonePhaseName(static_cast<ZonePhase>(i)));
  }
  lines.Add("Zones", fmt::format("{} of {} each", zones, FormatSize(now.zone_capacity)));
  std::string by_level;
  for (const auto& [level, count] : levels) {
    by_level += fmt::format("{}{} {}", by_level.empty() ? "" : ", ",
                            level == DataClass::kNoLevel ? "no level" : fmt::format("L{}", level), count);
  }
  lines.Add("Levels", by_level.empty() ? "no zone holds data" : by_level);
  const std::string limit = now.max_active_zones == 0 ? "" : fmt::format(" of {}", now.max_active_zones);
  lines.Add("Active", fmt::format("{}{}: {} metadata, {} log, {} GC, {} data, {} others", f.active_zones, limit,
                                  f.active_metadata, f.active_log, f.active_gc, f.active_data, f.active_others));
}

void AddClasses(const Statistics& now, const Statistics* before, const RecentRates& rates, Lines& lines) {
  lines.Blank();
  lines.Heading(fmt::format("{:<17}{:>13}{:>13}{:>11}{:>10}{:>10}{:>11}{:>10}{:>10}", "CLASS", "READ", "WRITTEN",
                            "READS", "p50", "p99", "WRITES", "p50", "p99"));
  for (int i = 0; i < kIoClassCount; ++i) {
    const auto c = static_cast<IoClass>(i);
    const auto index = static_cast<size_t>(i);
    const LatencyFigures reads = before == nullptr ? now.Reads(c) : now.Reads(c).Since(before->Reads(c));
    const LatencyFigures writes = before == nullptr ? now.Writes(c) : now.Writes(c).Since(before->Writes(c));
    const auto time = [](const LatencyFigures& of, double percent) {
      return of.count == 0 ? std::string("-") : Duration(of.Percentile(percent));
    };
    lines.Plain(fmt::format("{:<17}{:>13}{:>13}{:>11}{:>10}{:>10}{:>11}{:>10}{:>10}", IoClassName(c),
                            Rate(rates.bytes_read[index]), Rate(rates.bytes_written[index]), reads.count,
                            time(reads, 50), time(reads, 99), writes.count, time(writes, 50), time(writes, 99)));
  }
}

void AddWork(const Statistics& now, const Statistics* before, const RecentRates& rates, Lines& lines) {
  const PageFigures& f = now.figures;
  lines.Blank();
  std::string since;
  if (before != nullptr && f.user_bytes_appended > before->figures.user_bytes_appended) {
    const uint64_t written = Rise(before->figures.DeviceBytesWritten(), f.DeviceBytesWritten());
    since = fmt::format(", {:.2f} now",
                        static_cast<double>(written) /
                            static_cast<double>(f.user_bytes_appended - before->figures.user_bytes_appended));
  }
  lines.Add("Written", fmt::format("{} ({}); write amplification {:.2f}{}", FormatSize(f.user_bytes_appended),
                                   Rate(rates.user_bytes), f.WriteAmplification(), since));
  lines.Add("Zone flow", fmt::format("{:.1f} a second die, {:.1f} are reset, {:.1f} are begun", rates.zones_died,
                                     rates.zones_reset, rates.AllBegun()));
  const auto held = [&](ZoneWriter who) { return std::ranges::count(now.zones, who, &PageZone::writer); };
  lines.Add("Compaction", fmt::format("reads {}, writes {}, holds {} zones",
                                      Rate(rates.bytes_read[static_cast<size_t>(IoClass::kCompactionRead)]),
                                      Rate(rates.bytes_written[static_cast<size_t>(IoClass::kCompactionWrite)]),
                                      held(ZoneWriter::kCompaction)));
  const std::string work =
      f.gc_working == 0
          ? "rests"
          : fmt::format("empties {} zones, {} of {} copied, urgency {:.2f}",
                        std::ranges::count(now.zones, true, &PageZone::victim), FormatSize(f.gc_round_copied),
                        FormatSize(f.gc_round_to_copy), static_cast<double>(f.gc_urgency_ppm) / 1e6);
  lines.Add("GC", fmt::format("{}; so far {} rounds, {} zones, {} copied, {} gained", work, f.gc_rounds, f.gc_zones,
                              FormatSize(f.gc_bytes_copied), FormatSize(f.gc_bytes_reclaimed)));
}

// As many groups as fit: requests at the device, and those that wait behind "+".
void AddQueues(const Statistics& now, size_t width, Lines& lines) {
  std::string text;
  for (size_t group = 0; group < now.groups.size(); ++group) {
    const std::string one =
        fmt::format("{}{}+{}", text.empty() ? "" : " ", now.groups[group].at_device, now.groups[group].waiting);
    if (kLabelWidth + text.size() + one.size() + 4 > width) {
      text += " ...";
      break;
    }
    text += one;
  }
  lines.Add("Queues", text);
}

void AddWaits(const Statistics& now, Lines& lines) {
  if (now.waits.empty()) lines.Add("Waits", "nobody waits for a zone or for space");
  for (const WaitView& wait : now.waits) lines.Add(&wait == &now.waits[0] ? "Waits" : "", ExplainWait(wait, now));
}

// What the death of the process would leave to the next mount (store/kept), and whether writers outrun the device.
void AddKeptMemory(const Statistics& now, Lines& lines) {
  const PageFigures& f = now.figures;
  if (now.life == PageLife::kUnmounted) return;
  if (f.kept_memory == 0) {
    lines.Add("Memory", "no shared memory: the device has each write of a log before its flush returns");
    return;
  }
  const std::string waits = f.kept_memory_waits == 0 ? "no append had to wait for room"
                                                     : fmt::format("{} appends waited for room", f.kept_memory_waits);
  lines.Add("Memory", fmt::format("{} of {} shared memory hold what the device does not have yet; {}",
                                  FormatSize(f.kept_memory_used), FormatSize(f.kept_memory), waits));
}

void AddEvents(const Statistics& now, Lines& lines) {
  lines.Blank();
  const size_t first = now.events.size() > kMostEvents ? now.events.size() - kMostEvents : 0;
  for (size_t i = now.events.size(); i-- > first;) {
    const EventView& event = now.events[i];
    const auto ago = static_cast<double>(now.read_ns) - static_cast<double>(event.at_ns);
    lines.Add(i + 1 == now.events.size() ? "Events" : "",
              fmt::format("{:>8} ago  {}", Duration(std::max(0.0, ago)), DescribeEvent(event)));
  }
  for (const MessageView& message : now.messages) {
    lines.Add(&message == &now.messages[0] ? "Errors" : "",
              fmt::format("{}  {}", FormatTime(message.at_s), Printable(message.text)));
  }
}

}  // namespace

std::vector<ViewLine> StatisticsView(const Statistics& now, const Statistics* before, size_t width) {
  Lines lines;
  const RecentRates rates = RatesBetween(now, before);
  AddHead(now, lines);
  AddSpace(now, width, lines);
  AddWaits(now, lines);
  AddKeptMemory(now, lines);
  AddClasses(now, before, rates, lines);
  AddWork(now, before, rates, lines);
  AddQueues(now, width, lines);
  AddEvents(now, lines);
  return lines.Take();
}

}  // namespace isozone::cli
