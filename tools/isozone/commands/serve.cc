// serve: metrics for Prometheus and the live map for browsers, until a signal ends that.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "isozone/command.h"
#include "isozone/end_signals.h"
#include "isozone/serve/device_watch.h"
#include "isozone/serve/http_server.h"
#include "isozone/serve/site.h"

namespace isozone::cli {
namespace {

struct ServeArguments {
  std::vector<std::string> devices;
  std::string listen = "127.0.0.1:9464";
  std::vector<std::string> allowed_names;
  bool no_keys = false;
};

// A name as requests have it, without a port.
Status CheckNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!name.empty() && name.find_first_of(":/ ") == std::string::npos) continue;
    return Status::InvalidArgument(
        fmt::format("--allow-host '{}': give a name alone, without a port, as in storage7.lan", name));
  }
  return Status::Ok();
}

Status OpenDevices(const ServeArguments& arguments, std::vector<std::unique_ptr<DeviceWatch>>& devices) {
  for (const std::string& uri : arguments.devices) {
    const ShowKeys keys = arguments.no_keys ? ShowKeys::kNo : ShowKeys::kYes;
    ISOZONE_ASSIGN_OR_RETURN(auto device, DeviceWatch::Open(uri, keys));
    const auto same = [&](const auto& other) { return other->name() == device->name(); };
    if (std::ranges::any_of(devices, same)) {
      return Status::InvalidArgument(fmt::format("{} is given twice", device->name()));
    }
    devices.push_back(std::move(device));
  }
  return Status::Ok();
}

// A second signal ends the process at once, whatever is still read from devices. For a moment it counts as the first: a
// terminal that closes, and timeout(1), send theirs twice. Where the system has no thread for that, it does nothing.
void End(std::unique_ptr<HttpServer> server, const EndSignals& signals) {
  static constexpr std::chrono::milliseconds kPause(20);
  const auto second_from = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::atomic<bool> ended{false};
  auto second = StartThread("a second signal", [&] {
    while (!ended) {
      if (signals.Wait(kPause) && std::chrono::steady_clock::now() >= second_from) std::_Exit(EXIT_FAILURE);
    }
  });
  server.reset();
  ended = true;
  if (second.ok()) second->join();
}

Status Serve(const ServeArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const ListenAddress address, ListenAddress::Parse(arguments.listen));
  ISOZONE_RETURN_IF_ERROR(CheckNames(arguments.allowed_names));
  const EndSignals signals;  // held back before the first thread is made
  std::vector<std::unique_ptr<DeviceWatch>> devices;
  ISOZONE_RETURN_IF_ERROR(OpenDevices(arguments, devices));
  const size_t count = devices.size();
  Site site(std::move(devices));
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> server,
                           HttpServer::Start(address, arguments.allowed_names,
                                             [&site](const HttpRequest& request) { return site.Answer(request); }));
  if (!address.IsLoopback()) {
    fmt::print(stderr, "isozone serve: others can reach this address, and read the names and sizes of all files{}\n",
               arguments.no_keys ? "" : ", and the first and last keys of tables");
  }
  console.Print("Serving {} device{} at http://{}/ until SIGINT, SIGTERM or SIGHUP\n", count, count == 1 ? "" : "s",
                server->address().Text());
  ISOZONE_RETURN_IF_ERROR(console.Flush());
  signals.Wait();
  End(std::move(server), signals);
  return Status::Ok();
}

Action DefineServe(CLI::App& app) {
  auto arguments = std::make_shared<ServeArguments>();
  app.add_option("DEVICE", arguments->devices, "Device URIs, as dev:/dev/nvme0n2 or emu:/data/ssd.img")
      ->required()
      ->option_text("...");
  app.add_option("--listen", arguments->listen, "Where to listen; 127.0.0.1:9464 if not given, port 0 is any")
      ->option_text("ADDRESS:PORT");
  app.add_option("--allow-host", arguments->allowed_names,
                 "A name by which browsers and Prometheus may call this server")
      ->option_text("NAME")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--no-keys", arguments->no_keys, "Do not tell the smallest and largest keys of tables");
  return [arguments](Console& console) { return Serve(*arguments, console); };
}

}  // namespace

extern const Command kServeCommand = {
    "serve", "Serve metrics for Prometheus, and a live map of the zones for browsers",
    "  isozone serve emu:/data/ssd.img                              (http://127.0.0.1:9464)\n"
    "  isozone serve --listen [::1]:8080 dev:/dev/nvme0n2 dev:/dev/nvme1n2",
    DefineServe};

}  // namespace isozone::cli
