#include "isozone/zenfs/zenfs_metadata.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"

namespace isozone::cli {
namespace {

constexpr uint32_t kMagic = 0x5a454e46;
constexpr uint32_t kZenFsVersion = 2;
constexpr size_t kRecordHeader = 8;
constexpr uint32_t kCrcMaskDelta = 0xa282ead8;
constexpr uint32_t kMaxBlock = 65536;

enum RecordTag : uint32_t { kSnapshot = 1, kFileUpdate = 2, kFileDeletion = 3, kEndOfZone = 4, kFileReplace = 5 };
enum FieldTag : uint32_t {
  kId = 1,
  kSize = 3,
  kLifetime = 4,
  kExtent = 5,
  kModified = 6,
  kActiveExtent = 7,
  kIsSparse = 8,
  kName = 9,
};

Status DamagedZenFs(std::string_view what) { return Status::Corruption(fmt::format("ZenFS metadata: {}", what)); }

uint32_t Unmask(uint32_t masked) {
  const uint32_t rotated = masked - kCrcMaskDelta;
  return rotated >> 17 | rotated << 15;
}

// Takes values from the front of some bytes; false if there are too few.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : left_(bytes) {}

  bool done() const { return left_.empty(); }

  template <typename T>
  bool Take(T& value) {
    if (left_.size() < sizeof(T)) return false;
    value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= T{static_cast<uint8_t>(left_[i])} << (8 * i);
    left_.remove_prefix(sizeof(T));
    return true;
  }

  bool TakeBytes(size_t size, std::string_view& bytes) {
    if (left_.size() < size) return false;
    bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }

  // Bytes with their length before them, as a varint of at most 32 bits.
  bool TakeString(std::string_view& bytes) {
    uint64_t length = 0;
    for (int shift = 0;; shift += 7) {
      uint8_t byte = 0;
      if (shift > 28 || !Take(byte)) return false;
      length |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) break;
    }
    return length <= std::numeric_limits<uint32_t>::max() && TakeBytes(length, bytes);
  }

 private:
  std::string_view left_;
};

bool DecodeExtent(std::string_view bytes, ZenFsFile& file) {
  Cursor cursor(bytes);
  ZenFsExtent extent;
  if (!cursor.Take(extent.start) || !cursor.Take(extent.length) || !cursor.done()) return false;
  file.extents.push_back(extent);
  return true;
}

bool DecodeField(uint32_t tag, Cursor& cursor, ZenFsFile& file) {
  std::string_view bytes;
  switch (tag) {
    case kSize:
      return cursor.Take(file.size);
    case kLifetime:
      return cursor.Take(file.lifetime);
    case kExtent:
      return cursor.TakeString(bytes) && DecodeExtent(bytes, file);
    case kModified:
      return cursor.Take(file.modified_s);
    case kActiveExtent:
      return cursor.Take(file.active_start);
    case kIsSparse:
      file.is_sparse = true;
      return true;
    case kName:
      if (!cursor.TakeString(bytes) || bytes.empty()) return false;
      file.names.emplace_back(bytes);
      return true;
    default:
      return false;
  }
}

Result<ZenFsFile> DecodeFile(std::string_view data) {
  ZenFsFile file;
  Cursor cursor(data);
  uint32_t tag = 0;
  if (!cursor.Take(tag) || tag != kId || !cursor.Take(file.id)) return DamagedZenFs("a file has no number");
  while (!cursor.done()) {
    if (!cursor.Take(tag) || !DecodeField(tag, cursor, file)) {
      return DamagedZenFs(fmt::format("file {} has an invalid field", file.id));
    }
  }
  return file;
}

}  // namespace

Result<ZenFsSuperblock> ZenFsSuperblock::Decode(std::string_view record) {
  ZenFsSuperblock superblock;
  Cursor cursor(record);
  uint32_t magic = 0;
  uint32_t version = 0;
  uint32_t flags = 0;
  std::string_view uuid;
  const bool whole = record.size() == kSize && cursor.Take(magic) && cursor.TakeBytes(37, uuid) &&
                     cursor.Take(superblock.sequence) && cursor.Take(version) && cursor.Take(flags) &&
                     cursor.Take(superblock.block_size) && cursor.Take(superblock.zone_size) &&
                     cursor.Take(superblock.zone_count);
  if (!whole || magic != kMagic) return DamagedZenFs("this is no superblock");
  if (version != kZenFsVersion) {
    return Status::NotSupported(
        fmt::format("the ZenFS device has version {} of the format, and version {} is read", version, kZenFsVersion));
  }
  return superblock;
}

Result<std::optional<std::string_view>> NextZenFsRecord(std::string_view zone, uint32_t block_size, uint64_t& offset) {
  if (block_size == 0 || block_size > kMaxBlock) return DamagedZenFs("the block size is invalid");
  if (offset >= zone.size()) return std::optional<std::string_view>();
  Cursor cursor(zone.substr(offset));
  uint32_t masked = 0;
  uint32_t length = 0;
  std::string_view payload;
  if (!cursor.Take(masked) || !cursor.Take(length) || !cursor.TakeBytes(length, payload)) {
    return DamagedZenFs(fmt::format("the record at byte {} of its zone is cut off", offset));
  }
  if (Crc32c(zone.data() + offset + 4, 4 + payload.size()) != Unmask(masked)) {
    return DamagedZenFs(fmt::format("the record at byte {} of its zone has a wrong checksum", offset));
  }
  offset += (kRecordHeader + length + block_size - 1) / block_size * block_size;
  return std::optional(payload);
}

Result<ZenFsFiles::Applied> ZenFsFiles::Apply(std::string_view record) {
  Cursor cursor(record);
  uint32_t tag = 0;
  if (!cursor.Take(tag) || tag == kEndOfZone) return Applied::kEnd;
  std::string_view data;
  if (!cursor.TakeString(data)) return DamagedZenFs("a record has no content");
  switch (tag) {
    case kSnapshot:
      ISOZONE_RETURN_IF_ERROR(ApplySnapshot(data));
      break;
    case kFileUpdate:
    case kFileReplace:
      ISOZONE_RETURN_IF_ERROR(ApplyUpdate(data, tag == kFileReplace));
      break;
    case kFileDeletion:
      ISOZONE_RETURN_IF_ERROR(ApplyDeletion(data));
      break;
    default:
      return DamagedZenFs(fmt::format("there is no record of kind {}", tag));
  }
  return Applied::kGoOn;
}

Status ZenFsFiles::ApplySnapshot(std::string_view data) {
  files_.clear();
  has_snapshot_ = true;
  for (Cursor cursor(data); !cursor.done();) {
    std::string_view bytes;
    if (!cursor.TakeString(bytes)) return DamagedZenFs("a snapshot is cut off");
    ISOZONE_ASSIGN_OR_RETURN(ZenFsFile file, DecodeFile(bytes));
    const uint64_t id = file.id;
    // A file with several names is there once for each.
    files_.insert_or_assign(id, std::move(file));
  }
  return Status::Ok();
}

Status ZenFsFiles::ApplyUpdate(std::string_view data, bool replaces) {
  ISOZONE_ASSIGN_OR_RETURN(ZenFsFile update, DecodeFile(data));
  ZenFsFile& file = files_[update.id];
  if (!replaces) {
    file.extents.insert(file.extents.end(), update.extents.begin(), update.extents.end());
    update.extents = std::move(file.extents);
  }
  file = std::move(update);
  return Status::Ok();
}

Status ZenFsFiles::ApplyDeletion(std::string_view data) {
  Cursor cursor(data);
  uint64_t id = 0;
  std::string_view name;
  if (!cursor.Take(id) || !cursor.TakeString(name)) return DamagedZenFs("a removal is cut off");
  const auto file = files_.find(id);
  if (file == files_.end() || std::erase(file->second.names, name) != 1) {
    return DamagedZenFs(fmt::format("file {} is removed, but is not there", id));
  }
  if (file->second.names.empty()) files_.erase(file);
  return Status::Ok();
}

}  // namespace isozone::cli
