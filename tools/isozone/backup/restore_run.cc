#include "isozone/backup/restore_run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/crc32c.h"
#include "isozone/backup/backup_run.h"
#include "isozone/backup/inode_attributes.h"
#include "isozone/file_checksum.h"
#include "isozone/holes.h"
#include "isozone/path.h"
#include "isozone/stop_signals.h"
#include "store/inode_files.h"

namespace isozone::cli {
namespace {

const std::string kStagedFiles = std::string(kRestoreFolder) + "/files";
const std::string kRestoreComplete = std::string(kRestoreFolder) + "/complete";
const std::string kRestoreMoving = std::string(kRestoreFolder) + "/moving";
const std::string kOldFiles = std::string(kRestoreFolder) + "/old";

// What tells one backup from another.
std::string IdOf(const Manifest& manifest) {
  const std::string text = manifest.Encode();
  return fmt::format("{} {} {:08x}", manifest.uuid, manifest.began_s, Crc32c(text.data(), text.size()));
}

Status RemoveFromDevice(FileSystem& file_system, const std::string& path) {
  const auto attributes = file_system.Stat(path);
  if (attributes.status().Is(StatusCode::kNotFound)) return Status::Ok();
  if (!attributes.ok()) return attributes.status();
  if (!attributes->is_directory) return file_system.Unlink(path);
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, file_system.List(path));
  for (const DirectoryEntry& entry : entries) {
    ISOZONE_RETURN_IF_ERROR(RemoveFromDevice(file_system, JoinPath(path, entry.name)));
  }
  return file_system.RemoveDirectory(path);
}

InodeType TypeOf(const BackupFile& file) {
  if (file.is_directory) return InodeType::kDirectory;
  return file.is_symlink() ? InodeType::kSymlink : InodeType::kRegular;
}

Result<bool> Exists(FileSystem& file_system, const std::string& path) {
  const auto attributes = file_system.Stat(path);
  if (attributes.ok()) return true;
  return attributes.status().Is(StatusCode::kNotFound) ? Result<bool>(false) : attributes.status();
}

class RestoreRun final : public BackupSource::Visitor {
 public:
  RestoreRun(FileSystem& file_system, bool keeps) : file_system_(file_system), keeps_(keeps) {}

  // --- BackupSource::Visitor ---

  Result<bool> Wants(const BackupFile& file) override {
    if (StopSignals::Raised()) return Status::Aborted("stopped; the same command continues where it was");
    const std::string path = kStagedFiles + file.path();
    const auto there = file_system_.Stat(path);
    if (there.status().Is(StatusCode::kNotFound)) return true;
    if (!there.ok()) return there.status();
    if (there->type != TypeOf(file)) {
      ISOZONE_RETURN_IF_ERROR(RemoveFromDevice(file_system_, path));
      return true;
    }
    if (file.is_directory) return false;
    if (file.is_symlink()) {
      ISOZONE_ASSIGN_OR_RETURN(const std::string target, file_system_.inodes().ReadLink(there->inode));
      if (target == file.target) return false;
      ISOZONE_RETURN_IF_ERROR(file_system_.Unlink(path));
      return true;
    }
    if (!keeps_ || there->size != file.size || there->kind != file.kind) return true;
    const auto crc = ChecksumOf(file_system_, path);
    return !crc.ok() || *crc != file.crc32c;
  }

  Status Begin(const BackupFile& file) override {
    const std::string path = kStagedFiles + file.path();
    if (file.is_directory) return file_system_.CreateDirectories(path);
    ISOZONE_RETURN_IF_ERROR(file_system_.CreateDirectories(ParentPath(path)));
    if (file.is_symlink()) {
      ISOZONE_ASSIGN_OR_RETURN(const FileAttributes parent, file_system_.Stat(ParentPath(path)));
      return file_system_.inodes().MakeSymlink(parent.inode, BaseName(path), file.target, {.mode = 0777}).status();
    }
    CreateOptions options;
    options.kind = file.kind;
    options.lifetime = file.lifetime;
    options.level = file.level;
    options.expected_size = file.kind == FileKind::kLog ? 0 : file.size;
    ISOZONE_ASSIGN_OR_RETURN(writer_, SparseWriter::Create(file_system_, path, options));
    return Status::Ok();
  }

  Status Append(std::span<const std::byte> data) override { return writer_->Append(data); }
  Status AppendHole(uint64_t bytes) override { return writer_->AppendHole(bytes); }

  Status End(const BackupFile& file) override {
    if (!file.has_content()) return Status::Ok();
    ISOZONE_RETURN_IF_ERROR(writer_->Sync());
    ISOZONE_RETURN_IF_ERROR(writer_->Close());
    writer_.reset();
    ISOZONE_ASSIGN_OR_RETURN(const uint32_t crc, ChecksumOf(file_system_, kStagedFiles + file.path()));
    if (crc == file.crc32c) return Status::Ok();
    return Status::Corruption(fmt::format("{} cannot be read back from the device as it was written", file.path()));
  }

  // -------------------------------

  // kNoSpace: what is known of the backup, and is not there yet, does not fit.
  Status CheckThatAllFits(const BackupSource& source) const {
    TargetRoom room = TargetRoom::OnDevice(file_system_);
    source.VisitSizes([this, &room](const BackupFile& file, uint64_t data) {
      const auto there = file_system_.Stat(kStagedFiles + file.path());
      if (there.ok() && there->size == file.size) return;
      // What a restore that was stopped has of the file is replaced. A log can have no holes.
      const auto replaced = file_system_.state().AllocatedBytes(kStagedFiles + file.path());
      room.Need(file.kind == FileKind::kLog ? file.size : data, replaced.ok() ? *replaced : 0);
    });
    return room.Check("the device");
  }

  void Stop() { writer_.reset(); }

  // All of the backup was read without an error.
  Status Finish(const Manifest& manifest, RestoreOnto onto) {
    writer_.reset();
    std::set<std::string> wanted;
    for (const BackupFile& file : manifest.files) {
      ISOZONE_RETURN_IF_ERROR(CheckSize(file));
      for (size_t i = 0; i < file.paths.size(); ++i) {
        wanted.insert(kStagedFiles + file.paths[i]);
        if (i > 0) ISOZONE_RETURN_IF_ERROR(AddLink(file.path(), file.paths[i]));
      }
    }
    ISOZONE_RETURN_IF_ERROR(RemoveOthers(kStagedFiles, wanted));
    // Now that all names are there, which give their directories new times.
    for (const BackupFile& file : manifest.files) {
      ISOZONE_RETURN_IF_ERROR(WriteAttributes(file_system_, kStagedFiles + file.path(), file.attributes));
    }
    ISOZONE_RETURN_IF_ERROR(WriteAttributes(file_system_, kStagedFiles, manifest.root.attributes));
    return Say(onto == RestoreOnto::kEmpty ? kRestoreMoving : kRestoreComplete, IdOf(manifest));
  }

 private:
  Status CheckSize(const BackupFile& file) {
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, file_system_.Stat(kStagedFiles + file.path()));
    if (attributes.type == TypeOf(file) && (!file.has_content() || attributes.size == file.size)) return {};
    return Status::Corruption(fmt::format("{} was not restored as it is in the backup", file.path()));
  }

  Status AddLink(const std::string& from, const std::string& to) {
    ISOZONE_RETURN_IF_ERROR(RemoveFromDevice(file_system_, kStagedFiles + to));
    return file_system_.Link(kStagedFiles + from, kStagedFiles + to);
  }

  Status RemoveOthers(const std::string& directory, const std::set<std::string>& wanted) {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, file_system_.List(directory));
    for (const DirectoryEntry& entry : entries) {
      const std::string path = JoinPath(directory, entry.name);
      if (!wanted.contains(path)) {
        ISOZONE_RETURN_IF_ERROR(RemoveFromDevice(file_system_, path));
      } else if (entry.attributes.is_directory) {
        ISOZONE_RETURN_IF_ERROR(RemoveOthers(path, wanted));
      }
    }
    return Status::Ok();
  }

  // A symbolic link lies in the metadata, so there is room for it also where the backup fills the device.
  Status Say(const std::string& what, const std::string& id) {
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes folder, file_system_.Stat(kRestoreFolder));
    ISOZONE_RETURN_IF_ERROR(
        file_system_.inodes().MakeSymlink(folder.inode, BaseName(what), id, {.mode = 0777}).status());
    return file_system_.SyncMetadata();
  }

  FileSystem& file_system_;
  const bool keeps_;  // what is there already, if it is what the backup has
  std::unique_ptr<SparseWriter> writer_;
};

// First takes all of them out of sight, each in one step, so that half of a directory is never there under its name.
Status RemoveOldFiles(FileSystem& file_system) {
  ISOZONE_RETURN_IF_ERROR(file_system.CreateDirectories(kOldFiles));
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, file_system.List("/"));
  for (const DirectoryEntry& entry : entries) {
    const std::string path = "/" + entry.name;
    if (path == kRestoreFolder) continue;
    const std::string out_of_sight = JoinPath(kOldFiles, entry.name);
    ISOZONE_RETURN_IF_ERROR(RemoveFromDevice(file_system, out_of_sight));
    ISOZONE_RETURN_IF_ERROR(file_system.Rename(path, out_of_sight));
  }
  return RemoveFromDevice(file_system, kOldFiles);
}

// Gives the files their names, once all are there; also after a kill in between. Returns the id of the backup; empty if
// not all files are there.
Result<std::string> FinishMoving(FileSystem& file_system) {
  ISOZONE_ASSIGN_OR_RETURN(const bool complete, Exists(file_system, kRestoreComplete));
  if (complete) {
    ISOZONE_RETURN_IF_ERROR(RemoveOldFiles(file_system));
    ISOZONE_RETURN_IF_ERROR(file_system.Rename(kRestoreComplete, kRestoreMoving));
  }
  ISOZONE_ASSIGN_OR_RETURN(const bool moving, Exists(file_system, kRestoreMoving));
  if (!moving) return std::string();
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes mark, file_system.Stat(kRestoreMoving));
  ISOZONE_ASSIGN_OR_RETURN(const std::string id, file_system.inodes().ReadLink(mark.inode));
  ISOZONE_ASSIGN_OR_RETURN(const bool files, Exists(file_system, kStagedFiles));
  if (files) {
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes staged, file_system.Stat(kStagedFiles));
    ISOZONE_ASSIGN_OR_RETURN(const BackupAttributes of_root, ReadAttributes(file_system, staged));
    ISOZONE_RETURN_IF_ERROR(WriteAttributes(file_system, "/", of_root));
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, file_system.List(kStagedFiles));
    for (const DirectoryEntry& entry : entries) {
      ISOZONE_RETURN_IF_ERROR(file_system.Rename(JoinPath(kStagedFiles, entry.name), "/" + entry.name));
    }
    ISOZONE_RETURN_IF_ERROR(file_system.RemoveDirectory(kStagedFiles));
  }
  ISOZONE_RETURN_IF_ERROR(file_system.Unlink(kRestoreMoving));
  ISOZONE_RETURN_IF_ERROR(file_system.RemoveDirectory(kRestoreFolder));
  ISOZONE_RETURN_IF_ERROR(file_system.SyncMetadata());
  return id;
}

Status CheckEmpty(FileSystem& file_system) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, file_system.List("/"));
  for (const DirectoryEntry& entry : entries) {
    const std::string path = "/" + entry.name;
    if (path == kRestoreFolder) continue;
    return Status::NotEmpty(
        fmt::format("the device holds {}; use --force to replace all that it holds by the backup", Printable(path)));
  }
  return Status::Ok();
}

// A killed restore had come to its last step, which is done now. Returns the manifest if it was one of this backup.
Result<std::optional<Manifest>> IsEarlier(BackupSource& source, const std::string& earlier) {
  if (source.manifest() != nullptr) {
    if (IdOf(*source.manifest()) == earlier) return std::optional<Manifest>(*source.manifest());
    return std::optional<Manifest>();
  }
  ISOZONE_ASSIGN_OR_RETURN(Manifest manifest, VerifyBackup(source));
  if (IdOf(manifest) == earlier) return std::optional<Manifest>(std::move(manifest));
  return Status::NotEmpty("a restore of another backup was not finished, and is now; use --force to replace it");
}

}  // namespace

Result<Manifest> RestoreBackup(BackupSource& source, FileSystem& file_system, RestoreOnto onto) {
  ISOZONE_ASSIGN_OR_RETURN(const std::string earlier, FinishMoving(file_system));
  if (!earlier.empty()) {
    ISOZONE_ASSIGN_OR_RETURN(auto done, IsEarlier(source, earlier));
    if (done) return std::move(*done);
  }
  if (onto == RestoreOnto::kEmpty) ISOZONE_RETURN_IF_ERROR(CheckEmpty(file_system));
  const bool keeps = source.manifest() != nullptr;
  if (!keeps) ISOZONE_RETURN_IF_ERROR(RemoveFromDevice(file_system, kRestoreFolder));
  ISOZONE_RETURN_IF_ERROR(file_system.CreateDirectories(kStagedFiles));
  RestoreRun run(file_system, keeps);
  const Status fits = run.CheckThatAllFits(source);
  auto manifest = fits.ok() ? source.Visit(run) : fits;
  const bool is_full = manifest.status().Is(StatusCode::kNoSpace);
  if (!keeps && (is_full || manifest.status().Is(StatusCode::kCorruption))) {
    // Nothing of an archive that is damaged, or does not fit, is of use to a later restore.
    run.Stop();
    ISOZONE_RETURN_IF_ERROR(RemoveFromDevice(file_system, kRestoreFolder));
    ISOZONE_RETURN_IF_ERROR(file_system.SyncMetadata());
  }
  if (is_full && onto == RestoreOnto::kAnything) {
    return manifest.status().WithContext(
        "the backup does not fit beside what the device holds, which is kept until all is restored; format it first");
  }
  if (!manifest.ok()) return manifest.status();
  ISOZONE_RETURN_IF_ERROR(run.Finish(*manifest, onto));
  ISOZONE_RETURN_IF_ERROR(FinishMoving(file_system).status());
  return manifest;
}

}  // namespace isozone::cli
