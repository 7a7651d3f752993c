#include "isozone/backup/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <clocale>
#include <ctime>
#include <sstream>
#include <string>
#include <utility>

namespace isozone::cli {
namespace {

constexpr mode_t kEntryMode = 0644;
constexpr size_t kBlock = 1 * kMiB;
constexpr int kLastBlock = 10240;  // as tar writes it
constexpr char kKindAttribute[] = "user.isozone.kind";
constexpr std::array<FileKind, 3> kArchivedKinds = {FileKind::kData, FileKind::kLog, FileKind::kSmall};

using EntryHolder = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

EntryHolder NewEntry() { return {archive_entry_new(), &archive_entry_free}; }

// The library converts names, which the locale "C" does not let it do.
void UseUnicodeNames() { std::setlocale(LC_CTYPE, "C.UTF-8"); }

// The path in the archive of a path on the device.
std::string EntryName(const std::string& path) { return path.substr(1); }

std::string EncodeKind(const BackupFile& file) {
  return fmt::format("{} {} {}", FileKindName(file.kind), static_cast<int>(file.lifetime),
                     static_cast<int>(file.level));
}

void DecodeKind(const std::string& text, BackupFile& file) {
  std::istringstream words(text);
  std::string name;
  int lifetime = 0;
  int level = 0;
  if (!(words >> name >> lifetime >> level)) return;
  const auto* const kind = std::ranges::find(kArchivedKinds, name, FileKindName);
  if (kind == kArchivedKinds.end() || lifetime < 0 || lifetime >= kLifetimeCount || level < -1 || level > 127) return;
  file.kind = *kind;
  file.lifetime = static_cast<Lifetime>(lifetime);
  file.level = static_cast<int8_t>(level);
}

void SetAttributes(archive_entry* entry, const BackupAttributes& attributes) {
  archive_entry_set_perm(entry, attributes.mode);
  archive_entry_set_uid(entry, attributes.user);
  archive_entry_set_gid(entry, attributes.group);
  archive_entry_set_mtime(entry, static_cast<time_t>(attributes.modified.s), attributes.modified.ns);
  for (const auto& [name, value] : attributes.xattrs) {
    // A pax header has no way to write these names; the manifest has them.
    if (name == kKindAttribute || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos) continue;
    archive_entry_xattr_add_entry(entry, name.c_str(), value.data(), value.size());
  }
}

// Names the parts with data, if there are holes between them: the library then leaves out the rest of what it is given.
void SetHoles(archive_entry* entry, const BackupFile& file) {
  if (file.extents.StoredBytes() == file.extents.end_offset()) return;
  if (file.extents.StoredBytes() == 0) archive_entry_sparse_add_entry(entry, 0, 0);
  uint64_t begin = 0;  // of the data that has just been seen
  uint64_t end = 0;
  const auto add = [&] {
    if (end > begin)
      archive_entry_sparse_add_entry(entry, static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
  };
  for (const FileExtent extent : file.extents) {
    if (extent.is_hole() || extent.file_offset >= file.size) continue;
    if (extent.file_offset != end) {
      add();
      begin = extent.file_offset;
    }
    end = std::min(extent.file_offset + extent.length, file.size);
  }
  add();
}

// Bytes of a file of `size` bytes that are in no hole.
uint64_t DataOf(archive_entry* entry, uint64_t size) {
  if (archive_entry_sparse_reset(entry) == 0) return size;
  uint64_t data = 0;
  la_int64_t offset = 0;
  la_int64_t length = 0;
  while (archive_entry_sparse_next(entry, &offset, &length) == ARCHIVE_OK) data += static_cast<uint64_t>(length);
  return data;
}

// The path on the device of a name in an archive.
std::string PathOfEntry(const char* name) {
  std::string path = name == nullptr ? "" : name;
  while (path.starts_with("./")) path.erase(0, 2);
  while (path.ends_with('/')) path.pop_back();
  return "/" + path;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// ArchiveWriter
// ---------------------------------------------------------------------------------------------------------------------

// An archive that is not finished must not get an end.
void ArchiveWriter::Closer::operator()(archive* opened) const {
  archive_write_fail(opened);
  archive_write_free(opened);
}

Status ArchiveWriter::Check(ssize_t result) const {
  if (result >= ARCHIVE_WARN) return Status::Ok();
  const int error = archive_errno(archive_.get());
  return Status::FromErrno(error > 0 ? error : EIO, "cannot write the archive");
}

Result<ArchiveWriter> ArchiveWriter::Open(int descriptor) {
  UseUnicodeNames();
  ArchiveWriter writer(archive_write_new());
  if (writer.archive_ == nullptr) return Status::FromErrno(ENOMEM, "cannot write the archive");
  archive* const opened = writer.archive_.get();
  ISOZONE_RETURN_IF_ERROR(writer.Check(archive_write_set_format_pax(opened)));
  ISOZONE_RETURN_IF_ERROR(writer.Check(archive_write_set_format_option(opened, nullptr, "xattrheader", "SCHILY")));
  ISOZONE_RETURN_IF_ERROR(writer.Check(archive_write_add_filter_none(opened)));
  ISOZONE_RETURN_IF_ERROR(writer.Check(archive_write_set_bytes_per_block(opened, kBlock)));
  ISOZONE_RETURN_IF_ERROR(writer.Check(archive_write_set_bytes_in_last_block(opened, kLastBlock)));
  ISOZONE_RETURN_IF_ERROR(writer.Check(archive_write_open_fd(opened, descriptor)));
  return writer;
}

Status ArchiveWriter::Begin(const BackupFile& file) {
  const EntryHolder entry = NewEntry();
  archive_entry_set_pathname(entry.get(), EntryName(file.path()).c_str());
  archive_entry_set_filetype(entry.get(), file.is_directory ? AE_IFDIR : file.is_symlink() ? AE_IFLNK : AE_IFREG);
  SetAttributes(entry.get(), file.attributes);
  archive_entry_set_size(entry.get(), static_cast<int64_t>(file.has_content() ? file.size : 0));
  if (file.is_symlink()) archive_entry_set_symlink(entry.get(), file.target.c_str());
  if (file.has_content()) {
    SetHoles(entry.get(), file);
    const std::string kind = EncodeKind(file);
    archive_entry_xattr_add_entry(entry.get(), kKindAttribute, kind.data(), kind.size());
  }
  return Check(archive_write_header(archive_.get(), entry.get()));
}

Status ArchiveWriter::Append(std::span<const std::byte> data) {
  while (!data.empty()) {
    const la_ssize_t written = archive_write_data(archive_.get(), data.data(), data.size());
    ISOZONE_RETURN_IF_ERROR(Check(written));
    if (written <= 0) return Status::IoError("cannot write the archive: the entry is full");
    data = data.subspan(static_cast<size_t>(written));
  }
  return Status::Ok();
}

Status ArchiveWriter::End() { return Check(archive_write_finish_entry(archive_.get())); }

Status ArchiveWriter::AddLink(const std::string& path, const BackupFile& file) {
  const EntryHolder entry = NewEntry();
  archive_entry_set_pathname(entry.get(), EntryName(path).c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  SetAttributes(entry.get(), file.attributes);
  archive_entry_set_hardlink(entry.get(), EntryName(file.path()).c_str());
  return Check(archive_write_header(archive_.get(), entry.get()));
}

Status ArchiveWriter::Finish(const Manifest& manifest) {
  const std::string text = manifest.Encode();
  if (text.size() > kMaxManifest) return Status::NotSupported("there are too many files for one backup");
  const EntryHolder entry = NewEntry();
  archive_entry_set_pathname(entry.get(), kManifestName);
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), kEntryMode);
  archive_entry_set_mtime(entry.get(), static_cast<time_t>(manifest.began_s), 0);
  archive_entry_set_size(entry.get(), static_cast<int64_t>(text.size()));
  ISOZONE_RETURN_IF_ERROR(Check(archive_write_header(archive_.get(), entry.get())));
  ISOZONE_RETURN_IF_ERROR(Append(std::as_bytes(std::span(text))));
  ISOZONE_RETURN_IF_ERROR(End());
  return Check(archive_write_close(archive_.get()));
}

// ---------------------------------------------------------------------------------------------------------------------
// ArchiveReader
// ---------------------------------------------------------------------------------------------------------------------

void ArchiveReader::Closer::operator()(archive* opened) const { archive_read_free(opened); }

Status ArchiveReader::Failure() const {
  const char* const why = archive_error_string(archive_.get());
  const std::string text = why == nullptr ? "it cannot be read" : why;
  return Status::Corruption(fmt::format("the archive is damaged, cut off or no backup: {}", Printable(text)));
}

Result<ArchiveReader> ArchiveReader::Open(int descriptor) {
  UseUnicodeNames();
  ArchiveReader reader(archive_read_new());
  archive* const opened = reader.archive_.get();
  if (opened == nullptr) return Status::FromErrno(ENOMEM, "cannot read the archive");
  const bool known = archive_read_support_format_tar(opened) >= ARCHIVE_WARN &&
                     archive_read_support_filter_gzip(opened) >= ARCHIVE_WARN &&
                     archive_read_support_filter_bzip2(opened) >= ARCHIVE_WARN &&
                     archive_read_support_filter_xz(opened) >= ARCHIVE_WARN &&
                     archive_read_support_filter_zstd(opened) >= ARCHIVE_WARN;
  if (!known || archive_read_open_fd(opened, descriptor, kBlock) < ARCHIVE_WARN) return reader.Failure();
  return reader;
}

bool ArchiveReader::is_compressed() const { return archive_filter_code(archive_.get(), 0) != ARCHIVE_FILTER_NONE; }

Result<ArchiveReader::Entry> ArchiveReader::Decode(archive_entry* entry) const {
  Entry decoded;
  const std::string path = PathOfEntry(archive_entry_pathname(entry));
  decoded.file.paths = {path};
  decoded.is_manifest = path == std::string("/") + kManifestName;
  if (!IsSafePath(path)) return Status::Corruption("the archive has an entry with an invalid name");
  if (!decoded.is_manifest && IsReservedPath(path)) {
    return Status::Corruption(fmt::format("the archive has {}, a name that backups use", Printable(path)));
  }
  if (const char* const target = archive_entry_hardlink(entry)) {
    decoded.link_target = PathOfEntry(target);
    return decoded;
  }
  decoded.file.is_directory = archive_entry_filetype(entry) == AE_IFDIR;
  if (archive_entry_filetype(entry) == AE_IFLNK) {
    const char* const target = archive_entry_symlink(entry);
    decoded.file.target = target == nullptr ? "" : target;
    if (!decoded.file.is_symlink()) return Status::Corruption("the archive has a symbolic link without a target");
    return decoded;
  }
  if (!decoded.file.is_directory && archive_entry_filetype(entry) != AE_IFREG) {
    return Status::Corruption(fmt::format("{} in the archive is no file, directory or symbolic link", Printable(path)));
  }
  decoded.file.size = static_cast<uint64_t>(std::max<int64_t>(0, archive_entry_size(entry)));
  decoded.data = DataOf(entry, decoded.file.size);
  archive_entry_xattr_reset(entry);
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
    if (name != nullptr && std::string_view(name) == kKindAttribute) {
      DecodeKind(std::string(static_cast<const char*>(value), size), decoded.file);
    }
  }
  return decoded;
}

Result<std::optional<ArchiveReader::Entry>> ArchiveReader::Next() {
  archive_entry* entry = nullptr;
  const int result = archive_read_next_header(archive_.get(), &entry);
  if (result == ARCHIVE_EOF) return std::optional<Entry>();
  if (result < ARCHIVE_WARN) return Failure();
  ISOZONE_ASSIGN_OR_RETURN(Entry decoded, Decode(entry));
  return std::optional<Entry>(std::move(decoded));
}

Result<ArchiveReader::Part> ArchiveReader::Read(uint64_t offset) {
  const void* data = nullptr;
  size_t size = 0;
  la_int64_t at = 0;
  const int result = archive_read_data_block(archive_.get(), &data, &size, &at);
  if (result != ARCHIVE_EOF && result < ARCHIVE_WARN) return Failure();
  if (at < 0 || static_cast<uint64_t>(at) < offset) {
    return Status::Corruption("the archive is damaged: the parts of a sparse file are in no order");
  }
  return Part{static_cast<uint64_t>(at) - offset, {static_cast<const std::byte*>(data), size}};
}

Result<std::string> ArchiveReader::ReadText() {
  std::string text;
  std::string chunk(kBlock, '\0');
  for (;;) {
    const la_ssize_t length = archive_read_data(archive_.get(), chunk.data(), chunk.size());
    if (length < 0) return Failure();
    if (length == 0) return text;
    if (text.size() + static_cast<size_t>(length) > kMaxManifest) {
      return Status::Corruption("the manifest of the archive is too long");
    }
    text.append(chunk, 0, static_cast<size_t>(length));
  }
}

}  // namespace isozone::cli
