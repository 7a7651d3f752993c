#include "isozone/output/prometheus.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "base/byte_text.h"
#include "base/units.h"
#include "insight/stats/statistics_json.h"

namespace isozone::cli {
namespace {

// A value of a label, quoted: any bytes, none of them a control character.
std::string Quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : TextOfBytes(value, ControlCharacters::kEscaped)) {
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text + '"';
}

double Seconds(uint64_t ns) { return static_cast<double>(ns) / static_cast<double>(kSecondNs); }

double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Writes metrics, family by family.
class Metrics {
 public:
  explicit Metrics(std::span<const Statistics> mounts) : mounts_(mounts) {}

  using Value = std::function<double(const Statistics&)>;
  // `write` is called for each mount, and writes its samples by Sample.
  void Family(std::string_view name, std::string_view type, std::string_view help,
              const std::function<void(const Statistics&)>& write) {
    name_ = name;
    Append("# HELP isozone_{} {}\n# TYPE isozone_{} {}\n", name, help, name, type);
    for (const Statistics& mount : mounts_) {
      device_ = Quoted(mount.device);
      write(mount);
    }
  }
  // A sample of the same family, of a device that is not mounted.
  void SampleOf(std::string_view device, double value) {
    device_ = Quoted(device);
    Sample(value);
  }
  // `labels`: `,name="value"` each.
  void Sample(double value, std::string_view labels = {}, std::string_view suffix = {}) {
    Append("isozone_{}{}{{device={}{}}} {}\n", name_, suffix, device_, labels, value);
  }
  void Count(uint64_t value, std::string_view labels = {}, std::string_view suffix = {}) {
    Append("isozone_{}{}{{device={}{}}} {}\n", name_, suffix, device_, labels, value);
  }

  void Gauge(std::string_view name, std::string_view help, const Value& value) {
    Family(name, "gauge", help, [&](const Statistics& mount) { Sample(value(mount)); });
  }
  // A bucket for each power of two.
  void Histogram(const LatencyFigures& latency, std::string_view labels) {
    uint64_t below = 0;
    for (int i = 0; i < PageHistogram::kBuckets; ++i) {
      below += latency.buckets[static_cast<size_t>(i)];
      if (i % PageHistogram::kSubBuckets != 0 || i + 1 == PageHistogram::kBuckets) continue;
      Count(below, fmt::format("{},le=\"{}\"", labels, Seconds(PageHistogram::EndOf(i))), "_bucket");
    }
    Count(below, fmt::format("{},le=\"+Inf\"", labels), "_bucket");
    Sample(Seconds(latency.sum), labels, "_sum");
    Count(below, labels, "_count");
  }

  std::string Take() { return std::move(text_); }

 private:
  template <typename... Args>
  void Append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  const std::span<const Statistics> mounts_;
  std::string name_;
  std::string device_;
  std::string text_;
};

std::string ClassLabel(int io_class) {
  return fmt::format(",class=\"{}\"", IoClassName(static_cast<IoClass>(io_class)));
}

// What FigureTable lists.
void PutFigures(Metrics& metrics) {
  for (const Figure& figure : FigureTable()) {
    if (figure.metric.empty()) continue;
    const std::string_view type = figure.metric.ends_with("_total") ? "counter" : "gauge";
    metrics.Family(figure.metric, type, figure.help, [&](const Statistics& mount) {
      if (figure.unit == FigureUnit::kMillionths) return metrics.Sample(figure.Of(mount.figures));
      metrics.Count(mount.figures.*figure.value);
    });
  }
}

void PutMount(Metrics& metrics) {
  metrics.Family("mount_info", "gauge", "What is mounted, by whom; always 1.", [&](const Statistics& mount) {
    metrics.Sample(1, fmt::format(",uuid={},label={},policy={},gc_scheme={},life={},program={}", Quoted(mount.uuid),
                                  Quoted(mount.label), Quoted(mount.policy), Quoted(mount.gc_scheme),
                                  Quoted(LifeName(mount)), Quoted(mount.process.program)));
  });
  metrics.Gauge("mounted", "Whether a process has the device mounted.",
                [](const Statistics& mount) { return mount.life == PageLife::kMounted ? 1 : 0; });
  metrics.Gauge("mount_start_time_seconds", "When it was mounted, in seconds since 1970; 0 if it is not.",
                [](const Statistics& mount) { return static_cast<double>(mount.mounted_s); });
}

void PutClasses(Metrics& metrics) {
  const auto by_class = [&](std::string_view name, std::string_view help, uint64_t PageClass::*figure) {
    metrics.Family(name, "counter", help, [&](const Statistics& mount) {
      for (int c = 0; c < kIoClassCount; ++c) {
        metrics.Count(mount.figures.by_class[static_cast<size_t>(c)].*figure, ClassLabel(c));
      }
    });
  };
  by_class("read_bytes_total", "Bytes read from the device, by class of I/O.", &PageClass::bytes_read);
  by_class("written_bytes_total", "Bytes written to the device, by class of I/O.", &PageClass::bytes_written);
  metrics.Family("read_duration_seconds", "histogram", "How long reads took, by class of I/O.",
                 [&](const Statistics& mount) {
                   for (int c = 0; c < kIoClassCount; ++c) {
                     metrics.Histogram(mount.Reads(static_cast<IoClass>(c)), ClassLabel(c));
                   }
                 });
  metrics.Family("write_duration_seconds", "histogram", "How long writes took, by class of I/O.",
                 [&](const Statistics& mount) {
                   for (int c = 0; c < kIoClassCount; ++c) {
                     metrics.Histogram(mount.Writes(static_cast<IoClass>(c)), ClassLabel(c));
                   }
                 });
  metrics.Gauge("write_amplification_ratio",
                "Bytes written to the device for each byte that programs wrote, since the mount.",
                [](const Statistics& mount) { return mount.figures.WriteAmplification(); });
}

void PutWaits(Metrics& metrics) {
  const auto wait = [&](std::string_view name, std::string_view help, PageHistogramId id) {
    metrics.Family(name, "histogram", help, [&](const Statistics& mount) { metrics.Histogram(mount.Latency(id), ""); });
  };
  wait("zone_wait_seconds", "How long those who asked for a zone waited, if they did.", PageHistogramId::kZoneWait);
  wait("write_gap_wait_seconds", "How long background writes kept back while users read.",
       PageHistogramId::kWriteGapWait);
  wait("pace_wait_seconds", "How long users were slowed while space was short.", PageHistogramId::kPaceWait);
  const auto by_reason = [&](std::string_view name, std::string_view help,
                             const std::function<double(const PageStall&)>& value) {
    metrics.Family(name, "counter", help, [&](const Statistics& mount) {
      for (size_t who = 1; who < kZoneWriterCount; ++who) {
        for (size_t why = 0; why < kWaitReasonCount; ++why) {
          metrics.Sample(value(mount.figures.stalls[who][why]),
                         fmt::format(",writer=\"{}\",reason=\"{}\"", ZoneWriterName(static_cast<ZoneWriter>(who)),
                                     WaitReasonName(static_cast<WaitReason>(why))));
        }
      }
    });
  };
  by_reason("stalls_total", "Waits for zones and space that have ended, by who waited for what.",
            [](const PageStall& stall) { return static_cast<double>(stall.count); });
  by_reason("stall_seconds_total", "How long they took in all.",
            [](const PageStall& stall) { return Seconds(stall.ns); });
  metrics.Gauge("waiting_writers", "Writers that wait for a zone or for space now.",
                [](const Statistics& mount) { return static_cast<double>(mount.waits.size()); });
}

void PutSpace(Metrics& metrics) {
  metrics.Gauge("free_ratio", "The part of the capacity that can be written now.",
                [](const Statistics& mount) { return Ratio(mount.figures.free, mount.figures.capacity); });
  metrics.Family("zones", "gauge", "Zones, by what is done with them.", [&](const Statistics& mount) {
    std::array<uint64_t, static_cast<size_t>(ZonePhase::kOffline) + 1> zones{};
    for (const PageZone& zone : mount.zones) ++zones[static_cast<size_t>(zone.phase)];
    for (size_t phase = 0; phase < zones.size(); ++phase) {
      metrics.Count(zones[phase], fmt::format(",phase=\"{}\"", ZonePhaseName(static_cast<ZonePhase>(phase))));
    }
  });
  metrics.Family(
      "active_zones", "gauge", "Zones that are active on the device, by who has them.", [&](const Statistics& mount) {
        constexpr std::string_view kSection = "active_zones.";
        for (const Figure& figure : FigureTable()) {
          if (!figure.key.starts_with(kSection)) continue;
          metrics.Count(mount.figures.*figure.value, fmt::format(",owner=\"{}\"", figure.key.substr(kSection.size())));
        }
      });
  metrics.Gauge("active_zones_limit", "Zones that the device allows to be active; 0: no limit.",
                [](const Statistics& mount) { return static_cast<double>(mount.max_active_zones); });
  metrics.Family("zones_begun_total", "counter", "Empty zones that were begun, by who began them.",
                 [&](const Statistics& mount) {
                   for (size_t who = 1; who < kZoneWriterCount; ++who) {
                     metrics.Count(mount.figures.zones_begun[who],
                                   fmt::format(",writer=\"{}\"", ZoneWriterName(static_cast<ZoneWriter>(who))));
                   }
                 });
}

void PutGroups(Metrics& metrics) {
  const auto queue = [&](std::string_view name, std::string_view help, uint32_t GroupQueue::*figure) {
    metrics.Family(name, "gauge", help, [&](const Statistics& mount) {
      for (size_t group = 0; group < mount.groups.size(); ++group) {
        metrics.Count(mount.groups[group].*figure, fmt::format(",group=\"{}\"", group));
      }
    });
  };
  queue("group_requests_at_device", "Requests at the device, by independent zone group.", &GroupQueue::at_device);
  queue("group_requests_waiting", "Requests that wait, by independent zone group.", &GroupQueue::waiting);
}

}  // namespace

std::string PrometheusText(std::span<const Statistics> mounts, std::span<const std::string> unreadable) {
  Metrics metrics(mounts);
  metrics.Gauge("device_readable", "Whether statistics of the device can be read.",
                [](const Statistics&) { return 1; });
  for (const std::string& device : unreadable) metrics.SampleOf(device, 0);
  PutMount(metrics);
  PutFigures(metrics);
  PutClasses(metrics);
  PutWaits(metrics);
  PutSpace(metrics);
  PutGroups(metrics);
  return metrics.Take();
}

}  // namespace isozone::cli
