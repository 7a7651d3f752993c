// The MANIFEST of a database: whatever is in it, it gives some tables or none.
//
//   input   flags : 1 byte | blocks of ManifestTables::kBlockBytes, the last of which may be shorter
//
// Flag 1 takes the bytes behind the flags for edits, each a length of 2 bytes and so many bytes, and puts them into
// records with right checksums.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/crc32c.h"
#include "isozone/database/manifest_tables.h"

namespace {

using Bytes = std::span<const std::byte>;
using isozone::cli::ManifestTables;

constexpr uint8_t kEdits = 1;

void Check(const ManifestTables& tables) {
  for (const auto& [number, table] : tables.tables()) {
    if (table.smallest.bytes.size() > ManifestTables::kMostKeyBytes) std::abort();
    if (table.smallest.Text().empty() || table.largest.Text().empty()) std::abort();
    if (tables.ColumnFamilyName(table.column_family).size() > ManifestTables::kBlockBytes) std::abort();
  }
}

std::vector<std::byte> RecordOf(Bytes edit) {
  std::vector<std::byte> record(7);
  record[4] = static_cast<std::byte>(edit.size());
  record[5] = static_cast<std::byte>(edit.size() >> 8);
  record[6] = std::byte{1};
  const uint32_t crc = isozone::Crc32c(edit, isozone::Crc32c(Bytes(record).subspan(6)));
  const uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
  for (size_t i = 0; i < 4; ++i) record[i] = static_cast<std::byte>(masked >> (8 * i));
  record.insert(record.end(), edit.begin(), edit.end());
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Bytes input = std::as_bytes(std::span(data, size));
  const auto flags = static_cast<uint8_t>(input.front());
  input = input.subspan(1);
  ManifestTables tables;
  if ((flags & kEdits) == 0) {
    while (!input.empty()) {
      const size_t bytes = std::min(input.size(), ManifestTables::kBlockBytes);
      if (!tables.AddBlock(input.first(bytes))) break;
      input = input.subspan(bytes);
    }
  }
  while ((flags & kEdits) != 0 && input.size() >= 2) {
    const size_t wanted = static_cast<size_t>(input[0]) | static_cast<size_t>(input[1]) << 8;
    input = input.subspan(2);
    const Bytes edit = input.first(std::min({wanted, input.size(), ManifestTables::kBlockBytes - 7}));
    tables.AddBlock(RecordOf(edit));
    input = input.subspan(edit.size());
  }
  Check(tables);
  return 0;
}
