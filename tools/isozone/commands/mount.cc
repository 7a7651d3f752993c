// mount: shows the file system of a device as a directory, for programs that know nothing of Isozone, until it is
// unmounted or a signal ends that.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "fuse/background.h"
#include "fuse/directory_service.h"
#include "fuse/fuse_options.h"
#include "fuse/hint_reader.h"
#include "fuse/mount_directory.h"
#include "isozone/command.h"
#include "isozone/exit_code.h"
#include "isozone/session.h"
#include "store/inode_files.h"

namespace isozone::cli {
namespace {

struct MountArguments {
  std::string device;
  std::string directory;
  std::vector<std::string> options;
  bool foreground = false;
};

// umount(8) returns before the daemon has made everything durable and ended. So a device that is in use and that no
// directory shows is waited for.
Result<std::unique_ptr<FileSystem>> MountDevice(const std::string& device, OpenMode mode) {
  constexpr int kMostTries = 50;
  for (int i = 1;; ++i) {
    auto mounted = MountByUri(device, mode);
    if (i == kMostTries || !mounted.status().Is(StatusCode::kBusy) || IsShown(device)) return mounted;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// Before this process has a second thread. Null: none are wanted. A status says why hints of programs are not heard.
Result<std::unique_ptr<HintReader>> StartHints(const FuseOptions& options) {
  if (options.read_only || options.writeback) return std::unique_ptr<HintReader>();
  return HintReader::Start();
}

Status ServeUntilEnd(const MountArguments& arguments, const FuseOptions& options,
                     const std::function<void(const std::string& directory)>& ready) {
  EndOfService end;
  ISOZONE_ASSIGN_OR_RETURN(const std::string directory, PrepareDirectory(arguments.directory));
  const auto hints = StartHints(options);
  const OpenMode mode = options.read_only ? OpenMode::kReadOnly : OpenMode::kReadWrite;
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSystem> file_system, MountDevice(arguments.device, mode));
  const DirectoryService service{directory, arguments.device, options, hints.ok() ? hints->get() : nullptr};
  ISOZONE_RETURN_IF_ERROR(ServeDirectory(*file_system, file_system->inodes(), service, end, [&] {
    if (!hints.ok()) Log().warn("hints of programs are not heard: {}", hints.status().message());
    ready(directory);
  }));
  return file_system->Unmount();
}

// Ends when the directory is unmounted. `ready` is called when it can be used.
Status Serve(const MountArguments& arguments, const FuseOptions& options,
             const std::function<void(const std::string& directory)>& ready) {
  try {
    return ServeUntilEnd(arguments, options, ready);
  } catch (const std::exception& error) {  // behind a fork, nobody else would tell of it
    return StatusOf(error);
  }
}

Status ServeInForeground(const MountArguments& arguments, const FuseOptions& options, Console& console) {
  ::signal(SIGPIPE, SIG_IGN);  // whoever started this may read no more than the first line
  return Serve(arguments, options, [&](const std::string& directory) {
    console.Print("{} is mounted on {}\n", Printable(arguments.device), Printable(directory));
    (void)console.Flush();  // nobody may read this
  });
}

// In the process that goes on in the background, the end of the process is here.
Status ServeInBackground(const MountArguments& arguments, const FuseOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // the first process may be killed before the second one is ready
  BackgroundStart start;
  Status report;
  ISOZONE_ASSIGN_OR_RETURN(const bool goes_on, start.Fork(report));
  if (!goes_on) return report;
  bool is_ready = false;
  const Status status = Serve(arguments, options, [&](const std::string&) {
    is_ready = true;
    (void)!::chdir("/");  // so that the file system of this directory can be unmounted
    start.ReportReady();
  });
  if (!is_ready) {
    start.ReportFailure(status);
  } else if (!status.ok()) {
    Log().error("{} on {}: {}", arguments.device, arguments.directory, status.message());
  }
  std::_Exit(static_cast<int>(ExitCodeOf(status)));
}

Status Mount(const MountArguments& arguments, Console& console) {
  FuseOptions options;
  for (const std::string& list : arguments.options) ISOZONE_RETURN_IF_ERROR(options.Add(list));
  if (arguments.foreground) return ServeInForeground(arguments, options, console);
  return ServeInBackground(arguments, options);
}

std::string OptionHelp() {
  std::string text = "Options of -o, separated by commas:\n";
  for (const FuseOptionHelp& help : ListFuseOptions())
    text += fmt::format("  {:<15}  {}\n", help.example, help.meaning);
  return text + "  and those of mount(8), such as noatime, noexec and nofail";
}

Action DefineMount(CLI::App& app) {
  auto arguments = std::make_shared<MountArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_option("DIRECTORY", arguments->directory, "Where; an empty directory")->required()->option_text(" ");
  app.add_option("-o,--options", arguments->options, "Options of the mount, see below")
      ->option_text("LIST")
      ->allow_extra_args(false);
  app.add_flag("-f,--foreground", arguments->foreground, "Stay in the foreground, and log to standard error");
  app.footer(fmt::format("{}\n\n{}", OptionHelp(), app.get_footer()));
  return [arguments](Console& console) { return Mount(*arguments, console); };
}

}  // namespace

extern const Command kMountCommand = {
    "mount", "Show the file system of a device as a directory, for programs that know nothing of Isozone",
    "  isozone mount -o allow_other dev:/dev/nvme0n2 /mnt/db\n  umount /mnt/db", DefineMount};

}  // namespace isozone::cli
