// isozone_gc_bench: the tool of the LSM_ZGC paper, section 4.1.
#include "gc_bench/gc_bench.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "isozone/bench/bench.h"
#include "isozone/output/progress.h"
#include "isozone/output/table.h"

namespace isozone::cli {
namespace {

constexpr uint32_t kMaxZones = 1 << 20;
constexpr double kLeastUtilisation = 0.05;
constexpr double kMostUtilisation = 0.95;

// Whether `needed` more zones may be open and active, once the first `erased` have been reset.
Status CheckActive(const ZonedDevice& device, uint32_t needed, uint32_t erased) {
  const DeviceGeometry& geometry = device.geometry();
  std::vector<ZoneDescriptor> report(geometry.zone_count);
  ISOZONE_RETURN_IF_ERROR(device.ReportZones(ZoneId(0), report));
  const auto zones = std::span(report).subspan(std::min(erased, geometry.zone_count));
  const auto active = static_cast<uint32_t>(std::ranges::count_if(zones, IsActive, &ZoneDescriptor::state));
  const auto open = static_cast<uint32_t>(std::ranges::count_if(zones, IsOpen, &ZoneDescriptor::state));
  const auto enough = [&](uint32_t limit, uint32_t used) { return limit == 0 || used + needed <= limit; };
  if (enough(geometry.max_active_zones, active) && enough(geometry.max_open_zones, open)) return Status::Ok();
  return Status::NoSpace(
      fmt::format("{} zones must be open at once; of the device's {} (active {}) are {} (active {}) in use: use fewer "
                  "threads, or --destroy",
                  needed, geometry.max_open_zones, geometry.max_active_zones, open, active));
}

constexpr auto kCommands = std::to_array<Command>({
    {"collect", "Time schemes that reclaim zones: fill, update, collect",
     "  isozone_gc_bench collect emu:/data/ssd.img --utilisation 0.8 --skewed --rounds 10", DefineCollect},
    {"worker", "Time an application that writes and reads, alone and beside each scheme",
     "  isozone_gc_bench worker emu:/data/ssd.img --threads 1,4 --worker-bytes 64M", DefineWorker},
    {"reclaim", "Time reclaiming one zone block by block, at utilisations from 0.1 to 1",
     "  isozone_gc_bench reclaim emu:/data/ssd.img", DefineReclaim},
    {"groups", "Time reading one zone in groups of 4K to 128K", "  isozone_gc_bench groups emu:/data/ssd.img",
     DefineGroups},
});

}  // namespace

void AddSeedOption(CLI::App& app, uint64_t& seed) {
  app.add_option("--seed", seed, "Seed of everything that is drawn at random; 1 if not given")->option_text("N");
}

void AddGcOptions(CLI::App& app, GcArguments& arguments) {
  const auto share = CLI::Range(0.0, 1.0);
  AddDeviceArgument(app, arguments.device);
  app.add_option(
         "--zones", arguments.zones,
         fmt::format("Zones to fill; 32 if not given. {} more zones are used in addition", GcVolume::kSpareZones))
      ->check(CLI::Range(uint32_t{1}, kMaxZones))
      ->option_text("N");
  app.add_option("--utilisation", arguments.utilisation, "Share of the blocks that is valid; 0.5 if not given")
      ->check(CLI::Range(kLeastUtilisation, kMostUtilisation))
      ->option_text("U");
  auto* skewed =
      app.add_flag("--skewed", arguments.skewed, "Update some data more often than others, instead of all alike");
  app.add_option("--hot-updates", arguments.hot_updates,
                 "With --skewed: share of updates to hot data; 0.7 if not given")
      ->check(share)
      ->needs(skewed)
      ->option_text("P");
  app.add_option("--hot-data", arguments.hot_data, "With --skewed: share of the data that is hot; 0.3 if not given")
      ->check(share)
      ->needs(skewed)
      ->option_text("P");
  auto* trace =
      app.add_option(
             "--trace", arguments.trace_path,
             "Update the blocks that this file names, with a number or a range such as 12-40 on each line; at its end, "
             "start over")
          ->excludes(skewed)
          ->option_text("FILE");
  app.add_option("--run", arguments.run, "Blocks in a row that one update writes; 1 if not given")
      ->check(CLI::Range(1U, 1000000000U))
      ->excludes(trace)
      ->option_text("BLOCKS");
  app.add_option("--reclaim", arguments.reclaim, "Blocks to free; the blocks of one zone if not given")
      ->check(CLI::Range(1U, 1000000000U))
      ->option_text("BLOCKS");
  app.add_option("--cold", arguments.cold, "lsm-zgc: a segment is cold above this utilisation; 0.4 if not given")
      ->check(share)
      ->option_text("U");
  app.add_option("--depth", arguments.depth, "lsm-zgc, isozone: most commands in flight; 16 if not given")
      ->check(CLI::Range(uint32_t{1}, kMaxDepth))
      ->option_text("N");
  app.add_option("--basic-depth", arguments.basic_depth,
                 "basic: most commands in flight; 1 if not given, as in the paper")
      ->check(CLI::Range(uint32_t{1}, kMaxDepth))
      ->option_text("N");
  app.add_flag("--trim", arguments.trim, "lsm-zgc: do not read invalid blocks at both ends of a group");
  app.add_flag("--mix", arguments.mix_survivors,
               "basic: write survivors behind new data, instead of to zones of their own");
  AddSeedOption(app, arguments.seed);
  AddDestroyFlag(app, arguments.destroy);
  AddJsonFlag(app, arguments.json);
}

Result<std::unique_ptr<GcBench>> GcBench::Open(const GcArguments& arguments, ZonedDevice& device, uint32_t beside,
                                               uint32_t beside_active) {
  std::unique_ptr<GcBench> bench(new GcBench(arguments, device, beside));
  ISOZONE_RETURN_IF_ERROR(bench->Prepare());
  const uint32_t wanted = bench->volume_zones() + beside;
  ISOZONE_RETURN_IF_ERROR(CheckActive(device, GcVolume::kOpenZones + beside_active, arguments.destroy ? wanted : 0));
  ISOZONE_ASSIGN_OR_RETURN(ScratchZones zones, ScratchZones::Take(device, wanted, arguments.destroy));
  bench->zones_.emplace(std::move(zones));
  return bench;
}

Status GcBench::Prepare() {
  ISOZONE_ASSIGN_OR_RETURN(logical_blocks_, GcVolume::LogicalBlocks(device_.geometry(), shape()));
  blocks_per_zone_ = static_cast<uint32_t>(device_.geometry().zone_capacity / GcVolume::BlockSize(device_.geometry()));
  reclaim_blocks_ = arguments_.reclaim == 0 ? blocks_per_zone_ : arguments_.reclaim;
  const uint64_t invalid = uint64_t{arguments_.zones} * blocks_per_zone_ - logical_blocks_;
  if (reclaim_blocks_ > invalid / 2) {
    return Status::InvalidArgument(fmt::format(
        "{} blocks are more than half of the {} that are invalid at utilisation {}; --reclaim fewer, or give "
        "more --zones",
        reclaim_blocks_, invalid, arguments_.utilisation));
  }
  return MakePattern().status();
}

std::vector<ZoneId> GcBench::ZonesBeside() const {
  std::vector<ZoneId> zones;
  for (uint32_t i = 0; i < beside_; ++i) zones.push_back(zones_->zone(volume_zones() + i));
  return zones;
}

CollectOptions GcBench::OptionsOf(CollectScheme scheme) const {
  CollectOptions options;
  options.scheme = scheme;
  options.reclaim_blocks = reclaim_blocks_;
  options.mix_survivors = arguments_.mix_survivors;
  options.depth = scheme == CollectScheme::kBasic ? arguments_.basic_depth : arguments_.depth;
  options.rules.cold_utilisation = arguments_.cold;
  options.rules.trim_groups = arguments_.trim;
  return options;
}

Result<std::unique_ptr<GcVolume>> GcBench::Fill() {
  std::vector<ZoneId> zones;
  std::vector<ZoneDescriptor> state(volume_zones());
  ISOZONE_RETURN_IF_ERROR(device_.ReportZones(zones_->zone(0), state));
  for (uint32_t i = 0; i < volume_zones(); ++i) {
    if (state[i].state != ZoneState::kEmpty) ISOZONE_RETURN_IF_ERROR(zones_->Reset(i));
    zones.push_back(zones_->zone(i));
  }
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<GcVolume> volume, GcVolume::Create(device_, std::move(zones), shape()));
  Progress progress("filling", volume->map().logical_blocks(), Progress::Unit::kSteps);
  ISOZONE_RETURN_IF_ERROR(volume->Fill([&](uint64_t blocks) { progress.Update(blocks); }));
  return volume;
}

Result<std::unique_ptr<UpdatePattern>> GcBench::MakePattern() const {
  if (!arguments_.trace_path.empty()) return TraceFilePattern(arguments_.trace_path, logical_blocks_);
  const PatternOptions options{arguments_.seed, arguments_.run};
  if (!arguments_.skewed) return UniformPattern(logical_blocks_, options);
  const auto stretch = static_cast<uint32_t>(SegmentRules{}.segment_size / GcVolume::BlockSize(device_.geometry()));
  return SkewedPattern(logical_blocks_, options, {arguments_.hot_updates, arguments_.hot_data, stretch});
}

Status GcBench::Update(GcVolume& volume, UpdatePattern& pattern) {
  Progress progress("updating", volume.budget() - volume.map().written(), Progress::Unit::kSteps);
  return volume.Update(pattern, [&](uint64_t blocks) { progress.Update(blocks); });
}

Result<CollectResult> GcBench::CollectWith(GcVolume& volume, CollectScheme scheme) {
  Progress progress(fmt::format("collecting ({})", CollectSchemeName(scheme)), reclaim_blocks_, Progress::Unit::kSteps);
  return Collect(volume, OptionsOf(scheme), [&](uint64_t blocks) { progress.Update(blocks); });
}

Status GcBench::Verify(GcVolume& volume) {
  Progress progress("verifying", volume.map().written(), Progress::Unit::kSteps);
  return volume.Verify([&](uint64_t blocks) { progress.Update(blocks); });
}

void PrintGcSetup(const GcArguments& arguments, GcBench& bench, Console& console) {
  const DeviceGeometry& geometry = bench.device().geometry();
  std::string updates = fmt::format("uniform, {} in a row", arguments.run);
  if (arguments.skewed) {
    updates = fmt::format("{:.0f} % to {:.0f} % of the data, {} in a row", arguments.hot_updates * 100,
                          arguments.hot_data * 100, arguments.run);
  }
  if (!arguments.trace_path.empty()) updates = arguments.trace_path;
  Facts facts(Printable(bench.device().name()));
  facts.Add("Zones", fmt::format("{} of {}, {} blocks each (the paper: 512 of 1 GiB)", arguments.zones,
                                 FormatSize(geometry.zone_capacity), bench.blocks_per_zone()));
  facts.Add("Utilisation", fmt::format("{:.2f}", arguments.utilisation));
  facts.Add("Updates", updates);
  facts.Add("Reclaimed", fmt::format("{} blocks a round", bench.reclaim_blocks()));
  facts.Add("In flight", fmt::format("basic {}, lsm-zgc {}", arguments.basic_depth, arguments.depth));
  facts.Add("Seed", std::to_string(arguments.seed));
  facts.Print(console);
  console.Print("\n");
}

Json GcSetupJson(const GcArguments& arguments, GcBench& bench) {
  return {{"device", bench.device().name()},
          {"zones", arguments.zones},
          {"zone_capacity", bench.device().geometry().zone_capacity},
          {"block_size", GcVolume::BlockSize(bench.device().geometry())},
          {"utilisation", arguments.utilisation},
          {"updates", arguments.trace_path.empty() ? (arguments.skewed ? "skewed" : "uniform") : arguments.trace_path},
          {"hot_updates", arguments.skewed ? Json(arguments.hot_updates) : Json()},
          {"hot_data", arguments.skewed ? Json(arguments.hot_data) : Json()},
          {"run", arguments.run},
          {"reclaim_blocks", bench.reclaim_blocks()},
          {"cold_utilisation", arguments.cold},
          {"depth", arguments.depth},
          {"basic_depth", arguments.basic_depth},
          {"trim", arguments.trim},
          {"mix", arguments.mix_survivors},
          {"seed", arguments.seed}};
}

Json CollectResultJson(const CollectResult& result, uint64_t block_size) {
  return {{"seconds", result.seconds},
          {"blocks_copied", result.blocks_copied},
          {"blocks_reclaimed", result.blocks_reclaimed},
          {"zones_reset", result.zones_reset},
          {"reads", result.reads},
          {"bytes_read", result.bytes_read},
          {"writes", result.writes},
          {"copied_bytes_per_second",
           result.seconds == 0 ? 0 : static_cast<double>(result.blocks_copied * block_size) / result.seconds},
          {"in_flight_max", result.depth_max},
          {"zones_by_utilisation_before", result.before},
          {"zones_by_utilisation_after", result.after}};
}

}  // namespace isozone::cli

int main(int argc, char** argv) {
  return isozone::cli::RunProgram({.name = "isozone_gc_bench",
                                   .summary = "What collecting zones of a device costs, without a file system.",
                                   .commands = isozone::cli::kCommands,
                                   .footer = "The exit codes are those of isozone --help."},
                                  argc, argv);
}
