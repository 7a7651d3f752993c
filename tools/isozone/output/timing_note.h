// What is to be said beside times that were measured on a device: an emulator may emulate none, or lag behind its model.
#pragma once

#include <optional>
#include <string>

#include "base/histogram.h"
#include "device/zoned_device.h"
#include "isozone/output/console.h"

namespace isozone::cli {

class TimingNote {
 public:
  // As of now: after measuring.
  explicit TimingNote(const ZonedDevice& device);

  // By how much completions were late; null where no time is emulated.
  Json LatenessJson() const;
  // One line about an emulator, and one more if it cannot be relied upon; nothing about other devices.
  void Print(Console& console) const;
  // Why what was measured cannot be relied upon, if so, in whole sentences.
  std::optional<std::string> Problem() const;
  void PrintProblem(Console& console) const;

 private:
  bool untimed_ = false;
  double speed_ = 1;
  std::optional<Histogram::Snapshot> lateness_ns_;
};

}  // namespace isozone::cli
