#include "isozone/backup/backup_run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/clock.h"
#include "isozone/backup/capture.h"
#include "isozone/file_checksum.h"
#include "isozone/holes.h"
#include "isozone/output/progress.h"
#include "isozone/stop_signals.h"

namespace isozone::cli {
namespace {

constexpr int kMaxRounds = 100;

bool IsInRestoreFolder(const std::string& path) { return IsReservedPath(path) && path.starts_with(kRestoreFolder); }

// Whether `path` is what a restore makes when it has all files (restore_run.cc).
bool IsOfFullRestore(const std::string& path) {
  return path == std::string(kRestoreFolder) + "/complete" || path == std::string(kRestoreFolder) + "/moving";
}

// Leaves out what a restore has left that was stopped before it had all: nothing of it is in use. Once it had all, it
// has removed or moved what was on the device, and must be finished.
Status CheckNames(std::vector<BackupFile>& files) {
  for (BackupFile& file : files) {
    for (const std::string& path : file.paths) {
      if (IsOfFullRestore(path)) {
        return Status::AlreadyExists("a restore onto this device was not finished; run isozone restore again first");
      }
      if (IsReservedPath(path) && !IsInRestoreFolder(path)) {
        return Status::AlreadyExists(fmt::format("{} is a name that backups use; rename the file", Printable(path)));
      }
    }
    std::erase_if(file.paths, IsInRestoreFolder);
  }
  std::erase_if(files, [](const BackupFile& file) { return file.paths.empty(); });
  return Status::Ok();
}

class BackupRun {
 public:
  BackupRun(FileSystem& file_system, BackupTarget& target) : file_system_(file_system), target_(target) {}

  Result<BackupCounts> Run() {
    BackupCounts counts;
    counts.manifest.uuid = file_system_.state().uuid();
    counts.manifest.label = file_system_.state().label();
    counts.manifest.began_s = began_s_;
    for (int round = 0; round < kMaxRounds; ++round) {
      ISOZONE_ASSIGN_OR_RETURN(std::vector<BackupFile> files, CaptureFiles(file_system_));
      counts.manifest.root = std::move(files.front());
      files.erase(files.begin());
      ISOZONE_RETURN_IF_ERROR(CheckNames(files));
      ISOZONE_ASSIGN_OR_RETURN(const bool copied, CopyAll(files));
      ISOZONE_ASSIGN_OR_RETURN(const bool whole, AreUnchanged(files));
      if (!copied || !whole) continue;
      for (const BackupFile& file : files) {
        if (!copied_.contains(file.path())) continue;
        ++counts.copied_files;
        counts.copied_bytes += file.size;
      }
      counts.manifest.files = std::move(files);
      ISOZONE_RETURN_IF_ERROR(target_.Finish(counts.manifest));
      return counts;
    }
    return Status::Busy("files are removed faster than they can be copied; try again when less is written");
  }

 private:
  // Returns false if some files could not be copied because the writer has removed or changed them.
  Result<bool> CopyAll(std::vector<BackupFile>& files) {
    uint64_t total = 0;
    for (const BackupFile& file : files) total += file.size;
    Progress progress("backing up", total, Progress::Unit::kBytes);
    uint64_t done = 0;
    std::vector<BackupFile*> missing;
    for (BackupFile& file : files) {
      ISOZONE_ASSIGN_OR_RETURN(const bool there, IsThere(file));
      if (there) {
        done += file.size;
      } else {
        missing.push_back(&file);
      }
    }
    ISOZONE_ASSIGN_OR_RETURN(TargetRoom room, target_.Room());
    for (const BackupFile* file : missing) room.Need(DataOf(*file));
    ISOZONE_RETURN_IF_ERROR(room.Check("the target of the backup"));
    bool whole = true;
    for (BackupFile* file : missing) {
      ISOZONE_ASSIGN_OR_RETURN(const bool copied, Copy(*file, progress, done, total));
      whole &= copied;
      done += file->size;
      progress.Update(done);
    }
    return whole;
  }

  // Whether the target has `file`, or has taken it without copying; its checksum is then set. What has no content, such
  // as the directories of what comes behind it, is written at once.
  Result<bool> IsThere(BackupFile& file) {
    const auto copied = copied_.find(file.path());
    if (copied != copied_.end() && copied->second.HasContentOf(file, began_s_)) {
      file.crc32c = copied->second.crc32c;
      return true;
    }
    ISOZONE_ASSIGN_OR_RETURN(const bool has, target_.Has(file));
    if (has) copied_.erase(file.path());
    if (has || file.has_content()) return has;
    ISOZONE_RETURN_IF_ERROR(target_.Begin(file));
    ISOZONE_RETURN_IF_ERROR(target_.End(file));
    return true;
  }

  static uint64_t DataOf(const BackupFile& file) { return std::min(file.extents.StoredBytes(), file.size); }

  // Returns false if the file was removed or changed meanwhile.
  Result<bool> Copy(BackupFile& file, Progress& progress, uint64_t done, uint64_t total) {
    copied_.erase(file.path());
    written_.erase(file.path());
    ISOZONE_RETURN_IF_ERROR(target_.Begin(file));
    ISOZONE_ASSIGN_OR_RETURN(const bool whole, CopyContent(file, progress, done, total));
    if (!whole) {
      ISOZONE_RETURN_IF_ERROR(target_.Abandon());
      return false;
    }
    ISOZONE_RETURN_IF_ERROR(target_.End(file));
    copied_[file.path()] = file;
    return true;
  }

  Result<bool> CopyContent(BackupFile& file, Progress& progress, uint64_t done, uint64_t total) {
    const auto found = OpenWithHoles(file_system_, file.path());
    if (!found.ok()) return IsGone(file, found.status());
    PositionalFile& opened = **found;
    if (opened.inode() != file.inode) return false;
    file.crc32c = 0;
    for (uint64_t offset = 0; offset < file.size;) {
      if (StopSignals::Raised()) return Status::Aborted("stopped; the same command continues where it was");
      const size_t wanted = static_cast<size_t>(std::min<uint64_t>(kBackupChunk, file.size - offset));
      auto run = ReadRun(opened, offset, buffer_.span().first(wanted));
      if (!run.ok()) return IsGone(file, run.status());
      if (run->length == 0) return IsGone(file, Status::Corruption(fmt::format("{} ends too early", file.path())));
      run->length = std::min(run->length, file.size - offset);  // it may have grown by a hole
      ISOZONE_RETURN_IF_ERROR(AppendRun(target_, *run, buffer_.span()));
      file.crc32c = ChecksumOf(*run, buffer_.span(), file.crc32c);
      offset += run->length;
      progress.Update(done + offset, total);
    }
    if (file.kind == FileKind::kLog) {
      // A log that is damaged ends there, with an error.
      const auto end = opened.Read(file.size, buffer_.span().first(1), IoClass::kOther);
      return end.ok() ? Result<bool>(true) : IsGone(file, end.status());
    }
    return MayBeSame(file);
  }

  // Returns false if `file` cannot be as it was captured: it is gone, another one, or shorter. What was written to
  // meanwhile is looked at again by AreUnchanged.
  Result<bool> MayBeSame(const BackupFile& file) {
    ISOZONE_ASSIGN_OR_RETURN(const bool same, IsSame(file));
    if (same) return true;
    const auto now = file_system_.Stat(file.path());
    if (!now.ok() || now->inode != file.inode || now->kind != file.kind || now->size < file.size) return false;
    written_.insert(file.path());
    return true;
  }

  // Returns whether `file` is as it was captured.
  Result<bool> IsSame(const BackupFile& file) {
    const auto now = file_system_.Stat(file.path());
    if (now.status().Is(StatusCode::kNotFound) || now.status().Is(StatusCode::kNotDirectory)) return false;
    if (!now.ok()) return now.status();
    if (now->inode != file.inode || now->kind != file.kind) return false;
    return file.kind == FileKind::kLog || (now->size == file.size && now->modified == file.attributes.modified);
  }

  // Whether what was copied was as it was captured. A file that was written to since may have grown, or have other
  // attributes; its extents tell whether what it had is still there. IsSame does not see a write in place within the
  // second of the write before; the extents do. To look at them takes a look at all files, so it is done once for all
  // of these. Those that differ are to be copied again. A file that is gone was copied before.
  Result<bool> AreUnchanged(const std::vector<BackupFile>& files) {
    const auto may_differ = [this](const BackupFile& file) {
      return file.kind != FileKind::kLog && copied_.contains(file.path()) &&
             (!file.IsSettled(began_s_) || written_.contains(file.path()));
    };
    if (std::ranges::none_of(files, may_differ)) return true;
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<BackupFile> now, LookAtFiles(file_system_));
    bool unchanged = true;
    for (const BackupFile& file : files) {
      if (!may_differ(file)) continue;
      const auto there = std::ranges::lower_bound(now, file.inode, {}, &BackupFile::inode);
      const bool is_gone = there == now.end() || there->inode != file.inode;
      if (is_gone ? !written_.contains(file.path())
                  : file.HasContentOf(*there, began_s_) || file.IsBeginningOf(*there)) {
        continue;
      }
      copied_.erase(file.path());
      unchanged = false;
    }
    return unchanged;
  }

  // After `failure`: returns false if the reason is that the file is gone or another one, else the failure.
  Result<bool> IsGone(const BackupFile& file, const Status& failure) {
    ISOZONE_ASSIGN_OR_RETURN(const bool same, IsSame(file));
    if (same) return failure.WithContext(Printable(file.path()));
    return false;
  }

  FileSystem& file_system_;
  BackupTarget& target_;
  const uint64_t began_s_ = WallSeconds();
  std::map<std::string, BackupFile> copied_;  // by path
  std::set<std::string> written_;             // of these, what was written to since it was captured
  AlignedBuffer buffer_{kBackupChunk};
};

}  // namespace

Result<BackupCounts> MakeBackup(FileSystem& file_system, BackupTarget& target) {
  return BackupRun(file_system, target).Run();
}

}  // namespace isozone::cli
