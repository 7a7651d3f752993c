#include "fs/file_system.h"

#include <fmt/format.h>

#include "zone/gc_scheme.h"
#include "zone/placement_policy.h"

namespace isozone {

std::string_view FileKindName(FileKind kind) {
  switch (kind) {
    case FileKind::kData:
      return "data";
    case FileKind::kLog:
      return "log";
    case FileKind::kSmall:
      return "small";
  }
  return "unknown";
}

double FileSystemStats::WriteAmplification() const {
  if (user_bytes_appended == 0) return 0;
  uint64_t written = journal_bytes;
  for (const ClassStats& c : by_class) written += c.bytes_written;
  return static_cast<double>(written) / static_cast<double>(user_bytes_appended);
}

std::string MountOptions::GcScheme() const {
  if (!gc.scheme.empty()) return gc.scheme;
  if (policy == "zenfs") return "none";
  return policy == "lifetime" ? "lifetime" : "isozone";
}

Status TakeGcOptions(UriOptions& options, GcOptions& gc) {
  if (auto scheme = options.Take("gc")) gc.scheme = *scheme;
  ISOZONE_ASSIGN_OR_RETURN(const auto gc_start, options.TakeUnsigned("gc_start", 1, 90));
  if (gc_start) gc.tuning.start_percent = static_cast<uint32_t>(*gc_start);
  ISOZONE_ASSIGN_OR_RETURN(const auto gc_memory, options.TakeSize("gc_memory", 8 * kMiB, 1 * kGiB));
  if (gc_memory) gc.memory = *gc_memory;
  ISOZONE_ASSIGN_OR_RETURN(const auto verify, options.TakeBool("gc_verify"));
  if (verify) gc.verify = *verify;
  ISOZONE_ASSIGN_OR_RETURN(const auto cold, options.TakeUnsigned("gc_cold_threshold", 0, 100));
  if (cold) gc.tuning.cold_threshold = static_cast<double>(*cold) / 100;
  ISOZONE_ASSIGN_OR_RETURN(const auto group_blocks, options.TakeUnsigned("gc_group_blocks", 1, 1U << 20U));
  if (group_blocks) gc.tuning.group_blocks = static_cast<uint32_t>(*group_blocks);
  ISOZONE_ASSIGN_OR_RETURN(const auto dynamic, options.TakeBool("gc_dynamic_victims"));
  if (dynamic) gc.tuning.dynamic_victims = *dynamic;
  return Status::Ok();
}

Result<GcOptions> ParseGcOptions(std::string_view text, GcOptions gc) {
  const bool named = text.find('=') == std::string_view::npos;
  ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(fmt::format("gc:options?{}{}", named ? "gc=" : "", text)));
  ISOZONE_RETURN_IF_ERROR(TakeGcOptions(uri.options, gc));
  ISOZONE_RETURN_IF_ERROR(uri.options.RejectUnknown());
  return gc;
}

// The policy and the scheme exist: who formats a device must not find out afterwards.
static Status CheckNames(const MountOptions& mount) {
  const Status policy = MakePlacementPolicy(mount.policy).status();
  if (!policy.ok()) return Status(policy.code(), fmt::format("{}, zenfs+gc", policy.message()));
  return MakeGcScheme(mount.GcScheme(), mount.gc.tuning).status();
}

Result<MountOptions> MountOptions::FromUri(UriOptions& options) {
  MountOptions mount;
  if (auto policy = options.Take("policy")) mount.policy = *policy;
  if (mount.policy == "zenfs+gc") {  // ZenFS with its own background GC
    mount.policy = "zenfs";
    mount.gc.scheme = "zenfs";
  }
  ISOZONE_RETURN_IF_ERROR(TakeGcOptions(options, mount.gc));
  ISOZONE_ASSIGN_OR_RETURN(const auto buffer, options.TakeSize("write_buffer", 64 * kKiB, 64 * kMiB));
  if (buffer) mount.write_buffer = *buffer;
  ISOZONE_ASSIGN_OR_RETURN(const auto log_width, options.TakeUnsigned("log_width", 1, 256));
  if (log_width) mount.log_width = static_cast<uint32_t>(*log_width);
  ISOZONE_ASSIGN_OR_RETURN(const auto width, options.TakeUnsigned("stripe_width", 1, 256));
  if (width) mount.stripe_width = static_cast<uint32_t>(*width);
  ISOZONE_ASSIGN_OR_RETURN(const auto unit, options.TakeSize("stripe_unit", 64 * kKiB, 16 * kMiB));
  if (unit) mount.stripe_unit = *unit;
  ISOZONE_ASSIGN_OR_RETURN(const auto memory, options.TakeSize("writer_memory", 128 * kKiB, 1 * kGiB));
  if (memory) mount.writer_memory = *memory;
  ISOZONE_ASSIGN_OR_RETURN(const auto ahead, options.TakeSize("read_ahead_memory", 0, 4 * kGiB));
  if (ahead) mount.read_ahead_memory = *ahead;
  ISOZONE_ASSIGN_OR_RETURN(const auto isolation, options.TakeBool("isolation"));
  if (isolation) mount.isolation = *isolation;
  if (const auto shares = options.Take("io_shares")) {
    ISOZONE_ASSIGN_OR_RETURN(mount.io_shares, IoShares::Parse(*shares));
  }
  ISOZONE_ASSIGN_OR_RETURN(const auto gap, options.TakeUnsigned("write_gap", 0, 1000));
  if (gap) mount.write_gap = static_cast<uint32_t>(*gap);
  ISOZONE_ASSIGN_OR_RETURN(const auto checkpoint, options.TakeSize("checkpoint_after", 64 * kKiB, 4 * kGiB));
  if (checkpoint) mount.checkpoint_after = *checkpoint;
  ISOZONE_ASSIGN_OR_RETURN(const auto through, options.TakeBool("log_write_through"));
  if (through) mount.log_write_through = *through;
  ISOZONE_RETURN_IF_ERROR(CheckNames(mount));
  return mount;
}

}  // namespace isozone
