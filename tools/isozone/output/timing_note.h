// TimingNote: what a reader of measured times must know about the device. An emulator may emulate no timing, or lag
// behind its model.
#pragma once

#include <optional>
#include <string>

#include "base/histogram.h"
#include "device/zoned_device.h"
#include "isozone/output/console.h"

namespace isozone::cli {

class TimingNote {
 public:
  // Must be made after the measurement.
  explicit TimingNote(const ZonedDevice& device);

  // Returns how late completions were; null if no timing is emulated.
  Json LatenessJson() const;
  // Prints one line about an emulator, and one more if its times are not reliable; nothing about other devices.
  void Print(Console& console) const;
  // Returns the reason in whole sentences if the measured times are not reliable.
  std::optional<std::string> Problem() const;
  void PrintProblem(Console& console) const;

 private:
  bool untimed_ = false;
  double speed_ = 1;
  std::optional<Histogram::Snapshot> lateness_ns_;
};

}  // namespace isozone::cli
