#include "store/mount_options.h"

#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "store/kept/kept_layout.h"
#include "store/zone/gc_scheme.h"
#include "store/zone/placement_policy.h"

namespace isozone {
namespace {

// How a kind of option is taken from a URI, and shown as the URI would have it. The value must be in [min, max].
struct CountOption {
  uint64_t min;
  uint64_t max;
  uint32_t& (*field)(MountOptions& mount);
};
struct SizeOption {
  uint64_t min;  // bytes
  uint64_t max;
  uint64_t& (*field)(MountOptions& mount);
};
struct SwitchOption {
  bool& (*field)(MountOptions& mount);
};
struct OtherOption {
  Status (*take)(UriOptions& options, std::string_view key, MountOptions& mount);
  std::string (*show)(const MountOptions& mount);
};

struct MountOption {
  std::string_view key;
  std::string_view value;         // stands for the value in texts; empty: the value of a switch that is not its default
  std::string_view default_text;  // shown instead of the default itself, unless it is empty
  std::string_view meaning;
  std::variant<CountOption, SizeOption, SwitchOption, OtherOption> kind;
  bool gc = false;  // part of MountOptions::gc
};

// --- Those that are of no common kind ---

Status TakePolicy(UriOptions& options, std::string_view key, MountOptions& mount) {
  mount.policy = options.Take(key).value_or(mount.policy);
  if (mount.policy != "zenfs+gc") return Status::Ok();
  mount.policy = "zenfs";  // with its own background GC
  mount.gc.scheme = "zenfs";
  return Status::Ok();
}

Status TakeKeptDirectory(UriOptions& options, std::string_view key, MountOptions& mount) {
  mount.kept_memory_directory = options.Take(key).value_or(mount.kept_memory_directory);
  if (mount.kept_memory_directory.starts_with('/')) return Status::Ok();
  return Status::InvalidArgument(fmt::format("{}={}: give an absolute path", key, mount.kept_memory_directory));
}

Status TakeGcScheme(UriOptions& options, std::string_view key, MountOptions& mount) {
  mount.gc.scheme = options.Take(key).value_or(mount.gc.scheme);
  return Status::Ok();
}

Status TakeGcStart(UriOptions& options, std::string_view key, MountOptions& mount) {
  ISOZONE_ASSIGN_OR_RETURN(const auto percent, options.TakeUnsigned(key, 1, 90));
  if (percent) mount.gc.start_percent = static_cast<uint32_t>(*percent);
  return Status::Ok();
}

// --- The table, in the order of docs/rocksdb.md: a later option may change what an earlier one has set ---

constexpr std::array kTable = {
    MountOption{"policy", "NAME", "", "placement policy",
                OtherOption{TakePolicy, [](const MountOptions& m) { return m.policy; }}},
    MountOption{"stripe_width", "N", "", "zones that a file is written to at once, at most",
                CountOption{1, 256, [](MountOptions& m) -> uint32_t& { return m.stripe_width; }}},
    MountOption{"log_width", "N", "", "the same for a log",
                CountOption{1, 256, [](MountOptions& m) -> uint32_t& { return m.log_width; }}},
    MountOption{"stripe_unit", "SIZE", "", "bytes that go to one of them",
                SizeOption{64 * kKiB, 16 * kMiB, [](MountOptions& m) -> uint64_t& { return m.stripe_unit; }}},
    MountOption{"writer_memory", "SIZE", "", "bytes that the writer of a file holds, at most",
                SizeOption{128 * kKiB, 1 * kGiB, [](MountOptions& m) -> uint64_t& { return m.writer_memory; }}},
    MountOption{"read_ahead_memory", "SIZE", "", "bytes that compaction reads ahead, at most",
                SizeOption{0, 4 * kGiB, [](MountOptions& m) -> uint64_t& { return m.read_ahead_memory; }}},
    MountOption{"isolation", "", "", "flushes and logs go before compaction",
                SwitchOption{[](MountOptions& m) -> bool& { return m.isolation; }}},
    MountOption{"write_gap", "N", "", "program times between two pieces of a flush while users read",
                CountOption{0, 1000, [](MountOptions& m) -> uint32_t& { return m.write_gap; }}},
    MountOption{"write_buffer", "SIZE", "", "bytes that a log collects before it writes",
                SizeOption{64 * kKiB, 64 * kMiB, [](MountOptions& m) -> uint64_t& { return m.write_buffer; }}},
    MountOption{"gc", "SCHEME", "by policy", "garbage collection",
                OtherOption{TakeGcScheme, [](const MountOptions& m) { return m.GcScheme(); }}, /*gc=*/true},
    MountOption{"gc_start", "PERCENT", "by scheme", "free space below which it collects",
                OtherOption{TakeGcStart,
                            [](const MountOptions& m) {
                              const auto& percent = m.gc.start_percent;
                              return percent ? std::to_string(*percent) : "default";
                            }},
                /*gc=*/true},
    MountOption{"gc_memory", "SIZE", "", "bytes of its buffers, at most",
                SizeOption{8 * kMiB, 1 * kGiB, [](MountOptions& m) -> uint64_t& { return m.gc.memory; }}, /*gc=*/true},
    MountOption{"checkpoint_after", "SIZE", "", "bytes of journal after which a checkpoint is written, at least",
                SizeOption{64 * kKiB, 4 * kGiB, [](MountOptions& m) -> uint64_t& { return m.checkpoint_after; }}},
    MountOption{"kept_memory", "SIZE", "", "shared memory for the ends of logs, which a killed process leaves behind",
                SizeOption{kKeptMemoryMin, kKeptMemoryMax, [](MountOptions& m) -> uint64_t& { return m.kept_memory; }}},
    MountOption{"kept_memory_directory", "DIR", "", "where that memory is, and that of readers",
                OtherOption{TakeKeptDirectory, [](const MountOptions& m) { return m.kept_memory_directory; }}},
    MountOption{"reader_hold", "PERCENT", "", "of the device: what readers of removed files hold when it is full",
                CountOption{0, 100, [](MountOptions& m) -> uint32_t& { return m.reader_hold; }}},
};

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// --- What follows from it ---

Status Take(const MountOption& option, UriOptions& options, MountOptions& mount) {
  return std::visit(
      Overloaded{[&](const CountOption& count) -> Status {
                   ISOZONE_ASSIGN_OR_RETURN(const auto value, options.TakeUnsigned(option.key, count.min, count.max));
                   if (value) count.field(mount) = static_cast<uint32_t>(*value);
                   return Status::Ok();
                 },
                 [&](const SizeOption& size) -> Status {
                   ISOZONE_ASSIGN_OR_RETURN(const auto value, options.TakeSize(option.key, size.min, size.max));
                   if (value) size.field(mount) = *value;
                   return Status::Ok();
                 },
                 [&](const SwitchOption& on) -> Status {
                   ISOZONE_ASSIGN_OR_RETURN(const auto value, options.TakeBool(option.key));
                   if (value) on.field(mount) = *value;
                   return Status::Ok();
                 },
                 [&](const OtherOption& other) { return other.take(options, option.key, mount); }},
      option.kind);
}

// 16777216 -> "16M": exact, and a URI takes it.
std::string ExactSize(uint64_t bytes) {
  static constexpr std::string_view kSuffixes[] = {"", "K", "M", "G", "T"};
  size_t suffix = 0;
  for (; bytes > 0 && bytes % kKiB == 0 && suffix + 1 < std::size(kSuffixes); ++suffix) bytes /= kKiB;
  return fmt::format("{}{}", bytes, kSuffixes[suffix]);
}

std::string_view OnOrOff(bool on) { return on ? "on" : "off"; }

std::string ValueOf(const MountOption& option, MountOptions mount) {
  return std::visit(Overloaded{[&](const CountOption& count) { return std::to_string(count.field(mount)); },
                               [&](const SizeOption& size) { return ExactSize(size.field(mount)); },
                               [&](const SwitchOption& on) { return std::string(OnOrOff(on.field(mount))); },
                               [&](const OtherOption& other) { return other.show(mount); }},
                    option.kind);
}

// Checks that the policy and the scheme exist, so that a user learns it when formatting a device and not afterwards.
Status CheckNames(const MountOptions& mount) {
  const Status policy = MakePlacementPolicy(mount.policy).status();
  if (!policy.ok()) return Status(policy.code(), fmt::format("{}, zenfs+gc", policy.message()));
  return MakeGcScheme(mount.GcScheme(), mount.gc.start_percent).status();
}

}  // namespace

std::string MountOptions::GcScheme() const {
  if (!gc.scheme.empty()) return gc.scheme;
  if (policy == "zenfs") return "none";
  return policy == "lifetime" ? "lifetime" : "isozone";
}

Result<MountOptions> MountOptions::FromUri(UriOptions& options) {
  MountOptions mount;
  for (const MountOption& option : kTable) ISOZONE_RETURN_IF_ERROR(Take(option, options, mount));
  ISOZONE_RETURN_IF_ERROR(CheckNames(mount));
  return mount;
}

std::string MountOptions::ToString() const {
  std::string line;
  for (const MountOption& option : kTable) {
    line += fmt::format("{}{}={}", line.empty() ? "" : " ", option.key, ValueOf(option, *this));
  }
  return line;
}

Result<GcOptions> ParseGcOptions(std::string_view text, GcOptions gc) {
  const bool named = text.find('=') == std::string_view::npos;
  ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(fmt::format("gc:options?{}{}", named ? "gc=" : "", text)));
  MountOptions mount;
  mount.gc = std::move(gc);
  for (const MountOption& option : kTable) {
    if (option.gc) ISOZONE_RETURN_IF_ERROR(Take(option, uri.options, mount));
  }
  ISOZONE_RETURN_IF_ERROR(uri.options.RejectUnknown());
  return mount.gc;
}

std::vector<MountOptionHelp> ListMountOptions() {
  const MountOptions defaults;
  std::vector<MountOptionHelp> list;
  for (const MountOption& option : kTable) {
    const std::string value = ValueOf(option, defaults);
    std::string example(option.value);
    if (example.empty()) example = OnOrOff(value == "off");
    list.push_back({fmt::format("{}={}", option.key, example),
                    option.default_text.empty() ? value : std::string(option.default_text), option.meaning});
  }
  return list;
}

}  // namespace isozone
