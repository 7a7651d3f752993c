#include "isozone/backup/capture.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/crc32c.h"
#include "fs/inode_files.h"
#include "isozone/backup/inode_attributes.h"

namespace isozone::cli {
namespace {

constexpr int kMaxLooks = 1000;

uint32_t ExtentsId(const std::vector<FileExtent>& extents) {
  uint32_t crc = 0;
  for (const FileExtent& extent : extents) {
    const std::array<uint64_t, 3> words = {extent.file_offset, extent.device_offset.value(), extent.length};
    crc = Crc32c(std::as_bytes(std::span(words)), crc);
  }
  return crc;
}

Result<BackupFile> FileOf(const FileSystem& file_system, const FileDetails& details) {
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
  ISOZONE_ASSIGN_OR_RETURN(file.attributes, ReadAttributes(file_system, attributes));
  if (attributes.type == InodeType::kSymlink) {
    ISOZONE_ASSIGN_OR_RETURN(file.target, file_system.inodes().ReadLink(attributes.inode));
  } else if (!file.is_directory) {
    file.extents_id = ExtentsId(details.extents);
    file.size = attributes.size;
    if (file.kind == FileKind::kLog) {
      file.size = 0;
      for (const FileExtent& extent : details.extents) file.size += extent.length;
    }
  }
  return file;
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
  std::vector<BackupFile> files;
  Status status;
  ISOZONE_RETURN_IF_ERROR(file_system.state().VisitFiles([&](const FileDetails& details) {
    if (details.paths.empty() || !status.ok()) return;
    auto file = FileOf(file_system, details);
    if (file.ok()) {
      files.push_back(std::move(file).value());
    } else {
      status = file.status();
    }
  }));
  if (!status.ok()) return status;
  return files;
}

Result<std::vector<BackupFile>> CaptureFiles(FileSystem& file_system) {
  std::vector<BackupFile> second;
  uint64_t seen_s = 0;  // when that was
  int same = 0;         // looks in a row that found the same
  for (int look = 0; look < kMaxLooks; ++look) {
    const uint64_t now_s = WallSeconds();
    ISOZONE_ASSIGN_OR_RETURN(std::vector<BackupFile> now, LookAtFiles(file_system));
    same = same > 0 && OnlyLogsGrew(second, seen_s, now) ? same + 1 : 1;
    if (same == 3) {
      std::ranges::sort(second, {}, Rank);
      return second;
    }
    second = std::move(now);
    seen_s = now_s;
  }
  return Status::Busy("the files change too often for a consistent backup; try again when less is written");
}

}  // namespace isozone::cli
