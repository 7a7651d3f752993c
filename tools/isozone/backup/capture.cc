#include "isozone/backup/capture.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace isozone::cli {
namespace {

constexpr int kMaxLooks = 1000;

// In order of inode.
Result<std::vector<BackupFile>> LookAtFiles(const FileSystem& file_system) {
  std::vector<BackupFile> files;
  ISOZONE_RETURN_IF_ERROR(file_system.state().VisitFiles([&](const FileDetails& details) {
    if (details.paths.empty() || details.paths.front() == "/") return;
    const FileAttributes& attributes = details.attributes;
    BackupFile file;
    file.paths = details.paths;
    std::ranges::sort(file.paths);
    file.is_directory = attributes.is_directory;
    file.kind = attributes.kind;
    file.lifetime = attributes.lifetime;
    file.level = attributes.level;
    file.inode = attributes.inode;
    file.size = attributes.size;
    file.modified_s = attributes.modified_s;
    if (!file.is_directory && file.kind == FileKind::kLog) {
      file.size = 0;
      for (const FileExtent& extent : details.extents) file.size += extent.length;
    }
    files.push_back(std::move(file));
  }));
  return files;
}

// Whether nothing has happened between two looks, except that logs have grown.
bool OnlyLogsGrew(const std::vector<BackupFile>& before, const std::vector<BackupFile>& after) {
  return std::ranges::equal(before, after, [](const BackupFile& a, const BackupFile& b) {
    if (a.inode != b.inode || a.is_directory != b.is_directory || a.paths != b.paths) return false;
    if (a.is_directory) return true;
    if (a.kind != b.kind) return false;
    return a.kind == FileKind::kLog ? a.size <= b.size : a.size == b.size && a.modified_s == b.modified_s;
  });
}

// Parents come before what lies in them, and what changes before what does not.
auto Rank(const BackupFile& file) {
  const int kind = file.kind == FileKind::kLog ? 0 : file.kind == FileKind::kSmall ? 1 : 2;
  return file.is_directory ? std::tuple(-1, file.path()) : std::tuple(kind, file.path());
}

}  // namespace

Result<std::vector<BackupFile>> CaptureFiles(FileSystem& file_system) {
  std::vector<BackupFile> second;
  int same = 0;  // looks in a row that found the same
  for (int look = 0; look < kMaxLooks; ++look) {
    ISOZONE_ASSIGN_OR_RETURN(std::vector<BackupFile> now, LookAtFiles(file_system));
    same = same > 0 && OnlyLogsGrew(second, now) ? same + 1 : 1;
    if (same == 3) {
      std::ranges::sort(second, {}, Rank);
      return second;
    }
    second = std::move(now);
  }
  return Status::Busy("the files change too often for a consistent backup; try again when less is written");
}

}  // namespace isozone::cli
