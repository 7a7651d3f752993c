// export: serves a device as a zoned block device of the kernel, until a signal ends that.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "device/export/exported_device.h"
#include "isozone/command.h"
#include "isozone/end_signals.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

struct ExportArguments {
  std::string device;
  std::optional<uint32_t> id;
  std::optional<uint32_t> remove;
  bool recover = false;
};

// The server that died may keep the device open for a moment.
Result<OpenedDevice> OpenPatiently(const ExportArguments& arguments) {
  constexpr std::chrono::milliseconds kPause(50);
  for (int attempts = arguments.recover ? 100 : 1;; --attempts) {
    auto opened = OpenByUri(arguments.device, OpenMode::kReadWrite);
    if (attempts == 1 || !opened.status().Is(StatusCode::kBusy)) return opened;
    std::this_thread::sleep_for(kPause);
  }
}

// A device in use is removed only when it is asked for twice: what its users have not written would be lost.
void WaitUntilUnused(const ExportedDevice& exported, const EndSignals& signals, Console& console) {
  constexpr std::chrono::milliseconds kPause(200);
  constexpr std::chrono::seconds kSecondSignal(2);
  if (!exported.InUse()) return;
  console.Print("{} is in use, and is removed when that ends; a second signal removes it at once\n", exported.path());
  (void)console.Flush();  // nobody may read this
  // A terminal that closes sends its signal twice.
  const auto second_from = std::chrono::steady_clock::now() + kSecondSignal;
  while (exported.InUse()) {
    if (signals.Wait(kPause) && std::chrono::steady_clock::now() >= second_from) return;
  }
}

Status Check(const ExportArguments& arguments) {
  if (arguments.remove.has_value()) {
    if (arguments.device.empty() && !arguments.id && !arguments.recover) return Status::Ok();
    return Status::InvalidArgument("--remove takes the number of a block device, and nothing else");
  }
  if (arguments.device.empty()) return Status::InvalidArgument("DEVICE is required; see isozone export --help");
  if (arguments.recover && !arguments.id) {
    return Status::InvalidArgument("--recover needs --id N, the number of the block device whose server died");
  }
  return Status::Ok();
}

Status Export(const ExportArguments& arguments, Console& console) {
  ISOZONE_RETURN_IF_ERROR(Check(arguments));
  if (arguments.remove) return ExportedDevice::RemoveDead(*arguments.remove);
  const EndSignals signals;
  ::signal(SIGPIPE, SIG_IGN);  // whoever started this may read no more than the first line
  const Status pinned = PinMemory();
  ISOZONE_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenPatiently(arguments));
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<ExportedDevice> exported,
                           ExportedDevice::Start(*opened.device, {arguments.id, arguments.recover}));
  if (!pinned.ok()) Log().warn("{}; where memory is low, {} may stop", pinned.message(), exported->path());
  console.Print("{} is {}\n", exported->path(), Printable(opened.device->name()));
  ISOZONE_RETURN_IF_ERROR(console.Flush());
  signals.Wait();
  WaitUntilUnused(*exported, signals, console);
  ISOZONE_RETURN_IF_ERROR(exported->Stop());
  console.Print("{} is removed\n", exported->path());
  return Status::Ok();
}

Action DefineExport(CLI::App& app) {
  auto arguments = std::make_shared<ExportArguments>();
  app.add_option("DEVICE", arguments->device, "Device URI, as emu:/data/ssd.img")->option_text(" ");
  app.add_option("--id", arguments->id, "The N of /dev/ublkbN; otherwise the first that is free")->option_text("N");
  app.add_flag("--recover", arguments->recover, "Go on with the block device of --id, whose server died");
  app.add_option("--remove", arguments->remove, "Only remove block device N, whose server died")->option_text("N");
  return [arguments](Console& console) { return Export(*arguments, console); };
}

}  // namespace

extern const Command kExportCommand = {"export", "Serve a device as a zoned block device of the kernel, /dev/ublkbN",
                                       "  isozone export emu:/data/ssd.img              (until SIGINT or SIGTERM)\n"
                                       "  isozone export emu:/data/ssd.img --id 0 --recover\n"
                                       "  isozone export --remove 0",
                                       DefineExport};

}  // namespace isozone::cli
