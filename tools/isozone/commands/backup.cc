// backup and restore: everything on a device in a folder or an archive, and back.
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "isozone/backup/backup_run.h"
#include "isozone/backup/backup_source.h"
#include "isozone/backup/restore_run.h"
#include "isozone/command.h"
#include "isozone/session.h"
#include "isozone/stop_signals.h"

namespace isozone::cli {
namespace {

struct BackupArguments {
  std::string device;
  std::string target;
  std::string verify;
  std::optional<uint32_t> keep;  // 1 if it is not given
};

struct RestoreArguments {
  std::string source;
  std::string device;
  bool force = false;
};

std::string Describe(const Manifest& manifest) {
  return fmt::format("{} files, {}", manifest.FileCount(), FormatSize(manifest.TotalSize()));
}

Status Verify(const std::string& backup, Console& console) {
  const StopSignals signals;
  ISOZONE_ASSIGN_OR_RETURN(const auto source, OpenBackup(backup));
  ISOZONE_ASSIGN_OR_RETURN(const Manifest manifest, VerifyBackup(*source));
  console.Print("{} is whole: {}\n", Printable(backup), Describe(manifest));
  return Status::Ok();
}

Status Backup(const BackupArguments& arguments, Console& console) {
  if (arguments.keep && (!arguments.verify.empty() || arguments.target == "-")) {
    return Status::InvalidArgument("--keep is for backups in a folder; leave it out");
  }
  if (!arguments.verify.empty()) {
    if (arguments.device.empty()) return Verify(arguments.verify, console);
    return Status::InvalidArgument("--verify reads a backup only; give no DEVICE");
  }
  if (arguments.target.empty()) return Status::InvalidArgument("give DEVICE, and DIR or - to write to");
  const bool is_archive = arguments.target == "-";
  if (is_archive && ::isatty(STDOUT_FILENO) != 0) {
    return Status::InvalidArgument("standard output is a terminal; redirect it, as in isozone backup DEVICE - > FILE");
  }
  const StopSignals signals;
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(arguments.device, OpenMode::kReadOnly));
  ISOZONE_ASSIGN_OR_RETURN(
      const auto target,
      is_archive ? MakeArchiveTarget(STDOUT_FILENO)
                 : MakeDirectoryTarget(arguments.target, file_system->state().uuid(), arguments.keep.value_or(1)));
  ISOZONE_ASSIGN_OR_RETURN(const BackupCounts counts, MakeBackup(*file_system, *target));
  if (!is_archive) {
    console.Print("{} holds {}; copied {} files, {}\n", Printable(arguments.target), Describe(counts.manifest),
                  counts.copied_files, FormatSize(counts.copied_bytes));
  }
  return file_system->Unmount();
}

Status Restore(const RestoreArguments& arguments, Console& console) {
  const StopSignals signals;
  ISOZONE_ASSIGN_OR_RETURN(const auto source, OpenBackup(arguments.source));
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(arguments.device, OpenMode::kReadWrite));
  const RestoreOnto onto = arguments.force ? RestoreOnto::kAnything : RestoreOnto::kEmpty;
  ISOZONE_ASSIGN_OR_RETURN(const Manifest manifest, RestoreBackup(*source, *file_system, onto));
  ISOZONE_RETURN_IF_ERROR(file_system->Unmount());
  console.Print("{} holds {}, as of the backup\n", Printable(arguments.device), Describe(manifest));
  return Status::Ok();
}

Action DefineBackup(CLI::App& app) {
  auto arguments = std::make_shared<BackupArguments>();
  app.add_option("DEVICE", arguments->device, "Device URI, as dev:/dev/nvme0n2 or emu:/data/ssd.img")->option_text(" ");
  app.add_option("TARGET", arguments->target, "A folder for backups, or - for an archive on standard output")
      ->option_text(" ");
  app.add_option("--keep", arguments->keep, "Backups that the folder keeps, the newest ones")
      ->check(CLI::Range(1, 100000), "")
      ->option_text("N [1]");
  app.add_option("--verify", arguments->verify, "Check a backup: a folder, an archive, or - for standard input")
      ->option_text("BACKUP");
  return [arguments](Console& console) { return Backup(*arguments, console); };
}

Action DefineRestore(CLI::App& app) {
  auto arguments = std::make_shared<RestoreArguments>();
  app.add_option("BACKUP", arguments->source, "A folder, an archive, or - for an archive on standard input")
      ->required()
      ->option_text(" ");
  AddDeviceArgument(app, arguments->device);
  app.add_flag("--force", arguments->force, "Replace all that the device holds");
  return [arguments](Console& console) { return Restore(*arguments, console); };
}

}  // namespace

extern const Command kBackupCommand = {
    "backup", "Copy everything on a device into a folder or an archive, also beside a running writer",
    "  isozone backup emu:/data/ssd.img /backups/ssd       (again later: only what has changed is copied)\n"
    "  isozone backup emu:/data/ssd.img - | zstd > ssd.tar.zst\n"
    "  isozone backup --verify /backups/ssd",
    DefineBackup};

extern const Command kRestoreCommand = {"restore", "Write a backup onto a formatted device",
                                        "  isozone restore /backups/ssd emu:/data/new.img\n"
                                        "  isozone restore - emu:/data/new.img < ssd.tar.zst",
                                        DefineRestore};

}  // namespace isozone::cli
