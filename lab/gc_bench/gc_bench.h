// What the parts of isozone_gc_bench share: their options, and the volume that they collect.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gc_bench/gc_collector.h"
#include "isozone/bench/scratch_zones.h"
#include "isozone/output/timing_note.h"
#include "isozone/program.h"
#include "isozone/session.h"

namespace isozone::cli {

struct GcArguments {
  std::string device;
  uint32_t zones = 32;
  double utilisation = 0.5;
  bool skewed = false;
  double hot_updates = 0.7;
  double hot_data = 0.3;
  std::string trace_path;
  uint32_t run = 1;
  uint64_t reclaim = 0;  // blocks; 0: as many as a zone has
  double cold = 0.4;
  uint32_t depth = 16;
  uint32_t basic_depth = 1;
  bool trim = false;
  bool mix_survivors = false;
  uint64_t seed = 1;
  bool verify = false;
  bool destroy = false;
  bool json = false;
};

// Adds DEVICE and all options above except --verify.
void AddGcOptions(CLI::App& app, GcArguments& arguments);
void AddSeedOption(CLI::App& app, uint64_t& seed);

// The zones of a device that stages 1 to 3 use, and `beside` zones for other uses.
class GcBench {
 public:
  // kNoSpace if zones are missing, or if more of them would be active at once than the device allows:
  // GcVolume::kOpenZones and `beside_active`. kInvalidArgument if the arguments do not suit the device. In these cases
  // nothing is destroyed. `arguments` and `device` must outlive the bench.
  static Result<std::unique_ptr<GcBench>> Open(const GcArguments& arguments, ZonedDevice& device, uint32_t beside,
                                               uint32_t beside_active);

  ZonedDevice& device() { return device_; }
  uint64_t reclaim_blocks() const { return reclaim_blocks_; }
  uint32_t blocks_per_zone() const { return blocks_per_zone_; }
  uint32_t logical_blocks() const { return logical_blocks_; }
  // The zones for other uses.
  std::vector<ZoneId> ZonesBeside() const;
  CollectOptions OptionsOf(CollectScheme scheme) const;

  // Stage 1, in empty zones. The previous volume must not be used any more.
  Result<std::unique_ptr<GcVolume>> Fill();
  // A pattern that starts at its beginning, the same each time.
  Result<std::unique_ptr<UpdatePattern>> MakePattern() const;
  // Stage 2.
  Status Update(GcVolume& volume, UpdatePattern& pattern);
  // Stage 3.
  Result<CollectResult> CollectWith(GcVolume& volume, CollectScheme scheme);
  Status Verify(GcVolume& volume);
  // Empties the zones, and returns the errors of that.
  Status Release() { return zones_->Release(); }

 private:
  GcBench(const GcArguments& arguments, ZonedDevice& device, uint32_t beside)
      : arguments_(arguments), device_(device), beside_(beside) {}
  Status Prepare();
  uint32_t volume_zones() const { return arguments_.zones + GcVolume::kSpareZones; }
  GcVolume::Shape shape() const { return {arguments_.zones, arguments_.utilisation}; }

  const GcArguments& arguments_;
  ZonedDevice& device_;
  const uint32_t beside_;
  std::optional<ScratchZones> zones_;  // set by Open
  uint64_t reclaim_blocks_ = 0;
  uint32_t blocks_per_zone_ = 0;
  uint32_t logical_blocks_ = 0;
};

// Prints the beginning of a report.
void PrintGcSetup(const GcArguments& arguments, GcBench& bench, Console& console);
Json GcSetupJson(const GcArguments& arguments, GcBench& bench);
Json CollectResultJson(const CollectResult& result, uint64_t block_size);

Action DefineCollect(CLI::App& app);
Action DefineWorker(CLI::App& app);
Action DefineReclaim(CLI::App& app);
Action DefineGroups(CLI::App& app);

}  // namespace isozone::cli
