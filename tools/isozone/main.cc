// isozone: the command line (program.h).
#include <string>

#include "isozone/command.h"
#include "isozone/exit_code.h"
#include "store/mount_options.h"

namespace isozone::cli {
namespace {

std::string ExitCodeHelp() {
  std::string text = "Exit codes:\n";
  for (const ExitCodeEntry& entry : ExitCodes()) {
    text += fmt::format("  {:>2}  {}\n", static_cast<int>(entry.code), entry.meaning);
  }
  return text + "\nisozone COMMAND --help explains a command; man isozone explains them all.";
}

std::string MountOptionHelp() {
  std::string text = "Options of a mount, behind DEVICE as ?KEY=VALUE&KEY=VALUE, and their defaults:\n";
  for (const auto& [example, default_value, meaning] : ListMountOptions()) {
    text += fmt::format("  {:<27}  {:<9}  {}\n", example, default_value, meaning);
  }
  return text + "\n";
}

}  // namespace
}  // namespace isozone::cli

int main(int argc, char** argv) {
  using namespace isozone::cli;  // NOLINT(google-build-using-namespace): of one statement
  return RunProgram({.name = "isozone",
                     .summary = "Isozone: RocksDB on zoned flash. Formats, inspects and measures devices.",
                     .commands = Commands(),
                     .footer = MountOptionHelp() + ExitCodeHelp()},
                    argc, argv);
}
