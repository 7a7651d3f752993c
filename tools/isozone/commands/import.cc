// import: copies the files of a ZenFS device, which is only read.
//
// Each file gets its name when it is complete, durable and read back. A file that is there already with this content is
// left as it is, so an import that was stopped is continued by the same command. Any other file of such a name is kept,
// and nothing is imported.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "isozone/command.h"
#include "isozone/file_checksum.h"
#include "isozone/holes.h"
#include "isozone/output/progress.h"
#include "isozone/path.h"
#include "isozone/session.h"
#include "isozone/stop_signals.h"
#include "isozone/zenfs/zenfs_device.h"
#include "store/inode_files.h"

namespace isozone::cli {
namespace {

constexpr std::string_view kImportSuffix = ".isozone-import";

// What a file is called while it is imported. No file of another program has such a name.
std::string TemporaryName(const std::string& path) {
  const std::string name = BaseName(path);
  if (name.size() + kImportSuffix.size() <= InodeFiles::kNameMax) return fmt::format("{}{}", path, kImportSuffix);
  const uint32_t crc = Crc32c(name.data(), name.size());
  return JoinPath(ParentPath(path), fmt::format("{:08x}{}", crc, kImportSuffix));
}

struct ImportArguments {
  std::string source;
  std::string device;
};

class Importer {
 public:
  Importer(ZonedDevice& source, FileSystem& target, std::vector<ZenFsFile> files)
      : source_(source), target_(target), files_(std::move(files)) {
    for (const ZenFsFile& file : files_) total_ += file.size;
  }

  uint64_t total() const { return total_; }
  size_t count() const { return files_.size(); }

  Status Run() {
    Progress progress("importing", 2 * total_, Progress::Unit::kBytes);  // each byte is looked for, then copied
    for (const ZenFsFile& file : files_) ISOZONE_RETURN_IF_ERROR(CheckOtherNames(file));
    std::vector<const ZenFsFile*> missing;
    for (const ZenFsFile& file : files_) {
      ISOZONE_ASSIGN_OR_RETURN(const bool there, IsThere(file, progress));
      if (!there) missing.push_back(&file);
    }
    TargetRoom room = TargetRoom::OnDevice(target_);
    for (const ZenFsFile* file : missing) room.Need(file->size);
    ISOZONE_RETURN_IF_ERROR(room.Check(target_.state().device().name()));
    for (const ZenFsFile* file : missing) ISOZONE_RETURN_IF_ERROR(Import(*file, progress));
    for (const ZenFsFile& file : files_) ISOZONE_RETURN_IF_ERROR(AddNames(file));
    return target_.SyncMetadata();
  }

 private:
  Status Proceed(const ZenFsFile& file, uint64_t bytes, Progress& progress) {
    if (StopSignals::Raised()) {
      return Status::Aborted(fmt::format("stopped at {}; the same command continues", Printable(file.names.front())));
    }
    done_ += bytes;
    progress.Update(done_);
    return Status::Ok();
  }

  static Status Another(const std::string& path) {
    return Status::AlreadyExists(
        fmt::format("the device has another {} already; remove or rename it first", Printable(path)));
  }

  // kAlreadyExists if a name beside the first is one of another file.
  Status CheckOtherNames(const ZenFsFile& file) {
    for (size_t i = 1; i < file.names.size(); ++i) {
      const auto there = target_.Stat(file.names[i]);
      if (there.status().Is(StatusCode::kNotFound)) continue;
      if (!there.ok()) return there.status();
      const auto first = target_.Stat(file.names.front());
      if (!first.ok() && !first.status().Is(StatusCode::kNotFound)) return first.status();
      if (!first.ok() || first->inode != there->inode) return Another(file.names[i]);
    }
    return Status::Ok();
  }

  // Whether the file was imported before. kAlreadyExists if another file has its name.
  Result<bool> IsThere(const ZenFsFile& file, Progress& progress) {
    const std::string& path = file.names.front();
    const auto there = target_.Stat(path);
    if (there.status().Is(StatusCode::kNotFound)) return false;
    if (!there.ok()) return there.status();
    bool same = !there->is_directory && there->size == file.size;
    if (same) {
      uint32_t crc = 0;
      ISOZONE_RETURN_IF_ERROR(ReadZenFsFile(source_, file, [&](std::span<const std::byte> data) {
        crc = Crc32c(data, crc);
        return Proceed(file, data.size(), progress);
      }));
      ISOZONE_ASSIGN_OR_RETURN(const uint32_t found, ChecksumOf(target_, path));
      same = crc == found;
    }
    return same ? Result<bool>(true) : Another(path);
  }

  Status Import(const ZenFsFile& file, Progress& progress) {
    const std::string& path = file.names.front();
    const std::string temporary = TemporaryName(path);
    CreateOptions options;
    options.kind = file.is_sparse ? FileKind::kLog : FileKind::kData;
    options.lifetime = file.lifetime < kLifetimeCount ? static_cast<Lifetime>(file.lifetime) : Lifetime::kNotSet;
    ISOZONE_RETURN_IF_ERROR(target_.CreateDirectories(ParentPath(path)));
    ISOZONE_ASSIGN_OR_RETURN(const auto writer, SparseWriter::Create(target_, temporary, options));
    uint32_t crc = 0;
    ISOZONE_RETURN_IF_ERROR(ReadZenFsFile(source_, file, [&](std::span<const std::byte> data) -> Status {
      crc = Crc32c(data, crc);
      ISOZONE_RETURN_IF_ERROR(Proceed(file, data.size(), progress));
      return writer->Append(data);
    }));
    ISOZONE_RETURN_IF_ERROR(writer->Sync());
    ISOZONE_RETURN_IF_ERROR(writer->Close());
    ISOZONE_ASSIGN_OR_RETURN(const uint32_t found, ChecksumOf(target_, temporary));
    if (found != crc) return Status::Corruption(fmt::format("{} cannot be read back as it was written", path));
    ISOZONE_RETURN_IF_ERROR(target_.SetModified(temporary, file.modified_s));
    return target_.Rename(temporary, path);
  }

  Status AddNames(const ZenFsFile& file) {
    ISOZONE_RETURN_IF_ERROR(CheckOtherNames(file));
    for (size_t i = 1; i < file.names.size(); ++i) {
      ISOZONE_RETURN_IF_ERROR(target_.CreateDirectories(ParentPath(file.names[i])));
      const Status status = target_.Link(file.names.front(), file.names[i]);
      if (!status.ok() && !status.Is(StatusCode::kAlreadyExists)) return status;
    }
    return Status::Ok();
  }

  ZonedDevice& source_;
  FileSystem& target_;
  const std::vector<ZenFsFile> files_;
  uint64_t total_ = 0;  // bytes
  uint64_t done_ = 0;   // bytes
};

Status Import(const ImportArguments& arguments, Console& console) {
  const StopSignals signals;
  ISOZONE_ASSIGN_OR_RETURN(const OpenedDevice source, OpenByUri(arguments.source, OpenMode::kReadOnly));
  ISOZONE_ASSIGN_OR_RETURN(std::vector<ZenFsFile> files, ReadZenFs(*source.device));
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(arguments.device, OpenMode::kReadWrite));
  Importer importer(*source.device, *file_system, std::move(files));
  ISOZONE_RETURN_IF_ERROR(importer.Run());
  console.Print("{} files, {} are imported from {}\n", importer.count(), FormatSize(importer.total()),
                Printable(arguments.source));
  return file_system->Unmount();
}

Action DefineImport(CLI::App& app) {
  auto arguments = std::make_shared<ImportArguments>();
  app.add_option("ZENFS_DEVICE", arguments->source, "URI of a device that ZenFS was used on, which is only read")
      ->required()
      ->option_text(" ");
  AddDeviceArgument(app, arguments->device);
  return [arguments](Console& console) { return Import(*arguments, console); };
}

}  // namespace

extern const Command kImportCommand = {"import", "Copy the files of a ZenFS device",
                                       "  isozone import dev:/dev/nvme0n2 dev:/dev/nvme1n2", DefineImport};

}  // namespace isozone::cli
