#include "store/kept/kept_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/boot_id.h"
#include "base/crc32c.h"
#include "store/kept/kept_memory.h"

namespace isozone {
namespace {

template <typename Value>
Value ValueAt(std::span<const std::byte> bytes, size_t offset) {
  Value value{};
  if (offset <= bytes.size() && sizeof(value) <= bytes.size() - offset) {
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
  }
  return value;
}

template <size_t kSize>
std::string TextOf(const std::array<char, kSize>& field) {
  return {field.data(), strnlen(field.data(), field.size())};
}

// Nothing: it is not the header of a kept memory of `file_bytes` bytes.
std::optional<KeptHeader> CheckHeader(std::span<const std::byte> bytes, uint64_t file_bytes) {
  const auto header = ValueAt<KeptHeader>(bytes, 0);
  const uint64_t size = header.file.bytes;
  if (header.file.magic != kKeptMagic || header.file.version != kKeptVersion) return std::nullopt;
  if (size < kKeptMemoryMin || size > kKeptMemoryMax || size > file_bytes) return std::nullopt;
  const KeptLayout layout(size);
  if (header.ring_bytes != layout.ring_bytes || header.granules != layout.granules) return std::nullopt;
  return header;
}

// That open(2) fails with `error`. kNotFound only where there is nothing that could be kept memory of the device.
Status OpenError(int error, const std::string& path, const PageOwner& owner) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || !MayHaveMounted(status, owner)) {
    return Status::NotFound(fmt::format("{} is no kept memory", path));
  }
  if (error != EACCES) {
    return Status::FromErrno(error, fmt::format("{} may hold what a killed process has not written", path));
  }
  return Status::PermissionDenied(
      fmt::format("{} may hold what a killed process of user {} has not written: mount as this user or as root, or "
                  "remove the file, and with it what it holds",
                  path, status.st_uid));
}

bool IsInUse(const KeptUnit& unit) {
  return unit.sequence % 2 == 0 && unit.inode != 0 && PublishedLength(unit.published) > 0;
}

}  // namespace

KeptReader::KeptReader(FileDescriptor fd, const KeptHeader& header)
    : fd_(std::move(fd)), header_(header), layout_(header.file.bytes) {}

Result<std::unique_ptr<KeptReader>> KeptReader::OpenFile(const std::string& path, const PageOwner& owner) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (fd.get() < 0) return OpenError(errno, path, owner);
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || !MayHaveMounted(status, owner)) {
    return Status::NotFound(fmt::format("{} is no kept memory", path));
  }
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadSharedFile(fd.get(), 0, sizeof(KeptHeader)));
  const auto header = CheckHeader(bytes, static_cast<uint64_t>(status.st_size));
  if (!header) return Status::NotFound(fmt::format("{} is no kept memory", path));
  return std::unique_ptr<KeptReader>(new KeptReader(std::move(fd), *header));
}

Status KeptReader::CheckIsOf(const std::string& uuid, uint64_t mount_number) const {
  const Status other = Status::NotFound("this is the kept memory of another mount");
  if (header_.mount_number != mount_number || TextOf(header_.uuid) != uuid) return other;
  ISOZONE_ASSIGN_OR_RETURN(const std::string boot_id, BootId());
  return TextOf(header_.boot_id) == boot_id ? Status::Ok() : other;
}

bool KeptReader::IsFile(const struct stat& file) const {
  struct stat own {};
  return ::fstat(fd_.get(), &own) == 0 && own.st_dev == file.st_dev && own.st_ino == file.st_ino;
}

Result<std::unique_ptr<KeptReader>> KeptReader::Open(const std::string& name, const std::string& directory,
                                                     const std::string& uuid, uint64_t mount_number) {
  ISOZONE_ASSIGN_OR_RETURN(const PageOwner device, PageOwner::Of(name));
  const PageOwner owner = KeptMemoryOwner(device);
  Status none = Status::NotFound(fmt::format("{} has no kept memory", name));
  if (mount_number == 0) return none;
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, PagePaths(directory, owner.page_name));
  for (const std::string& path : paths) {
    auto reader = OpenFile(path, owner);
    const Status found = reader.ok() ? (*reader)->CheckIsOf(uuid, mount_number) : reader.status();
    if (found.ok()) return reader;
    if (!found.Is(StatusCode::kNotFound)) none = found;
  }
  return none;
}

void RemoveUselessKeptMemory(const std::string& name, const std::string& directory, const std::string& uuid,
                             uint64_t mount_number) {
  const auto device = PageOwner::Of(name);
  if (!device.ok()) return;
  const PageOwner owner = KeptMemoryOwner(*device);
  const auto useful = KeptReader::Open(name, directory, uuid, mount_number);
  const auto paths = PagePaths(directory, owner.page_name);
  if (!paths.ok() || (!useful.ok() && !useful.status().Is(StatusCode::kNotFound))) return;
  for (const std::string& path : *paths) {
    struct stat status {};
    const bool is_ours = ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    if (is_ours && !(useful.ok() && (*useful)->IsFile(status))) ::unlink(path.c_str());
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Records
// ---------------------------------------------------------------------------------------------------------------------

Result<std::vector<std::byte>> KeptReader::ReadRing(uint64_t begin, uint64_t end) const {
  const uint64_t at = begin % layout_.ring_bytes;
  const uint64_t first = std::min(end - begin, layout_.ring_bytes - at);
  ISOZONE_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, ReadSharedFile(fd_.get(), layout_.ring + at, first));
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::byte> rest,
                           ReadSharedFile(fd_.get(), layout_.ring, end - begin - first));
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

Result<uint64_t> KeptReader::DurableSequence() const {
  ISOZONE_ASSIGN_OR_RETURN(const auto bytes, ReadSharedFile(fd_.get(), KeptLayout::kJournal, sizeof(KeptJournal)));
  return ValueAt<KeptJournal>(bytes, 0).durable;
}

Result<std::vector<KeptRecordBytes>> KeptReader::RecordsAfter(uint64_t after) const {
  std::vector<KeptRecordBytes> records;
  ISOZONE_ASSIGN_OR_RETURN(const auto before, ReadSharedFile(fd_.get(), KeptLayout::kJournal, sizeof(KeptJournal)));
  const auto [begin, end, durable] = ValueAt<KeptJournal>(before, 0);
  if (end < begin || end - begin > layout_.ring_bytes) return records;
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::byte> ring, ReadRing(begin, end));
  // What was given up meanwhile may be overwritten, and is durable.
  ISOZONE_ASSIGN_OR_RETURN(const auto now, ReadSharedFile(fd_.get(), KeptLayout::kJournal, sizeof(KeptJournal)));
  size_t at = std::min<uint64_t>(ValueAt<KeptJournal>(now, 0).begin - begin, ring.size());
  while (ring.size() - at >= sizeof(KeptRecord)) {
    const auto record = ValueAt<KeptRecord>(ring, at);
    at += sizeof(KeptRecord);
    if (record.length > ring.size() - at) break;
    const auto body = std::span(ring).subspan(at, record.length);
    if (Crc32c(body, KeptRecordSeed(header_.mount_number, record.sequence)) != record.crc) break;
    at = std::min(RoundUp(at + record.length, sizeof(uint64_t)), ring.size());
    if (record.sequence <= after) continue;
    if (record.sequence != after + records.size() + 1) break;
    records.push_back({record.sequence, {body.begin(), body.end()}});
  }
  return records;
}

// ---------------------------------------------------------------------------------------------------------------------
// Units
// ---------------------------------------------------------------------------------------------------------------------

Result<std::vector<KeptUnit>> KeptReader::Units() const {
  ISOZONE_ASSIGN_OR_RETURN(const auto bytes,
                           ReadSharedFile(fd_.get(), KeptLayout::kUnits, layout_.granules * sizeof(KeptUnit)));
  std::vector<KeptUnit> units;
  for (size_t i = 0; i < bytes.size() / sizeof(KeptUnit); ++i) {
    units.push_back(ValueAt<KeptUnit>(bytes, i * sizeof(KeptUnit)));
    units.back().reserved[0] = i;  // its granule
  }
  return units;
}

Result<std::vector<KeptPiece>> KeptReader::Read(std::span<const KeptUnit> units, uint32_t uuid_seed) const {
  std::vector<KeptPiece> pieces;
  for (const KeptUnit& unit : units) {
    const uint64_t granule = unit.reserved[0];
    const uint64_t length = PublishedLength(unit.published);
    const uint64_t room = (layout_.granules - granule) * kKeptGranule;
    if (unit.payload_at > room || length > room - unit.payload_at) continue;
    const uint64_t at = layout_.memory + granule * kKeptGranule + unit.payload_at;
    ISOZONE_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, ReadSharedFile(fd_.get(), at, length));
    ISOZONE_ASSIGN_OR_RETURN(
        const auto again, ReadSharedFile(fd_.get(), KeptLayout::kUnits + granule * sizeof(KeptUnit), sizeof(KeptUnit)));
    // What was given up meanwhile is on the device.
    if (ValueAt<KeptUnit>(again, 0).sequence != unit.sequence || bytes.size() != length) continue;
    if (Crc32c(bytes, KeptSeed(uuid_seed, unit.inode, unit.file_offset)) != PublishedCrc(unit.published)) continue;
    pieces.push_back({unit.inode, unit.file_offset, std::move(bytes)});
  }
  std::ranges::sort(pieces, {}, [](const KeptPiece& piece) { return std::tuple(piece.inode, piece.file_offset); });
  return pieces;
}

Result<std::vector<KeptPiece>> KeptReader::Pieces(uint32_t uuid_seed) const {
  ISOZONE_ASSIGN_OR_RETURN(std::vector<KeptUnit> units, Units());
  std::erase_if(units, [](const KeptUnit& unit) { return !IsInUse(unit); });
  return Read(units, uuid_seed);
}

Result<std::vector<KeptPiece>> KeptReader::PiecesOf(uint64_t inode, uint32_t uuid_seed) const {
  ISOZONE_ASSIGN_OR_RETURN(std::vector<KeptUnit> units, Units());
  std::erase_if(units, [&](const KeptUnit& unit) { return !IsInUse(unit) || unit.inode != inode; });
  return Read(units, uuid_seed);
}

Result<uint64_t> KeptReader::Version() const {
  ISOZONE_ASSIGN_OR_RETURN(const auto bytes, ReadSharedFile(fd_.get(), KeptLayout::kJournal, sizeof(KeptJournal)));
  return ValueAt<KeptJournal>(bytes, 0).end;
}

std::vector<std::byte> JoinKept(std::span<const KeptPiece> pieces, uint64_t size) {
  std::vector<std::byte> joined;
  for (const KeptPiece& piece : pieces) {
    const uint64_t end = size + joined.size();
    if (piece.file_offset > end) break;
    const uint64_t skip = end - piece.file_offset;
    if (skip >= piece.bytes.size()) continue;
    joined.insert(joined.end(), piece.bytes.begin() + static_cast<ptrdiff_t>(skip), piece.bytes.end());
  }
  return joined;
}

}  // namespace isozone
