#include "fs/file_system.h"

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

Result<MountOptions> MountOptions::FromUri(UriOptions& options) {
  MountOptions mount;
  if (auto policy = options.Take("policy")) mount.policy = *policy;
  ISOZONE_ASSIGN_OR_RETURN(const auto buffer, options.TakeSize("write_buffer", 64 * kKiB, 64 * kMiB));
  if (buffer) mount.write_buffer = *buffer;
  ISOZONE_ASSIGN_OR_RETURN(const auto checkpoint, options.TakeSize("checkpoint_after", 64 * kKiB, 4 * kGiB));
  if (checkpoint) mount.checkpoint_after = *checkpoint;
  ISOZONE_ASSIGN_OR_RETURN(const auto through, options.TakeBool("log_write_through"));
  if (through) mount.log_write_through = *through;
  return mount;
}

}  // namespace isozone
