#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "isozone/backup/backup_target.h"

namespace isozone::cli {
namespace {

constexpr uint64_t kTarBlock = 512;  // bytes

class ArchiveTarget final : public BackupTarget {
 public:
  ArchiveTarget(ArchiveWriter writer, int descriptor) : writer_(std::move(writer)), descriptor_(descriptor) {}

  // Of a pipe nobody knows it.
  Result<TargetRoom> Room() const override {
    struct stat found {};
    if (::fstat(descriptor_, &found) != 0 || !S_ISREG(found.st_mode)) return TargetRoom(UINT64_MAX, kTarBlock);
    ISOZONE_ASSIGN_OR_RETURN(const TargetRoom room, TargetRoom::In(fmt::format("/proc/self/fd/{}", descriptor_)));
    return TargetRoom(room.bytes(), kTarBlock);
  }

  Result<bool> Has(BackupFile& file) override {
    if (file.has_content()) return false;
    std::string entry = EncodeBackupFile(file).dump();
    std::string& written = written_[file.path()];
    if (written == entry) return true;
    written = std::move(entry);
    return false;
  }
  Status Begin(const BackupFile& file) override { return writer_.Begin(file); }
  Status Append(std::span<const std::byte> data) override { return writer_.Append(data); }
  // What Begin was told is a hole, the library leaves out of the archive.
  Status AppendHole(uint64_t bytes) override {
    return ForZeros(bytes, [this](std::span<const std::byte> zeros) { return writer_.Append(zeros); });
  }
  Status End(const BackupFile& /*file*/) override { return writer_.End(); }
  Status Abandon() override { return writer_.End(); }
  Status Finish(const Manifest& manifest) override {
    for (const BackupFile& file : manifest.files) {
      for (size_t i = 1; i < file.paths.size(); ++i) {
        ISOZONE_RETURN_IF_ERROR(writer_.AddLink(file.paths[i], file));
      }
    }
    return writer_.Finish(manifest);
  }

 private:
  ArchiveWriter writer_;
  const int descriptor_;
  std::map<std::string, std::string> written_;  // directories and symbolic links, by path, as they were written
};

}  // namespace

Result<std::unique_ptr<BackupTarget>> MakeArchiveTarget(int descriptor) {
  ISOZONE_ASSIGN_OR_RETURN(ArchiveWriter writer, ArchiveWriter::Open(descriptor));
  return std::unique_ptr<BackupTarget>(std::make_unique<ArchiveTarget>(std::move(writer), descriptor));
}

}  // namespace isozone::cli
