#include <array>

#include "isozone/command.h"

namespace isozone::cli {

extern const Command kMkfsCommand;
extern const Command kInfoCommand;
extern const Command kDfCommand;
extern const Command kLsCommand;
extern const Command kStatCommand;
extern const Command kCatCommand;
extern const Command kCpCommand;
extern const Command kRmCommand;
extern const Command kBackupCommand;
extern const Command kRestoreCommand;
extern const Command kImportCommand;
extern const Command kZonesCommand;
extern const Command kFsckCommand;
extern const Command kDumpCommand;
extern const Command kIzgCommand;
extern const Command kGcCommand;
extern const Command kBenchCommand;
extern const Command kStatsCommand;
extern const Command kTopCommand;
extern const Command kServeCommand;
extern const Command kAdviseCommand;
extern const Command kWhyCommand;
extern const Command kMountCommand;
extern const Command kRunCommand;
extern const Command kExportCommand;
extern const Command kSimulateCommand;

std::span<const Command> Commands() {
  static const std::array commands = {
      kMkfsCommand, kInfoCommand,   kDfCommand,      kLsCommand,     kStatCommand,    kCatCommand,   kCpCommand,
      kRmCommand,   kBackupCommand, kRestoreCommand, kImportCommand, kZonesCommand,   kFsckCommand,  kDumpCommand,
      kIzgCommand,  kGcCommand,     kBenchCommand,   kStatsCommand,  kTopCommand,     kServeCommand, kAdviseCommand,
      kWhyCommand,  kMountCommand,  kRunCommand,     kExportCommand, kSimulateCommand};
  return commands;
}

}  // namespace isozone::cli
