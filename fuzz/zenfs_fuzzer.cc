// Metadata of ZenFS: whatever is in it, it is refused with a reason, or gives files.
//
//   input   flags : 1 byte | records, each: length : 2 bytes | so many bytes
//
// Flag 1 takes the bytes behind the flags for a metadata zone, with the checksums of its records.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "isozone/zenfs/zenfs_metadata.h"

namespace {

constexpr uint8_t kRaw = 1;
constexpr uint32_t kBlock = 512;

void Apply(std::string_view record, isozone::cli::ZenFsFiles& files) {
  const auto superblock = isozone::cli::ZenFsSuperblock::Decode(record);
  if (!superblock.ok() && superblock.status().message().empty()) std::abort();
  const auto applied = files.Apply(record);
  if (!applied.ok() && applied.status().message().empty()) std::abort();
  for (const auto& [id, file] : files.files()) {
    if (id != file.id) std::abort();
  }
}

void ReadZone(std::string_view zone, isozone::cli::ZenFsFiles& files) {
  for (uint64_t offset = 0;;) {
    const uint64_t before = offset;
    const auto record = isozone::cli::NextZenFsRecord(zone, kBlock, offset);
    if (!record.ok() || !*record) return;
    if (offset <= before) std::abort();  // it would not end
    Apply(**record, files);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto flags = static_cast<uint8_t>(input.front());
  input.remove_prefix(1);
  isozone::cli::ZenFsFiles files;
  if ((flags & kRaw) != 0) {
    ReadZone(input, files);
    return 0;
  }
  while (input.size() >= 2) {
    const size_t length = static_cast<uint8_t>(input[0]) | size_t{static_cast<uint8_t>(input[1])} << 8;
    input.remove_prefix(2);
    Apply(input.substr(0, length), files);
    input.remove_prefix(length < input.size() ? length : input.size());
  }
  return 0;
}
