#include "isozone/backup/backup_source.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/file_descriptor.h"
#include "isozone/backup/archive.h"
#include "isozone/backup/backup_target.h"
#include "isozone/commands/file_tree.h"
#include "isozone/file_checksum.h"
#include "isozone/output/progress.h"
#include "isozone/path.h"
#include "isozone/stop_signals.h"

namespace isozone::cli {
namespace {

constexpr int kMaxTries = 10;  // to open a newest backup that is removed meanwhile

Status Stopped() { return Status::Aborted("stopped before all of the backup was read"); }

// The damage that is found: the first is told, the others are counted.
class Damage {
 public:
  void Add(const std::string& path, std::string_view what) {
    if (count_++ == 0) first_ = fmt::format("{} {}", Printable(path), what);
  }
  Status status() const {
    if (count_ == 0) return Status::Ok();
    if (count_ == 1) return Status::Corruption(fmt::format("the backup is damaged: {}", first_));
    return Status::Corruption(fmt::format("the backup is damaged in {} files; the first: {}", count_, first_));
  }

 private:
  uint64_t count_ = 0;
  std::string first_;
};

class FolderSource final : public BackupSource {
 public:
  FolderSource(std::string path, FileDescriptor locked, Manifest manifest)
      : path_(std::move(path)), locked_(std::move(locked)), manifest_(std::move(manifest)) {}

  const Manifest* manifest() const override { return &manifest_; }
  void VisitSizes(const std::function<void(const BackupFile&, uint64_t)>& visit) const override {
    for (const BackupFile& file : manifest_.files) {
      if (!file.has_content()) continue;
      const auto found = tree_->Stat(FilesFolder(path_) + file.path(), /*itself=*/true);
      visit(file, found.ok() ? found->data : 0);
    }
  }

  Result<Manifest> Visit(Visitor& visitor) override {
    Progress progress("reading the backup", manifest_.TotalSize(), Progress::Unit::kBytes);
    Damage damage;
    done_ = 0;
    for (const BackupFile& file : manifest_.files) {
      ISOZONE_ASSIGN_OR_RETURN(const bool wants, visitor.Wants(file));
      if (file.is_symlink()) CheckSymlink(file, damage);
      if (visitor.NeedsAllNames()) ISOZONE_RETURN_IF_ERROR(CheckNames(file, damage));
      if (wants && !file.has_content()) {
        ISOZONE_RETURN_IF_ERROR(visitor.Begin(file));
        ISOZONE_RETURN_IF_ERROR(visitor.End(file));
      } else if (wants) {
        ISOZONE_RETURN_IF_ERROR(Read(file, visitor, progress, damage));
      }
      done_ += file.size;
      progress.Update(done_);
    }
    ISOZONE_RETURN_IF_ERROR(damage.status());
    return manifest_;
  }

 private:
  // The manifest has all of a symbolic link, so it may be missing in the folder.
  void CheckSymlink(const BackupFile& file, Damage& damage) const {
    const std::string path = FilesFolder(path_) + file.path();
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return;
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(path, error).string();
    if (error || target != file.target) damage.Add(file.path(), "is not the symbolic link that it was");
  }

  // Whether a directory is there, and the names of a file beside the first. These are hard links, or copies where the
  // local file system has no links.
  Status CheckNames(const BackupFile& file, Damage& damage) {
    if (file.is_symlink()) return Status::Ok();
    struct stat first {};
    const bool has_first = ::lstat((FilesFolder(path_) + file.path()).c_str(), &first) == 0;
    if (file.is_directory) {
      if (!has_first || !S_ISDIR(first.st_mode)) damage.Add(file.path(), "is missing");
      return Status::Ok();
    }
    for (size_t i = 1; i < file.paths.size(); ++i) {
      const std::string path = FilesFolder(path_) + file.paths[i];
      struct stat found {};
      if (::lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) {
        damage.Add(file.paths[i], "is missing");
      } else if (!has_first || found.st_ino != first.st_ino || found.st_dev != first.st_dev) {
        ISOZONE_ASSIGN_OR_RETURN(const uint32_t crc, ChecksumOfLocal(path));
        if (crc != file.crc32c) damage.Add(file.paths[i], "has another checksum");
      }
    }
    return Status::Ok();
  }

  Result<uint32_t> ChecksumOfLocal(const std::string& path) {
    ISOZONE_ASSIGN_OR_RETURN(const auto source, tree_->Open(path));
    uint32_t crc = 0;
    for (uint64_t offset = 0;;) {
      if (StopSignals::Raised()) return Stopped();
      ISOZONE_ASSIGN_OR_RETURN(const ContentRun run, source->Read(offset, buffer_.span()));
      if (run.length == 0) return crc;
      crc = ChecksumOf(run, buffer_.span(), crc);
      offset += run.length;
    }
  }

  Status Read(const BackupFile& file, Visitor& visitor, Progress& progress, Damage& damage) {
    const std::string path = FilesFolder(path_) + file.path();
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) {
      damage.Add(file.path(), "is missing");
      return Status::Ok();
    }
    if (static_cast<uint64_t>(found.st_size) != file.size) {
      damage.Add(file.path(), fmt::format("has {} bytes instead of {}", found.st_size, file.size));
      return Status::Ok();
    }
    ISOZONE_ASSIGN_OR_RETURN(const auto source, tree_->Open(path));
    ISOZONE_RETURN_IF_ERROR(visitor.Begin(file));
    uint32_t crc = 0;
    for (uint64_t offset = 0;;) {
      if (StopSignals::Raised()) return Stopped();
      ISOZONE_ASSIGN_OR_RETURN(const ContentRun run, source->Read(offset, buffer_.span()));
      if (run.length == 0) break;
      crc = ChecksumOf(run, buffer_.span(), crc);
      ISOZONE_RETURN_IF_ERROR(AppendRun(visitor, run, buffer_.span()));
      offset += run.length;
      progress.Update(done_ + std::min(offset, file.size));
    }
    if (crc == file.crc32c) return visitor.End(file);
    damage.Add(file.path(), "has another checksum");
    return Status::Ok();
  }

  const std::string path_;
  const FileDescriptor locked_;
  const Manifest manifest_;
  const std::unique_ptr<FileTree> tree_ = MakeLocalTree();
  uint64_t done_ = 0;  // bytes
  AlignedBuffer buffer_{kBackupChunk};
};

// What the headers of an archive say of its files: the last of each name.
using ArchivedFiles = std::map<std::string, ArchiveReader::Entry>;

// Reads the headers alone, which an archive that is not compressed lets one do. None if the archive is damaged: whoever
// reads all of it finds out where.
ArchivedFiles ReadHeaders(int descriptor) {
  auto reader = ArchiveReader::Open(descriptor);
  if (!reader.ok() || reader->is_compressed()) return {};
  ArchivedFiles files;
  for (;;) {
    auto entry = reader->Next();
    if (!entry.ok()) return {};
    if (!*entry) return files;
    const bool counts = (*entry)->file.has_content() && (*entry)->link_target.empty() && !(*entry)->is_manifest;
    if (counts) files[(*entry)->file.path()] = std::move(**entry);
  }
}

class ArchiveSource final : public BackupSource {
 public:
  // `total`: bytes, 0 if it is not known.
  ArchiveSource(ArchiveReader reader, FileDescriptor opened, uint64_t total, ArchivedFiles files)
      : opened_(std::move(opened)), reader_(std::move(reader)), total_(total), files_(std::move(files)) {}

  const Manifest* manifest() const override { return nullptr; }
  void VisitSizes(const std::function<void(const BackupFile&, uint64_t)>& visit) const override {
    for (const auto& [path, entry] : files_) visit(entry.file, entry.data);
  }

  Result<Manifest> Visit(Visitor& visitor) override {
    Progress progress("reading the backup", total_, Progress::Unit::kBytes);
    std::optional<Manifest> manifest;
    for (;;) {
      ISOZONE_ASSIGN_OR_RETURN(auto entry, reader_.Next());
      if (!entry) break;
      if (manifest) return Status::Corruption("the archive goes on behind its manifest");
      if (entry->is_manifest) {
        ISOZONE_ASSIGN_OR_RETURN(const std::string text, reader_.ReadText());
        ISOZONE_ASSIGN_OR_RETURN(manifest, Manifest::Decode(text));
      } else if (entry->link_target.empty()) {
        ISOZONE_RETURN_IF_ERROR(Read(entry->file, visitor, progress));
      }
    }
    if (!manifest) return Status::Corruption("the archive has no manifest at its end: it is cut off, or no backup");
    ISOZONE_RETURN_IF_ERROR(Compare(*manifest));
    return std::move(*manifest);
  }

 private:
  Status Read(BackupFile& file, Visitor& visitor, Progress& progress) {
    ISOZONE_ASSIGN_OR_RETURN(const bool wants, visitor.Wants(file));
    if (wants) ISOZONE_RETURN_IF_ERROR(visitor.Begin(file));
    uint64_t size = 0;
    while (file.has_content()) {
      if (StopSignals::Raised()) return Stopped();
      ISOZONE_ASSIGN_OR_RETURN(const ArchiveReader::Part part, reader_.Read(size));
      if (part.hole == 0 && part.data.empty()) break;
      for (const ContentRun run : {ContentRun{part.hole, true}, ContentRun{part.data.size(), false}}) {
        file.crc32c = ChecksumOf(run, part.data, file.crc32c);
        if (wants && run.length > 0) ISOZONE_RETURN_IF_ERROR(AppendRun(visitor, run, part.data));
        size += run.length;
      }
      done_ += part.data.size();
      progress.Update(std::min(done_, total_));
    }
    if (size != file.size) return Status::Corruption(fmt::format("the archive is cut off in {}", file.path()));
    read_[file.path()] = file;
    return wants ? visitor.End(file) : Status::Ok();
  }

  Status Compare(const Manifest& manifest) const {
    Damage damage;
    for (const BackupFile& file : manifest.files) {
      const auto found = read_.find(file.path());
      if (found == read_.end()) {
        damage.Add(file.path(), "is missing");
      } else if (found->second.is_directory != file.is_directory || found->second.target != file.target ||
                 found->second.size != file.size) {
        damage.Add(file.path(), "is another one than in the manifest");
      } else if (found->second.crc32c != file.crc32c) {
        damage.Add(file.path(), "has another checksum");
      }
    }
    return damage.status();
  }

  const FileDescriptor opened_;  // none: standard input
  ArchiveReader reader_;
  const uint64_t total_;
  const ArchivedFiles files_;               // empty if they are not known yet
  uint64_t done_ = 0;                       // bytes
  std::map<std::string, BackupFile> read_;  // the last of each name
};

class Verifier final : public BackupSource::Visitor {
 public:
  Result<bool> Wants(const BackupFile& file) override { return !file.is_directory; }
  Status Begin(const BackupFile& /*file*/) override { return Status::Ok(); }
  Status Append(std::span<const std::byte> /*data*/) override { return Status::Ok(); }
  Status AppendHole(uint64_t /*bytes*/) override { return Status::Ok(); }
  Status End(const BackupFile& /*file*/) override { return Status::Ok(); }
  bool NeedsAllNames() const override { return true; }
};

// The path of the backup in `path`, which may be one itself.
Result<std::string> NewestBackup(const std::string& path) {
  ISOZONE_ASSIGN_OR_RETURN(const bool is_backup, HasManifest(path));
  if (is_backup) return path;
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::string> backups, FindBackups(path));
  if (!backups.empty()) return backups.back();
  return Status::NotFound(fmt::format("there is no complete backup in {}; isozone backup makes one", path));
}

// Its lock keeps a backup that ends meanwhile from removing this one. Where the local file system has no locks, nothing
// does.
Result<std::unique_ptr<BackupSource>> OpenFolder(const std::string& path) {
  for (int tries = 1;; ++tries) {
    ISOZONE_ASSIGN_OR_RETURN(const std::string backup, NewestBackup(path));
    FileDescriptor opened(::open(backup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened.get() < 0 && errno != ENOENT) return Status::FromErrno(errno, "cannot open " + backup);
    const bool removed = opened.get() < 0 || (::flock(opened.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK);
    auto manifest = ReadManifest(backup);
    if (manifest.ok() && !removed) {
      return std::unique_ptr<BackupSource>(
          std::make_unique<FolderSource>(backup, std::move(opened), std::move(manifest).value()));
    }
    if (!removed && !manifest.status().Is(StatusCode::kNotFound)) return manifest.status();
    if (tries == kMaxTries) return Status::Busy(fmt::format("{} is being removed", backup));
  }
}

// `opened`: none for standard input.
Result<std::unique_ptr<BackupSource>> OpenArchive(FileDescriptor opened) {
  const int descriptor = opened.get() < 0 ? STDIN_FILENO : opened.get();
  struct stat found {};
  if (::fstat(descriptor, &found) != 0) return Status::FromErrno(errno, "cannot read the archive");
  ArchivedFiles files;
  const off_t begin = S_ISREG(found.st_mode) ? ::lseek(descriptor, 0, SEEK_CUR) : -1;
  if (begin >= 0) {
    files = ReadHeaders(descriptor);
    if (::lseek(descriptor, begin, SEEK_SET) != begin) return Status::FromErrno(errno, "cannot read the archive");
  }
  ISOZONE_ASSIGN_OR_RETURN(ArchiveReader reader, ArchiveReader::Open(descriptor));
  return std::unique_ptr<BackupSource>(std::make_unique<ArchiveSource>(
      std::move(reader), std::move(opened), static_cast<uint64_t>(found.st_size), std::move(files)));
}

}  // namespace

Result<std::unique_ptr<BackupSource>> OpenBackup(const std::string& path) {
  if (path == "-") {
    if (::isatty(STDIN_FILENO) != 0) {
      return Status::InvalidArgument(
          "standard input is a terminal; give it an archive, as in isozone restore - < FILE");
    }
    return OpenArchive(FileDescriptor());
  }
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return Status::FromErrno(errno, "cannot find " + path);
  if (S_ISDIR(found.st_mode)) return OpenFolder(path);
  FileDescriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened.get() < 0) return Status::FromErrno(errno, "cannot open " + path);
  return OpenArchive(std::move(opened));
}

Result<Manifest> VerifyBackup(BackupSource& source) {
  Verifier verifier;
  return source.Visit(verifier);
}

}  // namespace isozone::cli
