#include "isozone/output/timing_note.h"

#include <fmt/format.h>

#include "base/units.h"

namespace isozone::cli {
namespace {

// On an idle machine, the longest bursts of reads are some 1 ms late, because the host copies the data of the device.
constexpr double kTooLateUs = 2000;  // for a device at the speed of its profile

double Microseconds(const Histogram::Snapshot& ns, double percentile) {
  return static_cast<double>(ns.Percentile(percentile)) / static_cast<double>(kMicrosecondNs);
}

}  // namespace

TimingNote::TimingNote(const ZonedDevice& device) {
  const auto emulation = device.description().emulation;
  if (!emulation) return;
  untimed_ = !emulation->timing;
  speed_ = emulation->speed;
  if (emulation->timing) lateness_ns_ = emulation->lateness_ns;
}

Json TimingNote::LatenessJson() const {
  if (!lateness_ns_) return {};
  return {{"median_us", Microseconds(*lateness_ns_, 50)}, {"p99_us", Microseconds(*lateness_ns_, 99)}};
}

void TimingNote::Print(Console& console) const {
  if (lateness_ns_) {
    console.Print("The emulator completed its commands {:.0f} us late (median; P99 {:.0f} us).\n",
                  Microseconds(*lateness_ns_, 50), Microseconds(*lateness_ns_, 99));
  }
  PrintProblem(console);
}

std::optional<std::string> TimingNote::Problem() const {
  if (untimed_) {
    return "This device emulates no timing (timing=off): what was measured is the host's memory and disk.";
  }
  if (!lateness_ns_ || Microseconds(*lateness_ns_, 99) <= kTooLateUs / speed_) return std::nullopt;
  return fmt::format(
      "The emulator was {:.1f} ms late (P99), too much at this speed: the results may be wrong. Measure again "
      "with nothing else running{}.",
      Microseconds(*lateness_ns_, 99) / 1000, speed_ > 1 ? ", or at a lower speed" : "");
}

void TimingNote::PrintProblem(Console& console) const {
  if (const auto problem = Problem()) console.Print("\n{}\n", *problem);
}

}  // namespace isozone::cli
