#include "isozone/backup/manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <exception>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/crc32c.h"
#include "store/inode_files.h"
#include "store/zone/data_class.h"

namespace isozone::cli {
namespace {

constexpr char kFormat[] = "isozone-backup";
constexpr int kVersion = 1;
constexpr int kMaxNesting = 8;          // of nested objects and arrays
constexpr size_t kMaxPath = 64 * kKiB;  // bytes
constexpr uint32_t kMaxMode = 07777;
constexpr uint32_t kNsInS = 1'000'000'000;
constexpr uint64_t kTimeGranularity = 2;  // seconds: a change that soon after another may have the same time
constexpr char kSymlinkType[] = "symlink";
constexpr std::array<FileKind, 3> kKinds = {FileKind::kData, FileKind::kLog, FileKind::kSmall};

std::string EscapeText(std::string_view path) {
  std::string escaped;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f && c != '%') {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", byte);
    }
  }
  return escaped;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::optional<std::string> UnescapeText(std::string_view escaped) {
  std::string path;
  for (size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '%') {
      path += escaped[i];
      continue;
    }
    if (i + 2 >= escaped.size()) return std::nullopt;
    const int high = HexDigit(escaped[i + 1]);
    const int low = HexDigit(escaped[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    path += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return path;
}

std::string Checksum(const Json& document) {
  const std::string text = document.dump();
  return fmt::format("{:08x}", Crc32c(text.data(), text.size()));
}

std::string Unescaped(const Json& json) {
  auto text = UnescapeText(json.get_ref<const std::string&>());
  if (!text) throw std::runtime_error("a text is escaped wrongly");
  return *std::move(text);
}

// A whole number that an Int can be. Json's own conversion takes a fraction, or what is too large, for another number.
template <typename Int>
Int NumberIn(const Json& json, const std::string& name) {
  const Json& value = json.at(name);
  if (value.is_number_unsigned()) {
    if (const auto number = value.get<uint64_t>(); std::in_range<Int>(number)) return static_cast<Int>(number);
  } else if (value.is_number_integer()) {
    if (const auto number = value.get<int64_t>(); std::in_range<Int>(number)) return static_cast<Int>(number);
  }
  throw std::runtime_error(fmt::format("{} is no number that it can be", name));
}

FileTime DecodeTime(const Json& json, const std::string& name) {
  const FileTime time{NumberIn<uint64_t>(json, name), NumberIn<uint32_t>(json, name + "_ns")};
  if (time.ns >= kNsInS) throw std::runtime_error(fmt::format("{} ns are a second or more", time.ns));
  return time;
}

BackupAttributes DecodeAttributes(const Json& json) {
  BackupAttributes attributes;
  attributes.modified = DecodeTime(json, "modified");
  const auto& mode = json.at("mode").get_ref<const std::string&>();
  const auto [end, error] = std::from_chars(mode.data(), mode.data() + mode.size(), attributes.mode, 8);
  if (error != std::errc() || end != mode.data() + mode.size() || attributes.mode > kMaxMode) {
    throw std::runtime_error(fmt::format("'{}' are no permission bits", mode));
  }
  attributes.user = NumberIn<uint32_t>(json, "user");
  attributes.group = NumberIn<uint32_t>(json, "group");
  const auto xattrs = json.find("xattrs");
  if (xattrs == json.end()) return attributes;
  for (const auto& [name, value] : xattrs->items()) attributes.xattrs[Unescaped(name)] = Unescaped(value);
  return attributes;
}

// Throws what the library throws where a member is missing or of another type.
BackupFile DecodeMembers(const Json& json) {
  BackupFile file;
  for (const Json& path : json.at("paths")) {
    file.paths.push_back(UnescapeText(path.get_ref<const std::string&>()).value_or(""));
  }
  const auto& type = json.at("type").get_ref<const std::string&>();
  file.is_directory = type == "directory";
  file.attributes = DecodeAttributes(json);
  file.changed = DecodeTime(json, "changed");
  if (file.is_directory) return file;
  file.inode = NumberIn<uint64_t>(json, "inode");
  if (type == kSymlinkType) {
    file.kind = FileKind::kSmall;
    file.target = Unescaped(json.at("target"));
    const bool valid = file.is_symlink() && file.target.size() <= InodeFiles::kTargetMax;
    if (!valid || file.target.find('\0') != std::string::npos) throw std::runtime_error("a target is invalid");
    return file;
  }
  const auto* const kind = std::ranges::find(kKinds, type, FileKindName);
  if (kind == kKinds.end()) throw std::runtime_error(fmt::format("no type is called '{}'", type));
  file.kind = *kind;
  file.size = NumberIn<uint64_t>(json, "size");
  const auto lifetime = NumberIn<uint32_t>(json, "lifetime");
  if (lifetime >= kLifetimeCount) throw std::runtime_error(fmt::format("there is no lifetime {}", lifetime));
  file.lifetime = static_cast<Lifetime>(lifetime);
  const int level = NumberIn<int>(json, "level");
  if (level < DataClass::kNoLevel || level > INT8_MAX) throw std::runtime_error(fmt::format("no level is {}", level));
  file.level = static_cast<int8_t>(level);
  file.extents_id = NumberIn<uint32_t>(json, "extents");
  file.crc32c = NumberIn<uint32_t>(json, "crc32c");
  return file;
}

Manifest DecodeDocument(const Json& document) {
  Manifest manifest;
  manifest.uuid = document.at("uuid").get<std::string>();
  manifest.label = UnescapeText(document.at("label").get<std::string>()).value_or("");
  manifest.began_s = NumberIn<uint64_t>(document, "began");
  manifest.root = DecodeMembers(document.at("root"));
  if (!manifest.root.is_directory) throw std::runtime_error("its root is no directory");
  std::set<std::string> seen;
  for (const Json& member : document.at("files")) {
    auto file = DecodeBackupFile(member);
    if (!file.ok()) throw std::runtime_error(std::string(file.status().message()));
    for (const std::string& path : file->paths) {
      if (!seen.insert(path).second) throw std::runtime_error(path + " is there twice");
    }
    manifest.files.push_back(std::move(file).value());
  }
  return manifest;
}

std::string_view TypeNameOf(const BackupFile& file) {
  if (file.is_directory) return "directory";
  return file.is_symlink() ? kSymlinkType : FileKindName(file.kind);
}

Status Damaged(std::string_view why) { return Status::Corruption(fmt::format("the manifest is damaged: {}", why)); }

}  // namespace

bool IsSafePath(std::string_view path) {
  if (path.size() < 2 || path.size() > kMaxPath || path.front() != '/' || path.find('\0') != std::string_view::npos) {
    return false;
  }
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (name.empty() || name == "." || name == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool IsReservedPath(std::string_view path) {
  if (!path.starts_with('/')) return false;
  const std::string_view first = path.substr(0, path.find('/', 1));
  return first == kRestoreFolder || first.substr(1) == kManifestName;
}

bool BackupFile::IsSettled(uint64_t seen_s) const {
  return seen_s >= kTimeGranularity && std::max(attributes.modified.s, changed.s) <= seen_s - kTimeGranularity;
}

bool BackupFile::HasContentOf(const BackupFile& later, uint64_t seen_s) const {
  const bool same_file = has_content() && later.has_content() && kind == later.kind && inode == later.inode &&
                         size == later.size && attributes.modified == later.attributes.modified;
  return same_file && (extents_id == later.extents_id || (changed == later.changed && IsSettled(seen_s)));
}

bool BackupFile::IsBeginningOf(const BackupFile& later) const {
  if (!has_content() || !later.has_content() || kind != later.kind || inode != later.inode || size > later.size) {
    return false;
  }
  auto a = extents.begin();
  auto b = later.extents.begin();
  for (uint64_t offset = 0; offset < size;) {
    if (a == extents.end() || b == later.extents.end()) return false;
    const FileExtent mine = *a;
    const FileExtent its = *b;
    if (mine.PlaceOf(offset - mine.file_offset) != its.PlaceOf(offset - its.file_offset)) return false;
    const uint64_t end_a = mine.file_offset + mine.length;
    const uint64_t end_b = its.file_offset + its.length;
    offset = std::min(end_a, end_b);
    if (end_a == offset) ++a;
    if (end_b == offset) ++b;
  }
  return true;
}

uint64_t Manifest::TotalSize() const {
  uint64_t total = 0;
  for (const BackupFile& file : files) total += file.size;
  return total;
}

uint64_t Manifest::FileCount() const {
  return static_cast<uint64_t>(std::ranges::count(files, false, &BackupFile::is_directory));
}

Json EncodeBackupFile(const BackupFile& file) {
  Json paths = Json::array();
  for (const std::string& path : file.paths) paths.push_back(EscapeText(path));
  Json json = {{"paths", paths},
               {"type", TypeNameOf(file)},
               {"modified", file.attributes.modified.s},
               {"modified_ns", file.attributes.modified.ns},
               {"changed", file.changed.s},
               {"changed_ns", file.changed.ns},
               {"mode", fmt::format("{:04o}", file.attributes.mode)},
               {"user", file.attributes.user},
               {"group", file.attributes.group}};
  for (const auto& [name, value] : file.attributes.xattrs) json["xattrs"][EscapeText(name)] = EscapeText(value);
  if (file.is_directory) return json;
  json["inode"] = file.inode;
  if (file.is_symlink()) {
    json["target"] = EscapeText(file.target);
    return json;
  }
  json["size"] = file.size;
  json["lifetime"] = static_cast<uint32_t>(file.lifetime);
  json["level"] = static_cast<int>(file.level);
  json["extents"] = file.extents_id;
  json["crc32c"] = file.crc32c;
  return json;
}

Result<BackupFile> DecodeBackupFile(const Json& json) {
  try {
    BackupFile file = DecodeMembers(json);
    if (file.paths.empty() || !std::ranges::all_of(file.paths, IsSafePath)) return Damaged("a path is invalid");
    if (std::ranges::any_of(file.paths, IsReservedPath)) return Damaged("a file has a name that backups use");
    return file;
  } catch (const std::exception& error) {
    return Damaged(error.what());
  }
}

std::string Manifest::Encode() const {
  Json members = Json::array();
  for (const BackupFile& file : files) members.push_back(EncodeBackupFile(file));
  Json document = {{"format", kFormat},          {"version", kVersion}, {"uuid", uuid},
                   {"label", EscapeText(label)}, {"began", began_s},    {"root", EncodeBackupFile(root)},
                   {"files", std::move(members)}};
  document["crc32c"] = Checksum(document);
  return document.dump(1) + "\n";
}

Result<Manifest> Manifest::Decode(std::string_view text) {
  try {
    if (text.size() > kMaxManifest) return Damaged("it is too long");
    // What is nested deep would overflow the stack where it is written again, for the checksum.
    Json document = Json::parse(text, [](int depth, Json::parse_event_t /*event*/, Json& /*parsed*/) {
      if (depth > kMaxNesting) throw std::runtime_error("it is nested too deep");
      return true;
    });
    if (document.at("format") != kFormat) return Damaged("it is no manifest of a backup");
    const int version = NumberIn<int>(document, "version");
    if (version != kVersion) {
      return Status::NotSupported(
          fmt::format("the backup has version {}, and this program reads {}", version, kVersion));
    }
    const auto checksum = document.at("crc32c").get<std::string>();
    document.erase("crc32c");
    if (checksum != Checksum(document)) return Damaged("its checksum is wrong");
    return DecodeDocument(document);
  } catch (const std::exception& error) {
    return Damaged(error.what());
  }
}

}  // namespace isozone::cli
