#include "simulator/sim_options.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/uri.h"

namespace isozone {
namespace {

struct NamedOrder {
  std::string_view name;
  KeyOrderKind order;
};

constexpr std::array kOrders = {
    NamedOrder{"sequential", KeyOrderKind::kSequential}, NamedOrder{"shuffled", KeyOrderKind::kShuffled},
    NamedOrder{"uniform", KeyOrderKind::kUniform},       NamedOrder{"zipfian", KeyOrderKind::kZipfian},
    NamedOrder{"list", KeyOrderKind::kListed},
};

std::optional<double> ParsePercent(std::string_view text) {
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && percent > 0 && percent < 100 ? std::optional(percent) : std::nullopt;
}

// "70/30".
bool ParseSkew(std::string_view name, SimPhase& phase) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  const auto hot = ParsePercent(name.substr(0, slash));
  const auto keys = ParsePercent(name.substr(slash + 1));
  if (!hot || !keys) return false;
  phase.order = KeyOrderKind::kSkewed;
  phase.hot_percent = *hot;
  phase.hot_keys_percent = *keys;
  return true;
}

Status Wrong(std::string_view what, std::string_view remedy) {
  return Status::InvalidArgument(fmt::format("{}; {}", what, remedy));
}

Status CheckLoad(const SimLoad& load, uint32_t block_size) {
  if (load.record_bytes == 0 || load.record_bytes % block_size != 0) {
    return Wrong(fmt::format("a record of {} bytes is not whole blocks of {} bytes", load.record_bytes, block_size),
                 "give --grain a multiple of that");
  }
  if (load.data_bytes == 0) return Wrong("there is no data", "give --data a size");
  if (load.phases.empty()) return Wrong("there is no phase", "give --phase");
  uint64_t puts = 0;
  for (const SimPhase& phase : load.phases) {
    puts += (phase.bytes == 0 ? load.data_bytes : phase.bytes) / load.record_bytes + 1;
    if (phase.order != KeyOrderKind::kListed) continue;
    if (phase.listed.empty()) return Wrong("the phase list has no records", "name a file of them with --list");
    for (const uint32_t record : phase.listed) {
      if (record < load.records()) continue;
      return Wrong(fmt::format("record {} of the list is not among the {} that there are", record, load.records()),
                   "give --data a larger size");
    }
  }
  if (puts < std::numeric_limits<uint32_t>::max() && load.records() < std::numeric_limits<uint32_t>::max()) return {};
  return Wrong(fmt::format("{} puts of {} bytes are more than can be counted", puts, load.record_bytes),
               "give --grain a larger size");
}

Status CheckTree(const SimTree& tree, uint64_t record_bytes) {
  if (tree.memtable_bytes < record_bytes || tree.limits.table_bytes < record_bytes) {
    return Wrong(fmt::format("a memtable or a table is smaller than a record of {} bytes", record_bytes),
                 "give --grain a smaller size");
  }
  if (tree.memtables == 0) return Wrong("there is no memtable", "give 1 or more");
  if (tree.level0_slowdown > tree.level0_stop || tree.limits.level0_files > tree.level0_slowdown) {
    return Wrong("the triggers of level 0 are out of order", "compaction, slowdown and stop must rise");
  }
  if (tree.pending.hard_bytes != 0 && tree.pending.soft_bytes > tree.pending.hard_bytes) {
    return Wrong("the limits of pending compaction are out of order", "the soft one must be below the hard one");
  }
  if (tree.steering && (tree.steering->levels != tree.limits.levels() || tree.limits.levels() < 3)) {
    return Wrong("a tree of fewer than three levels cannot be steered", "give it 7 levels");
  }
  if (tree.flush_workers == 0 || tree.compaction_workers == 0)
    return Wrong("nobody flushes or compacts", "give 1 or more");
  return {};
}

}  // namespace

Result<SimPhase> ParseSimPhase(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  SimPhase phase;
  if (colon != std::string_view::npos) {
    ISOZONE_ASSIGN_OR_RETURN(phase.bytes, ParseSize(text.substr(colon + 1)));
    if (phase.bytes == 0) return Wrong("a phase of 0 bytes", "leave the size out for as much as there is data");
  }
  std::string known;
  for (const NamedOrder& row : kOrders) {
    known += fmt::format("{}, ", row.name);
    if (row.name != name) continue;
    phase.order = row.order;
    return phase;
  }
  if (ParseSkew(name, phase)) return phase;
  return Status::InvalidArgument(fmt::format(
      "unknown order of keys \"{}\"; known: {}and percentages such as 70/30 (70 % of the puts to 30 % of the keys)",
      name, known));
}

Result<TableHints> ParseTableHints(std::string_view text) {
  if (text == "none") return TableHints::kNone;
  if (text == "lifetime") return TableHints::kLifetime;
  if (text == "level") return TableHints::kLevel;
  if (text == "steered") return TableHints::kSteered;
  return Status::InvalidArgument(fmt::format("unknown hints \"{}\"; known: none, lifetime, level, steered", text));
}

Status CheckSimOptions(const SimOptions& options) {
  const Profile& profile = options.device.profile;
  if (!profile.zoned()) {
    return Wrong(fmt::format("the profile {} is of a conventional SSD", profile.name), "name one with zones");
  }
  ISOZONE_RETURN_IF_ERROR(ValidateProfile(profile));
  ISOZONE_RETURN_IF_ERROR(CheckLoad(options.load, profile.block_size));
  ISOZONE_RETURN_IF_ERROR(CheckTree(options.tree, options.load.record_bytes));
  if (options.rates.put == 0 || options.rates.compaction == 0 || options.rates.slowed_put == 0) {
    return Wrong("a rate of 0", "give bytes a second");
  }
  if (options.device.stripe_width == 0 || options.device.stripe_unit < profile.block_size) {
    return Wrong("a stripe of no zones, or of less than a block", "give 1 zone and a block at least");
  }
  return {};
}

}  // namespace isozone
