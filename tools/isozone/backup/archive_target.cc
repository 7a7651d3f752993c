#include <set>
#include <utility>

#include "isozone/backup/backup_target.h"

namespace isozone::cli {
namespace {

class ArchiveTarget final : public BackupTarget {
 public:
  explicit ArchiveTarget(ArchiveWriter writer) : writer_(std::move(writer)) {}

  Result<bool> Has(BackupFile& file) override { return file.is_directory && !directories_.insert(file.path()).second; }
  Status Begin(const BackupFile& file) override { return writer_.Begin(file); }
  Status Append(std::span<const std::byte> data) override { return writer_.Append(data); }
  Status End(const BackupFile& /*file*/) override { return writer_.End(); }
  Status Abandon() override { return writer_.End(); }
  Status Finish(const Manifest& manifest) override {
    for (const BackupFile& file : manifest.files) {
      for (size_t i = 1; i < file.paths.size(); ++i) {
        ISOZONE_RETURN_IF_ERROR(writer_.AddLink(file.paths[i], file.path()));
      }
    }
    return writer_.Finish(manifest);
  }

 private:
  ArchiveWriter writer_;
  std::set<std::string> directories_;  // that are written
};

}  // namespace

Result<std::unique_ptr<BackupTarget>> MakeArchiveTarget(int descriptor) {
  ISOZONE_ASSIGN_OR_RETURN(ArchiveWriter writer, ArchiveWriter::Open(descriptor));
  return std::unique_ptr<BackupTarget>(std::make_unique<ArchiveTarget>(std::move(writer)));
}

}  // namespace isozone::cli
