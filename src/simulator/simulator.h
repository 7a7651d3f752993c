// Simulator: what a device would do under a load, in virtual time. The decisions are those of the real engine: pickers
// (lsm), placement, allocation, victims and the steps of the collector (zone), on the geometry and with the timing of a
// device profile (nand). What is put, flushed and compacted is exact, at the grain of a record that stands for many.
// docs/simulator.md says what is modelled and how far it can be believed.
//
// Deterministic: the same options give the same report.
//
// Pure. Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "simulator/put_stream.h"
#include "simulator/sim_options.h"
#include "simulator/sim_report.h"
#include "simulator/sim_world.h"
#include "simulator/virtual_collector.h"
#include "simulator/workers.h"

namespace isozone {

class Simulator {
 public:
  // Fails with kInvalidArgument if an option is wrong; the message says which, and what to do.
  static Result<std::unique_ptr<Simulator>> Create(SimOptions options);

  // Is called now and then with the bytes that were put so far, and those that will be put in all.
  using Progress = std::function<void(uint64_t done, uint64_t total)>;
  // Puts everything, and waits until nothing is left to compact. May be called once. Fails with kNoSpace when the
  // device is full, or when nothing goes on.
  Result<SimReport> Run(const Progress& progress = {});

  // The tree and the zones as Run has left them.
  const MergeModel& model() const { return world_.model; }
  const VirtualZones& zones() const { return *world_.zones; }

 private:
  static constexpr uint64_t kSamples = 64;
  // Run fails if nothing is written or put for so much virtual time.
  static constexpr int64_t kStandstillNs = 3'600 * kSecondNs;

  Simulator(SimOptions options, std::unique_ptr<CompactionPicker> picker, std::shared_ptr<const GcScheme> scheme);
  Status MakeZones(bool collects);
  bool IsOver() const;
  Status CheckStandstill();
  void SampleIfDue();
  SimSample Sample() const;
  void Complete();

  SimWorld world_;
  VirtualCollector collector_;
  std::vector<std::unique_ptr<Actor>> workers_;
  std::unique_ptr<PutStream> puts_;
  uint64_t moved_bytes_ = 0;  // bytes written, read and put, when that last changed
  int64_t moved_at_ns_ = 0;
};

}  // namespace isozone
