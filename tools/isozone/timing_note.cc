#include "isozone/timing_note.h"

#include "base/units.h"
#include "device/emulated/emulated_device.h"

namespace isozone::cli {
namespace {

// On an idle machine the longest bursts of reads are some 1 ms late, since the host copies what a device would transfer.
constexpr double kTooLateUs = 2000;

double Microseconds(const Histogram::Snapshot& ns, double percentile) {
  return static_cast<double>(ns.Percentile(percentile)) / static_cast<double>(kMicrosecondNs);
}

}  // namespace

TimingNote::TimingNote(const ZonedDevice& device) {
  const auto* emulated = dynamic_cast<const EmulatedDevice*>(&device);
  if (emulated == nullptr) return;
  untimed_ = !emulated->timing();
  if (emulated->timing()) lateness_ns_ = emulated->lateness();
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

void TimingNote::PrintProblem(Console& console) const {
  if (untimed_) {
    console.Print("\nThis device emulates no timing (timing=off): what was measured is the host's memory and disk.\n");
  } else if (lateness_ns_ && Microseconds(*lateness_ns_, 99) > kTooLateUs) {
    console.Print(
        "\nThe emulator came {:.1f} ms late (P99), as the processor was busy: what was measured may be wrong. "
        "Measure again with nothing else running.\n",
        Microseconds(*lateness_ns_, 99) / 1000);
  }
}

}  // namespace isozone::cli
