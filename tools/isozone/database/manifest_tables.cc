#include "isozone/database/manifest_tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/varint.h"

namespace isozone::cli {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kHeadBytes = 7;
constexpr size_t kMostEditBytes = size_t{64} << 20;
constexpr size_t kSequenceBytes = 8;  // behind the user's key, in the keys of a MANIFEST

// What follows the tag is in the comment. `lp`: a length, and so many bytes.
enum Tag : uint64_t {
  kComparator = 1,           // lp
  kLogNumber = 2,            // number
  kNextFileNumber = 3,       // number
  kLastSequence = 4,         // number
  kCompactCursor = 5,        // level, lp
  kDeletedFile = 6,          // level, number
  kNewFile = 7,              // level, number, size, lp smallest, lp largest
  kPrevLogNumber = 9,        // number
  kMinLogNumberToKeep = 10,  // number
  kNewFile2 = 100,           // as kNewFile, two sequence numbers
  kNewFile3 = 102,           // level, number, path, size, lp, lp, two sequence numbers
  kNewFile4 = 103,           // as kNewFile2, then fields: tag, lp; until the tag 1
  kColumnFamily = 200,       // number: that of this edit
  kColumnFamilyAdd = 201,    // lp name
  kColumnFamilyDrop = 202,
  kMaxColumnFamily = 203,   // number
  kInAtomicGroup = 300,     // number
  kBlobFileAddition = 400,  // three numbers, two lp, then fields: tag, lp; until the tag 0
  kBlobFileGarbage = 401,   // three numbers, then fields: tag, lp; until the tag 0
  kMayBeSkipped = 1 << 13,
  kWalAddition = kMayBeSkipped + 4,  // number, then fields: tag, number; until the tag 1. Without a length in front
  kWalDeletion = kMayBeSkipped + 5,  // number. Without a length in front
};

// Takes fields from the front of an edit. After the first that is not there, all are 0, and Ok says so.
class Fields {
 public:
  explicit Fields(Bytes bytes) : bytes_(bytes) {}

  bool Ok() const { return ok_; }
  bool Empty() const { return bytes_.empty(); }
  uint64_t Number() {
    uint64_t value = 0;
    ok_ = ok_ && TakeVarint(bytes_, value);
    return ok_ ? value : 0;
  }
  std::string_view Text() {
    const uint64_t length = Number();
    ok_ = ok_ && length <= bytes_.size();
    if (!ok_) return {};
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), length);
    bytes_ = bytes_.subspan(length);
    return text;
  }
  void Numbers(int count) {
    for (int i = 0; i < count; ++i) Number();
  }
  void TextsUntil(uint64_t last_tag) {
    while (ok_ && Number() != last_tag) Text();
  }

 private:
  Bytes bytes_;
  bool ok_ = true;
};

TableKey UserKey(std::string_view key) {
  key.remove_suffix(std::min(key.size(), kSequenceBytes));
  return {std::string(key.substr(0, ManifestTables::kMostKeyBytes)), key.size() > ManifestTables::kMostKeyBytes};
}

ManifestTable NewTable(uint64_t tag, Fields& fields, uint64_t& number) {
  ManifestTable table;
  table.level = static_cast<uint32_t>(fields.Number());
  number = fields.Number();
  fields.Numbers(tag == kNewFile3 ? 2 : 1);
  table.smallest = UserKey(fields.Text());
  table.largest = UserKey(fields.Text());
  if (tag != kNewFile) fields.Numbers(2);
  if (tag == kNewFile4) fields.TextsUntil(1);
  return table;
}

// Takes the field of a tag that changes no tables. Returns whether the tag is known.
bool SkipField(uint64_t tag, Fields& fields) {
  switch (tag) {
    case kLogNumber:
    case kNextFileNumber:
    case kLastSequence:
    case kPrevLogNumber:
    case kMinLogNumberToKeep:
    case kMaxColumnFamily:
    case kInAtomicGroup:
    case kWalDeletion:
      fields.Number();
      return true;
    case kComparator:
      fields.Text();
      return true;
    case kCompactCursor:
      fields.Number();
      fields.Text();
      return true;
    case kBlobFileAddition:
      fields.Numbers(3);
      fields.Text();
      fields.Text();
      fields.TextsUntil(0);
      return true;
    case kBlobFileGarbage:
      fields.Numbers(3);
      fields.TextsUntil(0);
      return true;
    case kWalAddition:
      fields.Number();
      while (fields.Ok() && fields.Number() != 1) fields.Number();
      return true;
    default:
      fields.Text();
      return (tag & kMayBeSkipped) != 0;
  }
}

struct Edit {
  uint32_t column_family = 0;
  std::string_view added_family;
  bool drops_family = false;
  std::vector<uint64_t> removed;
  std::vector<std::pair<uint64_t, ManifestTable>> added;
};

std::optional<Edit> Decode(Bytes bytes) {
  Edit edit;
  Fields fields(bytes);
  while (fields.Ok() && !fields.Empty()) {
    const uint64_t tag = fields.Number();
    if (tag == kDeletedFile) {
      fields.Number();
      edit.removed.push_back(fields.Number());
    } else if (tag == kNewFile || tag == kNewFile2 || tag == kNewFile3 || tag == kNewFile4) {
      uint64_t number = 0;
      ManifestTable table = NewTable(tag, fields, number);
      edit.added.emplace_back(number, std::move(table));
    } else if (tag == kColumnFamily) {
      edit.column_family = static_cast<uint32_t>(fields.Number());
    } else if (tag == kColumnFamilyAdd) {
      edit.added_family = fields.Text();
    } else if (tag == kColumnFamilyDrop) {
      edit.drops_family = true;
    } else if (!SkipField(tag, fields)) {
      return std::nullopt;
    }
  }
  return fields.Ok() ? std::optional(std::move(edit)) : std::nullopt;
}

uint32_t Little32(Bytes bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  return value;
}

uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; }

}  // namespace

std::string TableKey::Text() const {
  const bool plain = std::ranges::all_of(bytes, [](char c) { return c >= ' ' && c <= '~'; });
  std::string text;
  if (plain && !bytes.empty() && !bytes.starts_with("0x")) {
    text = bytes;
  } else {
    text = "0x";
    for (const char c : bytes) text += fmt::format("{:02X}", static_cast<uint8_t>(c));
  }
  return cut ? text + "..." : text;
}

bool ManifestTables::AddBlock(Bytes block) {
  while (block.size() >= kHeadBytes) {
    const uint32_t crc = Little32(block);
    const size_t length = static_cast<size_t>(block[4]) | static_cast<size_t>(block[5]) << 8;
    const auto type = static_cast<uint8_t>(block[6]);
    if (type == 0 && length == 0) break;  // the rest of the block is not used
    if (length > block.size() - kHeadBytes) return false;
    const Bytes content = block.subspan(kHeadBytes, length);
    if (Masked(Crc32c(content, Crc32c(block.subspan(6, 1)))) != crc) return false;
    if (!AddRecord(type, content)) return false;
    block = block.subspan(kHeadBytes + length);
  }
  return true;
}

bool ManifestTables::AddRecord(uint8_t type, Bytes content) {
  constexpr uint8_t kWhole = 1;
  constexpr uint8_t kFirst = 2;
  constexpr uint8_t kLast = 4;  // what is between them is a part in the middle
  if (type < kWhole || type > kLast) return false;
  if (type == kWhole) return Apply(content);
  if (type == kFirst) parts_.emplace();
  if (!parts_ || parts_->size() + content.size() > kMostEditBytes) return false;
  parts_->append(reinterpret_cast<const char*>(content.data()), content.size());
  if (type != kLast) return true;
  const std::string whole = *std::exchange(parts_, std::nullopt);
  return Apply(std::as_bytes(std::span(whole)));
}

bool ManifestTables::Apply(Bytes bytes) {
  const std::optional<Edit> edit = Decode(bytes);
  if (!edit) {
    tables_.clear();
    return false;
  }
  if (!edit->added_family.empty()) column_families_[edit->column_family] = edit->added_family;
  if (edit->drops_family) Drop(edit->column_family);
  // A table that changes its level is in both.
  for (const uint64_t number : edit->removed) tables_.erase(number);
  for (const auto& [number, table] : edit->added) {
    ManifestTable& live = tables_[number];
    live = table;
    live.column_family = edit->column_family;
  }
  return true;
}

void ManifestTables::Drop(uint32_t column_family) {
  std::erase_if(tables_, [column_family](const auto& entry) { return entry.second.column_family == column_family; });
  column_families_.erase(column_family);
}

std::string ManifestTables::ColumnFamilyName(uint32_t column_family) const {
  const auto found = column_families_.find(column_family);
  if (found != column_families_.end()) return found->second;
  return column_family == 0 ? "default" : fmt::format("{}", column_family);
}

}  // namespace isozone::cli
