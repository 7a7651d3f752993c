#include "isozone/database/key_ranges.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "store/file_type.h"

namespace isozone::cli {
namespace {

constexpr size_t kReadBytes = 32 * ManifestTables::kBlockBytes;
constexpr uint64_t kMostCurrentBytes = 256;

// Nothing if it is no table.
std::optional<uint64_t> NumberOf(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (FileTypeOf(name) != FileType::kTable || name.ends_with(".blob")) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The name in CURRENT.
Result<std::string> ManifestName(FileSystem& file_system, const std::string& directory) {
  ISOZONE_ASSIGN_OR_RETURN(const auto current, file_system.OpenForRead(directory + "/CURRENT"));
  std::string name(std::min(current->size(), kMostCurrentBytes), '\0');
  ISOZONE_ASSIGN_OR_RETURN(const size_t read,
                           current->Read(0, std::as_writable_bytes(std::span(name)), IoClass::kOther));
  name.resize(read);
  if (name.ends_with('\n')) name.pop_back();
  if (FileTypeOf(name) != FileType::kManifest || name.find('/') != std::string::npos) {
    return Status::Corruption("CURRENT does not name a MANIFEST");
  }
  return name;
}

Result<ManifestTables> ReadManifest(FileSystem& file_system, const std::string& directory) {
  ISOZONE_ASSIGN_OR_RETURN(const std::string name, ManifestName(file_system, directory));
  ISOZONE_ASSIGN_OR_RETURN(const auto manifest, file_system.OpenForRead(directory + "/" + name));
  ManifestTables tables;
  if (manifest->size() > KeyRanges::kMostManifestBytes) return tables;
  std::vector<std::byte> buffer(kReadBytes);
  for (uint64_t offset = 0; offset < manifest->size();) {
    ISOZONE_ASSIGN_OR_RETURN(const size_t read, manifest->Read(offset, buffer, IoClass::kOther));
    if (read == 0) break;
    offset += read;
    for (size_t at = 0; at < read; at += ManifestTables::kBlockBytes) {
      const size_t bytes = std::min(ManifestTables::kBlockBytes, read - at);
      if (!tables.AddBlock(std::span(buffer).subspan(at, bytes))) return tables;
    }
  }
  return tables;
}

}  // namespace

const ManifestTables& KeyRanges::TablesIn(const std::string& directory) {
  const auto [entry, is_new] = databases_.try_emplace(directory);
  if (is_new) {
    // A database that cannot be read has files all the same: their ranges are then not known.
    if (auto tables = ReadManifest(file_system_, directory); tables.ok()) entry->second = std::move(tables).value();
  }
  return entry->second;
}

Json KeyRanges::TableJson(std::string_view path) {
  const auto number = NumberOf(path);
  const size_t slash = path.rfind('/');
  if (!number || slash == std::string_view::npos) return {};
  const ManifestTables& database = TablesIn(std::string(path.substr(0, slash)));
  const auto found = database.tables().find(*number);
  if (found == database.tables().end()) return {};
  const ManifestTable& table = found->second;
  return {{"column_family", database.ColumnFamilyName(table.column_family)},
          {"level", table.level},
          {"smallest_key", table.smallest.Text()},
          {"largest_key", table.largest.Text()}};
}

Json KeyRanges::TableJson(std::span<const std::string> paths) {
  for (const std::string& path : paths) {
    if (Json table = TableJson(path); !table.is_null()) return table;
  }
  return {};
}

}  // namespace isozone::cli
