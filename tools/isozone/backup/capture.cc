#include "isozone/backup/capture.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/crc32c.h"
#include "isozone/backup/inode_attributes.h"
#include "isozone/stop_signals.h"
#include "store/inode_files.h"

namespace isozone::cli {
namespace {

constexpr int kMinLooks = 10;
constexpr int64_t kLooksMaxNs = 20'000'000'000;

// The extents of a file have one packed form.
uint32_t ExtentsId(const ExtentList& extents) {
  const std::string packed = extents.Packed();
  return Crc32c(std::as_bytes(std::span(packed)));
}

// Without what ReadDetails reads.
BackupFile FileOf(const FileDetails& details) {
  const FileAttributes& attributes = details.attributes;
  BackupFile file;
  file.paths = details.paths;
  std::ranges::sort(file.paths);
  file.is_directory = attributes.is_directory;
  file.inode = attributes.inode;
  file.kind = attributes.kind;
  file.lifetime = attributes.lifetime;
  file.level = attributes.level;
  file.changed = attributes.changed;
  if (attributes.type == InodeType::kRegular) {
    file.extents = details.extents;
    file.extents_id = ExtentsId(details.extents);
    file.size = attributes.size;
  }
  return file;
}

// Reads what the metadata is asked for each inode alone. That may bring the mount up to date.
Status ReadDetails(const FileSystem& file_system, const FileAttributes& attributes, BackupFile& file) {
  ISOZONE_ASSIGN_OR_RETURN(file.attributes, ReadAttributes(file_system, attributes));
  if (attributes.type != InodeType::kSymlink) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(file.target, file_system.inodes().ReadLink(attributes.inode));
  return Status::Ok();
}

// One look. `is_whole`: no file was removed before all of it was read.
struct SeenFiles {
  std::vector<BackupFile> files;  // in order of inode
  bool is_whole = true;
};

Result<SeenFiles> LookOnce(const FileSystem& file_system) {
  SeenFiles seen;
  std::vector<FileAttributes> attributes;
  ISOZONE_RETURN_IF_ERROR(file_system.state().VisitFiles([&](const FileDetails& details) {
    if (details.paths.empty()) return;
    seen.files.push_back(FileOf(details));
    attributes.push_back(details.attributes);
  }));
  for (size_t i = 0; i < seen.files.size(); ++i) {
    const Status status = ReadDetails(file_system, attributes[i], seen.files[i]);
    if (status.Is(StatusCode::kNotFound)) {
      seen.is_whole = false;
      seen.files[i].paths.clear();
    } else if (!status.ok()) {
      return status;
    }
  }
  std::erase_if(seen.files, [](const BackupFile& file) { return file.paths.empty(); });
  return seen;
}

// Whether the logs and the extended attributes of `after` were the same before.
bool AreLogsTheSame(const std::vector<BackupFile>& before, const std::vector<BackupFile>& after) {
  return std::ranges::all_of(after, [&before](const BackupFile& file) {
    const bool is_log = file.has_content() && file.kind == FileKind::kLog;
    if (!is_log && file.attributes.xattrs.empty()) return true;
    const auto seen = std::ranges::lower_bound(before, file.inode, {}, &BackupFile::inode);
    if (seen == before.end() || seen->inode != file.inode) return false;
    if (seen->attributes.xattrs != file.attributes.xattrs) return false;
    return !is_log || (seen->kind == file.kind && seen->size == file.size && seen->extents_id == file.extents_id);
  });
}

// The attributes of a log, except its time, which changes as it grows.
bool HaveSameOwner(const BackupFile& a, const BackupFile& b) {
  BackupAttributes at_same_time = b.attributes;
  at_same_time.modified = a.attributes.modified;
  return a.attributes == at_same_time;
}

// Whether nothing has happened between two looks, the first at `seen_s`, except that logs have grown.
bool OnlyLogsGrew(const std::vector<BackupFile>& before, uint64_t seen_s, const std::vector<BackupFile>& after) {
  return std::ranges::equal(before, after, [seen_s](const BackupFile& a, const BackupFile& b) {
    if (a.inode != b.inode || a.is_directory != b.is_directory || a.paths != b.paths || a.target != b.target ||
        a.kind != b.kind) {
      return false;
    }
    if (a.has_content() && a.kind == FileKind::kLog) return a.size <= b.size && HaveSameOwner(a, b);
    return a.attributes == b.attributes && (!a.has_content() || a.HasContentOf(b, seen_s));
  });
}

// Parents come before what lies in them, and what changes before what does not.
auto Rank(const BackupFile& file) {
  const int kind = file.kind == FileKind::kLog ? 0 : file.kind == FileKind::kSmall ? 1 : 2;
  return file.is_directory ? std::tuple(-1, file.path()) : std::tuple(kind, file.path());
}

}  // namespace

Result<std::vector<BackupFile>> LookAtFiles(const FileSystem& file_system) {
  ISOZONE_ASSIGN_OR_RETURN(SeenFiles seen, LookOnce(file_system));
  return std::move(seen.files);
}

Result<std::vector<BackupFile>> CaptureFiles(FileSystem& file_system) {
  const int64_t began_ns = MonotonicNs();
  std::vector<BackupFile> second;
  uint64_t seen_s = 0;  // when that was
  int same = 0;         // looks in a row that found the same
  for (int looks = 0; looks < kMinLooks || MonotonicNs() - began_ns < kLooksMaxNs; ++looks) {
    if (StopSignals::Raised()) return Status::Aborted("stopped; the same command continues where it was");
    const uint64_t now_s = WallSeconds();
    ISOZONE_ASSIGN_OR_RETURN(SeenFiles now, LookOnce(file_system));
    if (same > 0 && now.is_whole && AreLogsTheSame(second, now.files)) {
      std::ranges::sort(now.files, {}, Rank);
      return std::move(now.files);
    }
    same = same > 0 && now.is_whole && OnlyLogsGrew(second, seen_s, now.files) ? same + 1 : 1;
    if (same == 3) {
      std::ranges::sort(second, {}, Rank);
      return second;
    }
    second = std::move(now.files);
    seen_s = now_s;
  }
  return Status::Busy("the files change too often for a consistent backup; try again when less is written");
}

}  // namespace isozone::cli
